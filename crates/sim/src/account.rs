//! Where simulated time went.
//!
//! Kernel work is charged to its CPU part by part, where it is priced. The tasks' own work and the idle time are
//! counted separately, where time passes. So the three can be checked: they add up to the time of the run, except
//! for a kernel path that is unfinished at its end. Leaving an idle state counts as idle time.

use schedlab_machine::Work;
use schedlab_sched::Scheduler;
use schedlab_topology::CpuId;

use crate::cpu::Cpu;
use crate::engine::Engine;

macro_rules! parts {
    ($($(#[doc = $doc:literal])* $variant:ident = $name:literal,)*) => {
        /// A part of the time.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Part { $($(#[doc = $doc])* $variant,)* }

        impl Part {
            /// All of them, in order.
            pub const ALL: &'static [Part] = &[$(Part::$variant,)*];

            /// Its name in tables.
            pub fn name(self) -> &'static str {
                match self { $(Part::$variant => $name,)* }
            }
        }
    };
}

parts! {
    /// System calls and page faults, what they do and what they copy.
    Call = "calls and page faults",
    /// Waking tasks and queueing them, without the searches.
    Wakeup = "wake-ups",
    /// Searching for an idle CPU.
    Search = "searches",
    /// Balance passes.
    Pass = "balance passes",
    /// Cache lines in transfer from other caches.
    Lines = "lines from other caches",
    /// Waiting for lines and locks that other CPUs hold, also by a task that spins, and for a task to leave its CPU.
    Waiting = "waiting for lines and locks",
    /// Refilling caches after a migration or after other tasks ran.
    Refill = "refilling caches",
    /// Going to sleep and switching.
    Switch = "switches of tasks",
    /// Interrupts, ticks and notifying other CPUs.
    Irq = "interrupts",
    /// Leaving an idle state; the CPU counts as idle.
    IdleExit = "ways back from idle",
}

/// How long each part took, ns.
pub type Parts = [u64; Part::ALL.len()];

/// The account of each CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// By CPU.
    pub cpus: Vec<OfCpu>,
}

/// The account of one CPU, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfCpu {
    parts: Parts,
    /// Time in which a task made progress.
    worked: u64,
    /// How much of that is already in the parts.
    within: u64,
    /// Time without a task or a kernel path.
    idle: u64,
    /// How much of that was the end of a path.
    ended: u64,
}

impl OfCpu {
    /// How long a part took.
    pub fn part(&self, part: Part) -> u64 {
        self.parts[part as usize]
    }

    /// The tasks' own work.
    pub fn own_work(&self) -> u64 {
        self.worked.saturating_sub(self.within)
    }

    /// Time in which it ran neither a task nor the kernel, exits from idle states included.
    pub fn idle(&self) -> u64 {
        self.idle.saturating_sub(self.ended)
    }

    /// Time in which it was not idle: its tasks' own work, and all parts but the exit from idle.
    pub fn busy(&self) -> u64 {
        self.own_work() + self.parts.iter().sum::<u64>() - self.part(Part::IdleExit)
    }

    /// Charged by the kernel.
    #[inline]
    pub(crate) fn charge(&mut self, part: Part, ns: u64) {
        self.parts[part as usize] += ns;
    }

    /// The same for kernel work that counts as a task's work.
    #[inline]
    pub(crate) fn charge_within(&mut self, part: Part, ns: u64) {
        self.charge(part, ns);
        self.within += ns;
    }

    /// Time passed, with a task at work or with none.
    #[inline]
    pub(crate) fn passed(&mut self, ns: u64, works: bool) {
        *if works { &mut self.worked } else { &mut self.idle } += ns;
    }

    /// It is idle from now on, except for the end of a path.
    #[inline]
    pub(crate) fn path_ends(&mut self, ns: u64) {
        self.ended += ns;
    }

    /// The end of a path that was charged is skipped.
    pub(crate) fn left_out(&mut self, part: Part, ns: u64) {
        let ns = ns.min(self.parts[part as usize]);
        self.parts[part as usize] -= ns;
        self.ended -= ns.min(self.ended);
    }

