//! Run times as the kernel charged them, where the trace contains them.
//!
//! The time between two events is a little more than what a task was charged: interrupts take their part, and a clock
//! is read before its event is written, long before it if the CPU is held up in between. `sched_stat_runtime` contains
//! the charge to the nanosecond, and its time: whatever the kernel does to a queue, it charges the running task first.
//! So in such a trace nothing else charges a task: its clock is pinned. Up to v6.8 the event also contains the virtual
//! time that the task has reached.

use schedlab_sched::{Curr, FairPolicy, SeId, calc_delta_fair};
use schedlab_topology::CpuId;
use schedlab_trace::{Event, Flags, Kind};
use schedlab_units::{TaskId, Time};

use crate::follow::charged::Charged;
use crate::follow::shadow::Shadow;
use crate::follow::watch::Watch;

/// Time of the last charge for a task that only events charge: never before any clock.
const PINNED: u64 = i64::MAX as u64;

/// Time without a charge after which a running task is no longer assumed to be covered by charge events; ticks normally
/// charge it more often.
const SILENCE_NS: u64 = 50_000_000;

/// How much more than the time since the last charge one charge may be, as clocks differ.
const CHARGED_BESIDE: u64 = 1_000_000_000;

/// Finds a charge that is recorded just after the event that it preceded. A queue's running task is charged when
/// another task is put there, while the `moving` event is written when that task is taken from its old queue. The
/// running task may also be charged next by its own switch or tick, outside of the interrupt that moves; such a charge
/// does not count.
pub fn charge_ahead<'a, W: Watch>(
    shadow: &mut Shadow<W>,
    to: CpuId,
    moving: &Event,
    ahead: impl Iterator<Item = &'a Event>,
) {
    let Curr::Task(curr) = shadow.sched.rqs[to].curr else { return };
    let context = |flags: Flags| [Flags::HARDIRQ, Flags::SOFTIRQ].map(|bit| flags.has(bit));
    for next in ahead {
        match next.kind {
            _ if next.cpu != moving.cpu => {}
            _ if context(next.flags) != context(moving.flags) => return,
            Kind::SchedMigrateTask { .. } => {}
            Kind::SchedStatRuntime { pid, runtime, vruntime, .. } if pid == shadow.known(curr).pid => {
                charge(shadow, curr, runtime, vruntime, next.time);
                shadow.known_mut(curr).charged.heeded = Some(next.time);
                return;
            }
            _ => return,
        }
    }
}

/// The kernel charged a task `runtime` since its last charge event, which brought it to a virtual time.
pub fn charge<W: Watch>(
    shadow: &mut Shadow<W>,
    task: TaskId,
    runtime: u64,
    vruntime: Option<u64>,
    now: Time,
) {
    shadow.runtime_told = true;
    if shadow.known_mut(task).charged.heeded.take_if(|heeded| *heeded == now).is_some() {
        return;
    }
    let cpu = shadow.sched.task(task).cpu;
    if shadow.sched.rqs[cpu].curr != Curr::Task(task) {
        return;
    }
    if !shadow.sched.task(task).policy.is_fair() {
        // What it ran in another class is not charged when it is fair again.
        shadow.known_mut(task).charged.at = None;
        return;
    }
    let read = read_before(shadow, task, runtime, now);
    shadow.sched.update_rq_clock(cpu, read);
    let ran = shadow.sched.task(task).se.sum_exec_runtime;
    match shadow.known(task).charged.at {
        None => shadow.charge_levels(task),
        Some(at) => {
            let clock = shadow.sched.rqs[cpu].clock_task;
            let rest = (runtime.min(i64::MAX as u64) as i64).saturating_sub(ran.wrapping_sub(at) as i64);
            // No task runs for longer than time passes; only a damaged line says so.
            let most = (clock.saturating_sub(shadow.known(task).charged.when) + CHARGED_BESIDE).min(clock);
            let began = clock - (rest.max(0) as u64).min(most);
            groups_since(shadow, task, began, clock);
            shadow.sched.task_mut(task).se.exec_start = began;
            if rest < 0 {
                give_back(shadow, SeId(task.0), rest.unsigned_abs());
            }
            shadow.charge_levels(task);
        }
    }
    let ran = shadow.sched.task(task).se.sum_exec_runtime;
    shadow.known_mut(task).charged.at = Some(ran);
    shadow.pin(task);
    if let Some(vruntime) = vruntime
        && shadow.sched.kernel.rules.policy == FairPolicy::Cfs
    {
        shadow.come_to(task, vruntime);
    }
}

