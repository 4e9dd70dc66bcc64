//! Kernel commits that introduced the rules, for looking up a change by its commit.
//!
//! One commit may have introduced several rules; flipping one of them is then not the whole commit.

use serde::Serialize;

/// A commit and what it changed, in the words of kernel strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Commit {
    /// The first twelve digits of its name.
    pub id: &'static str,
    /// The first release with it.
    pub release: &'static str,
    /// What it does, in a sentence.
    pub sentence: &'static str,
    /// Parts of a kernel string that turn it on, on a kernel without it.
    pub parts: &'static [&'static str],
}

macro_rules! commits {
    ($($id:literal $release:literal $sentence:literal [$($part:literal)*];)*) => {
        /// Every commit that is known by its id.
        pub const COMMITS: &[Commit] = &[$(Commit { id: $id, release: $release, sentence: $sentence, parts: &[$($part),*] }),*];
    };
}

commits! {
    "de53fd7aedb1" "v5.4" "Slices of quota that a CPU holds no longer expire." ["BANDWIDTH_SLICES"];
    "0ddad21d3e99" "v5.6" "A write wakes one reader of a pipe, not all of them." ["PIPE_WAKE"];
    "2ebb17717550" "v5.8" "A wakee whose CPU is about to switch away from it is woken through the wake list." ["WAKE_LIST"];
    "3edecfef0285" "v5.9" "Of groups with as many idle CPUs, a fork takes the one of less utilization." ["FORK_TIE_UTIL"];
    "23e6082a522e" "v5.11" "A fork leaves its node once a quarter of its CPUs are busy." ["NUMA_IMBALANCE"];
    "16b0a7a1a0af" "v5.11" "The balancer evens out tasks among CPUs of one LLC." ["LLC_EVENS_TASKS"];
    "89aafd67f28c" "v5.15" "The wakee's previous CPU is remembered as recently used, not the waker's." ["RECENT_USED_CPU"];
    "51ce83ed523b" "v5.16" "A SCHED_IDLE task runs for a shorter time before a normal one preempts it." ["IDLE_MIN_GRANULARITY"];
    "66558b730f25" "v5.16" "Cores of x86 that share an L2 are a domain." ["CLS_LEVEL"];
    "c5b0a7eefc70" "v5.16" "Whether a newly idle CPU balances depends on what its domains cost." ["NEWIDLE_GATE"];
    "e496132ebedd" "v5.18" "The imbalance a node may have depends on its number of LLCs."
        ["NUMA_IMBALANCE" "LB_NUMA_IMBALANCE" "IMB_NUMA_NR"];
    "63304558ba5d" "v6.6" "The current task runs until its lag is zero or its slice is over." ["RUN_TO_PARITY"];
    "1528c661c24b" "v6.7" "A CPU updates the load of its group once in a millisecond at most." ["TG_LOAD_AVG_RATE_LIMIT"];
    "aa3ee4f0b754" "v6.15" "A synchronous wake-up does not count tasks whose dequeue is delayed." ["SYNC_MINUS_DELAYED"];
    "2ae891b82695" "v6.15" "The base slice is a little shorter, so that no task runs for a tick more." ["base_slice_ns"];
}

/// The commit with an id, of which at least seven digits are given.
pub fn commit(name: &str) -> Option<&'static Commit> {
    let name = name.to_ascii_lowercase();
    let is_hex = name.len() >= 7 && name.len() <= 40 && name.chars().all(|c| c.is_ascii_hexdigit());
    COMMITS.iter().find(|commit| is_hex && (name.starts_with(commit.id) || commit.id.starts_with(&name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rulebook::Rulebook;
    use schedlab_sched::Kernel;

    #[test]
    fn every_commit_names_rules_that_there_are() {
        let book = Rulebook::of(&Kernel::preset(0));
        for commit in COMMITS {
            assert_eq!(commit.id.len(), 12);
            for part in commit.parts {
                assert!(book.entry(part).is_some(), "{}: {part}", commit.id);
            }
        }
    }

    #[test]
    fn seven_digits_or_all_of_them_name_a_commit() {
        assert_eq!(commit("e496132").unwrap().parts.len(), 3);
        assert_eq!(commit("e496132ebedd6d4b").unwrap().id, "e496132ebedd");
        assert_eq!(commit("e49613"), None);
        assert_eq!(commit("e496133"), None);
    }
}
