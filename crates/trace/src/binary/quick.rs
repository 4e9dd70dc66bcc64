//! The most frequent records of a file, read at fixed offsets.
//!
//! A switch, a wake-up or an interrupt consists of names of 16 bytes and numbers of 4 or 8 bytes. Where a file's format confirms
//! that, the fields are read at their offsets, without a lookup by name. Any other layout is read field by field.

use schedlab_topology::CpuId;
use schedlab_units::Pid;

use super::Endian;
use super::format::{FieldKind, Format, States};
use crate::comm::{COMM_LEN, Comm};
use crate::event::{Kind, Softirq};

/// The offsets of an event's fields.
#[derive(Clone, Debug)]
pub(super) struct Quick {
    sort: Sort,
    /// In the order of the vocabulary.
    at: [usize; 7],
    /// Size of a task's state, bytes.
    state_size: usize,
    /// Minimum length of a record, bytes.
    len: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Switch,
    Waking,
    Wakeup,
    WakeupNew,
    Migrate,
    /// Up to v6.7 with the virtual time.
    Runtime {
        vruntime: bool,
    },
    WithoutIpi,
    IrqExit,
    SoftirqRaise,
    SoftirqEntry,
    SoftirqExit,
    CpuIdle,
}

impl Quick {
    /// `None` for other events and other layouts.
    pub fn of(format: &Format, endian: Endian) -> Option<Quick> {
        let wake = ["comm", "pid", "prio", "target_cpu"];
        let runtime = ["comm", "pid", "runtime", "vruntime"];
        let vruntime = format.field("vruntime").is_some();
        let (sort, fields): (Sort, &[&str]) = match format.name.as_str() {
            "sched_switch" => (
                Sort::Switch,
                &["prev_comm", "prev_pid", "prev_prio", "prev_state", "next_comm", "next_pid", "next_prio"],
            ),
            "sched_waking" => (Sort::Waking, &wake),
            "sched_wakeup" => (Sort::Wakeup, &wake),
            "sched_wakeup_new" => (Sort::WakeupNew, &wake),
            "sched_migrate_task" => (Sort::Migrate, &["comm", "pid", "prio", "orig_cpu", "dest_cpu"]),
            "sched_stat_runtime" => (Sort::Runtime { vruntime }, &runtime[..3 + usize::from(vruntime)]),
            "sched_wake_idle_without_ipi" => (Sort::WithoutIpi, &["cpu"]),
            "irq_handler_exit" => (Sort::IrqExit, &["irq", "ret"]),
            "softirq_raise" => (Sort::SoftirqRaise, &["vec"]),
            "softirq_entry" => (Sort::SoftirqEntry, &["vec"]),
            "softirq_exit" => (Sort::SoftirqExit, &["vec"]),
            "cpu_idle" => (Sort::CpuIdle, &["state", "cpu_id"]),
            _ => return None,
        };
        let mut quick = Quick { sort, at: [0; 7], state_size: 0, len: 0 };
        for (at, &name) in quick.at.iter_mut().zip(fields) {
            let field = format.field(name)?;
            let fits = match (name, field.kind) {
                ("comm" | "prev_comm" | "next_comm", FieldKind::Chars) => field.size == COMM_LEN,
                ("prev_state", FieldKind::Int) => {
                    quick.state_size = field.size;
                    matches!(field.size, 4 | 8)
                }
                ("runtime" | "vruntime", FieldKind::Uint) => field.size == 8,
                ("vec" | "state" | "cpu_id", FieldKind::Uint) => field.size == 4,
                (_, FieldKind::Int) => field.size == 4,
                _ => false,
            };
            if !fits || endian != Endian::Little {
                return None;
            }
            *at = field.offset;
            quick.len = quick.len.max(field.offset.checked_add(field.size)?);
        }
        Some(quick)
    }

    /// The event of a record; `None` if it is too short or a number is out of range. The slower reader then explains
    /// why.
    #[inline]
    pub fn read(&self, record: &[u8], states: &States) -> Option<Kind> {
        if record.len() < self.len {
            return None;
        }
        let fields = Fields { record, at: &self.at };
        Some(match self.sort {
            Sort::Switch => Kind::SchedSwitch {
                prev_comm: fields.comm(0)?,
                prev_pid: Pid(fields.int(1)?),
                prev_prio: fields.int(2)?,
                prev_state: states.state(match self.state_size {
                    8 => fields.long(3)?,
                    _ => i64::from(fields.int(3)?) as u64,
                }),
                next_comm: fields.comm(4)?,
                next_pid: Pid(fields.int(5)?),
                next_prio: fields.int(6)?,
            },
            Sort::Waking => {
                let (comm, pid, prio, target_cpu) = fields.wake()?;
                Kind::SchedWaking { comm, pid, prio, target_cpu }
            }
            Sort::Wakeup => {
                let (comm, pid, prio, target_cpu) = fields.wake()?;
                Kind::SchedWakeup { comm, pid, prio, target_cpu }
            }
            Sort::WakeupNew => {
                let (comm, pid, prio, target_cpu) = fields.wake()?;
                Kind::SchedWakeupNew { comm, pid, prio, target_cpu }
            }
            Sort::Migrate => {
                let (comm, pid, prio, orig_cpu) = fields.wake()?;
                Kind::SchedMigrateTask { comm, pid, prio, orig_cpu, dest_cpu: fields.cpu(4)? }
            }
            Sort::Runtime { vruntime } => Kind::SchedStatRuntime {
                comm: fields.comm(0)?,
                pid: Pid(fields.int(1)?),
                runtime: fields.long(2)?,
                vruntime: if vruntime { Some(fields.long(3)?) } else { None },
            },
            Sort::WithoutIpi => Kind::SchedWakeIdleWithoutIpi { cpu: fields.cpu(0)? },
            Sort::IrqExit => Kind::IrqHandlerExit { irq: fields.int(0)?, handled: fields.int(1)? != 0 },
            Sort::SoftirqRaise => Kind::SoftirqRaise { vec: fields.softirq()? },
            Sort::SoftirqEntry => Kind::SoftirqEntry { vec: fields.softirq()? },
            Sort::SoftirqExit => Kind::SoftirqExit { vec: fields.softirq()? },
            Sort::CpuIdle => Kind::CpuIdle { state: fields.int(0)? as u32, cpu: fields.cpu(1)? },
        })
    }
}

