//! Passes the engine's calls to the library.

use std::sync::Arc;

use schedlab_kernel_tree::{GroupId, How, end_run};
use schedlab_sched::{
    BalanceDecision, Curr, Deactivate, Domains, Effect, Experience, Kernel, KernelError, Lately, Looked,
    MigrationCause, NeedResched, NewTask, Newidle, PassedOver, Placement, Policy, PreemptDecision, Sched,
    Scheduler, SdId, Switched, Task, TaskState, TgId, Ticked, Took, WakePath, Wakeup, WakeupDecision,
};
use schedlab_topology::{CpuId, CpuMask};
use schedlab_units::{Duration, TaskId, Time};

use crate::told::{Call, TIMERS};
use crate::{Followed, TreeSched, number};

/// Whether a wake-up by this path only concerns the placement. Whether the waker waits for the CPU that the task leaves
/// is a matter of timing, and our rules can take over either case.
fn is_new_place(path: WakePath) -> bool {
    matches!(path, WakePath::Select | WakePath::OnCpuHandover)
}

fn group(tg: TgId) -> Option<GroupId> {
    (tg != TgId::ROOT).then(|| GroupId(tg.0 - 1))
}

impl Scheduler for TreeSched {
    fn kernel(&self) -> &Kernel {
        &self.rules.kernel
    }
    fn switch(&mut self, part: &str) -> Result<(), KernelError> {
        if let Some(model) = part.strip_prefix("preempt=")
            && !self.library.set_preempt(model)
        {
            let release = self.library.release();
            end_run(format!(
                "the run switches to preempt={model}, a preemption model that Linux {release} does not have"
            ));
        }
        let (name, on) = part.strip_prefix("NO_").map_or((part, true), |name| (name, false));
        self.library.feature(name, on);
        self.rules.kernel.switch(part)
    }
    fn domains(&self) -> &Domains {
        &self.rules.domains
    }
    fn tick_ns(&self) -> u64 {
        self.rules.tick_ns()
    }
    fn took(&mut self) -> &mut Took {
        &mut self.rules.took
    }
    fn looked(&mut self) -> &mut Looked {
        &mut self.looked
    }
    #[inline]
    fn effects(&mut self) -> &mut Vec<Effect> {
        &mut self.effects
    }
    fn log_balance(&mut self, on: bool) {
        self.follows = on;
        self.rules.log_balance(on);
        *self.followed.lock().expect("nobody fails here") = Followed::default();
    }
    // Only passes that moved the same tasks as the tree's.
    fn balance_log(&mut self) -> Vec<BalanceDecision> {
        Scheduler::balance_log(&mut self.rules)
    }
    fn newidle_log(&mut self) -> Vec<Newidle> {
        Scheduler::newidle_log(&mut self.rules)
    }
    fn keeps_passes(&self) -> bool {
        self.follows
    }

