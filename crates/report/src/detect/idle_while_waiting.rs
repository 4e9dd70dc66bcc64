//! A CPU is idle while a task that it could run waits on another CPU.
//!
//! Linux does not prevent this: wake-ups search only one LLC, and the balancer runs at intervals. But each
//! such time is lost, and long ones suggest a rule that does not see the idle CPU. The time is measured per
//! wait: how long some idle CPU was allowed for the task, while the CPU it waited for ran another. (The time
//! an idle CPU needs to start is not a fault of placement.)
//!
//! Instead of checking all waiting tasks whenever a CPU goes idle, the time with an idle CPU is summed up per
//! distinct affinity; a wait uses the difference between its ends.

use std::collections::{BTreeMap, BTreeSet};

use schedlab_topology::{CpuId, CpuMask, Topology};
use schedlab_trace::{Event, Kind, bound_kthread};
use schedlab_units::{Duration, Pid, Time};

use super::avoid::{self, NO_NI_RANDOM, NO_SIS_PROP, NO_SIS_UTIL};
use super::finding::{Avoid, Finding, Findings, Worst, cpus, ms, numbers, were};
use super::scene::{After, Scene, State, Wait};
use super::{Detector, Thresholds};

pub(super) struct IdleWhileWaiting {
    threshold: Duration,
    topology: Option<Topology>,
    /// The time with an idle CPU, per distinct affinity; `None` means any CPU.
    idle: BTreeMap<Option<CpuMask>, IdleTime>,
    /// The CPUs that are idle.
    idle_now: CpuMask,
    /// Tasks that wait for a busy CPU.
    waiting: BTreeMap<Pid, Waiting>,
    /// Tasks that are runnable but not allowed to run, until they run again: their CPU went idle beside them, or they
    /// are deadline tasks that were preempted. They are out of quota or budget.
    held: BTreeSet<Pid>,
    worst: Worst,
    /// Findings that hold only if this CPU, which had no event yet, is idle.
    presumed: BTreeMap<CpuId, Worst>,
    waits: u64,
}

#[derive(Clone, Copy)]
struct Waiting {
    since: Time,
    /// The time with an idle CPU until then.
    idle: Duration,
    /// Whether a CPU of the same LLC was idle then, so that placement could have seen it.
    idle_beside: bool,
}

/// How long some CPU of a set has been idle.
#[derive(Clone, Debug, Default)]
struct IdleTime {
    total: Duration,
    since: Option<Time>,
    /// CPUs that were idle last.
    last: CpuMask,
    /// From when on these.
    last_from: Time,
    /// Until when, if none is idle now.
    last_to: Time,
}

impl IdleTime {
    fn at(&self, time: Time) -> Duration {
        self.total + self.since.map_or(Duration::ZERO, |since| time.since(since))
    }

    /// The CPUs of the set that are idle now.
    fn update(&mut self, time: Time, idle: CpuMask) {
        self.total = self.at(time);
        let was_idle = self.since.is_some();
        self.since = (!idle.is_empty()).then_some(time);
        if idle.is_empty() {
            if was_idle {
                self.last_to = time;
            }
        } else if !was_idle || idle != self.last {
            self.last = idle;
            self.last_from = time;
        }
    }

    /// How long the CPUs that were idle last have been so since a time.
    fn last_idle(&self, since: Time, now: Time) -> Duration {
        let to = if self.since.is_some() { now } else { self.last_to };
        to.since(self.last_from.max(since))
    }
}

impl IdleWhileWaiting {
    pub fn new(thresholds: &Thresholds, topology: Option<Topology>) -> IdleWhileWaiting {
        IdleWhileWaiting {
            threshold: thresholds.idle_wait,
            topology,
            idle: BTreeMap::new(),
            idle_now: CpuMask::default(),
            waiting: BTreeMap::new(),
            held: BTreeSet::new(),
            worst: Worst::new(thresholds.worst),
            presumed: BTreeMap::new(),
            waits: 0,
        }
    }

