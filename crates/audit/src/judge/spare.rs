//! Lists for reuse.
//!
//! Every third event leads to a verdict, and each verdict lists the possible choices. Most are counted and dropped, so
//! their lists come back here instead of being allocated again.

use std::mem::take;

use schedlab_sched::{Placement, SeId};
use schedlab_topology::CpuId;

use crate::judge::possibilities::Possibilities;
use crate::report::verdict::Possible;
use crate::unknown::loads::ForkTables;
use crate::unknown::virtual_time::Waiting;

/// Maximum number of lists of a kind that are kept; a few are in use at a time.
const LISTS_MAX: usize = 64;

/// Emptied lists.
#[derive(Default)]
pub struct Spare {
    possible: Vec<Vec<Possible>>,
    placements: Vec<Vec<Placement>>,
    cpus: Vec<Vec<CpuId>>,
    /// The other waiting tasks where one arrives, with their errors.
    pub others: Vec<(SeId, i64)>,
    /// The entities waiting in queues, while looking for the first.
    pub waiting: Vec<Waiting>,
    /// The facts with which a fork is evaluated.
    pub fork_tables: ForkTables,
}

impl Spare {
    /// An empty list.
    pub fn list(&mut self) -> Vec<Possible> {
        self.possible.pop().unwrap_or_default()
    }

    /// Empty lists of possibilities.
    pub fn possibilities(&mut self) -> Possibilities {
        let placements = self.placements.pop().unwrap_or_default();
        let around = [(); 2].map(|()| self.cpus.pop().unwrap_or_default());
        Possibilities { list: self.list(), placements, around, ..Possibilities::default() }
    }

    /// Takes back a list.
    pub fn give_back(&mut self, list: Vec<Possible>) {
        keep(&mut self.possible, list);
    }

    /// Takes back the lists.
    pub fn give_back_all(&mut self, mut possibilities: Possibilities) {
        self.empty(&mut possibilities);
    }

    /// Takes back the lists but leaves the struct in place.
    pub fn empty(&mut self, possibilities: &mut Possibilities) {
        self.give_back(take(&mut possibilities.list));
        keep(&mut self.placements, take(&mut possibilities.placements));
        possibilities.around.iter_mut().for_each(|cpus| keep(&mut self.cpus, take(cpus)));
    }
}

fn keep<T>(lists: &mut Vec<Vec<T>>, mut list: Vec<T>) {
    if list.capacity() > 0 && lists.len() < LISTS_MAX {
        list.clear();
        lists.push(list);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_comes_back_empty_and_with_its_room() {
        let mut lists = vec![Vec::with_capacity(8)];
        keep(&mut lists, vec![1, 2, 3]);
        keep(&mut lists, Vec::new());
        let again = lists.pop().expect("the one that had room");
        assert!(again.is_empty() && again.capacity() >= 3);
        assert_eq!(lists.len(), 1, "what has no room is not worth keeping");
    }
}
