#!/bin/bash
# Installs what the scripts here need, as root with apt; else says what is missing, exit status 2.
set -eu

declare -A package=(
    [qemu-system-x86_64]=qemu-system-x86 [busybox]=busybox-static [cpio]=cpio [depmod]=kmod
    [gcc]=gcc [make]=make [xz]=xz-utils [zstd]=zstd [dpkg]=dpkg [awk]=mawk
)
missing=()
for tool in "${!package[@]}"; do
    # Debian has depmod in a folder that only root searches.
    PATH=$PATH:/usr/sbin:/sbin command -v "$tool" >/dev/null || missing+=("${package[$tool]}")
done
# A busybox with libraries would not run in the guest.
if command -v busybox >/dev/null && ldd "$(command -v busybox)" >/dev/null 2>&1; then missing+=(busybox-static); fi
[ ${#missing[@]} = 0 ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    log=$(mktemp)
    if { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "${missing[@]}"; } \
        >"$log" 2>&1; then
        rm "$log"
        exit 0
    fi
    tail -5 "$log" >&2
fi
echo "groundtruth: these Debian packages are needed: ${missing[*]}; install them with apt" >&2
exit 2
