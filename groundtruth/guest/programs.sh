# Programs that do one thing each that those of all.sh do not: how tasks wake each other, what others
# change of them, and policies, quotas and CPUs that come and go.
cpus=$(grep -c ^processor /proc/cpuinfo)
# The kernel tests its ciphers for a while after it has booted.
sleep 5
facts /out/facts
rec pool wl_pool $((cpus * 2)) 480 60000 24
rec server wl_server $((cpus * 2)) 60 40000
rec signals wl_signals $((cpus + 1)) 60 40000

# Sixteen files on as many jobs as there are CPUs, each for a token as make takes them: a shell, a compiler, an assembler.
make_jobs() {
    mkfifo /tmp/tokens
    exec 3<>/tmp/tokens
    for i in $(seq "$cpus"); do echo >&3; done
    for i in $(seq 16); do
        read -r _ <&3
        (
            wl_job $((400000 + i * 100000)) 2
            wl_job 200000 0
            echo >&3
        ) &
    done
    wait
    exec 3>&-
}
rec make make_jobs

rec yield wl_yield $((cpus + 2)) $cpus 200 30000
rec nice wl_nice $((cpus + 2)) $((cpus + 1)) 250 7000
rec affinity wl_affinity $((cpus + 1)) $((cpus + 2)) 250 7000
rec rt wl_rt $((cpus + 1)) $((cpus + 2)) 200 3000 100000
rec deadline wl_deadline 2 $((cpus + 1)) 250 2000 10000

# Policies do not show in events, so the tasks are there before the recording begins, and are looked at then.
wl_policies $((cpus + 2)) "$cpus" 2500 &
usleep 100000
mkdir -p /out/policies/facts
tasks_dump tasks >/out/policies/facts/tasks.txt
rec_groups policies usleep 200000
wait

# A pool that may use a CPU and a half and hogs that may use half of one, beside a hog without a limit.
echo +cpu >$cgroup/cgroup.subtree_control
for group in pool:30000 hogs:10000; do
    mkdir "$cgroup/${group%:*}"
    echo "${group#*:} 20000" >"$cgroup/${group%:*}/cpu.max"
done
quota() {
    (within pool wl_pool "$cpus" 144 60000 24) &
    (within hogs wl_hogs 3 300) &
    wl_hogs 1 300 &
    wait
}
EVENTS="$EVENTS task/task_newtask cgroup/cgroup_attach_task"
rec_groups quota quota
rec quota-hidden quota

# The last CPU goes while all are at work, and comes back.
hotplug() {
    wl_hogs "$cpus" 200 &
    wl_sleepers 1 $((cpus + 1)) 200 20000 500 &
    usleep 60000
    echo 0 >/sys/devices/system/cpu/cpu$((cpus - 1))/online
    usleep 60000
    echo 1 >/sys/devices/system/cpu/cpu$((cpus - 1))/online
    wait
}
rec hotplug hotplug