    #[inline]
    fn curr(&self, cpu: CpuId) -> Curr {
        self.of(cpu).curr
    }
    #[inline]
    fn need_resched(&self, cpu: CpuId) -> NeedResched {
        let pending = self.library.pending(cpu);
        NeedResched { full: pending.resched(), lazy: pending.resched_lazy() }
    }
    fn nr_running(&self, cpu: CpuId) -> u32 {
        self.library.nr_running(cpu)
    }
    #[inline]
    fn is_online(&self, cpu: CpuId) -> bool {
        self.of(cpu).online
    }
    #[inline]
    fn is_active(&self, cpu: CpuId) -> bool {
        self.of(cpu).active
    }
    #[inline]
    fn is_polling(&self, cpu: CpuId) -> bool {
        self.of(cpu).polling
    }
    fn set_polling(&mut self, cpu: CpuId, polling: bool) {
        self.of_mut(cpu).polling = polling;
        self.rules.rqs[cpu].polling = polling;
    }
    fn linger(&mut self) -> bool {
        self.rules.linger()
    }
    fn is_at_idle(&mut self, cpu: CpuId) {
        self.beside(|rules| rules.is_at_idle(cpu));
        let pending = self.has_wake_list(cpu);
        self.library.is_at_idle(cpu, pending);
    }
    fn hands_over(&self, wakeup: &Wakeup) -> bool {
        // If the task is on its CPU, the tree decides, or its waker waits for the switch.
        self.tasks[wakeup.task.index()].on_cpu
    }
    fn set_idle_exit_latency(&mut self, cpu: CpuId, ns: Option<u64>) {
        self.library.set_idle_exit_latency(cpu, ns);
        self.rules.rqs[cpu].idle_exit_latency = ns;
    }
    #[inline]
    fn has_wake_list(&self, cpu: CpuId) -> bool {
        !self.of(cpu).wake_list.is_empty()
    }
    fn has_first_task(&self, cpu: CpuId) -> bool {
        let of = self.of(cpu);
        of.curr == Curr::Idle && self.library.nr_running(cpu) as usize + of.wake_list.len() == 1
    }
    fn hide_queued(&mut self, cpu: CpuId, hidden: bool) {
        self.library.hide_queued(cpu, hidden);
        self.rules.rqs[cpu].hides_queued = hidden;
    }
    fn overload(&self, cpu: CpuId) -> bool {
        self.library.overload(cpu)
    }
    fn set_overload(&mut self, cpu: CpuId, on: bool) {
        self.library.set_overload(cpu, on);
        self.rules.domains.overload = on;
    }
    fn set_freq_scale(&mut self, cpu: CpuId, scale: u64) {
        self.library.set_freq_scale(cpu, scale);
        self.beside(|rules| rules.set_freq_scale(cpu, scale));
    }
    fn cpus_share_cache(&self, a: CpuId, b: CpuId) -> bool {
        self.rules.cpus_share_cache(a, b)
    }

