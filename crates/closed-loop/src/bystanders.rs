//! Kernel threads that compete with a program for CPUs, woken by timers and soft interrupts.
//!
//! The causes of their wake-ups (RCU grace periods, memory statistics, freed stacks of dead tasks) are not simulated.
//! When they wake and how long they run is taken from the recording, as external input. Where they run, and which tasks
//! they preempt, is decided by the rules.

use std::collections::BTreeSet;

use schedlab_replay::usual_policy;
use schedlab_trace::{Comm, bound_kthread};
use schedlab_units::{Duration, Pid, Time};
use schedlab_workload::{CpuList, Did, SchedAttr, Start, TaskSpec, Workload, WorkloadBuilder, WorkloadError};

use crate::course::{Course, Courses};

/// The courses of kernel threads that ran with a program, from the start of the program.
#[derive(Clone, Debug, Default)]
pub struct Bystanders {
    begin: Time,
    courses: Vec<Course>,
}

impl Bystanders {
    /// The kernel threads of a recording that are woken or created only by interrupts or by each other.
    pub fn of(courses: &Courses, begin: Time, own: impl Fn(Comm) -> bool) -> Bystanders {
        let is_stopper = |course: &Course| course.comm.as_bytes().starts_with(b"migration/");
        let first = |course: &Course| own(course.comm) || is_stopper(course);
        let mut others: BTreeSet<Pid> =
            courses.tasks.iter().filter(|(_, course)| first(course)).map(|(&pid, _)| pid).collect();
        loop {
            let called = |course: &Course| {
                course.wakers.iter().chain(&course.parent).any(|caller| others.contains(caller))
            };
            let found = courses.tasks.iter().find(|(pid, course)| !others.contains(pid) && called(course));
            let Some((&pid, _)) = found else { break };
            others.insert(pid);
        }
        let left = courses.tasks.iter().filter(|(pid, _)| !others.contains(pid));
        let courses = left.map(|(_, course)| course.since(begin)).filter(|course| !course.bursts.is_empty());
        Bystanders { begin, courses: courses.collect() }
    }

    /// Adds them to a workload, starting when it starts.
    ///
    /// # Errors
    /// Only errors that the workload would have on its own.
    pub fn beside(&self, workload: Workload) -> Result<Workload, WorkloadError> {
        let mut w = WorkloadBuilder::from(workload);
        for course in &self.courses {
            let cpus = bound_kthread(&course.comm).and_then(|cpu| CpuList::new([cpu]));
            let spec = as_recorded(&mut w, course, self.begin, cpus);
            w.task(TaskSpec { kthread: true, ..spec });
        }
        w.finish()
    }
}

/// A task that is awake when the recorded one was, for as long as that one ran.
pub(crate) fn as_recorded(
    w: &mut WorkloadBuilder,
    course: &Course,
    begin: Time,
    cpus: Option<CpuList>,
) -> TaskSpec {
    let attr = w.attr(SchedAttr { policy: usual_policy(course.prio), ..SchedAttr::default() });
    let cpus = cpus.map(|cpus| w.cpus(cpus));
    let code = w.program(course.comm.to_string(), |p| {
        if !course.is_new {
            p.run(Duration(1));
        }
        for &(at, ran) in &course.bursts {
            p.origin(at.since(begin)).run(ran.max(Duration(1)));
        }
        p.origin(Duration::secs(3600));
    });
    let start = if course.is_new { course.bursts[0].0.since(begin) } else { Duration::ZERO };
    TaskSpec {
        start: Start::At(start),
        start_cpu: Some(course.cpu),
        attr: Some(attr),
        cpus,
        background: true,
        // It has been asleep for a long time, so it does not have a new task's averages.
        did: (!course.is_new).then_some(Did { running: 0, runnable: 0, awake: true }),
        ..TaskSpec::root(course.comm.to_string(), code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_trace::Sink;
    use schedlab_trace::read::{Record, ftrace};

    #[test]
    fn a_task_woken_by_interrupts_alone_stands_by() {
        let text = "\
 <idle>-0 [000] d.s2. 1.000000: sched_waking: comm=rcu_preempt pid=15 prio=120 target_cpu=001
 <idle>-0 [001] dNh2. 1.000010: sched_wakeup: comm=rcu_preempt pid=15 prio=120 target_cpu=001
 <idle>-0 [001] d..2. 1.000020: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=rcu_preempt next_pid=15 next_prio=120
   rcu_preempt-15 [001] d..3. 1.000030: sched_waking: comm=kworker/1:1 pid=22 prio=120 target_cpu=001
   rcu_preempt-15 [001] d..3. 1.000031: sched_wakeup: comm=kworker/1:1 pid=22 prio=120 target_cpu=001
   rcu_preempt-15 [001] d..2. 1.000040: sched_switch: prev_comm=rcu_preempt prev_pid=15 prev_prio=120 prev_state=I ==> next_comm=kworker/1:1 next_pid=22 next_prio=120
   own-30 [002] d..2. 1.000045: sched_switch: prev_comm=own prev_pid=30 prev_prio=120 prev_state=R ==> next_comm=own next_pid=31 next_prio=120
   own-30 [000] d..3. 1.000050: sched_waking: comm=kworker/0:1 pid=23 prio=120 target_cpu=000
   own-30 [000] d..3. 1.000051: sched_wakeup: comm=kworker/0:1 pid=23 prio=120 target_cpu=000
   kworker/1:1-22 [001] d..2. 1.000060: sched_switch: prev_comm=kworker/1:1 prev_pid=22 prev_prio=120 prev_state=I ==> next_comm=swapper/1 next_pid=0 next_prio=120
   kworker/0:1-23 [000] d..3. 1.000070: sched_waking: comm=helper pid=40 prio=120 target_cpu=000
   kworker/0:1-23 [000] d..3. 1.000071: sched_wakeup: comm=helper pid=40 prio=120 target_cpu=000
";
        let mut courses = Courses::default();
        for record in ftrace::Reader::new(text.as_bytes()) {
            if let Record::Event(event) = record.unwrap() {
                courses.event(&event);
            }
        }
        let names = |us: u64| -> Vec<String> {
            let begin = Time(1_000_000_000 + us * 1000);
            let found = Bystanders::of(&courses, begin, |comm| comm.as_bytes() == b"own");
            found.courses.iter().map(|course| course.comm.to_string()).collect()
        };
        assert_eq!(names(0), ["rcu_preempt", "kworker/1:1"]);
        assert_eq!(names(25), ["kworker/1:1"], "from when the program began");
    }
}
