//! Invariants of a workload, checked before it is run.
//!
//! An engine trusts a checked workload: ids index their tables, loops nest, locks
//! are unlocked by the task that took them, barriers can fill. Each sentence of
//! [`Fault`] is one way to break that.

mod flow;
mod meet;
mod table;

pub(crate) use table::attr_is_valid;

use crate::{Pc, SpecId, Workload};

/// A contradiction inside a workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// No task starts by itself.
    #[error("no task starts by itself")]
    NoRoot,
    /// An id points outside its table.
    #[error("{what} {id} does not exist")]
    NoSuch {
        /// The table.
        what: &'static str,
        /// The id.
        id: u32,
    },
    /// A number outside the range that the kernel accepts.
    #[error("{what} is {value}, allowed is {allowed}")]
    Range {
        /// The quantity.
        what: &'static str,
        /// Its value.
        value: i64,
        /// The range in words.
        allowed: &'static str,
    },
    /// A program is not a whole one.
    #[error("the program does not end in an exit")]
    NoExit,
    /// Loops nested too deep.
    #[error("loops are nested {depth} deep, at most {max} are possible")]
    TooDeep {
        /// How deep.
        depth: usize,
        /// The limit.
        max: usize,
    },
    /// A loop's ends do not belong together.
    #[error("a loop begins or ends here without its other end")]
    Unbalanced,
    /// A jump leaves its program or enters a loop.
    #[error("a jump leads out of the program or into a loop")]
    BadJump,
    /// A loop without end in which no time passes.
    #[error("this loops forever without any time passing; put a run or a sleep into it")]
    NoTime,
    /// A loop that counts far without any time passing.
    #[error(
        "this loops {times} times without any time passing, which is {steps} steps; at most {max} are possible; put a run or a sleep into it"
    )]
    TooFar {
        /// Rounds of the loop.
        times: u32,
        /// Steps of all its rounds.
        steps: u64,
        /// The limit.
        max: u64,
    },
    /// Two measures of one name.
    #[error("there is another measure of this name")]
    SameMeasure,
    /// A measure reads a label that no op writes.
    #[error("no op marks \"{label}\"; write it with mark \"{label}\" where it is reached")]
    NeverMarked {
        /// The label.
        label: String,
    },
    /// A lock taken twice.
    #[error("mutex \"{mutex}\" is taken although this task already holds it")]
    LockedTwice {
        /// The mutex.
        mutex: String,
    },
    /// A lock that is not held.
    #[error("mutex \"{mutex}\" is used as if held, but this task does not hold it here")]
    NotHeld {
        /// The mutex.
        mutex: String,
    },
    /// A lock that is held on one way here and not on the other.
    #[error("mutex \"{mutex}\" may or may not be held here, depending on the path")]
    MaybeHeld {
        /// The mutex.
        mutex: String,
    },
    /// A lock that a loop takes and does not give back.
    #[error("mutex \"{mutex}\" is still held at the next iteration of the loop")]
    HeldAnew {
        /// The mutex.
        mutex: String,
    },
    /// A lock that is never released.
    #[error("the task ends while it holds mutex \"{mutex}\"")]
    HeldAtExit {
        /// The mutex.
        mutex: String,
    },
    /// A fork of what starts by itself.
    #[error("task \"{task}\" starts by itself and cannot be forked")]
    ForkOfRoot {
        /// The task.
        task: String,
    },
    /// A join of what was not forked.
    #[error("task \"{task}\" is joined but this program never forks it")]
    JoinOfStranger {
        /// The task.
        task: String,
    },
    /// A barrier that cannot fill.
    #[error("it waits for {parties} parties but only {arriving} tasks ever reach it")]
    BarrierNeverFull {
        /// How many it waits for.
        parties: u32,
        /// How many can come.
        arriving: u64,
    },
    /// A channel that is only read or only written.
    #[error("it is {done} but never {missing}")]
    OneEnded {
        /// What happens to it.
        done: &'static str,
        /// What does not.
        missing: &'static str,
    },
}

/// A fault, with its place as far as known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub fault: Fault,
    pub at: Site,
}

/// The part of a workload that is at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Site {
    Workload,
    Task(SpecId),
    Op(Pc),
    Part(String),
}

