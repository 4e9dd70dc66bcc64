//! What would have led a wake-up to the CPU that the kernel chose.

use schedlab_sched::{Feature, WakePath};
use schedlab_topology::CpuId;
use schedlab_units::Time;

use super::nearest;
use super::of_placement::{as_if, queue_facts, state_facts};
use crate::judge::Audit;
use crate::judge::opens::Open;
use crate::judge::placement;
use crate::report::listener::Listener;
use crate::unknown::Shadow;
use crate::unknown::otherwise::{Fact, Nearest, Otherwise};
use crate::unknown::sync_flag::may_be_sync;

/// Multiples of their errors by which load averages are moved.
const LOAD_ERRORS: [u64; 10] = [2, 3, 4, 6, 8, 12, 16, 32, 64, 128];

impl<S: Listener> Audit<S> {
    /// The nearest fact that leads a wake-up to the kernel's choice, in the current state.
    pub(crate) fn nearest_of_wakeup(&mut self, open: &Open, now: Time) -> Option<Nearest> {
        let to = open.fate.cpu;
        let facts = self.facts_of_wakeup(open, now);
        let (shadow, spare) = (&mut self.shadow, &mut self.spare);
        nearest(facts, |facts| {
            as_if(shadow, &open.wakeup, facts, now, &mut |shadow| {
                let found = placement::of_wakeup(shadow, spare, &open.wakeup, now);
                let leads = found.has(to);
                spare.give_back_all(found);
                leads
            })
        })
    }

    fn facts_of_wakeup(&self, open: &Open, now: Time) -> Vec<Otherwise> {
        let shadow = &self.shadow;
        let (task, to) = (open.wakeup.task, open.fate.cpu);
        let entry = shadow.sched.task(task);
        let (this, prev) = (open.wakeup.this_cpu, entry.wake_cpu);
        let ends = [this, prev, to];
        let near = |cpu: &CpuId| ends.iter().any(|&end| shadow.sched.cpus_share_cache(end, *cpu));
        let cpus: Vec<CpuId> = shadow.cpus().filter(near).collect();
        let mut facts = state_facts(self, &cpus, now);
        let plain = |fact| Otherwise::plain(fact);
        facts.extend(queue_facts(self, this, &[this, prev], now));
        facts.extend([true, false].map(|all| plain(Fact::ScanLimit { all })));
        if shadow.sched.domains.smt_active {
            facts.push(plain(Fact::IdleCores));
        }
        if !may_be_sync(shadow, &open.wakeup) {
            facts.push(plain(Fact::SyncFlag));
        }
        facts.extend(cpus.iter().map(|&cpu| plain(Fact::RecentCpu(cpu))));
        facts.extend(LOAD_ERRORS.map(|times| Otherwise { fact: Fact::Loads, ns: None, times: Some(times) }));
        facts.extend([true, false].map(|spreads| plain(Fact::Flips { spreads })));
        let delays = shadow.sched.kernel.has(Feature::DelayDequeue);
        if delays && !entry.on_rq && open.fate.stays_on(entry.cpu) && open.fate.by == this {
            facts.push(plain(Fact::DelayedDequeue { queued: true }));
        }
        if entry.se.sched_delayed || shadow.sched.wake_path(&open.wakeup) == WakePath::StillQueued {
            facts.push(plain(Fact::DelayedDequeue { queued: false }));
        }
        if open.fate.stays_on(entry.cpu) && open.fate.by == entry.cpu && left_lately(shadow, open, now) {
            facts.push(plain(Fact::OnCpu));
        }
        facts
    }
}

/// Whether the task was switched out so recently that it may still have been on its CPU.
fn left_lately(shadow: &Shadow, open: &Open, now: Time) -> bool {
    let left = shadow.known(open.wakeup.task).left;
    now.since(left) <= shadow.slack.time() * 4
}
