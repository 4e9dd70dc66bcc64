//! No task runs, or is queued by a wake-up, on a CPU it may not use.

use std::collections::BTreeMap;

use schedlab_topology::{CpuId, CpuMask};
use schedlab_trace::{Event, Kind, Sink};
use schedlab_units::Pid;

use super::Findings;

/// The checker. A task without a reported affinity may run anywhere.
#[derive(Clone, Debug, Default)]
pub struct Affinity {
    allowed: BTreeMap<Pid, CpuMask>,
    /// The findings.
    pub findings: Findings,
}

impl Affinity {
    fn check(&mut self, event: &Event, pid: Pid, cpu: CpuId, does: &str) {
        if let Some(allowed) = self.allowed.get(&pid)
            && !allowed.contains(cpu)
        {
            self.findings
                .add(event.time, event.cpu, || format!("task {pid} {does} CPU {cpu}, it may use {allowed}"));
        }
    }
}

impl Sink for Affinity {
    fn event(&mut self, event: &Event) {
        match &event.kind {
            Kind::Affinity(affinity) => _ = self.allowed.insert(affinity.pid, affinity.allowed.clone()),
            Kind::SchedSwitch { next_pid, .. } => self.check(event, *next_pid, event.cpu, "runs on"),
            Kind::SchedWakeup { pid, target_cpu, .. } | Kind::SchedWakeupNew { pid, target_cpu, .. } => {
                self.check(event, *pid, *target_cpu, "is queued on");
            }
            Kind::SchedProcessFree { pid, .. } => _ = self.allowed.remove(pid),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{event, switch, wakeup};
    use super::*;

    #[test]
    fn a_task_off_its_cpus_is_found() {
        let mut checker = Affinity::default();
        checker.event(&switch(0, 7, 0, "R", 5));
        let allowed = CpuMask::parse_list("1-2", 8).unwrap();
        let told = schedlab_trace::Affinity { pid: Pid(5), allowed };
        checker.event(&event(1, 7, Kind::Affinity(Box::new(told))));
        checker.event(&wakeup(2, 0, 5, 2));
        checker.event(&switch(3, 2, 0, "R", 5));
        assert!(checker.findings.is_empty());
        checker.event(&wakeup(4, 0, 5, 3));
        checker.event(&switch(5, 3, 0, "R", 5));
        let found: Vec<_> = checker.findings.first().iter().map(|f| f.to_string()).collect();
        assert_eq!(
            found,
            [
                "0.000000004 [0] task 5 is queued on CPU 3, it may use 1-2",
                "0.000000005 [3] task 5 runs on CPU 3, it may use 1-2"
            ]
        );
    }
}
