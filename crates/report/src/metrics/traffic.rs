//! Activity besides switches: interrupts, passes of the balancer, where tasks were created, marks.

use std::collections::BTreeMap;

use schedlab_topology::CpuId;
use schedlab_trace::{Event, Kind, Label, Sink, Softirq};

/// Counts by kind and place. Each count needs only its own events.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    /// Interrupts sent to other CPUs, if the trace has `ipi_raise` or `ipi_send_cpu`.
    pub ipis: u64,
    /// Interrupts of devices.
    pub interrupts: u64,
    /// Soft interrupts in which load is balanced.
    pub passes: u64,
    /// Idle CPUs that were woken without an interrupt.
    pub polled: u64,
    /// New tasks by the CPU they were placed on.
    pub forks: BTreeMap<CpuId, u64>,
    /// Marks of each label: their number, and the sum of their values.
    pub marks: BTreeMap<Label, (u64, i64)>,
}

impl Sink for Traffic {
    fn event(&mut self, event: &Event) {
        match event.kind {
            Kind::IpiRaise { .. } | Kind::IpiSendCpu { .. } => self.ipis += 1,
            Kind::IrqHandlerEntry { .. } => self.interrupts += 1,
            Kind::SoftirqEntry { vec } if vec == Softirq::SCHED => self.passes += 1,
            Kind::SchedWakeIdleWithoutIpi { .. } => self.polled += 1,
            Kind::SchedWakeupNew { target_cpu, .. } => *self.forks.entry(target_cpu).or_default() += 1,
            Kind::Mark { label, value } => {
                let (count, sum) = self.marks.entry(label).or_default();
                *count += 1;
                *sum += value;
            }
            _ => {}
        }
    }
}
