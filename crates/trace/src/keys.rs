//! The numbers of an event whose keys are the same each time.
//!
//! A probe prints the same hundred keys in the same order whenever it is hit. So the meaning of a key is looked up
//! once; after that it is only checked that the key is where it was in the previous event.

use crate::read::eight;
use crate::unknown::Unknown;

/// The keys of a probe in their order, and the meaning of each for the caller.
#[derive(Clone, Debug)]
pub struct Keys<T>(Vec<Key<T>>);

/// One key, with everything between it and the previous value.
#[derive(Clone, Debug)]
struct Key<T> {
    /// Its first eight bytes; the last byte of all is the equals sign.
    start: u64,
    /// Which of these bytes exist.
    mask: u64,
    /// What follows them.
    rest: Box<[u8]>,
    len: usize,
    meaning: Option<T>,
}

impl<T> Default for Keys<T> {
    fn default() -> Keys<T> {
        Keys(Vec::new())
    }
}

impl<T: Copy> Keys<T> {
    /// Passes the numbers of the fields that have a meaning to `give`, in their order. Skips values that are not
    /// numbers.
    #[inline(always)]
    pub fn each(
        &mut self,
        event: &Unknown,
        meaning: impl Fn(&[u8]) -> Option<T>,
        mut give: impl FnMut(T, i64),
    ) {
        let mut pairs = event.pairs();
        for place in 0.. {
            let meaning = match self.0.get(place) {
                Some(key) if key.begins(pairs.0) => {
                    pairs.0 = &pairs.0[key.len..];
                    key.meaning
                }
                _ => {
                    let text = pairs.0;
                    let Some(name) = pairs.key() else { return };
                    let meaning = meaning(name);
                    self.learn(place, Key::new(&text[..text.len() - pairs.0.len()], meaning));
                    meaning
                }
            };
            let Some(meaning) = meaning else {
                pairs.value();
                continue;
            };
            let number = match *pairs.0 {
                // Most numbers look like this.
                [digit @ b'0'..=b'9', b' ', ..] => {
                    pairs.0 = &pairs.0[1..];
                    Some(i64::from(digit - b'0'))
                }
                _ => pairs.int(),
            };
            if let Some(number) = number {
                give(meaning, number);
            }
        }
    }

    fn learn(&mut self, place: usize, key: Key<T>) {
        match self.0.get_mut(place) {
            Some(other) => *other = key,
            None => self.0.push(key),
        }
    }
}

impl<T> Key<T> {
    fn new(text: &[u8], meaning: Option<T>) -> Key<T> {
        let (start, rest) = text.split_at(text.len().min(8));
        Key {
            start: eight(start),
            mask: eight(&[0xff; 8][..start.len()]),
            rest: rest.into(),
            len: text.len(),
            meaning,
        }
    }

    /// Whether a text begins with the key, if it is long enough to compare at once.
    #[inline(always)]
    fn begins(&self, text: &[u8]) -> bool {
        text.split_first_chunk().is_some_and(|(&start, rest)| {
            u64::from_le_bytes(start) & self.mask == self.start
                && (self.rest.is_empty() || rest.starts_with(&self.rest))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs::int;

    /// The numbers found in the fields, with the keys of the previous event reused.
    fn check(texts: &[&str]) {
        let mut keys = Keys::default();
        for text in texts.iter().chain(texts) {
            let event = Unknown::new("x", text);
            // A key stands for its second byte; a key without one has no meaning.
            let meaning = |key: &[u8]| key.get(1).copied();
            let mut found = Vec::new();
            keys.each(&event, meaning, |byte, number| found.push((byte, number)));
            let number =
                |(key, value): (&str, &str)| Some((meaning(key.as_bytes())?, int(value.as_bytes())?));
            let fields = event.fields().filter_map(number);
            assert_eq!(found, fields.collect::<Vec<_>>(), "{text}");
        }
    }

    #[test]
    fn numbers_are_those_of_the_fields_that_mean_something() {
        check(&[
            "(f+0x4/0x9) pid=7 c=0x1f  ab==2 =3 nd=\t= be=12a cf=1234567 dg=12345678 eh=+9 word fi=0x1f gj=-0 é=5 k=7",
            "(f+0x4/0x9) pid=1404 nis4=0x1f  x2y3=5 l99999999=3 busy8=12345678 7=8\tlettersmany3=4 t1=0",
        ]);
    }

    #[test]
    fn numbers_of_things_in_a_row_are_read_as_they_stand() {
        let row: String = (0..130).map(|at| format!(" ic{at}={}", at * at * at)).collect();
        check(&[
            &row,
            " cc0=1 cc1=2 cc1=3 cc2=4",
            " cc0=1 cc1x=2 cc1=3",
            " cc0=1 cc1=2x cc2=3",
            " cc0=1 cc1= cc2=-3",
            " cc0=1 cc1=0x10\tcc2=3 cc3",
            " cc0=1cc1=2 cc2=3",
        ]);
    }

    #[test]
    fn other_keys_than_before_are_read_as_well() {
        check(&[
            "(f+0x4/0x9) pid=7 longkey=8 longword=9 longword1=3",
            "(f+0x4/0x9) pid=7 longkey=18 longword=9 longword2=3",
            "(g+0x4/0x9) pid=7 other=8 longkey=8",
            "pid=",
            "",
            "aa=1 bb=2 cc=3 dd=4",
            "aa=1 bb= 2 cc=33dd=4",
        ]);
    }
}
