#!/bin/sh
# How fast sweeps are: 10,000 points of about 10 ms and their peak memory, then the same points on one thread and on
# two, in turn, three times each. Needs a machine with two cores and nothing else to do.
set -eu
cd "$(dirname "$0")/.."
if [ $# -gt 0 ]; then
    schedlab=$1
else
    cargo build --quiet --release --locked
    schedlab=$(tools/target.sh)/release/schedlab
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/small.toml" <<'END'
machine = "1x1x8x1"
kernels = ["v6.1", "v6.12"]
[workload]
model = "hackbench"
groups = 2
loops = 40
END
python3 - "$schedlab" "$work" <<'END'
import os, resource, subprocess, sys, time
schedlab, work = sys.argv[1:]

def used():
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime

def sweep(name, seeds, threads):
    begun, before = time.monotonic(), used()
    args = ["--vary", "workload.groups=1,2", "--no-cache", "--output", f"{work}/{name}"]
    subprocess.run([schedlab, "sweep", "run", f"{work}/small.toml", *args, "--seeds", str(seeds), "--threads", str(threads)],
                   check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begun, used() - before

took, processor = sweep("many", 2500, 0)
mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
print(f"10,000 points in {took:.0f} s on {os.cpu_count()} cores, {processor / 10:.1f} ms each; at most {mib:.0f} MiB")
ratios, more = [], []
for nth in range(5):
    (one, alone), (two, both) = sweep(f"one{nth}", 100, 1), sweep(f"two{nth}", 100, 2)
    ratios.append(one / two)
    more.append(both / alone)
print("two threads against one:", ", ".join(f"{ratio:.2f}" for ratio in ratios), "times as fast; the median must be 1.8")
print("and they took", ", ".join(f"{ratio:.2f}" for ratio in more), "times as much processor time")
sys.exit(mib > 128 or sorted(ratios)[2] < 1.8)
END
