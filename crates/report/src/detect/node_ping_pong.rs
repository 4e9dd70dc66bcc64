//! A task moves back and forth between nodes, too quickly to profit from either.
//!
//! Its memory stays where it is, and each node's cache has to be filled again. What counts is where the task *runs*: it
//! was moved between two runs, and the last mover is reported.

use std::collections::BTreeMap;

use schedlab_topology::{CpuId, CpuMask, NodeId, Topology};
use schedlab_trace::{Event, Kind};
use schedlab_units::{Duration, Pid, Time};

use super::avoid::{self, NO_NI_RANDOM, NO_WA_BIAS, NO_WA_IDLE, NO_WA_WEIGHT};
use super::finding::{Avoid, Finding, Findings, Worst, ms, numbers};
use super::scene::{Scene, widen};
use super::{Detector, Thresholds};
use crate::metrics::{Cause, Causes};

pub(super) struct NodePingPong {
    short: Duration,
    hops: u64,
    /// The machine, if it is known.
    topology: Option<Topology>,
    causes: Causes,
    tasks: BTreeMap<Pid, Stay>,
    worst: Worst,
}

/// Where a task is, and how it got there.
struct Stay {
    node: NodeId,
    since: Time,
    moved: Option<Cause>,
    /// Short stays in a row.
    hops: u64,
    from: Time,
    other: NodeId,
    by: [u64; Cause::ALL.len()],
    cpus: CpuMask,
    rule: Option<Box<str>>,
}

impl NodePingPong {
    pub fn new(thresholds: &Thresholds, topology: Option<Topology>) -> NodePingPong {
        NodePingPong {
            short: thresholds.short_stay,
            hops: thresholds.hops,
            topology,
            causes: Causes::default(),
            tasks: BTreeMap::new(),
            worst: Worst::new(thresholds.worst),
        }
    }

    fn node(&self, cpu: CpuId) -> Option<NodeId> {
        let topology = self.topology.as_ref()?;
        (cpu.index() < topology.nr_cpus()).then(|| topology.cpu(cpu).node)
    }

    fn runs(&mut self, pid: Pid, cpu: CpuId, time: Time, scene: &Scene) {
        let Some(node) = self.node(cpu) else { return };
        let Some(stay) = self.tasks.get_mut(&pid) else {
            self.tasks.insert(pid, Stay::new(node, time));
            return;
        };
        if stay.node == node {
            // It settled: moves after a long stay are not part of the same ping-pong.
            if time.since(stay.since) >= self.short {
                self.end(pid, scene);
            }
            return;
        }
        if time.since(stay.since) < self.short {
            if stay.hops == 0 {
                stay.from = stay.since;
            }
            stay.hops += 1;
            stay.other = stay.node;
            if let Some(cause) = stay.moved {
                stay.by[cause as usize] += 1;
            }
            widen(&mut stay.cpus, cpu.index() + 1).set(cpu);
            let placed = scene.task(pid).and_then(|task| task.placed.as_ref());
            stay.rule = placed.map(|placed| placed.reason.clone()).or(stay.rule.take());
        } else {
            self.end(pid, scene);
        }
        let stay = self.tasks.get_mut(&pid).expect("the task is known");
        (stay.node, stay.since, stay.moved) = (node, time, None);
    }

    /// The short stays are over; the last change began the current stay.
    fn end(&mut self, pid: Pid, scene: &Scene) {
        let Some(stay) = self.tasks.get_mut(&pid) else { return };
        let fresh = Stay { moved: stay.moved, ..Stay::new(stay.node, stay.since) };
        let stay = std::mem::replace(stay, fresh);
        if stay.hops < self.hops {
            return;
        }
        // A trace does not show the cost of a cold cache.
        self.worst.add(Duration::ZERO, stay.hops, || {
            let task = scene.name(pid);
            let causes: Vec<String> = Cause::ALL
                .iter()
                .filter(|cause| stay.by[**cause as usize] > 0)
                .map(|cause| format!("{} {}", stay.by[*cause as usize], cause.name()))
                .collect();
            let causes = if causes.is_empty() { String::new() } else { format!(" ({})", causes.join(", ")) };
            let by_wakeup = 2 * stay.by[Cause::Wakeup as usize] >= stay.hops;
            let mut avoid: Vec<Avoid> = Vec::new();
            let rule = stay.rule.filter(|_| by_wakeup);
            avoid.extend(rule.as_deref().map_or(&[][..], avoid::of_placement));
            let guessed = avoid.is_empty();
            // If no move was recorded, anything may have moved it.
            let is_told = stay.by.iter().any(|count| *count > 0);
            if guessed && (by_wakeup || !is_told) {
                avoid.extend([NO_WA_WEIGHT, NO_WA_BIAS, NO_WA_IDLE]);
            }
            if guessed && (!by_wakeup || !is_told) {
                avoid.push(NO_NI_RANDOM);
            }
            Finding {
                from_ns: stay.from.0,
                to_ns: stay.since.0,
                cpus: numbers(&stay.cpus),
                what: format!(
                    "{task} changed nodes {} times in {}, at last from {} to {}{causes}",
                    stay.hops,
                    ms(stay.since.since(stay.from)),
                    stay.other,
                    stay.node,
                ),
                tasks: vec![task],
                rule: rule.map(|rule| format!("{rule} at wakeup")),
                avoid,
                guessed,
                ..Finding::default()
            }
        });
    }
}

impl Stay {
    fn new(node: NodeId, since: Time) -> Stay {
        Stay {
            node,
            since,
            moved: None,
            hops: 0,
            from: since,
            other: node,
            by: [0; Cause::ALL.len()],
            cpus: CpuMask::default(),
            rule: None,
        }
    }
}

