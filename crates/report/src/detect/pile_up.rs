//! New tasks pile up on one CPU while others that they may use are idle.
//!
//! Placement of new tasks compares groups of CPUs. If the comparison counts CPUs that the task may not use,
//! it finds its own group idle enough again and again. The tasks then share one CPU until the balancer
//! spreads them, one at a time.
//!
//! A pile grows with each new task that is placed on a CPU with another task, while an allowed CPU is idle.
//! It ends when none of its tasks is runnable there. Only the time in which two or more of them are runnable
//! counts: one alone, beside tasks that were there before, or all asleep, are not a pile.

use std::collections::{BTreeMap, BTreeSet};

use schedlab_topology::{CpuId, CpuMask};
use schedlab_trace::{Event, How, Kind};
use schedlab_units::{Duration, Pid, Time};

use super::avoid::{FORK_STATS, IMB_AFFINITY, NO_NUMA_IMBALANCE};
use super::finding::{Finding, Findings, Task, Worst, ms, numbers, were};
use super::scene::{Scene, widen};
use super::{Detector, Thresholds};

pub(super) struct PileUp {
    threshold: u64,
    piles: BTreeMap<CpuId, Pile>,
    /// The CPU whose pile a task belongs to.
    piled: BTreeMap<Pid, CpuId>,
    worst: Worst,
    born: u64,
}

struct Pile {
    from: Time,
    last: Time,
    count: u64,
    /// Those of them that are runnable there.
    here: BTreeSet<Pid>,
    /// The maximum number of them.
    together: usize,
    /// Since when two or more are.
    shared_since: Option<Time>,
    /// How long two or more were runnable before.
    shared: Duration,
    /// The first few.
    tasks: Vec<Task>,
    forker: Task,
    /// CPUs that were idle when tasks arrived.
    idle: CpuMask,
    /// Whether every task's affinity was known.
    known: bool,
    rule: Option<String>,
}

/// Tasks named in a finding.
const NAMED: usize = 8;

impl Pile {
    /// A task of the pile is runnable on its CPU from now on, or is no longer.
    fn update(&mut self, pid: Pid, is_here: bool, time: Time) {
        if is_here {
            self.here.insert(pid);
        } else {
            self.here.remove(&pid);
        }
        self.together = self.together.max(self.here.len());
        if self.here.len() >= 2 {
            self.shared_since.get_or_insert(time);
        } else if let Some(since) = self.shared_since.take() {
            self.shared += time.since(since);
        }
    }
}

impl PileUp {
    pub fn new(thresholds: &Thresholds) -> PileUp {
        PileUp {
            threshold: thresholds.pile,
            piles: BTreeMap::new(),
            piled: BTreeMap::new(),
            worst: Worst::new(thresholds.worst),
            born: 0,
        }
    }

    /// Checks whether a task of a pile is still runnable there.
    fn follow(&mut self, pid: Pid, time: Time, scene: &Scene) {
        let Some(&cpu) = self.piled.get(&pid) else { return };
        let Some(pile) = self.piles.get_mut(&cpu) else { return };
        let is_here = scene.is_runnable_on(pid, cpu);
        pile.update(pid, is_here, time);
        if pile.here.is_empty() {
            self.end(cpu, time, scene);
        }
    }

    fn end(&mut self, cpu: CpuId, time: Time, scene: &Scene) {
        let Some(mut pile) = self.piles.remove(&cpu) else { return };
        self.piled.retain(|_, of| *of != cpu);
        if (pile.together as u64) < self.threshold {
            return;
        }
        if let Some(since) = pile.shared_since.take() {
            pile.shared += time.since(since);
        }
        let shared = pile.shared;
        self.worst.add(shared, pile.count, || {
            let Pile { from, last, count, tasks, forker, idle, known, rule, .. } = pile;
            let more = if count as usize > tasks.len() { ", .." } else { "" };
            let names: Vec<String> = tasks.iter().map(Task::to_string).collect();
            let mut avoid = vec![IMB_AFFINITY, FORK_STATS];
            // Unrestricted tasks stay together only because of the allowed imbalance.
            if known && rule.is_some() {
                avoid.push(NO_NUMA_IMBALANCE);
            }
            let may_run =
                (!known).then(|| "the tasks may run there, which the trace does not show".to_owned());
            Finding {
                from_ns: from.0,
                to_ns: time.max(from).0,
                cpus: std::iter::once(cpu.0).chain(numbers(&idle)).collect(),
                what: format!(
                    "{count} new tasks of {forker} were put on CPU {cpu} beside others within {}, while {} idle; \
                     two or more of them shared it for {}: {}{more}",
                    ms(last.since(from)),
                    were(&idle),
                    ms(shared),
                    names.join(" ")
                ),
                tasks,
                guessed: rule.is_none(),
                rule,
                avoid,
                provided: may_run.into_iter().chain(scene.presumed(&idle)).collect(),
                ..Finding::default()
            }
        });
    }
}

