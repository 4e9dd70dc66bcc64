//! The field numbers of Perfetto's protobuf that reader and writer share.
//!
//! Source: the schema published with the `perfetto` package; a test parses what
//! is written here with it.

/// Fields of TracePacket.
pub(crate) mod packet {
    pub const FTRACE_EVENTS: u32 = 1;
    pub const PROCESS_TREE: u32 = 2;
    pub const CLOCK_SNAPSHOT: u32 = 6;
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE_ID: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const COMPRESSED_PACKETS: u32 = 50;
    pub const TRACK_DESCRIPTOR: u32 = 60;
    pub const ZSTD_COMPRESSED_PACKETS: u32 = 133;
}

/// Fields of FtraceEventBundle.
pub(crate) mod bundle {
    pub const CPU: u32 = 1;
    pub const EVENT: u32 = 2;
    pub const LOST_EVENTS: u32 = 3;
    pub const COMPACT_SCHED: u32 = 4;
}

/// Fields of FtraceEvent, and of its two payloads that do not contain tracepoint fields.
pub(crate) mod event {
    pub const TIMESTAMP: u32 = 1;
    pub const PID: u32 = 2;
    pub const PRINT: u32 = 3;
    pub const COMMON_FLAGS: u32 = 5;
    pub const GENERIC: u32 = 327;
    pub const PRINT_BUF: u32 = 2;
    pub const GENERIC_NAME: u32 = 1;
    pub const GENERIC_FIELD: u32 = 2;
}

/// Numbers of the most frequent payloads in FtraceEvent, as in [`PAYLOADS`].
pub(crate) mod number {
    pub const SWITCH: u32 = 4;
    pub const CPU_IDLE: u32 = 13;
    pub const WAKEUP: u32 = 17;
    pub const WAKING: u32 = 20;
    pub const SOFTIRQ_ENTRY: u32 = 24;
    pub const SOFTIRQ_EXIT: u32 = 25;
    pub const SOFTIRQ_RAISE: u32 = 26;
    pub const IRQ_EXIT: u32 = 37;
}

/// A tracepoint's payload: its number in FtraceEvent, and the numbers of its fields.
pub(crate) struct Payload {
    pub name: &'static str,
    pub number: u32,
    pub fields: &'static [(&'static str, u32)],
}

macro_rules! payloads {
    ($($name:literal $number:literal: $($field:ident $at:literal)*;)+) => {
        &[$(Payload { name: $name, number: $number, fields: &[$((stringify!($field), $at)),*] }),+]
    };
}

/// Payloads that contain everything the vocabulary has of the event, except `group_dead` of an exiting task.
pub(crate) const PAYLOADS: &[Payload] = payloads! {
    "sched_switch" 4: prev_comm 1 prev_pid 2 prev_prio 3 prev_state 4 next_comm 5 next_pid 6 next_prio 7;
    "sched_wakeup" 17: comm 1 pid 2 prio 3 target_cpu 5;
    "sched_waking" 20: comm 1 pid 2 prio 3 target_cpu 5;
    "sched_wakeup_new" 114: comm 1 pid 2 prio 3 target_cpu 5;
    "sched_migrate_task" 491: comm 1 pid 2 prio 3 orig_cpu 4 dest_cpu 5;
    "sched_process_fork" 239: comm 1 pid 2 child_comm 3 child_pid 4;
    "sched_process_exec" 237: filename 1 pid 2 old_pid 3;
    "sched_process_exit" 238: comm 1 pid 2 prio 4;
    "sched_process_free" 240: comm 1 pid 2 prio 3;
    "sched_process_wait" 242: comm 1 pid 2 prio 3;
    "sched_pi_setprio" 353: comm 1 newprio 2 oldprio 3 pid 4;
    "task_newtask" 235: pid 1 comm 2 clone_flags 3 oom_score_adj 4;
    "task_rename" 236: pid 1 oldcomm 2 newcomm 3 oom_score_adj 4;
    "ipi_entry" 21: reason 1;
    "ipi_exit" 22: reason 1;
    "irq_handler_entry" 36: irq 1 name 2;
    "irq_handler_exit" 37: irq 1 handled 2;
    "softirq_entry" 24: vec 1;
    "softirq_exit" 25: vec 1;
    "softirq_raise" 26: vec 1;
    "cpu_frequency" 11: state 1 cpu 2;
    "cpu_idle" 13: state 1 cpu 2;
    "cpuhp_exit" 343: cpu 1 idx 2 ret 3 state 4;
};

/// Payloads that contain addresses where the vocabulary has names, or only part of the fields. They are read; such an
/// event is written as the generic payload, which keeps everything.
pub(crate) const LOSSY_PAYLOADS: &[Payload] = payloads! {
    "ipi_raise" 23: target_mask 1 reason 2;
    "workqueue_activate_work" 56: work 1 function 2;
    "workqueue_execute_end" 57: work 1 function 2;
    "workqueue_execute_start" 58: work 1 function 2;
    "workqueue_queue_work" 59: work 1 function 2 req_cpu 4 cpu 5 workqueue 6;
    "cpuhp_enter" 345: cpu 1 fun 2 idx 3 target 4;
    "cgroup_mkdir" 68: root 1 id 2 level 4 path 5;
    "cgroup_attach_task" 67: dst_root 1 dst_id 2 pid 3 comm 4 dst_level 6 dst_path 7;
};

/// Numbers of payloads are below this.
const NUMBERS_MAX: usize = 512;

/// Each payload at its number.
static NUMBERED: [Option<&Payload>; NUMBERS_MAX] = {
    let mut all = [None; NUMBERS_MAX];
    let tables = [PAYLOADS, LOSSY_PAYLOADS];
    let mut table = 0;
    while table < tables.len() {
        let mut row = 0;
        while row < tables[table].len() {
            let payload = &tables[table][row];
            all[payload.number as usize] = Some(payload);
            row += 1;
        }
        table += 1;
    }
    all
};

impl Payload {
    /// The payload with this number, if there is one.
    #[inline]
    pub fn numbered(number: u32) -> Option<&'static Payload> {
        *NUMBERED.get(number as usize)?
    }
}
