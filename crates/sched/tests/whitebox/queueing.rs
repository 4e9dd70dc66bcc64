//! Each recorded step of queueing, repeated.
//!
//! - charge: vruntime and deadline of a running task, from its run times alone;
//! - leave: the lag (and the rest of its deadline) with which a task had left a queue;
//! - requeue: the lag of a task woken while its dequeue was delayed;
//! - place: where place_entity() puts a task;
//! - fork: where CFS puts a new one, as a distance from the floor;
//! - preempt: whether a wake-up requests a reschedule;
//! - pick: which task is chosen;
//! - slice: whether charging a task, or under CFS a tick, ends its slice.

use std::collections::BTreeMap;
use std::fmt::Write;

use expect_test::expect;

use crate::recording::Recording;
use crate::shadow::{Shadow, Tally};

#[test]
fn every_step_of_queueing_is_taken_as_recorded() {
    let mut sums: BTreeMap<(String, &str), Tally> = BTreeMap::new();
    let mut differences = Vec::new();
    for recording in Recording::all() {
        let kernel = recording.kernel.name.split('+').next().unwrap().to_string();
        let mut shadow = Shadow::new(&recording);
        for event in &recording.events {
            shadow.follow(event);
        }
        for (step, tally) in std::mem::take(&mut shadow.tallies) {
            let sum = sums.entry((kernel.clone(), step)).or_default();
            sum.agree += tally.agree;
            sum.differ += tally.differ;
            for (why, nr) in tally.undecided {
                *sum.undecided.entry(why).or_default() += nr;
            }
        }
        differences.append(&mut shadow.differences);
    }
    for difference in &differences {
        println!("{difference}");
    }
    let mut table = String::new();
    for ((kernel, step), Tally { agree, differ, undecided }) in &sums {
        let all = agree + differ;
        write!(table, "{kernel} {step}: {agree} of {all}").unwrap();
        for (why, nr) in undecided {
            write!(table, "; {nr} undecided: {why}").unwrap();
        }
        writeln!(table).unwrap();
        assert!(differ * 1000 <= all, "{kernel} {step}: {differ} of {all} differ");
    }
    expect![[r#"
        6.1 charge: 5042 of 5042; 2 undecided: first seen
        6.1 fork: 2 of 2
        6.1 pick: 10682 of 10682; 905 undecided: a queued task was not seen entering
        6.1 place: 10050 of 10050
        6.1 preempt: 1735 of 1735
        6.1 slice: 1664 of 1664
        6.12 charge: 6806 of 6806; 2 undecided: first seen
        6.12 leave: 9542 of 9542; 194 undecided: not seen leaving
        6.12 pick: 13468 of 13468; 17 undecided: a queued task was not seen entering; 1 undecided: the running task was not seen yet
        6.12 place: 11457 of 11457
        6.12 preempt: 1922 of 1922
        6.12 requeue: 9 of 9
        6.12 slice: 15411 of 15411; 18 undecided: a queued task was not seen entering
        7.2 charge: 7578 of 7578; 6 undecided: first seen
        7.2 leave: 9677 of 9677; 280 undecided: not seen leaving
        7.2 pick: 15316 of 15316; 49 undecided: a queued task was not seen entering
        7.2 place: 11751 of 11751; 4 undecided: the running task was not seen yet
        7.2 preempt: 2068 of 2068
        7.2 requeue: 82 of 82
        7.2 slice: 17560 of 17560; 53 undecided: a queued task was not seen entering
    "#]].assert_eq(&table);
}
