//! CPUs whose state is just changing.
//!
//! Whatever happens on a CPU within the time in which events of two CPUs may overlap may have been visible already.

use std::collections::BTreeMap;

use schedlab_sched::Curr;
use schedlab_topology::CpuId;
use schedlab_trace::{Event, Kind};
use schedlab_units::{Pid, TaskId, Time};

use super::Shadow;
use super::about::{About, Reading};
use super::beyond::{Candidate, Case, Look, Of, with_copy};
use super::otherwise::Otherwise;
use crate::follow::pairing::{Pairing, Shown};

/// Tried where nothing else explains that a woken task stays.
pub const ON_CPU: Reading = Reading::new("ON_CPU", "the woken task was still on its CPU");

/// Tried where the state does not lead a wake-up to its CPU.
pub const OF_WAKEUP: Reading =
    Reading::new("WAKE_IN_MOTION", "a CPU that was changing its state was seen in the new one");

/// Tried where the state does not lead to a move.
pub const OF_MOVE: Reading =
    Reading::new("MOVE_IN_MOTION", "a pass saw a CPU before or after its latest change");

/// Tried where the last state does not lead a fork to its CPU.
pub const OF_FORK: Reading =
    Reading::new("FORK_EARLIER", "the CPU was chosen in an earlier state, or one was changing");

pub(super) const ABOUT: About = About {
    readings: &[ON_CPU, OF_WAKEUP, OF_MOVE, OF_FORK],
    further: &[
        ("CPU_IDLE", "a CPU had been idle: for longer, or since an earlier time"),
        ("CPU_BUSY", "a CPU had been busy: for longer, or since an earlier time"),
        ("ONE_MORE_QUEUED", "one more task had been queued on a CPU"),
        ("ONE_LESS_QUEUED", "one task fewer had been queued on a CPU"),
        ("ON_CPU", "the woken sleeper had still been on its CPU"),
        ("WAITED", "the moved task had waited on the CPU that it was taken from"),
    ],
    beyond,
    ..About::new("IN_MOTION", "a state that was changing at that moment")
};

/// A CPU that others may see in another state than the shadow's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changing {
    /// The CPU.
    pub cpu: CpuId,
    /// Idle already, or no longer.
    pub idle: bool,
}

impl Shadow {
    /// Whether a task that was switched out may still be on its CPU. The CPU finishes the switch a little after the
    /// event, and has not acted since.
    pub fn may_be_on_cpu(&self, task: TaskId, now: Time) -> bool {
        let (left, cpu) = (self.known(task).left, self.sched.task(task).cpu);
        self.clocks.acted(cpu) <= left && now.since(left) <= self.slack.time()
    }
}

/// The CPUs whose next event is a change between idle and busy. The executing CPU, which knows its own state, is left
/// out.
fn changing<'a>(shadow: &Shadow, this: CpuId, ahead: impl Iterator<Item = &'a Shown>) -> Vec<Changing> {
    let nr_cpus = shadow.sched.rqs.len();
    let mut seen = vec![false; nr_cpus];
    seen[this.index()] = true;
    let mut unseen = nr_cpus - 1;
    let mut changing = Vec::new();
    for &Shown { cpu, idle, .. } in ahead {
        // Most shown events concern CPUs that were handled already.
        match seen.get_mut(cpu.index()) {
            Some(seen) if !*seen => *seen = true,
            _ => continue,
        }
        unseen -= 1;
        if let Some(idle) = idle {
            if shadow.sched.idle_cpu(cpu) != idle {
                changing.push(Changing { cpu, idle });
            }
            // The flag is cleared before the task it stands for is queued (v6.1).
            if !idle && shadow.sched.rqs[cpu].ttwu_pending && shadow.sched.rqs[cpu].curr == Curr::Idle {
                changing.push(Changing { cpu, idle: true });
            }
        }
        if unseen == 0 {
            break;
        }
    }
    changing
}

/// The CPUs that changed between idle and busy since `from`; others may still have seen the old state.
fn changed(shadow: &Shadow, from: Time) -> Vec<Changing> {
    let recent = shadow.cpus().filter(|&cpu| state_since(shadow, cpu) >= from);
    recent.map(|cpu| Changing { cpu, idle: !shadow.sched.idle_cpu(cpu) }).collect()
}

/// What `look` finds as if a CPU that is just changing its state was seen in the new one, by a decision on `this` CPU.
pub fn find<T>(
    shadow: &mut Shadow,
    this: CpuId,
    pairing: &Pairing,
    now: Time,
    mut look: impl FnMut(&mut Shadow) -> Option<T>,
) -> Option<T> {
    let mut states = changing(shadow, this, pairing.shown(shadow.slack.until(now)));
    states.extend(just_chosen(shadow, this, shadow.slack.from(now)));
    states.into_iter().find_map(|state| as_if(shadow, state, &mut look))
}

