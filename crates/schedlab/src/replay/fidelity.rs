//! Whether a replay on the recorded machine reproduces the recording.

use std::sync::atomic::{AtomicUsize, Ordering};

use schedlab_report::metrics::Cause;
use schedlab_units::Duration;
use serde::Serialize;

use super::trial::{Replayed, Trial};
use super::{Figures, Form, Home, Recorded, ms};
use crate::error::Error;
use crate::experiment::nth_seed;

/// Counts may be off by this share.
const COUNTS_GOAL: f64 = 0.10;
/// Busy time of each task may be off by this share.
const BUSY_GOAL: f64 = 0.02;
/// The standard error of a mean is small enough if it is this fraction of the goal.
const UNSURE: f64 = 0.25;
/// A count below this is a handful: it may be off by a tenth of this, whatever its own size.
const HANDFUL: f64 = 100.0;
/// The busy time of tasks below this share of all work may be off relative to this share.
const SMALL: f64 = 0.001;

/// A figure as recorded and as replayed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// What it counts.
    pub what: String,
    /// In the recording.
    pub recorded: f64,
    /// The mean of the replays.
    pub replayed: f64,
    /// The minimum and maximum over the replays.
    pub spread: (f64, f64),
    /// The standard error of the mean, in units of the allowed deviation; 0 if there is no goal.
    pub unsure: f64,
    /// The relative deviation of the replays.
    pub off: f64,
    /// The deviation in units of the allowed one; 0 if there is no goal.
    pub misfit: f64,
    /// Whether that is within the goal.
    pub within: bool,
}

/// Number of replays behind a mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// Exactly this many.
    Exactly(u32),
    /// As many as needed until the standard error of each count's mean is a quarter of the allowed deviation,
    /// from [`Runs::LEAST`] to [`Runs::MOST`].
    Enough,
}

impl Runs {
    /// The batch size if the number is not specified.
    pub const LEAST: u32 = 16;
    /// This many are enough, whatever their spread.
    pub const MOST: u32 = 64;

    /// Number of replays before the first check.
    fn first(self) -> u32 {
        match self {
            Runs::Exactly(runs) => runs,
            Runs::Enough => Runs::LEAST,
        }
    }

    /// Whether there are enough replays.
    pub(super) fn are_enough(self, fidelity: &Fidelity) -> bool {
        match self {
            Runs::Exactly(runs) => fidelity.runs >= runs,
            Runs::Enough => fidelity.is_settled() || fidelity.runs >= Runs::MOST,
        }
    }
}

/// How a replay compares with its recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fidelity {
    /// The machine.
    pub machine: String,
    /// How many CPUs it has.
    pub nr_cpus: usize,
    /// The kernel.
    pub kernel: String,
    /// The sched_ext scheduler that made the recording, if one did. The fair class replays it, although it did not
    /// make the decisions of the recording.
    pub sched_ext: Option<String>,
    /// The form of the replay.
    pub form: Form,
    /// Number of seeds in the mean.
    pub runs: u32,
    /// The counts that are judged: switches, wake-ups, migrations.
    pub counts: Vec<Line>,
    /// The busy time of each task, ms.
    pub busy: Vec<Line>,
    /// Figures without a goal.
    pub others: Vec<Line>,
}

impl Line {
    fn count(what: &str, recorded: f64, replays: Replays) -> Line {
        let (replayed, spread) = (replays.mean, replays.spread);
        let off = share(recorded, replayed);
        let goal = goal(recorded);
        let (misfit, unsure) = ((replayed - recorded).abs() / goal, replays.error() / goal);
        Line {
            what: what.to_string(),
            recorded,
            replayed,
            spread,
            unsure,
            off,
            misfit,
            within: misfit <= 1.0,
        }
    }

    fn busy(what: String, recorded: f64, replayed: f64, all: f64) -> Line {
        let off = share(recorded, replayed);
        let misfit =
            (replayed - recorded).abs() / (BUSY_GOAL * recorded.max(SMALL * all)).max(f64::MIN_POSITIVE);
        let spread = (replayed, replayed);
        Line { what, recorded, replayed, spread, unsure: 0.0, off, misfit, within: misfit <= 1.0 }
    }

    /// Whether the recording is within the range of the replays, so that a deviation does not speak against
    /// the rules.
    pub fn is_in_spread(&self) -> bool {
        (self.spread.0..=self.spread.1).contains(&self.recorded)
    }
}

