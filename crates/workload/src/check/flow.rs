//! Inside one program: loops nest, jumps stay inside, time passes, locks balance.
//!
//! Locks are followed along all paths through the program at once: at each op there is one set of held
//! mutexes, and two paths that meet must agree on it.

use super::{Fault, Finding};
use crate::{FOREVER, LOOP_DEPTH_MAX, MutexId, Op, Pc, Program, Workload};

pub(super) fn check(w: &Workload, program: &Program) -> Result<(), Finding> {
    let first = program.entry.index();
    let end = first + program.len as usize;
    if program.len == 0 || end > w.code.len() || w.code[end - 1] != Op::Exit {
        return Err(Finding::at_op(first.min(w.code.len()), Fault::NoExit));
    }
    let flow = Flow { first, code: &w.code[first..end] };
    let loops = flow.loops()?;
    flow.jumps(&loops)?;
    flow.time_passes()?;
    flow.counting_is_short()?;
    flow.locks(w)
}

/// Steps that a loop may take without any time passing: a second or so of the simulating computer's time.
const INSTANT_STEPS_MAX: u64 = 100_000_000;

struct Flow<'a> {
    first: usize,
    code: &'a [Op],
}

impl Flow<'_> {
    fn fail<T>(&self, op: usize, fault: Fault) -> Result<T, Finding> {
        Err(Finding::at_op(self.first + op, fault))
    }

    /// The op's place in this program, if it is there.
    fn inside(&self, pc: Pc) -> Option<usize> {
        pc.index().checked_sub(self.first).filter(|&op| op < self.code.len())
    }

    /// For each op the loops around it, outermost first. The beginning of a loop counts as outside, its end
    /// as inside: a jump may lead to its beginning but not to its end.
    fn loops(&self) -> Result<Vec<Vec<usize>>, Finding> {
        let mut open: Vec<usize> = Vec::new();
        let mut around = Vec::with_capacity(self.code.len());
        for (i, &op) in self.code.iter().enumerate() {
            match op {
                Op::Loop { times, slot, end } => {
                    if open.len() >= LOOP_DEPTH_MAX {
                        return self.fail(i, Fault::TooDeep { depth: open.len() + 1, max: LOOP_DEPTH_MAX });
                    }
                    let closes = self.inside(end).map(|end| self.code[end]);
                    if usize::from(slot) != open.len()
                        || closes != Some(Op::EndLoop { times, slot, begin: Pc((self.first + i) as u32) })
                    {
                        return self.fail(i, Fault::Unbalanced);
                    }
                    around.push(open.clone());
                    open.push(i);
                }
                Op::EndLoop { begin, .. } => {
                    around.push(open.clone());
                    if open.pop().map(|begin| self.first + begin) != Some(begin.index()) {
                        return self.fail(i, Fault::Unbalanced);
                    }
                }
                _ => around.push(open.clone()),
            }
        }
        if let Some(&begin) = open.last() {
            return self.fail(begin, Fault::Unbalanced);
        }
        Ok(around)
    }

    fn jumps(&self, around: &[Vec<usize>]) -> Result<(), Finding> {
        for (i, &op) in self.code.iter().enumerate() {
            let (Op::Jump { to } | Op::JumpIf { to, .. } | Op::JumpOdds { to, .. }) = op else { continue };
            let fits = self.inside(to).is_some_and(|to| around[i].starts_with(&around[to]));
            if !fits {
                return self.fail(i, Fault::BadJump);
            }
        }
        Ok(())
    }

    /// Where the program can go from an op.
    fn next(&self, i: usize) -> impl Iterator<Item = usize> + '_ {
        let local = |pc: Pc| pc.index() - self.first;
        let (one, other) = match self.code[i] {
            Op::Exit | Op::ExitGroup => (None, None),
            Op::Jump { to } => (Some(local(to)), None),
            Op::JumpIf { to, .. } | Op::JumpOdds { to, .. } => (Some(i + 1), Some(local(to))),
            Op::Loop { times: 0, end, .. } => (Some(local(end) + 1), None),
            Op::EndLoop { begin, .. } => {
                let begin = local(begin);
                let again = begin + 1;
                match self.code[begin] {
                    Op::Loop { times: FOREVER, .. } => (Some(again), None),
                    _ => (Some(i + 1), Some(again)),
                }
            }
            _ => (Some(i + 1), None),
        };
        one.into_iter().chain(other)
    }

    /// No path leads back to an op through ops that take no time, except in loops that count.
    fn time_passes(&self) -> Result<(), Finding> {
        #[derive(Clone, Copy, PartialEq)]
        enum Seen {
            No,
            OnTheWay,
            Done,
        }
        let mut seen = vec![Seen::No; self.code.len()];
        for start in 0..self.code.len() {
            let mut way: Vec<(usize, Vec<usize>)> = Vec::new();
            let mut enter = Some(start);
            loop {
                if let Some(i) = enter.take()
                    && self.code[i].is_instant()
                    && seen[i] == Seen::No
                {
                    seen[i] = Seen::OnTheWay;
                    way.push((i, self.instant_next(i)));
                }
                let Some((i, rest)) = way.last_mut() else { break };
                match rest.pop() {
                    Some(next) if seen[next] == Seen::OnTheWay => return self.fail(next, Fault::NoTime),
                    Some(next) => enter = Some(next),
                    None => {
                        seen[*i] = Seen::Done;
                        way.pop();
                    }
                }
            }
        }
        Ok(())
    }

    /// As [`next`](Flow::next), without the back edge of a loop that counts.
    fn instant_next(&self, i: usize) -> Vec<usize> {
        let counted =
            |begin: Pc| !matches!(self.code[begin.index() - self.first], Op::Loop { times: FOREVER, .. });
        match self.code[i] {
            Op::EndLoop { begin, .. } if counted(begin) => vec![i + 1],
            _ => self.next(i).collect(),
        }
    }

    /// A counting loop whose rounds may take no time does not have too many steps.
    fn counting_is_short(&self) -> Result<(), Finding> {
        let mut steps = vec![0u64; self.code.len()];
        // Inner loops begin after the loops around them.
        for (begin, &op) in self.code.iter().enumerate().rev() {
            let Op::Loop { times, end, .. } = op else { continue };
            let end = end.index() - self.first;
            if times == FOREVER || times == 0 || !self.is_instant_way(begin + 1, end) {
                continue;
            }
            let mut round = 0u64;
            let mut at = begin + 1;
            while at <= end {
                round = round.saturating_add(steps[at].max(1));
                at = match self.code[at] {
                    Op::Loop { end, .. } => end.index() - self.first + 1,
                    _ => at + 1,
                };
            }
            steps[begin] = round.saturating_mul(u64::from(times));
            if steps[begin] > INSTANT_STEPS_MAX {
                let fault = Fault::TooFar { times, steps: steps[begin], max: INSTANT_STEPS_MAX };
                return self.fail(begin, fault);
            }
        }
        Ok(())
    }

    /// Whether ops that take no time lead from one op to a later one.
    fn is_instant_way(&self, from: usize, to: usize) -> bool {
        let mut seen = vec![false; self.code.len()];
        let mut todo = vec![from];
        while let Some(i) = todo.pop() {
            if i == to {
                return true;
            }
            if i < self.code.len() && self.code[i].is_instant() && !std::mem::replace(&mut seen[i], true) {
                todo.extend(self.instant_next(i));
            }
        }
        false
    }

    fn locks(&self, w: &Workload) -> Result<(), Finding> {
        let name = |mutex: MutexId| w.objects.mutexes[mutex.index()].name.clone();
        let mut held: Vec<Option<Vec<MutexId>>> = vec![None; self.code.len()];
        held[0] = Some(Vec::new());
        let mut todo = vec![0];
        while let Some(i) = todo.pop() {
            let mut now = held[i].clone().expect("only ops that are reached are looked at");
            match self.code[i] {
                Op::Lock { mutex } if now.contains(&mutex) => {
                    return self.fail(i, Fault::LockedTwice { mutex: name(mutex) });
                }
                Op::Lock { mutex } => {
                    now.push(mutex);
                    now.sort_unstable();
                }
                Op::Unlock { mutex } | Op::CondWait { mutex, .. } if !now.contains(&mutex) => {
                    return self.fail(i, Fault::NotHeld { mutex: name(mutex) });
                }
                Op::Unlock { mutex } => now.retain(|&m| m != mutex),
                Op::Exit => {
                    if let Some(&mutex) = now.first() {
                        return self.fail(i, Fault::HeldAtExit { mutex: name(mutex) });
                    }
                }
                _ => {}
            }
            for next in self.next(i) {
                match &held[next] {
                    None => {
                        held[next] = Some(now.clone());
                        todo.push(next);
                    }
                    Some(before) if *before != now => {
                        let differs = |m: &&MutexId| before.contains(m) != now.contains(m);
                        let mutex = *before.iter().chain(&now).find(differs).expect("the sets differ");
                        let anew = next <= i && now.contains(&mutex);
                        let mutex = name(mutex);
                        let fault = if anew { Fault::HeldAnew { mutex } } else { Fault::MaybeHeld { mutex } };
                        return self.fail(i, fault);
                    }
                    Some(_) => {}
                }
            }
        }
        Ok(())
    }
}
