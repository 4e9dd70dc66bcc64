//! A list that most tasks leave empty.
//!
//! An empty one takes one word where a vector takes three: a run may have a hundred thousand tasks.

use std::ops::Deref;

/// A list that is allocated with its first element.
#[derive(Clone, Debug)]
pub(crate) struct Few<T>(Option<Box<List<T>>>);

#[derive(Clone, Debug)]
struct List<T>(Vec<T>);

impl<T> Few<T> {
    /// An empty one.
    pub const fn new() -> Few<T> {
        Few(None)
    }

    /// Adds an element at the end.
    pub fn push(&mut self, value: T) {
        self.0.get_or_insert_with(|| Box::new(List(Vec::new()))).0.push(value);
    }

    /// Keeps those elements only.
    pub fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        if let Some(list) = &mut self.0 {
            list.0.retain(keep);
        }
    }
}

impl<T: PartialEq> Few<T> {
    /// Removes the last element that equals this one; whether there was one.
    pub fn remove_last(&mut self, value: &T) -> bool {
        let Some(list) = &mut self.0 else { return false };
        if list.0.last() == Some(value) {
            list.0.pop();
            return true;
        }
        let place = list.0.iter().rposition(|known| known == value);
        place.map(|place| list.0.remove(place)).is_some()
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.0.as_ref().map_or(&[], |list| &list.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_list() {
        let mut few = Few::new();
        few.retain(|_| false);
        assert!(few.is_empty());
        for value in 0..5 {
            few.push(value);
        }
        few.retain(|value| value % 2 == 0);
        assert_eq!((few.remove_last(&2), few.remove_last(&2)), (true, false));
        assert_eq!(*few, [0, 4]);
        assert_eq!(size_of::<Few<u64>>(), size_of::<usize>());
    }
}
