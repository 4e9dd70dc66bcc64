//! Which cache a process prefers, to be taken for another one and back.
//!
//! No event shows when the kernel evaluated in which cache a process ran most, so an audit asks what balancing would
//! have done with another result.

use alloc::vec::Vec;

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::Sched;

/// Which cache a process prefers, and what its threads know of that: they learn of it when they are charged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preference {
    /// A CPU of it.
    home: Option<CpuId>,
    /// What each thread knows of that.
    threads: Vec<(TaskId, Option<u16>)>,
}

impl Sched {
    /// The preference of a process; `None` if nothing is recorded for it.
    pub fn preference(&self, process: u32) -> Option<Preference> {
        let home = self.sched_cache.groups.get(process)?.cpu;
        let threads = self.tasks.iter().enumerate().filter(|(_, p)| p.process == process && !p.kthread);
        let threads = threads.map(|(index, p)| (TaskId(index as u32), p.preferred_llc)).collect();
        Some(Preference { home, threads })
    }

    /// Lets a process and its threads prefer something else.
    pub fn set_preference(&mut self, process: u32, preference: &Preference) {
        if let Some(group) = self.sched_cache.groups.get_mut(process) {
            group.cpu = preference.home;
        }
        for &(task, preferred) in &preference.threads {
            let p = self.task(task);
            let (cpu, on_rq) = (p.cpu, p.on_rq);
            if on_rq {
                self.account_llc_dequeue(cpu, task);
            }
            self.task_mut(task).preferred_llc = preferred;
            if on_rq {
                self.account_llc_enqueue(cpu, task);
            }
        }
    }

    /// The same preference for another CPU's cache, or none, known to all threads.
    pub fn preferring(&self, preference: &Preference, home: Option<CpuId>) -> Preference {
        let llc = home.and_then(|cpu| self.llc_id(cpu));
        let threads = preference.threads.iter().map(|&(task, _)| (task, llc)).collect();
        Preference { home, threads }
    }
}

#[cfg(test)]
mod tests {
    use schedlab_topology::CpuId;

    use crate::Sched;
    use crate::balance::drawings::Pass;

    #[test]
    fn a_process_that_prefers_something_else_counts_as_such_until_that_is_taken_back() {
        let mut pass = Pass::new("v7.2", "1x2x4 | 0[] 4[a* b c] 5[d* e]", "cpu=0 idle level=1 pref:c=1");
        let sched = &mut pass.drawn.sched;
        let counts = |sched: &Sched| {
            [0, 4, 5].map(|cpu| [0, 4].map(|of| sched.nr_prefer_llc_of(CpuId(cpu), CpuId(of))))
        };
        let (before, former) = (sched.preference(0).unwrap(), counts(sched));
        let away = sched.preferring(&before, Some(CpuId(2)));
        sched.set_preference(0, &away);
        assert_eq!(counts(sched), [[0, 0], [3, 0], [2, 0]], "all of them would go to the first cache");
        sched.check();
        sched.set_preference(0, &before);
        assert_eq!((counts(sched), sched.preference(0).unwrap()), (former, before));
        sched.check();
    }
}