    /// What was added since `begun`.
    ///
    /// A path is charged where it starts, and what is skipped of it is subtracted later, so a part can be smaller
    /// after the cut than at the cut: it then counts as zero.
    fn since(&self, begun: &OfCpu) -> OfCpu {
        let mut parts = self.parts;
        for (part, before) in parts.iter_mut().zip(begun.parts) {
            *part = part.saturating_sub(before);
        }
        OfCpu {
            parts,
            worked: (self.worked + begun.within).saturating_sub(begun.worked + self.within),
            within: 0,
            idle: (self.idle + begun.ended).saturating_sub(begun.idle + self.ended),
            ended: 0,
        }
    }
}

impl Account {
    /// All CPUs together.
    pub fn total(&self) -> OfCpu {
        let mut total = OfCpu::default();
        for cpu in &self.cpus {
            for (sum, part) in total.parts.iter_mut().zip(cpu.parts) {
                *sum += part;
            }
            total.worked += cpu.worked;
            total.within += cpu.within;
            total.idle += cpu.idle;
            total.ended += cpu.ended;
        }
        total
    }

    /// CPUs that were idle for so long.
    pub(crate) fn idle(nr_cpus: usize, ns: u64) -> Account {
        Account { cpus: vec![OfCpu { idle: ns, ..OfCpu::default() }; nr_cpus] }
    }

    /// What was added since another was taken.
    pub(crate) fn since(&self, begun: &Account) -> Account {
        let before = |at: usize| begun.cpus.get(at).copied().unwrap_or_default();
        Account { cpus: self.cpus.iter().enumerate().map(|(at, cpu)| cpu.since(&before(at))).collect() }
    }
}

impl<S: Scheduler> Engine<'_, S> {
    /// The account since the start of the run, as it stands now.
    pub fn account(&self) -> Account {
        let now = |(cpu, entry): (CpuId, &Cpu)| {
            // Works on a copy: an additional step would change the rounding of the run itself.
            let mut entry = entry.clone();
            let mut work = Work::NONE;
            let worked = entry.advance(self.now, (!self.is_idle(cpu)).then_some(&mut work));
            if let Some(part) = self.curr(cpu).and_then(|task| self.tasks[task.index()].stage.part()) {
                entry.account.charge_within(part, worked);
            }
            entry.account
        };
        Account { cpus: self.cpus.iter().map(now).collect() }
    }
}

#[cfg(test)]
mod tests {
    use schedlab_machine::Machine;
    use schedlab_sched::Kernel;
    use schedlab_topology::CpuId;
    use schedlab_trace::NullSink;
    use schedlab_units::Duration;
    use schedlab_workload::{
        CpuList, FOREVER, MutexKind, MutexSpec, Op, Pc, TaskSpec, Workload, WorkloadBuilder,
    };

    use super::{Account, Part};
    use crate::Simulation;

    fn account(machine: &str, workload: &Workload) -> (Account, u64) {
        let (machine, kernel) = (Machine::preset(machine).unwrap(), Kernel::parse("v6.12").unwrap());
        let outcome = Simulation::new(&machine, &kernel, workload).unwrap().run(&mut NullSink);
        let elapsed = outcome.time.since(outcome.began).0;
        (outcome.account, elapsed)
    }

    /// Tasks that run 100 us and sleep 300 us.
    fn sleepers(tasks: usize) -> Workload {
        let mut w = WorkloadBuilder::new("test");
        let program = w.program("sleeps", |p| {
            p.op(Op::Loop { times: FOREVER, slot: 0, end: Pc(3) }).run(Duration::micros(100));
            p.op(Op::Sleep { span: Duration::micros(300) });
            p.op(Op::EndLoop { times: FOREVER, slot: 0, begin: Pc(0) });
        });
        for _ in 0..tasks {
            w.task(TaskSpec::root("sleeps", program));
        }
        w.stop_after(Duration::millis(40));
        w.finish().unwrap()
    }

