//! Tasks as the recording names them: their first events, births, names and priorities.

use std::sync::Arc;

use schedlab_sched::{AnyCpu, NewTask, Policy, SeId, TaskState};
use schedlab_topology::{CpuId, CpuMask};
use schedlab_trace::{Comm, Event, bound_kthread, is_disproved};
use schedlab_units::{Pid, TaskId, Time};

use crate::follow::charged::Charged;
use crate::follow::pairing::LaterPrio;
use crate::follow::shadow::{Known, Shadow};
use crate::follow::watch::Watch;
use schedlab_recording::PolicyKind;

/// The policy assumed for a deadline task: no event shows its budget, so it never runs out here.
const DEADLINE: Policy = Policy::Deadline { runtime: 1 << 40, deadline: 1 << 40, period: 1 << 40 };

/// The priority of nice 0.
const USUAL_PRIO: i32 = 120;

/// The parent of all kernel threads.
const KTHREADD: Pid = Pid(2);

/// The policy for a priority as traces print it, given the task's name; `None` in a damaged line.
fn policy_of(kind: PolicyKind, comm: &Comm, prio: i32) -> Option<Policy> {
    match prio {
        0 if comm.as_bytes().starts_with(b"migration/") => Some(Policy::Stop),
        -1 => Some(DEADLINE),
        ..-1 | 140.. => None,
        _ => Some(kind.policy(prio)),
    }
}

/// The nice value of a priority as traces print it: 120 is nice 0, below 100 is real time.
fn nice_of(prio: i32) -> Option<i8> {
    (100..140).contains(&prio).then(|| (prio - USUAL_PRIO) as i8)
}

impl<W: Watch> Shadow<W> {
    /// The task of an event. It is created at its first event, asleep on `cpu` until then.
    #[inline]
    pub fn task(&mut self, pid: Pid, comm: &Comm, prio: Option<i32>, cpu: CpuId, now: Time) -> TaskId {
        if let Some(task) = self.find(pid) {
            let known = self.known(task);
            if known.comm == *comm && (prio.is_none() || known.prio == prio) {
                return task;
            }
        }
        self.task_anew(pid, comm, prio, cpu, now)
    }

    /// The same for a task that is new, or has another name or priority.
    fn task_anew(&mut self, pid: Pid, comm: &Comm, prio: Option<i32>, cpu: CpuId, now: Time) -> TaskId {
        let task = match self.find(pid) {
            Some(task) => task,
            None => self.meet(pid, comm, cpu, now),
        };
        self.rename(task, comm);
        if let Some(prio) = prio
            && self.known(task).prio != Some(prio)
        {
            let (had, before) = (self.known(task).prio.is_some(), self.sched.task(task).se.load);
            self.set_prio(task, prio, now);
            if had {
                self.weight_was_changed(task, before, now);
            }
        }
        task
    }

    /// The task that an event reports as new. If its fork was not seen it is created here: its waker has just forked
    /// it, and it has its parent's name.
    pub fn new_task(&mut self, event: &Event, pid: Pid, comm: &Comm, prio: i32) -> TaskId {
        let (cpu, now) = (event.cpu, event.time);
        if !self.find(pid).is_some_and(|task| self.sched.task(task).state == TaskState::New) {
            let parent = self.sched.rqs[cpu].curr.task();
            match parent.filter(|&parent| self.known(parent).comm == *comm) {
                Some(parent) => _ = self.fork(parent, pid, comm, Some(prio), now),
                None => self.born_of_none(pid, comm, prio, cpu, now),
            }
        }
        self.task(pid, comm, Some(prio), cpu, now)
    }

    fn born_of_none(&mut self, pid: Pid, comm: &Comm, prio: i32, cpu: CpuId, now: Time) {
        self.ended_unseen(pid, now);
        let task = self.make(pid, comm, None, Some(prio), now);
        self.sched.set_cpu(task, cpu);
        let known = self.known_mut(task);
        (known.lived_before, known.first_run) = (false, true);
        (known.recent_known, known.lag_known) = (true, true);
    }

    /// A task that existed before the recording began.
    fn meet(&mut self, pid: Pid, comm: &Comm, cpu: CpuId, now: Time) -> TaskId {
        let task = self.make(pid, comm, None, None, now);
        self.sched.set_cpu(task, cpu);
        let queue = self.sched.cfs_rq_of(SeId(task.0));
        let floor = self.sched.cfs(queue).min_vruntime;
        let entry = self.sched.task_mut(task);
        // It has slept for long, so its averages and any lag have decayed.
        entry.se.avg = Default::default();
        entry.se.vruntime = floor.wrapping_sub(1 << 40);
        entry.state = TaskState::Interruptible;
        task
    }

