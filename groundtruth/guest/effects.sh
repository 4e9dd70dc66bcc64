# Some features turned over and some numbers changed, in rounds, so that what each changes stands out from what differs from
# one run to the next. `cargo xtask effects --recorded` measures what comes out.
cpus=$(grep -c ^processor /proc/cpuinfo)
half=$((cpus / 2))
# The kernel tests its ciphers for a while after it has booted.
sleep 5
facts /out/facts

# three SETTING: the loads under it
three() {
    rec "$1/sleepers-$round" wl_sleepers 2 $half 80 20000 500
    rec "$1/pipes-$round" wl_pipes 2 5 500
    rec "$1/hogs-$round" wl_hogs $((cpus + half)) 200 0 0 5 -5
    gzip -9n "/out/$1"/*-"$round"/trace.txt
}

for round in 1 2 3 4 5; do
    three plain
    for feature in $(cat $debug/features); do
        case $feature in
            TTWU_QUEUE | WAKEUP_PREEMPTION | SIS_UTIL | WA_IDLE | WA_WEIGHT | NI_RANDOM | UTIL_EST) ;;
            *HRTICK | *NEXT_BUDDY | RUN_TO_PARITY | DELAY_DEQUEUE | PLACE_LAG | GENTLE_FAIR_SLEEPERS | START_DEBIT) ;;
            *) continue ;;
        esac
        turned "$feature" three
    done
    changed base_slice_ns 700000 three
    changed base_slice_ns 12000000 three
    changed migration_cost_ns 0 three
    changed migration_cost_ns 5000000 three
    changed preempt full three
    changed preempt lazy three
    changed wakeup_granularity_ns 500000 three
    changed min_granularity_ns 750000 three
done
