//! Wake-ups that wait much longer than a slice, with the chain that led there.
//!
//! For each it reports which task woke it and from where, where it was placed and by which rule, what ran
//! there instead and why that was not preempted. The waker's own history belongs to it: if the waker had also
//! waited, the delays add up, and the chain is followed back to an interrupt, or to a task that did not wait.

use schedlab_stats::Histogram;
use schedlab_topology::CpuId;
use schedlab_trace::{Comm, Event, Kind};
use schedlab_units::{Duration, Pid, Time};

use super::avoid::{self, FULL, HRTICK, NO_RUN_TO_PARITY};
use super::finding::{Avoid, Finding, Findings, Task, Worst, at, ms};
use super::scene::{After, Scene, Stretch, Wait, Wake, sum};
use super::{Detector, Thresholds};

pub(super) struct LatencyOutlier {
    threshold: Duration,
    latencies: Histogram,
    worst: Worst,
}

/// Wakers followed back from one outlier.
const WAKERS: usize = 4;
/// Maximum number of tasks listed that ran instead on one CPU.
const RAN: usize = 4;
/// A waker's own delay is part of the chain if it ended no longer ago than this before the wake-up.
const RECENT: Duration = Duration::millis(100);
/// And if it was at least this long.
const WORTH_TELLING: Duration = Duration::millis(1);

impl LatencyOutlier {
    pub fn new(thresholds: &Thresholds) -> LatencyOutlier {
        LatencyOutlier {
            threshold: thresholds.latency,
            latencies: Histogram::new(),
            worst: Worst::new(thresholds.worst),
        }
    }

    /// A task begins to run on a CPU, in the scene before that.
    fn runs(&mut self, pid: Pid, comm: Comm, cpu: CpuId, time: Time, scene: &Scene) {
        if let Some(wait) = wait_to_begin(pid, scene) {
            self.ends(pid, comm, Some(cpu), time, wait, scene);
        }
    }

    /// Tasks that have been waiting for a long time when the trace ends.
    fn still_waiting(&mut self, scene: &Scene, end: Time) {
        for (pid, task) in scene.tasks() {
            if let Some(wait) = wait_to_begin(pid, scene)
                && end.since(wait.since) >= self.threshold
            {
                self.ends(pid, task.comm, None, end, wait, scene);
            }
        }
    }

    fn ends(&mut self, pid: Pid, comm: Comm, cpu: Option<CpuId>, time: Time, wait: &Wait, scene: &Scene) {
        let latency = time.since(wait.since);
        self.latencies.record(latency.0);
        if latency >= self.threshold {
            self.worst.add(latency, 1, || finding(pid, comm, cpu, time, wait, scene));
        }
    }
}

/// The wait of a task that was woken or created, and has not run since.
fn wait_to_begin(pid: Pid, scene: &Scene) -> Option<&Wait> {
    scene.wait(pid).filter(|wait| wait.after != After::Running)
}

