//! Changes one fact that a placement depends on; forks and execs that are tried in this way.

use std::collections::BTreeMap;

use schedlab_sched::{Curr, Wakeup};
use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use super::nearest;
use crate::judge::Audit;
use crate::judge::execs;
use crate::judge::fork::{self, Forked};
use crate::judge::spare::Spare;
use crate::report::listener::Listener;
use crate::report::verdict::Possible;
use crate::unknown::Shadow;
use crate::unknown::in_motion::{self, Changing, Counted, Moves};
use crate::unknown::otherwise::{Fact, Nearest, Otherwise};

/// Multiples of their errors by which load averages are moved.
const LOAD_ERRORS: [u64; 6] = [2, 3, 4, 6, 8, 16];

/// For each of some CPUs, the fact that a busy one had been idle, or the reverse: how long ago it was so, or how soon
/// it will be.
pub(super) fn state_facts<S: Listener>(audit: &Audit<S>, cpus: &[CpuId], now: Time) -> Vec<Otherwise> {
    let shadow = &audit.shadow;
    let error = shadow.slack.time().0;
    let facts = cpus.iter().map(|&cpu| {
        let idle = !shadow.sched.idle_cpu(cpu);
        let ago = now.since(in_motion::state_since(shadow, cpu)).0;
        let comes = audit.pairing.shown(Time::MAX).find(|shown| shown.cpu == cpu && shown.idle == Some(idle));
        let soon = comes.map_or(u64::MAX, |shown| shown.time.since(now).0);
        let fact = Fact::Cpu { cpu, idle, longer: ago <= soon };
        Otherwise::by(fact, ago.min(soon), error)
    });
    facts.collect()
}

/// For each of some CPUs, the fact that one more or one fewer task had been queued there: how long ago the last one
/// came, how soon one leaves, and how soon one comes.
pub(super) fn queue_facts<S: Listener>(
    audit: &Audit<S>,
    this: CpuId,
    cpus: &[CpuId],
    now: Time,
) -> Vec<Otherwise> {
    let shadow = &audit.shadow;
    let error = shadow.slack.time().0;
    let Moves { comes, leaves } = Moves::of(this, audit.pairing.ahead(Time::MAX));
    let facts = cpus.iter().flat_map(|&cpu| {
        let soon = |by: &BTreeMap<CpuId, Time>| by.get(&cpu).map(|&time| time.since(now).0);
        let came = now.since(shadow.clocks.queued_at(cpu)).0;
        let less = came.min(soon(&leaves).unwrap_or(u64::MAX));
        let fact = |more| Fact::Queued { cpu, more };
        let more = soon(&comes);
        [
            Otherwise::by(fact(false), less, error),
            more.map_or(Otherwise::plain(fact(true)), |more| Otherwise::by(fact(true), more, error)),
        ]
    });
    facts.collect()
}

/// Runs a look on the shadow with facts changed.
pub(super) fn as_if(
    shadow: &mut Shadow,
    about: &Wakeup,
    facts: &[Otherwise],
    now: Time,
    look: &mut dyn FnMut(&mut Shadow) -> bool,
) -> bool {
    let [otherwise, others @ ..] = facts else { return look(shadow) };
    let mut look = |shadow: &mut Shadow| as_if(shadow, about, others, now, look);
    let fact = otherwise.fact;
    match fact {
        Fact::Cpu { cpu, idle, .. } => in_motion::as_if(shadow, Changing { cpu, idle }, look),
        Fact::Queued { cpu, more } => in_motion::as_if_counted(shadow, Counted { cpu, more }, look),
        Fact::ScanLimit { .. } | Fact::IdleCores => {
            let known = shadow.sched.domains.shared.clone();
            for llc in &mut shadow.sched.domains.shared {
                match fact {
                    Fact::ScanLimit { all } => llc.nr_idle_scan = if all { u32::MAX >> 1 } else { 0 },
                    _ => llc.has_idle_cores = !llc.has_idle_cores,
                }
            }
            let leads = look(shadow);
            shadow.sched.domains.shared = known;
            leads
        }
        Fact::SyncFlag => {
            let known = shadow.known_mut(about.task);
            let plainly = std::mem::take(&mut known.plainly_woken);
            let exiting = about.waker.map(|waker| shadow.sched.task(waker).exiting);
            about.waker.inspect(|&waker| shadow.sched.task_mut(waker).exiting = false);
            let leads = look(shadow);
            shadow.known_mut(about.task).plainly_woken = plainly;
            if let (Some(waker), Some(exiting)) = (about.waker, exiting) {
                shadow.sched.task_mut(waker).exiting = exiting;
            }
            leads
        }
        Fact::RecentCpu(cpu) => {
            let known = shadow.sched.task_mut(about.task).recent_used_cpu.replace(cpu);
            let leads = look(shadow);
            shadow.sched.task_mut(about.task).recent_used_cpu = known;
            leads
        }
        Fact::Loads => with_load_errors(shadow, otherwise.times.unwrap_or(1), look),
        Fact::Flips { spreads } => with_flips(shadow, about, spreads, look),
        // In that case no CPU is chosen, and the task stays.
        Fact::DelayedDequeue { queued: true } => true,
        Fact::DelayedDequeue { queued: false } => {
            let before = shadow.sched.clone();
            if shadow.sched.task(about.task).se.sched_delayed {
                shadow.sched.complete_delayed_dequeue(about.task, now);
            } else {
                shadow.sched.task_mut(about.task).on_rq = false;
            }
            let leads = look(shadow);
            shadow.sched = before;
            leads
        }
        Fact::OnCpu => {
            shadow.sched.task_mut(about.task).on_cpu = true;
            let leads = look(shadow);
            shadow.sched.task_mut(about.task).on_cpu = false;
            leads
        }
        Fact::IdleStamp(cpu) => {
            let before = shadow.sched.rqs[cpu].idle_stamp;
            shadow.sched.rqs[cpu].idle_stamp = now.0;
            let leads = look(shadow);
            shadow.sched.rqs[cpu].idle_stamp = before;
            leads
        }
        _ => look(shadow),
    }
}

