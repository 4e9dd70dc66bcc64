//! Switches that are missing from a trace.
//!
//! A recording may lack switches without notice: a filter, a recording of a single task, a tool that lost some and does
//! not report it. But each event shows the task that runs on its CPU. If that is not the task last switched to, at
//! least one switch in between is missing, and nothing is known about the CPU since its last event.

use schedlab_topology::CpuId;
use schedlab_units::{Pid, Time};

use crate::event::{Event, Kind};
use crate::hotplug::{Hotplug, Hotplugs};

/// Follows a trace and counts the switches that must be missing in it.
#[derive(Clone, Debug, Default)]
pub struct UnseenSwitches {
    /// By CPU, the task that ran after its last event, and the time of that event.
    cpus: Vec<Option<(Pid, Time)>>,
    hotplugs: Hotplugs,
    count: u64,
}

impl UnseenSwitches {
    /// The time of a CPU's last event, if this event shows a task other than the one left running there.
    pub fn before(&self, event: &Event) -> Option<Time> {
        let shown = event.shown();
        let (runs, last) = self.cpus.get(event.cpu.index()).copied().flatten()?;
        // Perf has no pid for a task that is already gone.
        (runs != shown && shown.0 >= 0).then_some(last)
    }

    /// The task left running on a CPU by its last event, if known.
    pub fn runs(&self, cpu: CpuId) -> Option<Pid> {
        self.cpus.get(cpu.index()).copied().flatten().map(|(pid, _)| pid)
    }

    /// Follows one event. Returns the same as [`UnseenSwitches::before`].
    pub fn event(&mut self, event: &Event) -> Option<Time> {
        // A CPU that comes online does not continue with its stopper.
        let comes = matches!(self.hotplugs.event(event), Some((_, Hotplug::Starting)));
        let missed = self.before(event).filter(|_| !comes);
        self.count += u64::from(missed.is_some());
        let CpuId(cpu) = event.cpu;
        let cpu = usize::from(cpu);
        if cpu >= self.cpus.len() {
            self.cpus.resize(cpu + 1, None);
        }
        let runs = match event.kind {
            Kind::SchedSwitch { next_pid, .. } => next_pid,
            _ => event.pid,
        };
        if runs.0 >= 0 {
            self.cpus[cpu] = Some((runs, event.time));
        }
        missed
    }

    /// Minimum number of missing switches so far.
    pub fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{Record, ftrace};

    #[test]
    fn a_task_that_runs_without_a_switch_shows_that_one_is_missing() {
        let switch = |time: &str, prev: u32, next: u32| {
            format!(
                "t-{prev} [000] {time}: sched_switch: prev_comm=t prev_pid={prev} prev_prio=120 prev_state=S ==> \
                 next_comm=t next_pid={next} next_prio=120\n"
            )
        };
        let wakes = "t-3 [000] 1.4: sched_waking: comm=b pid=9 prio=120 target_cpu=001\n";
        let missed = |text: &str| {
            let mut unseen = UnseenSwitches::default();
            let mut last = Vec::new();
            for record in ftrace::Reader::new(text.as_bytes()) {
                let Ok(Record::Event(event)) = record else { panic!("{record:?}") };
                last.extend(unseen.event(&event).map(|time| time.to_string()));
            }
            assert_eq!(unseen.count(), last.len() as u64);
            last
        };
        assert_eq!(missed(&(switch("1.1", 1, 2) + &switch("1.2", 2, 3) + wakes)), [""; 0]);
        assert_eq!(missed(&(switch("1.1", 1, 2) + wakes)), ["1.100000000"]);
        assert_eq!(
            missed(&(switch("1.1", 1, 2) + wakes + &switch("1.5", 3, 2) + &switch("1.6", 7, 1))),
            ["1.100000000", "1.500000000"]
        );
        assert_eq!(missed(wakes), [""; 0], "the first event of a CPU tells nothing of before");
    }
}
