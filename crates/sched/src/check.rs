//! What must hold of the state between two calls, as sentences with code.
//!
//! [`Sched::check`] recounts everything that is kept as a sum or a number. It is slow,
//! for tests and for runs that look for bugs.

mod averages;
mod balance;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use schedlab_units::TaskId;

use crate::cfs_rq::before;
use crate::class::Class;
use crate::pick::avg_vruntime::avg_vruntime_weight;
use crate::{CfsRq, CfsRqId, Curr, Feature, Sched, SeId};

/// Something that holds of every state.
pub struct Invariant {
    /// What.
    pub sentence: &'static str,
    /// Where it does not hold, in words.
    pub violation: fn(&Sched) -> Option<String>,
}

/// All of them.
pub const INVARIANTS: &[Invariant] = &[
    Invariant {
        sentence: "the number of entities of a queue is that of its time line and its current",
        violation: nr_queued,
    },
    Invariant {
        sentence: "the time line is in order and says of each entity what the entity says",
        violation: timeline,
    },
    Invariant { sentence: "the load of a queue is the sum of the weights of its entities", violation: load },
    Invariant { sentence: "the sums of the average are those of the time line", violation: avg_sums },
    Invariant { sentence: "task counts of a queue are the sums of those below it", violation: h_nr },
    Invariant {
        sentence: "a group's entity is queued while its queue has entities and may run",
        violation: group_entities,
    },
    Invariant { sentence: "buddies are queued", violation: buddies },
    Invariant {
        sentence: "nr_running counts the tasks of all classes, and a fair server that runs",
        violation: nr_running,
    },
    Invariant { sentence: "the list of fair tasks has each queued one once", violation: cfs_tasks },
    Invariant { sentence: "what runs is current on all levels, and nothing else is", violation: current },
    Invariant { sentence: "a task runs on one CPU, its own", violation: one_cpu },
    Invariant {
        sentence: "a queued task that waits may use its CPU, unless a stopper has work there or all of its CPUs were offline",
        violation: affinity,
    },
    Invariant { sentence: "a queue with entities that may run has its averages aged", violation: leaf_list },
    Invariant { sentence: "CPUs that may have RT tasks to give are counted", violation: rt_overloaded },
    Invariant { sentence: "a task that waits for quota is off the queue", violation: limbo },
    Invariant { sentence: "an average is nothing when its sums are", violation: averages::sums },
    Invariant {
        sentence: "a task's sums are at most those of one that always ran",
        violation: averages::own_sums,
    },
    Invariant { sentence: "a task is not aged beyond its queue", violation: averages::update_times },
    Invariant {
        sentence: "a group's load is the sum of what its CPUs wrote",
        violation: averages::tg_load_avg,
    },
    Invariant {
        sentence: "the estimate of a CPU is the sum of its tasks', or less if sleepers leave it twice",
        violation: averages::util_est,
    },
    Invariant {
        sentence: "a group's capacity lies between its smallest and largest",
        violation: balance::capacity,
    },
    Invariant {
        sentence: "sums of groups are those of their CPUs, unless these may have changed",
        violation: Sched::wrong_group_sum,
    },
    Invariant { sentence: "balance intervals stay in their bounds", violation: balance::intervals },
    Invariant {
        sentence: "a cache's busy CPUs are those that did not stop their tick in its domains",
        violation: balance::nr_busy_cpus,
    },
    Invariant {
        sentence: "the idle CPUs to be balanced for are those without",
        violation: balance::tickless,
    },
    Invariant { sentence: "a CPU's preferred caches are those of its tasks", violation: balance::llc_counts },
];

impl Sched {
    /// Asserts every invariant.
    pub fn check(&self) {
        for invariant in INVARIANTS {
            if let Some(violation) = (invariant.violation)(self) {
                panic!("{}; but {violation}", invariant.sentence);
            }
        }
    }

    fn queues(&self) -> impl Iterator<Item = (CfsRqId, &CfsRq)> {
        self.cfs_rqs.iter().enumerate().map(|(n, queue)| (CfsRqId(n as u32), queue))
    }

    /// All entities of a queue.
    fn entities(&self, cfs: CfsRqId) -> Vec<SeId> {
        let line = self.cfs(cfs).timeline.entries().iter().map(|q| q.se);
        line.chain(self.queued_curr(cfs)).collect()
    }

    /// All entities that are queued at a level.
    fn standing(&self, cfs: CfsRqId) -> Vec<SeId> {
        if !self.is_flat() {
            return self.entities(cfs);
        }
        let tasks = (0..self.tasks.len() as u32).map(SeId);
        let groups = (0..self.group_ses.len() as u32).map(|group| SeId(group | SeId::GROUP));
        tasks.chain(groups).filter(|&se| self.se(se).on_rq && self.se(se).cfs_rq == Some(cfs)).collect()
    }

