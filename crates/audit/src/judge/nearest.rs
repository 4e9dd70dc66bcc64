//! What would have had to be different for our rules to lead to the kernel's choice, by kind of decision.
//!
//! The facts themselves name their values beyond their bounds; here is what each decision is asked with.

use std::cell::Cell;
use std::rc::Rc;

use schedlab_sched::{Curr, FairPolicy, Feature, SeId, wf};
use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use crate::judge::Audit;
use crate::judge::balance::ask_pass;
use crate::judge::balance::pass::{Asked, Moved, choice, may_move};
use crate::judge::exec;
use crate::judge::fork::possible::{Forked, if_possible};
use crate::judge::spare::Spare;
use crate::judge::wakeup::open::Open;
use crate::judge::wakeup::possible::of_wakeup;
use crate::report::listener::Listener;
use crate::report::verdict::{Answer, Possible, Verdict};
use crate::unknown::Shadow;
use crate::unknown::beyond::{self, Case, Of};
use crate::unknown::list::candidates;
use crate::unknown::otherwise::Nearest;
use crate::unknown::virtual_time;

impl<S: Listener> Audit<S> {
    /// What `ask` finds to be the nearest fact of a verdict, if the verdict differs and its story will be printed.
    pub(crate) fn why(
        &mut self,
        verdict: &Verdict,
        ask: impl FnOnce(&mut Self) -> Option<Nearest>,
    ) -> Option<Box<Nearest>> {
        if !self.asks_nearest(verdict) {
            return None;
        }
        (self.shadow.learned.supposing, self.shadow.learned.trusts) = (true, false);
        let nearest = ask(self);
        (self.shadow.learned.supposing, self.shadow.learned.trusts) = (false, true);
        nearest.map(Box::new)
    }

    /// Whether to look for the nearest fact: the verdict differs, and its story will be printed.
    fn asks_nearest(&self, verdict: &Verdict) -> bool {
        verdict.answer == Answer::Differs
            && self.hangs_on(verdict).is_none()
            && (self.options.nearest || {
                let gravity = self.gravity(verdict);
                self.report.would_tell(verdict, gravity, self.options.stories)
            })
    }

