#!/bin/bash
# check.sh: boots this distribution's kernel on a small emulated machine, records one short load there, and asks
# schedlab whether it builds the same domains and takes the same decisions. Takes some minutes, most of them to
# fetch the kernel and to compile. SCHEDLAB: a binary to use instead of building one.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/.."
machine=2x1x2
"$here/tools.sh"
schedlab=${SCHEDLAB:-}
if [ -z "$schedlab" ]; then
    cargo build --quiet --locked --release --package schedlab-cli
    schedlab=${CARGO_TARGET_DIR:-target}/release/schedlab
fi
work=target/groundtruth
root=$("$here/kernel.sh" distribution)
release=$(basename "$(ls -d "$root"/lib/modules/* "$root"/usr/lib/modules/* 2>/dev/null | head -1)")
QEMU=$("$here/qemu.sh")
export QEMU
make -s -C "$here/programs" OUT="$PWD/$work/programs"
"$here/initramfs.sh" "$root" "$work/programs" "$work/initramfs-check.gz" "$schedlab"
out=$work/check
rm -rf "$out"
"$here/boot.sh" "$root" "$work/initramfs-check.gz" "$here/guest/check.sh" "$out" "$machine" 600

# The newest preset that is not newer than the kernel.
kernel=$(for preset in v4.13 v5.5 v5.18 v6.1 v6.3 v6.10 v6.12 v7.2 "v$release"; do echo "$preset"; done | sort -V | grep -B1 -x "v$release" | head -1)
failed=0
check() {
    echo "== schedlab $*"
    "$schedlab" "$@" || failed=1
}
check topo --facts "$out/facts" --kernel "$kernel" --check
check topo --facts "$out/own/facts" --kernel "$kernel" --check
check audit "$out/pipes/trace.txt.gz" --kernel "$kernel" --stories 0
check audit "$out/own/trace.dat" --kernel "$kernel" --stories 0
for count in "$out/pipes/count.txt" "$out/own/count.txt"; do
    grep -qE '^events [1-9][0-9]{2,} lost 0$' "$count" || { echo "groundtruth: $count: $(cat "$count")" >&2; failed=1; }
done
[ $failed = 0 ] && echo "groundtruth: kernel $release on $machine was recorded and followed"
exit $failed