    fn throttles_by_dequeue(&self, queue: &CfsRq) -> bool {
        queue.throttled && !self.kernel.has(Feature::BandwidthPerTask)
    }
}

fn differ<T: PartialEq + core::fmt::Debug>(
    place: impl core::fmt::Display,
    kept: T,
    counted: T,
) -> Option<String> {
    (kept != counted).then(|| format!("{place} has {kept:?}, counted {counted:?}"))
}

fn name(cfs: CfsRqId, queue: &CfsRq) -> String {
    format!("queue {} (cpu {}, group {})", cfs.0, queue.cpu, queue.tg.0)
}

fn nr_queued(sched: &Sched) -> Option<String> {
    sched
        .queues()
        .find_map(|(id, queue)| differ(name(id, queue), queue.nr_queued as usize, sched.standing(id).len()))
}

fn timeline(sched: &Sched) -> Option<String> {
    sched.queues().find_map(|(id, queue)| {
        let entries = queue.timeline.entries();
        let disorder = entries.windows(2).any(|pair| before(pair[1].key, pair[0].key));
        if disorder {
            return Some(format!("{} is not", name(id, queue)));
        }
        entries.iter().find_map(|q| {
            let entity = sched.se(q.se);
            let key = if sched.is_eevdf() { entity.deadline } else { entity.vruntime };
            let own = if sched.is_flat() { entity.cfs_rq } else { Some(id) };
            let says = (q.key, q.vruntime, q.slice, true, own);
            differ(
                format!("{}, entity {:#x}", name(id, queue), q.se.0),
                says,
                (key, entity.vruntime, entity.slice, entity.on_rq, entity.cfs_rq),
            )
        })
    })
}

fn load(sched: &Sched) -> Option<String> {
    sched.queues().find_map(|(id, queue)| {
        let sum: u64 = sched.standing(id).iter().map(|&se| sched.se(se).load.weight).sum();
        differ(name(id, queue), queue.load.weight, sum)
    })
}

fn avg_sums(sched: &Sched) -> Option<String> {
    sched.queues().filter(|_| sched.is_eevdf()).find_map(|(id, queue)| {
        let rules = &sched.kernel.rules;
        let zero = queue.zero(rules);
        let (mut sum, mut weight) = (0i64, 0i64);
        for q in queue.timeline.entries() {
            let w = avg_vruntime_weight(rules, queue, sched.se(q.se).line_load().weight);
            sum = sum.wrapping_add((q.vruntime.wrapping_sub(zero) as i64).wrapping_mul(w));
            weight += w;
        }
        differ(name(id, queue), (queue.avg_vruntime, queue.avg_load), (sum, weight))
    })
}

fn h_nr(sched: &Sched) -> Option<String> {
    sched.queues().find_map(|(id, queue)| {
        let mut counted = (0, 0, 0);
        for se in sched.standing(id) {
            let entity = sched.se(se);
            let (queued, runnable, idle) = match entity.my_q.map(|my_q| sched.cfs(my_q)) {
                None => (1, !entity.sched_delayed as u32, entity.idle as u32),
                Some(below) if sched.throttles_by_dequeue(below) => (0, 0, 0),
                Some(below) if below.idle => (below.h_nr_queued, below.h_nr_runnable, below.h_nr_queued),
                Some(below) => (below.h_nr_queued, below.h_nr_runnable, below.h_nr_idle),
            };
            counted = (counted.0 + queued, counted.1 + runnable, counted.2 + idle);
        }
        differ(name(id, queue), (queue.h_nr_queued, queue.h_nr_runnable, queue.h_nr_idle), counted)
    })
}

fn group_entities(sched: &Sched) -> Option<String> {
    sched.queues().find_map(|(id, queue)| {
        let &se = sched.tg(queue.tg).se.get(queue.cpu.index())?;
        let entity = sched.se(se);
        let wants = queue.nr_queued > 0 && !sched.throttles_by_dequeue(queue);
        if entity.sched_delayed {
            return (!entity.on_rq || queue.nr_queued > 0).then(|| format!("{} is delayed", name(id, queue)));
        }
        differ(name(id, queue), entity.on_rq, wants)
    })
}

fn buddies(sched: &Sched) -> Option<String> {
    sched.queues().find_map(|(id, queue)| {
        let marks = [("next", queue.next), ("last", queue.last), ("skip", queue.skip)];
        marks.into_iter().find_map(|(mark, se)| {
            let entity = sched.se(se?);
            // The task marked to be skipped may have left, if its group is out of quota.
            (!entity.on_rq && mark != "skip" || sched.line_of(se.unwrap()) != id)
                .then(|| format!("{} has {mark} {:#x}", name(id, queue), se.unwrap().0))
        })
    })
}

