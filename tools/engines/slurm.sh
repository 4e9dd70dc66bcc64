#!/bin/sh
# A sweep as an array of a real Slurm on this host, one task of which is killed with -9 and requeued.
# slurm.sh SCHEDLAB FOLDER; status 77 if Slurm is not available.
set -eu
schedlab=$1
folder=$2
skip() {
    echo "engines: slurm: $1; skipped"
    exit 77
}
[ "$(id -u)" = 0 ] || skip "needs root to start its daemons"
if ! command -v slurmctld >/dev/null || ! command -v munged >/dev/null; then
    command -v apt-get >/dev/null || skip "slurm-wlm is not installed"
    { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends slurm-wlm munge; } \
        >/dev/null 2>&1 || skip "slurm-wlm and munge could not be installed"
fi

mkdir -p "$folder/state" "$folder/spool" "$folder/run"
chmod 755 "$(dirname "$folder")" "$folder"
host=$(hostname -s)
[ -s /etc/munge/munge.key ] || { dd if=/dev/urandom of=/etc/munge/munge.key bs=1024 count=1 2>/dev/null; chown munge /etc/munge/munge.key; chmod 400 /etc/munge/munge.key; }
mkdir -p /run/munge && chown munge /run/munge
pids=""
if ! munge -n >/dev/null 2>&1; then
    runuser -u munge -- munged --foreground >"$folder/munged.log" 2>&1 &
    pids="$pids $!"
    sleep 1
fi
export SLURM_CONF="$folder/slurm.conf"
cat >"$SLURM_CONF" <<END
ClusterName=schedlab
SlurmctldHost=$host
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/run/slurmctld.pid
SlurmdPidFile=$folder/run/slurmd.pid
SlurmctldPort=16817
SlurmdPort=16818
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SchedulerParameters=sched_interval=1
JobRequeue=1
NodeName=$host CPUs=2 State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
END
slurmctld -D >"$folder/slurmctld.log" 2>&1 &
pids="$pids $!"
slurmd -D >"$folder/slurmd.log" 2>&1 &
pids="$pids $!"
# The daemons still write while they terminate, and the caller removes their folder.
trap 'for pid in $pids; do kill "$pid" 2>/dev/null || true; done; for pid in $pids; do wait "$pid" || true; done' EXIT
for _ in $(seq 60); do
    sinfo -h -o %T 2>/dev/null | grep -q idle && break
    sleep 0.5
done
sinfo -h -o %T 2>/dev/null | grep -q idle || { tail -5 "$folder"/slurm*.log; skip "its node did not come up"; }

cat >"$folder/small.toml" <<'END'
machine = "1x1x4x1"
kernels = ["v6.1", "v6.1+NO_SIS_UTIL"]
runs = 8
[workload]
model = "hackbench"
groups = 2
loops = 300
END
plan="--vary workload.groups=1,2,3,4 --vary workload.loops=200,300 --chunk 4"
# shellcheck disable=SC2086
"$schedlab" sweep run "$folder/small.toml" $plan --output "$folder/alone" --no-cache >/dev/null
# Of the shared sweep only the plan is made here: the last of a million shares has no chunk.
# shellcheck disable=SC2086
"$schedlab" sweep run "$folder/small.toml" $plan --output "$folder/shared" --no-cache --shard 999999/1000000 >/dev/null
"$schedlab" sweep submit "$folder/shared" --for slurm --shards 4 --output "$folder/job.sh"
job=$(sbatch --parsable "$folder/job.sh")

killed=""
for _ in $(seq 600); do
    if [ -z "$killed" ] && [ -n "$(ls "$folder/shared/chunks" 2>/dev/null)" ]; then
        victim=$(pgrep -f "sweep run $folder/shared --shard" | head -1 || true)
        if [ -n "$victim" ]; then
            kill -9 "$victim" && killed=$victim
        fi
    fi
    [ -z "$(squeue -h -j "$job" 2>/dev/null)" ] && break
    sleep 0.1
done
[ -n "$killed" ] || { echo "engines: slurm: no task was killed, so nothing was tested"; exit 1; }
# Slurm does not requeue a task that failed by itself; the file says to submit it again.
again=$(sbatch --parsable "$folder/job.sh")
while [ -n "$(squeue -h -j "$again" 2>/dev/null)" ]; do sleep 0.2; done
diff -r "$folder/alone/chunks" "$folder/shared/chunks" || { echo "engines: slurm: other bytes than without it"; exit 1; }
points=$("$schedlab" sweep status "$folder/shared")
echo "engines: slurm: task with process $killed killed, submitted again: $points; the same bytes"
