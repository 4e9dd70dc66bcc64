//! The simulator guided by a recording: hogs are on the recorded CPUs, and share them by our rules.
//!
//! Balancing decides which tasks share a CPU, and a small difference early in a run changes that for the rest. So the
//! recorded moves happen at their times, and nothing else moves: forks, moves and, if the recording contains them,
//! ticks come as recorded. Tasks other than the hogs are runnable when they were in the recording, for as long as they
//! ran there. The simulator decides which of the tasks on a CPU runs, for how long, and which task preempts which.

use std::collections::BTreeMap;

use schedlab_machine::{Machine, Mechanism, Without};
use schedlab_sched::Kernel;
use schedlab_sim::{Change, Simulation, Timed};
use schedlab_topology::{CpuId, Topology};
use schedlab_trace::{Comm, Sink};
use schedlab_units::{Duration, Pid, Time};
use schedlab_workload::{CpuList, Policy, SchedAttr, SpecId, TaskSpec, Workload, WorkloadBuilder};

use crate::bystanders::as_recorded;
use crate::course::{Course, Courses};
use crate::program::Program;
use crate::turns;
use schedlab::Error;

/// How long a hog usually runs before it sets its name. `sched_stat_runtime` shows 90 to 110 us for most hogs, and up
/// to 1.6 ms for those that wait long for their turn in the emulator.
const BEFORE_NAME: Duration = Duration::micros(100);

/// How long it usually runs after its span of wall time, per CPU of the emulator; all CPUs share one processor. The
/// recordings show 0.1 to 2 ms.
const AFTER_WALL: Duration = Duration::micros(60);

/// How much longer than the recording the simulation may take.
const TAIL: Duration = Duration::millis(100);

/// The longest time that a hog takes to begin, or to end.
const AN_END: Duration = Duration::millis(3);

/// Work between two reads of the clock.
const BLOCK: Duration = Duration::micros(6);

/// The simulation that follows a recording: the tasks, and the external events.
#[derive(Clone, Debug)]
pub struct Led {
    workload: Workload,
    changes: Vec<Timed>,
    span: Duration,
}

impl Led {
    /// Creates one from the courses of a recorded run of `wl_hogs`.
    ///
    /// # Errors
    /// The program is another one, or the recording contains no fork of a hog.
    pub fn new(courses: &Courses, program: &Program, tick: Duration) -> Result<Led, Error> {
        let wall = program.wall().ok_or_else(|| Error::new("only hogs can be led"))?;
        let (begin, end) = courses.span.ok_or_else(|| Error::new("the recording is empty"))?;
        let after = AFTER_WALL * courses.cpus().len() as u64;
        let mut w = WorkloadBuilder::new("led");
        let mut specs: BTreeMap<Pid, SpecId> = BTreeMap::new();
        for (&pid, course) in &courses.tasks {
            if course.bursts.is_empty() {
                continue;
            }
            let spec = match hog(course.comm, program) {
                Some(number) => {
                    let nice = nice_of(program, number);
                    let policy = Policy::Normal { nice };
                    let attr = w.attr(SchedAttr { policy, ..SchedAttr::default() });
                    let (before_name, before_wall) = beginning(course, nice, wall);
                    let until_wall = Duration(before_wall.0 - before_name.0);
                    let code = w.program(course.comm.to_string(), |p| {
                        p.run(before_name).own_comm().set_sched(attr);
                        p.run(until_wall).run_wall(wall, BLOCK).run(after);
                    });
                    TaskSpec::forked(course.comm.to_string(), code)
                }
                None => as_recorded(&mut w, course, begin, CpuList::new([course.cpu])),
            };
            specs.insert(pid, w.task(spec));
        }
        let mut changes = vec![Timed { at: Duration::ZERO, change: Change::NoDomains }];
        for (pid, course) in &courses.tasks {
            let Some(&task) = specs.get(pid) else { continue };
            if hog(course.comm, program).is_some() {
                let parent = course.parent.and_then(|parent| specs.get(&parent).copied());
                let parent = parent.ok_or_else(|| Error::new(format!("{}: nobody forks it", course.comm)))?;
                let at = course.bursts[0].0.since(begin);
                changes.push(Timed { at, change: Change::Fork { parent, child: task, cpu: course.cpu } });
            }
            for &(at, cpu) in &course.moves {
                changes.push(Timed { at: at.since(begin), change: Change::Bind { task, cpu } });
            }
        }
        changes.extend(ticks(courses, (begin, end), tick));
        changes.sort_by_key(|timed| timed.at);
        let workload = w.finish().map_err(|e| Error::new(e.to_string()))?;
        Ok(Led { workload, changes, span: end.since(begin) })
    }

