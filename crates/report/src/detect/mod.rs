//! Detectors: what is wrong in this trace?
//!
//! Each detector looks for one thing, in a file of its own, and follows the trace through the same `Scene`. They work
//! on recorded and simulated traces alike. A recording does not show which CPUs a task may use, so a finding that
//! depends on it says so. A simulated trace contains decisions, so its findings include the rule at work.

mod avoid;
mod finding;
mod heard;
mod idle_while_waiting;
mod latency_outlier;
mod llc_walk;
mod looked;
mod node_ping_pong;
mod pile_up;
mod preemption_storm;
mod scene;
mod stolen_cpu;
#[cfg(test)]
mod testdata;

pub use avoid::ALL as SWITCHES;
pub use finding::{Avoid, Finding, Findings, Task};

use schedlab_topology::{CpuId, CpuMask, Topology};
use schedlab_trace::read::Lost;
use schedlab_trace::{Comm, Event, Sink};
use schedlab_units::{Duration, Pid, Time};
use serde::Serialize;

use finding::at;
use scene::Scene;

/// What is known besides the trace, and what counts as wrong.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The machine.
    pub topology: Option<Topology>,
    /// The CPUs that tasks may use, if the trace does not show them.
    pub affinity: Vec<(Who, CpuMask)>,
    /// Thresholds.
    pub thresholds: Thresholds,
}

/// Tasks about which something is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// The task with this pid.
    Pid(Pid),
    /// All tasks with this name.
    Comm(Comm),
}

/// What counts as wrong. Each default has its reason.
#[derive(Clone, Debug)]
pub struct Thresholds {
    /// Number of findings kept per detector.
    pub worst: usize,
    /// A wait beside an idle CPU counts from this length: twice migration_cost (0.5 ms), below which the
    /// kernel deliberately leaves a task where its cache is warm.
    pub idle_wait: Duration,
    /// Number of new tasks on an occupied CPU that make a pile: the other task may be a forker that is about
    /// to wait for its child.
    pub pile: u64,
    /// Number of wake-ups evaluated together to distinguish a walk from chance.
    pub walk_wakeups: usize,
    /// Minimum number of CPUs of a walk; fewer are a change between neighbours.
    pub walk_cpus: usize,
    /// A stay on a node shorter than this does not pay off: filling an LLC of 32 MB at 10 GB/s takes 3 ms.
    pub short_stay: Duration,
    /// Number of consecutive short stays that are a ping-pong: there and back twice.
    pub hops: u64,
    /// Share of time lost to interrupts from which a CPU is a bad place; the threshold of the patches
    /// SIS_CAPACITY and FIC_CAPACITY.
    pub stolen_percent: u64,
    /// A wake-up that waits this long is an outlier: longer than a slice of 3 ms and a tick of 4 ms (HZ=250),
    /// so neither preemption at the wake-up nor the next tick let it run.
    pub latency: Duration,
    /// Number of preemptions of one CPU within [`Thresholds::STORM_WINDOW`] that are a storm: stretches of
    /// 0.5 ms, under the shortest default slice (0.7 ms).
    pub storm: u64,
}

impl Thresholds {
    /// The window in which preemptions are counted.
    pub const STORM_WINDOW: Duration = Duration::millis(10);
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds {
            worst: 5,
            idle_wait: Duration::millis(1),
            pile: 2,
            walk_wakeups: 32,
            walk_cpus: 4,
            short_stay: Duration::millis(20),
            hops: 4,
            stolen_percent: 20,
            latency: Duration::millis(4),
            storm: 20,
        }
    }
}

/// Looks for one thing.
trait Detector {
    /// Called when the scene of an event's CPU has been wrong since a time, before the scene is corrected.
    fn doubt(&mut self, _event: &Event, _since: Time, _scene: &Scene) {}

    /// Sees an event before the scene follows it.
    fn before(&mut self, event: &Event, scene: &Scene);

    /// Sees an event after the scene has followed it.
    fn after(&mut self, event: &Event, scene: &Scene);

    /// Called when events of a CPU, or of any CPU, are missing here.
    fn lost(&mut self, _cpu: Option<CpuId>) {}

    /// Returns what was found when the trace is over.
    fn finish(self: Box<Self>, scene: &Scene, end: Time) -> Findings;
}

/// Runs all detectors over a trace. They need `sched_switch`, `sched_waking`, `sched_wakeup`,
/// `sched_wakeup_new`, `sched_migrate_task` and `sched_process_fork`; one detector also needs interrupts.
pub struct Detect {
    scene: Scene,
    detectors: Vec<Box<dyn Detector>>,
    events: u64,
    begin: Option<Time>,
    end: Time,
}

/// All that was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Detected {
    /// Events read.
    pub events: u64,
    /// When the trace began, ns.
    pub from_ns: u64,
    /// When it ended, ns.
    pub to_ns: u64,
    /// CPUs seen.
    pub cpus: u16,
    /// Number of switches that must be missing, as events show other tasks running than were switched to.
    pub unseen_switches: u64,
    /// One entry per detector.
    pub detectors: Vec<Findings>,
}

