//! The most frequent payloads, whose fields are taken by their numbers without a look-up of names.

use schedlab_topology::CpuId;
use schedlab_units::Pid;

use super::decode::Found;
use crate::comm::Comm;
use crate::event::{Kind, Softirq};
use crate::perfetto::number;
use crate::proto::Wire;
use crate::state::TaskState;

/// The event of a payload. `None` for other payloads, and for fields of another type or out of range: the general
/// decoder reads those.
#[inline]
pub(super) fn quick(payload: u32, found: &Found<'_>) -> Option<Kind> {
    let fields = Fields(found);
    Some(match payload {
        number::SWITCH => Kind::SchedSwitch {
            prev_comm: fields.comm(1)?,
            prev_pid: Pid(fields.int(2)?),
            prev_prio: fields.int(3)?,
            prev_state: TaskState::from_bits(fields.uint(4)?),
            next_comm: fields.comm(5)?,
            next_pid: Pid(fields.int(6)?),
            next_prio: fields.int(7)?,
        },
        number::WAKING => {
            let (comm, pid, prio, target_cpu) = fields.wake()?;
            Kind::SchedWaking { comm, pid, prio, target_cpu }
        }
        number::WAKEUP => {
            let (comm, pid, prio, target_cpu) = fields.wake()?;
            Kind::SchedWakeup { comm, pid, prio, target_cpu }
        }
        number::IRQ_EXIT => Kind::IrqHandlerExit { irq: fields.int(1)?, handled: fields.uint(2)? != 0 },
        number::SOFTIRQ_RAISE => Kind::SoftirqRaise { vec: fields.softirq()? },
        number::SOFTIRQ_ENTRY => Kind::SoftirqEntry { vec: fields.softirq()? },
        number::SOFTIRQ_EXIT => Kind::SoftirqExit { vec: fields.softirq()? },
        number::CPU_IDLE => Kind::CpuIdle { state: fields.uint(1)?.try_into().ok()?, cpu: fields.cpu(2)? },
        _ => return None,
    })
}

struct Fields<'a>(&'a Found<'a>);

impl Fields<'_> {
    #[inline]
    fn comm(&self, at: usize) -> Option<Comm> {
        match self.0[at] {
            Wire::Bytes(name) => Some(Comm::of_text(name)),
            _ => None,
        }
    }

    #[inline]
    fn uint(&self, at: usize) -> Option<u64> {
        match self.0[at] {
            Wire::Varint(value) => Some(value),
            _ => None,
        }
    }

    #[inline]
    fn int(&self, at: usize) -> Option<i32> {
        (self.uint(at)? as i64).try_into().ok()
    }

    #[inline]
    fn cpu(&self, at: usize) -> Option<CpuId> {
        self.uint(at)?.try_into().ok().map(CpuId)
    }

    #[inline]
    fn softirq(&self) -> Option<Softirq> {
        self.uint(1)?.try_into().ok().map(Softirq)
    }

    #[inline]
    fn wake(&self) -> Option<(Comm, Pid, i32, CpuId)> {
        Some((self.comm(1)?, Pid(self.int(2)?), self.int(3)?, self.cpu(5)?))
    }
}

#[cfg(test)]
mod tests {
    use super::super::decode::by_name;
    use super::*;
    use crate::perfetto::PAYLOADS;

    #[test]
    fn a_payload_reads_the_same_by_number_and_by_name() {
        let mut seed = 1u64;
        let mut draw = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        let names =
            [&b""[..], b"make", b"swapper/1", b"a\0b", b"fifteen bytes..", b"sixteen bytes...", b"17"];
        let numbers =
            [0, 1, 255, 256, 65_535, 65_536, u64::from(u32::MAX), u64::MAX, u64::MAX - 200, 1 << 40];
        let (mut quickly, mut left) = (0, 0);
        for _ in 0..20_000 {
            let payload = &PAYLOADS[draw(PAYLOADS.len() as u64) as usize];
            let mut found: Found<'_> = Found::default();
            for &(name, number) in payload.fields {
                let text = name.ends_with("comm") != (draw(50) == 0);
                found[number as usize] = match draw(40) {
                    0 => Wire::Fixed64(draw(7)),
                    1 => Wire::Fixed32(draw(7) as u32),
                    2 => Wire::Varint(0),
                    _ if text => Wire::Bytes(names[draw(names.len() as u64) as usize]),
                    _ if draw(3) > 0 => Wire::Varint(draw(140)),
                    _ => Wire::Varint(numbers[draw(numbers.len() as u64) as usize]),
                };
            }
            match quick(payload.number, &found) {
                Some(kind) => {
                    assert_eq!(Some(kind), by_name(payload, &found), "{}", payload.name);
                    quickly += 1;
                }
                None => left += 1,
            }
        }
        assert!(quickly > 2_000 && left > 2_000, "{quickly} {left}");
    }

    #[test]
    fn the_numbers_are_those_of_the_table() {
        for (number, name) in [
            (number::SWITCH, "sched_switch"),
            (number::WAKING, "sched_waking"),
            (number::WAKEUP, "sched_wakeup"),
            (number::IRQ_EXIT, "irq_handler_exit"),
            (number::SOFTIRQ_RAISE, "softirq_raise"),
            (number::SOFTIRQ_ENTRY, "softirq_entry"),
            (number::SOFTIRQ_EXIT, "softirq_exit"),
            (number::CPU_IDLE, "cpu_idle"),
        ] {
            let row = PAYLOADS.iter().find(|payload| payload.number == number);
            assert_eq!(row.map(|payload| payload.name), Some(name));
        }
    }
}
