//! Tasks are placed on a CPU that loses much of its time to interrupts.
//!
//! Such a CPU looks idle between interrupts, and a task placed there gets the time that they leave. The kernel knows:
//! it averages the time and subtracts it from the CPU's capacity. Placement uses that only if a feature enables it.
//!
//! The lost share is averaged here as in the kernel, with a half-life of 32 ms. Work that soft interrupts
//! leave to ksoftirqd does not count, as that is an ordinary task.
//!
//! An interrupt whose end is missing counts as zero time once something shows that it is over: a switch, an event
//! outside interrupts, another interrupt that cannot nest in it, or lost events.

use std::collections::BTreeMap;

use schedlab_topology::CpuId;
use schedlab_trace::{Comm, Event, Kind, bound_kthread};
use schedlab_units::{Duration, Pid, Time};

use super::avoid::{FIC_CAPACITY, SIS_CAPACITY};
use super::finding::{Finding, Findings, Task, Worst, counted};
use super::scene::Scene;
use super::{Detector, Thresholds};

pub(super) struct StolenCpu {
    percent: u64,
    cpus: BTreeMap<CpuId, Stolen>,
    has_interrupts: bool,
    worst: Worst,
    placements: u64,
}

#[derive(Default)]
struct Stolen {
    /// The share at a time; during an interrupt, at its beginning.
    share: f64,
    at: Time,
    /// Which kinds of [`Interrupt`] are in progress.
    open: [bool; 3],
    /// The task that was placed there meanwhile.
    bad: Option<Bad>,
}

struct Bad {
    from: Time,
    to: Time,
    wakeups: u64,
    forks: u64,
    share_max: f64,
    /// The first few tasks.
    tasks: BTreeMap<Pid, (Task, u64)>,
    /// A CPU that was idle and lost less, at the last of them.
    better: CpuId,
    rule: Option<String>,
}

/// Kinds of interrupts. A later kind may nest in an earlier one, at most once, and ends before that continues: handlers
/// run with interrupts off, and requests of another CPU may be handled within one.
///
/// Kernel: handle_softirqs(), kernel/softirq.c; __handle_irq_event_percpu(), kernel/irq/handle.c; do_handle_IPI(),
/// arch/arm64/kernel/smp.c, v6.12.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interrupt {
    Soft,
    Hard,
    Ipi,
}

impl Interrupt {
    /// The kind of interrupt that an event shows, and whether it begins.
    fn of(kind: &Kind) -> Option<(Interrupt, bool)> {
        match kind {
            Kind::SoftirqEntry { .. } => Some((Interrupt::Soft, true)),
            Kind::SoftirqExit { .. } => Some((Interrupt::Soft, false)),
            Kind::IrqHandlerEntry { .. } => Some((Interrupt::Hard, true)),
            Kind::IrqHandlerExit { .. } => Some((Interrupt::Hard, false)),
            Kind::IpiEntry { .. } => Some((Interrupt::Ipi, true)),
            Kind::IpiExit { .. } => Some((Interrupt::Ipi, false)),
            _ => None,
        }
    }
}

/// Number of tasks kept per CPU.
const NAMED: usize = 8;
/// Half-life of the average. Kernel: LOAD_AVG_PERIOD, kernel/sched/sched-pelt.h.
const HALF_LIFE: Duration = Duration::millis(32);

impl Stolen {
    /// The share lost up to a time, including an interrupt in progress.
    fn share(&self, time: Time) -> f64 {
        let kept = (-(time.since(self.at).0 as f64) / HALF_LIFE.0 as f64).exp2();
        let now = if self.is_open() { 1.0 } else { 0.0 };
        self.share * kept + now * (1.0 - kept)
    }

    fn is_open(&self) -> bool {
        self.open != [false; 3]
    }

    fn begin(&mut self, kind: Interrupt, time: Time) {
        // Interrupts that would have prevented it are over.
        self.open[kind as usize..].fill(false);
        if !self.is_open() {
            (self.share, self.at) = (self.share(time), time);
        }
        self.open[kind as usize] = true;
    }

    fn end(&mut self, kind: Interrupt, time: Time) {
        if !self.open[kind as usize] {
            return;
        }
        let share = self.share(time);
        self.open[kind as usize..].fill(false);
        if !self.is_open() {
            (self.share, self.at) = (share, time);
        }
    }