/// A count over all replays.
#[derive(Clone, Copy, Debug)]
struct Replays {
    count: f64,
    mean: f64,
    /// Sum of squared distances from the mean.
    squares: f64,
    spread: (f64, f64),
}

impl Replays {
    const NONE: Replays = Replays { count: 0.0, mean: 0.0, squares: 0.0, spread: (f64::INFINITY, 0.0) };

    fn add(&mut self, value: f64) {
        self.count += 1.0;
        let off = value - self.mean;
        self.mean += off / self.count;
        self.squares += off * (value - self.mean);
        self.spread = (self.spread.0.min(value), self.spread.1.max(value));
    }

    /// The standard error of the mean; unknown for a single value.
    fn error(&self) -> f64 {
        if self.count < 2.0 {
            return f64::INFINITY;
        }
        (self.squares / (self.count - 1.0) / self.count).sqrt()
    }
}

/// The allowed deviation of a count.
fn goal(recorded: f64) -> f64 {
    COUNTS_GOAL * recorded.max(HANDFUL)
}

/// The relative deviation; 1 if the recorded value is zero.
fn share(recorded: f64, replayed: f64) -> f64 {
    match (recorded == replayed, recorded == 0.0) {
        (true, _) => 0.0,
        (_, true) => 1.0,
        _ => replayed / recorded - 1.0,
    }
}

impl Fidelity {
    /// The largest relative deviation of a count that is not a handful; `None` if all are.
    pub fn counts_off(&self) -> Option<f64> {
        let off = self.judged().filter(|line| line.recorded >= HANDFUL).map(|line| line.off.abs());
        off.reduce(f64::max)
    }

    /// The largest absolute deviation of a handful; `None` if no count is one.
    pub fn handfuls_off(&self) -> Option<f64> {
        let handfuls = self.judged().filter(|line| line.recorded < HANDFUL);
        handfuls.map(|line| (line.replayed - line.recorded).abs()).reduce(f64::max)
    }

    /// The counts that are in the recording.
    fn judged(&self) -> impl Iterator<Item = &Line> {
        self.counts.iter().filter(|line| line.misfit > 0.0 || line.off == 0.0)
    }

    /// The largest relative deviation of a task's busy time.
    pub fn busy_off(&self) -> f64 {
        let all: f64 = self.busy.iter().map(|line| line.recorded).sum();
        worst(self.busy.iter().filter(|line| !line.within || line.recorded >= SMALL * all))
    }

    /// The deviation of switches and migrations in each half of the recording, in units of the allowed one; the
    /// worse of both.
    pub fn halves(&self) -> [f64; 2] {
        let [switches, _, migrations] = &self.counts[..] else { return [0.0; 2] };
        let [.., later_switches, later_migrations] = &self.others[..] else { return [0.0; 2] };
        let mut halves = [0.0f64; 2];
        for (all, later) in [(switches, later_switches), (migrations, later_migrations)] {
            let (recorded, replayed) = (all.recorded - later.recorded, all.replayed - later.replayed);
            let misfit = [(replayed - recorded).abs() / goal(recorded), later.misfit];
            halves = [halves[0].max(misfit[0]), halves[1].max(misfit[1])];
        }
        halves
    }

    /// Whether more runs would hardly move the mean of any count.
    pub(super) fn is_settled(&self) -> bool {
        self.counts.iter().all(|line| line.unsure <= UNSURE)
    }

    /// The figures outside the goals, in words.
    pub fn outside(&self) -> Vec<String> {
        let counts = self.counts.iter().filter(|line| !line.within).map(|line| {
            let (least, most) = line.spread;
            let among = if line.is_in_spread() { ", the recorded one among them" } else { "" };
            let seeds = format!("; seeds {least:.0} to {most:.0}{among}");
            format!(
                "{} {:.0} instead of {:.0} ({:+.1} %{})",
                line.what,
                line.replayed,
                line.recorded,
                line.off * 100.0,
                if self.runs > 1 { &seeds } else { "" }
            )
        });
        let busy = self.busy.iter().filter(|line| !line.within).map(|line| {
            format!(
                "{} ran {:.2} ms instead of {:.2} ({:+.1} %)",
                line.what,
                line.replayed,
                line.recorded,
                line.off * 100.0
            )
        });
        counts.chain(busy).collect()
    }