    /// The time during which some CPU that the task may use was idle.
    fn idle_time(&mut self, pid: Pid, time: Time, scene: &Scene) -> &IdleTime {
        let key = scene.allowed(pid).cloned();
        self.idle.entry(key).or_insert_with(|| {
            let mut new = IdleTime::default();
            new.update(time, scene.idle_for(pid));
            new
        })
    }

    /// A task waits; the wait counts from when the CPU runs another task.
    fn may_begin(&mut self, pid: Pid, time: Time, scene: &Scene) {
        // A task that its name binds to a CPU cannot be served by another.
        if scene.wait(pid).is_some_and(|wait| scene.cpu(wait.cpu()).is_busy())
            && !self.waiting.contains_key(&pid)
            && !self.held.contains(&pid)
            && scene.task(pid).is_none_or(|task| bound_kthread(&task.comm).is_none())
        {
            self.begin(pid, time, scene);
        }
    }

    fn begin(&mut self, pid: Pid, time: Time, scene: &Scene) {
        let Some(cpu) = scene.wait(pid).map(Wait::cpu) else { return };
        let idle = self.idle_time(pid, time, scene).at(time);
        let beside = scene.idle_for(pid);
        let llc = self.topology.as_ref().filter(|t| cpu.index() < t.nr_cpus()).map(|t| t.llc_mask(cpu));
        let idle_beside = llc.map_or(!beside.is_empty(), |llc| llc.intersects(&beside));
        self.waiting.insert(pid, Waiting { since: time, idle, idle_beside });
    }

    /// A wait ends, in the scene before it ends.
    fn end(&mut self, pid: Pid, time: Time, scene: &Scene) {
        let Some(waiting) = self.waiting.remove(&pid) else { return };
        let Some(wait) = scene.wait(pid) else { return };
        self.waits += 1;
        let threshold = self.threshold;
        let idle = self.idle_time(pid, time, scene);
        let lost = idle.at(time).saturating_sub(waiting.idle);
        if lost < threshold {
            return;
        }
        let served_by = idle.last.clone();
        // If CPUs were idle in turn, only the last is known.
        let all_the_time = 10 * idle.last_idle(waiting.since, time).0 >= 9 * lost.0;
        let presumed = scene.only_presumed(&served_by);
        let found = if presumed.weight() == served_by.weight()
            && let Some(cpu) = presumed.first()
        {
            self.presumed.entry(cpu).or_insert_with(|| self.worst.another())
        } else {
            &mut self.worst
        };
        let lost = BesideIdle { span: lost, served_by, all_the_time };
        found.add(lost.span, 1, || finding(pid, waiting, time, &lost, wait, scene));
    }

    /// The first event of a CPU, which shows whether it is idle.
    fn shown(&mut self, cpu: CpuId, idle: bool) {
        if let Some(found) = self.presumed.remove(&cpu).filter(|_| idle) {
            self.worst.merge(found);
        }
    }
}

/// Time lost while CPUs were idle.
struct BesideIdle {
    span: Duration,
    /// The CPUs that were idle last.
    served_by: CpuMask,
    /// Whether they were so for nearly all of it.
    all_the_time: bool,
}