    /// Creates a task with the priority that an event shows, or else its parent's or the listed one.
    fn make(
        &mut self,
        pid: Pid,
        comm: &Comm,
        parent: Option<TaskId>,
        prio: Option<i32>,
        now: Time,
    ) -> TaskId {
        let nr_cpus = self.sched.rqs.len();
        // A kernel thread is bound after its birth.
        let kthreadd = parent.is_some_and(|parent| self.known(parent).pid == KTHREADD);
        let told = self.told_masks.remove(&pid).map(|allowed| (allowed, false));
        let (allowed, bound, kthread) = match told.or_else(|| self.allowed(comm).filter(|_| !kthreadd)) {
            Some((allowed, kthread)) => (Arc::new(allowed), true, kthread),
            None => match parent {
                Some(parent) => (self.sched.task(parent).allowed.clone(), self.known(parent).bound, false),
                None => (Arc::new(CpuMask::all(nr_cpus)), false, false),
            },
        };
        let groups = self.groups_of(pid, comm, parent);
        let tg = self.tg_of(&groups, now);
        let kind = match parent {
            Some(parent) => self.known(parent).kind,
            None => self.policies.of(pid, comm),
        };
        let prio = prio.or_else(|| self.policies.prio(pid, comm).filter(|_| parent.is_none()));
        let shown = prio.and_then(|prio| policy_of(kind, comm, prio));
        let parents = parent.map(|parent| self.sched.task(parent));
        let spec = NewTask {
            policy: shown.or(parents.map(|parent| parent.policy)).unwrap_or(kind.policy(USUAL_PRIO)),
            nice: prio.and_then(nice_of).or(parents.map(|parent| parent.nice)).unwrap_or(0),
            allowed,
            tg,
            kthread,
            process: if kthreadd { pid.0 as u32 } else { groups.process() },
            slice: None,
        };
        let place = self.dead.place(now).filter(|&place| self.sched.task(place).is_gone());
        let known = Known {
            pid,
            comm: *comm,
            prio: None,
            kind,
            bound,
            lived_before: parent.is_none(),
            recent_known: parent.is_some(),
            newborn: kthreadd,
            first_run: parent.is_some(),
            later_prio: None,
            nice_told: false,
            other_prio: false,
            vruntime_error: 0,
            lag_error: 0,
            by_floor: false,
            told_on: None,
            lag_known: parent.is_some(),
            began: now,
            left: Time::ZERO,
            charged: Charged::default(),
            handed_over: false,
            plainly_woken: false,
            may_stay: None,
            beside_sleeper: false,
            seen_on: CpuMask::new(nr_cpus),
            groups,
            learned: W::OfTask::default(),
        };
        let task = match place {
            Some(place) => {
                self.sched.new_task_in(place, &spec, parent, now);
                let gone = std::mem::replace(&mut self.known[place.index()], known);
                self.tasks.forget(gone.pid, place);
                place
            }
            None => {
                self.known.push(known);
                self.sched.new_task(&spec, parent, now)
            }
        };
        self.tasks.insert(pid, task);
        task
    }

    /// The mask given for a name or implied by it, and whether it is a kernel thread's.
    fn allowed(&self, comm: &Comm) -> Option<(CpuMask, bool)> {
        let nr_cpus = self.sched.rqs.len();
        let cpu = bound_kthread(comm).filter(|cpu| cpu.index() < nr_cpus);
        let by_name = cpu.map(|cpu| CpuMask::of(nr_cpus, [cpu]));
        match self.hints.iter().find(|hint| hint.matches(comm)) {
            Some(hint) => Some((hint.allowed.clone(), by_name.as_ref() == Some(&hint.allowed))),
            None => by_name.map(|allowed| (allowed, true)),
        }
    }

    /// A task runs on a CPU that its name does not allow: it is no per-CPU kernel thread but an ordinary task.
    #[inline]
    pub(crate) fn runs_where_it_may(&mut self, task: TaskId, cpu: CpuId) {
        if self.sched.task(task).kthread && is_disproved(&self.known(task).comm, cpu) {
            self.bind_to(task, CpuMask::all(self.sched.rqs.len()), false);
            self.known_mut(task).bound = false;
            self.sched.task_mut(task).kthread = false;
        }
    }

    fn rename(&mut self, task: TaskId, comm: &Comm) {
        if comm.is_empty() || self.known(task).comm == *comm {
            return;
        }
        let known = self.known_mut(task);
        // The name decides what a priority of 0 means.
        (known.comm, known.prio) = (*comm, None);
        if !self.known(task).newborn {
            self.bind(task, comm);
        }
    }

