//! Long sequences of random calls on every preset; every state is checked.

use alloc::sync::Arc;
use alloc::vec::Vec;

use schedlab_topology::{CpuId, CpuMask};
use schedlab_units::TaskId;

use crate::lab::{ALL, Lab, MS, Random};
use crate::{Curr, IdleType, MigrationCause, NICE_0_LOAD, NewTask, Policy, TaskState, TgId};

const POLICIES: [Policy; 7] = [
    Policy::Normal,
    Policy::Normal,
    Policy::Batch,
    Policy::Idle,
    Policy::Rr(3),
    Policy::Fifo(7),
    Policy::Deadline { runtime: MS, deadline: 10 * MS, period: 20 * MS },
];

struct Disorder {
    lab: Lab,
    random: Random,
    tasks: Vec<TaskId>,
    quota: bool,
}

impl Disorder {
    fn new(kernel: &str, machine: &str, seed: u64, quota: bool) -> Disorder {
        let mut lab = Lab::new(kernel, machine);
        let now = lab.time();
        let a = lab.sched.new_group(TgId::ROOT, NICE_0_LOAD, CpuId(0), now);
        let b = lab.sched.new_group(a, 2 * NICE_0_LOAD, CpuId(1), now);
        lab.sched.new_group(b, NICE_0_LOAD / 2, CpuId(2), now);
        lab.sched.new_group(TgId::ROOT, NICE_0_LOAD / 100, CpuId(3), now);
        Disorder { lab, random: Random(seed), tasks: Vec::new(), quota }
    }

    fn nr_cpus(&self) -> usize {
        self.lab.sched.rqs.len()
    }

    /// An online CPU.
    fn cpu(&mut self) -> u16 {
        loop {
            let cpu = self.random.below(self.nr_cpus() as u64) as u16;
            if self.lab.sched.rqs[CpuId(cpu)].active {
                return cpu;
            }
        }
    }

    /// Takes an idle CPU offline, or all CPUs back online.
    fn plug(&mut self) {
        let now = self.lab.time();
        let cpu = CpuId(self.cpu());
        let idle = self.lab.sched.rqs[cpu].curr == Curr::Idle;
        let others = self.lab.sched.rqs.iter().filter(|(_, rq)| rq.active).count() > 1;
        if idle && others {
            self.lab.sched.set_online(cpu, false, now);
        } else {
            for cpu in (0..self.nr_cpus()).map(CpuId::from) {
                self.lab.sched.set_online(cpu, true, now);
            }
        }
    }

    fn group(&mut self) -> TgId {
        TgId(self.random.below(5) as u32)
    }

    fn policy(&mut self) -> Policy {
        POLICIES[self.random.below(POLICIES.len() as u64) as usize]
    }

    fn any(&mut self) -> Option<TaskId> {
        let n = self.tasks.len() as u64;
        (n > 0).then(|| self.tasks[self.random.below(n) as usize])
    }

    fn step(&mut self) {
        let time = self.lab.time();
        let what = self.random.below(100);
        let Some(task) = self.any() else { return self.fork() };
        match what {
            0..8 if self.tasks.len() < 24 => self.fork(),
            0..40 => self.toggle(task),
            40..45 => {
                let tg = self.group();
                self.lab.sched.move_task_to_group(task, tg, time);
            }
            45..50 => {
                let nice = self.random.below(40) as i8 - 20;
                self.lab.sched.set_nice(task, nice, time);
            }
            50..55 => {
                let policy = self.policy();
                self.lab.sched.set_policy(CpuId(0), task, policy, time);
            }
            55..58 => {
                let slice = (self.random.below(2) == 0).then(|| 200_000 + self.random.below(8 * MS));
                self.lab.sched.set_slice(task, slice, time);
            }
            58..63 => {
                let tg = TgId(1 + self.random.below(4) as u32);
                let shares = NICE_0_LOAD / 100 * (1 + self.random.below(1000));
                self.lab.sched.set_shares(tg, shares, time);
            }
            63..65 => {
                let tg = TgId(1 + self.random.below(4) as u32);
                let idle = self.random.below(2) == 0;
                self.lab.sched.set_idle_group(tg, idle, time);
            }
            65..68 if self.quota => {
                let tg = TgId(1 + self.random.below(4) as u32);
                let quota = (self.random.below(3) > 0).then(|| MS + self.random.below(20 * MS));
                self.lab.sched.set_bandwidth(tg, quota, 20 * MS, 0, time);
            }
            68..74 => self.migrate(task),
            74..80 => {
                let cpu = CpuId(self.cpu());
                self.lab.sched.yield_task(cpu, time);
                self.lab.sched.resched_curr(cpu, false);
            }
            80..82 => self.bind(task),
            82..84 => self.plug(),
            _ => {
                let ns = self.random.below(3 * MS);
                self.lab.run(ns);
            }
        }
        self.lab.settle();
        self.sums_decide_as_walks();
    }

    /// A balance pass and a fork are decided in the same way by stored sums and by walking over the CPUs.
    fn sums_decide_as_walks(&mut self) {
        let (cpu, now) = (CpuId(self.cpu()), self.lab.time());
        let Some(task) = self.any() else { return };
        let decide = |sched: &crate::Sched| {
            let domains = sched.domains.walk(cpu);
            let pass = |(sd, _)| sched.decide_balance(cpu, sd, IdleType::NewlyIdle, now);
            (domains.map(pass).collect::<Vec<_>>(), sched.decide_fork(task, cpu, now, None))
        };
        let walked = decide(&self.lab.sched);
        self.lab.sched.update_group_sums();
        assert_eq!(walked, decide(&self.lab.sched));
    }

