# Tasks in two control groups, one with three times the weight of the other: hogs, then hogs and
# sleepers together, then a process that is moved from one to the other.
EVENTS="$EVENTS task/task_newtask cgroup/cgroup_attach_task"
cgroup=/sys/fs/cgroup
echo +cpu >$cgroup/cgroup.subtree_control
for group in light:100 heavy:300; do
    mkdir "$cgroup/${group%:*}"
    echo "${group#*:}" >"$cgroup/${group%:*}/cpu.weight"
done
# The kernel tests its ciphers for a while after it has booted.
sleep 5
cpus=$(grep -c ^processor /proc/cpuinfo)

# memberships FILE: in which groups tasks are, as `schedlab record` writes it
memberships() {
    {
        echo "hierarchy 0"
        echo "# tid pid cgroup autogroup nice comm"
        for task in /proc/[0-9]*/task/[0-9]*; do
            pid=${task%/task/*}
            session=$(sed -n 's#^/autogroup-\([0-9]*\) nice \(.*\)#\1 \2#p' "$pid/autogroup" 2>/dev/null)
            group=$(sed -n 's/^0:://p' "$task/cgroup" 2>/dev/null)
            [ -n "$group" ] && echo "${task##*/} ${pid##*/} $group ${session:-- 0} $(cat "$task/comm")"
        done
    } >"$1"
}

# limits FILE: what control groups are given
limits() {
    (cd $cgroup && content $(find . -name cpu.weight -o -name cpu.max -o -name cpu.idle | sort)) | sed 's/^\.//' >"$1"
}

# within GROUP COMMAND...
within() {
    echo 0 >"$cgroup/$1/cgroup.procs"
    shift
    exec "$@"
}

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
for load in hogs mixed moves; do
    mkdir -p "/out/$load/facts"
    memberships "/out/$load/facts/groups-before.txt"
    limits "/out/$load/facts/cgroups.txt"
    rec "$load" "$load"
    memberships "/out/$load/facts/groups-after.txt"
    limits "/out/$load/facts/cgroups-after.txt"
done