fn nr_running(sched: &Sched) -> Option<String> {
    sched.rqs.iter().find_map(|(cpu, rq)| {
        let fair = sched.cfs(sched.root_cfs_id(cpu)).h_nr_queued as usize;
        let rt = if rq.rt_throttled { 0 } else { rq.rt_queue.len() };
        let counts = sched.kernel.has(Feature::ServerCounts);
        let server = usize::from(counts && rq.fair_server.runs());
        let stop = rq.stop.iter().len() + usize::from(rq.stop_asked);
        let counted = fair + rt + rq.dl_queue.len() + stop + server;
        differ(format!("cpu {cpu}"), rq.nr_running as usize, counted)
    })
}

fn cfs_tasks(sched: &Sched) -> Option<String> {
    sched.rqs.iter().find_map(|(cpu, rq)| {
        let mut listed: Vec<TaskId> = sched.cfs_tasks(cpu).take(sched.tasks.len() + 1).collect();
        if listed.last().copied() != rq.cfs_tasks.1 {
            return Some(format!("the tail of cpu {cpu} is not its last"));
        }
        listed.sort();
        let queued = |task: &TaskId| sched.task(*task).se.on_rq && sched.task(*task).cpu == cpu;
        let counted: Vec<TaskId> = (0..sched.tasks.len() as u32).map(TaskId).filter(queued).collect();
        differ(format!("cpu {cpu}"), listed, counted)
    })
}

fn current(sched: &Sched) -> Option<String> {
    sched.rqs.iter().find_map(|(cpu, rq)| {
        let mut running: Vec<(CfsRqId, SeId)> = Vec::new();
        if let Curr::Task(task) = rq.curr
            && sched.class_of(task) == Class::Fair
        {
            let mut level = Some(SeId(task.0));
            while let Some(se) = level {
                running.push((sched.cfs_rq_of(se), se));
                level = sched.se(se).parent;
            }
        }
        running.sort();
        let on_cpu = sched.queues().filter(|(_, queue)| queue.cpu == cpu);
        let marked: Vec<_> = on_cpu.filter_map(|(id, queue)| Some((id, queue.runs()?))).collect();
        differ(format!("cpu {cpu}"), marked, running)
    })
}

fn one_cpu(sched: &Sched) -> Option<String> {
    sched.rqs.iter().find_map(|(cpu, rq)| {
        let task = rq.curr.task()?;
        let entry = sched.task(task);
        (entry.cpu != cpu || !entry.on_cpu)
            .then(|| format!("task {} of cpu {} runs on {cpu}", task.0, entry.cpu))
    })
}

fn affinity(sched: &Sched) -> Option<String> {
    let waits = |task: TaskId| {
        let entry = sched.task(task);
        // A stopper that has work may be about to move it.
        let elsewhere = sched.rqs[entry.cpu].stop.is_some() || sched.out_of_place.contains(&task);
        entry.on_rq && sched.rqs[entry.cpu].curr != Curr::Task(task) && !elsewhere
    };
    (0..sched.tasks.len() as u32).map(TaskId).filter(|&task| waits(task)).find_map(|task| {
        let entry = sched.task(task);
        (!entry.allowed.contains(entry.cpu)).then(|| format!("task {} is on cpu {}", task.0, entry.cpu))
    })
}

fn leaf_list(sched: &Sched) -> Option<String> {
    sched.queues().find_map(|(id, queue)| {
        let listed = sched.rqs[queue.cpu].leaf_cfs_rqs.iter().filter(|&&other| other == id).count();
        if listed != queue.on_list as usize {
            return Some(format!("{} is listed {listed} times", name(id, queue)));
        }
        let frozen = queue.throttle_count > 0;
        (queue.nr_queued > 0 && !frozen && !queue.on_list).then(|| format!("{} is not", name(id, queue)))
    })
}

fn rt_overloaded(sched: &Sched) -> Option<String> {
    let counted = sched.rqs.iter().filter(|(_, rq)| rq.rt_queue.len() >= sched.rt_overload()).count();
    differ("the scheduler", sched.nr_rt_overloaded as usize, counted)
}

fn limbo(sched: &Sched) -> Option<String> {
    sched.queues().find_map(|(id, queue)| {
        queue.throttled_limbo.iter().find_map(|&task| {
            let entry = sched.task(task);
            (entry.se.on_rq || !entry.throttled || entry.se.cfs_rq != Some(id))
                .then(|| format!("task {} is queued in {}", task.0, name(id, queue)))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawing::draw;

    /// The sentence that no longer holds after a change of a sound state.
    pub(super) fn broken(change: impl FnOnce(&mut Sched)) -> String {
        let mut sched = draw("v7.2", "1x1x2 | 0[a* b] 1[]").sched;
        sched.check();
        change(&mut sched);
        let violated = INVARIANTS.iter().find(|invariant| (invariant.violation)(&sched).is_some());
        violated.map_or("none", |invariant| invariant.sentence).into()
    }
}