    #[inline]
    fn task(&self, task: TaskId) -> &Task {
        &self.tasks[task.index()]
    }
    fn runtime(&self, task: TaskId) -> [u64; 2] {
        let read = self.library.read(number(task));
        [read.sum_exec_runtime, read.vruntime]
    }
    fn is_cpu_allowed(&self, task: TaskId, cpu: CpuId) -> bool {
        self.of(cpu).online && self.tasks[task.index()].allowed.contains(cpu)
    }
    fn new_task(&mut self, spec: &NewTask, parent: Option<TaskId>, now: Time) -> TaskId {
        self.at(now);
        let task = self.rules.new_task(spec, parent.filter(|_| self.follows), now);
        self.rules.effects.clear();
        let mut entry = self.rules.task(task).clone();
        if spec.policy == Policy::Stop {
            let cpu = spec.allowed.first().expect("a stopper has its CPU");
            self.library.stopper_task(cpu);
            self.of_mut(cpu).stopper = Some(task);
            entry.cpu = cpu;
            self.tasks.push(entry);
            return task;
        }
        let cpu = parent.map_or(entry.cpu, |parent| self.tasks[parent.index()].cpu);
        self.library.fork_of(cpu, spec.kthread, parent.map(number), group(spec.tg));
        self.join_process(task, spec.process);
        entry.cpu = cpu;
        self.tasks.push(entry);
        // Attributes that it does not inherit from its parent, or from task 1.
        let inherits = parent.map(|parent| &self.tasks[parent.index()]);
        let (policy, nice) = inherits.map_or((Policy::Normal, 0), |p| (p.policy, p.nice));
        let mask = inherits.map(|parent| parent.allowed.clone());
        let differs = (policy, nice) != (spec.policy, spec.nice) || spec.slice.is_some();
        if differs && !matches!(spec.policy, Policy::Deadline { .. }) {
            self.library.forget_average(number(task));
            self.attributes(task, spec.policy, spec.nice, spec.slice.unwrap_or(0));
            self.library.begin_average(number(task));
        }
        let all = spec.allowed.weight() == self.cpus.len();
        if mask.map_or(!all, |mask| mask != spec.allowed) {
            // The kernel refuses a mask without an active CPU; the task then keeps its mask.
            _ = self.library.affinity_of(cpu, number(task), &spec.allowed);
        }
        self.bound(task);
        self.told(cpu, MigrationCause::Fork, Call::Other);
        task
    }
    fn set_state(&mut self, task: TaskId, state: TaskState) {
        self.rules.set_state(task, state);
        self.tasks[task.index()].state = state;
        if self.tasks[task.index()].policy != Policy::Stop && state == TaskState::Interruptible {
            self.library.sleeps(number(task));
        }
    }
    fn set_exiting(&mut self, task: TaskId) {
        self.rules.task_mut(task).exiting = true;
        self.library.exiting(number(task));
        self.tasks[task.index()].exiting = true;
    }
    fn set_never_restricted(&mut self, task: TaskId) {
        self.rules.task_mut(task).never_restricted = true;
        self.tasks[task.index()].never_restricted = true;
    }
    fn set_recent_used_cpu(&mut self, task: TaskId, cpu: CpuId) {
        self.library.set_recent_used_cpu(number(task), cpu);
        self.beside(|rules| rules.set_recent_used_cpu(task, cpu));
    }
    fn set_wakee_flips(&mut self, task: TaskId, count: u32, halved: Time) {
        self.beside(|rules| rules.set_wakee_flips(task, count, halved));
    }
    fn set_uclamp(&mut self, task: TaskId, min: Option<u32>, max: Option<u32>) {
        self.beside(|rules| rules.set_uclamp(task, min, max));
    }
    fn set_lag(&mut self, task: TaskId, owed: Duration) {
        self.beside(|rules| rules.set_lag(task, owed));
    }
    fn set_averages(&mut self, task: TaskId, running: u16, runnable: u16, now: Time) {
        self.beside(|rules| rules.set_averages(task, running, runnable, now));
    }
    fn set_policy(&mut self, by: CpuId, task: TaskId, policy: Policy, now: Time) {
        self.at(now);
        self.beside(|rules| rules.set_policy(by, task, policy, now));
        self.tasks[task.index()].policy = policy;
        let nice = self.tasks[task.index()].nice;
        self.attributes(task, policy, nice, 0);
    }
    fn set_nice(&mut self, task: TaskId, nice: i8, now: Time) {
        self.at(now);
        self.beside(|rules| rules.set_nice(task, nice, now));
        let entry = &mut self.tasks[task.index()];
        entry.nice = nice;
        let cpu = entry.cpu;
        self.library.set_nice(cpu, number(task), nice);
        self.told(cpu, MigrationCause::Affinity, Call::Other);
    }
    fn set_slice(&mut self, task: TaskId, slice: Option<u64>, now: Time) {
        self.at(now);
        self.beside(|rules| rules.set_slice(task, slice, now));
        let Task { policy, nice, .. } = self.tasks[task.index()];
        self.attributes(task, policy, nice, slice.unwrap_or(0));
    }
    fn set_cpus_allowed(
        &mut self,
        by: CpuId,
        task: TaskId,
        allowed: Arc<CpuMask>,
        now: Time,
    ) -> Option<CpuId> {
        self.at(now);
        self.beside(|rules| rules.set_cpus_allowed(by, task, allowed.clone(), now));
        let waits = self.library.affinity_of(by, number(task), &allowed).unwrap_or(false);
        self.told(by, MigrationCause::Affinity, Call::AsksStopper);
        let to = allowed.iter().find(|&cpu| self.of(cpu).online);
        let entry = &mut self.tasks[task.index()];
        entry.nr_cpus_allowed = allowed.weight() as u32;
        entry.never_restricted = false;
        entry.allowed = allowed;
        self.sync(task);
        to.filter(|_| waits)
    }
    fn do_set_cpus_allowed(&mut self, task: TaskId, allowed: Arc<CpuMask>, now: Time) {
        self.at(now);
        self.beside(|rules| rules.do_set_cpus_allowed(task, allowed.clone(), now));
        let cpu = self.tasks[task.index()].cpu;
        _ = self.library.affinity_of(cpu, number(task), &allowed);
        self.told(cpu, MigrationCause::Affinity, Call::AsksStopper);
        let entry = &mut self.tasks[task.index()];
        entry.nr_cpus_allowed = allowed.weight() as u32;
        entry.allowed = allowed;
        self.bound(task);
        self.sync(task);
    }
    fn sync_load_avg(&mut self, task: TaskId) {
        self.beside(|rules| rules.sync_load_avg(task));
    }
    fn update_curr_of(&mut self, cpu: CpuId, task: TaskId, now: Time) {
        self.beside(|rules| rules.update_curr_of(cpu, task, now));
    }
    fn sched_cache_exec(&mut self, task: TaskId, process: u32, now: Time) {
        self.at(now);
        self.beside(|rules| rules.sched_cache_exec(task, process, now));
        self.join_process(task, process);
    }
    fn sched_autogroup_exit_task(&mut self, task: TaskId, now: Time) {
        // The library has no session groups: the task is moved to its current group, which has the same effect.
        self.beside(|rules| rules.sched_autogroup_exit_task(task, now));
        let tg = self.tasks[task.index()].tg;
        self.at(now);
        let cpu = self.tasks[task.index()].cpu;
        self.library.move_to_group(cpu, number(task), group(tg));
        self.told(cpu, MigrationCause::Push, Call::Other);
    }

