# Functions for jobs, sourced by the guest's init: facts of the machine, and traces as text.
tracing=/sys/kernel/tracing
debug=/sys/kernel/debug/sched
cgroup=/sys/fs/cgroup
EVENTS="sched/sched_switch sched/sched_waking sched/sched_wakeup sched/sched_wakeup_new sched/sched_migrate_task sched/sched_process_fork sched/sched_process_exit sched/sched_process_exec"

# content FILE...: a line for each, its path and what is in it
content() { for file; do [ -f "$file" ] && echo "$file $(cat "$file" 2>/dev/null)"; done; }

# facts_in_force FOLDER: the features and numbers of now
facts_in_force() {
    mkdir -p "$1"
    cat $debug/features >"$1/sched_features.txt"
    content $(find $debug -maxdepth 2 -type f ! -name debug ! -name features | grep -v -e /domains/ -e fair_server -e ext_server | sort) >"$1/debug_sched.txt"
}

# facts FOLDER
facts() {
    mkdir -p "$1"
    uname -a >"$1/uname.txt"
    cat /proc/cmdline >"$1/cmdline.txt"
    topology_dump >"$1/topology.txt"
    facts_in_force "$1"
    (cd $debug/domains && content cpu*/domain*/*) >"$1/domains.txt"
    content /proc/sys/kernel/sched_* /proc/sys/kernel/numa_balancing* /proc/sys/kernel/timer_migration >"$1/sysctl.txt"
    cat /proc/schedstat >"$1/schedstat.txt"
    cat /sys/devices/system/clocksource/clocksource0/current_clocksource $tracing/trace_clock >"$1/clocksource.txt"
}

# turned FEATURE JOB: runs JOB with the name of the feature turned over, and turns it back
turned() {
    case $1 in NO_*) other=${1#NO_} ;; *) other=NO_$1 ;; esac
    echo "$other" >$debug/features 2>/dev/null || return 0
    "$2" "$other"
    echo "$1" >$debug/features
}

# changed NUMBER VALUE JOB: runs JOB with `NUMBER=VALUE`, and changes it back; a kernel without that number is passed over
changed() {
    [ -f "$debug/$1" ] || return 0
    # Of a choice the one in brackets.
    was=$(sed -n 's/.*(\(.*\)).*/\1/p;t;p' "$debug/$1")
    echo "$2" >"$debug/$1" 2>/dev/null || return 0
    "$3" "$(echo "$1" | tr / .)=$2"
    echo "$was" >"$debug/$1"
}

# rec NAME COMMAND...: runs the command under the recorder; $EV are the events, if not the usual ones
rec() {
    name=$1
    shift
    to=/out/$name
    mkdir -p "$to"
    echo "$*" >"$to/cmd.txt"
    cat /proc/schedstat >"$to/schedstat-before.txt"
    echo 0 >$tracing/tracing_on
    echo 8192 >$tracing/buffer_size_kb
    echo mono >$tracing/trace_clock
    echo 0 >$tracing/events/enable
    for event in ${EV:-$EVENTS}; do echo 1 >"$tracing/events/$event/enable"; done
    echo >$tracing/trace
    echo 1 >$tracing/tracing_on
    "$@" >"$to/stdout.txt" 2>&1
    status=$?
    echo 0 >$tracing/tracing_on
    echo 0 >$tracing/events/enable
    cat /proc/schedstat >"$to/schedstat-after.txt"
    cat $tracing/trace >"$to/trace.txt"
    events=$(grep -vc '^#' "$to/trace.txt")
    lost=$(grep -h overrun $tracing/per_cpu/cpu*/stats | awk '{ sum += $NF } END { print sum + 0 }')
    echo "events $events lost $lost" >"$to/count.txt"
    echo "LAB $name: status $status, events $events, lost $lost"
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

# rec_groups NAME COMMAND...: the same as rec, with what is to be known of groups beside it
rec_groups() {
    own=/out/$1/facts
    mkdir -p "$own"
    tasks_dump groups >"$own/groups-before.txt"
    limits "$own/cgroups.txt"
    rec "$@"
    tasks_dump groups >"$own/groups-after.txt"
    limits "$own/cgroups-after.txt"
}
