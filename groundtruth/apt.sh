# Sourced: packages of this host's distribution, or of another suite without touching the host's own lists.
# work is set by whoever sources this.

apt_host() {
    apt_options=()
    apt-get update -q >/dev/null 2>&1 || true
}

# apt_suite SUITE: from now on packages are those of that suite.
apt_suite() {
    local state=$work/apt/$1
    local mirror=${MIRROR:-$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -m1 '/debian$' || true)}
    if [ -z "$mirror" ]; then
        echo "groundtruth: no Debian mirror is known; name one in MIRROR" >&2
        return 2
    fi
    mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
    : >"$state/status"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $1 main" >"$state/sources.list"
    apt_options=(-o "Dir::Etc::sourcelist=$state/sources.list" -o Dir::Etc::sourceparts=/dev/null
        -o "Dir::State::lists=$state/lists" -o "Dir::State::status=$state/status" -o "Dir::Cache=$state/cache"
        -o APT::Sandbox::User=root)
    apt-get "${apt_options[@]}" update -q >"$state/log" 2>&1 || { tail -3 "$state/log" >&2; return 2; }
}

apt_names() { apt-cache "${apt_options[@]}" pkgnames linux-; }

apt_show() { apt-cache "${apt_options[@]}" show --no-all-versions "$1" 2>/dev/null; }

# apt_unpack ROOT PACKAGE...: fetches packages and unpacks them below ROOT.
apt_unpack() {
    local root=$1 deb
    shift
    mkdir -p "$root/packages"
    (cd "$root/packages" && apt-get "${apt_options[@]}" -o APT::Sandbox::User=root download -q "$@" >log 2>&1) \
        || { tail -3 "$root/packages/log" >&2; return 2; }
    for deb in "$root"/packages/*.deb; do dpkg -x "$deb" "$root"; done
    rm -r "$root/packages"
}
