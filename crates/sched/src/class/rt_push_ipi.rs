//! RT tasks are pushed to a CPU that has room, not pulled by it (`RT_PUSH_IPI`).
//!
//! ```text
//!   has room --interrupt--> has some to give: pushes --interrupt--> the next such CPU --> ... --> none is left
//! ```
//!
//! Many CPUs that have room at once would fight for the lock of the one with tasks to give. So all CPUs of a root
//! domain share one round of interrupts; a CPU that has room while a round is in progress extends it by one more.

use schedlab_topology::CpuId;
use schedlab_units::Time;

use crate::class::Class;
use crate::{Effect, Sched};

/// Progress of the round of interrupts.
///
/// Kernel: rto_cpu, rto_loop, rto_loop_next of struct root_domain, kernel/sched/sched.h, v4.15.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RtPushLoop {
    /// The CPU that is interrupted now; `None` between rounds.
    pub cpu: Option<CpuId>,
    /// How often a CPU had room.
    pub asked: u32,
    /// The value of `asked` when the current round began.
    pub begun: u32,
}

impl Sched {
    /// A CPU has room for RT tasks: a round of interrupts begins, or is extended by one more.
    ///
    /// Kernel: tell_cpu_to_push(), kernel/sched/rt.c, v6.1, v6.12. v4.13 has a round for each CPU that has room, which
    /// leaves out whose tasks are too low for it; here it is as later.
    pub(super) fn tell_cpu_to_push(&mut self, this: CpuId) {
        let round = self.rt_push_loop(this);
        round.asked = round.asked.wrapping_add(1);
        if round.cpu.is_none() {
            self.ask_next_to_push(this);
        }
    }

    /// A CPU that was asked to push pushes RT tasks while that helps, and the next one is asked.
    ///
    /// Kernel: rto_push_irq_work_func(), kernel/sched/rt.c, v6.1, v6.12.
    pub fn rto_push_irq_work(&mut self, cpu: CpuId, now: Time) {
        self.push_tasks(cpu, cpu, Class::Rt, now);
        self.ask_next_to_push(cpu);
    }

    fn ask_next_to_push(&mut self, this: CpuId) {
        let next = self.rto_next_cpu(this);
        self.rt_push_loop(this).cpu = next;
        self.effects.extend(next.map(|cpu| Effect::RtPush { cpu }));
    }

    /// The next CPU that has pushable RT tasks, in the order of CPU numbers.
    ///
    /// Kernel: rto_next_cpu(), kernel/sched/rt.c, v6.1, v6.12.
    fn rto_next_cpu(&mut self, this: CpuId) -> Option<CpuId> {
        loop {
            let from = self.rt_push_loop(this).cpu.map_or(0, |cpu| cpu.index() + 1);
            let mut others = (from..self.rqs.len()).map(CpuId::from).filter(|&cpu| cpu != this);
            let gives = |&cpu: &CpuId| self.shares_root_domain(cpu, this) && self.is_rt_overloaded(cpu);
            if let Some(next) = others.find(gives) {
                return Some(next);
            }
            let round = self.rt_push_loop(this);
            round.cpu = None;
            if round.begun == round.asked {
                return None;
            }
            round.begun = round.asked;
        }
    }

    fn rt_push_loop(&mut self, of: CpuId) -> &mut RtPushLoop {
        &mut self.rt_push_loops[self.topology.isolated().contains(of) as usize]
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use expect_test::expect;

    use super::*;
    use crate::drawing::{Drawn, NOW, by_kernel, draw};
    use crate::{MigrationCause, Policy};

    /// Three CPUs run tasks of priority 8, while tasks of priority 7 and 6 wait on CPUs 1 and 2. The first task falls
    /// to each of some priorities, then the requested interrupts arrive.
    fn falls(to: &'static [u8]) -> impl Fn(&str) -> String {
        falls_on("1x1x3", to)
    }

    fn falls_on(machine: &'static str, to: &'static [u8]) -> impl Fn(&str) -> String {
        move |kernel| {
            let mut drawn = draw(kernel, &format!("{machine} | 0[a*] 1[b* c] 2[d* e]"));
            let set = |drawn: &mut Drawn, name: &str, priority| {
                let task = drawn.task(name);
                drawn.sched.set_policy(CpuId(0), task, Policy::Fifo(priority), NOW);
            };
            for (name, priority) in [("a", 8), ("b", 8), ("d", 8), ("c", 7), ("e", 6)] {
                set(&mut drawn, name, priority);
            }
            drawn.sched.effects.clear();
            for &priority in to {
                set(&mut drawn, "a", priority);
            }
            let mut told = String::new();
            while !drawn.sched.effects.is_empty() {
                for effect in core::mem::take(&mut drawn.sched.effects) {
                    match effect {
                        Effect::RtPush { cpu } => {
                            told += &format!(" irq {}", cpu.0);
                            drawn.sched.rto_push_irq_work(cpu, NOW);
                        }
                        Effect::Migrated { from, to, cause: MigrationCause::Push, .. } => {
                            told += &format!(" {} pushes to {}", from.0, to.0);
                        }
                        Effect::Migrated { from, to, .. } => {
                            told += &format!(" {} takes of {}", to.0, from.0)
                        }
                        _ => {}
                    }
                }
            }
            told
        }
    }

    #[test]
    fn a_cpu_with_room_pulls_or_has_others_push() {
        expect![[r#"
            v4.13..v6.12:  irq 1 1 pushes to 0 irq 2 irq 0 irq 2
            v7.2..v7.3:  0 takes of 1"#]]
        .assert_eq(&by_kernel("", falls(&[1])));
        expect!["v4.13..v7.3:  irq 1 irq 2 irq 1 irq 2"].assert_eq(&by_kernel("+RT_PUSH_IPI", falls(&[7])));
    }

    #[test]
    fn isolated_cpus_have_rounds_of_their_own() {
        expect![[r#"
            v4.13..v6.12:  irq 2 2 pushes to 0 irq 0
            v7.2..v7.3:  0 takes of 2"#]]
        .assert_eq(&by_kernel("", falls_on("1x1x3:isolcpus=1", &[1])));
        expect![[r#"
            v4.13..v6.12:  irq 1 1 pushes to 0 irq 0
            v7.2..v7.3:  0 takes of 1"#]]
        .assert_eq(&by_kernel("", falls_on("1x1x3:isolcpus=0-1", &[1])));
    }

    #[test]
    fn one_round_serves_all_cpus_that_have_room_meanwhile() {
        expect!["v4.13..v7.3:  irq 1 1 pushes to 0 irq 2 irq 0 irq 2"]
            .assert_eq(&by_kernel("+RT_PUSH_IPI", falls(&[6, 5, 4])));
    }
}
