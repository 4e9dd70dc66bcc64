#!/bin/bash
# record.sh KERNEL MACHINE [FOLDER]: records every load on a real kernel on an emulated machine, into
# FOLDER/KERNEL/MACHINE/LOAD (default folder: target/groundtruth/traces).
# KERNEL: 6.1, 6.12, 7.2 and others that kernel.sh knows, or distribution. MACHINE: 2x2x4 and the like, see boot.sh.
set -euo pipefail
if [ $# -lt 2 ]; then
    sed -n '2,4s/^# //p' "$0" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
kernel=$1 machine=$2
work=$here/../target/groundtruth
out=$(realpath -m "${3:-$work/traces}")/$kernel/$machine
if [ -e "$out" ]; then
    echo "groundtruth: $out exists; name another folder or remove it" >&2
    exit 2
fi
"$here/tools.sh"
root=$("$here/kernel.sh" "$kernel")
QEMU=$("$here/qemu.sh")
export QEMU
make -s -C "$here/programs" OUT="$work/programs"
"$here/initramfs.sh" "$root" "$work/programs" "$work/initramfs-$kernel.gz"
partial=$out.partial
rm -rf "$partial"
"$here/boot.sh" "$root" "$work/initramfs-$kernel.gz" "$here/guest/all.sh" "$partial" "$machine" "${SECONDS_MAX:-1800}"
mv "$partial" "$out"
echo "recorded into $out"
