//! The shape of a queue's red-black tree, where that decides which slice counts as the shortest.
//!
//! Each node of the kernel's tree stores the smallest virtual time and the shortest slice of its subtree. v6.12 forgets the
//! latter when the top of a subtree changes: a rotation, or an entity that takes the place of one that leaves, gets only
//! the virtual time of the old top. Its slice is as before until something changes below it.
//!
//! ```text
//!    slices        a:1                     b:2      the shortest is said to be 2
//!    of a, b, c       \     rotates to    /   \
//!                     b:2               a:1   c:3
//!                        \
//!                        c:3
//! ```
//!
//! So the shortest slice of a queue depends on all that came and went since it was last empty. Only entities of groups are
//! given it: that of the queue below, or, if the group sleeps but stays queued, that of the queue in which it is. So there are no
//! such trees without groups.
//!
//! Kernel: RB_DECLARE_CALLBACKS(), include/linux/rbtree_augmented.h, __rb_insert(), ____rb_erase_color(), lib/rbtree.c, v6.12.

use alloc::vec::Vec;

use crate::cfs_rq::before;
use crate::{Queued, SeId};

/// No node.
const NIL: u32 = u32::MAX;

/// The sides of a node.
const LEFT: usize = 0;
const RIGHT: usize = 1;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    entry: Queued,
    min_vruntime: u64,
    min_slice: u64,
    parent: u32,
    child: [u32; 2],
    red: bool,
}

/// A tree of entities in order of key; equal keys in order of arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SliceTree {
    nodes: Vec<Node>,
    root: u32,
}

impl SliceTree {
    pub(crate) fn new() -> SliceTree {
        SliceTree { nodes: Vec::new(), root: NIL }
    }

    /// The slice that the top node stores.
    pub(crate) fn min_slice(&self) -> Option<u64> {
        (self.root != NIL).then(|| self.at(self.root).min_slice)
    }

