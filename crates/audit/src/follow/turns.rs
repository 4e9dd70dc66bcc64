//! Switches at which a CPU may have lost its turn between reading its clock and writing the event.

use schedlab_sched::{Curr, FairPolicy};
use schedlab_topology::CpuId;

use crate::follow::clocks::Clock;
use crate::follow::shadow::Shadow;
use crate::follow::turn::Turn;

/// Number of switches remembered for each CPU.
const SWITCHES: usize = 8;

/// Shorter turns are not considered, ns.
const LEAST: u64 = 50_000;

/// How long a switch is remembered, ns: after that most sleepers have been placed again.
pub(crate) const AGE: u64 = 100_000_000;

impl Shadow {
    /// A CPU switches.
    #[inline(always)]
    pub fn turned(&mut self, cpu: CpuId, prev: Curr, next: Curr, clock: Clock) {
        if clock.most.0 >= clock.held.0 + LEAST {
            self.may_have_lost(cpu, prev, next, clock.most.0 - clock.held.0);
        }
    }

    #[inline(never)]
    fn may_have_lost(&mut self, cpu: CpuId, prev: Curr, next: Curr, most: u64) {
        if prev == next || self.sched.kernel.rules.policy != FairPolicy::Cfs {
            return;
        }
        let fair = |curr: Curr| curr.task().filter(|&task| self.sched.task(task).policy.is_fair());
        let at = self.sched.rqs[cpu].clock;
        let turn = Turn { prev: fair(prev), next: fair(next), most, at };
        let turns = &mut self.turns[cpu];
        turns.retain(|turn| turn.at + AGE > at);
        if turns.len() == SWITCHES {
            let least = (0..SWITCHES).min_by_key(|&at| turns[at].most).unwrap_or(0);
            if turns[least].most > most {
                return;
            }
            turns.remove(least);
        }
        turns.push(turn);
    }
}
