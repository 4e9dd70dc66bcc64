//! Names for addresses in records: functions, and text that the kernel keeps.

use std::collections::BTreeMap;

/// The names of the kernel's functions by their addresses, and its strings by theirs.
///
/// Both come as megabytes of text that most traces do not need, so it is parsed at the first lookup.
#[derive(Clone, Debug, Default)]
pub(crate) struct Symbols {
    kallsyms: String,
    printk: String,
    functions: Option<BTreeMap<u64, (u32, u32)>>,
    strings: Option<BTreeMap<u64, String>>,
}

impl Symbols {
    /// Takes a copy of /proc/kallsyms.
    pub fn set_kallsyms(&mut self, text: &[u8]) {
        (self.kallsyms, self.functions) = (String::from_utf8_lossy(text).into_owned(), None);
    }

    /// Takes a copy of tracefs's printk_formats.
    pub fn set_printk(&mut self, text: &[u8]) {
        (self.printk, self.strings) = (String::from_utf8_lossy(text).into_owned(), None);
    }

    /// The function at an address, with the offset from its start if there is one; the address itself if no function is
    /// known.
    pub fn function(&mut self, address: u64) -> String {
        let kallsyms = &self.kallsyms;
        let functions = self.functions.get_or_insert_with(|| functions(kallsyms));
        match functions.range(..=address).next_back() {
            Some((start, &(from, to))) => {
                let name = &kallsyms[from as usize..to as usize];
                match address - start {
                    0 => name.to_owned(),
                    distance => format!("{name}+{distance:#x}"),
                }
            }
            None => format!("{address:#x}"),
        }
    }

    /// The text at an address, or the address itself.
    pub fn string(&mut self, address: u64) -> String {
        let printk = &self.printk;
        let strings = self.strings.get_or_insert_with(|| printk.lines().filter_map(string).collect());
        strings.get(&address).cloned().unwrap_or_else(|| format!("{address:#x}"))
    }
}

/// Where each function's name is in the text, by the function's address.
fn functions(kallsyms: &str) -> BTreeMap<u64, (u32, u32)> {
    let mut functions = BTreeMap::new();
    for line in kallsyms.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        let Ok(address) = u64::from_str_radix(address, 16) else { continue };
        if address != 0 && kind.eq_ignore_ascii_case("t") {
            let from = name.as_ptr() as usize - kallsyms.as_ptr() as usize;
            functions.entry(address).or_insert((from as u32, (from + name.len()) as u32));
        }
    }
    functions
}

/// One line: `0xffffffff82000000 : "text"`.
fn string(line: &str) -> Option<(u64, String)> {
    let (address, text) = line.split_once(" : ")?;
    let address = u64::from_str_radix(address.trim().trim_start_matches("0x"), 16).ok()?;
    Some((address, text.trim().trim_matches('"').to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_become_names_where_they_are_known() {
        let mut symbols = Symbols::default();
        symbols.set_kallsyms(
            b"ffffffff81000000 T schedule\nffffffff81000100 t wake_up\t[mod]\nffffffff81000110 D data\n",
        );
        symbols.set_printk(b"0xffffffff82000000 : \"Rescheduling interrupts\"\n");
        assert_eq!(symbols.function(0xffffffff81000000), "schedule");
        assert_eq!(symbols.function(0xffffffff81000122), "wake_up+0x22");
        assert_eq!(symbols.function(5), "0x5");
        assert_eq!(symbols.string(0xffffffff82000000), "Rescheduling interrupts");
        assert_eq!(symbols.string(1), "0x1");
        assert_eq!(Symbols::default().function(7), "0x7");
    }
}