/// A wait that ends on a CPU, or with the trace.
fn finding(pid: Pid, comm: Comm, cpu: Option<CpuId>, time: Time, wait: &Wait, scene: &Scene) -> Finding {
    let task = Task { pid: pid.0, comm: comm.to_string() };
    let scene_of_task = scene.task(pid);
    let mut chain = Vec::new();
    let mut tasks = vec![task.clone()];

    let wake = scene_of_task.and_then(|task| task.wake);
    if let Some(wake) = wake {
        let mut wakers = wakers(wake, scene);
        tasks.extend(wakers.iter().map(|(pid, _)| scene.name(*pid)).filter(|task| task.pid != 0));
        wakers.reverse();
        chain.extend(wakers.into_iter().map(|(_, step)| step));
    }
    let placed = scene_of_task.and_then(|task| task.placed.as_ref());
    let verb = if wait.after == After::Fork { "made" } else { "woke" };
    if let Some(wake) = wake {
        let rule = placed.map_or(String::new(), |placed| format!(" ({})", placed.reason));
        chain.push(format!(
            "{}  {} {verb} {task}; it was put on CPU {}{rule}",
            at(wake.time),
            waker(&wake),
            wait.places[0].1
        ));
    }
    let mut culprits: Vec<Task> = Vec::new();
    for (i, (from, place)) in wait.places.iter().enumerate() {
        let to = wait.places.get(i + 1).map_or(time, |(next, _)| *next);
        if i > 0 {
            chain.push(format!("{}  it was moved to CPU {place}", at(*from)));
        }
        chain.extend(ran_instead(*place, *from, to, scene, &mut culprits));
    }
    let preemption = scene
        .cpu(wait.places[0].1)
        .preemption
        .as_ref()
        .filter(|(at, asked, _)| *at >= wait.since && *asked == pid)
        .map(|(_, _, reason)| reason);
    if let Some(reason) = preemption {
        chain.push(format!("it did not preempt: {reason}"));
    }
    chain.push(match cpu {
        Some(cpu) => format!("{}  it ran on CPU {cpu}", at(time)),
        None => format!("{}  the trace ends, and it has not run", at(time)),
    });

    let mut avoid: Vec<Avoid> = Vec::new();
    avoid.extend(placed.map_or(&[][..], |placed| avoid::of_placement(&placed.reason)));
    avoid.extend(preemption.map_or(&[][..], |reason| avoid::of_preemption(reason)));
    let guessed = avoid.is_empty();
    if guessed {
        avoid.extend(unexplained(pid, wait, time, scene));
    }
    for culprit in culprits {
        if !tasks.contains(&culprit) {
            tasks.push(culprit);
        }
    }
    let rules: Vec<String> = placed
        .map(|placed| format!("{} at {}", placed.reason, placed.how))
        .into_iter()
        .chain(preemption.map(|reason| reason.to_string()))
        .collect();
    let rule = match (rules.is_empty(), avoid.is_empty()) {
        (false, _) => Some(rules.join(", then ")),
        (true, false) => None,
        (true, true) => Some(without_switch(pid, wait, time, scene)),
    };
    let longest = wait.longest(time);
    let most = if cpu.is_some_and(|cpu| cpu != longest) { ", most of it" } else { "" };
    Finding {
        from_ns: wait.since.0,
        to_ns: time.0,
        cpus: wait.places.iter().map(|(_, cpu)| cpu.0).collect(),
        what: format!("{task} waited {}{most} for CPU {longest}", ms(time.since(wait.since))),
        tasks,
        chain,
        rule,
        avoid,
        guessed,
        ..Finding::default()
    }
}

/// What may help if the trace contains no decisions. There is a remedy only if one task kept the CPU; a wait behind
/// many tasks is due to the load, and no switch removes it.
fn unexplained(pid: Pid, wait: &Wait, time: Time, scene: &Scene) -> Vec<Avoid> {
    // Other CPUs are idle, which another detector reports; or the running task has no slice.
    if !scene.idle_for(pid).is_empty() || above(pid, wait, time, scene).is_some() {
        return Vec::new();
    }
    /// Longer than a base slice and a tick: the CPU was not given up at the end of a slice.
    const LONG: Duration = Duration::millis(8);
    let ran = scene.ran(wait.places[0].1, wait.since, time);
    let longest = ran.iter().filter(|s| s.pid != Pid::IDLE).map(|s| s.to.since(s.from)).max();
    match longest {
        Some(longest) if longest >= LONG => vec![HRTICK, FULL],
        Some(longest) if 2 * longest.0 >= time.since(wait.since).0 => vec![NO_RUN_TO_PARITY, HRTICK],
        _ => Vec::new(),
    }
}

/// Why it waited, if no switch would change that.
fn without_switch(pid: Pid, wait: &Wait, time: Time, scene: &Scene) -> String {
    let cpu = wait.longest(time);
    let idled = scene.ran(cpu, wait.since, time).iter().filter(|s| s.pid == Pid::IDLE).map(span).sum::<u64>();
    if 10 * idled >= 9 * time.since(wait.since).0 {
        return "its CPU idled beside it: its group was out of quota, or it is a deadline task out of budget"
            .into();
    }
    if let Some(above) = above(pid, wait, time, scene) {
        return format!("priority: {above} is before it, whatever their slices");
    }
    match scene.idle_for(pid).is_empty() {
        true => "none alone: the turns of all before it add up; less load avoids it".into(),
        false => "not in the trace; others were idle, see idle-while-waiting".into(),
    }
}

