#!/bin/bash
# kernel.sh NAME: fetches a Debian kernel and unpacks it below target/groundtruth; nothing is installed.
# NAME is 5.10, 6.1, 6.12, 6.16, 6.17, 6.18, 7.2, or `distribution` for the one that this distribution has now. Prints the folder.
# MIRROR: where to fetch from, if not from where this host's apt does.
set -euo pipefail
cd "$(dirname "$0")/.."
name=$1
work=$PWD/target/groundtruth
root=$work/kernels/$name
case $name in
    distribution) suite= pattern= ;;
    6.1) suite=bookworm pattern='^linux-image-6\.1\.[0-9]+-[0-9]+-cloud-amd64$' ;;
    6.12) suite=bookworm-backports pattern='^linux-image-6\.12\.[0-9]+\+deb12-cloud-amd64$' ;;
    5.10) suite=bullseye pattern='^linux-image-5\.10\.[0-9]+-[0-9]+-cloud-amd64$' ;;
    6.16 | 6.17 | 6.18) suite=trixie-backports pattern="^linux-image-${name/./\\.}\\.[0-9]+\\+deb13-cloud-amd64\$" ;;
    # Newer image packages are empty shells around these three.
    7.2) suite=sid pattern='^linux-(binary|modules|base)-7\.2\.[0-9]+\+deb14-cloud-amd64$' ;;
    *)
        echo "groundtruth: there is no recipe for kernel $name; known are 5.10, 6.1, 6.12, 6.16, 6.17, 6.18, 7.2 and distribution" >&2
        exit 2
        ;;
esac
if [ -e "$root/whole" ]; then
    echo "$root"
    exit 0
fi
rm -rf "$root"
mkdir -p "$root/packages"
. groundtruth/apt.sh
if [ -n "$suite" ]; then
    apt_suite "$suite"
    packages=$(apt_names | grep -E "$pattern" | sort -V || true)
    # Of several builds the newest.
    newest=$(sed -E 's/^[a-z-]*-([0-9].*)$/\1/' <<<"$packages" | sort -V | tail -1)
    packages=$(grep -F -- "-$newest" <<<"$packages" || true)
else
    apt_host
    packages=$(apt_show linux-image-cloud-amd64 | sed -nE 's/^Depends: *(linux-image-[^ ,]*).*/\1/p' | head -1)
fi
if [ -z "$packages" ]; then
    echo "groundtruth: ${suite:-this distribution} has no kernel $name any more" >&2
    exit 2
fi
# shellcheck disable=SC2086
apt_unpack "$root" $packages
touch "$root/whole"
echo "$root"