fn finding(pid: Pid, waiting: Waiting, time: Time, lost: &BesideIdle, wait: &Wait, scene: &Scene) -> Finding {
    let since = waiting.since;
    let idle = &lost.served_by;
    let cpu = wait.longest(time);
    let (curr, alone) = scene.ran_most(cpu, since, time).unzip();
    let behind = curr.as_ref().map_or(String::new(), |curr| {
        format!(" behind {curr}{}", if alone == Some(true) { "" } else { " and others" })
    });
    let placed =
        scene.task(pid).and_then(|task| task.placed.as_ref()).filter(|_| wait.after != After::Running);
    let last = |cpu: CpuId| scene.cpu(cpu).balance.as_ref().map(|looked| (cpu, looked));
    let balance = idle.iter().filter_map(last).find(|(_, looked)| looked.time >= since);
    let earlier = idle.iter().filter_map(last).max_by_key(|(_, looked)| looked.time);
    let rule = match (placed, balance) {
        (Some(placed), Some((_, looked))) => {
            Some(format!("{} at {}, then {}", placed.reason, placed.how, looked.reason))
        }
        (Some(placed), None) => Some(format!("{} at {}", placed.reason, placed.how)),
        (None, Some((_, looked))) => Some(looked.reason.to_string()),
        // The decision that left them idle was made before the wait began.
        (None, None) => earlier.map(|(cpu, looked)| {
            let before = ms(since.since(looked.time));
            format!("{}, when CPU {cpu} looked last, {before} before", looked.reason)
        }),
    };
    let mut avoid: Vec<Avoid> = Vec::new();
    avoid.extend(placed.map_or(&[][..], |placed| avoid::of_placement(&placed.reason)));
    let decided = balance.or(earlier);
    avoid.extend(decided.map_or(&[][..], |(_, looked)| avoid::of_balance(&looked.reason)));
    // If the trace contains decisions, no guess is needed.
    let guessed = rule.is_none();
    if guessed {
        // A search at the wake-up only sees its own LLC; the rest is left to balancing.
        avoid.extend_from_slice(match wait.after {
            After::Wakeup if waiting.idle_beside => &[NO_SIS_UTIL, NO_SIS_PROP],
            _ => &[NO_NI_RANDOM],
        });
    }
    let known = scene.allowed(pid).is_some();
    let ran_there =
        scene.task(pid).and_then(|task| task.ran_on.as_ref()).is_some_and(|on| on.intersects(idle));
    let may_run =
        (!known && !ran_there).then(|| "the task may run there, which the trace does not show".to_owned());
    Finding {
        from_ns: since.0,
        to_ns: time.0,
        cpus: std::iter::once(cpu.0).chain(numbers(idle)).collect(),
        tasks: std::iter::once(scene.name(pid)).chain(curr).collect(),
        what: format!(
            "{} waited {} on CPU {cpu}{behind}; for {} of it {}",
            scene.name(pid),
            ms(time.since(since)),
            ms(lost.span),
            match lost.all_the_time {
                true => format!("{} idle", were(idle)),
                false => format!("some CPU was idle, at last {}", cpus(idle)),
            },
        ),
        place: numbers(idle),
        chain: decided.into_iter().map(|(cpu, looked)| looked.cited(cpu)).collect(),
        rule,
        avoid,
        guessed,
        provided: may_run.into_iter().chain(scene.presumed(idle)).collect(),
        ..Finding::default()
    }
}

impl Detector for IdleWhileWaiting {
    fn doubt(&mut self, event: &Event, _: Time, scene: &Scene) {
        self.shown(event.cpu, false);
        // Tasks that waited there may have run since.
        for pid in &scene.cpu(event.cpu).waiting {
            self.waiting.remove(pid);
        }
        if !scene.is_idle(event.cpu) {
            return;
        }
        // The waits of tasks that it could have served begin again: it was not idle all the time.
        for (pid, waiting) in &mut self.waiting {
            if scene.allowed(*pid).is_none_or(|allowed| allowed.contains(event.cpu)) {
                let idle = self.idle.get(&scene.allowed(*pid).cloned());
                waiting.idle = idle.map_or(Duration::ZERO, |idle| idle.at(event.time));
                waiting.since = event.time;
            }
        }
    }

    fn before(&mut self, event: &Event, scene: &Scene) {
        self.shown(event.cpu, true);
        if let Some(pid) = scene.unseen(event) {
            self.waiting.remove(&pid);
        }
        match &event.kind {
            Kind::SchedSwitch { next_pid, .. } => self.end(*next_pid, event.time, scene),
            // A change of its affinity changes what is counted.
            Kind::Affinity(affinity) => self.end(affinity.pid, event.time, scene),
            _ => {}
        }
    }

