//! Events in the middle of a switch.
//!
//! `sched_switch` is written before the switch itself: the queue already has its next task, the stack is still that of
//! the previous one. Events in between are recorded for the task that leaves, which then seems to run again without a
//! switch: `tlb_flush` and `x86_fpu_regs_deactivated`, if all events are recorded, and the stack of each switch
//! (`trace-cmd record -T`, the trigger `stacktrace`). Such an event is assigned to the next task, so that it does not
//! count as evidence of a missing switch.
//!
//! Interrupts are off in between and the scheduler writes no event; if the recording does not show whether they are
//! off, the event has to follow soon.
//!
//! Kernel: trace_sched_switch() in __schedule() and context_switch() behind it, kernel/sched/core.c, v6.1, v6.12.

use schedlab_units::{Duration, Pid, Time};

use crate::comm::Comm;
use crate::event::{Event, Kind};
use crate::flags::Flags;

/// How soon, if nothing shows whether interrupts are off.
const SOON: Duration = Duration::millis(1);

/// Follows a trace and assigns events within a switch to the next task.
#[derive(Clone, Debug, Default)]
pub struct Switching {
    /// By CPU, its switch that may not be complete yet.
    cpus: Vec<Option<Switch>>,
}

#[derive(Clone, Copy, Debug)]
struct Switch {
    at: Time,
    prev: Pid,
    next: Pid,
    next_comm: Comm,
}

impl Switching {
    /// Follows one event, and changes its task if it belongs to a switch.
    pub fn event(&mut self, event: &mut Event) {
        let cpu = event.cpu.index();
        match event.kind {
            Kind::SchedSwitch { prev_pid: prev, next_pid: next, next_comm, .. } => {
                if cpu >= self.cpus.len() {
                    self.cpus.resize(cpu + 1, None);
                }
                self.cpus[cpu] = Some(Switch { at: event.time, prev, next, next_comm });
            }
            // Most traces have few other events between two switches.
            _ => {
                let Some(Some(switch)) = self.cpus.get(cpu).copied() else { return };
                if switch.has(event) {
                    (event.pid, event.comm, event.tgid) = (switch.next, switch.next_comm, None);
                } else {
                    self.cpus[cpu] = None;
                }
            }
        }
    }
}

impl Switch {
    /// Whether an event of the CPU came before the switch was complete.
    fn has(&self, event: &Event) -> bool {
        let within = match event.flags.is_known() {
            true => event.flags.has(Flags::IRQS_OFF) && !event.flags.in_interrupt(),
            false => event.time.since(self.at) <= SOON,
        };
        within && event.pid == self.prev && matches!(event.kind, Kind::Unknown(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{Record, ftrace};
    use crate::unseen::UnseenSwitches;

    /// The tasks of events after a switch from 1 to 2, and how many switches must be missing.
    fn after_a_switch(lines: &[&str]) -> (Vec<u32>, u64) {
        let switch = "t-1 [000] d..2. 1.0: sched_switch: prev_comm=t prev_pid=1 prev_prio=120 prev_state=S ==> \
                      next_comm=u next_pid=2 next_prio=120";
        let text = [&[switch], lines].concat().join("\n") + "\n";
        let (mut switching, mut unseen) = (Switching::default(), UnseenSwitches::default());
        let mut whose = Vec::new();
        for record in ftrace::Reader::new(text.as_bytes()) {
            let Ok(Record::Event(mut event)) = record else { panic!("{record:?}") };
            switching.event(&mut event);
            unseen.event(&event);
            whose.push(event.pid.0 as u32);
        }
        (whose.split_off(1), unseen.count())
    }

    #[test]
    fn an_event_within_a_switch_is_of_the_next_task() {
        let flush = "t-1 [000] d..2. 1.000001: tlb_flush: pages=0 reason=flush on task switch (0)";
        let fpu = "t-1 [000] d..2. 1.000002: x86_fpu_regs_deactivated: x86/fpu: 0xffff88811241d1c0 load: 1";
        let next = "u-2 [000] ..... 1.000003: sys_exit: NR 1 = 1";
        assert_eq!(after_a_switch(&[flush, fpu, next]), (vec![2, 2, 2], 0));
        // A stack trace takes long the first time.
        let late = "t-1 [000] d..2. 1.002: kernel_stack: <stack trace >";
        assert_eq!(after_a_switch(&[late, next]), (vec![2, 2], 0));
        assert_eq!(after_a_switch(&[next, flush]), (vec![2, 1], 1), "the switch was done");
    }

    #[test]
    fn without_the_context_it_has_to_follow_soon() {
        let flush =
            |time: &str| format!("t-1 [000] {time}: tlb_flush: pages=0 reason=flush on task switch (0)");
        assert_eq!(after_a_switch(&[&flush("1.0009")]), (vec![2], 0));
        assert_eq!(after_a_switch(&[&flush("1.0011")]), (vec![1], 1));
    }

    #[test]
    fn a_task_that_acts_otherwise_came_back_by_an_unrecorded_switch() {
        let call = "t-1 [000] ..... 1.000001: sys_enter: NR 1 (1, 2, 3)";
        let wakes = "t-1 [000] d..3. 1.000001: sched_waking: comm=b pid=9 prio=120 target_cpu=001";
        let interrupt = "t-1 [000] d.h2. 1.000001: hrtimer_cancel: hrtimer=00000000a";
        for line in [call, wakes, interrupt] {
            assert_eq!(after_a_switch(&[line]), (vec![1], 1), "{line}");
        }
    }
}