    fn fork(&mut self) {
        let spec = NewTask { policy: self.policy(), tg: self.group(), ..self.lab.spec() };
        let cpu = self.cpu();
        let task = self.lab.fork("t", cpu, spec);
        self.tasks.push(task);
    }

    fn toggle(&mut self, task: TaskId) {
        let entry = self.lab.sched.task(task);
        let runs = self.lab.sched.rqs[entry.cpu].curr == Curr::Task(task);
        if runs {
            self.lab.sleep(task);
        } else if entry.state == TaskState::Interruptible {
            let to = CpuId(self.cpu());
            let usable = |cpu: &CpuId| self.lab.sched.rqs[*cpu].active;
            let allowed = &self.lab.sched.task(task).allowed;
            let to = Some(to).filter(|&to| allowed.contains(to)).or_else(|| allowed.iter().find(usable));
            match to {
                Some(to) => self.lab.wake_on(task, to),
                None => self.set_allowed(task, CpuMask::all(self.nr_cpus())),
            }
        }
    }

    fn migrate(&mut self, task: TaskId) {
        let entry = self.lab.sched.task(task);
        let runs = self.lab.sched.rqs[entry.cpu].curr == Curr::Task(task);
        let to = CpuId(self.cpu());
        let allowed = self.lab.sched.task(task).allowed.contains(to);
        if self.lab.sched.task(task).on_rq && !runs && allowed {
            let now = self.lab.time();
            self.lab.sched.move_queued_task(task, to, MigrationCause::Periodic, now);
        }
    }

    fn bind(&mut self, task: TaskId) {
        let mut mask = CpuMask::new(self.nr_cpus());
        mask.set(CpuId(self.cpu()));
        mask.set(CpuId(self.cpu()));
        let entry = self.lab.sched.task(task);
        if self.lab.sched.rqs[entry.cpu].curr != Curr::Task(task) {
            self.set_allowed(task, mask);
        }
    }

    fn set_allowed(&mut self, task: TaskId, mask: CpuMask) {
        let (by, now) = (CpuId(self.cpu()), self.lab.time());
        self.lab.sched.set_cpus_allowed(by, task, Arc::new(mask), now);
    }
}

fn disorder(quota: bool, steps: usize) {
    for kernel in ALL {
        for seed in 1..=6u64 {
            let machine = if seed % 3 == 0 { "2x2x2" } else { "1x2x2" };
            let mut disorder = Disorder::new(kernel, machine, 0x9E37_79B9_7F4A_7C15 ^ seed << 17, quota);
            for step in 0..steps {
                let place = Place { kernel, seed, step };
                disorder.step();
                core::mem::forget(place);
            }
        }
    }
}

#[test]
fn every_state_of_random_sequences_is_sound() {
    disorder(false, 3_000);
}

#[test]
fn every_state_of_random_sequences_with_quotas_is_sound() {
    disorder(true, 3_000);
}

/// How far any queued entity is beyond its bound, ns; how many were examined.
fn beyond_bound(lab: &mut Lab) -> (i64, u32) {
    let (mut worst, mut seen) = (i64::MIN, 0);
    for cpu in (0..4).map(CpuId) {
        let cfs = lab.sched.root_cfs_id(cpu);
        lab.sched.update_rq_clock(cpu, lab.time());
        lab.sched.update_curr(cfs);
        let average = lab.sched.avg_sums(cfs).average();
        let queue = lab.sched.cfs(cfs);
        for se in queue.timeline.entries().iter().map(|q| q.se).chain(lab.sched.queued_curr(cfs)) {
            let lag = average.wrapping_sub(lab.sched.se(se).vruntime) as i64;
            worst = worst.max(lag.abs() - lab.sched.lag_limit(cfs, se));
            seen += 1;
        }
    }
    (worst, seen)
}

#[test]
fn lag_stays_within_its_bound() {
    for kernel in &ALL[5..] {
        let (mut worst, mut seen) = (i64::MIN, 0);
        for seed in 1..=6u64 {
            let mut disorder = Disorder::new(kernel, "1x2x2", 0x9E37_79B9_7F4A_7C15 ^ seed << 17, false);
            for _ in 0..1_500 {
                match disorder.random.below(10) {
                    0 if disorder.tasks.len() < 12 => {
                        let cpu = disorder.cpu();
                        let task = disorder.lab.hog("t", cpu);
                        disorder.tasks.push(task);
                    }
                    0..4 => disorder.any().map_or((), |task| disorder.toggle(task)),
                    4 => disorder.any().map_or((), |task| disorder.migrate(task)),
                    _ => {
                        let ns = disorder.random.below(3 * MS);
                        disorder.lab.run(ns);
                    }
                }
                disorder.lab.settle();
                let (beyond, entities) = beyond_bound(&mut disorder.lab);
                worst = worst.max(beyond);
                seen += entities;
            }
        }
        // A completed request is not noticed before the next tick.
        let tick = 4 * MS as i64;
        assert!(worst < tick && seen > 10_000, "{kernel}: {worst} ns beyond, {seen} entities");
    }
}

/// Says where a panic happened.
struct Place {
    kernel: &'static str,
    seed: u64,
    step: usize,
}

impl Drop for Place {
    fn drop(&mut self) {
        std::eprintln!("{} seed {} step {}", self.kernel, self.seed, self.step);
    }
}
