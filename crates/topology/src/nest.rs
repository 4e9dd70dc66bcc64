//! Sets of CPUs as a tree, each under the narrowest that contains it.

use crate::CpuMask;

/// The relation of a set to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parent {
    /// No set contains it.
    None,
    /// The narrowest that contains it; of equal sets, each contains the next.
    Set(usize),
    /// It shares some but not all CPUs with this set, and has others.
    Overlaps(usize),
}

/// The parent of each set. Sets without CPUs have none; overlapping sets contain none.
pub(crate) fn nest<'a>(sets: impl Iterator<Item = &'a CpuMask>) -> Vec<Parent> {
    let sets: Vec<&CpuMask> = sets.collect();
    let nr_cpus = sets.iter().flat_map(|set| set.iter()).max().map_or(0, |cpu| cpu.index() + 1);
    let mut order: Vec<usize> = (0..sets.len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(sets[i].weight()));
    let mut narrowest: Vec<Option<usize>> = vec![None; nr_cpus];
    let mut parents = vec![Parent::None; sets.len()];
    for i in order {
        let Some(first) = sets[i].first() else { continue };
        let parent = narrowest[first.index()];
        // Sets are sorted from the widest, so another set with a CPU of this one only overlaps it.
        let mut holders = sets[i].iter().map(|cpu| narrowest[cpu.index()]);
        match holders.find(|holder| *holder != parent) {
            None => {
                parents[i] = parent.map_or(Parent::None, Parent::Set);
                sets[i].iter().for_each(|cpu| narrowest[cpu.index()] = Some(i));
            }
            Some(other) => {
                let narrower = [parent, other].into_iter().flatten().min_by_key(|&set| sets[set].weight());
                parents[i] = Parent::Overlaps(narrower.expect("two different holders are not both none"));
            }
        }
    }
    parents
}

#[cfg(test)]
mod tests {
    use super::*;
    use Parent::{Overlaps, Set};

    #[track_caller]
    fn check(lists: &[&str], parents: &[Parent]) {
        let masks: Vec<CpuMask> = lists.iter().map(|list| CpuMask::parse_list(list, 16).unwrap()).collect();
        assert_eq!(nest(masks.iter()), parents);
    }

    #[test]
    fn sets_hang_under_the_narrowest_that_holds_them() {
        check(&["0-7", "0-3", "4-7", "4-5"], &[Parent::None, Set(0), Set(0), Set(2)]);
        check(&["0-1", "0-7", "0-3"], &[Set(2), Parent::None, Set(1)]);
    }

    #[test]
    fn equal_sets_hold_each_other_in_their_order() {
        check(&["0-3", "0-3", "1", ""], &[Parent::None, Set(0), Set(1), Parent::None]);
    }

    #[test]
    fn sets_that_cross_are_named() {
        check(&["0-7", "0-3", "3-4"], &[Parent::None, Set(0), Overlaps(1)]);
        check(&["0-3", "2-5"], &[Parent::None, Overlaps(0)]);
    }
}
