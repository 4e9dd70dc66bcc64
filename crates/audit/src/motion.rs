//! CPUs whose state is changing just now.
//!
//! A CPU is idle for others a moment before its switch is traced, and has a task queued a
//! moment before the wake-up is. How long such a moment may be depends on the machine: on
//! emulated CPUs that take turns it is a turn. It is learned from how long wake-ups by
//! interrupt take, and what happens on a CPU within that time may have been seen already.

use schedlab_sched::Curr;
use schedlab_topology::CpuId;
use schedlab_units::{Duration, Time};

use crate::pairing::Shown;
use crate::shadow::Shadow;

/// How far apart in time events of different CPUs can be and still overlap.
#[derive(Clone, Copy, Debug)]
pub struct Slack {
    /// Mean time from a wake-up to its end by interrupt on an idle CPU, ns.
    delay: u64,
}

impl Default for Slack {
    fn default() -> Slack {
        Slack { delay: 10_000 }
    }
}

impl Slack {
    /// A wake-up by interrupt on an idle CPU took so long.
    pub fn learn(&mut self, delay: Duration) {
        let delay = delay.0.min(1_000_000);
        self.delay = (15 * self.delay + delay) / 16;
    }

    /// The time within which others may see a change sooner or later than it was traced.
    pub fn time(self) -> Duration {
        Duration((3 * self.delay).clamp(5_000, 1_000_000))
    }
}

/// A CPU that may be seen in another state than the shadow has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changing {
    /// Which.
    pub cpu: CpuId,
    /// Idle already, or no longer.
    pub idle: bool,
}

/// The CPUs whose next event is a change between idle and busy. The executing CPU knows
/// itself.
pub fn changing<'a>(shadow: &Shadow, this: CpuId, ahead: impl Iterator<Item = &'a Shown>) -> Vec<Changing> {
    let nr_cpus = shadow.sched.rqs.len();
    let mut seen = vec![false; nr_cpus];
    seen[this.index()] = true;
    let mut unseen = nr_cpus - 1;
    let mut changing = Vec::new();
    for &Shown { cpu, idle, .. } in ahead {
        // Most of what is shown is of CPUs that were seen already.
        match seen.get_mut(cpu.index()) {
            Some(seen) if !*seen => *seen = true,
            _ => continue,
        }
        unseen -= 1;
        if let Some(idle) = idle {
            if shadow.sched.idle_cpu(cpu) != idle {
                changing.push(Changing { cpu, idle });
            }
            // Cleared before what it stood for is queued (v6.1).
            if !idle && shadow.sched.rqs[cpu].ttwu_pending && shadow.sched.rqs[cpu].curr == Curr::Idle {
                changing.push(Changing { cpu, idle: true });
            }
        }
        if unseen == 0 {
            break;
        }
    }
    changing
}

/// The CPUs that changed between idle and busy since `from`, as others may still have seen
/// them.
pub fn changed(shadow: &Shadow, this: CpuId, from: Time) -> Vec<Changing> {
    let cpus = shadow.cpus().filter(|&cpu| cpu != this);
    let recent = cpus.filter(|&cpu| changed_at(shadow, cpu) >= from);
    recent.map(|cpu| Changing { cpu, idle: !shadow.sched.idle_cpu(cpu) }).collect()
}

/// When a CPU last went idle, or its task began to run.
pub fn changed_at(shadow: &Shadow, cpu: CpuId) -> Time {
    match shadow.sched.rqs[cpu].curr {
        Curr::Idle => Time(shadow.sched.rqs[cpu].idle_stamp),
        Curr::Task(task) => shadow.known(task).began,
    }
}

/// Looks at the shadow as if a CPU had changed already.
pub fn as_if<T>(shadow: &mut Shadow, changing: Changing, look: impl FnOnce(&mut Shadow) -> T) -> T {
    let rq = &mut shadow.sched.rqs[changing.cpu];
    let before = (rq.curr, rq.nr_running, rq.ttwu_pending);
    if changing.idle {
        (rq.curr, rq.nr_running, rq.ttwu_pending) = (Curr::Idle, 0, false);
    } else {
        rq.nr_running = rq.nr_running.max(1);
    }
    let result = look(shadow);
    let rq = &mut shadow.sched.rqs[changing.cpu];
    (rq.curr, rq.nr_running, rq.ttwu_pending) = before;
    result
}

/// The begin of the time that is looked back from an instant.
pub fn from(now: Time, slack: Slack) -> Time {
    Time(now.0.saturating_sub(slack.time().0))
}

/// The end of the time that is looked ahead from an instant.
pub fn until(now: Time, slack: Slack) -> Time {
    now + slack.time()
}
