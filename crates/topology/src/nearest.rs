//! The known word closest to a misspelt one.

/// The word with the fewest edits from `word`, if these are few for its length.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = word.chars().count() / 3 + 1;
    known.map(|k| (edits(word, k), k)).filter(|&(n, _)| n <= most).min_by_key(|&(n, _)| n).map(|(_, k)| k)
}

/// How many letters must be inserted, removed or changed to turn `a` into `b`.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        for (a, b, n) in [("", "abc", 3), ("abc", "abc", 0), ("kitten", "sitting", 3), ("ab", "ba", 2)] {
            assert_eq!(edits(a, b), n, "{a} {b}");
        }
    }

    #[test]
    fn a_word_too_far_from_all_has_no_neighbour() {
        let known = ["milan-2s", "zen3-2s", "uma-8c"];
        assert_eq!(nearest("zen3_2s", known.into_iter()), Some("zen3-2s"));
        assert_eq!(nearest("uma8c", known.into_iter()), Some("uma-8c"));
        assert_eq!(nearest("power", known.into_iter()), None);
    }
}