/// The fields of one record.
struct Fields<'a> {
    record: &'a [u8],
    at: &'a [usize; 7],
}

impl Fields<'_> {
    #[inline]
    fn bytes<const N: usize>(&self, field: usize) -> Option<&[u8; N]> {
        self.record.get(self.at[field]..)?.first_chunk()
    }

    #[inline]
    fn comm(&self, field: usize) -> Option<Comm> {
        self.bytes(field).map(Comm::of_record)
    }

    #[inline]
    fn int(&self, field: usize) -> Option<i32> {
        self.bytes(field).map(|&bytes| i32::from_le_bytes(bytes))
    }

    #[inline]
    fn long(&self, field: usize) -> Option<u64> {
        self.bytes(field).map(|&bytes| u64::from_le_bytes(bytes))
    }

    #[inline]
    fn cpu(&self, field: usize) -> Option<CpuId> {
        self.int(field)?.try_into().ok().map(CpuId)
    }

    #[inline]
    fn softirq(&self) -> Option<Softirq> {
        self.int(0)?.try_into().ok().map(Softirq)
    }

    #[inline]
    fn wake(&self) -> Option<(Comm, Pid, i32, CpuId)> {
        Some((self.comm(0)?, Pid(self.int(1)?), self.int(2)?, self.cpu(3)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binary::record::Formats;

    /// A format, and a record whose n-th byte of an own field is drawn from `seed`.
    fn check(name: &str, fields: &[(&str, usize, usize, u8)], len: usize) {
        let mut text = format!("name: {name}\nID: 9\nformat:\n");
        for (declaration, offset, size, signed) in fields {
            text += &format!("\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n");
        }
        let format = Format::parse(&text).unwrap();
        let quick = Quick::of(&format, Endian::Little).unwrap_or_else(|| panic!("{name} is as usual"));
        assert!(Quick::of(&format, Endian::Big).is_none());
        let mut formats = Formats::new(Endian::Little);
        assert!(formats.add(&text));
        let mut seed = 1u32;
        for round in 0..400 {
            let mut record = vec![9, 0, 0, 0, 7, 0, 0, 0];
            record.resize_with(len, || {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                // Zeros are common in names and numbers.
                if seed >> 16 & 3 == 0 { 0 } else { (seed >> 24) as u8 }
            });
            if round % 4 == 0 {
                record.truncate(len - 1);
            }
            let slow = formats.decode_field_by_field(&record);
            let fast = quick.read(&record, &format.states());
            let slow = slow.as_ref().ok().map(|decoded| &decoded.kind);
            // A record that is cut short is left to the slower reader.
            assert!(fast.as_ref() == slow || (fast.is_none() && record.len() < len), "{name} {record:?}");
        }
    }

    #[test]
    fn a_record_reads_the_same_at_once_and_field_by_field() {
        let wake = [
            ("char comm[16]", 8, 16, 0),
            ("pid_t pid", 24, 4, 1),
            ("int prio", 28, 4, 1),
            ("int target_cpu", 32, 4, 1),
        ];
        for name in ["sched_waking", "sched_wakeup", "sched_wakeup_new"] {
            check(name, &wake, 36);
        }
        let [comm, pid, prio, _] = wake;
        check(
            "sched_migrate_task",
            &[comm, pid, prio, ("int orig_cpu", 32, 4, 1), ("int dest_cpu", 36, 4, 1)],
            40,
        );
        check("sched_stat_runtime", &[comm, pid, ("u64 runtime", 32, 8, 0)], 40);
        check("sched_stat_runtime", &[comm, pid, ("u64 runtime", 32, 8, 0), ("u64 vruntime", 40, 8, 0)], 48);
        check("sched_wake_idle_without_ipi", &[("int cpu", 8, 4, 1)], 12);
        check("irq_handler_exit", &[("int irq", 8, 4, 1), ("int ret", 12, 4, 1)], 16);
        for name in ["softirq_raise", "softirq_entry", "softirq_exit"] {
            check(name, &[("unsigned int vec", 8, 4, 0)], 12);
        }
        check("cpu_idle", &[("u32 state", 8, 4, 0), ("u32 cpu_id", 12, 4, 0)], 16);
        for state in [8, 4] {
            check(
                "sched_switch",
                &[
                    ("char prev_comm[16]", 8, 16, 0),
                    ("pid_t prev_pid", 24, 4, 1),
                    ("int prev_prio", 28, 4, 1),
                    ("long prev_state", 32, state, 1),
                    ("char next_comm[16]", 40, 16, 0),
                    ("pid_t next_pid", 56, 4, 1),
                    ("int next_prio", 60, 4, 1),
                ],
                64,
            );
        }
    }

    #[test]
    fn another_layout_is_left_to_others() {
        let text =
            "name: sched_waking\nID: 9\nformat:\n\tfield:char comm[32];\toffset:8;\tsize:32;\tsigned:0;\n";
        assert!(Quick::of(&Format::parse(text).unwrap(), Endian::Little).is_none());
    }
}
