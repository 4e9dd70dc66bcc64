//! The smallest amount for which a condition holds.

/// The first amount that is tried, ns.
const FIRST: u64 = 16;

/// The amount at which the search ends, ns; virtual times that are off by more are not the cause.
const LAST: u64 = 1 << 30;

/// The smallest amount for which a condition holds, to within a thirty-second of it. The amount is doubled until the
/// condition holds, then bisected.
pub fn least(mut is_so: impl FnMut(u64) -> bool) -> Option<u64> {
    let mut most = FIRST;
    while !is_so(most) {
        most *= 2;
        if most > LAST {
            return None;
        }
    }
    let mut less = if most == FIRST { 0 } else { most / 2 };
    while most - less > 1 + most / 32 {
        let middle = less + (most - less) / 2;
        if is_so(middle) {
            most = middle;
        } else {
            less = middle;
        }
    }
    Some(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_is_found_to_a_small_part_of_it() {
        for limit in [1, 17, 40, 1000, 123_456, 40_000_000] {
            let found = least(|by| by >= limit).unwrap();
            assert!(found >= limit && found <= limit + 1 + limit / 16, "{limit}: {found}");
        }
        assert_eq!(least(|_| false), None);
    }
}