/// When the clock was read for the charge of a task. If its CPU may have been held up before the event, the reading is
/// earlier by as much as the charge is less than the time passed.
fn read_before<W: Watch>(shadow: &Shadow<W>, task: TaskId, runtime: u64, now: Time) -> Time {
    let entry = shadow.sched.task(task);
    let charged = shadow.known(task).charged;
    if !charged.pinned {
        return now;
    }
    let rq = &shadow.sched.rqs[entry.cpu];
    let passed = (rq.clock_task + now.0.saturating_sub(rq.clock)).saturating_sub(charged.when);
    let held = shadow.held(entry.cpu, now).0;
    Time(now.0 - passed.saturating_sub(runtime).min(held))
}

/// The groups of a task are charged by the clock when a task is queued with them, which is no event. What they were
/// charged since their task's last charge is taken into account when that task is charged for a span that began then.
fn groups_since<W: Watch>(shadow: &mut Shadow<W>, task: TaskId, began: u64, clock: u64) {
    let Charged { when, pinned, .. } = shadow.known(task).charged;
    let mut level = shadow.sched.task(task).se.parent;
    while let Some(se) = level {
        let entity = shadow.sched.se_mut(se);
        let ahead = if pinned { entity.exec_start.saturating_sub(when) } else { 0 };
        let from = began.saturating_add(ahead);
        entity.exec_start = clock.min(from);
        level = entity.parent;
        if let Some(over) = from.checked_sub(clock) {
            give_back(shadow, se, over);
        }
    }
}

/// Takes back what an entity was charged too much.
fn give_back<W: Watch>(shadow: &mut Shadow<W>, se: SeId, time: u64) {
    let entity = shadow.sched.se_mut(se);
    entity.sum_exec_runtime -= time.min(entity.sum_exec_runtime);
    // Part of it may have been charged before the task was picked.
    entity.prev_sum_exec_runtime = entity.prev_sum_exec_runtime.min(entity.sum_exec_runtime);
    let vruntime = entity.vruntime.wrapping_sub(calc_delta_fair(time, &entity.load));
    let deadline = entity.deadline;
    shadow.sched.set_virtual_time(se, vruntime, deadline);
}

impl<W: Watch> Shadow<W> {
    /// Unpins the task that runs on a CPU if events should have charged it and did not.
    pub fn doubt(&mut self, cpu: CpuId) {
        if let Curr::Task(task) = self.sched.rqs[cpu].curr
            && self.known(task).charged.pinned
            && self.sched.rqs[cpu].clock_task > self.known(task).charged.when + SILENCE_NS
        {
            self.unpin(task);
        }
    }

    /// Whether the task on a CPU is charged by events only. Then the scheduler's clock is that of the last charge event,
    /// which is written as soon as the clock is read.
    pub fn tells_clock(&self, cpu: CpuId) -> bool {
        matches!(self.sched.rqs[cpu].curr, Curr::Task(task) if self.known(task).charged.pinned)
    }

    /// From now on only events charge a running task.
    pub fn pin(&mut self, task: TaskId) {
        let entry = self.sched.task(task);
        if !self.runtime_told || !entry.policy.is_fair() {
            return;
        }
        let (ran, when) = (entry.se.sum_exec_runtime, self.sched.rqs[entry.cpu].clock_task);
        let charged = &mut self.known_mut(task).charged;
        charged.at.get_or_insert(ran);
        (charged.when, charged.pinned) = (when, true);
        self.sched.task_mut(task).se.exec_start = PINNED;
    }

