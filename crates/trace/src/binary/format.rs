//! Where the fields of an event are, parsed from the text in which the kernel describes them.
//!
//! ```text
//! name: sched_waking
//! ID: 317
//! format:
//!         field:int common_pid;   offset:4;       size:4; signed:1;
//!         field:char comm[16];    offset:8;       size:16;        signed:1;
//! ```

use crate::state::TaskState;

/// The format of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    pub name: String,
    pub id: u16,
    pub fields: Vec<FieldFormat>,
    pub print: String,
}

/// Where a field is and how to read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldFormat {
    pub name: String,
    pub offset: usize,
    pub size: usize,
    pub kind: FieldKind,
}

/// How to read a field's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldKind {
    /// A number with sign.
    Int,
    /// A number without sign.
    Uint,
    /// The address of something; of text when it points to characters.
    Pointer { text: bool },
    /// Characters up to a NUL, in place.
    Chars,
    /// Numbers in place, of this size each.
    Numbers { size: usize },
    /// The position and length of data after the fields, counted from the start of the record or from the end of this
    /// field; characters, or a mask of CPUs.
    Elsewhere { relative: bool, chars: bool },
}

impl Format {
    /// Parses the text. `None` if it has no name or no number.
    pub fn parse(text: &str) -> Option<Format> {
        let line = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        Some(Format {
            name: line("name:")?.to_owned(),
            id: line("ID:")?.parse().ok()?,
            fields: text.lines().filter_map(FieldFormat::parse).collect(),
            print: line("print fmt:").unwrap_or_default().to_owned(),
        })
    }

    /// The field of that name.
    pub fn field(&self, name: &str) -> Option<&FieldFormat> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The letters of the bits of a task's state in this kernel, from the list of flags in its print format, and the
    /// bit of a preempted task.
    pub fn states(&self) -> States {
        let mut states = States::default();
        for pair in self.print.split('{').skip(1) {
            let Some((bits, letter)) = pair.split_once('}').and_then(|(pair, _)| pair.split_once(',')) else {
                continue;
            };
            let letter = letter.trim().trim_matches('"');
            if let (Some(bits), Some(state)) = (int(bits.trim()), TaskState::parse(letter.as_bytes())) {
                states.letters.push((bits, state));
            }
        }
        states.preempted = self.preempted().unwrap_or_else(|| {
            // Since v4.14 it is a longer expression, and the bit is the one above all that have letters.
            let highest = states.letters.iter().map(|(bits, _)| *bits).max();
            highest.and_then(|bits| bits.checked_mul(2)).unwrap_or_default()
        });
        states
    }

    /// The bit by which a `+` is printed, where it is a plain number: `REC->prev_state & 4096 ? "+" : ""`.
    fn preempted(&self) -> Option<u64> {
        let (condition, _) = self.print.split_once("? \"+\"")?;
        int(condition.rsplit_once('&')?.1.trim())
    }
}

/// The letters of a kernel's task states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct States {
    letters: Vec<(u64, TaskState)>,
    preempted: u64,
}

impl States {
    /// The state with a record's bits.
    pub fn state(&self, bits: u64) -> TaskState {
        if self.letters.is_empty() {
            return TaskState::from_bits(bits);
        }
        let preempted = bits & self.preempted != 0;
        let start = if preempted { TaskState::PREEMPTED } else { TaskState::RUNNING };
        let set = self.letters.iter().filter(|(bit, _)| bits & bit != 0);
        set.fold(start, |state, (_, letter)| state.with(*letter))
    }
}

impl FieldFormat {
    /// Reads the line of a field.
    fn parse(line: &str) -> Option<FieldFormat> {
        let declaration = line.trim_start().strip_prefix("field:")?;
        let (declaration, numbers) = declaration.split_once(';')?;
        let number = |key: &str| -> Option<usize> {
            numbers.split(';').find_map(|part| part.trim().strip_prefix(key))?.parse().ok()
        };
        let declaration = declaration.trim();
        let (kind, name) = declaration.rsplit_once([' ', '*']).unwrap_or(("", declaration));
        let (name, array) = match name.split_once('[') {
            Some((name, count)) => (name, Some(count.trim_end_matches(']'))),
            None => (name, None),
        };
        let (offset, size) = (number("offset:")?, number("size:")?);
        let signed = number("signed:").unwrap_or(0) != 0;
        let chars = declaration.contains("char");
        let kind = if declaration.starts_with("__data_loc") || declaration.starts_with("__rel_loc") {
            FieldKind::Elsewhere { relative: declaration.starts_with("__rel_loc"), chars }
        } else if let Some(count) = array {
            match count.parse().unwrap_or(0) {
                _ if chars => FieldKind::Chars,
                0 => FieldKind::Numbers { size: 8 },
                count => FieldKind::Numbers { size: (size / count).clamp(1, 8) },
            }
        } else if declaration.contains('*') {
            FieldKind::Pointer { text: kind.contains("char") }
        } else if size > 8 {
            FieldKind::Numbers { size: 8 }
        } else if signed {
            FieldKind::Int
        } else {
            FieldKind::Uint
        };
        Some(FieldFormat { name: name.to_owned(), offset, size, kind })
    }
}