    fn update_group_sums(&mut self) {
        self.beside(Sched::update_group_sums);
    }
    fn decide_fork(
        &mut self,
        task: TaskId,
        this: CpuId,
        now: Time,
        passed_over: PassedOver<'_>,
    ) -> Placement {
        self.at(now);
        let ours = self.beside(|rules| Sched::decide_fork(rules, task, this, now, passed_over));
        let cpu = self.wakes_new(this, task, None);
        self.placed(task, cpu, ours, now)
    }
    fn apply_fork(&mut self, task: TaskId, cpu: CpuId, now: Time) -> PreemptDecision {
        self.at(now);
        if self.library.read(number(task)).is_new {
            // It is placed without a decision.
            let by = self.tasks[task.index()].cpu;
            self.wakes_new(by, task, Some(cpu));
        }
        let ours = self.beside(|rules| rules.apply_fork(task, cpu, now));
        self.sync(task);
        self.preempted(cpu, ours)
    }
    fn decide_exec(&mut self, task: TaskId, now: Time, passed_over: PassedOver<'_>) -> Placement {
        self.at(now);
        let cpu = self.tasks[task.index()].cpu;
        let ours = self.beside(|rules| Scheduler::decide_exec(rules, task, now, passed_over));
        let waits = self.library.exec_of(cpu);
        self.told(cpu, MigrationCause::Exec, Call::AsksStopper);
        let to = if waits { self.told.selected.unwrap_or(cpu) } else { cpu };
        self.placed(task, to, ours, now)
    }
    fn decide_wakeup(&mut self, wakeup: &Wakeup, now: Time, passed_over: PassedOver<'_>) -> WakeupDecision {
        let &Wakeup { task, this_cpu, sync, in_task, .. } = wakeup;
        self.at(now);
        let ours = self.beside(|rules| Sched::decide_wakeup(rules, wakeup, now, passed_over));
        let before = self.library.read(number(task));
        self.measures();
        let pending = self.has_wake_list(self.tasks[task.index()].cpu);
        let woken = self.library.wake_of(this_cpu, number(task), sync, !in_task, pending);
        self.told(this_cpu, MigrationCause::Wakeup, Call::Wakes);
        let after = self.library.read(number(task));
        let path = match woken {
            _ if self.of(this_cpu).curr == Curr::Task(task) => WakePath::SelfWake,
            None => WakePath::StillQueued,
            _ if before.on_rq && before.sched_delayed && self.told.selected.is_none() => {
                WakePath::StillDelayed
            }
            _ if before.on_rq && !before.sched_delayed => WakePath::StillQueued,
            _ if before.on_cpu && after.waking && self.told.selected.is_none() => WakePath::OnCpuHandover,
            _ => WakePath::Select,
        };
        if woken.is_some() && after.waking {
            self.of_mut(after.cpu).wake_list.push(task);
        }
        if let Some(ours) = &ours
            && ours.path != path
            && !(is_new_place(ours.path) && is_new_place(path))
        {
            let name = |path: WakePath| format!("{path:?}");
            self.lost(now, || {
                let (theirs, ours) = (name(path), name(ours.path));
                format!(
                    "waking a task from CPU {this_cpu}, the tree goes by {theirs} and our rules by {ours}"
                )
            });
        }
        let ours = ours.filter(|_| self.follows).and_then(|ours| ours.placement);
        let placement = (path == WakePath::Select).then(|| self.placed(task, after.cpu, ours, now));
        WakeupDecision { path, placement, cpu: after.cpu, remote: after.waking }
    }
    fn apply_wakeup(
        &mut self,
        wakeup: &Wakeup,
        decision: &WakeupDecision,
        now: Time,
    ) -> Option<PreemptDecision> {
        let ours = self.beside(|rules| rules.apply_wakeup(wakeup, decision, now)).flatten();
        self.sync(wakeup.task);
        (!decision.remote && decision.path == WakePath::Select).then(|| self.preempted(decision.cpu, ours))
    }
    fn task_woken(&mut self, by: CpuId, task: TaskId, now: Time) {
        self.beside(|rules| rules.task_woken(by, task, now));
    }
    fn wake_list_in_turn(&mut self, cpu: CpuId, now: Time) -> Vec<TaskId> {
        self.at(now);
        let woken = std::mem::take(&mut self.of_mut(cpu).wake_list);
        for &task in &woken {
            if self.tasks[task.index()].on_cpu {
                // This CPU has switched away from it, or it would not be here.
                self.finish_task_switch(task);
            }
        }
        self.library.ipi(cpu);
        self.told(cpu, MigrationCause::Push, Call::Other);
        if self.library.pending(cpu).softirq() {
            // The same interrupt requested nohz balancing.
            self.effects.push(Effect::NohzKick { cpu });
        }
        for &task in &woken {
            self.sync(task);
        }
        woken
    }
    fn drain_one(&mut self, task: TaskId, now: Time) -> PreemptDecision {
        let ours = self.beside(|rules| rules.drain_one(task, now));
        self.preempted(self.tasks[task.index()].cpu, ours)
    }

