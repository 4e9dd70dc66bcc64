//! The records that the laboratory writes: their formats, and how they are filled in.
//!
//! A format is written to the file in the kernel's own form, with offsets and a print format, so that any tool prints
//! our events as it prints the kernel's. Where the kernel stores an address (of a function or a message) we have a name
//! and store that. Events without a row here, probes and decisions, become records with a single text, under a format
//! made for their name.

use super::format::{FieldFormat, FieldKind};
use crate::event::{Event, Kind};
use crate::fields::Value;

/// C declarations of fields, each with the vocabulary's name for it.
type Fields = &'static [(&'static str, &'static str)];

/// A tracepoint's record.
pub(crate) struct Tracepoint {
    pub system: &'static str,
    pub name: &'static str,
    fields: Fields,
    /// How to print it, with the arguments.
    print: &'static str,
}

/// The first id of events with a table row; the kernel's own ids begin near here, too.
const FIRST_ID: u16 = 300;

/// Number of bytes with which every record begins.
const COMMON: usize = 8;

/// A record of text is cut to this many bytes, so that it fits on a page.
const TEXT_MAX: usize = 4000;

macro_rules! tracepoints {
    ($($system:literal $name:literal: $($declaration:literal as $field:ident),* => $print:literal;)+) => {
        &[$(Tracepoint {
            system: $system,
            name: $name,
            fields: &[$(($declaration, stringify!($field))),*],
            print: $print,
        }),+]
    };
}

