//! A CPU is idle while a task waits on another CPU that it could serve.
//!
//! Linux does not promise otherwise: wake-ups search one cache only, and the balancer comes at
//! intervals. But each such time is lost, and long ones point at a rule that does not see the
//! idle CPU. The time is measured per wait: how much of it some idle CPU was allowed for the task,
//! while the CPU it waited for ran another. (That an idle CPU needs time to start is no fault of
//! placement.)
//!
//! Rather than looking at all who wait whenever a CPU goes idle, the time with an idle CPU is
//! summed up per distinct affinity; a wait takes the difference between its ends.

use std::collections::BTreeMap;

use schedlab_topology::{CpuMask, Topology};
use schedlab_trace::{Event, Kind, bound_kthread};
use schedlab_units::{Duration, Pid, Time};

use super::avoid::{self, NO_NI_RANDOM, NO_SIS_PROP, NO_SIS_UTIL};
use super::finding::{Avoid, Finding, Findings, Worst, ms, numbers, were};
use super::scene::{After, Scene, State, Wait};
use super::{Detector, Thresholds};

pub(super) struct IdleWhileWaiting {
    threshold: Duration,
    topology: Option<Topology>,
    /// The time with an idle CPU, per distinct affinity; none stands for any CPU.
    idle: BTreeMap<Option<CpuMask>, IdleTime>,
    /// The CPUs that are idle.
    idle_now: CpuMask,
    /// Tasks that wait for a busy CPU.
    waiting: BTreeMap<Pid, Waiting>,
    worst: Worst,
    waits: u64,
}

#[derive(Clone, Copy)]
struct Waiting {
    since: Time,
    /// The time with an idle CPU until then.
    idle: Duration,
    /// Whether a CPU of the same cache was idle then, so that placement could have seen it.
    idle_beside: bool,
}

/// How long some CPU of a set has been idle.
#[derive(Clone, Debug, Default)]
struct IdleTime {
    total: Duration,
    since: Option<Time>,
    /// CPUs that were idle last.
    last: CpuMask,
}

impl IdleTime {
    fn at(&self, time: Time) -> Duration {
        self.total + self.since.map_or(Duration::ZERO, |since| time.since(since))
    }

    /// The CPUs of the set that are idle now.
    fn update(&mut self, time: Time, idle: CpuMask) {
        self.total = self.at(time);
        self.since = (!idle.is_empty()).then_some(time);
        if !idle.is_empty() {
            self.last = idle;
        }
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
            worst: Worst::new(thresholds.worst),
            waits: 0,
        }
    }

    /// The time in which some CPU was idle that the task may use.
    fn idle_time(&mut self, pid: Pid, time: Time, scene: &Scene) -> &IdleTime {
        let key = scene.allowed(pid).cloned();
        self.idle.entry(key).or_insert_with(|| {
            let mut new = IdleTime::default();
            new.update(time, scene.idle_for(pid));
            new
        })
    }

    /// A task waits; it counts from when the CPU runs another.
    fn may_begin(&mut self, pid: Pid, time: Time, scene: &Scene) {
        // Whom its name binds to a CPU, no other can serve.
        if scene.wait(pid).is_some_and(|wait| scene.cpu(wait.cpu()).is_busy())
            && !self.waiting.contains_key(&pid)
            && !scene.task(pid).is_some_and(|task| bound_kthread(&task.comm).is_some())
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
        let idle = self.idle_time(pid, time, scene);
        let lost = idle.at(time).saturating_sub(waiting.idle);
        let served_by = idle.last.clone();
        if lost < self.threshold {
            return;
        }
        self.worst.add(lost, 1, || finding(pid, waiting, time, lost, wait, &served_by, scene));
    }
}

