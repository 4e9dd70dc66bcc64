//! The text after an event's name, both ways: `prev_comm=make prev_pid=7 ...`.
//!
//! Each tracepoint's format is written here once, as alternating literal text and fields. The printer, the parser and
//! the walk over fields that other formats use are generated from it. Other spellings of the same event, from other
//! kernels or from trace-cmd's pretty printers, are in a second table that is only read.
//!
//! Kernel: the TP_printk() of each tracepoint, include/trace/events/.

mod decision;
mod style;

use crate::event::{Event, Kind};
use crate::fields::{Field, Value};
use crate::unknown::Unknown;
use style::{Cursor, Style, *};

/// Generates printer, parser and the walk over the fields in both directions from a table of rows:
/// `"event_name" Variant: "text" field Style "text" field Style "text";`
macro_rules! formats {
    ($($name:literal $variant:ident: $first:literal $($field:ident $style:ident $after:literal)*;)+) => {
        /// Prints the fields of the tracepoints in the table; false for other kinds.
        fn print_fields(kind: &Kind, out: &mut Vec<u8>) -> bool {
            match kind {
                $(Kind::$variant { $($field),* } => {
                    out.extend_from_slice($first.as_bytes());
                    $($style::print($field, out); out.extend_from_slice($after.as_bytes());)*
                    true
                })+
                _ => false,
            }
        }

        /// Parses the text after the name and its colon. `None` if a known event's fields have no known form; the outer
        /// `None` means that the event is not known.
        pub(crate) fn parse_known(name: &[u8], args: &[u8]) -> Option<Option<Kind>> {
            $(if name == $name.as_bytes() {
                #[inline(always)]
                fn row(args: &[u8]) -> Option<Kind> {
                    let mut cursor = Cursor(args);
                    cursor.literal($first)?;
                    $(let $field = $style::parse(&mut cursor, $after)?;)*
                    Some(Kind::$variant { $($field),* })
                }
                return Some(row(args).or_else(|| parse_dialect(name, args)));
            })+
            parse_own(name, args)
        }

        /// Passes the fields of the tracepoints in the table to `give`; false for other kinds.
        fn visit_fields(kind: &Kind, give: &mut dyn FnMut(&'static str, Value<'_>)) -> bool {
            match kind {
                $(Kind::$variant { $($field),* } => {
                    $(if let Some(value) = $field.value() {
                        give(stringify!($field), value);
                    })*
                    true
                })+
                _ => false,
            }
        }

        /// The names in the table.
        const NAMES: &[&str] = &[$($name),+];

        /// The tracepoint with that name; the outer `None` means that it is not in the table.
        fn build_fields<'a>(
            name: &str,
            get: &mut dyn FnMut(&str) -> Option<Value<'a>>,
        ) -> Option<Option<Kind>> {
            $(if name == $name {
                let mut make = || Some(Kind::$variant {
                    $($field: Field::from_value(get(stringify!($field)))?),*
                });
                return Some(make());
            })+
            None
        }
    };
}

/// Generates a parser from a table of the same form, in which a name may occur more than once.
macro_rules! dialects {
    ($($name:literal $variant:ident: $first:literal $($field:ident $style:ident $after:literal)*;)+) => {
        #[cold]
        fn parse_dialect(name: &[u8], args: &[u8]) -> Option<Kind> {
            $(if name == $name.as_bytes() {
                fn row(args: &[u8]) -> Option<Kind> {
                    let mut cursor = Cursor(args);
                    cursor.literal($first)?;
                    $(let $field = $style::parse(&mut cursor, $after)?;)*
                    Some(Kind::$variant { $($field),* })
                }
                if let Some(kind) = row(args) {
                    return Some(kind);
                }
            })+
            None
        }
    };
}

