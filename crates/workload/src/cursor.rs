//! Where a task is in its program.
//!
//! The cursor executes loops, jumps and changes of words itself and stops at the next op that takes time or
//! needs the engine, so the engine knows nothing of control flow.

use crate::program::{FOREVER, LOOP_DEPTH_MAX};
use crate::{Op, Pc};

/// A place in the code, with the counters of the loops around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    pc: Pc,
    /// Rounds completed before the current one, by depth of nesting.
    rounds: [u32; LOOP_DEPTH_MAX],
    /// What the last [`Op::WordLoad`] saw.
    remembered: i32,
}

impl Cursor {
    /// At the first op of a program.
    pub fn new(entry: Pc) -> Cursor {
        Cursor { pc: entry, rounds: [0; LOOP_DEPTH_MAX], remembered: 0 }
    }

    /// The op that comes next, which may still be one of control.
    pub fn pc(&self) -> Pc {
        self.pc
    }

    /// The current round of the loop at this depth of nesting, from 0.
    pub fn round(&self, slot: usize) -> u32 {
        self.rounds[slot]
    }

    /// The value that [`Expected::Remembered`](crate::Expected::Remembered) stands for.
    pub fn remembered(&self) -> i32 {
        self.remembered
    }

    /// Advances to the next op that is not a control op and returns it.
    ///
    /// `words` are the workload's words, `dice` gives 64 random bits each time it
    /// is called. After [`Op::Exit`] or [`Op::ExitGroup`]
    /// it returns the same again.
    #[inline]
    pub fn next(&mut self, code: &[Op], words: &mut [i32], mut dice: impl FnMut() -> u64) -> Op {
        loop {
            let op = code[self.pc.index()];
            let following = Pc(self.pc.0 + 1);
            self.pc = match op {
                Op::Loop { times: 0, end, .. } => Pc(end.0 + 1),
                Op::Loop { slot, .. } => {
                    self.rounds[usize::from(slot)] = 0;
                    following
                }
                Op::EndLoop { times, slot, begin } => {
                    let rounds = &mut self.rounds[usize::from(slot)];
                    *rounds = rounds.wrapping_add(1);
                    if *rounds == times && times != FOREVER { following } else { Pc(begin.0 + 1) }
                }
                Op::Jump { to } => to,
                Op::JumpIf { word, test, value, to } => {
                    if test.passes(words[word.index()], value) {
                        to
                    } else {
                        following
                    }
                }
                Op::JumpOdds { permille, to } => {
                    if dice() % 1000 < u64::from(permille) {
                        to
                    } else {
                        following
                    }
                }
                Op::WordSet { word, value } => {
                    words[word.index()] = value;
                    following
                }
                Op::WordAdd { word, value } => {
                    words[word.index()] = words[word.index()].wrapping_add(value);
                    following
                }
                Op::WordLoad { word } => {
                    self.remembered = words[word.index()];
                    following
                }
                Op::Exit | Op::ExitGroup => return op,
                _ => {
                    self.pc = following;
                    return op;
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Test, WordId};
    use schedlab_units::Duration;

    /// The work of each `Run` until the program ends, at most `limit` of them.
    fn walk(code: &[Op], limit: usize) -> Vec<u64> {
        let mut cursor = Cursor::new(Pc(0));
        let mut words = [0; 2];
        let mut works = Vec::new();
        while works.len() < limit {
            match cursor.next(code, &mut words, || 7) {
                Op::Run { work } => works.push(work.0),
                Op::Exit => break,
                other => panic!("{other:?} was not expected"),
            }
        }
        works
    }

    fn run(n: u64) -> Op {
        Op::Run { work: Duration(n) }
    }

    #[test]
    fn nested_loops_count_anew_each_time() {
        let code = [
            Op::Loop { times: 2, slot: 0, end: Pc(6) },
            run(1),
            Op::Loop { times: 3, slot: 1, end: Pc(4) },
            run(2),
            Op::EndLoop { times: 3, slot: 1, begin: Pc(2) },
            run(3),
            Op::EndLoop { times: 2, slot: 0, begin: Pc(0) },
            Op::Exit,
        ];
        assert_eq!(walk(&code, 99), [1, 2, 2, 2, 3, 1, 2, 2, 2, 3]);
    }

    #[test]
    fn a_loop_of_none_is_skipped_and_one_for_ever_goes_on() {
        let code = [
            Op::Loop { times: 0, slot: 0, end: Pc(2) },
            run(1),
            Op::EndLoop { times: 0, slot: 0, begin: Pc(0) },
            Op::Loop { times: FOREVER, slot: 0, end: Pc(5) },
            run(2),
            Op::EndLoop { times: FOREVER, slot: 0, begin: Pc(3) },
            Op::Exit,
        ];
        assert_eq!(walk(&code, 5), [2; 5]);
    }

    #[test]
    fn a_jump_out_of_a_loop_needs_no_unwinding() {
        let word = WordId(1);
        let code = [
            Op::Loop { times: FOREVER, slot: 0, end: Pc(4) },
            run(1),
            Op::WordAdd { word, value: 1 },
            Op::JumpIf { word, test: Test::Equal, value: 3, to: Pc(5) },
            Op::EndLoop { times: FOREVER, slot: 0, begin: Pc(0) },
            run(9),
            Op::Exit,
        ];
        assert_eq!(walk(&code, 99), [1, 1, 1, 9]);
    }

    #[test]
    fn odds_follow_the_dice() {
        let always = [Op::JumpOdds { permille: 8, to: Pc(2) }, run(1), run(2), Op::Exit];
        let never = [Op::JumpOdds { permille: 7, to: Pc(2) }, run(1), run(2), Op::Exit];
        assert_eq!(walk(&always, 99), [2]);
        assert_eq!(walk(&never, 99), [1, 2]);
    }
}