/// The real-time or deadline task that had the CPU for most of a wait, if it has precedence over the waiting
/// task.
fn above(pid: Pid, wait: &Wait, time: Time, scene: &Scene) -> Option<Task> {
    /// The first priority of fair tasks.
    const FAIR: i32 = 100;
    let prio = |pid| scene.task(pid).and_then(|task| task.prio);
    let (ran, _) = scene.ran_most(wait.longest(time), wait.since, time)?;
    let before = prio(Pid(ran.pid))?;
    (before < FAIR && prio(pid).is_none_or(|own| before <= own)).then_some(ran)
}

fn span(stretch: &Stretch) -> u64 {
    stretch.to.since(stretch.from).0
}

/// The earlier wakers that had to wait themselves, nearest first, each with a sentence.
fn wakers(first: Wake, scene: &Scene) -> Vec<(Pid, String)> {
    let mut found = Vec::new();
    let mut next = first;
    while found.len() < WAKERS && next.by != Pid::IDLE && !next.in_interrupt {
        let Some(wake) = scene.task(next.by).and_then(|task| task.wake) else { break };
        let Some(ran) = wake.ran.filter(|ran| *ran <= next.time && next.time.since(*ran) <= RECENT) else {
            break;
        };
        let waited = ran.since(wake.time);
        if waited < WORTH_TELLING {
            break;
        }
        let (waker, woken) = (waker(&wake), scene.name(next.by));
        found
            .push((next.by, format!("{}  {waker} woke {woken}, which waited {}", at(wake.time), ms(waited))));
        next = wake;
    }
    found
}

fn waker(wake: &Wake) -> String {
    let who = match wake.by {
        Pid::IDLE => "the idle task".to_owned(),
        pid => format!("{}[{pid}]", wake.by_comm),
    };
    match wake.in_interrupt {
        true => format!("an interrupt on CPU {} (over {who})", wake.cpu),
        false => format!("{who} on CPU {}", wake.cpu),
    }
}

/// The tasks that ran on a CPU meanwhile, the longest first.
fn ran_instead(cpu: CpuId, from: Time, to: Time, scene: &Scene, culprits: &mut Vec<Task>) -> Vec<String> {
    let stretches = scene.ran(cpu, from, to);
    let mut by_task: Vec<(Pid, Comm, Duration, u32)> = Vec::new();
    for Stretch { pid, comm, from, to } in &stretches {
        match by_task.iter_mut().find(|(known, ..)| known == pid) {
            Some((.., ran, count)) => {
                *ran += to.since(*from);
                *count += 1;
            }
            None => by_task.push((*pid, *comm, to.since(*from), 1)),
        }
    }
    by_task.sort_by_key(|(_, _, ran, _)| std::cmp::Reverse(*ran));
    let mut lines: Vec<String> = by_task
        .iter()
        .take(RAN)
        .map(|(pid, comm, ran, count)| {
            let who = if *pid == Pid::IDLE { "nobody".to_owned() } else { format!("{comm}[{pid}]") };
            let pieces = if *count == 1 { String::new() } else { format!(" in {count} stretches") };
            format!("CPU {cpu} ran {who} for {}{pieces}", ms(*ran))
        })
        .collect();
    let told = sum(&stretches);
    let missing = to.since(from).saturating_sub(told);
    if by_task.len() > RAN {
        lines.push(format!("CPU {cpu} ran others for less: {}", by_task.len() - RAN));
    }
    if missing > Duration::ZERO && !stretches.is_empty() {
        lines.push(format!("and before that others for {}", ms(missing)));
    }
    for (pid, comm, ..) in by_task.iter().filter(|(pid, ..)| *pid != Pid::IDLE).take(RAN) {
        culprits.push(Task { pid: pid.0, comm: comm.to_string() });
    }
    lines
}

