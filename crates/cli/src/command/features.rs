//! `schedlab features`: the rules of a kernel beside those of other kernels.

use schedlab::{Entry, Rulebook};

use crate::args::{Features, newest};
use crate::error::{Error, Status};
use crate::output::{self, Format};
use crate::width::{width, wrapped};

/// Prints the matrix.
pub fn run(args: &Features) -> Result<Status, Error> {
    let (kernel, search) = asked(args.kernel.as_deref(), args.search.as_deref());
    let mut book = Rulebook::of(&crate::scenario::named_kernel(kernel)?);
    if let Some(search) = search {
        let wanted = search.to_lowercase();
        book.entries.retain(|e| {
            e.name.to_lowercase().contains(&wanted) || e.sentence.to_lowercase().contains(&wanted)
        });
        if book.entries.is_empty() {
            return Err(Error::new(format!("no rule mentions \"{search}\"; `schedlab features` lists all")));
        }
    }
    match args.format {
        Format::Json => output::print_json(&book)?,
        Format::Text => output::print(|out| out.write_all(draw(&book).as_bytes()))?,
    }
    Ok(Status::Done)
}

/// The kernel, and the word that its rules contain. A kernel may be given without its option.
fn asked<'a>(kernel: Option<&'a str>, search: Option<&'a str>) -> (&'a str, Option<&'a str>) {
    match (kernel, search) {
        (None, Some(word)) if is_kernel(word) => (word, None),
        (kernel, search) => (kernel.unwrap_or(newest()), search),
    }
}

/// Whether a word is the name of a kernel, like v6.12 or v6.1+NO_SIS_UTIL.
fn is_kernel(word: &str) -> bool {
    word.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn draw(book: &Rulebook) -> String {
    let mut text = format!("{}, preempt={}\n", book.kernel, book.preempt);
    for (kind, title) in [
        ("feature", "Switches: NAME turns on, NO_NAME off"),
        ("rule", "Rules with forms: NAME=form"),
        ("tunable", "Numbers: name=value"),
        ("preemption", "Preemption: preempt=model"),
    ] {
        let entries: Vec<&Entry> = book.entries.iter().filter(|e| e.kind == kind).collect();
        if entries.is_empty() {
            continue;
        }
        text.push_str(&format!("\n{title}\n"));
        match kind {
            "feature" => draw_switches(&mut text, book, &entries, width()),
            _ => draw_values(&mut text, book, &entries),
        }
    }
    text
}

/// Columns that a sentence needs beside the table of kernels.
const SENTENCE: usize = 40;

/// One column per kernel: `*` on, `.` off; the kernel's own value in front. On a narrow terminal, runs of kernels.
fn draw_switches(text: &mut String, book: &Rulebook, entries: &[&Entry], columns: usize) {
    let width = entries.iter().map(|e| e.name.len()).max().unwrap_or(0);
    let heads: Vec<&str> = book.presets.iter().map(|p| p.trim_start_matches('v')).collect();
    let head = format!("{:4} {:width$}  {}", "", "", heads.join(" "));
    if columns < head.len() + SENTENCE {
        for entry in entries {
            text.push_str(&wrapped(&format!("{:4} {}  ", entry.value, entry.name), entry.sentence, columns));
            text.push_str(&wrapped("    presets  ", &runs(&book.presets, &entry.presets), columns));
        }
        return;
    }
    text.push_str(&format!("{head}\n"));
    for entry in entries {
        let marks: Vec<String> = entry
            .presets
            .iter()
            .zip(&heads)
            .map(|(value, head)| format!("{:^1$}", if value == "on" { "*" } else { "." }, head.len()))
            .collect();
        let row = format!("{:4} {:width$}  {}  ", entry.value, entry.name, marks.join(" "));
        text.push_str(&wrapped(&row, entry.sentence, columns));
    }
}

/// The kernel's own value, the sentence, then the kernels in runs of equal values.
fn draw_values(text: &mut String, book: &Rulebook, entries: &[&Entry]) {
    for entry in entries {
        text.push_str(&format!("{}={}  {}\n", entry.name, entry.value, entry.sentence));
        if entry.forms.len() > 1 {
            text.push_str(&format!("    forms    {}\n", entry.forms.join(", ")));
        }
        text.push_str(&format!("    presets  {}\n", runs(&book.presets, &entry.presets)));
    }
}

/// `v4.13-v5.5 waker, v5.18-v7.2 wakee`.
pub fn runs(presets: &[&str], values: &[String]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut start = 0;
    for end in 1..=values.len() {
        if end == values.len() || values[end] != values[start] {
            let span = if end - start == 1 {
                presets[start].to_string()
            } else {
                format!("{}..{}", presets[start], presets[end - 1])
            };
            parts.push(format!("{span} {}", values[start]));
            start = end;
        }
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_neighbours_are_drawn_as_one_run() {
        let values = ["a", "a", "b"].map(String::from);
        assert_eq!(runs(&["v1", "v2", "v3"], &values), "v1..v2 a, v3 b");
    }

    #[test]
    fn a_kernel_may_be_given_without_its_option() {
        assert_eq!(asked(None, Some("v6.1+NO_SIS_UTIL")), ("v6.1+NO_SIS_UTIL", None));
        assert_eq!(asked(None, Some("vruntime")), (newest(), Some("vruntime")));
        assert_eq!(asked(Some("v6.1"), Some("v5.18")), ("v6.1", Some("v5.18")));
        assert_eq!(asked(None, None), (newest(), None));
    }
}
