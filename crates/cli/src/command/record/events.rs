//! The events that are recorded, and the commands that read them.

/// Tracepoints as SYSTEM/NAME; those a kernel does not have are left out.
///
/// The audit follows switches, wake-ups, migrations, forks and exits; the detectors also take the time that
/// interrupts steal, and names as they change; the tables of perf sched take run times from the scheduler's own
/// accounting. The placement of new tasks depends on how deep idle CPUs sleep.
pub const EVENTS: &[&str] = &[
    "sched/sched_switch",
    "sched/sched_waking",
    "sched/sched_wakeup",
    "sched/sched_wakeup_new",
    "sched/sched_migrate_task",
    "sched/sched_process_fork",
    "sched/sched_process_exec",
    "sched/sched_process_exit",
    "sched/sched_process_free",
    "sched/sched_process_wait",
    "sched/sched_stat_runtime",
    "sched/sched_pi_setprio",
    "task/task_newtask",
    "task/task_rename",
    "cgroup/cgroup_attach_task",
    "irq/irq_handler_entry",
    "irq/irq_handler_exit",
    "irq/softirq_entry",
    "irq/softirq_exit",
    "ipi/ipi_entry",
    "ipi/ipi_exit",
    "power/cpu_idle",
];

/// Without this event there is nothing to analyse.
pub const INDISPENSABLE: &str = "sched/sched_switch";
