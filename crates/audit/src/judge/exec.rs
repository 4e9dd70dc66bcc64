//! Where a task continues after it executes another program.
//!
//! At an exec the task has no cache to lose, so the slow path looks for a CPU. If it finds another CPU, the task asks
//! its own CPU's stopper to move it. If not, no event follows until the new program is loaded, some hundred
//! microseconds later. So the decision is evaluated in each state in between, and any of the answers may have been the
//! kernel's.

use schedlab_sched::Curr;
use schedlab_topology::CpuId;
use schedlab_trace::{Event, Kind};
use schedlab_units::{Duration, Pid, TaskId, Time};

use crate::judge::Audit;
use crate::judge::possibilities::Possibilities;
use crate::report::listener::Listener;
use crate::report::verdict::{Answer, Choice, Decision, Numbers, Verdict};
use crate::unknown::Shadow;
use crate::unknown::list::Unknown;
use crate::unknown::loads;

/// A stopper that was asked starts within this time.
const STOPPER_PATIENCE: Duration = Duration::millis(10);

/// Loading a program rarely takes longer than this.
const LOADING: Duration = Duration::millis(1);

/// Execs in progress, and their possible outcomes so far.
#[derive(Default)]
pub struct Execs {
    /// Tasks that were moved by a stopper at their own request.
    moved: Vec<(TaskId, Verdict)>,
    /// Tasks that a later event shows to have executed a program, with the possible outcomes so far.
    ahead: Vec<(TaskId, Vec<CpuId>)>,
}

impl<S: Listener> Audit<S> {
    /// The task running on a CPU asks the CPU's stopper, which then moves it.
    pub(crate) fn exec_asked(&mut self, event: &Event, of: CpuId) {
        if event.cpu != of || event.flags.in_interrupt() {
            return;
        }
        let Some(task) = self.shadow.find(event.pid) else { return };
        let moved = self.pairing.ahead(event.time + STOPPER_PATIENCE).find_map(|next| match next.kind {
            Kind::SchedMigrateTask { pid, orig_cpu, dest_cpu, .. }
                if next.cpu == of && pid == event.pid && orig_cpu == of =>
            {
                Some(dest_cpu)
            }
            _ => None,
        });
        let Some(to) = moved.filter(|&to| self.shadow.has_cpu(to)) else { return };
        let mut verdict = self.of_exec(event, task, to);
        verdict.ours = of_exec(&mut self.shadow, task, to, event.time).list;
        verdict.judge();
        verdict.nearest = self.why(&verdict, |audit| {
            // A task that changes its own mask asks in the same way.
            let executes = audit.pairing.execs(event.time + STOPPER_PATIENCE).any(|pid| pid == event.pid);
            if executes { audit.nearest_of_exec(task, to, event.time, &verdict.ours) } else { None }
        });
        self.execs.moved.retain(|(other, _)| *other != task);
        self.execs.moved.push((task, verdict));
    }

    /// A program is about to be loaded: evaluates the decision in the current state.
    pub(crate) fn ask_execs(&mut self, now: Time) {
        let loading: Vec<Pid> = self.pairing.execs(now + LOADING).collect();
        for pid in loading {
            let Some(task) = self.shadow.find(pid).filter(|&task| self.shadow.runs(task)) else { continue };
            let cpu = self.shadow.view(now).decide_exec(task).cpu;
            match self.execs.ahead.iter_mut().find(|(other, _)| *other == task) {
                Some((_, cpus)) if cpus.contains(&cpu) => {}
                Some((_, cpus)) => cpus.push(cpu),
                None => self.execs.ahead.push((task, vec![cpu])),
            }
        }
    }

    /// A task has executed a program.
    pub(crate) fn executed(&mut self, event: &Event, task: TaskId) {
        let earlier = self.execs.ahead.iter().position(|(other, _)| *other == task);
        let earlier = earlier.map(|at| self.execs.ahead.swap_remove(at).1).unwrap_or_default();
        if let Some(at) = self.execs.moved.iter().position(|(other, _)| *other == task) {
            let (_, verdict) = self.execs.moved.swap_remove(at);
            return self.give(verdict);
        }
        if self.shadow.sched.rqs[event.cpu].curr != Curr::Task(task) {
            return;
        }
        let mut verdict = self.of_exec(event, task, event.cpu);
        let possible = of_exec(&mut self.shadow, task, event.cpu, event.time);
        verdict.ours = possible.list;
        verdict.judge();
        if verdict.answer == Answer::Differs && earlier.contains(&event.cpu)
            || verdict.answer == Answer::Agrees && earlier.iter().any(|&cpu| cpu != event.cpu)
        {
            verdict.answer = Answer::AgreesInSet;
            verdict.hidden = Some(Unknown::InMotion);
        }
        verdict.nearest =
            self.why(&verdict, |audit| audit.nearest_of_exec(task, event.cpu, event.time, &verdict.ours));
        self.give(verdict);
    }

    fn of_exec(&self, event: &Event, task: TaskId, to: CpuId) -> Verdict {
        let who = self.shadow.known(task).who();
        Verdict::begun(event.time, event.cpu, Decision::Exec, who, Choice::Cpu(to))
    }
}

/// All possible outcomes of an exec, evaluated only as far as needed: `chosen` is what the kernel did.
pub fn of_exec(shadow: &mut Shadow, task: TaskId, chosen: CpuId, now: Time) -> Possibilities {
    let mut found = Possibilities::default();
    let plain = shadow.view(now).decide_exec(task);
    found.add(plain, None, Numbers::default());
    if found.has(chosen) {
        return found;
    }
    let local = shadow.sched.task(task).cpu;
    if shadow.may_keep_sleepers(local) {
        // A task that sleeps there and is still queued counts as running.
        shadow.sched.rqs[local].nr_running += 1;
        let placement = shadow.view(now).decide_exec(task);
        shadow.sched.rqs[local].nr_running -= 1;
        if placement.cpu == chosen {
            found.add(placement, Some(Unknown::DelayedDequeue), Numbers::default());
            return found;
        }
    }
    for averages in loads::for_cpu(shadow, chosen, now) {
        let placement = loads::as_if(shadow, &averages, |shadow| shadow.view(now).decide_exec(task));
        if placement.cpu == chosen {
            found.add(placement, Some(Unknown::Loads), Numbers::default());
            break;
        }
    }
    found
}
