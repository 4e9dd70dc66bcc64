//! Drawn balance passes, the test language of this folder.
//!
//! `check_pass("v6.12", "llc0: 0[a* b] 1[]", "cpu=1 newidle", expect![..])` draws run
//! queues (see `drawing.rs`), makes one pass of CPU 1 over its lowest domain and prints
//! what it decided. Words after the occasion (`newidle`, `idle`, `busy`): `level=N` counts
//! domains from the lowest, `failed=N` failed passes before, `hot:b` a task that just ran,
//! `bind:b=0-3` the CPUs it may use, `load:b=N` and `util:b=N` its averages, `imbalanced=N`
//! marks the group of CPU N, `misfit=N` its running task, `asym_packing` the domain, `pref:b=N` the place of the cache it prefers (v7.2).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use expect_test::Expect;
use schedlab_topology::{CpuId, CpuMask};

use super::{BalanceDecision, Step};
use crate::drawing::{Drawn, NOW, by_kernel, draw};
use crate::{Curr, IdleType, SdFlags, SdId};

/// A pass over a drawn state, set up but not made.
pub(crate) struct Pass {
    pub(crate) drawn: Drawn,
    pub(crate) cpu: CpuId,
    pub(crate) sd: SdId,
    pub(crate) idle: IdleType,
}

impl Pass {
    #[track_caller]
    pub(crate) fn new(kernel: &str, drawing: &str, words: &str) -> Pass {
        let drawn = draw(kernel, drawing);
        let mut pass = Pass { drawn, cpu: CpuId(0), sd: SdId(0), idle: IdleType::NotIdle };
        let mut level = 0;
        let mut failed = None;
        for word in words.split_whitespace() {
            let (name, value) = word.split_once('=').unwrap_or((word, "0"));
            match name {
                "asym_packing" | "imbalanced" => {}
                "misfit" => {
                    pass.drawn.sched.rqs[CpuId(value.parse().unwrap())].misfit_task_load = 1024;
                }
                "busy" => pass.idle = IdleType::NotIdle,
                "idle" => pass.idle = IdleType::Idle,
                "newidle" => pass.idle = IdleType::NewlyIdle,
                "cpu" => pass.cpu = CpuId(value.parse().unwrap()),
                "level" => level = value.parse().unwrap(),
                "failed" => failed = value.parse().ok(),
                _ => pass.fact(name, value),
            }
        }
        pass.sd = pass.drawn.sched.domains.walk(pass.cpu).nth(level).expect("so many levels").0;
        // v4.13 uses past loads too: the drawn state has lasted for long.
        for cpu in (0..pass.drawn.sched.rqs.len()).map(CpuId::from) {
            let load = pass.drawn.sched.cpu_load(cpu);
            pass.drawn.sched.rqs[cpu].cpu_load = [load; 5];
        }
        let domain = pass.drawn.sched.domains.sd_mut(pass.sd);
        if words.contains("asym_packing") {
            domain.flags = domain.flags.with(SdFlags::ASYM_PACKING);
        }
        domain.nr_balance_failed = failed.unwrap_or(0);
        let groups: Vec<_> = domain.groups.iter().collect();
        for word in words.split_whitespace() {
            if let Some(cpu) = word.strip_prefix("imbalanced=") {
                let cpu = CpuId(cpu.parse().unwrap());
                let domains = &mut pass.drawn.sched.domains;
                let group = groups.iter().find(|&&id| domains.sg(id).span.contains(cpu)).unwrap();
                let sgc = domains.sg(*group).sgc as usize;
                domains.sgcs[sgc].imbalance = true;
            }
        }
        pass
    }

