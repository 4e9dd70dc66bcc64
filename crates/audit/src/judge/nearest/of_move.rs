//! What would have led a balancing pass to the kernel's move.

use schedlab_sched::{Curr, IdleType};
use schedlab_topology::CpuId;
use schedlab_units::Time;

use super::nearest;
use super::of_placement::{queue_facts, state_facts, with_load_errors};
use crate::judge::Audit;
use crate::judge::balance::{Asked, Moved, choice, may_move};
use crate::judge::moving::ask_pass;
use crate::report::listener::Listener;
use crate::unknown::Shadow;
use crate::unknown::in_motion::{self, Changing, Counted};
use crate::unknown::otherwise::{Fact, Nearest, Otherwise};

/// Multiples of their errors by which load averages are moved.
const LOAD_ERRORS: [u64; 5] = [2, 3, 4, 8, 16];

/// Other idle types with which a pass may have been made.
const OCCASIONS: [(IdleType, &str); 3] =
    [(IdleType::Idle, "idle"), (IdleType::NotIdle, "busy"), (IdleType::NewlyIdle, "becoming idle")];

impl<S: Listener> Audit<S> {
    /// The nearest fact by which a pass makes the recorded move.
    pub(crate) fn nearest_of_move(&mut self, moved: Moved, asked: Asked, now: Time) -> Option<Nearest> {
        let shadow = &self.shadow;
        let (from, by) = (moved.from, asked.by);
        let span = shadow.sched.domains.walk(by).map(|(_, sd)| &sd.span).find(|span| span.contains(from));
        let cpus: Vec<CpuId> = span.map_or_else(Vec::new, |span| span.iter().collect());
        let mut facts = state_facts(self, &cpus, now);
        facts.extend(queue_facts(self, by, &cpus, now));
        facts.extend(LOAD_ERRORS.map(|times| Otherwise { fact: Fact::Loads, ns: None, times: Some(times) }));
        let others = OCCASIONS.iter().filter(|(idle, _)| *idle != asked.idle);
        facts.extend(others.map(|&(_, name)| Otherwise::plain(Fact::Occasion(name))));
        let sleepers = self.shadow.doubtful_sleepers(|cpu| cpus.contains(&cpu));
        facts.extend(sleepers.into_iter().map(|(task, queued)| {
            let pid = self.shadow.known(task).pid;
            Otherwise::plain(Fact::Sleeper { pid, queued: !queued })
        }));
        let entry = self.shadow.sched.task(moved.task);
        if !entry.on_rq || entry.cpu != from || self.shadow.runs(moved.task) || entry.se.sched_delayed {
            facts.push(Otherwise::plain(Fact::Waited));
        }
        let shadow = &mut self.shadow;
        nearest(facts, |facts| as_if(shadow, facts, moved, asked, now))
    }
}

fn as_if(shadow: &mut Shadow, facts: &[Otherwise], moved: Moved, asked: Asked, now: Time) -> bool {
    let [otherwise, others @ ..] = facts else {
        let wanted = choice(shadow, moved);
        return may_move(shadow, asked, moved)
            && ask_pass(shadow, moved, asked, now).iter().any(|possible| possible.choice == wanted);
    };
    let look = |shadow: &mut Shadow| as_if(shadow, others, moved, asked, now);
    match otherwise.fact {
        Fact::Cpu { cpu, idle, .. } => in_motion::as_if(shadow, Changing { cpu, idle }, look),
        Fact::Queued { cpu, more } => in_motion::as_if_counted(shadow, Counted { cpu, more }, look),
        Fact::Loads => with_load_errors(shadow, otherwise.times.unwrap_or(1), look),
        Fact::Occasion(name) => {
            let idle =
                OCCASIONS.iter().find(|(_, other)| *other == name).map_or(asked.idle, |(idle, _)| *idle);
            as_if(shadow, others, moved, Asked { idle, ..asked }, now)
        }
        Fact::Sleeper { pid, .. } => {
            let before = shadow.sched.clone();
            if let Some(task) = shadow.find(pid) {
                shadow.turn_sleeper(task, now);
            }
            let leads = look(shadow);
            shadow.sched = before;
            leads
        }
        Fact::Waited => as_if_waiting(shadow, moved, now, look),
        _ => look(shadow),
    }
}

/// Runs a look with the moved task waiting on the CPU from which it was taken.
fn as_if_waiting(
    shadow: &mut Shadow,
    moved: Moved,
    now: Time,
    look: impl FnOnce(&mut Shadow) -> bool,
) -> bool {
    let Moved { task, from, .. } = moved;
    let before = shadow.sched.clone();
    let known = shadow.known(task).clone();
    let generation = shadow.generation;
    if shadow.runs(task) {
        shadow.sched.put_prev(from);
        shadow.sched.rqs[from].curr = Curr::Idle;
    } else {
        shadow.join(task, from, now);
    }
    let leads = look(shadow);
    shadow.sched = before;
    *shadow.known_mut(task) = known;
    shadow.generation = generation;
    leads
}
