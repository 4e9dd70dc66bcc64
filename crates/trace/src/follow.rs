//! What a trace shows about run queues: how long each is.
//!
//! The counts include tasks that are runnable or running, without the idle task. A recording that begins in the middle
//! does not show a task before its first event, so counts are too low until every waiting task has run.

use std::collections::BTreeMap;

use schedlab_topology::CpuId;
use schedlab_units::Pid;

use crate::event::{Event, Kind};

/// Follows a trace and counts the tasks on each CPU's run queue.
#[derive(Clone, Debug, Default)]
pub struct QueueLengths {
    on_rq: BTreeMap<Pid, CpuId>,
    nr_running: Vec<u32>,
}

impl QueueLengths {
    /// Follows one event and calls the function with each CPU whose count it changed.
    pub fn event(&mut self, event: &Event, mut changed: impl FnMut(CpuId, u32)) {
        match event.kind {
            Kind::SchedWakeup { pid, target_cpu, .. } | Kind::SchedWakeupNew { pid, target_cpu, .. } => {
                self.put(pid, Some(target_cpu), &mut changed);
            }
            Kind::SchedMigrateTask { pid, dest_cpu, .. } if self.on_rq.contains_key(&pid) => {
                self.put(pid, Some(dest_cpu), &mut changed);
            }
            Kind::SchedSwitch { prev_pid, prev_state, next_pid, .. } => {
                self.put(prev_pid, prev_state.is_runnable().then_some(event.cpu), &mut changed);
                self.put(next_pid, Some(event.cpu), &mut changed);
            }
            _ => {}
        }
    }

    /// The tasks on a CPU's run queue.
    pub fn nr_running(&self, cpu: CpuId) -> u32 {
        self.nr_running.get(cpu.index()).copied().unwrap_or(0)
    }

    /// Puts a task on a queue, or takes it off.
    fn put(&mut self, pid: Pid, cpu: Option<CpuId>, changed: &mut impl FnMut(CpuId, u32)) {
        if pid == Pid::IDLE {
            return;
        }
        let before = match cpu {
            Some(cpu) => self.on_rq.insert(pid, cpu),
            None => self.on_rq.remove(&pid),
        };
        if before == cpu {
            return;
        }
        if let Some(before) = before {
            let count = &mut self.nr_running[before.index()];
            *count -= 1;
            changed(before, *count);
        }
        if let Some(cpu) = cpu {
            if self.nr_running.len() <= cpu.index() {
                self.nr_running.resize(cpu.index() + 1, 0);
            }
            let count = &mut self.nr_running[cpu.index()];
            *count += 1;
            changed(cpu, *count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{Record, ftrace};
    use expect_test::expect;

    #[test]
    fn a_queue_grows_with_a_wakeup_and_shrinks_when_a_task_sleeps_or_leaves() {
        let text = "\
            a-1 [000] 1.0: sched_wakeup: comm=b pid=2 prio=120 target_cpu=001\n\
            i-0 [001] 1.1: sched_switch: prev_comm=i prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=b next_pid=2 next_prio=120\n\
            a-1 [000] 1.2: sched_wakeup_new: comm=c pid=3 prio=120 target_cpu=001\n\
            a-1 [000] 1.3: sched_wakeup: comm=c pid=3 prio=120 target_cpu=001\n\
            b-2 [001] 1.4: sched_switch: prev_comm=b prev_pid=2 prev_prio=120 prev_state=R+ ==> next_comm=c next_pid=3 next_prio=120\n\
            a-1 [000] 1.5: sched_migrate_task: comm=b pid=2 prio=120 orig_cpu=1 dest_cpu=0\n\
            a-1 [000] 1.5: sched_migrate_task: comm=d pid=4 prio=120 orig_cpu=1 dest_cpu=0\n\
            c-3 [001] 1.6: sched_switch: prev_comm=c prev_pid=3 prev_prio=120 prev_state=S ==> next_comm=i next_pid=0 next_prio=120\n";
        let mut lengths = QueueLengths::default();
        let mut shown = String::new();
        for record in ftrace::Reader::new(text.as_bytes()) {
            let Ok(Record::Event(event)) = record else { panic!("{record:?}") };
            lengths.event(&event, |cpu, nr| shown += &format!("{} cpu {cpu}: {nr}\n", event.time));
        }
        expect![[r#"
            1.000000000 cpu 1: 1
            1.200000000 cpu 1: 2
            1.500000000 cpu 1: 1
            1.500000000 cpu 0: 1
            1.600000000 cpu 1: 0
        "#]]
        .assert_eq(&shown);
        assert_eq!(lengths.nr_running(CpuId(0)), 1);
        assert_eq!(lengths.nr_running(CpuId(7)), 0);
    }
}