impl Detector for LatencyOutlier {
    fn before(&mut self, event: &Event, scene: &Scene) {
        if let Kind::SchedSwitch { next_pid, next_comm, .. } = event.kind {
            self.runs(next_pid, next_comm, event.cpu, event.time, scene);
        }
    }

    fn after(&mut self, _: &Event, _: &Scene) {}

    fn finish(mut self: Box<Self>, scene: &Scene, end: Time) -> Findings {
        self.still_waiting(scene, end);
        let percentile = |percent| ms(Duration(self.latencies.percentile(percent).unwrap_or(0)));
        let figures = format!(
            "of {} wake-ups; median {}, 99 % under {}, longest {}",
            self.latencies.n(),
            percentile(50.0),
            percentile(99.0),
            percentile(100.0)
        );
        Findings {
            detector: "latency-outlier",
            looks_for: format!("A woken task waits for {} or longer.", self.threshold),
            blind: scene.heard().no_wakeup(),
            count: self.worst.count,
            lost_ns: self.worst.lost.0,
            figures: (self.latencies.n() > 0).then_some(figures),
            worst: self.worst.into_kept(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testdata::check;
    use expect_test::expect;

    #[test]
    fn a_wait_that_outlasts_the_trace_is_found() {
        check(
            "latency-outlier",
            "",
            "0    0 idle   switch R hog-1
             100  0 hog-1  waking db-2 0
             101  0 hog-1  wakeup db-2 0
             9000 0 hog-1  waking x-3 0",
            expect![[r#"
                0.000100 .. 0.009000  db[2] waited 8.900 ms for CPU 0
                    0.000100  hog[1] on CPU 0 woke db[2]; it was put on CPU 0
                    CPU 0 ran hog[1] for 8.900 ms
                    0.009000  the trace ends, and it has not run
                  rule   not in the trace; it may be the lack of HRTICK, a model other than preempt=full
                  try    HRTICK: slices end by a timer instead of at the tick after
                  try    preempt=full: a running task is preempted wherever that is allowed, not only at its next preemption point
            "#]],
        );
    }

    #[test]
    fn a_task_that_waits_behind_a_real_time_task_is_reported_so() {
        check(
            "latency-outlier",
            "",
            "0    0 idle   switch R fifo-1
             100  0 fifo-1 waking db-2 0
             101  0 fifo-1 wakeup db-2 0
             9000 0 fifo-1 switch S db-2",
            expect![[r#"
                0.000100 .. 0.009000  db[2] waited 8.900 ms for CPU 0
                    0.000100  fifo[1] on CPU 0 woke db[2]; it was put on CPU 0
                    CPU 0 ran fifo[1] for 8.900 ms
                    0.009000  it ran on CPU 0
                  rule   priority: fifo[1] is before it, whatever their slices
            "#]],
        );
    }

    #[test]
    fn a_wake_up_of_one_that_ran_is_over_when_it_sleeps() {
        check(
            "latency-outlier",
            "",
            "0     0 idle   switch R job-6
             100   1 nfsd-5 waking job-6 0
             101   1 nfsd-5 wakeup job-6 0
             5000  0 job-6  switch S hog-1
             50000 1 nfsd-5 waking job-6 0
             50001 1 nfsd-5 wakeup job-6 0
             50002 0 hog-1  switch R job-6",
            expect![[""]],
        );
    }

    #[test]
    fn the_chain_is_followed_back_to_the_interrupt() {
        check(
            "latency-outlier",
            "",
            "0     0 idle   switch R hog-1
             0     1 idle   switch R hog-2
             1000  2 idle!  waking nfsd-5 0
             1010  2 idle!  wakeup nfsd-5 0
             4000  0 hog-1  switch R nfsd-5
             4500  0 nfsd-5 placed job-6 wakeup 1 NO_IDLE_CPU
             4500  0 nfsd-5 waking job-6 0
             4501  0 nfsd-5 migrate job-6 0 1
             4502  0 nfsd-5 wakeup job-6 1
             4503  1 hog-2! asked job-6 KEEP_PROTECTED
             4600  0 nfsd-5 switch S hog-1
             7000  1 hog-2  switch R cc1-8
             9000  1 cc1-8  switch S job-6",
            expect![[r#"
                0.004500 .. 0.009000  job[6] waited 4.500 ms for CPU 1
                    0.001000  an interrupt on CPU 2 (over the idle task) woke nfsd[5], which waited 3.000 ms
                    0.004500  nfsd[5] on CPU 0 woke job[6]; it was put on CPU 1 (NO_IDLE_CPU)
                    CPU 1 ran hog[2] for 2.500 ms
                    CPU 1 ran cc1[8] for 2.000 ms
                    it did not preempt: KEEP_PROTECTED
                    0.009000  it ran on CPU 1
                  rule   NO_IDLE_CPU at wakeup, then KEEP_PROTECTED
                  avoid  NO_RUN_TO_PARITY: an eligible task with an earlier deadline runs at once (EEVDF)
            "#]],
        );
    }

    #[test]
    fn a_task_that_is_moved_while_it_waits_has_several_places() {
        check(
            "latency-outlier",
            "",
            "0     0 idle   switch R hog-1
             0     1 idle   switch R hog-2
             1000  0 hog-1  waking job-6 0
             1002  0 hog-1  wakeup job-6 0
             5000  1 hog-2! migrate job-6 0 1
             9000  1 hog-2  switch S job-6",
            expect![[r#"
                0.001000 .. 0.009000  job[6] waited 8.000 ms, most of it for CPU 0
                    0.001000  hog[1] on CPU 0 woke job[6]; it was put on CPU 0
                    CPU 0 ran hog[1] for 4.000 ms
                    0.005000  it was moved to CPU 1
                    CPU 1 ran hog[2] for 4.000 ms
                    0.009000  it ran on CPU 1
                  rule   not in the trace; it may be the lack of HRTICK, a model other than preempt=full
                  try    HRTICK: slices end by a timer instead of at the tick after
                  try    preempt=full: a running task is preempted wherever that is allowed, not only at its next preemption point
            "#]],
        );
    }

    #[test]
    fn a_new_task_behind_one_that_runs_long_has_a_guess() {
        check(
            "latency-outlier",
            "",
            "0     0 idle   switch R sh-1
             1000  0 sh-1   fork job-6
             1001  0 sh-1   new job-6 0
             12001 0 sh-1   switch R job-6",
            expect![[r#"
                0.001001 .. 0.012001  job[6] waited 11.000 ms for CPU 0
                    0.001001  sh[1] on CPU 0 made job[6]; it was put on CPU 0
                    CPU 0 ran sh[1] for 11.000 ms
                    0.012001  it ran on CPU 0
                  rule   not in the trace; it may be the lack of HRTICK, a model other than preempt=full
                  try    HRTICK: slices end by a timer instead of at the tick after
                  try    preempt=full: a running task is preempted wherever that is allowed, not only at its next preemption point
            "#]],
        );
    }

    #[test]
    fn a_wait_during_which_a_switch_is_missing_may_have_ended_there() {
        check(
            "latency-outlier",
            "",
            "0     0 idle   switch R hog-1
             1000  0 hog-1  waking job-6 0
             1001  0 hog-1  wakeup job-6 0
             5000  0 cc1-7  waking cc1-8 1
             9000  0 cc1-7  switch S job-6",
            expect![[r#"
                0.005000 .. 0.009000  cc1[8] waited 4.000 ms for CPU 1
                    0.005000  cc1[7] on CPU 0 woke cc1[8]; it was put on CPU 1
                    0.009000  the trace ends, and it has not run
                  rule   none alone: the turns of all before it add up; less load avoids it
            "#]],
        );
    }

    #[test]
    fn neither_short_waits_nor_preempted_tasks_are_outliers() {
        check(
            "latency-outlier",
            "",
            "0     0 idle   switch R hog-1
             1000  0 hog-1  waking job-6 0
             1002  0 hog-1  wakeup job-6 0
             4900  0 hog-1  switch R job-6
             15000 0 job-6  switch S hog-1",
            expect![[""]],
        );
    }
}
