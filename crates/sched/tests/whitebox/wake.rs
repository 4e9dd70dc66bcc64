//! The steps of a wake-up, decided again.

use std::cell::RefCell;
use std::collections::BTreeMap;

use schedlab_sched::wakeup::{
    EffectiveLoads, select_idle_sibling, wake_affine, wake_affine_weight, wake_wide,
};
use schedlab_sched::{Candidate, Feature, Reason, Refused, SdFlags, View, Wakees, Wakeup};
use schedlab_topology::CpuId;

use crate::choice::Choice;
use crate::recording::{Recording, int};
use crate::score::Scores;
use crate::snapshot::{NOW, State};

/// Everything a choice needs from the scheduler's state.
pub fn prepare(state: &mut State, choice: &Choice) -> Wakeup {
    let waker = (choice.waker != 0).then(|| state.task(choice.waker));
    let task = state.task(choice.pid());
    state.allow(task, int(&choice.sel, "mask") as u64);
    let sel = &choice.sel;
    let p = state.sched.task_mut(task);
    p.cpu = choice.prev();
    p.wake_cpu = choice.prev();
    p.wakee_flips = int(sel, "flips") as u32;
    p.recent_used_cpu = Some(CpuId(int(sel, "ruc") as u16));
    p.se.avg.load_avg = int(sel, "load") as u64;
    p.se.avg.util_avg = int(sel, "util") as u64;
    p.se.avg.runnable_avg = int(sel, "util") as u64;
    // A new task is attached to no queue.
    p.se.avg.last_update_time = u64::from(!choice.has(4));
    p.on_rq = choice.has(2);
    // The top bit marks an estimate that is up to date.
    let estimate = int(sel, "ue") as u32 & 0x7fff_ffff;
    (p.util_est_enqueued, p.util_est_ewma) = (estimate, estimate);
    if let Some(waker) = waker {
        let bound = is_bound_kthread(&choice.comm);
        let mask = if bound { 1 << choice.cpu.0 } else { 0xffff };
        state.allow(waker, mask);
        let waker = state.sched.task_mut(waker);
        waker.kthread = bound;
        waker.exiting = choice.exiting;
    }
    Wakeup {
        task,
        waker,
        this_cpu: choice.cpu,
        sync: choice.sync(),
        in_task: choice.in_task,
        current_cpu: choice.has(0x40),
    }
}