    /// A task's first wake-up after its birth: by now a kernel thread is bound.
    pub fn grown(&mut self, task: TaskId) {
        if std::mem::take(&mut self.known_mut(task).newborn) {
            let comm = self.known(task).comm;
            self.bind(task, &comm);
        }
    }

    /// A simulated trace reports a mask that was set on CPU `by`; for a new task it does so before the birth. Setting a
    /// mask takes a turn of that CPU.
    pub fn told_mask(&mut self, pid: Pid, allowed: &CpuMask, by: CpuId) {
        let nr_cpus = self.sched.rqs.len();
        let allowed = CpuMask::of(nr_cpus, allowed.iter().filter(|cpu| cpu.index() < nr_cpus));
        match self.find(pid) {
            Some(task) => {
                self.any_cpu_known[by] &= self.sched.kernel.rules.any_cpu == AnyCpu::First;
                self.bind_to(task, allowed, false);
            }
            None => _ = self.told_masks.insert(pid, allowed),
        }
    }

    /// Sets the mask that a name implies.
    fn bind(&mut self, task: TaskId, comm: &Comm) {
        if let Some((allowed, kthread)) = self.allowed(comm) {
            self.bind_to(task, allowed, kthread);
        }
    }

    fn bind_to(&mut self, task: TaskId, allowed: CpuMask, kthread: bool) {
        self.known_mut(task).bound = true;
        let entry = self.sched.task_mut(task);
        entry.kthread |= kthread;
        if *entry.allowed != allowed {
            // The task is not moved here: the trace shows when it moves.
            entry.nr_cpus_allowed = allowed.weight() as u32;
            entry.allowed = Arc::new(allowed);
            self.sched.set_task_max_allowed_capacity(task);
        }
    }

    /// An event shows a task's priority.
    fn set_prio(&mut self, task: TaskId, prio: i32, now: Time) {
        let runs = self.runs(task);
        let known = self.known_mut(task);
        known.other_prio |= runs && known.prio.is_some();
        known.prio = Some(prio);
        let Some(policy) = policy_of(known.kind, &known.comm, prio) else { return };
        let entry = self.sched.task(task);
        if entry.policy != policy {
            // A task that goes to sleep is off its queue before it is off its CPU.
            if entry.on_rq || self.runs(task) {
                if policy == Policy::Stop {
                    self.stopper_left(self.sched.task(task).cpu, task, now);
                }
                self.sched.set_policy(self.sched.task(task).cpu, task, policy, now);
            } else {
                self.sched.task_mut(task).policy = policy;
            }
        }
        if let Some(nice) = nice_of(prio).filter(|&nice| nice != self.sched.task(task).nice) {
            self.sched.set_nice(task, nice, now);
            if self.runs(task) {
                self.pin(task);
            }
        }
    }

    /// The task changes its priority now, if a look ahead showed that it will.
    pub fn reprioritise(&mut self, task: TaskId, now: Time) {
        if let Some(LaterPrio { prio, .. }) =
            self.known_mut(task).later_prio.take_if(|later| !later.in_second_turn)
        {
            let before = self.sched.task(task).se.load;
            self.set_prio(task, prio, now);
            self.changed_weight(task, before, now);
        }
    }

    /// A new task leaves its CPU: it has set its priority, or will in its next turn.
    pub(crate) fn ends_turn(&mut self, task: TaskId, now: Time) {
        match &mut self.known_mut(task).later_prio {
            Some(later) if later.in_second_turn => later.in_second_turn = false,
            _ => self.reprioritise(task, now),
        }
    }

    /// Changes the priority of the tasks that a look ahead showed to do so about now.
    pub(crate) fn change_priorities(&mut self, now: Time) {
        if self.changing.is_empty() {
            return;
        }
        let mut changing = std::mem::take(&mut self.changing);
        changing.retain(|&task| {
            match self.changes_priority(task) {
                Some(at) if at <= now => self.reprioritise(task, at),
                Some(_) => return true,
                None => {}
            }
            false
        });
        self.changing = changing;
    }

    /// A task is born on its parent's CPU, with its parent's priority if no event shows its own; it waits to be woken.
    pub fn fork(&mut self, parent: TaskId, child: Pid, comm: &Comm, prio: Option<i32>, now: Time) -> TaskId {
        if self.known(parent).pid != KTHREADD {
            W::forks(self, parent, now);
        }
        self.ended_unseen(child, now);
        let task = self.make(child, comm, Some(parent), prio, now);
        W::born(self, task, parent);
        self.generation += 1;
        task
    }
}