    /// The deviations beside the goals.
    pub(super) fn goals(&self) -> String {
        let (percent, least) = (COUNTS_GOAL * 100.0, HANDFUL);
        let counts = self.counts_off().map(|off| {
            format!("counts of {least} and more off by at most {:.1} % (goal {percent:.0} %), ", off * 100.0)
        });
        let handfuls = self.handfuls_off().map(|off| {
            format!("counts below {least} by at most {off:.1} (goal {:.0}), ", COUNTS_GOAL * HANDFUL)
        });
        format!(
            "{}{}busy time per task by {:.1} % (goal {:.0} %)",
            counts.unwrap_or_default(),
            handfuls.unwrap_or_default(),
            self.busy_off() * 100.0,
            BUSY_GOAL * 100.0
        )
    }

    /// The figures outside the goals, in one line.
    pub(super) fn outside_text(&self) -> String {
        let outside = self.outside();
        let shown = outside.len().min(OUTSIDE_SHOWN);
        let mut text = outside[..shown].join("; ");
        if outside.len() > shown {
            text += &format!("; and {} more", outside.len() - shown);
        }
        text
    }

    /// The fidelity line, the fitted form, and the figures outside the goals, if any.
    pub fn text(&self) -> String {
        let foreign = self.sched_ext.as_ref().map(|name| {
            format!(
                "recorded under a scheduler of sched_ext ({name}), which the fair class is not: \
                 these figures judge no rule; "
            )
        });
        let mut text = format!(
            "fidelity  {}replayed on its own machine ({} CPUs, {}), mean of {} seeds: {}\n",
            foreign.unwrap_or_default(),
            self.nr_cpus,
            self.kernel,
            self.runs,
            self.goals()
        );
        text += &format!("form      {}\n", self.form);
        if !self.outside().is_empty() {
            text += &format!("outside   {}\n", self.outside_text());
        }
        text
    }
}

/// Maximum number of figures listed as outside.
const OUTSIDE_SHOWN: usize = 6;

fn worst<'a>(lines: impl Iterator<Item = &'a Line>) -> f64 {
    lines.map(|line| line.off.abs()).fold(0.0, f64::max)
}

impl Home<'_> {
    /// Replays on the recorded machine with several seeds, and compares.
    ///
    /// # Errors
    /// A replay that cannot be made.
    pub fn fidelity(
        &self,
        form: Form,
        runs: Runs,
        progress: impl Fn(usize, usize) + Sync,
    ) -> Result<Fidelity, Error> {
        let trial = Trial::new(self, form)?;
        let done = AtomicUsize::new(0);
        let mut replays = Vec::new();
        loop {
            let total = replays.len() + runs.first() as usize;
            let told = || progress(done.fetch_add(1, Ordering::Relaxed) + 1, total);
            let seeds = (replays.len() as u64..total as u64).map(|nth| nth_seed(self.seed, nth));
            replays.extend(trial.runs(seeds, told)?);
            let fidelity = self.compare(form, &replays);
            if runs.are_enough(&fidelity) {
                return Ok(fidelity);
            }
        }
    }

    /// The recording beside replays of one form.
    pub(super) fn compare(&self, form: Form, replays: &[Replayed]) -> Fidelity {
        let Home { recorded: of, topology, kernel, .. } = self;
        let runs = replays.len() as u32;
        let mut sums = vec![0.0; of.learned.tasks.len()];
        let mut means = [Replays::NONE; FIGURES];
        for replay in replays {
            for (mean, value) in means.iter_mut().zip(replay.figures) {
                mean.add(value);
            }
            for (sum, busy) in sums.iter_mut().zip(&replay.busy) {
                *sum += busy / f64::from(runs);
            }
        }
        let mut recorded = values(&of.figures, of.half());
        // A wake-up that comes before its task is asleep is not a step of any program.
        recorded[1] -= of.learned.wakeups_of_awake as f64;
        recorded[1] = recorded[1].max(0.0);
        let unrecorded = of.unrecorded();
        let line = |(i, what): (usize, &&str)| {
            let line = Line::count(what, recorded[i], means[i]);
            if unrecorded.contains(what) {
                Line { misfit: 0.0, unsure: 0.0, within: true, ..line }
            } else {
                line
            }
        };
        let counts = COUNTS.iter().enumerate().map(line).collect();
        let line = |(i, what): (usize, &&str)| {
            Line::count(what, recorded[COUNTS.len() + i], means[COUNTS.len() + i])
        };
        let others = OTHERS.iter().enumerate().map(line).collect();
        let all: f64 = of.learned.tasks.iter().map(|task| ms(task.work())).sum();
        let kept = of.learned.tasks.iter().zip(&sums).filter(|(task, _)| !task.is_left_out);
        let busy = kept
            .map(|(task, replayed)| {
                Line::busy(format!("{}-{}", task.comm, task.pid), ms(task.work()), *replayed, all)
            })
            .collect();
        Fidelity {
            machine: topology.name.clone(),
            nr_cpus: topology.nr_cpus(),
            kernel: kernel.name.clone(),
            sched_ext: of.sched_ext.clone(),
            form,
            runs,
            counts,
            busy,
            others,
        }
    }
}