    #[inline]
    fn at(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    #[inline]
    fn at_mut(&mut self, node: u32) -> &mut Node {
        &mut self.nodes[node as usize]
    }

    #[inline]
    fn is_red(&self, node: u32) -> bool {
        node != NIL && self.at(node).red
    }

    fn find(&self, se: SeId) -> u32 {
        self.nodes.iter().position(|node| node.entry.se == se).expect("the entity is in the tree") as u32
    }

    /// Sets what a node stores of its subtree. Whether that was right before.
    ///
    /// Kernel: min_vruntime_update(), kernel/sched/fair.c, v6.12.
    fn update(&mut self, node: u32) -> bool {
        let own = self.at(node);
        let (mut vruntime, mut slice) = (own.entry.vruntime, own.entry.slice);
        for child in own.child {
            if child != NIL {
                let child = self.at(child);
                vruntime = if before(child.min_vruntime, vruntime) { child.min_vruntime } else { vruntime };
                slice = slice.min(child.min_slice);
            }
        }
        let own = self.at_mut(node);
        let stored = (own.min_vruntime, own.min_slice);
        (own.min_vruntime, own.min_slice) = (vruntime, slice);
        stored == (vruntime, slice)
    }

    /// Updates nodes upwards until one was right before, or `stop` is reached.
    fn propagate(&mut self, mut node: u32, stop: u32) {
        while node != stop && !self.update(node) {
            node = self.at(node).parent;
        }
    }

    /// Puts `new` where a parent, or the tree, has `old`.
    fn replace(&mut self, parent: u32, old: u32, new: u32) {
        match parent {
            NIL => self.root = new,
            _ => {
                let side = usize::from(self.at(parent).child[RIGHT] == old);
                self.at_mut(parent).child[side] = new;
            }
        }
        if new != NIL {
            self.at_mut(new).parent = parent;
        }
    }

    /// A node goes down on one side, and its child on the other side takes its place. It gets the smallest virtual time of the
    /// subtree, but not the shortest slice.
    fn rotate(&mut self, old: u32, side: usize) {
        let new = self.at(old).child[1 - side];
        let (parent, inner) = (self.at(old).parent, self.at(new).child[side]);
        self.replace(parent, old, new);
        self.at_mut(old).child[1 - side] = inner;
        if inner != NIL {
            self.at_mut(inner).parent = old;
        }
        self.at_mut(new).child[side] = old;
        self.at_mut(old).parent = new;
        self.copy(old, new);
        self.update(old);
    }

    fn copy(&mut self, old: u32, new: u32) {
        self.at_mut(new).min_vruntime = self.at(old).min_vruntime;
    }

    /// Adds an entity.
    pub(crate) fn insert(&mut self, entry: Queued) {
        let node = self.nodes.len() as u32;
        let (mut parent, mut side, mut next) = (NIL, LEFT, self.root);
        while next != NIL {
            (parent, side) = (next, usize::from(!before(entry.key, self.at(next).entry.key)));
            next = self.at(next).child[side];
        }
        let (min_vruntime, min_slice) = (entry.vruntime, entry.slice);
        self.nodes.push(Node { entry, min_vruntime, min_slice, parent, child: [NIL; 2], red: true });
        match parent {
            NIL => self.root = node,
            _ => self.at_mut(parent).child[side] = node,
        }
        self.propagate(parent, NIL);
        self.balance_insertion(node);
    }

    /// No red node has a red parent, or is the top.
    fn balance_insertion(&mut self, mut node: u32) {
        loop {
            let mut parent = self.at(node).parent;
            if parent == NIL {
                self.at_mut(node).red = false;
                return;
            }
            if !self.at(parent).red {
                return;
            }
            let above = self.at(parent).parent;
            let side = usize::from(self.at(above).child[RIGHT] == parent);
            let uncle = self.at(above).child[1 - side];
            if self.is_red(uncle) {
                (self.at_mut(uncle).red, self.at_mut(parent).red) = (false, false);
                self.at_mut(above).red = true;
                node = above;
                continue;
            }
            if node == self.at(parent).child[1 - side] {
                self.rotate(parent, side);
                parent = node;
            }
            (self.at_mut(parent).red, self.at_mut(above).red) = (false, true);
            self.rotate(above, 1 - side);
            return;
        }
    }

    /// Removes an entity.
    pub(crate) fn remove(&mut self, se: SeId) {
        let node = self.find(se);
        let lacks = self.unlink(node);
        if lacks != NIL {
            self.balance_removal(lacks);
        }
        self.fill(node);
    }

    /// Takes a node out; one without a left child takes its place. The node below which a black one is missing now.
    ///
    /// Kernel: __rb_erase_augmented(), include/linux/rbtree_augmented.h, v6.12.
    fn unlink(&mut self, node: u32) -> u32 {
        let (own, red) = (self.at(node).clone(), self.at(node).red);
        let [left, right] = own.child;
        if left == NIL || right == NIL {
            let child = if left == NIL { right } else { left };
            self.replace(own.parent, node, child);
            if child != NIL {
                self.at_mut(child).red = red;
            }
            self.propagate(own.parent, NIL);
            return if child == NIL && !red { own.parent } else { NIL };
        }
        let (mut parent, mut next) = (right, right);
        while self.at(next).child[LEFT] != NIL {
            (parent, next) = (next, self.at(next).child[LEFT]);
        }
        let below = self.at(next).child[RIGHT];
        let is_child = next == right;
        if !is_child {
            self.at_mut(parent).child[LEFT] = below;
            self.at_mut(next).child[RIGHT] = right;
            self.at_mut(right).parent = next;
        }
        self.copy(node, next);
        if !is_child {
            self.propagate(parent, next);
        }
        self.at_mut(next).child[LEFT] = left;
        self.at_mut(left).parent = next;
        let lacks = match below {
            NIL if !self.at(next).red => parent,
            NIL => NIL,
            _ => {
                let below = self.at_mut(below);
                (below.parent, below.red) = (parent, false);
                NIL
            }
        };
        self.replace(own.parent, node, next);
        self.at_mut(next).red = red;
        self.propagate(next, NIL);
        lacks
    }

    /// All paths down from a node have as many black nodes again.
    fn balance_removal(&mut self, mut parent: u32) {
        let mut node = NIL;
        loop {
            let side = usize::from(self.at(parent).child[RIGHT] == node);
            let mut sibling = self.at(parent).child[1 - side];
            if self.at(sibling).red {
                (self.at_mut(sibling).red, self.at_mut(parent).red) = (false, true);
                self.rotate(parent, side);
                sibling = self.at(parent).child[1 - side];
            }
            let (near, far) = (self.at(sibling).child[side], self.at(sibling).child[1 - side]);
            if !self.is_red(far) {
                if !self.is_red(near) {
                    self.at_mut(sibling).red = true;
                    if core::mem::take(&mut self.at_mut(parent).red) {
                        return;
                    }
                    (node, parent) = (parent, self.at(parent).parent);
                    if parent == NIL {
                        return;
                    }
                    continue;
                }
                self.rotate(sibling, 1 - side);
                sibling = near;
            }
            let outer = self.at(sibling).child[1 - side];
            self.at_mut(outer).red = false;
            self.at_mut(sibling).red = core::mem::take(&mut self.at_mut(parent).red);
            self.rotate(parent, side);
            return;
        }
    }

    /// The last node moves to a free place.
    fn fill(&mut self, place: u32) {
        let last = self.nodes.len() as u32 - 1;
        if place != last {
            let moved = self.at(last).clone();
            self.replace(moved.parent, last, place);
            for child in moved.child {
                if child != NIL {
                    self.at_mut(child).parent = place;
                }
            }
        }
        self.nodes.swap_remove(place as usize);
    }

    /// Sets the slice of an entity, or only updates what depends on it.
    pub(crate) fn set_slice(&mut self, se: SeId, slice: u64) {
        let node = self.find(se);
        self.at_mut(node).entry.slice = slice;
        self.propagate(node, NIL);
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;
    use alloc::vec::Vec;

    use expect_test::expect;
    use schedlab_topology::CpuId;

    use super::{NIL, SliceTree};
    use crate::cfs_rq::before;
    use crate::drawing::by_kernel;
    use crate::lab::{Lab, MS, Random};
    use crate::{NICE_0_LOAD, NewTask, Policy, Queued, SeId, TgId};

    fn entry(se: u32, key: u64, vruntime: u64, slice: u64) -> Queued {
        Queued { key, vruntime, slice, se: SeId(se) }
    }

    #[test]
    fn a_rotation_hides_the_shortest_slice_until_something_changes_below() {
        let mut tree = SliceTree::new();
        for n in 1..=3 {
            tree.insert(entry(n, u64::from(n), 0, u64::from(n)));
        }
        assert_eq!(tree.min_slice(), Some(2), "the top was alone with the third before the rotation");
        tree.set_slice(SeId(1), 1);
        assert_eq!(tree.min_slice(), Some(2), "its own subtree has not changed");
        tree.set_slice(SeId(2), 2);
        assert_eq!(tree.min_slice(), Some(1), "the top looks again");
        tree.remove(SeId(2));
        assert_eq!(tree.min_slice(), Some(1));
        tree.remove(SeId(1));
        tree.remove(SeId(3));
        assert_eq!(tree.min_slice(), None);
    }

    /// The number of black nodes on each way down; asserts the rules of such trees, and pushes the entities in order.
    fn black(tree: &SliceTree, node: u32, parent: u32, order: &mut Vec<Queued>) -> usize {
        if node == NIL {
            return 0;
        }
        let own = tree.at(node);
        assert_eq!(own.parent, parent);
        assert!(!own.red || own.child.iter().all(|&child| !tree.is_red(child)), "red above red");
        let left = black(tree, own.child[0], node, order);
        order.push(own.entry);
        let right = black(tree, own.child[1], node, order);
        assert_eq!(left, right, "as many black nodes on both sides");
        let below = own.child.iter().filter(|&&child| child != NIL).map(|&child| tree.at(child).min_vruntime);
        let least = below.fold(own.entry.vruntime, |a, b| if before(b, a) { b } else { a });
        assert_eq!(own.min_vruntime, least, "the virtual time is always right");
        left + usize::from(!own.red)
    }

    #[test]
    fn it_stays_a_red_black_tree_in_order_of_keys_and_arrival() {
        let mut random = Random(11);
        let (mut tree, mut there) = (SliceTree::new(), Vec::<Queued>::new());
        let (mut wrong, mut most) = (0, 0);
        for n in 0..5_000 {
            let grows = (n / 100) % 2 == 0;
            if there.is_empty() || random.below(3) > u64::from(!grows) {
                let new = entry(n, random.below(50), random.below(1000), 1 + random.below(40));
                tree.insert(new);
                let at = there.partition_point(|q| q.key <= new.key);
                there.insert(at, new);
            } else {
                let gone = there.remove(random.below(there.len() as u64) as usize);
                tree.remove(gone.se);
            }
            let mut order = Vec::new();
            black(&tree, tree.root, NIL, &mut order);
            assert_eq!(order, there);
            wrong += usize::from(tree.min_slice() != there.iter().map(|q| q.slice).min());
            most = most.max(there.len());
        }
        expect!["wrong 163 times of 5000, up to 106 entities"]
            .assert_eq(&format!("wrong {wrong} times of 5000, up to {most} entities"));
    }

    /// The slice of a group's entity, with tasks of 1, 2 and 3 ms behind one of 9 ms.
    #[test]
    fn a_group_misses_its_shortest_slice_in_v6_12() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x1").without_ticks();
            let tg = lab.sched.new_group(TgId::ROOT, NICE_0_LOAD, CpuId(0), lab.time());
            for (name, ms) in [("runs", 9), ("a", 1), ("b", 2), ("c", 3)] {
                lab.fork(name, 0, NewTask { tg, slice: Some(ms * MS), policy: Policy::Batch, ..lab.spec() });
            }
            let (_, group) = lab.sched.made_on_cpu(tg, CpuId(0));
            let slice = group.map_or(0, |se| lab.sched.se(se).slice);
            let running = String::from(lab.running(0));
            format!("{} us, {running}", slice / 1000)
        });
        expect![[r#"
            v4.13..v6.3: 0 us, runs
            v6.10: 750 us, runs
            v6.12: 2000 us, runs
            v7.2: 1000 us, runs
            v7.3: 0 us, runs"#]]
        .assert_eq(&found);
    }
}