impl Detector for NodePingPong {
    fn before(&mut self, event: &Event, scene: &Scene) {
        if self.topology.is_none() {
            return;
        }
        if let Some((pid, cause)) = self.causes.event(event)
            && let Some(stay) = self.tasks.get_mut(&pid)
        {
            stay.moved = Some(cause);
        }
        if let Kind::SchedSwitch { prev_pid, prev_state, .. } = event.kind
            && prev_state.is_dead()
        {
            self.end(prev_pid, scene);
            self.tasks.remove(&prev_pid);
        }
    }

    fn after(&mut self, event: &Event, scene: &Scene) {
        if let Kind::SchedSwitch { next_pid, .. } = event.kind
            && next_pid != Pid::IDLE
        {
            self.runs(next_pid, event.cpu, event.time, scene);
        }
    }

    fn finish(mut self: Box<Self>, scene: &Scene, _: Time) -> Findings {
        for pid in self.tasks.keys().copied().collect::<Vec<Pid>>() {
            self.end(pid, scene);
        }
        Findings {
            detector: "node-ping-pong",
            looks_for: format!(
                "A task changes nodes {} times or more in a row, staying less than {} each time.",
                self.hops, self.short
            ),
            blind: match self.topology {
                Some(topology) if topology.nr_nodes() == 1 => Some("the machine has one node".to_owned()),
                Some(_) => scene.heard().no_switch(),
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
    use super::super::testdata::{check, findings};
    use expect_test::expect;

    /// A task is woken on CPUs 0 and 2 in turn, `us` apart.
    fn to_and_fro(us: u64) -> String {
        let mut script = String::from("0 1 idle switch R main-1\n0 0 idle switch R db-7\n");
        let (mut time, mut cpu) = (0, 0);
        for _ in 0..6 {
            let next = 2 - cpu;
            script += &format!(
                "{} {cpu} db-7 switch S idle
                 {} 1 main-1 placed db-7 wakeup {next} WA_WEIGHT
                 {} 1 main-1 waking db-7 {cpu}
                 {} 1 main-1 migrate db-7 {cpu} {next}
                 {} 1 main-1 wakeup db-7 {next}
                 {} {next} idle switch R db-7\n",
                time + us / 2,
                time + us - 3,
                time + us - 3,
                time + us - 2,
                time + us - 1,
                time + us
            );
            (time, cpu) = (time + us, next);
        }
        script
    }

    #[test]
    fn short_stays_in_a_row_are_a_ping_pong() {
        check(
            "node-ping-pong",
            "2x1x2",
            &to_and_fro(3_000),
            expect![[r#"
                0.000000 .. 0.018000  db[7] changed nodes 6 times in 18.000 ms, at last from 1 to 0 (6 wake-up)
                  rule   WA_WEIGHT at wakeup
                  avoid  NO_WA_WEIGHT: loads do not pull a woken task to its waker
                  avoid  NO_WA_BIAS: the comparison of loads does not favour the waker
            "#]],
        );
    }

    /// A task that waits on CPUs 0 and 2 in turn is pulled over, after it was woken once.
    fn pulled() -> String {
        let mut script =
            String::from("0 1 idle switch R main-1\n0 1 main-1 waking db-7 0\n0 0 idle switch R db-7\n");
        for round in 0..5u64 {
            let (from, to) = if round % 2 == 0 { (0, 2) } else { (2, 0) };
            let us = 1000 * (round + 1);
            script += &format!(
                "{} {from} db-7 switch R cc1-{from}2
                 {} {to} other-3 migrate db-7 {from} {to}
                 {} {to} idle switch R db-7\n",
                us - 100,
                us - 50,
                us
            );
        }
        script
    }

    #[test]
    fn pulled_by_idle_cpus_it_has_another_way_out() {
        check(
            "node-ping-pong",
            "2x1x2",
            &pulled(),
            expect![[r#"
                0.000000 .. 0.005000  db[7] changed nodes 5 times in 5.000 ms, at last from 0 to 1 (5 newly idle)
                  rule   not in the trace; it may be NI_RANDOM
                  try    NO_NI_RANDOM: a CPU that goes idle looks for work in every domain, not at random
            "#]],
        );
    }

    #[test]
    fn where_no_move_is_reported_anybody_may_have_made_it() {
        let pulled = pulled();
        let unmoved: Vec<&str> = pulled.lines().filter(|line| !line.contains("migrate")).collect();
        check(
            "node-ping-pong",
            "2x1x2",
            &unmoved.join("\n"),
            expect![[r#"
                0.000000 .. 0.005000  db[7] changed nodes 5 times in 5.000 ms, at last from 0 to 1
                  rule   not in the trace; it may be WA_WEIGHT, WA_BIAS, WA_IDLE, NI_RANDOM
                  try    NO_WA_WEIGHT: loads do not pull a woken task to its waker
                  try    NO_WA_BIAS: the comparison of loads does not favour the waker
                  try    NO_WA_IDLE: an idle waker's CPU does not pull a woken task
                  try    NO_NI_RANDOM: a CPU that goes idle looks for work in every domain, not at random
            "#]],
        );
    }

    #[test]
    fn long_stays_and_one_node_are_none() {
        check("node-ping-pong", "2x1x2", &to_and_fro(30_000), expect![[""]]);
        assert!(findings("node-ping-pong", "1x1x4", &to_and_fro(3_000)).blind.is_some());
        assert!(findings("node-ping-pong", "", &to_and_fro(3_000)).blind.is_some());
    }
}