impl Recorded {
    /// Half of the recorded time.
    pub(super) fn half(&self) -> Duration {
        Duration(self.figures.busy.span().0 / 2)
    }

    /// Counts whose events the recording lacks entirely, although they must have happened.
    pub(super) fn unrecorded(&self) -> Vec<&'static str> {
        let [_, wakeups, migrations] = COUNTS;
        let counted = [
            (wakeups, self.figures.counts.wakeups, self.lacks.wakeups),
            (migrations, self.figures.migrations.total(), self.lacks.migrations),
        ];
        let lacking = counted.into_iter().filter(|&(_, count, happened)| count == 0 && happened);
        lacking.map(|(what, ..)| what).collect()
    }
}

/// The counts that are judged.
const COUNTS: [&str; 3] = ["switches", "wake-ups of sleepers", "migrations"];
/// Figures that are only printed.
const OTHERS: [&str; 14] = [
    "involuntary switches",
    "moved at wake-up",
    "moved newly idle",
    "moved periodic",
    "moved nohz",
    "moved by stopper",
    "pushed or pulled",
    "moved by affinity",
    "new tasks",
    "elapsed ms",
    "latency p50 us",
    "latency p99 us",
    "switches of the second half",
    "migrations of the second half",
];

/// How many there are.
pub(super) const FIGURES: usize = COUNTS.len() + OTHERS.len();

/// All of them; the second half begins after so long.
pub(super) fn values(figures: &Figures, half: Duration) -> [f64; FIGURES] {
    let (switches, migrations) = figures.course.after(half);
    let us = |percent| figures.latency.histogram.percentile(percent).unwrap_or(0) as f64 / 1e3;
    let [wakeup, newly_idle, periodic, nohz, stopper, push_pull, affinity] =
        Cause::ALL.map(|cause| figures.migrations.of(cause) as f64);
    [
        (figures.counts.voluntary + figures.counts.involuntary) as f64,
        figures.counts.wakeups as f64,
        figures.migrations.total() as f64,
        figures.counts.involuntary as f64,
        wakeup,
        newly_idle,
        periodic,
        nohz,
        stopper,
        push_pull,
        affinity,
        figures.counts.forks as f64,
        ms(figures.busy.span()),
        us(50.0),
        us(99.0),
        switches as f64,
        migrations as f64,
    ]
}

#[cfg(test)]
mod tests {
    use schedlab_sched::Kernel;
    use schedlab_topology::Topology;

    use super::*;

    /// The recording of a task that sleeps and is woken, and of two others at that time.
    fn recorded(between: &str) -> Recorded {
        let text = format!(
            " a-7 [000] d..2. 1.000010: sched_switch: prev_comm=a prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=b next_pid=8 next_prio=120
              b-8 [000] d..2. 1.000020: sched_waking: comm=a pid=7 prio=120 target_cpu=000
              {between}
              b-8 [000] d..2. 1.000040: sched_switch: prev_comm=b prev_pid=8 prev_prio=120 prev_state=R ==> next_comm=a next_pid=7 next_prio=120
              c-9 [001] d..2. 1.000050: sched_switch: prev_comm=c prev_pid=9 prev_prio=120 prev_state=R ==> next_comm=swapper/1 next_pid=0 next_prio=120\n"
        );
        let mut listener = super::super::Listener::new();
        for record in schedlab_trace::read::ftrace::Reader::new(text.as_bytes()) {
            if let schedlab_trace::read::Record::Event(event) = record.unwrap() {
                schedlab_trace::Sink::event(&mut listener, &event);
            }
        }
        listener.finish("text").unwrap()
    }