/// The rows, grouped by system. An event uses the first row whose fields it has.
pub(crate) const TRACEPOINTS: &[Tracepoint] = tracepoints! {
    "sched" "sched_switch": "char prev_comm[16]" as prev_comm, "pid_t prev_pid" as prev_pid,
        "int prev_prio" as prev_prio, "long prev_state" as prev_state, "char next_comm[16]" as next_comm,
        "pid_t next_pid" as next_pid, "int next_prio" as next_prio
        => r#""prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s%s ==> next_comm=%s next_pid=%d next_prio=%d", REC->prev_comm, REC->prev_pid, REC->prev_prio, (REC->prev_state & 0xff) ? __print_flags(REC->prev_state & 0xff, "|", { 0x01, "S" }, { 0x02, "D" }, { 0x04, "T" }, { 0x08, "t" }, { 0x10, "X" }, { 0x20, "Z" }, { 0x40, "P" }, { 0x80, "I" }) : "R", REC->prev_state & 0x100 ? "+" : "", REC->next_comm, REC->next_pid, REC->next_prio"#;
    "sched" "sched_waking": "char comm[16]" as comm, "pid_t pid" as pid, "int prio" as prio,
        "int target_cpu" as target_cpu
        => r#""comm=%s pid=%d prio=%d target_cpu=%03d", REC->comm, REC->pid, REC->prio, REC->target_cpu"#;
    "sched" "sched_wakeup": "char comm[16]" as comm, "pid_t pid" as pid, "int prio" as prio,
        "int target_cpu" as target_cpu
        => r#""comm=%s pid=%d prio=%d target_cpu=%03d", REC->comm, REC->pid, REC->prio, REC->target_cpu"#;
    "sched" "sched_wakeup_new": "char comm[16]" as comm, "pid_t pid" as pid, "int prio" as prio,
        "int target_cpu" as target_cpu
        => r#""comm=%s pid=%d prio=%d target_cpu=%03d", REC->comm, REC->pid, REC->prio, REC->target_cpu"#;
    "sched" "sched_migrate_task": "char comm[16]" as comm, "pid_t pid" as pid, "int prio" as prio,
        "int orig_cpu" as orig_cpu, "int dest_cpu" as dest_cpu
        => r#""comm=%s pid=%d prio=%d orig_cpu=%d dest_cpu=%d", REC->comm, REC->pid, REC->prio, REC->orig_cpu, REC->dest_cpu"#;
    "sched" "sched_process_fork": "char parent_comm[16]" as comm, "pid_t parent_pid" as pid,
        "char child_comm[16]" as child_comm, "pid_t child_pid" as child_pid
        => r#""comm=%s pid=%d child_comm=%s child_pid=%d", REC->parent_comm, REC->parent_pid, REC->child_comm, REC->child_pid"#;
    "sched" "sched_process_exec": "__data_loc char[] filename" as filename, "pid_t pid" as pid,
        "pid_t old_pid" as old_pid
        => r#""filename=%s pid=%d old_pid=%d", __get_str(filename), REC->pid, REC->old_pid"#;
    "sched" "sched_process_exit": "char comm[16]" as comm, "pid_t pid" as pid, "int prio" as prio,
        "bool group_dead" as group_dead
        => r#""comm=%s pid=%d prio=%d group_dead=%s", REC->comm, REC->pid, REC->prio, REC->group_dead ? "true" : "false""#;
    "sched" "sched_process_exit": "char comm[16]" as comm, "pid_t pid" as pid, "int prio" as prio
        => r#""comm=%s pid=%d prio=%d", REC->comm, REC->pid, REC->prio"#;
    "sched" "sched_process_free": "char comm[16]" as comm, "pid_t pid" as pid, "int prio" as prio
        => r#""comm=%s pid=%d prio=%d", REC->comm, REC->pid, REC->prio"#;
    "sched" "sched_process_wait": "char comm[16]" as comm, "pid_t pid" as pid, "int prio" as prio
        => r#""comm=%s pid=%d prio=%d", REC->comm, REC->pid, REC->prio"#;
    "sched" "sched_stat_runtime": "char comm[16]" as comm, "pid_t pid" as pid, "u64 runtime" as runtime,
        "u64 vruntime" as vruntime
        => r#""comm=%s pid=%d runtime=%Lu [ns] vruntime=%Lu [ns]", REC->comm, REC->pid, (unsigned long long)REC->runtime, (unsigned long long)REC->vruntime"#;
    "sched" "sched_stat_runtime": "char comm[16]" as comm, "pid_t pid" as pid, "u64 runtime" as runtime
        => r#""comm=%s pid=%d runtime=%Lu [ns]", REC->comm, REC->pid, (unsigned long long)REC->runtime"#;
    "sched" "sched_stat_wait": "char comm[16]" as comm, "pid_t pid" as pid, "u64 delay" as delay
        => r#""comm=%s pid=%d delay=%Lu [ns]", REC->comm, REC->pid, (unsigned long long)REC->delay"#;
    "sched" "sched_stat_sleep": "char comm[16]" as comm, "pid_t pid" as pid, "u64 delay" as delay
        => r#""comm=%s pid=%d delay=%Lu [ns]", REC->comm, REC->pid, (unsigned long long)REC->delay"#;
    "sched" "sched_stat_iowait": "char comm[16]" as comm, "pid_t pid" as pid, "u64 delay" as delay
        => r#""comm=%s pid=%d delay=%Lu [ns]", REC->comm, REC->pid, (unsigned long long)REC->delay"#;
    "sched" "sched_stat_blocked": "char comm[16]" as comm, "pid_t pid" as pid, "u64 delay" as delay
        => r#""comm=%s pid=%d delay=%Lu [ns]", REC->comm, REC->pid, (unsigned long long)REC->delay"#;
    "sched" "sched_wake_idle_without_ipi": "int cpu" as cpu => r#""cpu=%d", REC->cpu"#;
    "sched" "sched_pi_setprio": "char comm[16]" as comm, "pid_t pid" as pid, "int oldprio" as oldprio,
        "int newprio" as newprio
        => r#""comm=%s pid=%d oldprio=%d newprio=%d", REC->comm, REC->pid, REC->oldprio, REC->newprio"#;
    "task" "task_newtask": "pid_t pid" as pid, "char comm[16]" as comm, "unsigned long clone_flags" as clone_flags,
        "short oom_score_adj" as oom_score_adj
        => r#""pid=%d comm=%s clone_flags=%lx oom_score_adj=%hd", REC->pid, REC->comm, REC->clone_flags, REC->oom_score_adj"#;
    "task" "task_rename": "pid_t pid" as pid, "char oldcomm[16]" as oldcomm, "char newcomm[16]" as newcomm,
        "short oom_score_adj" as oom_score_adj
        => r#""pid=%d oldcomm=%s newcomm=%s oom_score_adj=%hd", REC->pid, REC->oldcomm, REC->newcomm, REC->oom_score_adj"#;
    "ipi" "ipi_raise": "__data_loc char[] target_mask" as target_mask, "__data_loc char[] reason" as reason
        => r#""target_mask=%s (%s)", __get_str(target_mask), __get_str(reason)"#;
    "ipi" "ipi_send_cpu": "unsigned int cpu" as cpu, "__data_loc char[] callsite" as callsite,
        "__data_loc char[] callback" as callback
        => r#""cpu=%u callsite=%s callback=%s", REC->cpu, __get_str(callsite), __get_str(callback)"#;
    "ipi" "ipi_entry": "__data_loc char[] reason" as reason => r#""(%s)", __get_str(reason)"#;
    "ipi" "ipi_exit": "__data_loc char[] reason" as reason => r#""(%s)", __get_str(reason)"#;
    "irq" "irq_handler_entry": "int irq" as irq, "__data_loc char[] name" as name
        => r#""irq=%d name=%s", REC->irq, __get_str(name)"#;
    "irq" "irq_handler_exit": "int irq" as irq, "int ret" as handled
        => r#""irq=%d ret=%s", REC->irq, REC->ret ? "handled" : "unhandled""#;
    "irq" "softirq_raise": "unsigned int vec" as vec
        => r#""vec=%u [action=%s]", REC->vec, __print_symbolic(REC->vec, { 0, "HI" }, { 1, "TIMER" }, { 2, "NET_TX" }, { 3, "NET_RX" }, { 4, "BLOCK" }, { 5, "IRQ_POLL" }, { 6, "TASKLET" }, { 7, "SCHED" }, { 8, "HRTIMER" }, { 9, "RCU" })"#;
    "irq" "softirq_entry": "unsigned int vec" as vec
        => r#""vec=%u [action=%s]", REC->vec, __print_symbolic(REC->vec, { 0, "HI" }, { 1, "TIMER" }, { 2, "NET_TX" }, { 3, "NET_RX" }, { 4, "BLOCK" }, { 5, "IRQ_POLL" }, { 6, "TASKLET" }, { 7, "SCHED" }, { 8, "HRTIMER" }, { 9, "RCU" })"#;
    "irq" "softirq_exit": "unsigned int vec" as vec
        => r#""vec=%u [action=%s]", REC->vec, __print_symbolic(REC->vec, { 0, "HI" }, { 1, "TIMER" }, { 2, "NET_TX" }, { 3, "NET_RX" }, { 4, "BLOCK" }, { 5, "IRQ_POLL" }, { 6, "TASKLET" }, { 7, "SCHED" }, { 8, "HRTIMER" }, { 9, "RCU" })"#;
    "power" "cpu_idle": "u32 state" as state, "u32 cpu_id" as cpu
        => r#""state=%lu cpu_id=%lu", (unsigned long)REC->state, (unsigned long)REC->cpu_id"#;
    "power" "cpu_frequency": "u32 state" as state, "u32 cpu_id" as cpu
        => r#""state=%lu cpu_id=%lu", (unsigned long)REC->state, (unsigned long)REC->cpu_id"#;
    "workqueue" "workqueue_queue_work": "u64 work" as work, "__data_loc char[] function" as function,
        "__data_loc char[] workqueue" as workqueue, "int req_cpu" as req_cpu, "int cpu" as cpu
        => r#""work struct=%016llx function=%s workqueue=%s req_cpu=%d cpu=%d", REC->work, __get_str(function), __get_str(workqueue), REC->req_cpu, REC->cpu"#;
    "workqueue" "workqueue_activate_work": "u64 work" as work, "__data_loc char[] function" as function
        => r#""work struct %016llx function=%s", REC->work, __get_str(function)"#;
    "workqueue" "workqueue_execute_start": "u64 work" as work, "__data_loc char[] function" as function
        => r#""work struct %016llx: function %s", REC->work, __get_str(function)"#;
    "workqueue" "workqueue_execute_end": "u64 work" as work, "__data_loc char[] function" as function
        => r#""work struct %016llx: function %s", REC->work, __get_str(function)"#;
    "cgroup" "cgroup_mkdir": "int root" as root, "int level" as level, "u64 id" as id, "__data_loc char[] path" as path
        => r#""root=%d id=%llu level=%d path=%s", REC->root, REC->id, REC->level, __get_str(path)"#;
    "cgroup" "cgroup_attach_task": "int dst_root" as dst_root, "int dst_level" as dst_level, "u64 dst_id" as dst_id,
        "__data_loc char[] dst_path" as dst_path, "int pid" as pid, "__data_loc char[] comm" as comm
        => r#""dst_root=%d dst_id=%llu dst_level=%d dst_path=%s pid=%d comm=%s", REC->dst_root, REC->dst_id, REC->dst_level, __get_str(dst_path), REC->pid, __get_str(comm)"#;
    "cpuhp" "cpuhp_enter": "unsigned int cpu" as cpu, "int target" as target, "int idx" as idx, "__data_loc char[] fun" as fun
        => r#""cpu: %04u target: %3d step: %3d (%s)", REC->cpu, REC->target, REC->idx, __get_str(fun)"#;
    "cpuhp" "cpuhp_exit": "unsigned int cpu" as cpu, "int state" as state, "int idx" as idx, "int ret" as ret
        => r#"" cpu: %04u  state: %3d step: %3d ret: %d", REC->cpu, REC->state, REC->idx, REC->ret"#;
};

