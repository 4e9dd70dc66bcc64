//! Relations between programs: forked programs, parties of barriers, readers and writers.

use std::collections::BTreeSet;

use super::{Fault, Finding, Site};
use crate::{BarrierId, Op, ProgramId, SpecId, Start, Workload};

pub(super) fn check(w: &Workload) -> Result<(), Finding> {
    forks(w)?;
    barriers(w)?;
    channels(w)
}

/// The programs with their place in the code and their ops.
fn programs(w: &Workload) -> impl Iterator<Item = (usize, &[Op])> {
    (0..w.programs.len() as u32).map(|id| (w.programs[id as usize].entry.index(), w.ops(ProgramId(id))))
}

fn forks(w: &Workload) -> Result<(), Finding> {
    for (entry, ops) in programs(w) {
        let mut forked = BTreeSet::new();
        for op in ops {
            if let Op::Fork { task } = op {
                forked.insert(*task);
            }
        }
        for (i, &op) in ops.iter().enumerate() {
            let fault = match op {
                Op::Fork { task } if w.task(task).start != Start::ByFork => {
                    Fault::ForkOfRoot { task: w.task_name(task).into_owned() }
                }
                Op::Join { task } if !forked.contains(&task) => {
                    Fault::JoinOfStranger { task: w.task_name(task).into_owned() }
                }
                _ => continue,
            };
            return Err(Finding::at_op(entry + i, fault));
        }
    }
    Ok(())
}

fn barriers(w: &Workload) -> Result<(), Finding> {
    let visits: Vec<BTreeSet<BarrierId>> = programs(w)
        .map(|(_, ops)| {
            let visit = |op: &Op| if let Op::Barrier { barrier } = op { Some(*barrier) } else { None };
            ops.iter().filter_map(visit).collect()
        })
        .collect();
    let mut arriving = vec![0u64; w.objects.barriers.len()];
    for (task, lives) in w.tasks.iter().zip(lives(w)) {
        for barrier in &visits[task.program.index()] {
            let sum = &mut arriving[barrier.index()];
            *sum = sum.saturating_add(lives);
        }
    }
    for (barrier, arriving) in w.objects.barriers.iter().zip(arriving) {
        if arriving > 0 && arriving < u64::from(barrier.parties) {
            let at = Site::Part(format!("barrier \"{}\"", barrier.name));
            let fault = Fault::BarrierNeverFull { parties: barrier.parties, arriving };
            return Err(Finding { fault, at });
        }
    }
    Ok(())
}

/// The largest number of tasks that each spec makes in a run; `u64::MAX` if it is unbounded.
fn lives(w: &Workload) -> Vec<u64> {
    let roots: Vec<u64> = w.tasks.iter().map(|task| u64::from(task.start != Start::ByFork)).collect();
    let forked: Vec<Vec<(SpecId, u64)>> = programs(w).map(|(_, ops)| forked_by(ops)).collect();
    let mut lives = roots.clone();
    // Each pass carries the counts one generation further. What still grows after
    // as many passes as there are specs is forked in a circle.
    for pass in 0..=w.tasks.len() {
        let mut next = roots.clone();
        for (parent, task) in w.tasks.iter().enumerate() {
            for &(child, times) in &forked[task.program.index()] {
                let born = lives[parent].saturating_mul(times);
                next[child.index()] = next[child.index()].saturating_add(born);
            }
        }
        if next == lives {
            break;
        }
        let endless = pass == w.tasks.len();
        for (now, next) in lives.iter_mut().zip(next) {
            *now = if endless && *now != next { u64::MAX } else { next };
        }
    }
    lives
}

/// The specs a program forks, each with how often; inside a loop the number is unbounded.
fn forked_by(ops: &[Op]) -> Vec<(SpecId, u64)> {
    let mut depth = 0;
    let mut forked = Vec::new();
    for op in ops {
        match *op {
            Op::Loop { .. } => depth += 1,
            Op::EndLoop { .. } => depth -= 1,
            Op::Fork { task } => forked.push((task, if depth == 0 { 1 } else { u64::MAX })),
            _ => {}
        }
    }
    forked
}

fn channels(w: &Workload) -> Result<(), Finding> {
    let count = w.objects.channels.len();
    let (mut read, mut written) = (vec![false; count], vec![false; count]);
    for op in &w.code {
        match *op {
            Op::Read { channel, .. } => read[channel.index()] = true,
            Op::Write { channel, .. } => written[channel.index()] = true,
            _ => {}
        }
    }
    for (index, channel) in w.objects.channels.iter().enumerate() {
        let (done, missing) = match (read[index], written[index]) {
            (true, false) => ("read", "written"),
            (false, true) => ("written", "read"),
            _ => continue,
        };
        let fault = Fault::OneEnded { done, missing };
        return Err(Finding { fault, at: Site::Part(format!("channel \"{}\"", channel.name)) });
    }
    Ok(())
}