    fn after(&mut self, event: &Event, scene: &Scene) {
        let time = event.time;
        let begins = match &event.kind {
            Kind::SchedSwitch { prev_pid, .. } => Some(*prev_pid),
            Kind::SchedWaking { pid, .. }
            | Kind::SchedWakeup { pid, .. }
            | Kind::SchedWakeupNew { pid, .. }
            | Kind::SchedMigrateTask { pid, .. } => Some(*pid),
            Kind::Affinity(affinity) => Some(affinity.pid),
            _ => None,
        };
        if self.idle_now != *scene.idle() {
            self.idle_now.copy_from(scene.idle());
            for (allowed, idle_time) in &mut self.idle {
                let idle = allowed.as_ref().map_or_else(|| scene.idle().clone(), |a| scene.idle().and(a));
                idle_time.update(time, idle);
            }
        }
        if let Kind::SchedSwitch { prev_pid, prev_prio, prev_state, next_pid, .. } = event.kind {
            self.held.remove(&next_pid);
            if prev_prio < 0 && prev_state.is_runnable() {
                self.held.insert(prev_pid);
            }
            if next_pid == Pid::IDLE {
                for pid in &scene.cpu(event.cpu).waiting {
                    self.waiting.remove(pid);
                    self.held.insert(*pid);
                }
            }
            if prev_pid == Pid::IDLE {
                // Tasks that were queued while it was idle now wait behind the running one.
                for pid in &scene.cpu(event.cpu).waiting {
                    self.may_begin(*pid, time, scene);
                }
            }
        }
        if let Kind::SchedProcessExit { pid, .. } | Kind::SchedProcessFree { pid, .. } = event.kind {
            self.held.remove(&pid);
        }
        if let Some(pid) = begins {
            self.may_begin(pid, time, scene);
        }
    }