/// Text that programs write to the trace marker; the only event of ftrace itself.
pub(crate) const PRINT: Tracepoint = Tracepoint {
    system: "ftrace",
    name: "print",
    fields: &[("unsigned long ip", "ip"), ("char buf[]", "buf")],
    print: r#""%ps: %s", (void *)REC->ip, REC->buf"#,
};

/// The id of [`PRINT`] in the kernel.
pub(crate) const PRINT_ID: u16 = 5;

/// The address from which [`PRINT`] claims to be called: the function named in [`KALLSYMS`].
const PRINT_IP: u64 = 0xffff_ffff_8100_0000;

/// The functions that records refer to.
pub(crate) const KALLSYMS: &str = "ffffffff81000000 t tracing_mark_write\n";

/// An event that is kept as text.
const TEXT: Fields = &[("__data_loc char[] text", "text")];

/// The id of a table row.
pub(crate) fn id_of(row: usize) -> u16 {
    FIRST_ID + row as u16
}

/// The id of the `n`th name without a row.
pub(crate) fn id_of_text(n: usize) -> u16 {
    id_of(TRACEPOINTS.len() + n)
}

impl Tracepoint {
    /// The text that describes the record's format.
    pub fn format(&self, id: u16) -> String {
        format(self.name, id, self.fields, self.print)
    }
}