/// Idle CPUs that got their task since `from`: this waker may have looked at them before another waker had queued it.
fn just_chosen(shadow: &Shadow, this: CpuId, from: Time) -> impl Iterator<Item = Changing> {
    let idles = move |cpu: CpuId| shadow.sched.rqs[cpu].curr == Curr::Idle && !shadow.sched.idle_cpu(cpu);
    let just = move |&cpu: &CpuId| cpu != this && idles(cpu) && shadow.clocks.queued_at(cpu) >= from;
    shadow.cpus().filter(just).map(|cpu| Changing { cpu, idle: true })
}

/// Asks as if a pass on a CPU had seen another in the state before or after its latest change, or with one task more or
/// less, until `is_so`: a pass begins some time before its moves. So it may begin before a wake-up was on its way to the
/// destination, or before a hard interrupt queued a task on the pass's own CPU.
pub fn find_of_move(
    shadow: &mut Shadow,
    (this, now): (CpuId, Time),
    pairing: &Pairing,
    to: CpuId,
    mut is_so: impl FnMut(&mut Shadow) -> bool,
) {
    let (from, until) = (shadow.slack.from(now), shadow.slack.until(now));
    let mut states = changing(shadow, this, pairing.shown(until));
    states.extend(changed(shadow, from));
    let counts = counted(shadow, this, from, pairing.ahead(until));
    let own = states.iter().copied().find(|changing| changing.cpu == this);
    let pending = std::mem::take(&mut shadow.sched.rqs[to].ttwu_pending);
    let _ = pending && is_so(shadow)
        || states.iter().any(|&state| as_if(shadow, state, &mut is_so))
        || counts.iter().any(|&count| as_if_counted(shadow, count, &mut is_so))
        || own.is_some_and(|own| {
            let mut others = states.iter().copied().filter(|state| state.cpu != own.cpu);
            others.any(|state| as_if(shadow, own, |shadow| as_if(shadow, state, &mut is_so)))
        });
    shadow.sched.rqs[to].ttwu_pending = pending;
}

/// A CPU whose queue others may see with one task more or less than the shadow's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The CPU.
    pub cpu: CpuId,
    /// One more; otherwise one less.
    pub more: bool,
}

/// When a task next enters the queue of each CPU, and when one next leaves it.
#[derive(Debug, Default)]
pub struct Moves {
    /// Comes.
    pub comes: BTreeMap<CpuId, Time>,
    /// Leaves.
    pub leaves: BTreeMap<CpuId, Time>,
}

impl Moves {
    /// Collects the moves in the events ahead. Those of `this` CPU are left out: they come after what it has just done.
    pub fn of<'a>(this: CpuId, ahead: impl Iterator<Item = &'a Event>) -> Moves {
        let mut moves = Moves::default();
        for event in ahead.filter(|event| event.cpu != this) {
            match event.kind {
                Kind::SchedWakeup { target_cpu, .. } | Kind::SchedWakeupNew { target_cpu, .. } => {
                    moves.comes.entry(target_cpu).or_insert(event.time);
                }
                Kind::SchedSwitch { prev_pid, prev_state, .. }
                    if prev_pid != Pid::IDLE && !prev_state.is_runnable() =>
                {
                    moves.leaves.entry(event.cpu).or_insert(event.time);
                }
                Kind::SchedMigrateTask { orig_cpu, dest_cpu, .. } => {
                    moves.comes.entry(dest_cpu).or_insert(event.time);
                    moves.leaves.entry(orig_cpu).or_insert(event.time);
                }
                _ => {}
            }
        }
        moves
    }
}

/// CPUs where a task arrived since `from`, or arrives or leaves soon: others may count one task less or more.
fn counted<'a>(
    shadow: &Shadow,
    this: CpuId,
    from: Time,
    ahead: impl Iterator<Item = &'a Event>,
) -> Vec<Counted> {
    let Moves { mut comes, mut leaves } = Moves::of(this, ahead);
    for moves in [&mut comes, &mut leaves] {
        moves.retain(|&cpu, _| shadow.has_cpu(cpu));
    }
    let came = shadow.cpus().filter(|&cpu| shadow.clocks.queued_at(cpu) >= from);
    let mut less: Vec<CpuId> = leaves.into_keys().collect();
    less.extend(came);
    less.sort_unstable();
    less.dedup();
    let less = less.into_iter().map(|cpu| Counted { cpu, more: false });
    less.chain(comes.into_keys().map(|cpu| Counted { cpu, more: true })).collect()
}

