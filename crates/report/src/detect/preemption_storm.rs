//! A CPU switches between tasks so often that none makes progress.
//!
//! A preemption is a switch away from a runnable task. Slices and ticks allow a few in 10 ms; many more are
//! due to wake-ups that each preempt the current task, or to slices that are too short. The next task shows
//! which it is: was it woken since the previous one began to run?
//!
//! A task that yields counts too: in a trace it looks preempted.

use std::collections::{BTreeMap, VecDeque};

use schedlab_topology::CpuId;
use schedlab_trace::{Comm, Event, Kind};
use schedlab_units::{Duration, Pid, Time};

use super::avoid::{self, LAZY, NO_PREEMPT_SHORT, NO_WAKEUP_PREEMPTION, RUN_TO_PARITY};
use super::finding::{Avoid, Finding, Findings, Task, Worst, ms};
use super::scene::Scene;
use super::{Detector, Thresholds};

pub(super) struct PreemptionStorm {
    threshold: usize,
    cpus: BTreeMap<CpuId, Cpu>,
    worst: Worst,
    preemptions: u64,
}

#[derive(Default)]
struct Cpu {
    /// The last preemptions.
    last: VecDeque<Time>,
    storm: Option<Storm>,
}

struct Storm {
    from: Time,
    to: Time,
    count: u64,
    by_wakeup: u64,
    /// Whether the trace contains wake-ups at all.
    tells_wakeups: bool,
    /// Which task preempted which, and how often; the first few pairs.
    pairs: Vec<Pair>,
    rule: Option<Box<str>>,
}

struct Pair {
    next: (Pid, Comm),
    prev: (Pid, Comm),
    count: u64,
}

/// Number of pairs kept per storm.
const PAIRS: usize = 16;

impl PreemptionStorm {
    pub fn new(thresholds: &Thresholds) -> PreemptionStorm {
        PreemptionStorm {
            threshold: thresholds.storm as usize,
            cpus: BTreeMap::new(),
            worst: Worst::new(thresholds.worst),
            preemptions: 0,
        }
    }

    fn preempted(&mut self, event: &Event, prev: (Pid, Comm), next: (Pid, Comm), scene: &Scene) {
        self.preemptions += 1;
        let (time, threshold) = (event.time, self.threshold);
        let began = scene.cpu(event.cpu).curr.map(|(_, since)| since);
        let by_wakeup = scene.wait(next.0).is_some_and(|wait| began.is_some_and(|began| wait.since > began));
        let preemption = scene.cpu(event.cpu).preemption.as_ref();
        let rule = preemption
            .filter(|(at, ..)| began.is_some_and(|began| *at >= began))
            .map(|(.., rule)| rule.clone());

        let over = self
            .cpus
            .get(&event.cpu)
            .and_then(|cpu| cpu.last.back())
            .is_some_and(|last| time.since(*last) > Thresholds::STORM_WINDOW);
        if over {
            self.end(event.cpu);
        }
        let cpu = self.cpus.entry(event.cpu).or_default();
        cpu.last.push_back(time);
        if cpu.last.len() > threshold {
            cpu.last.pop_front();
        }
        let is_dense = cpu.last.len() == threshold && time.since(cpu.last[0]) <= Thresholds::STORM_WINDOW;
        if cpu.storm.is_none() {
            if !is_dense {
                return;
            }
            cpu.storm = Some(Storm {
                from: cpu.last[0],
                to: time,
                count: threshold as u64 - 1,
                by_wakeup: 0,
                tells_wakeups: false,
                pairs: Vec::new(),
                rule: None,
            });
        } else if !is_dense {
            self.end(event.cpu);
            return;
        }
        let storm = cpu.storm.as_mut().expect("a storm goes on");
        storm.to = time;
        storm.count += 1;
        storm.by_wakeup += u64::from(by_wakeup);
        storm.tells_wakeups = scene.heard().no_wakeup().is_none();
        storm.rule = rule.or(storm.rule.take());
        if let Some(pair) = storm.pairs.iter_mut().find(|pair| pair.next == next && pair.prev == prev) {
            pair.count += 1;
        } else if storm.pairs.len() < PAIRS {
            storm.pairs.push(Pair { next, prev, count: 1 });
        }
    }

    fn end(&mut self, cpu: CpuId) {
        let Some(storm) = self.cpus.get_mut(&cpu).and_then(|cpu| cpu.storm.take()) else { return };
        self.worst.add(Duration::ZERO, storm.count, || {
            let Storm { from, to, count, by_wakeup, tells_wakeups, mut pairs, rule } = storm;
            pairs.sort_by_key(|pair| std::cmp::Reverse(pair.count));
            let told: u64 = pairs.iter().map(|pair| pair.count).sum();
            let mostly_wakeups = 2 * by_wakeup >= told;
            let mut avoid: Vec<Avoid> = Vec::new();
            avoid.extend(rule.as_deref().map_or(&[][..], avoid::of_preemption));
            let guessed = avoid.is_empty();
            if guessed && mostly_wakeups {
                avoid.extend([NO_WAKEUP_PREEMPTION, RUN_TO_PARITY, NO_PREEMPT_SHORT, LAZY]);
            } else if guessed {
                avoid.push(LAZY);
            }
            pairs.truncate(4);
            let chain = pairs
                .iter()
                .map(|pair| format!("{} preempted {} {} times", task(pair.next), task(pair.prev), pair.count))
                .collect();
            let mut tasks: Vec<Task> = Vec::new();
            for task in pairs.into_iter().flat_map(|pair| [task(pair.prev), task(pair.next)]) {
                if !tasks.contains(&task) {
                    tasks.push(task);
                }
            }
            let cause = match (tells_wakeups, mostly_wakeups) {
                (false, _) => "",
                (true, true) => ", mostly by woken tasks",
                (true, false) => ", mostly by tasks that had waited, or yields",
            };
            Finding {
                from_ns: from.0,
                to_ns: to.0,
                cpus: vec![cpu.0],
                tasks,
                what: format!(
                    "CPU {cpu} was taken from its task {count} times in {}, a stretch of {} on average{cause}",
                    ms(to.since(from)),
                    ms(Duration(to.since(from).0 / count.max(1)))
                ),
                chain,
                rule: rule.map(String::from),
                avoid,
                guessed,
                ..Finding::default()
            }
        });
    }
}