fn finding(
    pid: Pid,
    waiting: Waiting,
    time: Time,
    lost: Duration,
    wait: &Wait,
    idle: &CpuMask,
    scene: &Scene,
) -> Finding {
    let since = waiting.since;
    let cpu = wait.longest(time);
    let curr = scene.cpu(cpu).curr.map(|(curr, _)| curr).filter(|curr| *curr != Pid::IDLE);
    let behind = curr.map_or(String::new(), |curr| format!(" behind {}", scene.name(curr)));
    let placed =
        scene.task(pid).and_then(|task| task.placed.as_ref()).filter(|_| wait.after != After::Running);
    let balance = idle.iter().find_map(|cpu| scene.cpu(cpu).balance.as_ref().filter(|(at, _)| *at >= since));
    let rule = match (placed, balance) {
        (Some(placed), Some((_, balance))) => {
            Some(format!("{} at {}, then {balance}", placed.reason, placed.how))
        }
        (Some(placed), None) => Some(format!("{} at {}", placed.reason, placed.how)),
        (None, balance) => balance.map(|(_, reason)| reason.to_string()),
    };
    let mut avoid: Vec<Avoid> = Vec::new();
    avoid.extend(placed.map_or(&[][..], |placed| avoid::of_placement(&placed.reason)));
    avoid.extend(balance.map_or(&[][..], |(_, reason)| avoid::of_balance(reason)));
    let guessed = avoid.is_empty();
    if guessed {
        // A search at the wake-up sees its own cache alone; the rest is left to balancing.
        avoid.extend_from_slice(match wait.after {
            After::Wakeup if waiting.idle_beside => &[NO_SIS_UTIL, NO_SIS_PROP],
            _ => &[NO_NI_RANDOM],
        });
    }
    let known = scene.allowed(pid).is_some();
    let ran_there =
        scene.task(pid).and_then(|task| task.ran_on.as_ref()).is_some_and(|on| on.intersects(idle));
    let may_run =
        (!known && !ran_there).then(|| "the task may run there, which the trace does not tell".to_owned());
    Finding {
        from_ns: since.0,
        to_ns: time.0,
        cpus: std::iter::once(cpu.0).chain(numbers(idle)).collect(),
        tasks: std::iter::once(pid).chain(curr).map(|pid| scene.name(pid)).collect(),
        what: format!(
            "{} waited {} on CPU {cpu}{behind}; for {} of it {} idle",
            scene.name(pid),
            ms(time.since(since)),
            ms(lost),
            were(idle),
        ),
        rule,
        avoid,
        guessed,
        provided: may_run.into_iter().chain(scene.presumed(idle)).collect(),
        ..Finding::default()
    }
}

impl Detector for IdleWhileWaiting {
    fn doubt(&mut self, event: &Event, _: Time, scene: &Scene) {
        // Who waited there may have run since.
        for pid in &scene.cpu(event.cpu).waiting {
            self.waiting.remove(pid);
        }
        if !scene.is_idle(event.cpu) {
            return;
        }
        // Whom it could have served begins to wait anew: it was not idle all the time.
        for (pid, waiting) in &mut self.waiting {
            if scene.allowed(*pid).is_none_or(|allowed| allowed.contains(event.cpu)) {
                let idle = self.idle.get(&scene.allowed(*pid).cloned());
                waiting.idle = idle.map_or(Duration::ZERO, |idle| idle.at(event.time));
                waiting.since = event.time;
            }
        }
    }