/// The text that describes the format of a name without a row.
pub(crate) fn text_format(name: &str, id: u16) -> String {
    format(name, id, TEXT, r#""%s", __get_str(text)"#)
}

fn format(name: &str, id: u16, fields: Fields, print: &str) -> String {
    let mut text = format!(
        "name: {name}\nID: {id}\nformat:\n\
         \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
         \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
         \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
         \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
    );
    for (declaration, field) in places(fields) {
        let signed = u8::from(matches!(field.kind, FieldKind::Int | FieldKind::Chars));
        let (offset, size) = (field.offset, field.size);
        text += &format!("\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n");
    }
    text + &format!("\nprint fmt: {print}\n")
}

/// Each declaration with the position of its field; the name is the vocabulary's.
fn places(fields: Fields) -> impl Iterator<Item = (&'static str, FieldFormat)> {
    let mut at = COMMON;
    fields.iter().map(move |&(declaration, name)| {
        let (size, kind) = sort(declaration);
        let offset = at.next_multiple_of(match kind {
            FieldKind::Chars => 1,
            _ => size,
        });
        at = offset + size;
        (declaration, FieldFormat { name: name.to_owned(), offset, size, kind })
    })
}

/// Size and kind of a declared field.
fn sort(declaration: &str) -> (usize, FieldKind) {
    let (kind, name) = declaration.rsplit_once(' ').expect("a declaration has a type and a name");
    match kind {
        "char" if name.ends_with("[16]") => (16, FieldKind::Chars),
        "char" => (0, FieldKind::Chars),
        "__data_loc char[]" => (4, FieldKind::Elsewhere { relative: false, chars: true }),
        "pid_t" | "int" => (4, FieldKind::Int),
        "long" => (8, FieldKind::Int),
        "short" => (2, FieldKind::Int),
        "unsigned int" | "u32" => (4, FieldKind::Uint),
        "unsigned long" | "u64" => (8, FieldKind::Uint),
        "bool" => (1, FieldKind::Uint),
        other => unreachable!("no declaration is of type {other}"),
    }
}

/// Fills records.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordWriter {
    record: Vec<u8>,
    /// Texts that follow the fields, and where their positions are stored.
    tails: Vec<(usize, Vec<u8>)>,
    /// Names without a row, in the order of their ids.
    texts: Vec<String>,
}

