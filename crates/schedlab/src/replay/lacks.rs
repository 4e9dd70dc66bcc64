//! What happened in a recording although no event shows it.
//!
//! If it contains no `sched_wakeup` or `sched_migrate_task`, they may not have been recorded, or no task was woken or
//! moved. A task that slept and runs again was woken; one that is on another CPU than before was moved.

use schedlab_report::metrics::PidTable;
use schedlab_topology::CpuId;
use schedlab_trace::{Event, Kind, Sink};
use schedlab_units::Pid;

/// What must have happened without an event.
#[derive(Clone, Debug, Default)]
pub struct Lacks {
    tasks: PidTable<Seen>,
    /// A task slept and ran again without a wake-up.
    pub wakeups: bool,
    /// A task was on one CPU and then on another without a move.
    pub migrations: bool,
}

/// Where an event last showed a task.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    cpu: Option<CpuId>,
    sleeps: bool,
}

impl Lacks {
    fn on(&mut self, pid: Pid, cpu: CpuId) -> &mut Seen {
        let seen = self.tasks.entry(pid);
        self.migrations |= seen.cpu.replace(cpu).is_some_and(|before| before != cpu);
        seen
    }
}

impl Sink for Lacks {
    fn event(&mut self, event: &Event) {
        match event.kind {
            Kind::SchedSwitch { prev_pid, prev_state, next_pid, .. } => {
                if prev_pid != Pid::IDLE {
                    self.on(prev_pid, event.cpu).sleeps = !prev_state.is_runnable();
                    if prev_state.is_dead() {
                        *self.tasks.entry(prev_pid) = Seen::default();
                    }
                }
                if next_pid != Pid::IDLE {
                    let slept = std::mem::take(&mut self.on(next_pid, event.cpu).sleeps);
                    self.wakeups |= slept;
                }
            }
            Kind::SchedWakeup { pid, target_cpu, .. } => self.on(pid, target_cpu).sleeps = false,
            // It was placed there, not moved; its pid may have belonged to another task before.
            Kind::SchedWakeupNew { pid, target_cpu, .. } => {
                *self.tasks.entry(pid) = Seen { cpu: Some(target_cpu), sleeps: false };
            }
            Kind::SchedMigrateTask { pid, dest_cpu, .. } => self.tasks.entry(pid).cpu = Some(dest_cpu),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_trace::read::{Record, ftrace};

    const SLEEPS: &str = " a-7 [000] d..2. 1.000010: sched_switch: prev_comm=a prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120\n";
    const WAKES: &str =
        " <idle>-0 [000] d..2. 1.000020: sched_wakeup: comm=a pid=7 prio=120 target_cpu=000\n";
    const MOVES: &str =
        " b-8 [001] d..2. 1.000030: sched_migrate_task: comm=a pid=7 prio=120 orig_cpu=0 dest_cpu=1\n";
    const RUNS_THERE: &str = " b-8 [001] d..2. 1.000040: sched_switch: prev_comm=b prev_pid=8 prev_prio=120 prev_state=R ==> next_comm=a next_pid=7 next_prio=120\n";

    #[test]
    fn what_is_seen_before_and_after_shows_what_happened_between() {
        let lacks = |lines: &[&str]| {
            let mut lacks = Lacks::default();
            for record in ftrace::Reader::new(lines.concat().as_bytes()) {
                if let Record::Event(event) = record.unwrap() {
                    lacks.event(&event);
                }
            }
            [lacks.wakeups, lacks.migrations]
        };
        assert_eq!(lacks(&[SLEEPS, WAKES, MOVES, RUNS_THERE]), [false, false]);
        assert_eq!(lacks(&[SLEEPS, MOVES, RUNS_THERE]), [true, false]);
        assert_eq!(lacks(&[SLEEPS, WAKES, RUNS_THERE]), [false, true]);
        assert_eq!(
            lacks(&[&SLEEPS.replace("=S", "=Z"), RUNS_THERE]),
            [false, false],
            "the number of another"
        );
        assert_eq!(lacks(&[SLEEPS]), [false, false], "it sleeps to the end");
    }
}
