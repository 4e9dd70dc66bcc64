//! Our nearest rules, which follow the code of a tree while its decisions are explained.
//!
//! Both get the same calls. If the tree places a task elsewhere, our rules take over its choice and continue, so that
//! for each placement of the tree it is known what our rules would have chosen. Values that a CPU measured with its own
//! clock are also taken over. When the tree picks or pulls another task, the states differ from then on, and our rules
//! are no longer called.

use schedlab_sched::{Curr, Effect, Placement, PreemptDecision, Reason, Sched};
use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use crate::{TreeSched, number};

/// How far our rules followed a tree in the last explained run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    /// Placements on wake-up, fork and exec.
    pub placements: u64,
    /// How many of them our rules would have made elsewhere.
    pub elsewhere: u64,
    /// The first of those.
    pub first: Option<Time>,
    /// When our rules could no longer follow, and why.
    pub lost: Option<(Time, String)>,
}

/// Tasks that moved, and where to.
pub(crate) type Moves = Vec<(TaskId, CpuId)>;

fn moves(effects: &[Effect]) -> Moves {
    let moved = |effect: &Effect| match *effect {
        Effect::Migrated { task, to, .. } => Some((task, to)),
        _ => None,
    };
    effects.iter().filter_map(moved).collect()
}

impl TreeSched {
    /// Also passes a call to our rules, as long as they follow.
    pub(crate) fn beside<T>(&mut self, call: impl FnOnce(&mut Sched) -> T) -> Option<T> {
        self.pass_beside(call).map(|(given, _)| given)
    }

    /// The same for a call that balances: what it returned, and what it moved.
    pub(crate) fn pass_beside<T>(&mut self, call: impl FnOnce(&mut Sched) -> T) -> Option<(T, Moves)> {
        if !self.follows {
            return None;
        }
        let given = call(&mut self.rules);
        let moved = moves(&self.rules.effects);
        self.rules.effects.clear();
        // What they looked at is not what the tree looked at: only the tree's own reads take time.
        self.rules.looked.take(|_, _| ());
        Some((given, moved))
    }

    /// Our rules can no longer follow.
    pub(crate) fn lost(&mut self, now: Time, what: impl FnOnce() -> String) {
        if self.follows {
            self.follows = false;
            // Their result of this call is not what happened.
            self.rules.balance_log = None;
            self.rules.newidle_log.clear();
            self.followed.lock().expect("nobody fails here").lost = Some((now, what()));
        }
    }

    /// A call of the tree moved the tasks in the effects from `before` on; our rules moved `ours`.
    pub(crate) fn moved_as(&mut self, cpu: CpuId, before: usize, ours: Option<Moves>, now: Time) {
        let Some(ours) = ours else { return };
        let theirs = moves(&self.effects[before..]);
        if ours != theirs {
            let count = |moves: &Moves| match moves.len() {
                0 => "none".to_string(),
                1 => format!("one, to CPU {}", moves[0].1),
                n => n.to_string(),
            };
            self.lost(now, || {
                format!(
                    "balancing by CPU {cpu}, the tree moves {} and our rules {}",
                    count(&theirs),
                    count(&ours)
                )
            });
        }
        self.take_measured(cpu);
    }

    /// Takes over what the C code measured with its own clock: the time of passes, and values derived from it.
    fn take_measured(&mut self, cpu: CpuId) {
        if !self.follows {
            return;
        }
        let state = self.library.cpu_state(cpu);
        let rq = &mut self.rules.rqs[cpu];
        (rq.avg_idle, rq.max_idle_balance_cost) = (state.avg_idle, state.max_idle_balance_cost);
        let ids: Vec<_> = self.rules.domains.walk(cpu).map(|(id, _)| id).collect();
        for (level, id) in ids.into_iter().enumerate() {
            if let Some((theirs, _)) = self.library.domain(cpu, level) {
                self.rules.domains.sd_mut(id).max_newidle_lb_cost = theirs.max_newidle_lb_cost;
            }
        }
    }

    /// The choice of the C code for a task. It includes our reason if our rules chose the same, otherwise what they
    /// chose.
    pub(crate) fn placed(
        &mut self,
        task: TaskId,
        cpu: CpuId,
        ours: Option<Placement>,
        now: Time,
    ) -> Placement {
        let examined = self.told.scanned;
        let Some(ours) = ours else {
            return Placement { examined, ..Placement::new(cpu, Reason::TreeDecides) };
        };
        let mut followed = self.followed.lock().expect("nobody fails here");
        followed.placements += 1;
        if ours.cpu == cpu {
            return Placement { examined, ..ours };
        }
        followed.elsewhere += 1;
        followed.first.get_or_insert(now);
        let recent = self.library.task_state(number(task)).recent_used_cpu;
        let number = Some((ours.reason.name(), i64::from(ours.cpu.0)));
        let recent_used_cpu = ours.recent_used_cpu.map(|_| CpuId(recent as u16));
        let reason = Reason::TreeDecides;
        Placement {
            examined,
            cpu,
            reason,
            number,
            recent_used_cpu,
            affine: None,
            affine_number: None,
            ..ours
        }
    }

    /// Whether the C code has requested a reschedule of a CPU, with our reason if our rules agree.
    pub(crate) fn preempted(&self, cpu: CpuId, ours: Option<PreemptDecision>) -> PreemptDecision {
        use schedlab_sched::Scheduler;
        let pending = self.need_resched(cpu);
        let preempt = pending.any();
        let (reason, number) = match ours.filter(|ours| self.follows && ours.preempt == preempt) {
            Some(ours) => (ours.reason, ours.number),
            None => (Reason::TreeDecides, None),
        };
        PreemptDecision { preempt, lazy: preempt && !pending.full, reason, number, then: Default::default() }
    }

    /// The reason of a pick: ours if our rules picked the same task.
    pub(crate) fn picked(
        &mut self,
        cpu: CpuId,
        next: Curr,
        ours: Option<(Curr, Reason)>,
        now: Time,
    ) -> Reason {
        match ours {
            Some((same, reason)) if same == next => reason,
            Some((other, _)) => {
                self.lost(now, || match (next, other) {
                    (Curr::Idle, _) => {
                        format!("picking on CPU {cpu}, the tree takes no task and our rules take one")
                    }
                    (_, Curr::Idle) => {
                        format!("picking on CPU {cpu}, our rules take no task and the tree takes one")
                    }
                    _ => format!("picking on CPU {cpu}, our rules take another task"),
                });
                Reason::TreeDecides
            }
            None => Reason::TreeDecides,
        }
    }
}