formats! {
    "sched_switch" SchedSwitch: "prev_comm=" prev_comm Task " prev_pid=" prev_pid Number
        " prev_prio=" prev_prio Number " prev_state=" prev_state State
        " ==> next_comm=" next_comm Task " next_pid=" next_pid Number " next_prio=" next_prio Number "";
    "sched_waking" SchedWaking: "comm=" comm Task " pid=" pid Number " prio=" prio Number
        " target_cpu=" target_cpu Cpu3 "";
    "sched_wakeup" SchedWakeup: "comm=" comm Task " pid=" pid Number " prio=" prio Number
        " target_cpu=" target_cpu Cpu3 "";
    "sched_wakeup_new" SchedWakeupNew: "comm=" comm Task " pid=" pid Number " prio=" prio Number
        " target_cpu=" target_cpu Cpu3 "";
    "sched_stat_runtime" SchedStatRuntime: "comm=" comm Task " pid=" pid Number
        " runtime=" runtime Nanoseconds "" vruntime Vruntime "";
    "sched_migrate_task" SchedMigrateTask: "comm=" comm Task " pid=" pid Number " prio=" prio Number
        " orig_cpu=" orig_cpu Number " dest_cpu=" dest_cpu Number "";
    "sched_process_fork" SchedProcessFork: "comm=" comm Task " pid=" pid Number
        " child_comm=" child_comm Task " child_pid=" child_pid Number "";
    "sched_process_exec" SchedProcessExec: "filename=" filename Path " pid=" pid Number
        " old_pid=" old_pid Number "";
    "sched_process_exit" SchedProcessExit: "comm=" comm Task " pid=" pid Number " prio=" prio Number
        "" group_dead GroupDead "";
    "sched_process_free" SchedProcessFree: "comm=" comm Task " pid=" pid Number " prio=" prio Number "";
    "sched_process_wait" SchedProcessWait: "comm=" comm Task " pid=" pid Number " prio=" prio Number "";
    "sched_stat_wait" SchedStatWait: "comm=" comm Task " pid=" pid Number " delay=" delay Nanoseconds "";
    "sched_stat_sleep" SchedStatSleep: "comm=" comm Task " pid=" pid Number " delay=" delay Nanoseconds "";
    "sched_stat_iowait" SchedStatIowait: "comm=" comm Task " pid=" pid Number " delay=" delay Nanoseconds "";
    "sched_stat_blocked" SchedStatBlocked: "comm=" comm Task " pid=" pid Number
        " delay=" delay Nanoseconds "";
    "sched_wake_idle_without_ipi" SchedWakeIdleWithoutIpi: "cpu=" cpu Number "";
    "sched_pi_setprio" SchedPiSetprio: "comm=" comm Task " pid=" pid Number
        " oldprio=" oldprio Number " newprio=" newprio Number "";
    "task_newtask" TaskNewtask: "pid=" pid Number " comm=" comm Task " clone_flags=" clone_flags Hex
        " oom_score_adj=" oom_score_adj Number "";
    "task_rename" TaskRename: "pid=" pid Number " oldcomm=" oldcomm Task " newcomm=" newcomm Task
        " oom_score_adj=" oom_score_adj Number "";
    "ipi_raise" IpiRaise: "target_mask=" target_mask Word " (" reason Word ")";
    "ipi_send_cpu" IpiSendCpu: "cpu=" cpu Number " callsite=" callsite Word " callback=" callback Word "";
    "ipi_entry" IpiEntry: "(" reason Word ")";
    "ipi_exit" IpiExit: "(" reason Word ")";
    "irq_handler_entry" IrqHandlerEntry: "irq=" irq Number " name=" name Word "";
    "irq_handler_exit" IrqHandlerExit: "irq=" irq Number " ret=" handled Handled "";
    "softirq_raise" SoftirqRaise: "vec=" vec Action "";
    "softirq_entry" SoftirqEntry: "vec=" vec Action "";
    "softirq_exit" SoftirqExit: "vec=" vec Action "";
    "cpu_idle" CpuIdle: "state=" state Number " cpu_id=" cpu Number "";
    "cpu_frequency" CpuFrequency: "state=" state Number " cpu_id=" cpu Number "";
    "workqueue_queue_work" WorkqueueQueueWork: "work struct=" work Pointer " function=" function Word
        " workqueue=" workqueue Word " req_cpu=" req_cpu Number " cpu=" cpu Number "";
    "workqueue_activate_work" WorkqueueActivateWork: "work struct " work Pointer "" function Function "";
    "workqueue_execute_start" WorkqueueExecuteStart: "work struct " work Pointer
        ": function " function Word "";
    "workqueue_execute_end" WorkqueueExecuteEnd: "work struct " work Pointer ": function " function Word "";
    "cgroup_mkdir" CgroupMkdir: "root=" root Number " id=" id Number " level=" level Number " path=" path Word "";
    "cgroup_attach_task" CgroupAttachTask: "dst_root=" dst_root Number " dst_id=" dst_id Number
        " dst_level=" dst_level Number " dst_path=" dst_path Word " pid=" pid Number " comm=" comm Task "";
    "cpuhp_enter" CpuhpEnter: "cpu: " cpu Cpu4 " target: " target Padded " step: " idx Padded " (" fun Word ")";
    "cpuhp_exit" CpuhpExit: " cpu: " cpu Cpu4 "  state: " state Padded " step: " idx Padded " ret: " ret Number "";
}

