# Tasks in two control groups, one with three times the weight of the other: hogs, then hogs and
# sleepers together, then a process that is moved from one to the other.
EVENTS="$EVENTS task/task_newtask cgroup/cgroup_attach_task"
echo +cpu >$cgroup/cgroup.subtree_control
for group in light:100 heavy:300; do
    mkdir "$cgroup/${group%:*}"
    echo "${group#*:}" >"$cgroup/${group%:*}/cpu.weight"
done
# The kernel tests its ciphers for a while after it has booted.
sleep 5
cpus=$(grep -c ^processor /proc/cpuinfo)

# Both groups have more hogs than there are CPUs, so every CPU shares out its time between them.
hogs() {
    (within light wl_hogs $((cpus + 2)) 600) &
    (within heavy wl_hogs $((cpus + 2)) 600) &
    wait
}
mixed() {
    (within light wl_hogs "$cpus" 400) &
    (within heavy wl_sleepers 1 "$cpus" 300 20000 500) &
    wait
}
moves() {
    (within light wl_pipes 1 2 300) &
    (within light wl_hogs "$cpus" 300) &
    usleep 100000
    for pid in $(cat $cgroup/light/cgroup.procs); do
        echo "$pid" >$cgroup/heavy/cgroup.procs
        usleep 10000
    done
    wait
}
facts /out/facts
for load in hogs mixed moves; do rec_groups "$load" "$load"; done
