//! Reuses the slots of dead tasks for new ones.
//!
//! A recording of builds can contain millions of forks, and each task takes more than half a kilobyte here. So a new
//! task gets the slot of a task that has been dead for a while.

use std::collections::VecDeque;

use schedlab_units::{Duration, TaskId, Time};

/// How long decisions about a dead task may still be open.
const REST: Duration = Duration::secs(1);

/// Which task died when, the earliest first.
#[derive(Debug, Default)]
pub struct Dead(VecDeque<(Time, TaskId)>);

impl Dead {
    /// A task has left its CPU for good.
    pub fn died(&mut self, task: TaskId, now: Time) {
        self.0.push_back((now, task));
    }

    /// The slot of a task that has been dead for long enough. The caller must check that the task has not come back to
    /// life, which can happen where events were lost.
    pub fn place(&mut self, now: Time) -> Option<TaskId> {
        let &(died, task) = self.0.front()?;
        (died + REST <= now).then(|| {
            self.0.pop_front();
            task
        })
    }
}

#[cfg(test)]
mod tests {
    use schedlab_sched::Kernel;
    use schedlab_topology::Topology;
    use schedlab_trace::Sink;
    use schedlab_trace::read::{Record, ftrace};

    use crate::{Audit, Options};

    use super::*;

    /// A shell forks a task ten times a second; the task runs on another CPU and exits.
    fn births(count: u32) -> String {
        let birth = |number: u32| {
            let (pid, at) = (100 + number, format!("{}.{}", 1 + number / 10, number % 10));
            let line = |cpu: u32, us: u32, who: &str, what: &str| {
                format!(" {who} [00{cpu}] d..2. {at}{us:05}: {what}\n")
            };
            let idle = "swapper/1 prev_pid=0 prev_prio=120 prev_state=R";
            let child = format!("c prev_pid={pid} prev_prio=120 prev_state=Z");
            [
                line(
                    0,
                    10,
                    "sh-10",
                    &format!("sched_process_fork: comm=sh pid=10 child_comm=sh child_pid={pid}"),
                ),
                line(0, 20, "sh-10", &format!("sched_wakeup_new: comm=c pid={pid} prio=120 target_cpu=001")),
                line(
                    1,
                    30,
                    "<idle>-0",
                    &format!("sched_switch: prev_comm={idle} ==> next_comm=c next_pid={pid} next_prio=120"),
                ),
                line(1, 40, &format!("c-{pid}"), &format!("sched_process_exit: comm=c pid={pid} prio=120")),
                line(
                    1,
                    50,
                    &format!("c-{pid}"),
                    &format!(
                        "sched_switch: prev_comm={child} ==> next_comm=swapper/1 next_pid=0 next_prio=120"
                    ),
                ),
            ]
            .concat()
        };
        (0..count).map(birth).collect()
    }

    #[test]
    fn a_recording_of_many_births_keeps_few_tasks_and_judges_them_all() {
        let topology = Topology::regular("1x1x2").unwrap();
        let mut audit = Audit::new(&topology, &Kernel::parse("v6.12").unwrap(), Options::default());
        for record in ftrace::Reader::new(births(200).as_bytes()) {
            let Record::Event(event) = record.unwrap() else { continue };
            audit.event(&event);
        }
        let kept = audit.shadow.sched.tasks.len();
        assert!((10..=14).contains(&kept), "{kept} tasks kept: ten a second, and the shell");
        let forks = audit.finish().0.fork.counts;
        assert_eq!(forks.agrees + forks.agrees_in_set + forks.differs + forks.undecided, 200);
    }

    #[test]
    fn places_are_given_in_the_order_of_deaths_after_a_rest() {
        let mut dead = Dead::default();
        let at = |ms| Time::ZERO + Duration::millis(ms);
        dead.died(TaskId(7), at(10));
        dead.died(TaskId(3), at(20));
        assert_eq!(dead.place(at(1009)), None);
        assert_eq!(dead.place(at(1015)), Some(TaskId(7)));
        assert_eq!(dead.place(at(1015)), None, "the other has not rested yet");
        assert_eq!(dead.place(at(5000)), Some(TaskId(3)));
        assert_eq!(dead.place(at(9000)), None);
    }
}
