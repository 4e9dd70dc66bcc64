//! No task changes its CPU without a decision that explains it.
//!
//! Each `sched_migrate_task` must follow a placement of the task on that CPU, or a balance pass that moved it there.

use std::collections::BTreeMap;

use schedlab_topology::CpuId;
use schedlab_trace::{Event, Kind, Sink};
use schedlab_units::Pid;

use super::Findings;

/// The checker. Needs decisions, which it requests.
#[derive(Clone, Debug, Default)]
pub struct Explained {
    /// The CPUs that decisions named for each task. Several passes may be recorded before the first of their
    /// moves.
    goes: BTreeMap<Pid, Vec<CpuId>>,
    /// What was found.
    pub findings: Findings,
}

impl Sink for Explained {
    fn event(&mut self, event: &Event) {
        match &event.kind {
            Kind::Placement(placement) => _ = self.goes.insert(placement.pid, vec![placement.cpu]),
            Kind::Balance(balance) => {
                let elsewhere = balance.numbers.iter().filter(|(name, _)| name == "new_dst_cpu");
                let elsewhere = elsewhere.map(|&(_, cpu)| CpuId(cpu as u16));
                let cpus: Vec<CpuId> = std::iter::once(balance.dst_cpu).chain(elsewhere).collect();
                for pid in &balance.moved {
                    self.goes.entry(*pid).or_default().extend(&cpus);
                }
            }
            Kind::SchedMigrateTask { pid, orig_cpu, dest_cpu, .. } => {
                let said = self.goes.entry(*pid).or_default();
                match said.iter().position(|cpu| cpu == dest_cpu) {
                    Some(at) => _ = said.drain(..=at),
                    None => self.findings.add(event.time, event.cpu, || {
                        format!("task {pid} goes from CPU {orig_cpu} to {dest_cpu}, which no decision says")
                    }),
                }
            }
            _ => {}
        }
    }

    fn wants_decisions(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::event;
    use super::*;
    use schedlab_trace::{Balance, Comm};

    #[test]
    fn a_move_without_a_word_is_found() {
        let mut checker = Explained::default();
        let moves = |time, to| {
            let (comm, pid, prio) = (Comm::default(), Pid(5), 120);
            event(
                time,
                1,
                Kind::SchedMigrateTask { comm, pid, prio, orig_cpu: CpuId(0), dest_cpu: CpuId(to) },
            )
        };
        let balance = Balance { dst_cpu: CpuId(1), moved: vec![Pid(5)], ..Balance::default() };
        checker.event(&event(1, 1, Kind::Balance(Box::new(balance))));
        checker.event(&moves(1, 1));
        assert!(checker.findings.is_empty());
        checker.event(&moves(2, 1));
        assert_eq!(checker.findings.count(), 1, "what was said holds once");
    }
}
