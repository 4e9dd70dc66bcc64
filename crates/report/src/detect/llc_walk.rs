//! A task walks round its last-level cache: each wake-up moves it to another CPU.
//!
//! The CPU it slept on is free, or about to be: the only task there is the one that wakes it. Moved anyway,
//! the task finds its caches cold, and the next wake-up moves it on from there. A client that waits for I/O
//! visits all CPUs of the LLC in this way, as each of its completions runs in a kernel thread bound to the
//! CPU it issued the I/O from.
//!
//! A wake-up is *needless to move* if it moves the task although its CPU was idle, or ran only the waker.
//! Half of the last wake-ups must be like that, over several CPUs, for a walk.

use std::collections::{BTreeMap, VecDeque};

use schedlab_topology::{CpuId, CpuMask, Topology};
use schedlab_trace::{Comm, Event, Kind, bound_kthread};
use schedlab_units::{Duration, Pid, Time};

use super::avoid::{self, CURRENT_CPU, KTHREAD_STACK};
use super::finding::{Avoid, Finding, Findings, Worst, cpus, numbers};
use super::scene::{Scene, widen};
use super::{Detector, Thresholds};

pub(super) struct LlcWalk {
    wakeups: usize,
    cpus: usize,
    topology: Option<Topology>,
    tasks: BTreeMap<Pid, Walk>,
    worst: Worst,
}

#[derive(Default)]
struct Walk {
    /// The last wake-ups.
    last: VecDeque<Step>,
    /// The current walk.
    current: Option<Found>,
    /// The wake-up in progress: the CPU slept on, and whether that is effectively free.
    waking: Option<(CpuId, bool, Waker)>,
}

#[derive(Clone, Copy)]
struct Waker {
    pid: Pid,
    comm: Comm,
    is_there: bool,
}

#[derive(Clone, Copy)]
struct Step {
    time: Time,
    cpu: CpuId,
    needless: bool,
}

struct Found {
    from: Time,
    to: Time,
    wakeups: u64,
    needless: u64,
    cpus: CpuMask,
    /// Needless moves by kernel threads bound to the CPU.
    by_kthread: u64,
    waker: Waker,
    rule: Option<Box<str>>,
}

impl LlcWalk {
    pub fn new(thresholds: &Thresholds, topology: Option<Topology>) -> LlcWalk {
        LlcWalk {
            wakeups: thresholds.walk_wakeups,
            cpus: thresholds.walk_cpus,
            topology,
            tasks: BTreeMap::new(),
            worst: Worst::new(thresholds.worst),
        }
    }

    fn same_llc(&self, a: CpuId, b: CpuId) -> bool {
        self.topology
            .as_ref()
            .is_none_or(|topology| a.index() < topology.nr_cpus() && topology.llc_mask(a).contains(b))
    }

    fn waking(&mut self, event: &Event, pid: Pid, prev: CpuId, scene: &Scene) {
        let cpu = scene.cpu(prev);
        let is_there = event.cpu == prev && !event.flags.in_interrupt() && event.pid != Pid::IDLE;
        let free = scene.is_idle(prev) || (is_there && cpu.nr_running() == 1);
        let waker = Waker { pid: event.pid, comm: event.comm, is_there };
        self.tasks.entry(pid).or_default().waking = Some((prev, free, waker));
    }

    fn woken(&mut self, time: Time, pid: Pid, cpu: CpuId, scene: &Scene) {
        let Some((prev, free, waker)) = self.tasks.get_mut(&pid).and_then(|walk| walk.waking.take()) else {
            return;
        };
        let needless = free && cpu != prev && self.same_llc(cpu, prev);
        let (room, least) = (self.wakeups, self.cpus);
        let walk = self.tasks.entry(pid).or_default();
        if walk.last.len() == room {
            walk.last.pop_front();
        }
        walk.last.push_back(Step { time, cpu, needless });
        let needless_count = walk.last.iter().filter(|step| step.needless).count();
        let mut visited = CpuMask::default();
        for step in &walk.last {
            widen(&mut visited, step.cpu.index() + 1).set(step.cpu);
        }
        let walks = walk.last.len() == room && 2 * needless_count >= room && visited.weight() >= least;
        if !walks {
            self.end(pid, scene);
            return;
        }
        let placed =
            scene.task(pid).and_then(|task| task.placed.as_ref()).map(|placed| placed.reason.clone());
        let first = walk.last[0].time;
        let found = walk.current.get_or_insert_with(|| Found {
            from: first,
            to: time,
            wakeups: room as u64 - 1,
            needless: needless_count as u64 - u64::from(needless),
            cpus: CpuMask::default(),
            by_kthread: 0,
            waker,
            rule: None,
        });
        found.to = time;
        found.wakeups += 1;
        widen(&mut found.cpus, visited.words().len() * 64).or_with(&visited);
        if needless {
            found.needless += 1;
            found.by_kthread += u64::from(waker.is_there && bound_kthread(&waker.comm).is_some());
            found.waker = waker;
            found.rule = placed.or(found.rule.take());
        }
    }