/// A number as C writes it.
fn int(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: &str = "name: sched_switch\nID: 314\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:1;\n\
        \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\
        \nprint fmt: \"%s%s\", __print_flags(REC->prev_state & 3, \"|\", { 0x00000001, \"S\" }, { 2, \"D\" }, { 0x4, \"K\" }) : \"R\"\n";

    #[test]
    fn fields_are_found_by_name() {
        let format = Format::parse(SWITCH).unwrap();
        assert_eq!((format.name.as_str(), format.id), ("sched_switch", 314));
        let comm = format.field("prev_comm").unwrap();
        assert_eq!((comm.offset, comm.size, comm.kind), (8, 16, FieldKind::Chars));
        assert_eq!(format.field("prev_state").unwrap().kind, FieldKind::Int);
        assert_eq!(format.field("common_type").unwrap().kind, FieldKind::Uint);
        assert_eq!(format.field("prev"), None);
    }

    #[test]
    fn states_have_the_letters_of_their_kernel() {
        let states = Format::parse(SWITCH).unwrap().states();
        for (bits, shown) in [(0, "R"), (1, "S"), (6, "D|K"), (8, "R+"), (9, "S+")] {
            assert_eq!(states.state(bits).to_string(), shown);
        }
        assert_eq!(States::default().state(0x102).to_string(), "D+");
    }

    #[test]
    fn the_bit_of_a_preempted_task_is_the_one_by_which_a_plus_is_printed() {
        let letters = |last: &str| {
            format!("__print_flags(REC->prev_state & 4095, \"|\", {{ 1, \"S\" }}, {last}) : \"R\", ")
        };
        let (old, new) = (letters("{ 1024, \"N\" }"), letters("{ 0x80, \"I\" }"));
        let or = "((0x0000 | 0x0001 | 0x0040) + 1) << 1";
        for (kernel, print, bits, shown) in [
            // There is a bit without a letter, for new tasks.
            ("v4.13", format!("{old}REC->prev_state & 4096 ? \"+\" : \"\", REC->next_comm"), 4096, "R+"),
            ("v4.13", format!("{old}REC->prev_state & 4096 ? \"+\" : \"\", REC->next_comm"), 2048, "R"),
            ("v4.14", format!("{new}REC->prev_state & ({or}) ? \"+\" : \"\", REC->next_comm"), 0x100, "R+"),
            ("ours", format!("{new}REC->prev_state & 0x100 ? \"+\" : \"\", REC->next_comm"), 0x101, "S+"),
        ] {
            let format = Format { name: String::new(), id: 0, fields: Vec::new(), print };
            assert_eq!(format.states().state(bits).to_string(), shown, "{kernel}");
        }
    }

    #[test]
    fn declarations_of_all_sorts_are_understood() {
        for (declaration, name, size, kind) in [
            (
                "__data_loc char[] filename",
                "filename",
                4,
                FieldKind::Elsewhere { relative: false, chars: true },
            ),
            (
                "__rel_loc char[] dst_path",
                "dst_path",
                4,
                FieldKind::Elsewhere { relative: true, chars: true },
            ),
            (
                "__data_loc cpumask_t *[] cpus",
                "cpus",
                4,
                FieldKind::Elsewhere { relative: false, chars: false },
            ),
            ("const char * reason", "reason", 8, FieldKind::Pointer { text: true }),
            ("void *function", "function", 8, FieldKind::Pointer { text: false }),
            ("unsigned long caller[8]", "caller", 64, FieldKind::Numbers { size: 8 }),
            ("char buf[]", "buf", 0, FieldKind::Chars),
            ("bool group_dead", "group_dead", 1, FieldKind::Uint),
            ("struct big thing", "thing", 24, FieldKind::Numbers { size: 8 }),
        ] {
            let field =
                FieldFormat::parse(&format!("\tfield:{declaration};\toffset:8;\tsize:{size};\tsigned:0;"));
            let field = field.expect(declaration);
            assert_eq!((field.name.as_str(), field.kind), (name, kind), "{declaration}");
        }
        assert_eq!(FieldFormat::parse("print fmt: x"), None);
    }
}