impl Finding {
    fn at_op(pc: usize, fault: Fault) -> Finding {
        Finding { fault, at: Site::Op(Pc(pc as u32)) }
    }
}

/// Checks everything; the first fault found is returned.
pub(crate) fn check(workload: &Workload) -> Result<(), Finding> {
    table::check(workload)?;
    for program in &workload.programs {
        flow::check(workload, program)?;
    }
    meet::check(workload)
}

#[cfg(test)]
mod tests {
    use schedlab_units::Duration;

    use crate::{
        Deadline, FOREVER, Op, Pc, Policy, ProgramBuilder, SchedAttr, SemId, SpecId, TaskSpec, Test,
        WorkloadBuilder,
    };

    const MS: Duration = Duration::millis(1);

    /// The error of a workload, or "fine".
    fn verdict(w: WorkloadBuilder) -> String {
        w.finish().map_or_else(|error| error.to_string(), |_| "fine".to_string())
    }

    /// One task whose program may use mutexes m (0) and n (1) and word w (0).
    fn check_program(write: impl FnOnce(&mut ProgramBuilder), expected: &str) {
        let mut w = WorkloadBuilder::new("test");
        w.mutex("m");
        w.mutex("n");
        w.word("w", 0);
        let program = w.program("p", write);
        w.task(TaskSpec::root("t", program));
        assert_eq!(verdict(w), expected);
    }

    #[test]
    fn locks_must_balance_on_every_way() {
        use crate::{MutexId, WordId};
        let (m, n, word) = (MutexId(0), MutexId(1), WordId(0));
        check_program(|p| _ = p.lock(m).lock(n).unlock(m).unlock(n), "fine");
        check_program(
            |p| _ = p.lock(m).run(MS).lock(m),
            "program \"p\", op 2: mutex \"m\" is taken although this task already holds it",
        );
        check_program(
            |p| _ = p.unlock(n),
            "program \"p\", op 0: mutex \"n\" is used as if held, but this task does not hold it here",
        );
        check_program(
            |p| _ = p.lock(n).run(MS),
            "program \"p\", op 2: the task ends while it holds mutex \"n\"",
        );
        check_program(
            |p| _ = p.forever(|p| _ = p.run(MS).lock(m)),
            "program \"p\", op 3: mutex \"m\" is still held at the next iteration of the loop",
        );
        check_program(
            |p| {
                let skip = p.label();
                p.jump_if(word, Test::Equal, 1, skip).lock(m).place(skip).run(MS).unlock(m);
            },
            "program \"p\", op 3: mutex \"m\" is used as if held, but this task does not hold it here",
        );
        check_program(
            |p| {
                let skip = p.label();
                p.jump_if(word, Test::Equal, 1, skip).lock(m).place(skip).run(MS);
            },
            "program \"p\", op 1: mutex \"m\" may or may not be held here, depending on the path",
        );
    }

    #[test]
    fn what_goes_on_for_ever_must_take_time() {
        let word = crate::WordId(0);
        check_program(|p| _ = p.forever(|p| _ = p.run(MS)), "fine");
        check_program(|p| _ = p.repeat(1_000, |p| _ = p.word_add(word, 1)), "fine");
        check_program(
            |p| _ = p.repeat(100_000, |p| _ = p.repeat(100_000, |p| _ = p.word_add(word, 1)).run(MS)),
            "fine",
        );
        let far = "this loops 100000 times without any time passing, which is 20000100000 steps; at most \
                   100000000 are possible; put a run or a sleep into it";
        check_program(
            |p| _ = p.repeat(100_000, |p| _ = p.repeat(100_000, |p| _ = p.word_add(word, 1))),
            &format!("program \"p\", op 0: {far}"),
        );
        check_program(
            |p| {
                let skip = p.label();
                p.repeat(4_000_000_000, |p| _ = p.jump_odds(900, skip).run(MS).place(skip).word_add(word, 1));
            },
            "program \"p\", op 0: this loops 4000000000 times without any time passing, which is 16000000000 \
             steps; at most 100000000 are possible; put a run or a sleep into it",
        );
        let endless =
            "program \"p\", op 1: this loops forever without any time passing; put a run or a sleep into it";
        check_program(|p| _ = p.forever(|p| _ = p.word_add(word, 1)), endless);
        check_program(
            |p| {
                let (top, out) = (p.label(), p.label());
                p.place(top).jump_if(word, Test::Equal, 1, out).jump(top).place(out);
            },
            &endless.replace("op 1", "op 0"),
        );
    }