    fn schedule(&mut self, cpu: CpuId, how: Deactivate, stall: Option<(u64, u64)>, now: Time) -> Switched {
        self.at(now);
        let prev = self.of(cpu).curr;
        let before = self.effects.len();
        let ours = self.pass_beside(|rules| <Sched as Scheduler>::schedule(rules, cpu, how, stall, now));
        let (ours, moved) = ours.unzip();
        let leaves = match how {
            Deactivate::Preempted => How::Preempted,
            Deactivate::Yielded => How::Yielded,
            Deactivate::Sleep(TaskState::Uninterruptible) => How::SleepsDeep,
            Deactivate::Sleep(_) => How::Sleeps,
            Deactivate::Exit => How::Exits,
        };
        if matches!(how, Deactivate::Sleep(_)) && prev.task().is_some() && prev.task() == self.of(cpu).stopper
        {
            self.rest_of_stopper(cpu);
        }
        self.measures();
        let pending = self.has_wake_list(cpu);
        let delayed = self.library.schedule(cpu, leaves, pending);
        self.of_mut(cpu).asked = NeedResched::default();
        let next = self.next_for_engine(cpu);
        self.of_mut(cpu).curr = next;
        self.told(cpu, MigrationCause::NewlyIdle, Call::Schedules);
        self.moved_as(cpu, before, moved, now);
        if let Curr::Task(task) = prev {
            let entry = &mut self.tasks[task.index()];
            match how {
                Deactivate::Sleep(state) => entry.state = state,
                Deactivate::Exit => entry.state = TaskState::Dead,
                _ => {}
            }
            self.sync(task);
        }
        if let Curr::Task(task) = next {
            self.sync(task);
        }
        let ours = ours.filter(|_| self.follows).map(|ours| (ours.next, ours.reason));
        let reason = self.picked(cpu, next, ours, now);
        let voluntary = matches!(how, Deactivate::Sleep(_) | Deactivate::Exit) && prev != next;
        Switched { prev, next, reason, voluntary, preempted: how == Deactivate::Preempted, delayed }
    }
    fn finish_task_switch(&mut self, prev: TaskId) {
        self.beside(|rules| rules.finish_task_switch(prev));
        self.library.left(number(prev));
        self.tasks[prev.index()].on_cpu = false;
    }
    fn balance_callbacks(&mut self, cpu: CpuId, now: Time) {
        self.beside(|rules| rules.balance_callbacks(cpu, now));
    }
    fn yield_task(&mut self, cpu: CpuId, now: Time) {
        self.at(now);
        self.beside(|rules| rules.yield_task(cpu, now));
        self.library.yields(cpu);
        self.told(cpu, MigrationCause::Push, Call::Other);
    }
    fn has_task_work(&self) -> bool {
        self.bandwidth_used || self.processes.is_some()
    }
    fn exit_to_user(&mut self, task: TaskId, now: Time) -> bool {
        self.at(now);
        self.beside(|rules| rules.exit_to_user(task, now));
        let cpu = self.tasks[task.index()].cpu;
        let leaves = self.library.exit_to_user(cpu);
        self.told(cpu, MigrationCause::Push, Call::Other);
        leaves
    }

