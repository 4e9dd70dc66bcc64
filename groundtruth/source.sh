#!/bin/bash
# source.sh VERSION: fetches Debian's source of a kernel (linux-source-VERSION) and unpacks of it what the scheduler is
# built from, below target/groundtruth/sources; nothing is installed. Prints the folder.
# MIRROR: where to fetch from, if not from where this host's apt does.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$1
work=$PWD/target/groundtruth
root=$work/sources/$version
if [ -e "$root/Makefile" ]; then
    echo "$root"
    exit 0
fi
mkdir -p "$work/sources/packages"
. groundtruth/apt.sh
package=linux-source-$version
# This distribution's own, or the suite that has it; security updates have a place of their own.
security=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -m1 'debian-security$' || true)
fetch() { (cd "$work/sources/packages" && apt-get "${apt_options[@]}" -o APT::Sandbox::User=root download -q "$package" >/dev/null 2>&1); }
try() { apt_suite "$1" 2>/dev/null && fetch; }
apt_host
fetch || try bookworm || MIRROR=$security try bullseye-security || try trixie || try trixie-backports || try sid || try experimental || {
    echo "groundtruth: no suite known here has $package any more" >&2
    exit 2
}
deb=$(ls "$work/sources/packages/${package}"_*.deb | head -1)
part=$root.part
rm -rf "$part"
mkdir -p "$part/tree"
dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$part" --wildcards './usr/src/*.tar.xz'
top=$package
# Some of the patterns match nothing in some kernels, which tar calls a failure.
tar -xJf "$part/usr/src/$package.tar.xz" -C "$part/tree" --strip-components=1 --wildcards \
    "$top/kernel" "$top/include" "$top/lib" "$top/init" "$top/scripts" "$top/io_uring" "$top/Makefile" \
    '*/Kconfig*' "$top/mm/*.h" "$top/fs/*.h" "$top/block/*.h" 2>/dev/null || true
[ -e "$part/tree/kernel/sched/fair.c" ] || { echo "groundtruth: $deb has no kernel/sched/fair.c" >&2; exit 2; }
mv "$part/tree" "$root"
rm -r "$part" "$deb"
echo "$root"