/// Runs `look` with load averages that may be off by `times` times their assumed error.
pub(super) fn with_load_errors<T>(shadow: &mut Shadow, times: u64, look: impl FnOnce(&mut Shadow) -> T) -> T {
    let before = std::mem::replace(&mut shadow.learned.loads.errors, times);
    let result = look(shadow);
    shadow.learned.loads.errors = before;
    result
}

/// Runs a look with flips for which a wake-up spreads or does not.
fn with_flips(
    shadow: &mut Shadow,
    about: &Wakeup,
    spreads: bool,
    look: impl FnOnce(&mut Shadow) -> bool,
) -> bool {
    let Some(waker) = about.waker else { return false };
    let sides = [waker, about.task];
    let factor = shadow.sched.domains.per_cpu[about.this_cpu].llc_size;
    let guessed = sides.map(|task| shadow.known_mut(task).learned.flips.take());
    let known = sides.map(|task| wakees(shadow, task));
    for (task, flips) in sides.into_iter().zip([factor * factor + factor, factor]) {
        let flips = if spreads { flips } else { 0 };
        shadow.sched.task_mut(task).wakee_flips = flips;
    }
    let leads = look(shadow);
    for ((task, guessed), known) in sides.into_iter().zip(guessed).zip(known) {
        shadow.known_mut(task).learned.flips = guessed;
        shadow.sched.task_mut(task).wakee_flips = known;
    }
    leads
}

fn wakees(shadow: &Shadow, task: TaskId) -> u32 {
    shadow.sched.task(task).wakee_flips
}

impl<S: Listener> Audit<S> {
    /// The nearest fact that leads a fork to the kernel's choice instead of ours.
    pub(crate) fn nearest_of_fork(&mut self, fork: Forked, ours: &[Possible]) -> Option<Nearest> {
        self.nearest_of_new_place(fork, ours, |shadow, spare| {
            let found = fork::if_possible(shadow, spare, fork);
            found.map(|found| spare.give_back_all(found)).is_some()
        })
    }

    /// The nearest fact that leads an exec to the kernel's choice instead of ours.
    pub(crate) fn nearest_of_exec(
        &mut self,
        task: TaskId,
        chosen: CpuId,
        now: Time,
        ours: &[Possible],
    ) -> Option<Nearest> {
        let exec = Forked { task, this: self.shadow.sched.task(task).cpu, chosen, now };
        self.nearest_of_new_place(exec, ours, |shadow, spare| {
            let found = execs::of_exec(shadow, task, chosen, now);
            let leads = found.has(chosen);
            spare.give_back_all(found);
            leads
        })
    }

    fn nearest_of_new_place(
        &mut self,
        placed: Forked,
        ours: &[Possible],
        leads: impl Fn(&mut Shadow, &mut Spare) -> bool,
    ) -> Option<Nearest> {
        let Forked { task, this, chosen, now } = placed;
        let cpus: Vec<CpuId> = self.shadow.cpus().collect();
        let mut facts = state_facts(self, &cpus, now);
        facts.extend(queue_facts(self, this, &cpus, now));
        let rqs = &self.shadow.sched.rqs;
        if rqs[chosen].curr == Curr::Idle {
            let stamps = ours.iter().filter_map(|ours| ours.choice.cpu()).map(|cpu| rqs[cpu].idle_stamp);
            let by = stamps.max().unwrap_or(0).saturating_sub(rqs[chosen].idle_stamp);
            facts.push(Otherwise::by(Fact::IdleStamp(chosen), by, self.shadow.slack.time().0));
        }
        facts.extend(LOAD_ERRORS.map(|times| Otherwise { fact: Fact::Loads, ns: None, times: Some(times) }));
        let about =
            Wakeup { task, waker: None, this_cpu: this, sync: false, in_task: true, current_cpu: false };
        let (shadow, spare) = (&mut self.shadow, &mut self.spare);
        nearest(facts, |facts| as_if(shadow, &about, facts, now, &mut |shadow| leads(shadow, spare)))
    }
}