    #[test]
    fn loops_nest_and_jumps_stay_outside_them() {
        let deep = |levels: usize| {
            move |p: &mut ProgramBuilder| {
                fn nest(p: &mut ProgramBuilder, levels: usize) {
                    match levels {
                        0 => _ = p.run(MS),
                        _ => _ = p.repeat(2, |p| nest(p, levels - 1)),
                    }
                }
                nest(p, levels);
            }
        };
        check_program(deep(8), "fine");
        check_program(deep(9), "program \"p\", op 8: loops are nested 9 deep, at most 8 are possible");
        check_program(
            |p| {
                let inside = p.label();
                p.jump(inside).repeat(2, |p| _ = p.run(MS).place(inside).run(MS));
            },
            "program \"p\", op 0: a jump leads out of the program or into a loop",
        );
        check_program(
            |p| _ = p.op(Op::Loop { times: FOREVER, slot: 0, end: Pc(2) }).run(MS),
            "program \"p\", op 0: a loop begins or ends here without its other end",
        );
    }

    #[test]
    fn ids_and_numbers_are_looked_at() {
        check_program(|p| _ = p.sem_post(SemId(3)), "program \"p\", op 0: semaphore 3 does not exist");
        let attr = |policy| {
            let mut w = WorkloadBuilder::new("test");
            let program = w.program("p", |p| _ = p.run(MS));
            let attr = w.attr(SchedAttr { policy, ..SchedAttr::default() });
            w.task(TaskSpec { attr: Some(attr), ..TaskSpec::root("t", program) });
            verdict(w)
        };
        assert_eq!(attr(Policy::Normal { nice: -20 }), "fine");
        assert_eq!(attr(Policy::Normal { nice: 20 }), "task \"t\": nice is 20, allowed is -20 to 19");
        assert_eq!(
            attr(Policy::Fifo { priority: 0 }),
            "task \"t\": the real-time priority is 0, allowed is 1 to 99"
        );
        let deadline = Deadline { runtime: MS * 2, deadline: MS, period: MS * 4 };
        assert_eq!(
            attr(Policy::Deadline(deadline)),
            "task \"t\": deadline minus runtime is -1000000, allowed is 0 or more"
        );
    }

    #[test]
    fn a_barrier_must_be_able_to_fill() {
        let meet = |parties: u32, roots: u32, forks: u32, looping: bool| {
            let mut w = WorkloadBuilder::new("test");
            let barrier = w.barrier("b", parties, Duration::ZERO);
            let program = w.program("p", |p| _ = p.run(MS).barrier(barrier));
            for _ in 0..roots {
                w.task(TaskSpec::root("t", program));
            }
            let child = w.task(TaskSpec::forked("c", program));
            let main = w.program("main", |p| {
                if looping {
                    p.forever(|p| _ = p.fork(child));
                }
                for _ in 0..forks {
                    p.fork(child);
                }
            });
            w.task(TaskSpec::root("main", main));
            verdict(w)
        };
        assert_eq!(meet(3, 1, 2, false), "fine");
        assert_eq!(meet(300, 1, 0, true), "fine");
        assert_eq!(
            meet(4, 1, 2, false),
            "barrier \"b\": it waits for 4 parties but only 3 tasks ever reach it"
        );
    }

    #[test]
    fn forks_joins_and_channels_have_two_ends() {
        check_program(
            |p| _ = p.fork(SpecId(0)),
            "program \"p\", op 0: task \"t\" starts by itself and cannot be forked",
        );
        check_program(
            |p| _ = p.join(SpecId(0)),
            "program \"p\", op 0: task \"t\" is joined but this program never forks it",
        );
        let mut w = WorkloadBuilder::new("test");
        let pipe = w.pipe("go");
        let program = w.program("p", |p| _ = p.read(pipe, 1));
        w.task(TaskSpec::root("t", program));
        assert_eq!(verdict(w), "channel \"go\": it is read but never written");
        let mut w = WorkloadBuilder::new("empty");
        w.program("p", |_| {});
        assert_eq!(verdict(w), "workload \"empty\": no task starts by itself");
    }
}
