//! Which CPU a task used recently, where a wake-up leaves that open.
//!
//! A search that gets as far as the recently used CPU replaces it with the previous one; a search that ends earlier,
//! because its target or the previous CPU is idle, leaves it unchanged. A wake-up that stays on the previous CPU may be
//! either, if that CPU was just changing its state. The likelier value is used; the other is tried where nothing else
//! explains a later choice.

use schedlab_sched::{Curr, Placement};
use schedlab_topology::CpuId;
use schedlab_units::Time;

use crate::audit::Audit;
use crate::listener::Listener;
use crate::motion;
use crate::placement;
use crate::verdict::Hidden;
use crate::waking::Open;

impl<S: Listener> Audit<S> {
    /// Learns from a wake-up that places a task which CPU it used recently.
    pub(crate) fn learn_recent_cpu(&mut self, open: &Open, placement: Option<&Placement>, now: Time) {
        let Some(placement) = placement else { return };
        let other = self.other_recent_cpu(open, placement, now);
        let known = self.shadow.known_mut(open.wakeup.task);
        known.recent_known |= placement.recent_used_cpu.is_some();
        known.other_recent_cpu = other;
    }

    /// The other CPU that may be the recently used one after this wake-up.
    fn other_recent_cpu(&self, open: &Open, placement: &Placement, now: Time) -> Option<CpuId> {
        let task = open.wakeup.task;
        let entry = self.shadow.sched.task(task);
        let prev = entry.wake_cpu;
        let open_still = self.shadow.known(task).other_recent_cpu;
        // Both alternatives are the same, whatever the wake-up saw.
        if open_still.is_none() && entry.recent_used_cpu == Some(prev) {
            return None;
        }
        let may_be_either = placement.cpu == prev && self.changes(prev, open, now);
        match placement.recent_used_cpu {
            Some(_) if !may_be_either => None,
            // Both alternatives are the same.
            _ if !may_be_either || entry.recent_used_cpu == Some(prev) => open_still,
            Some(_) => entry.recent_used_cpu,
            None => Some(prev),
        }
    }

    /// Whether a waker may have seen a CPU in another state than the shadow's: in the previous state, or in one that
    /// the CPU entered before the waker finished.
    /// came to before the waker went on.
    fn changes(&self, cpu: CpuId, open: &Open, now: Time) -> bool {
        let idle = self.shadow.sched.rqs[cpu].curr == Curr::Idle;
        let comes = || {
            let end = Time(open.fate.at.0.saturating_sub(1));
            let mut before_it_goes_on =
                self.pairing.shown(end).take_while(|shown| shown.cpu != open.wakeup.this_cpu);
            before_it_goes_on.any(|shown| shown.cpu == cpu && shown.idle == Some(!idle))
        };
        motion::changed_at(&self.shadow, cpu) >= motion::from(now, self.shadow.slack) || comes()
    }

    /// Whether the choice follows if an earlier wake-up left the other recently used CPU.
    pub(crate) fn judge_other_recent_cpu(&mut self, open: &mut Open, now: Time) {
        let task = open.wakeup.task;
        let Some(other) = self.shadow.known(task).other_recent_cpu else { return };
        let taken = self.shadow.sched.task_mut(task).recent_used_cpu.replace(other);
        let possible = placement::of_wakeup(&mut self.shadow, &open.wakeup, now);
        if self.takes(open, possible, Hidden::RecentCpu) {
            self.shadow.known_mut(task).other_recent_cpu = None;
        } else {
            self.shadow.sched.task_mut(task).recent_used_cpu = taken;
        }
    }
}