/// Runs `look` on the shadow with one task more or less on a CPU.
pub fn as_if_counted<T>(shadow: &mut Shadow, counted: Counted, look: impl FnOnce(&mut Shadow) -> T) -> T {
    let Counted { cpu, more } = counted;
    let before = counts(shadow, cpu);
    set_counts(shadow, cpu, before.map(|count| if more { count + 1 } else { count.saturating_sub(1) }));
    let result = shadow.suppose(look);
    set_counts(shadow, cpu, before);
    result
}

/// Numbers of tasks on a CPU: all tasks; fair tasks in its root queue; fair tasks in all queues below; the same without
/// sleepers.
pub fn counts(shadow: &Shadow, cpu: CpuId) -> [u32; 4] {
    let cfs = shadow.sched.root_cfs(cpu);
    [shadow.sched.rqs[cpu].nr_running, cfs.nr_queued, cfs.h_nr_queued, cfs.h_nr_runnable]
}

/// Sets the numbers of tasks on a CPU.
pub fn set_counts(shadow: &mut Shadow, cpu: CpuId, counts: [u32; 4]) {
    let root = shadow.sched.root_cfs_id(cpu).0 as usize;
    let cfs = &mut shadow.sched.cfs_rqs[root];
    [shadow.sched.rqs[cpu].nr_running, cfs.nr_queued, cfs.h_nr_queued, cfs.h_nr_runnable] = counts;
}

/// Since when a CPU has been idle or busy.
pub fn state_since(shadow: &Shadow, cpu: CpuId) -> Time {
    match (shadow.sched.rqs[cpu].curr, shadow.sched.idle_cpu(cpu)) {
        (Curr::Task(_), _) => shadow.clocks.roused(cpu),
        (Curr::Idle, false) => shadow.clocks.queued_at(cpu),
        (Curr::Idle, true) => shadow.clocks.went_idle(cpu),
    }
}

/// Asks with a task still on its CPU.
pub fn as_if_on_cpu<T>(shadow: &mut Shadow, task: TaskId, look: impl FnOnce(&mut Shadow) -> T) -> T {
    shadow.sched.task_mut(task).on_cpu = true;
    let result = look(shadow);
    shadow.sched.task_mut(task).on_cpu = false;
    result
}

/// Runs `look` on the shadow with a CPU already changed. A CPU that is idle has dequeued its sleepers.
pub fn as_if<T>(shadow: &mut Shadow, changing: Changing, look: impl FnOnce(&mut Shadow) -> T) -> T {
    let cpu = changing.cpu;
    let counted = counts(shadow, cpu);
    let rq = &mut shadow.sched.rqs[cpu];
    let before = (rq.curr, rq.ttwu_pending);
    if changing.idle {
        (rq.curr, rq.ttwu_pending) = (Curr::Idle, false);
        set_counts(shadow, cpu, [0; 4]);
    } else {
        rq.nr_running = rq.nr_running.max(1);
    }
    let result = shadow.suppose(look);
    set_counts(shadow, cpu, counted);
    let rq = &mut shadow.sched.rqs[cpu];
    (rq.curr, rq.ttwu_pending) = before;
    result
}

fn beyond(case: &Case<'_>, candidates: &mut Vec<Candidate>) {
    candidates.extend(case.states.iter().map(|&cpu| other_state(case, cpu)));
    let moves = Moves::of(case.this, case.pairing.ahead(Time::MAX));
    candidates.extend(case.queues.iter().flat_map(|&cpu| other_count(case, &moves, cpu)));
    let (shadow, task, now) = (case.shadow, case.task, case.now);
    let entry = shadow.sched.task(task);
    match case.of {
        Of::Wakeup { fate, .. } => {
            // It was switched out so recently that it may still have been on its CPU.
            let lately = now.since(shadow.known(task).left) <= shadow.slack.time() * 4;
            if fate.stays_on(entry.cpu) && fate.by == entry.cpu && lately {
                let had = Otherwise::plain("ON_CPU", "the task had still been on its CPU");
                let as_if = move |shadow: &mut Shadow, look: Look<'_>| as_if_on_cpu(shadow, task, look);
                candidates.push(Candidate::new(had, as_if).late());
            }
        }
        Of::Move { from, .. } => {
            if !entry.on_rq || entry.cpu != from || shadow.runs(task) || entry.se.sched_delayed {
                let had = Otherwise::plain("WAITED", "the task had waited there");
                let as_if =
                    move |shadow: &mut Shadow, look: Look<'_>| as_if_waiting(shadow, task, from, now, look);
                candidates.push(Candidate::moving(had, as_if).late());
            }
        }
        Of::Placement { .. } | Of::Order { .. } => {}
    }
}