    fn tick(&mut self, cpu: CpuId, now: Time) -> Ticked {
        self.at(now);
        self.beside(|rules| rules.tick(cpu, now));
        self.library.tick(cpu);
        self.told(cpu, MigrationCause::Periodic, Call::Other);
        Ticked { raise_balance: self.library.pending(cpu).softirq(), nohz_kick: None }
    }
    fn hrtick_at(&self, _cpu: CpuId) -> Option<u64> {
        None
    }
    fn hrtick(&mut self, _cpu: CpuId, _now: Time) {}
    fn steal(&mut self, cpu: CpuId, ns: u64, now: Time) {
        self.beside(|rules| rules.steal(cpu, ns, now));
    }
    fn stops_tick(&self, expected_ns: Option<u64>, timer_ns: u64) -> bool {
        self.rules.stops_tick(expected_ns, timer_ns)
    }
    fn nohz_balance_enter_idle(&mut self, cpu: CpuId) {
        self.beside(|rules| rules.nohz_balance_enter_idle(cpu));
        self.library.nohz_enter(cpu);
        self.told(cpu, MigrationCause::Nohz, Call::Other);
    }
    fn nohz_kicked(&mut self, cpu: CpuId, now: Time) -> bool {
        self.at(now);
        self.beside(|rules| Sched::nohz_kicked(rules, cpu));
        if self.library.pending(cpu).ipi() {
            self.library.ipi(cpu);
            self.told(cpu, MigrationCause::Push, Call::Other);
        }
        self.library.pending(cpu).softirq()
    }
    fn run_rebalance_domains(&mut self, cpu: CpuId, now: Time) {
        self.at(now);
        let before = self.effects.len();
        let ours = self.pass_beside(|rules| rules.run_rebalance_domains(cpu, now));
        let cause =
            if self.of(cpu).curr == Curr::Idle { MigrationCause::Nohz } else { MigrationCause::Periodic };
        self.measures();
        self.library.balance(cpu);
        self.told(cpu, cause, Call::Other);
        self.moved_as(cpu, before, ours.map(|(_, moved)| moved), now);
        // If no domain was due, nothing was examined.
        let (examined, moved) = (self.told.scanned, self.told.moved);
        if examined > 0 {
            self.effects.push(Effect::Balanced { cpu, examined, moved });
        }
    }
    fn active_balance(&mut self, cpu: CpuId, to: CpuId, now: Time) {
        self.at(now);
        let before = self.effects.len();
        let ours = self.pass_beside(|rules| Sched::active_balance(rules, cpu, to, now));
        self.library.stopper_works(cpu);
        self.told(cpu, MigrationCause::Active, Call::Other);
        self.moved_as(cpu, before, ours.map(|(_, moved)| moved), now);
    }
    fn stopper_moves(&mut self, cpu: CpuId, task: TaskId, to: CpuId, cause: MigrationCause, now: Time) {
        self.at(now);
        self.beside(|rules| rules.stopper_moves(cpu, task, to, cause, now));
        self.library.stopper_works(cpu);
        self.told(cpu, cause, Call::Other);
        self.sync(task);
    }