    #[track_caller]
    fn fact(&mut self, name: &str, value: &str) {
        let Some((fact, task)) = name.split_once(':') else { return };
        let task = self.drawn.task(task);
        let sched = &mut self.drawn.sched;
        let nr_cpus = sched.rqs.len();
        let cpu = sched.task(task).cpu;
        let clock = sched.rqs[cpu].clock_task;
        let p = sched.task_mut(task);
        match fact {
            "hot" => p.se.exec_start = clock - 100_000,
            "bind" => {
                let mask = CpuMask::parse_list(value, nr_cpus).unwrap();
                p.nr_cpus_allowed = mask.weight() as u32;
                p.allowed = Arc::new(mask);
            }
            "load" => {
                let load: u64 = value.parse().unwrap();
                let before = core::mem::replace(&mut p.se.avg.load_avg, load);
                let root = sched.root_cfs_id(cpu);
                let avg = &mut sched.cfs_mut(root).avg;
                avg.load_avg = avg.load_avg + load - before;
                avg.runnable_load_avg = avg.load_avg;
            }
            "util" => p.se.avg.util_avg = value.parse().unwrap(),
            "pref" => {
                sched.account_llc_dequeue(cpu, task);
                sched.task_mut(task).preferred_llc = value.parse().ok();
                sched.account_llc_enqueue(cpu, task);
            }
            _ => panic!("what is \"{fact}\" of a task?"),
        }
    }

    fn name(&self, task: schedlab_units::TaskId) -> &str {
        self.drawn.tasks.iter().find(|(_, id)| **id == task).map_or("?", |(name, _)| name)
    }

    /// The decision in words.
    pub(crate) fn decide(&self) -> String {
        let decision = self.drawn.sched.decide_balance(self.cpu, self.sd, self.idle, NOW);
        self.words(&decision)
    }

    pub(crate) fn words(&self, decision: &BalanceDecision) -> String {
        let mut words = decision.reason.name().to_string();
        if decision.imbalance > 0 {
            words += &format!(" {} {}", decision.migration_type.name(), decision.imbalance);
        } else if let Some((name, number)) = decision.number {
            words += &format!(" {name}={number}");
        }
        if let Some(src) = decision.src {
            words += &format!(" from {src}");
        }
        for (at, step) in decision.steps.iter().enumerate() {
            words += &match *step {
                // Some kernels repeat the scan; one round is enough to print.
                Step::Skip { .. } if decision.steps[..at].contains(step) => String::new(),
                Step::Detach { task, to } => format!(", {} to {to}", self.name(task)),
                Step::Skip { task, why } => format!(", {} {why:?}", self.name(task)),
                Step::Attach { .. } => String::new(),
            };
        }
        words
    }
}

/// What one pass decides.
#[track_caller]
pub(crate) fn check_pass(kernel: &str, drawing: &str, words: &str, expected: Expect) {
    expected.assert_eq(&Pass::new(kernel, drawing, words).decide());
}

/// What one pass decides under every kernel; `with` is added to each name.
#[track_caller]
pub(crate) fn check_kernels(with: &str, drawing: &str, words: &str, expected: Expect) {
    expected.assert_eq(&by_kernel(with, |kernel| Pass::new(kernel, drawing, words).decide()));
}

/// Tasks of all CPUs after a pass was made, `*` on those that run.
pub(crate) fn queues(drawn: &Drawn) -> String {
    let mut text = String::new();
    for (cpu, rq) in drawn.sched.rqs.iter() {
        let mut names: Vec<String> = Vec::new();
        for (name, task) in &drawn.tasks {
            let p = drawn.sched.task(*task);
            if p.cpu == cpu && p.on_rq {
                let star = if rq.curr == Curr::Task(*task) { "*" } else { "" };
                names.push(format!("{name}{star}"));
            }
        }
        text += &format!("{}{cpu}[{}]", if text.is_empty() { "" } else { " " }, names.join(" "));
    }
    text
}

/// A drawing whose idle CPUs have stopped their ticks, with all averages up to date.
pub(crate) fn settled(kernel: &str, drawing: &str) -> Drawn {
    let mut drawn = draw(kernel, drawing);
    for cpu in (0..drawn.sched.rqs.len()).map(CpuId::from) {
        if drawn.sched.idle_cpu(cpu) {
            drawn.sched.nohz_balance_enter_idle(cpu);
        }
        let load = drawn.sched.cpu_load(cpu);
        drawn.sched.rqs[cpu].cpu_load = [load; 5];
    }
    drawn.sched.nohz_has_blocked = false;
    drawn.sched.nohz_needs_update = false;
    drawn
}