/// The names of per-CPU kernel threads end in a slash and the CPU's number.
pub fn is_bound_kthread(comm: &str) -> bool {
    comm.split_once('/').is_some_and(|(_, rest)| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Gives the waker its flips after this wake-up was counted.
fn set_waker_flips(state: &mut State, wakeup: &Wakeup, flips: u32) {
    let jiffies = state.sched.jiffies(NOW);
    let wakees = Wakees { flips, flip_decay: jiffies, last: Some(wakeup.task) };
    match wakeup.waker {
        Some(waker) => {
            let waker = state.sched.task_mut(waker);
            (waker.wakee_flips, waker.wakee_flip_decay, waker.last_wakee) =
                (wakees.flips, wakees.flip_decay, wakees.last);
        }
        None => state.sched.rqs[wakeup.this_cpu].idle_wakees = wakees,
    }
}

pub fn judge_wide(scores: &mut Scores, recording: &Recording, state: &mut State, choice: &Choice) {
    let Some(ww) = &choice.wide else { return };
    let wakeup = prepare(state, choice);
    let (waker, wakee) = (int(ww, "waker") as u32, int(ww, "wakee") as u32);
    set_waker_flips(state, &wakeup, waker);
    state.sched.task_mut(wakeup.task).wakee_flips = wakee;
    let factor = state.sched.domains.per_cpu[choice.cpu].llc_size;
    assert_eq!(factor, int(ww, "llc") as u32);
    let wide = wake_wide(&View::new(&state.sched, NOW, None), &wakeup);
    let allowed = state.sched.task(wakeup.task).allowed.contains(choice.cpu);
    match choice.affine {
        Some((tried, _)) if choice.cpu != choice.prev() => {
            let same = tried == (!wide && allowed);
            scores.judge(recording, "wake_wide", false, same, || {
                format!("{waker} {wakee}: {wide}, tried {tried}")
            });
        }
        _ => scores.of(recording, "wake_wide").hidden += 1,
    }
}

pub fn judge_affine(scores: &mut Scores, recording: &Recording, state: &mut State, choice: &Choice) {
    let (Some(target), Some((search_time, _))) = (choice.target, &choice.search) else { return };
    let (this, prev) = (choice.cpu, choice.prev());
    let Some((true, _)) = choice.affine else { return };
    if this == prev {
        return;
    }
    let wakeup = prepare(state, choice);
    state.set(&choice.cpus.1);
    let moving = choice.moved(&recording.events, choice.cpus.0, *search_time);
    let sync = choice.sync();
    // The idle half alone: without weights, no opinion shows as the previous CPU by weight.
    let weighs = state.sched.kernel.has(Feature::WaWeight);
    state.sched.kernel.features.set(Feature::WaWeight, false);
    let answer = |state: &State| {
        let view = View::new(&state.sched, NOW, None);
        let domains = &state.sched.domains;
        let (_, sd) = domains
            .walk(this)
            .find(|(_, sd)| sd.flags.has(SdFlags::WAKE_AFFINE) && sd.span.contains(prev))
            .expect("the machine is one domain");
        wake_affine(&view, &wakeup, sd, prev, sync)
    };
    let mut idle = answer(state);
    if idle.reason != Reason::WaSync && sync && choice.weight.is_none() && target == this {
        // The number of delayed tasks of this CPU is not recorded; all but the waker are assumed.
        let root = &mut state.sched.cfs_rqs[this.index()];
        root.h_nr_runnable = root.h_nr_queued.min(1);
        idle = answer(state);
    }
    state.sched.kernel.features.set(Feature::WaWeight, weighs);
    if idle.reason == Reason::WaWeightPrev && sync && choice.weight.is_none() && target == this {
        // The waker's load alone is more than its CPU's: decided before the weights are compared.
        scores.of(recording, "wake_affine_weight").hidden += 1;
        return;
    }
    let shown = || {
        format!(
            "this {this} prev {prev} sync {sync}: {idle:?}, weighed {}, target {target}",
            choice.weight.is_some()
        )
    };
    if idle.reason != Reason::WaWeightPrev {
        let same = idle.cpu == target && choice.weight.is_none();
        scores.judge(recording, "wake_affine_idle", moving, same, shown);
        return;
    }
    scores.judge(recording, "wake_affine_idle", moving, choice.weight.is_some(), shown);
    if let Some(weight) = &choice.weight {
        let (left, right) = (int(weight, "this"), int(weight, "prev"));
        let pulls = EffectiveLoads::Compared { this: left, prev: right }.pulls();
        let same = target == if pulls { this } else { prev };
        scores.judge(recording, "wake_affine_weight", false, same, || {
            format!("{left} {right}, target {target}")
        });
    }
}

pub fn judge_search(scores: &mut Scores, recording: &Recording, state: &mut State, choice: &Choice) {
    let (Some(target), Some((time, snapshot))) = (choice.target, &choice.search) else { return };
    let wakeup = prepare(state, choice);
    state.set(snapshot);
    let moving = choice.moved(&recording.events, *time, choice.ret.0);
    let view = View::new(&state.sched, NOW, None);
    let placement = select_idle_sibling(&view, &wakeup, choice.prev(), target);
    let same = placement.cpu == choice.ret.1;
    scores.judge(recording, "select_idle_sibling", moving, same, || {
        let idle: Vec<String> = snapshot
            .cpus
            .iter()
            .enumerate()
            .filter(|(_, cpu)| cpu.is_idle())
            .map(|(cpu, _)| cpu.to_string())
            .collect();
        format!(
            "target {target} prev {} ruc {} by {} on {}: {} {}, recorded {}; idle {}; caches {:?}",
            choice.prev(),
            int(&choice.sel, "ruc"),
            choice.comm,
            choice.cpu,
            placement.cpu,
            placement.reason.name(),
            choice.ret.1,
            idle.join(","),
            snapshot.llcs,
        )
    });
}

/// The order in which the search checks CPUs; on machines without SMT, where each check is of a candidate.
pub fn judge_order(scores: &mut Scores, recording: &Recording, state: &mut State, choice: &Choice) {
    let (Some(target), Some((time, snapshot))) = (choice.target, &choice.search) else { return };
    if choice.asked.is_empty() || recording.topology.is_smt() {
        return;
    }
    let wakeup = prepare(state, choice);
    state.set(snapshot);
    let passed_over = RefCell::default();
    let view = View::new(&state.sched, NOW, Some(&passed_over));
    let placement = select_idle_sibling(&view, &wakeup, choice.prev(), target);
    let passed_over = passed_over.into_inner();
    let busy = |passed: &&Candidate| matches!(passed.refused, Refused::Busy | Refused::WakePending);
    let mut asked: Vec<CpuId> = passed_over.iter().filter(busy).map(|passed| passed.cpu).collect();
    let found_idle = !matches!(
        placement.reason,
        Reason::KthreadStack | Reason::NoIdleCpu | Reason::ScanLimit | Reason::NoScan | Reason::NoLlc
    );
    asked.extend(found_idle.then_some(placement.cpu));
    let moving = choice.moved(&recording.events, *time, choice.ret.0);
    scores.judge(recording, "order of the search", moving, asked == choice.asked, || {
        format!("asked {asked:?}, recorded {:?}; {}", choice.asked, placement.reason.name())
    });
}

/// The terms of the comparison of loads. The wakee's load is not recorded; it follows from one side, and must
/// lead to the other side. A synchronous waker's load is the third unknown, so there only the form of the
/// numbers is judged.
pub fn judge_weight(scores: &mut Scores, recording: &Recording, state: &mut State, choice: &Choice) {
    let (Some(weight), Some((search_time, _))) = (&choice.weight, &choice.search) else { return };
    let (this, prev, sync) = (choice.cpu, choice.prev(), choice.sync());
    let wakeup = prepare(state, choice);
    state.set(&choice.cpus.1);
    let load = |cpu: CpuId| choice.cpus.1.cpus[cpu.index()].load.unwrap() as i64;
    let domains = &state.sched.domains;
    let (id, sd) = domains.walk(this).find(|(_, sd)| sd.span.contains(prev)).unwrap();
    let bias = 100 + (i64::from(sd.imbalance_pct) - 100) / 2;
    let recorded = (int(weight, "this"), int(weight, "prev"));
    let wakee = load(prev) - (recorded.1 - i64::from(sync)) / (bias * 1024);
    let waker = if sync { load(this) + wakee - recorded.0 / (100 * 1024) } else { 0 };
    let moving = choice.moved(&recording.events, choice.cpus.0, *search_time);
    let possible = wakee >= 0 && waker >= 0 && (!sync || wakeup.waker.is_some());
    if possible {
        state.contribute(wakeup.task, prev, wakee as u64);
        if let Some(waking) = wakeup.waker.filter(|_| sync) {
            state.contribute(waking, this, waker as u64);
        }
    }
    let view = View::new(&state.sched, NOW, None);
    let computed = wake_affine_weight(&view, &wakeup, state.sched.domains.sd(id), prev, sync);
    let same = possible && computed == EffectiveLoads::Compared { this: recorded.0, prev: recorded.1 };
    scores.judge(recording, "wake_affine_weight, terms", moving, same, || {
        let loads = (load(this), load(prev));
        format!("{this} {prev} {loads:?} sync {sync} {possible}: {computed:?}, recorded {recorded:?}")
    });
}

/// The largest delay from the start of the trace's clock to the kernel's first tick.
const LAG_TICKS: u64 = 27;

/// Wakee state, carried from one wake-up to the next.
#[derive(Default)]
pub struct Wakers(BTreeMap<i64, Wakees>);

impl Wakers {
    /// The flips a waker should have after this wake-up, if all wake-ups were seen.
    pub fn judge(&mut self, scores: &mut Scores, recording: &Recording, state: &mut State, choice: &Choice) {
        let sel = &choice.sel;
        let task = state.task(choice.pid());
        let last = sel.int("lw").filter(|&pid| pid > 0).map(|pid| state.task(pid));
        let wakees = Wakees { flips: int(sel, "flips") as u32, flip_decay: int(sel, "fts") as u64, last };
        self.0.insert(choice.pid(), wakees);
        let Some(ww) = &choice.wide else { return };
        let flips = int(ww, "waker") as u32;
        let Some(waker) = self.0.get_mut(&choice.waker).filter(|_| choice.waker != 0) else {
            scores.of(recording, "record_wakee").hidden += 1;
            return;
        };
        // The counter of ticks starts at 2^32 - 300 s, a little after the trace's clock;
        // around the end of the second either answer may be right.
        let hz = recording.kernel.tunables.hz;
        let latest = (1u64 << 32) - 300 * hz + choice.cpus.0.0 / (1_000_000_000 / hz);
        let after = [latest - LAG_TICKS, latest].map(|jiffies| waker.after(task, jiffies, hz));
        let found = after.into_iter().find(|after| after.flips == flips);
        let before = *waker;
        *waker = Wakees { flips, ..found.unwrap_or(after[0]) };
        scores.judge(recording, "record_wakee", false, found.is_some(), || {
            let (who, whom) = (choice.waker, choice.pid());
            format!("{who} wakes {whom} at {latest}: {before:?}, {after:?}, recorded {flips}")
        });
    }
}

pub fn judge_remote(scores: &mut Scores, recording: &Recording, state: &mut State, choice: &Choice) {
    let (Some((remote_time, remote)), Some((time, snapshot))) = (choice.remote, &choice.search) else {
        return;
    };
    let wakeup = prepare(state, choice);
    state.set(snapshot);
    let moving = choice.moved(&recording.events, *time, remote_time);
    let decided = state.sched.ttwu_queue_cond(&wakeup, choice.ret.1, false);
    let cpu = choice.ret.1;
    scores.judge(recording, "ttwu_queue_cond", moving, decided == remote, || {
        format!("{} to {cpu}: {decided}, recorded {remote}; {:?}", choice.cpu, snapshot.cpus[cpu.index()])
    });
}