    /// The task's walk is over.
    fn end(&mut self, pid: Pid, scene: &Scene) {
        let Some(found) = self.tasks.get_mut(&pid).and_then(|walk| walk.current.take()) else { return };
        // A trace does not show the cost of a cold cache.
        self.worst.add(Duration::ZERO, found.needless, || {
            let task = scene.name(pid);
            let mut avoid: Vec<Avoid> = Vec::new();
            if 2 * found.by_kthread >= found.needless.saturating_sub(self.wakeups as u64)
                && found.by_kthread > 0
            {
                avoid.push(KTHREAD_STACK);
            } else if found.waker.is_there {
                avoid.push(CURRENT_CPU);
            }
            avoid.extend(found.rule.as_deref().map_or(&[][..], avoid::of_placement));
            let by = format!("{}[{}]", found.waker.comm, found.waker.pid);
            Finding {
                from_ns: found.from.0,
                to_ns: found.to.0,
                cpus: numbers(&found.cpus),
                what: format!(
                    "{task} was moved at {} of {} wake-ups although its CPU was as good as free, over {}; last woken \
                     by {by}",
                    found.needless,
                    found.wakeups,
                    cpus(&found.cpus),
                ),
                tasks: vec![task, super::Task { pid: found.waker.pid.0, comm: found.waker.comm.to_string() }],
                rule: found.rule.map(|rule| format!("{rule} at wakeup")),
                avoid,
                ..Finding::default()
            }
        });
    }
}

impl Detector for LlcWalk {
    fn before(&mut self, event: &Event, scene: &Scene) {
        match event.kind {
            Kind::SchedWaking { pid, target_cpu, .. } => self.waking(event, pid, target_cpu, scene),
            // Before it is forgotten.
            Kind::SchedSwitch { prev_pid, prev_state, .. } if prev_state.is_dead() => {
                self.end(prev_pid, scene);
                self.tasks.remove(&prev_pid);
            }
            _ => {}
        }
    }

    fn after(&mut self, event: &Event, scene: &Scene) {
        if let Kind::SchedWakeup { pid, target_cpu, .. } = event.kind {
            self.woken(event.time, pid, target_cpu, scene);
        }
    }

    fn finish(mut self: Box<Self>, scene: &Scene, _: Time) -> Findings {
        for pid in self.tasks.keys().copied().collect::<Vec<Pid>>() {
            self.end(pid, scene);
        }
        Findings {
            detector: "llc-walk",
            looks_for: format!(
                "Half of {} wake-ups move a task away from a CPU of its cache that is as good as free, over {} CPUs \
                 or more.",
                self.wakeups, self.cpus
            ),
            blind: match self.topology {
                Some(_) => scene.heard().no_placement(),
                None => Some("the machine is not known; name it with --machine".to_owned()),
            },
            count: self.worst.count,
            lost_ns: self.worst.lost.0,
            figures: None,
            worst: self.worst.into_kept(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testdata::check;
    use expect_test::expect;

    /// dbench sleeps 40 times; each time `waker` wakes it on the CPU where it slept, and it moves `step` CPUs
    /// further on an LLC of 8.
    fn wakeups(waker: impl Fn(u16) -> String, step: u16) -> String {
        let mut script = String::from("0 0 idle switch R dbench-7\n");
        let mut cpu = 0;
        for round in 1..=40 {
            let (us, waker, next) = (round * 1000, waker(cpu), (cpu + step) % 8);
            script += &format!(
                "{} {cpu} dbench-7 switch S {waker}
                 {} {cpu} {waker} placed dbench-7 wakeup {next} IDLE_CPU
                 {} {cpu} {waker} waking dbench-7 {cpu}
                 {} {cpu} {waker} migrate dbench-7 {cpu} {next}
                 {} {cpu} {waker} wakeup dbench-7 {next}
                 {} {cpu} {waker} switch S idle
                 {} {next} idle switch R dbench-7\n",
                us,
                us + 10,
                us + 10,
                us + 11,
                us + 12,
                us + 20,
                us + 30
            );
            cpu = next;
        }
        script
    }

    #[test]
    fn a_client_sent_on_by_each_completion_walks() {
        check(
            "llc-walk",
            "1x1x8",
            &wakeups(|cpu| format!("kworker/{cpu}:1-{}", 100 + cpu), 1),
            expect![[r#"
                0.001012 .. 0.040012  dbench[7] was moved at 40 of 40 wake-ups although its CPU was as good as free, over CPUs 0-7; last woken by kworker/7:1[107]
                  rule   IDLE_CPU at wakeup
                  avoid  SIS_KTHREAD_STACK: a bound kthread that wakes a task on its own CPU lets it queue there
            "#]],
        );
    }

    #[test]
    fn another_waker_on_its_cpu_has_another_way_out() {
        check(
            "llc-walk",
            "1x1x8",
            &wakeups(|cpu| format!("log-{}", 100 + cpu), 3),
            expect![[r#"
                0.001012 .. 0.040012  dbench[7] was moved at 40 of 40 wake-ups although its CPU was as good as free, over CPUs 0-7; last woken by log[105]
                  rule   IDLE_CPU at wakeup
                  avoid  WF_CURRENT_CPU: a waker that is about to sleep can keep the woken task on its own CPU
            "#]],
        );
    }

    #[test]
    fn a_client_that_stays_does_not_walk() {
        check(
            "llc-walk",
            "1x1x8",
            &wakeups(|cpu| format!("kworker/{cpu}:1-{}", 100 + cpu), 0),
            expect![[""]],
        );
        // Moving back and forth between two neighbours is not a walk.
        check(
            "llc-walk",
            "1x1x8",
            &wakeups(|cpu| format!("kworker/{cpu}:1-{}", 100 + cpu), 4),
            expect![[""]],
        );
    }

    #[test]
    fn a_change_of_cache_is_no_walk_round_one() {
        check(
            "llc-walk",
            "1x8x1",
            &wakeups(|cpu| format!("kworker/{cpu}:1-{}", 100 + cpu), 1),
            expect![[""]],
        );
    }
}