fn task((pid, comm): (Pid, Comm)) -> Task {
    Task { pid: pid.0, comm: comm.to_string() }
}

impl Detector for PreemptionStorm {
    fn before(&mut self, event: &Event, scene: &Scene) {
        if let Kind::SchedSwitch { prev_comm, prev_pid, prev_state, next_comm, next_pid, .. } = event.kind
            && prev_state.is_runnable()
            && prev_pid != Pid::IDLE
            && next_pid != Pid::IDLE
            && next_pid != prev_pid
        {
            self.preempted(event, (prev_pid, prev_comm), (next_pid, next_comm), scene);
        }
    }

    fn after(&mut self, _: &Event, _: &Scene) {}

    fn finish(mut self: Box<Self>, _: &Scene, _: Time) -> Findings {
        for cpu in self.cpus.keys().copied().collect::<Vec<CpuId>>() {
            self.end(cpu);
        }
        Findings {
            detector: "preemption-storm",
            looks_for: format!(
                "A CPU is taken from runnable tasks {} times or more in {}.",
                self.threshold,
                Thresholds::STORM_WINDOW
            ),
            // Switches alone are enough, and a recording without any is not read.
            blind: None,
            count: self.worst.count,
            lost_ns: self.worst.lost.0,
            figures: (self.preemptions > 0).then(|| format!("{} preemptions in all", self.preemptions)),
            worst: self.worst.into_kept(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testdata::check;
    use expect_test::expect;

    /// Each `us` a message is woken, preempts the sender and sleeps again.
    fn messages(us: u64, rule: &str) -> String {
        let mut script = String::from("0 0 idle switch R send-1\n");
        for round in 1..=60u64 {
            let time = round * us;
            script += &format!("{} 0 send-1 waking recv-2 0\n{} 0 send-1 wakeup recv-2 0\n", time, time + 1);
            if !rule.is_empty() {
                script += &format!("{} 0 send-1 asked recv-2 {rule}\n", time + 2);
            }
            script +=
                &format!("{} 0 send-1 switch R recv-2\n{} 0 recv-2 switch S send-1\n", time + 3, time + 20);
        }
        script
    }

    #[test]
    fn many_preemptions_by_woken_tasks_are_a_storm() {
        check(
            "preemption-storm",
            "",
            &messages(100, ""),
            expect![[r#"
                0.000103 .. 0.006003  CPU 0 was taken from its task 60 times in 5.900 ms, a stretch of 0.098 ms on average, mostly by woken tasks
                    recv[2] preempted send[1] 41 times
                  rule   not in the trace; it may be WAKEUP_PREEMPTION, the lack of RUN_TO_PARITY, PREEMPT_SHORT, a model other than preempt=lazy
                  try    NO_WAKEUP_PREEMPTION: a woken task waits for the end of the current slice
                  try    RUN_TO_PARITY: the current task is protected until its slice is used up (EEVDF)
                  try    NO_PREEMPT_SHORT: a task with a shorter slice does not end that protection
                  try    preempt=lazy: the fair class asks for a reschedule at the next tick or return to user mode only (6.13 and later)
            "#]],
        );
    }

    #[test]
    fn the_rule_names_the_way_out() {
        check(
            "preemption-storm",
            "",
            &messages(100, "PREEMPT_SHORT"),
            expect![[r#"
                0.000103 .. 0.006003  CPU 0 was taken from its task 60 times in 5.900 ms, a stretch of 0.098 ms on average, mostly by woken tasks
                    recv[2] preempted send[1] 41 times
                  rule   PREEMPT_SHORT
                  avoid  NO_PREEMPT_SHORT: a task with a shorter slice does not end that protection
            "#]],
        );
    }

    #[test]
    fn tasks_that_take_turns_are_kept_apart() {
        let mut script = String::from("0 0 idle switch R a-1\n1 0 a-1 waking b-2 0\n2 0 a-1 wakeup b-2 0\n");
        for round in 1..=40u64 {
            let (prev, next) = if round % 2 == 1 { ("a-1", "b-2") } else { ("b-2", "a-1") };
            script += &format!("{} 0 {prev} switch R {next}\n", round * 200);
        }
        check(
            "preemption-storm",
            "",
            &script,
            expect![[r#"
                0.000200 .. 0.008000  CPU 0 was taken from its task 40 times in 7.800 ms, a stretch of 0.195 ms on average, mostly by tasks that had waited, or yields
                    a[1] preempted b[2] 11 times
                    b[2] preempted a[1] 10 times
                  rule   not in the trace; it may be a model other than preempt=lazy
                  try    preempt=lazy: the fair class asks for a reschedule at the next tick or return to user mode only (6.13 and later)
            "#]],
        );
    }

    #[test]
    fn one_preemption_per_slice_is_none() {
        check("preemption-storm", "", &messages(700, ""), expect![[""]]);
    }
}