    fn before(&mut self, event: &Event, scene: &Scene) {
        if let Some(pid) = scene.unseen(event) {
            self.waiting.remove(&pid);
        }
        match &event.kind {
            Kind::SchedSwitch { next_pid, .. } => self.end(*next_pid, event.time, scene),
            // With its affinity changes what is counted.
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
        if let Kind::SchedSwitch { prev_pid: Pid::IDLE, .. } = event.kind {
            // Who was queued while it was idle now waits behind the one that runs.
            for pid in &scene.cpu(event.cpu).waiting {
                self.may_begin(*pid, time, scene);
            }
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
        Findings {
            detector: "idle-while-waiting",
            looks_for: format!(
                "A task waits for {} or longer while a CPU that it may use is idle.",
                self.threshold
            ),
            // Who was preempted waits, too, and a switch tells of that.
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

    /// Two hogs on CPU 0 and nobody on CPU 1; `{}` is what precedes.
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
                  try    NO_SIS_PROP: the search for an idle CPU is not cut short where idle times are brief (before 5.19)
                  if     the task may run there, which the trace does not tell
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
                  try    NO_SIS_PROP: the search for an idle CPU is not cut short where idle times are brief (before 5.19)
                  if     the task may run there, which the trace does not tell
            "#]],
        );
        let runs = two_on_one("").replace(last, "4000 0 hog-2 waking cc1-9 1\n 5000 0 hog-2 switch S init-1");
        check("idle-while-waiting", "", &runs, expect![[""]]);
    }

    #[test]
    fn a_cpu_whose_events_show_a_task_was_not_idle() {
        let script =
            two_on_one("").replace("             5000", "             3000 1 cc1-9 wakeup cc1-8 0\n 5000");
        check("idle-while-waiting", "", &script, expect![[""]]);
        // Nor was one that was presumed to be.
        let script: String =
            script.lines().filter(|line| !line.contains("1 cc1-9  switch")).collect::<Vec<_>>().join("\n");
        let script = script.replace("0    1 idle   switch R cc1-9", "");
        check("idle-while-waiting", "1x1x2", &script, expect![[""]]);
    }

    #[test]
    fn the_rules_at_work_are_told() {
        check(
            "idle-while-waiting",
            "",
            &two_on_one(
                "99 0 init-1 placed hog-2 wakeup 0 SCAN_LIMIT\n 2000 1 idle balanced 1 LB_NUMA_ALLOWED",
            ),
            expect![[r#"
                0.000100 .. 0.005000  hog[2] waited 4.900 ms on CPU 0 behind init[1]; for 4.900 ms of it CPU 1 was idle
                  rule   SCAN_LIMIT at wakeup, then LB_NUMA_ALLOWED
                  avoid  NO_SIS_UTIL: the search for an idle CPU is not cut short where the cache's CPUs are busy
                  avoid  NO_SIS_PROP: the search for an idle CPU is not cut short where idle times are brief (before 5.19)
                  avoid  LB_NUMA_IMBALANCE=off: the balancer leaves no imbalance between nodes alone
                  if     the task may run there, which the trace does not tell
            "#]],
        );
    }

    #[test]
    fn affinity_decides_who_could_serve() {
        check("idle-while-waiting", "", &two_on_one("20 0 init-1 affinity hog-2 0,2-3"), expect![[""]]);
        check(
            "idle-while-waiting",
            "",
            &two_on_one("20 0 init-1 affinity hog-2 0-3"),
            expect![[r#"
                0.000100 .. 0.005000  hog[2] waited 4.900 ms on CPU 0 behind init[1]; for 4.900 ms of it CPU 1 was idle
                  rule   not in the trace; it may be SIS_UTIL, SIS_PROP
                  try    NO_SIS_UTIL: the search for an idle CPU is not cut short where the cache's CPUs are busy
                  try    NO_SIS_PROP: the search for an idle CPU is not cut short where idle times are brief (before 5.19)
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
                  try    NO_SIS_PROP: the search for an idle CPU is not cut short where idle times are brief (before 5.19)
                  if     the task may run there, which the trace does not tell
                  and if CPU 1 was idle, of which no event told until then
            "#]],
        );
    }

    #[test]
    fn short_waits_and_waits_for_an_idle_cpu_do_not_count() {
        check("idle-while-waiting", "", &two_on_one("").replace("5000", "1099"), expect![[""]]);
        // CPU 0 is idle itself: it only takes its time to start.
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
                0.000100 .. 0.009000  hog[2] waited 8.900 ms on CPU 0 behind init[1]; for 5.900 ms of it CPU 1 was idle
                  rule   not in the trace; it may be SIS_UTIL, SIS_PROP
                  try    NO_SIS_UTIL: the search for an idle CPU is not cut short where the cache's CPUs are busy
                  try    NO_SIS_PROP: the search for an idle CPU is not cut short where idle times are brief (before 5.19)
                  if     the task may run there, which the trace does not tell
            "#]],
        );
    }
}