    /// Any interrupt in progress ended at some earlier time.
    fn is_over(&mut self) {
        self.open = [false; 3];
    }
}

impl StolenCpu {
    pub fn new(thresholds: &Thresholds) -> StolenCpu {
        StolenCpu {
            percent: thresholds.stolen_percent,
            cpus: BTreeMap::new(),
            has_interrupts: false,
            worst: Worst::new(thresholds.worst),
            placements: 0,
        }
    }

    fn share(&self, cpu: CpuId, time: Time) -> f64 {
        self.cpus.get(&cpu).map_or(0.0, |stolen| stolen.share(time))
    }

    fn interrupt(&mut self, event: &Event, kind: Interrupt, begins: bool) {
        self.has_interrupts = true;
        if event.comm.as_bytes().starts_with(b"ksoftirqd/") {
            return;
        }
        let stolen = self.cpus.entry(event.cpu).or_default();
        if begins { stolen.begin(kind, event.time) } else { stolen.end(kind, event.time) }
    }

    /// An event that may show its CPU outside interrupts.
    fn outside(&mut self, event: &Event) {
        let is_switch = matches!(event.kind, Kind::SchedSwitch { .. });
        if (is_switch || event.flags.is_known() && !event.flags.in_interrupt())
            && let Some(stolen) = self.cpus.get_mut(&event.cpu)
        {
            stolen.is_over();
        }
    }

    fn placed(&mut self, pid: Pid, task: Task, cpu: CpuId, is_fork: bool, time: Time, scene: &Scene) {
        // A thread bound to its CPU is not placed.
        if bound_kthread(&Comm::from(task.comm.as_str())).is_some() {
            return;
        }
        self.placements += 1;
        let line = self.percent as f64 / 100.0;
        let share = self.share(cpu, time);
        if share <= line {
            return;
        }
        let better =
            scene.idle_for(pid).iter().filter(|other| *other != cpu).find(|o| self.share(*o, time) <= line);
        let Some(better) = better else { return };
        let rule = scene.task(pid).and_then(|task| task.placed.as_ref());
        let rule = rule.map(|placed| format!("{} at {}", placed.reason, placed.how));
        let stolen = self.cpus.entry(cpu).or_default();
        let bad = stolen.bad.get_or_insert_with(|| Bad {
            from: time,
            to: time,
            wakeups: 0,
            forks: 0,
            share_max: share,
            tasks: BTreeMap::new(),
            better,
            rule: None,
        });
        bad.to = time;
        bad.wakeups += u64::from(!is_fork);
        bad.forks += u64::from(is_fork);
        bad.share_max = bad.share_max.max(share);
        bad.better = better;
        bad.rule = rule.or(bad.rule.take());
        if bad.tasks.len() < NAMED || bad.tasks.contains_key(&pid) {
            bad.tasks.entry(pid).or_insert((task, 0)).1 += 1;
        }
    }
}

impl Detector for StolenCpu {
    fn before(&mut self, event: &Event, scene: &Scene) {
        if let Some((kind, begins)) = Interrupt::of(&event.kind) {
            self.interrupt(event, kind, begins);
            return;
        }
        self.outside(event);
        match event.kind {
            Kind::SchedWakeup { pid, comm, target_cpu, .. } if !scene.is_running(pid) => {
                let task = Task { pid: pid.0, comm: comm.to_string() };
                self.placed(pid, task, target_cpu, false, event.time, scene);
            }
            Kind::SchedWakeupNew { pid, comm, target_cpu, .. } => {
                let task = Task { pid: pid.0, comm: comm.to_string() };
                self.placed(pid, task, target_cpu, true, event.time, scene);
            }
            _ => {}
        }
    }

    fn after(&mut self, _: &Event, _: &Scene) {}

    fn lost(&mut self, cpu: Option<CpuId>) {
        let of = |one: &CpuId| cpu.is_none_or(|cpu| cpu == *one);
        self.cpus.iter_mut().filter(|(one, _)| of(one)).for_each(|(_, stolen)| stolen.is_over());
    }

