//! What a recording lacks that a replay needs.

/// What is missing, and how to record it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// No task is seen to run.
    #[error(
        "there is no sched_switch in it, so nothing shows how long tasks ran; record it again with {RECORD}"
    )]
    Switches,
    /// No task is seen to be woken.
    #[error(
        "there is neither sched_waking nor sched_wakeup in it, so nothing tells who wakes whom; record it \
         again with {RECORD}"
    )]
    Wakeups,
}

/// The command that records what is needed.
const RECORD: &str = "`trace-cmd record -e sched_switch -e sched_waking -e sched_wakeup -e sched_wakeup_new \
                      -e sched_migrate_task -e sched_process_fork -e sched_process_exec -e sched_process_exit`";
