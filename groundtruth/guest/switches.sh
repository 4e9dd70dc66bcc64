# Every feature of the scheduler that concerns fair tasks turned over, and numbers of it changed, one at a time, under four short loads. What was in
# force lies beside each recording.
cpus=$(grep -c ^processor /proc/cpuinfo)
half=$((cpus / 2))
# The kernel tests its ciphers for a while after it has booted.
sleep 5
facts /out/facts

# four SETTING: the loads under it
four() {
    for load in pipes sleepers fork hogs; do facts_in_force "/out/$1-$load/facts"; done
    rec "$1-pipes" wl_pipes 2 5 150
    rec "$1-sleepers" wl_sleepers 2 $half 80 20000 500
    rec "$1-fork" wl_fork $((2 * cpus)) 5 20000
    rec "$1-hogs" wl_hogs $((cpus + half)) 200 0 0 5 -5
}

four plain
for feature in $(cat $debug/features); do
    # Those that warn, those of other classes, and one that doubles ticks.
    case $feature in *WARN* | RT_* | NO_RT_* | *DOUBLE_TICK | *HRTICK_DL) continue ;; esac
    turned "$feature" four
done
changed base_slice_ns 700000 four
changed base_slice_ns 10000000 four
changed migration_cost_ns 0 four
changed migration_cost_ns 5000000 four
changed nr_migrate 2 four
changed preempt none four
changed preempt voluntary four
changed preempt full four
changed preempt lazy four
changed latency_ns 6000000 four
changed min_granularity_ns 750000 four
changed wakeup_granularity_ns 0 four
changed wakeup_granularity_ns 10000000 four
changed llc_balancing/enabled 0 four
changed tunable_scaling 0 four
changed tunable_scaling 2 four