    fn finish(mut self: Box<Self>, scene: &Scene, end: Time) -> Findings {
        let waiting: Vec<Pid> = scene
            .tasks()
            .filter(|(_, task)| matches!(task.state, State::Waiting(_)))
            .map(|(pid, _)| pid)
            .collect();
        for pid in waiting {
            self.end(pid, end, scene);
        }
        for found in std::mem::take(&mut self.presumed).into_values() {
            self.worst.merge(found);
        }
        Findings {
            detector: "idle-while-waiting",
            looks_for: format!(
                "A task waits for {} or longer while a CPU that it may use is idle.",
                self.threshold
            ),
            // A preempted task waits, too, and a switch shows that.
            blind: scene.heard().no_wakeup().filter(|_| self.worst.count == 0),
            count: self.worst.count,
            lost_ns: self.worst.lost.0,
            figures: (self.waits > 0).then(|| format!("of {} waits", self.waits)),
            worst: self.worst.into_kept(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testdata::check;
    use expect_test::expect;

    /// Two hogs on CPU 0 and no task on CPU 1; `{}` is what precedes.
    fn two_on_one(before: &str) -> String {
        format!(
            "0    0 idle   switch R init-1
             0    1 idle   switch R cc1-9
             10   1 cc1-9  switch S idle
             {before}
             100  0 init-1 waking hog-2 0
             101  0 init-1 wakeup hog-2 0
             5000 0 init-1 switch R hog-2"
        )
    }

    #[test]
    fn a_wait_beside_an_idle_cpu_is_found() {
        check(
            "idle-while-waiting",
            "",
            &two_on_one(""),
            expect![[r#"
                0.000100 .. 0.005000  hog[2] waited 4.900 ms on CPU 0 behind init[1]; for 4.900 ms of it CPU 1 was idle
                  rule   not in the trace; it may be SIS_UTIL, SIS_PROP
                  try    NO_SIS_UTIL: the search for an idle CPU is not cut short where the cache's CPUs are busy
                  try    NO_SIS_PROP: the search for an idle CPU is not cut short where idle times are brief (before 6.0)
                  if     the task may run there, which the trace does not show
            "#]],
        );
    }

    #[test]
    fn a_wait_that_ended_unseen_is_none() {
        // hog ran and slept in between, or it could not be woken again.
        let woken_again = "3000 0 init-1 waking hog-2 0\n 4900 0 init-1 wakeup hog-2 0\n";
        let last = "5000 0 init-1 switch R hog-2";
        let script = two_on_one("").replace(last, &format!("{woken_again}{last}"));
        check(
            "idle-while-waiting",
            "",
            &script,
            expect![[r#"
                0.003000 .. 0.005000  hog[2] waited 2.000 ms on CPU 0 behind init[1]; for 2.000 ms of it CPU 1 was idle
                  rule   not in the trace; it may be SIS_UTIL, SIS_PROP
                  try    NO_SIS_UTIL: the search for an idle CPU is not cut short where the cache's CPUs are busy
                  try    NO_SIS_PROP: the search for an idle CPU is not cut short where idle times are brief (before 6.0)
                  if     the task may run there, which the trace does not show
            "#]],
        );
        let runs = two_on_one("").replace(last, "4000 0 hog-2 waking cc1-9 1\n 5000 0 hog-2 switch S init-1");
        check("idle-while-waiting", "", &runs, expect![[""]]);
    }

    #[test]
    fn of_cpus_that_were_idle_by_turns_the_last_is_named() {
        let last = "5000 0 init-1 switch R hog-2";
        let turns = "2000 2 x-7 switch S idle\n 2001 1 idle switch R y-8\n ";
        let script = two_on_one("20 2 idle switch R x-7").replace(last, &format!("{turns}{last}"));
        check(
            "idle-while-waiting",
            "",
            &script,
            expect![[r#"
            0.000100 .. 0.005000  hog[2] waited 4.900 ms on CPU 0 behind init[1]; for 4.900 ms of it some CPU was idle, at last CPU 2
              rule   not in the trace; it may be SIS_UTIL, SIS_PROP
              try    NO_SIS_UTIL: the search for an idle CPU is not cut short where the cache's CPUs are busy
              try    NO_SIS_PROP: the search for an idle CPU is not cut short where idle times are brief (before 6.0)
              if     the task may run there, which the trace does not show
        "#]],
        );
    }

    #[test]
    fn a_task_out_of_quota_waits_for_no_cpu() {
        // hog is runnable when CPU 0 idles.
        let throttled = "20 0 init-1 switch S hog-2\n 40 0 hog-2 switch R idle\n 60 0 idle switch R init-1\n";
        let script = two_on_one(throttled);
        let script: Vec<&str> = script.lines().filter(|line| !line.contains(" init-1 wak")).collect();
        check("idle-while-waiting", "", &script.join("\n"), expect![[""]]);
    }

    #[test]
    fn a_cpu_that_leaves_serves_nobody() {
        let leaves = "50 0 init-1 waking cpuhp/1-14 1\n 51 0 init-1 wakeup cpuhp/1-14 1\n \
                      60 1 idle switch R cpuhp/1-14\n 70 1 cpuhp/1-14 switch D idle\n";
        check("idle-while-waiting", "", &two_on_one(leaves), expect![[""]]);
    }

    #[test]
    fn what_rests_on_a_cpu_presumed_idle_falls_with_it() {
        // There is no event of CPU 1 before 5.6 ms.
        let script =
            two_on_one("").lines().filter(|line| !line.contains(" 1 ")).collect::<Vec<_>>().join("\n");
        let found = |later: &str| {
            let script = format!("{script}\n 5600 1 {later}");
            super::super::testdata::findings("idle-while-waiting", "1x1x2", &script).count
        };
        assert_eq!((found("idle switch R cc1-9"), found("cc1-9 switch S idle")), (1, 0));
    }

    #[test]
    fn a_cpu_whose_events_show_a_task_was_not_idle() {
        let script =
            two_on_one("").replace("             5000", "             3000 1 cc1-9 wakeup cc1-8 0\n 5000");
        check("idle-while-waiting", "", &script, expect![[""]]);
        // Nor was the one presumed idle.
        let script: String =
            script.lines().filter(|line| !line.contains("1 cc1-9  switch")).collect::<Vec<_>>().join("\n");
        let script = script.replace("0    1 idle   switch R cc1-9", "");
        check("idle-while-waiting", "1x1x2", &script, expect![[""]]);
    }

    #[test]
    fn the_rules_at_work_are_reported() {
        check(
            "idle-while-waiting",
            "",
            &two_on_one(
                "99 0 init-1 placed hog-2 wakeup 0 SCAN_LIMIT\n 2000 1 idle balanced 1 LB_NUMA_ALLOWED",
            ),
            expect![[r#"
                0.000100 .. 0.005000  hog[2] waited 4.900 ms on CPU 0 behind init[1]; for 4.900 ms of it CPU 1 was idle
                    0.002000 CPU 1, newly idle, in MC, takes nothing. Balance: a NUMA imbalance of this size is allowed. [LB_NUMA_ALLOWED]
                  rule   SCAN_LIMIT at wakeup, then LB_NUMA_ALLOWED
                  avoid  NO_SIS_UTIL: the search for an idle CPU is not cut short where the cache's CPUs are busy
                  avoid  NO_SIS_PROP: the search for an idle CPU is not cut short where idle times are brief (before 6.0)
                  avoid  LB_NUMA_IMBALANCE=off: the balancer leaves no imbalance between nodes alone
                  if     the task may run there, which the trace does not show
            "#]],
        );
    }

    #[test]
    fn what_a_cpu_decided_before_it_went_idle_is_cited() {
        let script = "0 0 idle switch R init-1\n 0 1 idle switch R cc1-9\n 9 1 cc1-9 newidle 1 NI_RANDOM\n \
                      10 1 cc1-9 switch S idle\n 20 0 init-1 affinity hog-2 0-1\n 100 0 init-1 waking hog-2 0\n \
                      101 0 init-1 wakeup hog-2 0\n 5000 0 init-1 switch R hog-2";
        check(
            "idle-while-waiting",
            "",
            script,
            expect![[r#"
            0.000100 .. 0.005000  hog[2] waited 4.900 ms on CPU 0 behind init[1]; for 4.900 ms of it CPU 1 was idle
                0.000009 CPU 1, about to go idle, takes nothing. Newly idle: the last level was skipped at random. [NI_RANDOM]
              rule   NI_RANDOM, when CPU 1 looked last, 0.091 ms before
              avoid  NO_NI_RANDOM: a CPU that goes idle looks for work in every domain, not at random
        "#]],
        );
    }

    /// Hogs on two CPUs while one is idle: the cause is the same whichever of them waits.
    #[test]
    fn waits_beside_the_same_idle_cpu_are_of_one_cause() {
        let script = "0 0 idle switch R a-1\n 0 1 idle switch R b-2\n 0 2 idle switch R x-9\n \
                      1 0 a-1 affinity c-3 0-2\n 1 1 b-2 affinity d-4 0-2\n \
                      5 2 x-9 balanced 2 LB_LOCAL_BUSIER\n 9 2 x-9 switch S idle\n \
                      100 0 a-1 waking c-3 0\n 101 0 a-1 wakeup c-3 0\n \
                      200 1 b-2 waking c-4 1\n 201 1 b-2 wakeup c-4 1\n \
                      4000 0 a-1 switch R c-3\n 5000 1 b-2 switch R c-4";
        check(
            "idle-while-waiting",
            "",
            script,
            expect![[r#"
            0.000200 .. 0.005000  c[4] waited 4.800 ms on CPU 1 behind b[2]; for 4.800 ms of it CPU 2 was idle
                0.000005 CPU 2, newly idle, in MC, takes nothing. Balance: the local group is of a busier type. [LB_LOCAL_BUSIER]
              rule   LB_LOCAL_BUSIER, when CPU 2 looked last, 0.195 ms before
              alike  1 more of the same cause, 3.900 ms lost in them

            0.004000 .. 0.005000  a[1] waited 1.000 ms on CPU 0 behind c[3]; for 1.000 ms of it CPU 2 was idle
                0.000005 CPU 2, newly idle, in MC, takes nothing. Balance: the local group is of a busier type. [LB_LOCAL_BUSIER]
              rule   LB_LOCAL_BUSIER, when CPU 2 looked last, 3.995 ms before
              if     the task may run there, which the trace does not show
        "#]],
        );
    }

    #[test]
    fn affinity_decides_which_cpus_could_serve() {
        check("idle-while-waiting", "", &two_on_one("20 0 init-1 affinity hog-2 0,2-3"), expect![[""]]);
        check(
            "idle-while-waiting",
            "",
            &two_on_one("20 0 init-1 affinity hog-2 0-3"),
            expect![[r#"
                0.000100 .. 0.005000  hog[2] waited 4.900 ms on CPU 0 behind init[1]; for 4.900 ms of it CPU 1 was idle
                  rule   not in the trace; it may be SIS_UTIL, SIS_PROP
                  try    NO_SIS_UTIL: the search for an idle CPU is not cut short where the cache's CPUs are busy
                  try    NO_SIS_PROP: the search for an idle CPU is not cut short where idle times are brief (before 6.0)
            "#]],
        );
    }

    #[test]
    fn a_cpu_that_is_silent_is_presumed_idle_where_the_machine_is_known() {
        let silent = two_on_one("").replace("1 idle   switch", "0 init-1 new").replace("R cc1-9", "cc1-9 0");
        let silent: String =
            silent.lines().filter(|line| !line.contains("cc1")).map(|line| format!("{line}\n")).collect();
        check("idle-while-waiting", "", &silent, expect![[""]]);
        check(
            "idle-while-waiting",
            "1x1x2",
            &silent,
            expect![[r#"
                0.000100 .. 0.005000  hog[2] waited 4.900 ms on CPU 0 behind init[1]; for 4.900 ms of it CPU 1 was idle
                  rule   not in the trace; it may be SIS_UTIL, SIS_PROP
                  try    NO_SIS_UTIL: the search for an idle CPU is not cut short where the cache's CPUs are busy
                  try    NO_SIS_PROP: the search for an idle CPU is not cut short where idle times are brief (before 6.0)
                  if     the task may run there, which the trace does not show
                  and if CPU 1 was idle, without an event until then
            "#]],
        );
    }

    #[test]
    fn short_waits_and_waits_for_an_idle_cpu_do_not_count() {
        check("idle-while-waiting", "", &two_on_one("").replace("5000", "1099"), expect![[""]]);
        // CPU 0 is idle itself: it only takes time to start.
        check(
            "idle-while-waiting",
            "",
            "0    0 idle   switch R init-1
             0    1 idle   switch R cc1-9
             10   1 cc1-9  switch S idle
             20   0 init-1 switch S idle
             100  0 idle!  waking hog-2 0
             101  0 idle!  wakeup hog-2 0
             5000 0 idle   switch R hog-2",
            expect![[""]],
        );
        // Kernel threads bound to CPU 0 have nowhere else to go.
        for bound in ["kworker/0:1-2", "irq_work/0-2"] {
            check("idle-while-waiting", "", &two_on_one("").replace("hog-2", bound), expect![[""]]);
        }
    }

    #[test]
    fn only_the_time_in_which_a_cpu_is_idle_counts() {
        check(
            "idle-while-waiting",
            "",
            &(two_on_one("").replace("5000", "9000").replace(
                "             9000",
                "             1000 1 idle switch R cc1-9\n 4000 1 cc1-9 switch S idle\n 9000",
            )),
            expect![[r#"
                0.000100 .. 0.009000  hog[2] waited 8.900 ms on CPU 0 behind init[1]; for 5.900 ms of it some CPU was idle, at last CPU 1
                  rule   not in the trace; it may be SIS_UTIL, SIS_PROP
                  try    NO_SIS_UTIL: the search for an idle CPU is not cut short where the cache's CPUs are busy
                  try    NO_SIS_PROP: the search for an idle CPU is not cut short where idle times are brief (before 6.0)
                  if     the task may run there, which the trace does not show
            "#]],
        );
    }
}