    fn finish(mut self: Box<Self>, _: &Scene, _: Time) -> Findings {
        let mut count = 0;
        for (cpu, stolen) in std::mem::take(&mut self.cpus) {
            let Some(bad) = stolen.bad else { continue };
            count += bad.wakeups + bad.forks;
            self.worst.add(Duration::ZERO, bad.wakeups + bad.forks, || {
                let mut tasks: Vec<(Task, u64)> = bad.tasks.into_values().collect();
                tasks.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
                let names: Vec<String> =
                    tasks.iter().map(|(task, n)| format!("{task} {}", counted(*n, "time"))).collect();
                let placed = [(bad.wakeups, "wake-up"), (bad.forks, "new task")];
                let placed: Vec<String> =
                    placed.iter().filter(|(n, _)| *n > 0).map(|(n, what)| counted(*n, what)).collect();
                let mut avoid = Vec::new();
                if bad.wakeups > 0 {
                    avoid.push(SIS_CAPACITY);
                }
                if bad.forks > 0 {
                    avoid.push(FIC_CAPACITY);
                }
                Finding {
                    from_ns: bad.from.0,
                    to_ns: bad.to.0,
                    cpus: vec![cpu.0, bad.better.0],
                    what: format!(
                        "put on CPU {cpu}, which lost up to {:.0} % to interrupts, while a better CPU was idle (at last \
                         CPU {}): {}, of {}",
                        100.0 * bad.share_max,
                        bad.better,
                        placed.join(" and "),
                        names.join(", ")
                    ),
                    tasks: tasks.into_iter().map(|(task, _)| task).collect(),
                    rule: bad.rule,
                    avoid,
                    ..Finding::default()
                }
            });
        }
        Findings {
            detector: "stolen-cpu",
            looks_for: format!(
                "A task is put on a CPU that loses more than {} % to interrupts while one that loses less is idle.",
                self.percent
            ),
            blind: (!self.has_interrupts).then(|| {
                "the trace has no interrupts; record irq:irq_handler_entry, _exit, irq:softirq_entry, _exit"
                    .to_owned()
            }),
            count: self.worst.count,
            lost_ns: 0,
            figures: (count > 0).then(|| format!("{count} of {} placements", self.placements)),
            worst: self.worst.into_kept(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testdata::{check, events, findings};
    use super::super::{Detect, Options};
    use super::*;
    use expect_test::expect;
    use schedlab_trace::Sink;
    use schedlab_trace::read::Lost;

    /// CPU 0 handles an interrupt of `us` each ms for 50 ms, CPU 1 is idle; then `event`.
    fn flooded(us: u64, event: &str) -> String {
        let mut script = String::from(
            "0 0 idle switch R ping-1\n5 0 ping-1 switch S idle\n0 1 idle switch R init-2\n5 1 init-2 switch S idle\n",
        );
        for ms in 1..50 {
            script += &format!("{} 0 idle! softirq\n{} 0 idle! softirqend\n", ms * 1000, ms * 1000 + us);
        }
        script + event
    }

    const WAKEUP: &str = "
        50000 0 idle! waking barrier-7 0
        50001 0 idle! wakeup barrier-7 0
        50100 0 idle switch R barrier-7";

    #[test]
    fn a_wakeup_onto_a_cpu_busy_with_interrupts_is_found() {
        check(
            "stolen-cpu",
            "",
            &flooded(500, WAKEUP),
            expect![[r#"
                0.050001 .. 0.050001  put on CPU 0, which lost up to 33 % to interrupts, while a better CPU was idle (at last CPU 1): 1 wake-up, of barrier[7] 1 time
                  rule   not in the trace; it may be the lack of SIS_CAPACITY
                  avoid  SIS_CAPACITY: a wake-up passes over CPUs that lose more than 20 % to interrupts
            "#]],
        );
    }

    #[test]
    fn a_new_task_has_its_own_way_out() {
        let fork = "50000 1 idle switch R sh-3
                    50001 1 sh-3 fork job-8
                    50002 1 sh-3 placed job-8 fork 0 IDLEST_RECENT
                    50003 1 sh-3 new job-8 0
                    50004 1 sh-3 switch S idle";
        // The only better CPU runs the forker.
        check("stolen-cpu", "", &flooded(500, fork), expect![[""]]);
        let third = format!("0 2 idle switch R sh-3\n1 2 sh-3 switch S idle\n{}", flooded(500, fork));
        check(
            "stolen-cpu",
            "",
            &third,
            expect![[r#"
                0.050003 .. 0.050003  put on CPU 0, which lost up to 33 % to interrupts, while a better CPU was idle (at last CPU 2): 1 new task, of job[8] 1 time
                  rule   IDLEST_RECENT at fork
                  avoid  FIC_CAPACITY: a new task passes over CPUs that lose more than 20 % to interrupts
            "#]],
        );
    }

    #[test]
    fn few_interrupts_or_no_better_cpu_are_none() {
        check("stolen-cpu", "", &flooded(100, WAKEUP), expect![[""]]);
        let busy = flooded(500, WAKEUP).replace("5 1 init-2 switch S idle", "5 1 init-2 switch R cc1-4");
        check("stolen-cpu", "", &busy, expect![[""]]);
        assert!(findings("stolen-cpu", "", "0 0 idle switch R ping-1").blind.is_some());
    }

    #[test]
    fn half_of_the_share_is_forgotten_in_32_ms() {
        let mut stolen = Stolen::default();
        stolen.begin(Interrupt::Soft, Time::ZERO);
        stolen.end(Interrupt::Soft, Time(32_000_000));
        assert_eq!(stolen.share(Time(32_000_000)), 0.5);
        assert_eq!(stolen.share(Time(64_000_000)), 0.25);
    }

    #[test]
    fn an_interrupt_without_an_end_is_over_when_it_must_be() {
        use Interrupt::{Hard, Ipi, Soft};
        let share = |steps: &[(u64, Interrupt, bool)]| {
            let mut stolen = Stolen::default();
            for &(ms, kind, begins) in steps {
                let time = Time(ms * 1_000_000);
                if begins { stolen.begin(kind, time) } else { stolen.end(kind, time) }
            }
            stolen.share(Time(64_000_000))
        };
        for (steps, expected) in [
            (vec![(32, Soft, true), (64, Soft, false)], 0.5),
            (vec![(0, Soft, true), (32, Soft, true), (64, Soft, false)], 0.5),
            (vec![(0, Hard, true), (32, Soft, true), (64, Soft, false)], 0.5),
            (vec![(0, Ipi, true), (32, Hard, true), (64, Hard, false)], 0.5),
            (vec![(0, Soft, true), (32, Hard, true), (64, Soft, false)], 0.75),
            (vec![(0, Hard, true), (8, Ipi, true), (16, Ipi, false), (64, Hard, false)], 0.75),
            // Beginnings are missing instead.
            (vec![(0, Soft, false), (32, Soft, true), (48, Hard, false), (64, Soft, false)], 0.5),
        ] {
            assert_eq!(share(&steps), expected, "{steps:?}");
        }
    }

    #[test]
    fn a_lost_end_steals_nothing_once_the_cpu_is_seen_outside() {
        let wakeup = "150000 1 idle! waking barrier-7 0
                      150001 1 idle! wakeup barrier-7 0
                      150100 0 idle switch R barrier-7";
        let begun = flooded(100, "50000 0 idle! softirq\n");
        let found = |what: &str| findings("stolen-cpu", "", &format!("{begun}{what}{wakeup}")).count;
        assert_eq!(found(""), 1, "nothing shows that it is over");
        assert_eq!(found("50100 0 idle switch R a-9\n50200 0 a-9 switch S idle\n"), 0, "a switch");
        assert_eq!(found("50100 0 idle waking a-9 3\n"), 0, "no interrupt goes on");
        assert_eq!(found("50100 0 idle! waking a-9 3\n"), 1);
    }

    #[test]
    fn what_goes_on_when_events_are_lost_may_be_over() {
        let found = |lost: Option<Option<CpuId>>| {
            let mut detect = Detect::new(Options::default());
            events(&flooded(100, "50000 0 idle! softirq\n")).iter().for_each(|event| detect.event(event));
            if let Some(cpu) = lost {
                detect.lost(&Lost { cpu, count: None, after: None });
            }
            let wakeup = "150000 1 idle! waking barrier-7 0\n150001 1 idle! wakeup barrier-7 0";
            events(wakeup).iter().for_each(|event| detect.event(event));
            let all = detect.finish().detectors;
            all.iter().find(|findings| findings.detector == "stolen-cpu").unwrap().count
        };
        assert_eq!(found(None), 1);
        assert_eq!([None, Some(0), Some(1)].map(|cpu| found(Some(cpu.map(CpuId)))), [0, 0, 1]);
    }
}