/// A busy CPU had been idle, or the reverse: how long ago it was so, or how soon it will be.
fn other_state(case: &Case<'_>, cpu: CpuId) -> Candidate {
    let idle = !case.shadow.sched.idle_cpu(cpu);
    let ago = case.now.since(state_since(case.shadow, cpu)).0;
    let mut ahead = case.pairing.shown(Time::MAX);
    let comes = ahead.find(|shown| shown.cpu == cpu && shown.idle == Some(idle));
    let soon = comes.map_or(u64::MAX, |shown| shown.time.since(case.now).0);
    let (name, state) = if idle { ("CPU_IDLE", "idle") } else { ("CPU_BUSY", "busy") };
    let longer = if ago <= soon { "longer" } else { "sooner" };
    let had = Otherwise::plain(name, format!("CPU {cpu} had been {state} {longer}"));
    Candidate::new(had.by(ago.min(soon), case.shadow.slack.time().0), move |shadow, look| {
        as_if(shadow, Changing { cpu, idle }, look)
    })
}

/// One task fewer or one more had been queued on a CPU: how long ago the last one came, how soon one leaves, and how soon
/// one comes.
fn other_count(case: &Case<'_>, moves: &Moves, cpu: CpuId) -> [Candidate; 2] {
    let error = case.shadow.slack.time().0;
    let soon = |by: &BTreeMap<CpuId, Time>| by.get(&cpu).map(|&time| time.since(case.now).0);
    let came = case.now.since(case.shadow.clocks.queued_at(cpu)).0;
    let less = came.min(soon(&moves.leaves).unwrap_or(u64::MAX));
    let fewer = Otherwise::plain("ONE_LESS_QUEUED", format!("one task fewer had been queued on CPU {cpu}"));
    let more = Otherwise::plain("ONE_MORE_QUEUED", format!("one more task had been queued on CPU {cpu}"));
    let more = match soon(&moves.comes) {
        Some(soon) => more.by(soon, error),
        None => more,
    };
    let value = |had, more| {
        Candidate::new(had, move |shadow, look| as_if_counted(shadow, Counted { cpu, more }, look))
    };
    [value(fewer.by(less, error), false), value(more, true)]
}

/// Asks with a moved task waiting on the CPU from which it was taken.
fn as_if_waiting(shadow: &mut Shadow, task: TaskId, from: CpuId, now: Time, look: Look<'_>) -> bool {
    let (known, generation) = (shadow.known(task).clone(), shadow.generation);
    let waits = |shadow: &mut Shadow| {
        if shadow.runs(task) {
            shadow.sched.put_prev(from);
            shadow.sched.rqs[from].curr = Curr::Idle;
        } else {
            shadow.join(task, from, now);
        }
    };
    let leads = with_copy(shadow, waits, look);
    *shadow.known_mut(task) = known;
    shadow.generation = generation;
    leads
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_sched::Kernel;
    use schedlab_topology::Topology;
    use schedlab_trace::Comm;
    use schedlab_units::Duration;

    #[test]
    fn a_cpu_seen_idle_has_nobody_queued_not_even_a_sleeper() {
        let topology = Topology::regular("1x1x2").unwrap();
        let mut shadow = Shadow::new(&topology, &Kernel::parse("v7.2").unwrap(), Vec::new());
        let (cpu, queued) = (CpuId(1), [2, 2, 2, 1]);
        set_counts(&mut shadow, cpu, queued);
        let seen = as_if(&mut shadow, Changing { cpu, idle: true }, |shadow| counts(shadow, cpu));
        assert_eq!(seen, [0; 4]);
        assert_eq!(counts(&shadow, cpu), queued, "only that once");
        let more = as_if_counted(&mut shadow, Counted { cpu, more: true }, |shadow| counts(shadow, cpu));
        assert_eq!(more, [3, 3, 3, 2]);
    }

    #[test]
    fn a_waker_may_have_looked_at_a_cpu_before_another_had_queued_its_task_there() {
        let topology = Topology::regular("1x1x3").unwrap();
        let mut shadow = Shadow::new(&topology, &Kernel::parse("v6.12").unwrap(), Vec::new());
        let (queued, cpu) = (Time(1_000_000), CpuId(2));
        shadow.begin(queued);
        let task = shadow.task(Pid(7), &Comm::from("a"), Some(120), cpu, queued);
        shadow.join(task, cpu, queued);
        shadow.clocks.queued(cpu, Duration::ZERO, queued);
        let chosen = |shadow: &Shadow, this: u16, from: u64| {
            just_chosen(shadow, CpuId(this), Time(from)).map(|chosen| chosen.cpu).collect::<Vec<_>>()
        };
        assert_eq!(chosen(&shadow, 0, 999_000), [cpu]);
        assert_eq!(chosen(&shadow, 0, 1_000_001), [], "that was before");
        assert_eq!(chosen(&shadow, 2, 999_000), [], "it knows its own queue");
        shadow.sched.rqs[cpu].curr = Curr::Task(task);
        assert_eq!(chosen(&shadow, 0, 999_000), [], "it runs");
    }
}