impl Detector for PileUp {
    fn doubt(&mut self, event: &Event, since: Time, scene: &Scene) {
        // It is unknown which tasks are left there.
        self.end(event.cpu, since, scene);
    }

    fn before(&mut self, event: &Event, scene: &Scene) {
        let Kind::SchedWakeupNew { pid, comm, target_cpu, .. } = event.kind else { return };
        self.born += 1;
        let idle = scene.idle_for(pid);
        if scene.cpu(target_cpu).nr_running() == 0 || idle.is_empty() {
            return;
        }
        let placed = scene.task(pid).and_then(|task| task.placed.as_ref()).filter(|p| p.how == How::Fork);
        let pile = self.piles.entry(target_cpu).or_insert_with(|| Pile {
            from: event.time,
            last: event.time,
            count: 0,
            here: BTreeSet::new(),
            together: 0,
            shared_since: None,
            shared: Duration::ZERO,
            tasks: Vec::new(),
            forker: scene.name(event.pid),
            idle: CpuMask::default(),
            known: true,
            rule: None,
        });
        pile.last = event.time;
        pile.count += 1;
        if pile.tasks.len() < NAMED {
            pile.tasks.push(Task { pid: pid.0, comm: comm.to_string() });
        }
        widen(&mut pile.idle, idle.words().len() * 64).or_with(&idle);
        self.piled.insert(pid, target_cpu);
        pile.known &= scene.allowed(pid).is_some();
        if let Some(placed) = placed {
            pile.rule = Some(format!("{} at fork", placed.reason));
        }
    }

    fn after(&mut self, event: &Event, scene: &Scene) {
        if self.piled.is_empty() {
            return;
        }
        match event.kind {
            Kind::SchedSwitch { prev_pid, next_pid, .. } => {
                self.follow(prev_pid, event.time, scene);
                self.follow(next_pid, event.time, scene);
            }
            Kind::SchedWaking { pid, .. }
            | Kind::SchedWakeup { pid, .. }
            | Kind::SchedWakeupNew { pid, .. }
            | Kind::SchedMigrateTask { pid, .. }
            | Kind::SchedProcessFree { pid, .. } => self.follow(pid, event.time, scene),
            _ => {}
        }
    }

