//! The steps of load balancing, decided again.

use std::collections::BTreeSet;

use expect_test::expect;
use schedlab_sched::{
    BalanceDecision, CanMigrate, Feature, IdleType, MigrationType, NotMoved, Sched, SdFlags, SdId, Step,
};
use schedlab_topology::{CpuId, CpuMask};
use schedlab_units::{TaskId, Time};

use crate::pass::{Asked, Gate, Item, Pass, items};
use crate::queues::{Queues, bound_to};
use crate::recording::{Recording, int};
use crate::score::Scores;
use crate::snapshot::NOW;

#[test]
fn balancing_decides_what_the_kernels_decided() {
    let mut scores = Scores::default();
    for recording in Recording::all() {
        let mut queues = Queues::new(&recording);
        for item in items(&recording) {
            match item {
                Item::Gate(gate) => judge_gate(&mut scores, &recording, &mut queues, &gate),
                Item::Pass(pass) => judge_pass(&mut scores, &recording, &mut queues, &pass),
                Item::Active(asked) => {
                    let sd = queues.lowest_with(asked.cpu("dst"), asked.cpu("src"));
                    judge_can_migrate(&mut scores, &recording, &mut queues, &asked, sd, IdleType::Idle);
                }
            }
        }
    }
    // Those that differ: two CPUs made the pass of one CPU's domain at the same time.
    for difference in &scores.differences {
        println!("{difference}");
    }
    expect![[r#"
        6.1 calculate_imbalance: 76 of 76; moving 122 of 140; hidden 55
        6.1 can_migrate_task: 613 of 613; moving 61 of 61; hidden 38
        6.1 detach_tasks: 48 of 48; moving 117 of 124; hidden 20
        6.1 find_busiest_group: 3116 of 3116; moving 3846 of 3946; hidden 242
        6.1 find_busiest_queue: 71 of 71; moving 121 of 127; hidden 0
        6.1 load_balance, failures and interval: 7217 of 7219; moving 0 of 0; hidden 0
        6.1 need_active_balance: 24 of 24; moving 21 of 22; hidden 0
        6.1 newidle_balance, whether it begins: 8247 of 8247; moving 765 of 781; hidden 554
        6.1 should_we_balance: 2765 of 2765; moving 1757 of 1769; hidden 12
        6.1 should_we_balance, newly idle: 3141 of 3141; moving 1036 of 1087; hidden 0
        6.12 calculate_imbalance: 109 of 109; moving 213 of 229; hidden 78
        6.12 can_migrate_task: 1271 of 1271; moving 108 of 108; hidden 148
        6.12 detach_tasks: 38 of 38; moving 207 of 239; hidden 36
        6.12 find_busiest_group: 3836 of 3836; moving 3871 of 3982; hidden 1092
        6.12 find_busiest_queue: 101 of 101; moving 212 of 221; hidden 0
        6.12 load_balance, failures and interval: 8344 of 8344; moving 0 of 0; hidden 0
        6.12 need_active_balance: 33 of 33; moving 88 of 88; hidden 0
        6.12 newidle_balance, whether it begins: 7769 of 7769; moving 752 of 770; hidden 571
        6.12 should_we_balance: 3428 of 3428; moving 1812 of 1823; hidden 22
        6.12 should_we_balance, newly idle: 3861 of 3861; moving 1530 of 1597; hidden 8
        7.2 calculate_imbalance: 96 of 96; moving 188 of 207; hidden 39
        7.2 can_migrate_task: 944 of 944; moving 170 of 170; hidden 408
        7.2 detach_tasks: 18 of 18; moving 93 of 112; hidden 146
        7.2 find_busiest_group: 3876 of 3876; moving 4624 of 4797; hidden 1478
        7.2 find_busiest_queue: 79 of 79; moving 197 of 205; hidden 0
        7.2 load_balance, failures and interval: 9303 of 9304; moving 0 of 0; hidden 0
        7.2 need_active_balance: 17 of 17; moving 25 of 25; hidden 0
        7.2 newidle_balance, whether it begins: 7205 of 7205; moving 1343 of 1350; hidden 548
        7.2 should_we_balance: 3069 of 3069; moving 2304 of 2315; hidden 67
        7.2 should_we_balance, newly idle: 4173 of 4173; moving 2539 of 2763; hidden 192
    "#]]
    .assert_eq(&scores.table());
    scores.check();
}

fn mask(span: &CpuMask) -> u64 {
    span.iter().fold(0, |mask, cpu| mask | 1 << cpu.0)
}

fn judge_gate(scores: &mut Scores, recording: &Recording, queues: &mut Queues, gate: &Gate) {
    const STEP: &str = "newidle_balance, whether it begins";
    let sched = &mut queues.sched;
    let base = sched.domains.per_cpu[gate.cpu].base.expect("a domain");
    let (idle, cost) = (int(&gate.ni, "ai") as u64, int(&gate.ni, "cost") as u64);
    sched.rqs[gate.cpu].avg_idle = idle;
    sched.domains.overload = int(&gate.ni, "over") != 0;
    sched.domains.sd_mut(base).max_newidle_lb_cost = cost;
    let refused = sched.newidle_gate(gate.cpu, base);
    // Before its first domain it decays averages, which takes time: a narrow margin is not enough.
    let scarce = refused.is_none() && idle - cost < 200_000;
    if !gate.went_on && (scarce || gate.pending) {
        scores.of(recording, STEP).hidden += 1;
        return;
    }
    scores.judge(recording, STEP, gate.moved, gate.went_on == refused.is_none(), || {
        format!("CPU {} at {}: {refused:?}, recorded {}", gate.cpu, gate.time, gate.went_on)
    });
}

fn judge_can_migrate(
    scores: &mut Scores,
    recording: &Recording,
    queues: &mut Queues,
    asked: &Asked,
    sd: SdId,
    idle: IdleType,
) {
    const STEP: &str = "can_migrate_task";
    let hidden = |scores: &mut Scores| scores.of(recording, STEP).hidden += 1;
    let (src, dst) = (asked.cpu("src"), asked.cpu("dst"));
    let ago = asked.task.charged.map(|charged| asked.time.0 - charged.0);
    let task = queues.describe(asked.int("pid"), &asked.task, ago);
    if !queues.sched.task(task).se.on_rq {
        queues.sched.set_cpu(task, src);
    }
    let entry = queues.sched.task_mut(task);
    let was = (entry.on_cpu, entry.se.sched_delayed);
    (entry.on_cpu, entry.se.sched_delayed) = (asked.running, asked.task.asleep);
    let question = CanMigrate {
        task,
        src,
        dst,
        sd,
        idle,
        migration_type: migration_type(asked.int("mt")),
        active: asked.int("efl") & 0x10 != 0,
    };
    let answer = queues.sched.can_migrate_task(&question, NOW);
    let entry = queues.sched.task_mut(task);
    (entry.on_cpu, entry.se.sched_delayed) = was;
    if unsure(queues, asked, answer) {
        return hidden(scores);
    }
    scores.judge(recording, STEP, asked.moved, answer.is_ok() == asked.answer, || {
        format!(
            "{} {} at {} from {src} to {dst}: {answer:?}, recorded {}; ran {ago:?} ago, mask {:x?}",
            asked.int("pid"),
            asked.task.comm,
            asked.time,
            asked.answer,
            asked.task.mask,
        )
    });
}

/// Whether a fact that an answer depends on was not seen.
fn unsure(queues: &Queues, asked: &Asked, answer: Result<(), NotMoved>) -> bool {
    let sched = &queues.sched;
    // st-main binds itself, which no event shows.
    let task = &asked.task;
    let bound = task.comm == "st-main" || task.mask.is_none() && bound_to(&task.comm).is_none();
    // Whether it is eligible, and the contents of caches.
    let lag = sched.kernel.has(Feature::LbEligibleFirst) && !asked.dst_empty;
    let cache =
        !sched.cpus_share_cache(asked.cpu("src"), asked.cpu("dst")) && sched.kernel.has(Feature::SchedCache);
    let by_cache = cache && matches!(answer, Ok(()) | Err(NotMoved::OtherLlc | NotMoved::LeavesLlc));
    // The queue's clock excludes interrupts, which last long when a turn is lost.
    let ago = task.charged.map(|charged| asked.time.0 - charged.0);
    bound || lag || by_cache || ago.is_some_and(|ago| (490_000..700_000).contains(&ago))
}

fn migration_type(code: i64) -> MigrationType {
    use MigrationType::{LlcTask, Load, Misfit, Task, Util};
    [Load, Util, Task, Misfit, LlcTask][code as usize]
}

fn judge_pass(scores: &mut Scores, recording: &Recording, queues: &mut Queues, pass: &Pass) {
    queues.put(pass);
    let sd = queues.domain(pass.cpu, pass.weight);
    let entry = queues.sched.domains.sd_mut(sd);
    entry.nr_balance_failed = pass.int("fail") as u32;
    entry.balance_interval = pass.int("int") as u64;
    for asked in &pass.candidates {
        judge_can_migrate(scores, recording, queues, asked, sd, pass.idle);
    }
    let recorded = (pass.int("fail"), pass.int("int"));
    if let Some(expected) = queues.after.remove(&(pass.cpu, pass.weight)) {
        scores.judge(recording, "load_balance, failures and interval", false, expected == recorded, || {
            format!("{}: {expected:?}, recorded {recorded:?}", place(pass))
        });
    }
    let us = judge_us(scores, recording, queues, pass, sd);
    let after = match us {
        Some(true) => judge_busiest(scores, recording, queues, pass, sd),
        Some(false) => Some(after(&queues.sched.decide_balance(pass.cpu, sd, pass.idle, NOW))),
        None => None,
    };
    if let Some(after) = after {
        queues.after.insert((pass.cpu, pass.weight), after);
    }
}

fn after(decision: &BalanceDecision) -> (i64, i64) {
    (decision.nr_balance_failed.into(), decision.balance_interval as i64)
}

fn in_flight(queues: &Queues, pass: &Pass, sd: SdId) -> bool {
    let span = &queues.sched.domains.sd(sd).span;
    pass.in_flight.iter().any(|&cpu| span.contains(cpu))
}

/// Returns whether this CPU made the pass, if that is certain.
fn judge_us(
    scores: &mut Scores,
    recording: &Recording,
    queues: &mut Queues,
    pass: &Pass,
    sd: SdId,
) -> Option<bool> {
    let newly = pass.idle == IdleType::NewlyIdle;
    let step = if newly { "should_we_balance, newly idle" } else { "should_we_balance" };
    let ours = queues.sched.should_we_balance(pass.cpu, sd, pass.idle, NOW);
    let (time, recorded) = match pass.searches.first() {
        Some(search) => (search.time, true),
        None => (pass.end, false),
    };
    // Only one pass over nodes at a time; where the lock is taken inside, the others end here.
    let serialized = queues.sched.domains.sd(sd).flags.has(SdFlags::SERIALIZE);
    if !recorded && serialized && pass.contended {
        scores.of(recording, step).hidden += 1;
        return None;
    }
    let changing = if newly { pass.in_flight.contains(&pass.cpu) } else { in_flight(queues, pass, sd) };
    scores.judge(recording, step, pass.moved(time) || changing, ours == recorded, || {
        let idle: Vec<usize> = (0..pass.cpus.len()).filter(|&cpu| pass.cpus[cpu].is_idle()).collect();
        format!("{}: {ours}; idle {idle:?}", place(pass))
    });
    (ours == recorded).then_some(ours)
}

fn place(pass: &Pass) -> String {
    format!("{} of {} CPUs at {} {:?}", pass.cpu, pass.weight, pass.begin, pass.idle)
}

/// The decisions of passes under all possible values of utilisation and load, which no probe saw.
#[derive(Default)]
struct Possible {
    groups: BTreeSet<Option<u64>>,
    kinds: BTreeSet<Option<(i64, i64)>>,
    sources: BTreeSet<Option<CpuId>>,
    candidates: BTreeSet<Vec<(TaskId, bool)>>,
    active: BTreeSet<bool>,
    after: BTreeSet<(i64, i64)>,
}

impl Possible {
    fn add(&mut self, sched: &Sched, decision: &BalanceDecision) {
        let group = decision.busiest.map(|id| mask(&sched.domains.sg(id).span));
        self.groups.insert(group);
        self.kinds.insert(group.map(|_| kind(decision.migration_type as i64, decision.imbalance)));
        self.sources.insert(decision.src);
        self.candidates.insert(decision.steps.iter().filter_map(asked).collect());
        self.active.insert(decision.active);
        self.after.insert(after(decision));
    }
}

/// Migration type and, for tasks, how many.
fn kind(migration_type: i64, imbalance: i64) -> (i64, i64) {
    (migration_type, if migration_type == MigrationType::Task as i64 { imbalance } else { 0 })
}

/// The question and answer of can_migrate_task that a step contains.
fn asked(step: &Step) -> Option<(TaskId, bool)> {
    match *step {
        Step::Detach { task, .. } => Some((task, true)),
        Step::Skip { task, why } => {
            Some((task, matches!(why, NotMoved::TooLarge | NotMoved::TooSmall | NotMoved::Fits)))
        }
        Step::Attach { .. } => None,
    }
}

/// Decides a pass for low and high utilisation of each group that could be busy, and with each of them as the
/// one with most load.
fn possible(queues: &mut Queues, pass: &Pass, sd: SdId) -> Possible {
    let domains = &queues.sched.domains;
    let spans: Vec<Vec<usize>> = domains
        .sd(sd)
        .groups
        .iter()
        .map(|id| domains.sg(id).span.iter().map(CpuId::index).collect())
        .collect();
    let nr = |span: &Vec<usize>| span.iter().map(|&cpu| pass.cpus[cpu].list.len()).sum::<usize>();
    let busy: Vec<usize> = (0..spans.len()).filter(|&at| nr(&spans[at]) >= spans[at].len()).collect();
    let mut possible = Possible::default();
    for heavy in 0..busy.len().max(1) {
        for high in 0..1u32 << busy.len() {
            for (at, span) in spans.iter().enumerate() {
                let place = busy.iter().position(|&group| group == at);
                let full = place.is_some_and(|place| high >> place & 1 == 1);
                let weight = if place == Some(heavy) { 4096 } else { 1024 };
                for &cpu in span {
                    let load = weight * pass.cpus[cpu].list.len() as u64;
                    let avg = &mut queues.sched.cfs_rqs[cpu].avg;
                    (avg.util_avg, avg.runnable_avg) = if full { (1024, 2048) } else { (0, 0) };
                    avg.load_avg = load;
                }
            }
            let decision = queues.sched.decide_balance(pass.cpu, sd, pass.idle, NOW);
            possible.add(&queues.sched, &decision);
        }
    }
    possible
}

/// Returns failures and interval afterwards, if they are certain.
fn judge_busiest(
    scores: &mut Scores,
    recording: &Recording,
    queues: &mut Queues,
    pass: &Pass,
    sd: SdId,
) -> Option<(i64, i64)> {
    let search = &pass.searches[0];
    let span: Vec<CpuId> = queues.sched.domains.sd(sd).span.iter().collect();
    let unknown = span.iter().any(|cpu| {
        let cpu = &pass.cpus[cpu.index()];
        !cpu.known || cpu.list.iter().any(|pid| pass.tasks[pid].asleep)
    });
    // Threads that are bound make passes fail, which marks groups; no probe shows the marks.
    let marked = recording.load == "stream-perllc";
    let by_cache = search.kind.is_some_and(|kind| kind.0 == MigrationType::LlcTask as i64);
    if unknown || marked || by_cache || pass.searches.len() > 1 {
        scores.of(recording, "find_busiest_group").hidden += 1;
        return None;
    }
    let changing = in_flight(queues, pass, sd);
    let possible = possible(queues, pass, sd);
    let mut judge = Judge { scores, recording, changing, pass, span: &span };
    judge.one_of("find_busiest_group", search.time, &possible.groups, &search.group)?;
    let after = possible.after.first().copied().filter(|_| possible.after.len() == 1);
    if search.group.is_none() {
        return after;
    }
    let first = pass.candidates.first().filter(|asked| asked.int("loop") == 1)?;
    let recorded = search.kind.unwrap_or_else(|| (first.int("mt"), first.int("imb")));
    let recorded = Some(kind(recorded.0, recorded.1));
    judge.one_of("calculate_imbalance", search.time, &possible.kinds, &recorded)?;
    judge.one_of("find_busiest_queue", first.time, &possible.sources, &Some(first.cpu("src")))?;
    if pass.candidates.iter().any(|asked| unsure(queues, asked, Ok(()))) {
        judge.scores.of(recording, "detach_tasks").hidden += 1;
        return None;
    }
    let seen: Vec<(TaskId, bool)> =
        pass.candidates.iter().map(|asked| (queues.task(asked.int("pid")), asked.answer)).collect();
    judge.one_of("detach_tasks", pass.end, &possible.candidates, &seen)?;
    if pass.ret == 0 {
        judge.one_of("need_active_balance", pass.end, &possible.active, &pass.active)?;
    }
    after
}

/// One pass to be judged step by step.
struct Judge<'a> {
    scores: &'a mut Scores,
    recording: &'a Recording,
    changing: bool,
    pass: &'a Pass,
    span: &'a [CpuId],
}

impl Judge<'_> {
    /// Judges if all possible values give one answer, or if none gives the recorded one. `Some` if there is
    /// only one answer.
    fn one_of<T: Ord + std::fmt::Debug>(
        &mut self,
        step: &'static str,
        until: Time,
        possible: &BTreeSet<T>,
        recorded: &T,
    ) -> Option<()> {
        let same = possible.contains(recorded);
        if same && possible.len() > 1 {
            self.scores.of(self.recording, step).hidden += 1;
            return None;
        }
        let pass = self.pass;
        let moved = self.changing || pass.moved(until);
        self.scores.judge(self.recording, step, moved, same, || {
            let nr = self.span.iter().map(|cpu| pass.cpus[cpu.index()].list.len().to_string());
            let nr: Vec<String> = nr.collect();
            format!("{}: {}: {possible:x?}, recorded {recorded:x?}", place(pass), nr.join(" "))
        });
        same.then_some(())
    }
}