impl Detect {
    /// All detectors.
    pub fn new(options: Options) -> Detect {
        let Options { topology, affinity, thresholds } = options;
        let online = topology.as_ref().map(Topology::online);
        Detect {
            scene: Scene::new(affinity.into_iter().collect(), online),
            detectors: vec![
                Box::new(idle_while_waiting::IdleWhileWaiting::new(&thresholds, topology.clone())),
                Box::new(pile_up::PileUp::new(&thresholds)),
                Box::new(llc_walk::LlcWalk::new(&thresholds, topology.clone())),
                Box::new(node_ping_pong::NodePingPong::new(&thresholds, topology)),
                Box::new(stolen_cpu::StolenCpu::new(&thresholds)),
                Box::new(latency_outlier::LatencyOutlier::new(&thresholds)),
                Box::new(preemption_storm::PreemptionStorm::new(&thresholds)),
            ],
            events: 0,
            begin: None,
            end: Time::ZERO,
        }
    }

    /// Returns the findings.
    pub fn finish(self) -> Detected {
        let Detect { scene, detectors, events, begin, end } = self;
        Detected {
            events,
            from_ns: begin.unwrap_or_default().0,
            to_ns: end.0,
            cpus: scene.seen().weight() as u16,
            unseen_switches: scene.unseen_switches(),
            detectors: detectors.into_iter().map(|detector| detector.finish(&scene, end)).collect(),
        }
    }
}

impl Sink for Detect {
    fn lost(&mut self, lost: &Lost) {
        self.detectors.iter_mut().for_each(|detector| detector.lost(lost.cpu));
    }

    fn event(&mut self, event: &Event) {
        self.events += 1;
        self.begin.get_or_insert(event.time);
        self.end = self.end.max(event.time);
        if let Some(since) = self.scene.is_refuted_by(event) {
            for detector in &mut self.detectors {
                detector.doubt(event, since, &self.scene);
            }
        }
        self.scene.sync(event);
        for detector in &mut self.detectors {
            detector.before(event, &self.scene);
        }
        self.scene.event(event);
        for detector in &mut self.detectors {
            detector.after(event, &self.scene);
        }
    }

    fn wants_decisions(&self) -> bool {
        true
    }
}

impl Detected {
    /// Drops the remedies that change nothing on the given kernel, because it already has that rule off, or does not
    /// have it.
    pub fn keep_ways(&mut self, turns: impl Fn(&str) -> bool) {
        self.detectors.iter_mut().for_each(|findings| findings.keep_ways(&turns));
    }

    /// The report as text: detectors with findings first.
    pub fn text(&self) -> String {
        let (from, to) = (at(Time(self.from_ns)), at(Time(self.to_ns)));
        let cpus = finding::counted(u64::from(self.cpus), "CPU");
        let mut out = format!("{} of {cpus} from {from} to {to}\n", finding::counted(self.events, "event"));
        let (found, quiet): (Vec<&Findings>, Vec<&Findings>) =
            self.detectors.iter().partition(|findings| findings.count > 0);
        for findings in found.into_iter().chain(quiet) {
            out += "\n";
            out += &findings.text();
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::testdata::findings;

    #[test]
    fn a_detector_that_lacks_an_event_says_that_it_did_not_look() {
        let switches = "0 0 idle switch R a-1\n 9 0 a-1 switch S idle\n";
        let blind = |detector: &str, machine: &str, more: &str| {
            findings(detector, machine, &format!("{switches}{more}")).blind.unwrap_or_default()
        };
        let (waking, wakeup, new) =
            ("10 0 idle waking a-1 0\n", "11 0 idle wakeup a-1 0\n", "12 0 idle new b-2 0\n");
        for detector in ["latency-outlier", "idle-while-waiting"] {
            assert!(blind(detector, "", "").contains("no sched_waking, sched_wakeup or sched_wakeup_new"));
            for one in [waking, wakeup, new] {
                assert_eq!(blind(detector, "", one), "", "{detector}");
            }
        }
        assert!(blind("pile-up", "", waking).contains("no sched_wakeup_new"));
        assert_eq!(blind("pile-up", "", new), "");
        assert!(blind("llc-walk", "1x1x2", waking).contains("no sched_wakeup in"));
        assert!(blind("llc-walk", "1x1x2", wakeup).contains("no sched_waking in"));
        assert_eq!(blind("llc-walk", "1x1x2", &format!("{waking}{wakeup}")), "");
        assert!(blind("llc-walk", "", &format!("{waking}{wakeup}")).contains("--machine"));
        assert_eq!(blind("node-ping-pong", "2x1x2", ""), "");
        let without = findings("node-ping-pong", "2x1x2", waking).blind.unwrap();
        assert!(without.contains("no sched_switch in"), "{without}");
        assert_eq!(blind("preemption-storm", "", ""), "");
    }
}