dialects! {
    // trace-cmd's and perf's pretty printers, with and without `success`.
    "sched_switch" SchedSwitch: "" prev_comm TaskColon ":" prev_pid Number " [" prev_prio Number
        "] " prev_state PrettyState " ==> " next_comm TaskColon ":" next_pid Number " [" next_prio Number "]";
    "sched_waking" SchedWaking: "" comm TaskColon ":" pid Number " [" prio Number "]" target_cpu CpuColon "";
    "sched_wakeup" SchedWakeup: "" comm TaskColon ":" pid Number " [" prio Number "]" target_cpu CpuColon "";
    "sched_wakeup_new" SchedWakeupNew: "" comm TaskColon ":" pid Number " [" prio Number
        "]" target_cpu CpuColon "";
    // The bare fields, as trace-cmd report -R prints them.
    "sched_switch" SchedSwitch: "prev_comm=" prev_comm Task " prev_pid=" prev_pid Number
        " prev_prio=" prev_prio Number " prev_state=" prev_state RawState
        " next_comm=" next_comm Task " next_pid=" next_pid Number " next_prio=" next_prio Number "";
    "sched_process_fork" SchedProcessFork: "parent_comm=" comm Task " parent_pid=" pid Number
        " child_comm=" child_comm Task " child_pid=" child_pid Number "";
    "softirq_raise" SoftirqRaise: "vec=" vec BareAction "";
    "softirq_entry" SoftirqEntry: "vec=" vec BareAction "";
    "softirq_exit" SoftirqExit: "vec=" vec BareAction "";
    // Kernels before 4.3 report whether the wake-up succeeded.
    "sched_waking" SchedWaking: "comm=" comm Task " pid=" pid Number " prio=" prio Number
        " success=1 target_cpu=" target_cpu Cpu3 "";
    "sched_wakeup" SchedWakeup: "comm=" comm Task " pid=" pid Number " prio=" prio Number
        " success=1 target_cpu=" target_cpu Cpu3 "";
    "sched_wakeup_new" SchedWakeupNew: "comm=" comm Task " pid=" pid Number " prio=" prio Number
        " success=1 target_cpu=" target_cpu Cpu3 "";
    // For text whose leading blanks were lost.
    "cpuhp_exit" CpuhpExit: "cpu: " cpu Cpu4 "  state: " state Padded " step: " idx Padded " ret: " ret Number "";
    // Kernels before 5.6 do not name the work that ends.
    "workqueue_execute_end" WorkqueueExecuteEnd: "work struct " work Pointer "" function Function "";
}

/// Prints the text after the name and its colon.
pub(crate) fn print(event: &Event, out: &mut Vec<u8>) {
    if print_fields(&event.kind, out) || decision::print(&event.kind, out) {
        return;
    }
    match &event.kind {
        Kind::Mark { label, value } => {
            decision::print_mark(event.tgid.unwrap_or(event.pid), *label, *value, out)
        }
        Kind::Print(text) => one_line(text, out),
        Kind::State(state) => {
            let mut gap = false;
            state.fields(&mut |name, value| {
                if std::mem::replace(&mut gap, true) {
                    out.push(b' ');
                }
                out.extend_from_slice(format!("{name}={value}").as_bytes());
            });
        }
        Kind::Unknown(unknown) => one_line(unknown.text(), out),
        kind => unreachable!("{} has no format", kind.name()),
    }
}

/// Parses the fields of an event of our own vocabulary.
fn parse_own(name: &[u8], args: &[u8]) -> Option<Option<Kind>> {
    if name == b"tracing_mark_write" {
        return Some(Some(decision::parse_mark(&String::from_utf8_lossy(args))));
    }
    decision::parse(name, args)
}

/// Parses the text after the name and its colon, for an event of any name.
pub(crate) fn parse(name: &[u8], args: &[u8]) -> Option<Kind> {
    parse_known(name, args).unwrap_or_else(|| Some(Kind::Unknown(unknown(name, args))))
}

/// An unknown event, which is kept as it is.
pub(crate) fn unknown(name: &[u8], args: &[u8]) -> Unknown {
    Unknown::new(&String::from_utf8_lossy(name), &String::from_utf8_lossy(args))
}

/// Passes the fields of an event that has a table row to `give`.
pub(crate) fn visit(kind: &Kind, give: &mut dyn FnMut(&'static str, Value<'_>)) {
    let found = visit_fields(kind, give) || decision::visit(kind, give);
    assert!(found, "{} has no fields", kind.name());
}

/// Whether there is a table row with that name.
pub(crate) fn is_known(name: &str) -> bool {
    NAMES.contains(&name) || decision::NAMES.contains(&name)
}

/// The names of the kernel's tracepoints in the vocabulary.
#[cfg(test)]
pub(crate) fn tracepoints() -> &'static [&'static str] {
    NAMES
}

/// The event of a table row; the outer `None` means that there is no such row.
pub(crate) fn build<'a>(name: &str, get: &mut dyn FnMut(&str) -> Option<Value<'a>>) -> Option<Option<Kind>> {
    build_fields(name, get).or_else(|| decision::build(name, get))
}

/// Text without anything that ends a line.
fn one_line(text: &str, out: &mut Vec<u8>) {
    let text = text.trim_end_matches(['\n', '\r']);
    out.extend(text.bytes().map(|b| if matches!(b, b'\n' | b'\r') { b' ' } else { b }));
}

pub(crate) use decision::{parse as parse_annotation, parse_mark};
pub(crate) use style::decimal;
