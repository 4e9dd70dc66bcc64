//! No task runs on two CPUs at once, and each switch leaves the task that the last one switched to.

use std::collections::BTreeMap;

use schedlab_topology::CpuId;
use schedlab_trace::{Event, Kind, Sink};
use schedlab_units::Pid;

use super::Findings;

/// The checker.
#[derive(Clone, Debug, Default)]
pub struct OneCpu {
    runs_on: BTreeMap<Pid, CpuId>,
    runs: BTreeMap<CpuId, Pid>,
    /// The findings.
    pub findings: Findings,
}

impl Sink for OneCpu {
    fn event(&mut self, event: &Event) {
        let Kind::SchedSwitch { prev_pid, next_pid, .. } = event.kind else { return };
        let (time, cpu) = (event.time, event.cpu);
        if let Some(&known) = self.runs.get(&cpu)
            && known != prev_pid
        {
            self.findings.add(time, cpu, || format!("leaves task {prev_pid}, but task {known} ran there"));
        }
        self.runs_on.remove(&prev_pid);
        self.runs.insert(cpu, next_pid);
        if next_pid == Pid::IDLE {
            return;
        }
        if let Some(other) = self.runs_on.insert(next_pid, cpu)
            && other != cpu
        {
            self.findings.add(time, cpu, || format!("task {next_pid} runs, and on CPU {other} too"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::switch;
    use super::*;

    #[test]
    fn a_task_on_two_cpus_and_a_broken_chain_are_found() {
        let mut checker = OneCpu::default();
        for event in [
            switch(1, 0, 0, "R", 5),
            switch(2, 1, 0, "R", 6),
            switch(3, 0, 5, "R", 0),
            switch(4, 1, 6, "S", 5),
        ] {
            checker.event(&event);
        }
        assert!(checker.findings.is_empty());
        checker.event(&switch(5, 0, 0, "R", 5));
        checker.event(&switch(6, 1, 7, "R", 0));
        let found: Vec<_> = checker.findings.first().iter().map(|f| f.what.as_str()).collect();
        assert_eq!(found, ["task 5 runs, and on CPU 1 too", "leaves task 7, but task 5 ran there"]);
    }
}
