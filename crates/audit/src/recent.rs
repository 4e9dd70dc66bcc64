//! Which CPU a task used recently, where a wake-up does not tell.
//!
//! A search that comes as far as the recently used CPU leaves the previous one in its place; one that ends
//! before, as its target or the previous CPU idles, leaves it as it was. A wake-up that stays on the previous CPU
//! may be either, if that CPU was just changing its state. The likelier is taken; the other is asked where nothing else leads to
//! what happens later.

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
    /// What a wake-up that places a task tells of the CPU that it used recently.
    pub(crate) fn learn_recent_cpu(&mut self, open: &Open, placement: Option<&Placement>, now: Time) {
        let Some(placement) = placement else { return };
        let other = self.other_recent_cpu(open, placement, now);
        let known = self.shadow.known_mut(open.wakeup.task);
        known.recent_known |= placement.recent_used_cpu.is_some();
        known.other_recent_cpu = other;
    }

    /// What else it may have used recently then.
    fn other_recent_cpu(&self, open: &Open, placement: &Placement, now: Time) -> Option<CpuId> {
        let task = open.wakeup.task;
        let entry = self.shadow.sched.task(task);
        let prev = entry.wake_cpu;
        let open_still = self.shadow.known(task).other_recent_cpu;
        // One and the same, whatever the wake-up saw.
        if open_still.is_none() && entry.recent_used_cpu == Some(prev) {
            return None;
        }
        let may_be_either = placement.cpu == prev && self.changes(prev, open, now);
        match placement.recent_used_cpu {
            Some(_) if !may_be_either => None,
            // One and the same.
            _ if !may_be_either || entry.recent_used_cpu == Some(prev) => open_still,
            Some(_) => entry.recent_used_cpu,
            None => Some(prev),
        }
    }

    /// Whether a waker may have seen a CPU in another state than it has here: in that of before, or in one that it
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

    /// Whether what happened follows if an earlier wake-up left another recently used CPU than was taken.
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