    /// A task has stopped running, or no event has charged it for long.
    pub fn unpin(&mut self, task: TaskId) {
        let charged = &mut self.known_mut(task).charged;
        if std::mem::take(&mut charged.pinned) {
            let when = charged.when;
            self.sched.task_mut(task).se.exec_start = when;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_topology::CpuId;
    use schedlab_trace::Comm;
    use schedlab_units::Pid;

    #[test]
    fn a_task_has_run_as_long_as_the_kernel_says() {
        let (mut shadow, task) = <Shadow>::with_one("v6.12", Time(1_000_000_000));
        charge(&mut shadow, task, 1, None, Time(1_001_000_000));
        let ran = |shadow: &Shadow| shadow.sched.task(task).se.sum_exec_runtime;
        let before = ran(&shadow);
        charge(&mut shadow, task, 990_000, None, Time(1_002_000_000));
        assert_eq!(ran(&shadow) - before, 990_000, "10 us went to an interrupt");
        shadow.sched.update_rq_clock(CpuId(0), Time(1_003_000_000));
        shadow.sched.update_curr(shadow.sched.root_cfs_id(CpuId(0)));
        assert_eq!(ran(&shadow) - before, 990_000, "nothing but an event charges it");
        shadow.unpin(task);
        shadow.sched.update_curr(shadow.sched.root_cfs_id(CpuId(0)));
        charge(&mut shadow, task, 980_000, None, Time(1_003_000_000));
        assert_eq!(ran(&shadow) - before, 1_970_000, "what was charged here meanwhile is given back");
    }

    #[test]
    fn run_time_in_another_class_is_not_charged() {
        let ms = |ms: u64| Time(1_000_000_000 + ms * 1_000_000);
        let (mut shadow, task) = <Shadow>::with_one("v6.12", ms(0));
        let comm = Comm::from("a");
        charge(&mut shadow, task, 1, None, ms(1));
        shadow.task(Pid(7), &comm, Some(98), CpuId(0), ms(2));
        charge(&mut shadow, task, 5_000_000, None, ms(7));
        shadow.task(Pid(7), &comm, Some(120), CpuId(0), ms(7));
        let ran = |shadow: &Shadow| shadow.sched.task(task).se.sum_exec_runtime;
        let before = ran(&shadow);
        charge(&mut shadow, task, 1_000_000, None, ms(8));
        assert_eq!(ran(&shadow) - before, 1_000_000);
    }

    #[test]
    fn a_group_is_charged_by_the_clock_beside_others_and_as_much_as_its_task_in_the_end() {
        let us = |us: u64| Time(1_000_000_000 + us * 1000);
        let (mut shadow, task) = <Shadow>::with_one("v6.12", us(0));
        let group = shadow.sched.new_group(schedlab_sched::TgId::ROOT, 1 << 20, CpuId(0), us(0));
        shadow.sched.move_task_to_group(task, group, us(0));
        charge(&mut shadow, task, 1, None, us(1000));
        let of_group = shadow.sched.task(task).se.parent.unwrap();
        let ran = |shadow: &Shadow| {
            [shadow.sched.task(task).se.sum_exec_runtime, shadow.sched.se(of_group).sum_exec_runtime]
        };
        let before = ran(&shadow);
        let since = |shadow: &Shadow| [0, 1].map(|level| (ran(shadow)[level] - before[level]) / 1000);
        // A task is queued with the group.
        shadow.sched.update_rq_clock(CpuId(0), us(1600));
        shadow.sched.update_curr(shadow.sched.root_cfs_id(CpuId(0)));
        assert_eq!(since(&shadow), [0, 600]);
        charge(&mut shadow, task, 990_000, None, us(2000));
        assert_eq!(since(&shadow), [990, 990], "10 us went to an interrupt");
        shadow.sched.update_rq_clock(CpuId(0), us(2700));
        shadow.sched.update_curr(shadow.sched.root_cfs_id(CpuId(0)));
        charge(&mut shadow, task, 300_000, None, us(2700));
        assert_eq!(since(&shadow), [1290, 1290], "400 us did, before the other was queued");
    }

    #[test]
    fn a_cpu_that_lost_its_turn_had_read_its_clock_before() {
        let us = |us: u64| Time(1_000_000_000 + us * 1000);
        let clock = |other_acts: bool| {
            let (mut shadow, task) = <Shadow>::with_one("v6.12", us(0));
            charge(&mut shadow, task, 1, None, us(1000));
            shadow.clocks.act(CpuId(0), us(1000));
            if other_acts {
                shadow.clocks.act(CpuId(1), us(2000));
            }
            charge(&mut shadow, task, 400_000, None, us(3000));
            shadow.schedule_clock(CpuId(0), us(3006)).read
        };
        assert_eq!(clock(true), us(1400));
        assert_eq!(clock(false), us(3000), "what is not charged went to interrupts");
    }

    #[test]
    fn nobody_is_charged_for_longer_than_time_passes() {
        let days = |days: u64| Time(days * 86_400_000_000_000);
        let (mut shadow, task) = <Shadow>::with_one("v6.12", days(1000));
        charge(&mut shadow, task, 1, None, days(1000));
        for runtime in [days(999).0, i64::MAX as u64, u64::MAX] {
            charge(&mut shadow, task, runtime, None, days(1000));
        }
        let ran = shadow.sched.task(task).se.sum_exec_runtime;
        assert!(ran <= 4 * CHARGED_BESIDE, "{ran} ns");
    }
}