    /// Runs it.
    ///
    /// # Errors
    /// The machine lacks a CPU of the recording.
    pub fn run(&self, machine: &Machine, kernel: &Kernel, sink: &mut dyn Sink) -> Result<(), Error> {
        let wrong = |e: schedlab_sim::SimError| Error::new(e.to_string());
        let simulation = Simulation::new(machine, kernel, &self.workload).map_err(wrong)?;
        let simulation = simulation.changes(self.changes.clone()).map_err(wrong)?;
        simulation.limit(self.span + TAIL).run(sink);
        Ok(())
    }
}

/// A machine on which only the kernel's own paths take time: the emulator's other costs are already in the recorded
/// times.
///
/// # Errors
/// The facts do not describe a machine.
pub fn bare_machine(name: &str, topology: &str) -> Result<Machine, Error> {
    let topology = Topology::from_sysfs_lines(name, topology).map_err(|e| Error::new(e.to_string()))?;
    let off = Mechanism::TABLE.iter().map(|row| row.0).filter(|&m| m != Mechanism::KernelCosts);
    Ok(Machine::of(topology).without(off.fold(Without::NOTHING, Without::with)))
}

/// How long a hog ran before it set its name and nice value, and before it first read the clock, estimated from the
/// recording. A hog that lowers its priority is preempted at once if another task is due; if it lost its CPU in its
/// first few ms, this was the reason. Its span was over when it exited. It was not over when the hog last lost its CPU
/// or, if it then ran for long, a few ms before its end.
fn beginning(course: &Course, nice: i8, wall: Duration) -> (Duration, Duration) {
    let (least, most) = course.renamed;
    let made_way = nice > 0 && most < AN_END;
    let name = if made_way { most } else { BEFORE_NAME.clamp(least, most.max(least)) };
    let mut last = course.stretches.iter().rev();
    let Some(&(from, end)) = last.next() else { return (name, name) };
    let lost = last.next().map_or(from, |&(_, to)| to);
    let open = lost.max(Time(end.0.saturating_sub(AN_END.0)));
    let ran_by = |time: Time| course.ran_by(Time(time.0.saturating_sub(wall.0)));
    let least = name.max(ran_by(open));
    (name, name.clamp(least, ran_by(end).max(least)))
}

fn nice_of(program: &Program, hog: usize) -> i8 {
    let nice = program.nice();
    nice.get(hog % nice.len().max(1)).copied().unwrap_or(0)
}

/// The number of a hog.
fn hog(comm: Comm, program: &Program) -> Option<usize> {
    comm.to_str_lossy().strip_prefix(program.prefix())?.parse().ok()
}

/// The ticks that the recording contains or, if it contains none, those that explain it.
fn ticks(courses: &Courses, (begin, end): (Time, Time), tick: Duration) -> Vec<Timed> {
    let cpus: Vec<CpuId> = courses.cpus().into_iter().collect();
    let explained = || turns::ticks(&courses.preempted, &cpus, (begin, end + TAIL), tick);
    let ticks = if courses.ticks.is_empty() { explained() } else { courses.ticks.clone() };
    ticks.into_iter().map(|(at, cpu)| Timed { at: at.since(begin), change: Change::Tick(cpu) }).collect()
}

/// A hog's share of a CPU over its span of wall time.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// Which hog.
    pub hog: usize,
    /// Its nice value.
    pub nice: i8,
    /// The recorded share.
    pub recorded: f64,
    /// The simulated share.
    pub simulated: f64,
}

impl Share {
    /// The difference between simulated and recorded, as a fraction of one CPU.
    pub fn off(&self) -> f64 {
        (self.simulated - self.recorded).abs()
    }

    /// Whether the simulated share is off by at most this fraction of the recorded one.
    pub fn is_within(&self, part: f64) -> bool {
        self.off() <= part * self.recorded
    }
}

/// The shares of a recording's hogs, recorded and simulated.
///
/// # Errors
/// The recording cannot be followed.
pub fn shares(
    courses: &Courses,
    program: &Program,
    machine: &Machine,
    kernel: &Kernel,
) -> Result<Vec<Share>, Error> {
    let tick = Duration(1_000_000_000 / kernel.tunables.hz);
    let mut ours = Courses::default();
    Led::new(courses, program, tick)?.run(machine, kernel, &mut ours)?;
    let wall = program.wall().unwrap_or_default().0 as f64;
    let of = |courses: &Courses| -> BTreeMap<usize, f64> {
        let hogs = courses.tasks.values().filter_map(|c| Some((hog(c.comm, program)?, c.ran())));
        hogs.map(|(hog, ran)| (hog, ran.0 as f64 / wall)).collect()
    };
    let ours = of(&ours);
    let shares = of(courses).into_iter().map(|(hog, recorded)| Share {
        hog,
        nice: nice_of(program, hog),
        recorded,
        simulated: ours.get(&hog).copied().unwrap_or_default(),
    });
    Ok(shares.collect())
}