    /// Own work, parts and idle time are counted in three places; on each CPU they add up to the time of the run.
    fn adds_up(machine: &str, workload: &Workload) -> Account {
        let (account, elapsed) = account(machine, workload);
        for (at, cpu) in account.cpus.iter().enumerate() {
            let sum = cpu.busy() + cpu.idle();
            assert!(
                sum.abs_diff(elapsed) < 20_000 + elapsed / 1000,
                "CPU {at} of {machine}: {sum} of {elapsed}: {cpu:?}"
            );
            assert!(cpu.part(Part::IdleExit) <= cpu.idle(), "{cpu:?}");
        }
        account
    }

    #[test]
    fn the_parts_of_each_cpu_make_up_the_time_of_the_run() {
        for machine in ["2", "1x2x2", "2x4x2"] {
            for tasks in [1, 5, 40] {
                let total = adds_up(machine, &sleepers(tasks)).total();
                let part = |part| total.part(part);
                assert!(part(Part::Call) > 0 && part(Part::Wakeup) > 0 && part(Part::Switch) > 0);
            }
        }
    }

    #[test]
    fn a_task_that_spins_for_a_lock_waits() {
        for kind in [
            MutexKind::Kernel,
            MutexKind::Spin { spin: Duration::millis(50), sleep: Duration::ZERO },
            MutexKind::Futex,
        ] {
            let mut w = WorkloadBuilder::new("test");
            let mutex = w.mutex_of(MutexSpec { name: "till".into(), kind, pi: false });
            let holds = w.program("holds", |p| {
                p.op(Op::Lock { mutex }).run(Duration::millis(10)).op(Op::Unlock { mutex });
            });
            let wants = w.program("wants", |p| {
                p.run(Duration::millis(2)).op(Op::Lock { mutex }).op(Op::Unlock { mutex });
            });
            for (cpu, name, program) in [(0, "holds", holds), (1, "wants", wants)] {
                let cpus = Some(w.cpus(CpuList::new(vec![CpuId(cpu)]).unwrap()));
                w.task(TaskSpec { start_cpu: Some(CpuId(cpu)), cpus, ..TaskSpec::root(name, program) });
            }
            let total = adds_up("2", &w.finish().unwrap()).total();
            let spun = if kind == MutexKind::Futex { 0 } else { 8_000_000 };
            let waited = total.part(Part::Waiting);
            assert!(waited.abs_diff(spun) < 50_000, "{kind:?}: {waited}");
            assert!(total.own_work().abs_diff(12_000_000) < 50_000, "{kind:?}: {}", total.own_work());
        }
    }

    #[test]
    fn forks_exits_and_page_faults_are_calls() {
        let mut w = WorkloadBuilder::new("test");
        let region = w.region("memory", 4 << 20);
        let child = w.program("child", |p| {
            p.run(Duration::millis(1)).op(Op::Touch { region, bytes: 4 << 20 });
        });
        let child = w.task(TaskSpec::forked("child", child));
        let parent = w.program("parent", |p| {
            p.op(Op::Fork { task: child }).op(Op::WaitChildren);
        });
        w.task(TaskSpec::root("parent", parent));
        let total = adds_up("2", &w.finish().unwrap()).total();
        assert!(total.own_work().abs_diff(1_000_000) < 30_000, "{total:?}");
        // A fork, two exits, and 4 MB at 5 GB/s with 1024 faults.
        assert!(total.part(Part::Call).abs_diff(80_000 + 60_000 + 838_860 + 512_000) < 30_000, "{total:?}");
    }

    #[test]
    fn own_work_is_what_the_program_says() {
        let mut w = WorkloadBuilder::new("test");
        let program = w.program("runs", |p| {
            p.op(Op::Loop { times: 100, slot: 0, end: Pc(3) }).run(Duration::micros(100));
            p.op(Op::Sleep { span: Duration::micros(300) });
            p.op(Op::EndLoop { times: 100, slot: 0, begin: Pc(0) });
        });
        w.task(TaskSpec::root("runs", program));
        let (account, _) = account("2", &w.finish().unwrap());
        let own = account.total().own_work();
        assert!(own.abs_diff(10_000_000) < 100_000, "{own}");
    }
}
