//! The laboratory's own events in text: marks, decisions, affinity, groups.
//!
//! They are printed like kernel events, `key=value` after a name, so that tools that only know this form pass them
//! through. A mark is a counter in the trace marker's notation, which viewers draw:
//!
//! ```text
//! tracing_mark_write: C|2711|ops|1200
//! schedlab_placement: pid=7 how=wakeup prev_cpu=3 target=3 cpu=5 remote=0 reason=IDLE_CPU \
//!                     numbers=nr_idle_scan:4 examined=3:BUSY,4:BUSY,5
//! ```

use schedlab_units::Pid;

use crate::comm::Label;
use crate::decision::{Affinity, Balance, Group, Newidle, Pick, Placement, Preemption};
use crate::event::Kind;
use crate::fields::{Field, Value, lossy};

/// Makes `visit` and `build` from a table of the annotations and their fields.
macro_rules! annotations {
    ($($name:literal $type:ident: $($field:ident)*;)+) => {
        /// The names in the table.
        pub(super) const NAMES: &[&str] = &[$($name),+];

        /// Passes the fields of an annotation to `give`; false for other kinds.
        pub(super) fn visit(kind: &Kind, give: &mut dyn FnMut(&'static str, Value<'_>)) -> bool {
            match kind {
                $(Kind::$type(annotation) => {
                    $(if let Some(value) = annotation.$field.value() {
                        give(stringify!($field), value);
                    })*
                    true
                })+
                _ => false,
            }
        }

        /// The annotation with that name; the outer `None` means that there is none.
        pub(super) fn build<'a>(
            name: &str,
            get: &mut dyn FnMut(&str) -> Option<Value<'a>>,
        ) -> Option<Option<Kind>> {
            $(if name == $name {
                let mut make = || Some(Kind::$type(Box::new($type {
                    $($field: Field::from_value(get(stringify!($field)))?),*
                })));
                return Some(make());
            })+
            None
        }
    };
}

annotations! {
    "schedlab_placement" Placement: pid how prev_cpu target cpu remote reason numbers examined;
    "schedlab_balance" Balance: dst_cpu idle domain src_cpu local busiest reason migration imbalance
        numbers moved;
    "schedlab_newidle" Newidle: dst_cpu reason pulled numbers;
    "schedlab_preemption" Preemption: pid curr at reason resched numbers;
    "schedlab_pick" Pick: pid reason numbers;
    "schedlab_affinity" Affinity: pid allowed;
    "schedlab_group" Group: id shares idle quota_ns period_ns burst_ns;
}

/// Prints an annotation; false for other kinds.
pub(super) fn print(kind: &Kind, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    visit(kind, &mut |key, value| {
        let space = if out.len() > start { " " } else { "" };
        out.extend_from_slice(format!("{space}{key}={value}").as_bytes());
    })
}

/// Parses an annotation; the outer `None` means that it is none.
pub(crate) fn parse(name: &[u8], args: &[u8]) -> Option<Option<Kind>> {
    let name = NAMES.iter().find(|known| known.as_bytes() == name)?;
    let text = lossy(args);
    let mut words = Words { text: &text, next: 0, taken: 0 };
    build(name, &mut |key| words.value(key).map(Value::text))
}

/// The words of a text, each `key=value`.
struct Words<'a> {
    text: &'a str,
    /// Where the word after the last value begins.
    next: usize,
    /// All words before this place have been taken.
    taken: usize,
}

impl<'a> Words<'a> {
    /// The value of a key. Each is asked for once, in the order in which they are written, so it is mostly in the next word.
    fn value(&mut self, key: &str) -> Option<&'a str> {
        if let Some(value) = self.value_at(self.next, key) {
            return Some(value);
        }
        let mut at = self.taken;
        while at < self.text.len() {
            if let Some(value) = self.value_at(at, key) {
                return Some(value);
            }
            at = self.end(at) + 1;
        }
        None
    }

    /// The value of the word at a place, if it has this key.
    #[inline]
    fn value_at(&mut self, at: usize, key: &str) -> Option<&'a str> {
        let word = self.text.as_bytes().get(at..)?;
        if word.get(key.len()) != Some(&b'=') || &word[..key.len()] != key.as_bytes() {
            return None;
        }
        let start = at + key.len() + 1;
        let end = self.end(start);
        self.next = end + 1;
        if at == self.taken {
            self.taken = self.next;
        }
        Some(&self.text[start..end])
    }

    /// The end of the word at a place.
    #[inline]
    fn end(&self, at: usize) -> usize {
        let rest = &self.text.as_bytes()[at..];
        at + rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len())
    }
}

/// Prints a mark as a counter of the process that reports it.
pub(super) fn print_mark(process: Pid, label: Label, value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("C|{process}|{label}|{value}").as_bytes());
}

/// Text that a program wrote; a counter that has the form of a mark becomes one.
pub(crate) fn parse_mark(text: &str) -> Kind {
    mark(text).unwrap_or_else(|| Kind::Print(text.into()))
}

fn mark(text: &str) -> Option<Kind> {
    let (process, rest) = text.strip_prefix("C|")?.split_once('|')?;
    let (name, value) = rest.split_once('|')?;
    process.parse::<u32>().ok()?;
    let (label, value) = (Label::new(name), value.trim_end().parse().ok()?);
    (label.as_str() == name).then_some(Kind::Mark { label, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_any_order() {
        let text = "pid=7 how=wakeup  cpu=5 remote= numbers=a:1 numbers cpu=6";
        for keys in [["pid", "how", "cpu", "remote", "numbers"], ["numbers", "cpu", "remote", "how", "pid"]] {
            let mut words = Words { text, next: 0, taken: 0 };
            let mut found = keys.map(|key| (key, words.value(key)));
            found.sort_unstable();
            assert_eq!(
                found,
                [
                    ("cpu", Some("5")),
                    ("how", Some("wakeup")),
                    ("numbers", Some("a:1")),
                    ("pid", Some("7")),
                    ("remote", Some(""))
                ]
            );
            for missing in ["c", "id", "pids", "", "=", "wakeup"] {
                assert_eq!(words.value(missing), None, "{missing}");
            }
        }
    }
}
