#!/bin/bash
# boot.sh KERNELROOT INITRAMFS JOB OUT MACHINE [SECONDS]: boots a kernel under software emulation, runs JOB (a script
# of guest/) in it, and unpacks what the guest left into OUT.
#
# MACHINE is SOCKETSxLLCSxCORES[xTHREADS], one NUMA node per socket at distance 21, with CPUs numbered in that
# order; `-cluster` behind it makes two clusters of each LLC, with an L2 each. The clock of the guest counts
# instructions, so what else the host does cannot be seen in a recording.
# Environment: QEMU (if not set, what qemu.sh finds: 6.1 does not boot under one before 10), QEMU_ARGS (more arguments),
# MEM (MiB of a node), SEED (of the random numbers that the guest gets: another one is another boot).
set -euo pipefail
QEMU=${QEMU:-$("$(dirname "$0")/qemu.sh")}
kernel=$1 initramfs=$2 job=$3 out=$4 machine=$5 seconds=${6:-600}
IFS=x read -r sockets llcs cores threads <<<"${machine%%-*}"
threads=${threads:-1}
cpus=$((sockets * llcs * cores * threads))

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/job"
cp "$job" "$work/job/job.sh"
(cd "$work/job" && find . | cpio -o -H newc --quiet | gzip -1) | cat "$initramfs" - >"$work/initramfs"
# The guest leaves a tar on the first disk; the second one is read by a workload.
truncate -s 256M "$work/out.img"
truncate -s 4M "$work/data.img"
image=$(ls "$kernel"/boot/vmlinu[xz]-* "$kernel"/usr/lib/modules/*/vmlinuz 2>/dev/null | head -1 || true)

# An LLC is told to the guest as a socket: the domains are the same, and QEMU can do it for every machine.
args=(-cpu Skylake-Server-noTSX-IBRS,pcid=off,level=0xd -accel tcg,thread=single -icount shift=0,sleep=off)
case $machine in
    *-cluster)
        cache=smp-cache.0.cache=l2,smp-cache.0.topology=module,smp-cache.1.cache=l3,smp-cache.1.topology=socket
        args+=(-machine "q35,$cache" -smp "$cpus,sockets=$((sockets * llcs)),modules=2,cores=$((cores / 2)),threads=$threads") ;;
    *) args+=(-machine q35 -smp "$cpus,sockets=$((sockets * llcs)),cores=$cores,threads=$threads") ;;
esac
memory=${MEM:-$((sockets > 1 ? 768 : 1024))}
args+=(-m $((memory * sockets)))
if [ "$sockets" -gt 1 ]; then
    per_node=$((cpus / sockets))
    for ((node = 0; node < sockets; node++)); do
        args+=(-object "memory-backend-ram,id=m$node,size=${memory}M"
            -numa "node,nodeid=$node,cpus=$((node * per_node))-$((node * per_node + per_node - 1)),memdev=m$node")
    done
    for ((a = 0; a < sockets; a++)); do
        for ((b = a + 1; b < sockets; b++)); do args+=(-numa "dist,src=$a,dst=$b,val=21"); done
    done
fi
args+=(-kernel "$image" -initrd "$work/initramfs"
    -append "console=ttyS0 quiet loglevel=4 nokaslr mitigations=off tsc=reliable sched_verbose schedstats=enable random.trust_cpu=on no_timer_check panic=1"
    -rtc base=2026-01-01T00:00:00,clock=vm -seed "${SEED:-1}" -display none -nodefaults -no-reboot -net none -serial stdio -monitor none
    -drive "file=$work/out.img,format=raw,if=none,id=o,cache=unsafe" -device virtio-blk-pci,drive=o,serial=labout
    -drive "file=$work/data.img,format=raw,if=none,id=d,cache=unsafe" -device virtio-blk-pci,drive=d,serial=labdata)

mkdir -p "$out"
# File names without their folders: they say nothing about the machine.
echo "qemu-system-x86_64 ${args[*]} ${QEMU_ARGS:-}" | sed -E 's#(-kernel |-initrd |file=)[^ ,]*/#\1#g' >"$out/qemu.cmd"
# shellcheck disable=SC2086
timeout -s KILL "$seconds" "$QEMU" "${args[@]}" ${QEMU_ARGS:-} </dev/null >"$work/console" 2>"$work/errors" || true
tr -d '\r' <"$work/console" >"$out/console.txt"
if ! tar -C "$out" -xf "$work/out.img" 2>/dev/null || ! grep -q '^LAB off' "$out/console.txt"; then
    echo "groundtruth: the guest did not come to its end in $seconds s; its last words, and the emulator's:" >&2
    tail -qn 5 "$out/console.txt" "$work/errors" >&2
    exit 1
fi
find "$out" -name trace.txt -exec gzip -9nf {} +
grep '^LAB' "$out/console.txt"
