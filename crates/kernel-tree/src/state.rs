//! The state of a kernel, field by field, for comparison.

use crate::raw::WORDS;

macro_rules! states {
    ($($(#[$doc:meta])* $name:ident { $($field:ident),* $(,)? })*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "fields have the kernel's names")]
        pub struct $name { $(pub $field: u64),* }

        impl $name {
            #[inline]
            pub(crate) fn of(words: [u64; WORDS]) -> $name {
                let [$($field,)* ..] = words;
                $name { $($field),* }
            }
        }
    )* };
}

/// The CPU of a timer by its place: what is above 32 bits, in which are the timers of that CPU that expire before it. `None` if
/// the timer was never set.
pub fn timer_cpu(place: u64) -> Option<u16> {
    u16::try_from(place >> 32).ok()
}

states! {
    /// A task and its entity. Times are ns; a field that a kernel does not have is 0. Places of timers
    /// are those of [`timer_cpu`]. `util_est` is `util_est.enqueued` up to 6.7.
    TaskState {
        cpu, on_rq, sched_delayed, on_cpu, vruntime, deadline, slice, sum_exec_runtime, vlag, load_avg, util_avg,
        runnable_avg, last_update_time, recent_used_cpu, wakee_flips, wake_cpu, se_on_rq, prio, util_est,
        dl_runtime, dl_deadline, dl_throttled, load_sum, util_sum, weight,
        dl_timer_place, inactive_timer_place, vprot, preferred_llc, pref_llc_queued,
        util_est_ewma,
    }
    /// A CPU, its run queue and the state that its LLC shares. `vruntime` is the queue's `zero_vruntime` or
    /// `min_vruntime`. `llc_counts` has a byte for each of eight LLCs. What begins with `server` is of the fair server: if it is active,
    /// `server_state` is the sum of 1, `dl_throttled`, 2 `dl_defer_armed`, 4 `dl_defer_running` and 8 `dl_defer_idle`; `server_timer` is
    /// when the first of its timers expires, 0 if none is set. `random` is the state of the scheduler's generator.
    CpuState {
        nr_running, clock, clock_task, clock_pelt, avg_idle, idle_stamp, next_balance, load_avg, util_avg, runnable_avg,
        cpu_capacity, max_idle_balance_cost, weight, vruntime, h_load, last_h_load_update, nr_idle_scan, has_idle_cores,
        overloaded, rt_util_avg, dl_util_avg, balance_idle_scan, avg_age, hrtick, irq_util_avg, load_sum,
        util_sum, removed, removed_load, misfit_task_load, h_nr_queued, vruntime_sum, next,
        nr_pref_llc_running, llc_counts, cpu_epoch, cpu_epoch_next, cpu_runtime,
        util_est, server_state, server_runtime, server_deadline, server_timer, random,
        hrtick_place, server_place, on_list,
    }
    /// A domain of a CPU. `groups` counts them; what follows is of the local group.
    DomainState {
        flags, last_balance, balance_interval, nr_balance_failed, max_newidle_lb_cost, imbalance_pct, imb_numa_nr, groups,
        imbalance, capacity, min_capacity, max_capacity, next_update,
    }
    /// A group's entity and queue on one CPU, and the group's sum. `queue_min_slice` is the shortest slice that the top of the queue's tree
    /// stores (from 6.12 on), 0 if the queue is empty.
    GroupState {
        on_rq, weight, vruntime, load_avg, util_avg, queue_weight, queue_load_avg, queue_util_avg, tg_load_avg, deadline,
        vlag, sched_delayed, rel_deadline, slice, throttled, runtime_remaining,
        period_at, on_list, h_load, load_sum, util_sum, queue_load_sum, queue_util_sum, load_avg_contrib, propagate,
        prop_runnable_sum, removed, removed_load, throttle_count, h_nr_queued, pool,
        period_timer_place, slack_timer_place, last_update_tg_load_avg, list_at, zero_vruntime, vruntime_sum, next,
        queue_last_update_time, queue_min_slice, tg_runnable_avg, runnable_avg_contrib,
    }
    /// From 7.2 on: what a process knows about the caches where it runs, and how long it ran on one CPU. `cpu` is one
    /// more than the CPU that it prefers, 0 without one.
    ProcessState { cpu, epoch, next_scan, nr_running_avg, nr_threads, runtime }
}