    /// A decision for a CPU about a task; the states and queues of some CPUs may have been others.
    fn case(
        &self,
        now: Time,
        this: CpuId,
        task: TaskId,
        [states, queues]: [Vec<CpuId>; 2],
        of: Of,
    ) -> Case<'_> {
        Case { shadow: &self.shadow, pairing: &self.pairing, now, this, task, states, queues, of }
    }

    /// The nearest fact that leads a wake-up to the kernel's choice, in the current state.
    pub(crate) fn nearest_of_wakeup(&mut self, open: &Open, now: Time) -> Option<Nearest> {
        let (wakeup, fate, shadow) = (open.wakeup, open.fate, &self.shadow);
        let (this, prev) = (wakeup.this_cpu, shadow.sched.task(wakeup.task).wake_cpu);
        let ends = [this, prev, fate.cpu];
        let near = |cpu: &CpuId| ends.iter().any(|&end| shadow.sched.cpus_share_cache(end, *cpu));
        let around = [shadow.cpus().filter(near).collect(), vec![this, prev]];
        let values = candidates(&self.case(now, this, wakeup.task, around, Of::Wakeup { wakeup, fate }));
        let spare = &mut self.spare;
        beyond::nearest(&mut self.shadow, values, &mut |shadow| {
            let found = of_wakeup(shadow, spare, &wakeup, now);
            let leads = found.has(fate.cpu);
            spare.give_back_all(found);
            leads
        })
    }

    /// The nearest fact that leads a fork to the kernel's choice instead of ours.
    pub(crate) fn nearest_of_fork(&mut self, fork: Forked, ours: &[Possible]) -> Option<Nearest> {
        self.nearest_of_new_place(fork, ours, |shadow, spare| {
            let found = if_possible(shadow, spare, fork);
            found.map(|found| spare.give_back_all(found)).is_some()
        })
    }

    /// The nearest fact that leads an exec to the kernel's choice instead of ours.
    pub(crate) fn nearest_of_exec(
        &mut self,
        task: TaskId,
        chosen: CpuId,
        now: Time,
        ours: &[Possible],
    ) -> Option<Nearest> {
        let exec = Forked { task, this: self.shadow.sched.task(task).cpu, chosen, now };
        self.nearest_of_new_place(exec, ours, |shadow, spare| {
            let found = exec::of_exec(shadow, task, chosen, now);
            let leads = found.has(chosen);
            spare.give_back_all(found);
            leads
        })
    }

    fn nearest_of_new_place(
        &mut self,
        placed: Forked,
        ours: &[Possible],
        leads: impl Fn(&mut Shadow, &mut Spare) -> bool,
    ) -> Option<Nearest> {
        let Forked { task, this, chosen, now } = placed;
        let all: Vec<CpuId> = self.shadow.cpus().collect();
        let ours = ours.iter().filter_map(|ours| ours.choice.cpu()).collect();
        let values =
            candidates(&self.case(now, this, task, [all.clone(), all], Of::Placement { chosen, ours }));
        let spare = &mut self.spare;
        beyond::nearest(&mut self.shadow, values, &mut |shadow| leads(shadow, spare))
    }

    /// The nearest fact by which a pass makes the recorded move.
    pub(crate) fn nearest_of_move(&mut self, moved: Moved, asked: Asked, now: Time) -> Option<Nearest> {
        let (Moved { task, from, .. }, by) = (moved, asked.by);
        let common = self.shadow.sched.domains.walk(by).find(|(_, sd)| sd.span.contains(from));
        let cpus: Vec<CpuId> = common.map_or_else(Vec::new, |(_, sd)| sd.span.iter().collect());
        let idle = Rc::new(Cell::new(asked.idle));
        let of = Of::Move { from, idle: idle.clone() };
        let values = candidates(&self.case(now, by, task, [cpus.clone(), cpus], of));
        let wanted = choice(&self.shadow, moved);
        beyond::nearest(&mut self.shadow, values, &mut |shadow| {
            let asked = Asked { idle: idle.get(), ..asked };
            may_move(shadow, asked, moved)
                && ask_pass(shadow, moved, asked, now).iter().any(|possible| possible.choice == wanted)
        })
    }

    /// The nearest fact by which `chosen` comes before `ours`, as in the kernel's pick.
    pub(crate) fn nearest_of_pick(
        &mut self,
        cpu: CpuId,
        ours: Curr,
        chosen: Curr,
        now: Time,
    ) -> Option<Nearest> {
        let (Curr::Task(ours), Curr::Task(chosen)) = (ours, chosen) else { return None };
        let sched = &self.shadow.sched;
        let waits = |task| sched.task(task).on_rq && sched.task(task).cpu == cpu;
        let fair = |task| sched.task(task).policy.is_fair();
        if ours == chosen || ![ours, chosen].into_iter().all(|task| waits(task) && fair(task)) {
            return None;
        }
        self.nearest_of_order(cpu, [ours, chosen], now, |shadow, two| {
            let sched = &shadow.sched;
            let cfs = sched.cfs_rq_of(two);
            let curr = sched.cfs(cfs).curr.filter(|&curr| sched.se(curr).on_rq);
            let (picked, _) = match sched.kernel.rules.policy {
                FairPolicy::Cfs => sched.pick_cfs(cfs, curr),
                FairPolicy::Eevdf => sched.pick_eevdf_next(cfs),
            };
            picked == two
        })
    }

    /// The nearest fact by which an arriving task preempts the running one, or does not.
    pub(crate) fn nearest_of_answer(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        asked: bool,
        now: Time,
    ) -> Option<Nearest> {
        let Curr::Task(curr) = self.shadow.sched.rqs[cpu].curr else { return None };
        let entry = self.shadow.sched.task(task);
        if curr == task || !entry.on_rq || entry.cpu != cpu {
            return None;
        }
        let flags = [wf::TTWU, wf::TTWU | wf::SYNC];
        let several = self.shadow.sched.kernel.has(Feature::NextBuddy);
        let flags = if several { &flags[..] } else { &flags[..1] };
        let pending = std::mem::take(&mut self.shadow.sched.rqs[cpu].need_resched);
        let found = self.nearest_of_order(cpu, [curr, task], now, |shadow, _| {
            flags.iter().any(|&flags| shadow.sched.check_preempt(cpu, task, flags).preempt == asked)
        });
        self.shadow.sched.rqs[cpu].need_resched = pending;
        found
    }

    /// The nearest fact by which our rules agree about the order of two tasks on a CPU. `agrees` gets the entity of the
    /// second in the queue that both share.
    fn nearest_of_order(
        &mut self,
        cpu: CpuId,
        [one, two]: [TaskId; 2],
        now: Time,
        agrees: impl Fn(&Shadow, SeId) -> bool,
    ) -> Option<Nearest> {
        let (first, second) = self.shadow.sched.find_matching_se(SeId(one.0), SeId(two.0));
        let order = (self.shadow.sched.cfs_rq_of(first), [first, second]);
        let of = Of::Order { cfs: order.0, two: order.1 };
        let values = candidates(&self.case(now, cpu, two, Default::default(), of));
        virtual_time::nearest(&mut self.shadow, &values, order, &mut |shadow| agrees(shadow, second))
    }
}