    fn finish(mut self: Box<Self>, scene: &Scene, end: Time) -> Findings {
        for cpu in self.piles.keys().copied().collect::<Vec<CpuId>>() {
            self.end(cpu, end, scene);
        }
        Findings {
            detector: "pile-up",
            looks_for: format!(
                "{} or more new tasks are put on a CPU that has others while a CPU that they may use is idle.",
                self.threshold
            ),
            blind: scene.heard().no_birth(),
            count: self.worst.count,
            lost_ns: self.worst.lost.0,
            figures: (self.born > 0).then(|| format!("of {} new tasks", self.born)),
            worst: self.worst.into_kept(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testdata::check;
    use expect_test::expect;

    /// A forker on CPU 0 puts three tasks on CPU 0, with CPUs 1 and 2 idle.
    const PILE: &str = "
        0    0 idle  switch R stream-1
        0    1 idle  switch R init-9
        0    2 idle  switch R init-8
        5    1 init-9 switch S idle
        5    2 init-8 switch S idle
        10   0 stream-1 fork stream-2
        11   0 stream-1 new stream-2 0
        20   0 stream-1 fork stream-3
        21   0 stream-1 new stream-3 0
        30   0 stream-1 fork stream-4
        31   0 stream-1 new stream-4 0
        4000 0 stream-1 switch R stream-2
        8000 0 stream-2! migrate stream-3 0 1
        8010 1 idle switch R stream-3
        9000 0 stream-2! migrate stream-4 0 2
        9010 2 idle switch R stream-4
        9500 0 stream-2 switch S stream-1";

    #[test]
    fn new_tasks_on_one_cpu_beside_idle_ones_are_a_pile() {
        check(
            "pile-up",
            "",
            PILE,
            expect![[r#"
                0.000011 .. 0.009500  3 new tasks of stream[1] were put on CPU 0 beside others within 0.020 ms, while CPUs 1-2 were idle; two or more of them shared it for 8.979 ms: stream[2] stream[3] stream[4]
                  rule   not in the trace; it may be the lack of NUMA_IMB_AFFINITY, the lack of FORK_STATS_ALLOWED
                  try    NUMA_IMB_AFFINITY: the imbalance allowed between nodes at fork counts only the CPUs the task may use
                  try    FORK_STATS_ALLOWED: a group is judged at fork by the CPUs the task may use
                  if     the tasks may run there, which the trace does not show
            "#]],
        );
    }

    #[test]
    fn known_affinity_and_the_rule_are_reported() {
        let annotated = PILE
            .replace("10   0", "9 0 stream-1 affinity stream-1 0-2\n 10 0")
            .replace("31   0", "31 0 stream-1 placed stream-4 fork 0 STAY_LOCAL\n 31 0");
        check(
            "pile-up",
            "",
            &annotated,
            expect![[r#"
                0.000011 .. 0.009500  3 new tasks of stream[1] were put on CPU 0 beside others within 0.020 ms, while CPUs 1-2 were idle; two or more of them shared it for 8.979 ms: stream[2] stream[3] stream[4]
                  rule   STAY_LOCAL at fork
                  avoid  NUMA_IMB_AFFINITY: the imbalance allowed between nodes at fork counts only the CPUs the task may use
                  avoid  FORK_STATS_ALLOWED: a group is judged at fork by the CPUs the task may use
                  avoid  NUMA_IMBALANCE=off: a new task goes to the idler node at once
            "#]],
        );
    }

    #[test]
    fn tasks_bound_to_the_cpu_or_without_an_idle_one_are_none() {
        check(
            "pile-up",
            "",
            &PILE.replace("10   0", "9 0 stream-1 affinity stream-1 0\n 10 0"),
            expect![[""]],
        );
        let busy: String =
            PILE.lines().filter(|line| !line.contains("S idle")).map(|line| format!("{line}\n")).collect();
        check(
            "pile-up",
            "",
            &busy
                .replace("1 idle switch R", "1 init-9 switch R")
                .replace("2 idle switch R", "2 init-8 switch R"),
            expect![[""]],
        );
    }

    #[test]
    fn tasks_that_sleep_are_no_pile_whatever_else_stays() {
        // Each new task runs for 0.1 ms and sleeps; two others keep the CPU.
        let script = "
            0    0 idle  switch R par-1
            0    1 idle  switch R init-9
            5    1 init-9 switch S idle
            6    1 idle! waking hog-7 0
            7    0 par-1 wakeup hog-7 0
            8    1 idle! waking hog-8 0
            9    0 par-1 wakeup hog-8 0
            10   0 par-1 fork a-2
            11   0 par-1 new a-2 0
            20   0 par-1 fork b-3
            21   0 par-1 new b-3 0
            30   0 par-1 switch S a-2
            130  0 a-2 switch S b-3
            230  0 b-3 switch S hog-7
            4000 0 hog-7 switch R hog-8
            8000 0 hog-8 switch R hog-7";
        check(
            "pile-up",
            "",
            script,
            expect![[r#"
                0.000011 .. 0.000230  2 new tasks of par[1] were put on CPU 0 beside others within 0.010 ms, while CPU 1 was idle; two or more of them shared it for 0.109 ms: a[2] b[3]
                  rule   not in the trace; it may be the lack of NUMA_IMB_AFFINITY, the lack of FORK_STATS_ALLOWED
                  try    NUMA_IMB_AFFINITY: the imbalance allowed between nodes at fork counts only the CPUs the task may use
                  try    FORK_STATS_ALLOWED: a group is judged at fork by the CPUs the task may use
                  if     the tasks may run there, which the trace does not show
            "#]],
        );
        // The first sleeps before the second is created.
        let apart = script.replace(
            "20   0 par-1 fork",
            "12 0 par-1 switch R a-2\n 15 0 a-2 switch S par-1\n 20 0 par-1 fork",
        );
        check(
            "pile-up",
            "",
            &apart.replace("130  0 a-2 switch S b-3\n", "").replace("S a-2", "S b-3"),
            expect![[""]],
        );
    }

    #[test]
    fn one_child_beside_its_forker_is_none() {
        let one: String = PILE
            .lines()
            .filter(|line| !line.contains("stream-3") && !line.contains("stream-4"))
            .map(|line| format!("{line}\n"))
            .collect();
        check("pile-up", "", &one, expect![[""]]);
    }
}