    #[test]
    fn none_is_judged_unless_there_must_have_been_some() {
        let woken = "b-8 [000] d..2. 1.000021: sched_wakeup: comm=a pid=7 prio=120 target_cpu=000";
        let runs_elsewhere = "b-8 [000] d..2. 1.000030: sched_switch: prev_comm=b prev_pid=8 prev_prio=120 prev_state=R ==> next_comm=c next_pid=9 next_prio=120
              c-9 [000] d..2. 1.000032: sched_switch: prev_comm=c prev_pid=9 prev_prio=120 prev_state=R ==> next_comm=b next_pid=8 next_prio=120";
        let topology = Topology::regular("1x1x2").unwrap();
        let outside = |between: &str| -> Vec<String> {
            let recorded = recorded(between);
            let replayed =
                Replayed { figures: [50.0; FIGURES], busy: vec![0.0; recorded.learned.tasks.len()] };
            let kernel = Kernel::parse("v6.12").unwrap();
            let fidelity =
                recorded.at_home(&topology, &kernel, 1, 1).unwrap().compare(Form::USUAL, &[replayed]);
            let outside = fidelity.counts.into_iter().filter(|line| !line.within);
            outside.map(|line| format!("{} {}", line.what, line.recorded)).collect()
        };
        assert_eq!(outside(woken), ["switches 3", "wake-ups of sleepers 1", "migrations 0"]);
        assert_eq!(outside(""), ["switches 3", "migrations 0"], "a slept and ran");
        let elsewhere = format!("{woken}\n{runs_elsewhere}");
        assert_eq!(outside(&elsewhere), ["switches 5", "wake-ups of sleepers 1"], "c ran on both CPUs");
    }

    #[test]
    fn the_goals_are_reported_of_all_counts() {
        let count = |recorded: f64, replayed: f64| {
            let mut replays = Replays::NONE;
            replays.add(replayed);
            Line::count("switches", recorded, replays)
        };
        let unrecorded = Line { misfit: 0.0, within: true, ..count(0.0, 70.0) };
        let goals = |counts: &[(f64, f64)]| {
            let mut counts: Vec<Line> = counts.iter().map(|&(was, is)| count(was, is)).collect();
            counts.push(unrecorded.clone());
            let fidelity = Fidelity {
                machine: String::new(),
                nr_cpus: 1,
                kernel: String::new(),
                sched_ext: None,
                form: Form::USUAL,
                runs: 1,
                counts,
                busy: Vec::new(),
                others: Vec::new(),
            };
            fidelity.goals()
        };
        let busy = "busy time per task by 0.0 % (goal 2 %)";
        let many = "counts of 100 and more off by at most 5.0 % (goal 10 %)";
        assert_eq!(
            goals(&[(1000.0, 950.0), (100.0, 104.0), (11.0, 6.0), (0.0, 1.0)]),
            format!("{many}, counts below 100 by at most 5.0 (goal 10), {busy}")
        );
        assert_eq!(goals(&[(1000.0, 950.0)]), format!("{many}, {busy}"));
        assert_eq!(goals(&[(11.0, 31.0)]), format!("counts below 100 by at most 20.0 (goal 10), {busy}"));
    }

    #[test]
    fn runs_are_enough_when_the_mean_has_settled_or_there_are_many() {
        // Off by 10 in either direction; the goal is 20.
        let fidelity = |runs: u32, recorded: f64| {
            let mut replays = Replays::NONE;
            (0..runs).for_each(|run| replays.add(if run % 2 == 0 { 190.0 } else { 210.0 }));
            Fidelity {
                machine: String::new(),
                nr_cpus: 1,
                kernel: String::new(),
                sched_ext: None,
                form: Form::USUAL,
                runs,
                counts: vec![Line::count("switches", recorded, replays)],
                busy: Vec::new(),
                others: Vec::new(),
            }
        };
        let two = fidelity(2, 200.0);
        assert_eq!((two.counts[0].replayed, two.counts[0].spread), (200.0, (190.0, 210.0)));
        assert!((two.counts[0].unsure - 0.5).abs() < 1e-9, "{:?}", two.counts[0]);
        assert!(fidelity(1, 200.0).counts[0].unsure.is_infinite());
        let enough = |runs, recorded| Runs::Enough.are_enough(&fidelity(runs, recorded));
        assert_eq!([2, 16].map(|runs| enough(runs, 200.0)), [false, true]);
        // Of a handful the goal is 10.
        assert_eq!([16, 64].map(|runs| enough(runs, 50.0)), [false, true]);
        assert!(Runs::Exactly(2).are_enough(&two));
    }
}
