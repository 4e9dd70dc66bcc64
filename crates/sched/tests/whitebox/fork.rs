//! The steps of a fork or exec, decided again.

use std::collections::BTreeMap;

use schedlab_sched::wakeup::{find_idlest_group, find_idlest_group_cpu};
use schedlab_sched::{Reason, SgId, View};
use schedlab_topology::{CpuId, CpuMask};

use crate::choice::Choice;
use crate::recording::Recording;
use crate::score::Scores;
use crate::snapshot::{NOW, State};
use crate::wake::prepare;

/// The known estimates of running tasks, by pid.
pub type Estimates = BTreeMap<i64, u32>;

pub fn judge_groups(
    scores: &mut Scores,
    recording: &Recording,
    state: &mut State,
    choice: &Choice,
    estimates: &Estimates,
) {
    let wakeup = prepare(state, choice);
    for group in &choice.groups {
        state.set(&choice.cpus.1);
        let mut hidden = false;
        for (at, cpu) in choice.cpus.1.cpus.iter().enumerate() {
            let avg = &mut state.sched.cfs_rqs[at].avg;
            avg.util_avg = group.util[at];
            avg.runnable_avg = group.runnable[at];
            let estimate = match cpu.nr_running {
                0 => Some(0),
                1 => estimates.get(&cpu.curr).copied(),
                _ => None,
            };
            hidden |= estimate.is_none();
            state.sched.rqs[CpuId::from(at)].util_est_enqueued = estimate.unwrap_or(0);
        }
        let moving = choice.moved(&recording.events, choice.cpus.0, group.end);
        let view = View::new(&state.sched, NOW, None);
        let domains = &state.sched.domains;
        let (_, sd) = domains.walk(group.cpu).find(|(_, sd)| sd.span_weight == group.weight).unwrap();
        let found = find_idlest_group(&view, sd, wakeup.task, group.cpu, choice.has(4));
        let mask = |span: &CpuMask| span.iter().fold(0u64, |mask, cpu| mask | 1 << cpu.0);
        let found = found.map(|id| mask(&domains.sg(id).span));
        let step = if choice.has(4) { "find_idlest_group, fork" } else { "find_idlest_group, exec" };
        let same = found == group.chosen;
        if !same && hidden && !moving {
            scores.of(recording, step).hidden += 1;
            continue;
        }
        scores.judge(recording, step, moving, same, || {
            format!(
                "{} of {} at CPU {}: {found:x?}, recorded {:x?}; {:?}; util {:?} runnable {:?}",
                sd.name,
                group.weight,
                group.cpu,
                group.chosen,
                choice.cpus.1.cpus.iter().map(|c| c.nr_running).collect::<Vec<_>>(),
                group.util,
                group.runnable,
            )
        });
    }
}

/// The CPU taken in the chosen group: where the walk continues, or ends.
pub fn judge_group_cpus(scores: &mut Scores, recording: &Recording, state: &mut State, choice: &Choice) {
    let wakeup = prepare(state, choice);
    for (at, group) in choice.groups.iter().enumerate() {
        let Some(mask) = group.chosen else { continue };
        state.set(&choice.cpus.1);
        for (cpu, &stamp) in group.stamps.iter().enumerate() {
            state.sched.rqs[CpuId::from(cpu)].idle_stamp = stamp;
        }
        let domains = &state.sched.domains;
        let is_chosen =
            |id: &SgId| domains.sg(*id).span.iter().fold(0u64, |mask, cpu| mask | 1 << cpu.0) == mask;
        let (_, sd) = domains.walk(group.cpu).find(|(_, sd)| sd.span_weight == group.weight).unwrap();
        let id = sd.groups.iter().find(is_chosen).expect("a group of the domain");
        let view = View::new(&state.sched, NOW, None);
        let (cpu, reason) = find_idlest_group_cpu(&view, domains.sg(id), wakeup.task, group.cpu);
        let (next, until) = match choice.groups.get(at + 1) {
            Some(next) => (next.cpu, next.end),
            None => (choice.ret.1, choice.ret.0),
        };
        // A CPU that went idle before the recording did so earlier, at an unknown time.
        let unknown = reason == Reason::IdlestRecent && group.stamps[cpu.index()] <= 1;
        if unknown && cpu != next {
            scores.of(recording, "find_idlest_group_cpu").hidden += 1;
            continue;
        }
        let moving = choice.moved(&recording.events, choice.cpus.0, until);
        scores.judge(recording, "find_idlest_group_cpu", moving, cpu == next, || {
            let (from, stamps) = (group.cpu, &group.stamps);
            format!("{mask:x} from {from}: {cpu} {}, recorded {next}; stamps {stamps:?}", reason.name())
        });
    }
}
