//! Delta debugging: the smallest set that still has some property.
//!
//! Zeller and Hildebrandt's ddmin over parts in the order of their likelihood. The result is minimal: without any
//! one of its parts the set no longer has the property.

use crate::error::Error;

/// A minimal subset of `all` for which `shows` holds; empty if it does not hold for `all` either.
///
/// # Errors
/// As `shows`.
pub(super) fn smallest(
    all: &[usize],
    shows: &mut dyn FnMut(&[usize]) -> Result<bool, Error>,
) -> Result<Vec<usize>, Error> {
    if !shows(all)? {
        return Ok(Vec::new());
    }
    // Likely parts come first: one, two, four of them may be enough.
    let mut set = all.to_vec();
    let mut front = 1;
    while front < all.len() {
        if shows(&all[..front])? {
            set = all[..front].to_vec();
            break;
        }
        front *= 2;
    }
    let mut pieces = 2;
    while set.len() > 1 {
        let size = set.len().div_ceil(pieces);
        let mut smaller = None;
        for at in (0..set.len()).step_by(size) {
            let end = (at + size).min(set.len());
            let piece = set[at..end].to_vec();
            if pieces > 1 && piece.len() < set.len() && shows(&piece)? {
                smaller = Some((piece, 2));
                break;
            }
            let rest: Vec<usize> = set[..at].iter().chain(&set[end..]).copied().collect();
            if !rest.is_empty() && pieces > 2 && shows(&rest)? {
                smaller = Some((rest, (pieces - 1).max(2)));
                break;
            }
        }
        match smaller {
            Some((found, next)) => {
                set = found;
                pieces = next.min(set.len().max(1));
            }
            None if pieces < set.len() => pieces = (pieces * 2).min(set.len()),
            None => break,
        }
        pieces = pieces.max(2);
    }
    set.sort_unstable();
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(nr: usize, culprits: &[&[usize]], expected: &[usize]) {
        let all: Vec<usize> = (0..nr).collect();
        let mut asked = 0;
        let found = smallest(&all, &mut |set| {
            asked += 1;
            Ok(culprits.iter().any(|culprit| culprit.iter().all(|part| set.contains(part))))
        });
        assert_eq!(found.unwrap(), expected);
        assert!(asked < 12 * nr.max(8), "{asked} questions about {nr} parts");
    }

    #[test]
    fn what_is_found_is_minimal() {
        check(40, &[&[17]], &[17]);
        check(40, &[&[3, 31]], &[3, 31]);
        check(40, &[&[5, 6, 39]], &[5, 6, 39]);
        check(1, &[&[0]], &[0]);
        check(2, &[&[0, 1]], &[0, 1]);
        check(3, &[&[0, 2]], &[0, 2]);
        check(9, &[&[9]], &[]);
        // If each of two is enough, one is returned.
        check(40, &[&[8], &[30]], &[8]);
    }
}