impl RecordWriter {
    /// The names without a row, in the order of [`id_of_text`].
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    /// The record of an event.
    pub fn record(&mut self, event: &Event) -> &[u8] {
        self.record.clear();
        self.tails.clear();
        let (flags, preempt_count) = event.flags.to_record();
        self.record.extend_from_slice(&[0, 0, flags, preempt_count]);
        self.record.extend_from_slice(&event.pid.0.to_le_bytes());
        let id = self.fields(event);
        self.record[..2].copy_from_slice(&id.to_le_bytes());
        for (place, text) in std::mem::take(&mut self.tails) {
            let told = (text.len() as u32 + 1) << 16 | self.record.len() as u32;
            self.record[place..place + 4].copy_from_slice(&told.to_le_bytes());
            self.record.extend_from_slice(&text);
            self.record.push(0);
        }
        &self.record
    }

    /// Adds the fields and returns the id.
    fn fields(&mut self, event: &Event) -> u16 {
        if let Kind::Mark { .. } | Kind::Print(_) = event.kind {
            self.record.extend_from_slice(&PRINT_IP.to_le_bytes());
            let text = text_of(event);
            self.record.extend_from_slice(&text);
            self.record.extend_from_slice(b"\n\0");
            return PRINT_ID;
        }
        let name = event.kind.name();
        let rows = TRACEPOINTS.iter().enumerate().filter(|(_, row)| row.name == name);
        for (i, row) in rows {
            if self.row(event, row) {
                return id_of(i);
            }
        }
        let n = self.texts.iter().position(|text| text == name).unwrap_or_else(|| {
            self.texts.push(name.to_owned());
            self.texts.len() - 1
        });
        self.record.resize(COMMON + 4, 0);
        self.tails.push((COMMON, text_of(event)));
        id_of_text(n)
    }

    /// Adds the fields of a row; returns false, with nothing added, if the event lacks one.
    fn row(&mut self, event: &Event, row: &Tracepoint) -> bool {
        let mut found = 0;
        event.kind.fields(|name, value| {
            let Some((_, field)) = places(row.fields).find(|(_, field)| field.name == name) else { return };
            found += 1;
            self.record.resize(self.record.len().max(field.offset + field.size), 0);
            let place = &mut self.record[field.offset..field.offset + field.size];
            match (&value, field.kind) {
                (Value::Text(text), FieldKind::Chars) => place[..text.len()].copy_from_slice(text),
                (Value::Text(text), _) => {
                    let text = text[..text.len().min(TEXT_MAX / 4)].to_vec();
                    self.tails.push((field.offset, text));
                }
                (value, _) => {
                    let number = match value {
                        Value::State(state) => state.bits() as i64,
                        value => value.int().unwrap_or(0),
                    };
                    place.copy_from_slice(&number.to_le_bytes()[..place.len()]);
                }
            }
        });
        if found < row.fields.len() {
            self.record.truncate(COMMON);
            self.tails.clear();
        }
        found == row.fields.len()
    }
}

/// The text of an event, cut if it does not fit: a list at an item.
fn text_of(event: &Event) -> Vec<u8> {
    let mut text = Vec::new();
    crate::args::print(event, &mut text);
    if text.len() > TEXT_MAX {
        text.truncate(TEXT_MAX);
        let end = text.iter().rposition(|&byte| byte == b',').unwrap_or(TEXT_MAX);
        text.truncate(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binary::Endian;
    use crate::binary::format::Format;

    #[test]
    fn formats_tell_where_the_fields_are() {
        for (i, row) in TRACEPOINTS.iter().enumerate() {
            let format = Format::parse(&row.format(id_of(i))).expect(row.name);
            let own: Vec<_> = format.fields.iter().filter(|f| !f.name.starts_with("common_")).collect();
            assert_eq!(own.len(), row.fields.len(), "{}", row.name);
            for (read, (_, meant)) in own.iter().zip(places(row.fields)) {
                assert_eq!((read.offset, read.size, read.kind), (meant.offset, meant.size, meant.kind));
            }
        }
        let switch = Format::parse(&TRACEPOINTS[0].format(id_of(0))).unwrap();
        let state = switch.field("prev_state").unwrap();
        assert_eq!((state.offset, state.size), (32, 8), "as in the kernel");
        assert_eq!(switch.states().state(0x102).to_string(), "D+");
        assert_eq!(Endian::Little.int(&[1, 0]), 1);
    }

    #[test]
    fn every_event_of_the_kernel_has_a_row() {
        let rows = |name: &str| TRACEPOINTS.iter().any(|row| row.name == name);
        for name in crate::args::tracepoints() {
            assert!(rows(name), "{name}");
        }
        assert!(TRACEPOINTS.iter().all(|row| Kind::is_known(row.name)));
    }
}