    fn new_group(&mut self, parent: TgId, shares: u64, creator: CpuId, now: Time) -> TgId {
        self.at(now);
        let tg = self.rules.new_group(parent, shares, creator, now);
        self.rules.effects.clear();
        let made = self.library.new_group(group(parent), shares >> 10);
        self.groups += 1;
        debug_assert_eq!((group(tg), made.0 + 1), (Some(made), self.groups), "both number groups alike");
        tg
    }
    fn set_shares(&mut self, tg: TgId, shares: u64, now: Time) {
        self.at(now);
        self.beside(|rules| rules.set_shares(tg, shares, now));
        if let Some(group) = group(tg) {
            self.library.set_shares(group, shares >> 10);
        }
    }
    fn set_idle_group(&mut self, tg: TgId, idle: bool, now: Time) {
        self.beside(|rules| rules.set_idle_group(tg, idle, now));
        if let Some(group) = group(tg) {
            self.library.set_idle_group(group, idle);
        }
    }
    fn set_group_uclamp(&mut self, tg: TgId, min: Option<u32>, max: Option<u32>) {
        self.beside(|rules| rules.set_group_uclamp(tg, min, max));
    }
    fn set_bandwidth(&mut self, tg: TgId, quota: Option<u64>, period: u64, burst: u64, now: Time) {
        self.at(now);
        self.beside(|rules| rules.set_bandwidth(tg, quota, period, burst, now));
        self.bandwidth_used |= quota.is_some();
        if let Some(group) = group(tg) {
            let done = self.library.set_quota(group, period / 1000, quota.map(|quota| quota / 1000));
            done.unwrap_or_else(|error| {
                let quota = quota.map_or("none".into(), |quota| format!("{quota} ns"));
                end_run(format!(
                    "the kernel refuses a quota of {quota} in a period of {period} ns: error {error}"
                ))
            });
        }
    }
    fn move_task_to_group(&mut self, task: TaskId, tg: TgId, now: Time) {
        self.at(now);
        self.beside(|rules| rules.move_task_to_group(task, tg, now));
        let cpu = self.tasks[task.index()].cpu;
        self.library.move_to_group(cpu, number(task), group(tg));
        self.tasks[task.index()].tg = tg;
        self.told(cpu, MigrationCause::Push, Call::Other);
    }
    fn home_node(&self, tg: TgId) -> u16 {
        self.rules.tg(tg).home_node
    }
    fn nr_atomics(&self) -> usize {
        schedlab_kernel_tree::ATOMICS
    }
    fn nr_load_avgs(&self) -> usize {
        self.rules.tg(TgId::ROOT).load_avg.len()
    }
    fn timer_was_set(&mut self, tg: TgId, cpu: CpuId, now: Time) -> Option<Time> {
        assert!(tg == TIMERS, "the library's timers are its own");
        self.next_timer(cpu, now)
    }
    fn period_timer(&mut self, _tg: TgId, cpu: CpuId, now: Time) -> Option<Time> {
        self.timer(cpu, now)
    }
    fn slack_timer(&mut self, _tg: TgId, _cpu: CpuId, _now: Time) {}
    fn cfsb_csd_unthrottle(&mut self, _cpu: CpuId, _now: Time) {}
    fn rt_period_timer(&mut self, _now: Time) -> Option<Time> {
        None
    }
    fn rto_push_irq_work(&mut self, _cpu: CpuId, _now: Time) {}
    fn dl_timer(&mut self, _by: CpuId, _task: TaskId, _now: Time) {}
    fn dl_inactive_timer(&mut self, _task: TaskId, _now: Time) {}
    fn dl_inactive_due(&self, _task: TaskId, _now: Time) -> bool {
        false
    }

    fn cpu_starting(&mut self, cpu: CpuId, now: Time) {
        self.starts(cpu, now);
    }
    fn set_offline(&mut self, cpu: CpuId, now: Time) {
        self.goes_offline(cpu, now);
    }
    fn set_active(&mut self, cpu: CpuId, active: bool, now: Time) {
        self.opens(cpu, active, now);
    }
    fn detach_domains(&mut self) {
        end_run("the domains cannot be detached: a kernel tree builds them itself".into());
    }

    fn has_been_up(&mut self, now: Time, draw: impl FnMut() -> u64) {
        self.at(now);
        self.rules.has_been_up(now, draw);
    }
    fn was_balanced(&mut self, at: Time, lately: Lately, draw: impl FnMut() -> u64) {
        self.rules.was_balanced(at, lately, draw);
        self.bring_past();
    }
    fn balance_period(&self, sd: SdId, busy: bool) -> Duration {
        self.rules.balance_period(sd, busy)
    }
    fn set_newidle_cost(&mut self, ns: u64) {
        self.rules.set_newidle_cost(ns);
    }
    fn bound_scans(&mut self, cpu: CpuId, sum_util: u64) {
        // The tree's own limit is set by its own passes.
        self.rules.bound_scans(cpu, sum_util);
    }
    fn has_learned(&mut self, experience: &Experience) {
        self.rules.has_learned(experience);
    }
    fn balances_at(&mut self, cpu: CpuId, from: CpuId, pass: Time) {
        self.beside(|rules| rules.balances_at(cpu, from, pass));
    }
}
