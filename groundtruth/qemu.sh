#!/bin/bash
# qemu.sh: prints the emulator to use. QEMU before 10 stops at the second CPU when its clock counts instructions,
# and miscompiles Linux 6.12; then a newer one is unpacked from the backports of this distribution, beside the
# installed one.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$PWD/target/groundtruth
version=$(qemu-system-x86_64 --version | sed -nE '1s/.*version ([0-9]+)\..*/\1/p')
needed=10
if [ "$version" -ge "$needed" ]; then
    command -v qemu-system-x86_64
    exit 0
fi
root=$work/qemu
if [ ! -e "$root/qemu" ]; then
    . groundtruth/apt.sh
    apt_suite "$(. /etc/os-release && echo "$VERSION_CODENAME")-backports"
    apt_unpack "$root" qemu-system-x86 qemu-system-common qemu-system-data seabios
    printf '#!/bin/sh\nexec %q/usr/bin/qemu-system-x86_64 -L %q/usr/share/qemu -L %q/usr/share/seabios "$@"\n' \
        "$root" "$root" "$root" >"$root/qemu.new"
    chmod +x "$root/qemu.new"
    "$root/qemu.new" --version >/dev/null
    mv "$root/qemu.new" "$root/qemu"
fi
echo "$root/qemu"
