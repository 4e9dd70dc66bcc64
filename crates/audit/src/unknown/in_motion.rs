//! CPUs whose state is just changing.
//!
//! Whatever happens on a CPU within the time in which events of two CPUs may overlap may have been visible already.

use std::collections::BTreeMap;

use schedlab_sched::Curr;
use schedlab_topology::CpuId;
use schedlab_trace::{Event, Kind};
use schedlab_units::{Pid, TaskId, Time};

use super::Shadow;
use crate::follow::pairing::Shown;

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
pub fn changing<'a>(shadow: &Shadow, this: CpuId, ahead: impl Iterator<Item = &'a Shown>) -> Vec<Changing> {
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
pub fn changed(shadow: &Shadow, from: Time) -> Vec<Changing> {
    let recent = shadow.cpus().filter(|&cpu| state_since(shadow, cpu) >= from);
    recent.map(|cpu| Changing { cpu, idle: !shadow.sched.idle_cpu(cpu) }).collect()
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
pub fn counted<'a>(
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

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_sched::Kernel;
    use schedlab_topology::Topology;

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
}
