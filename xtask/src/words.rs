//! Turns of phrase that a comment of this project does not use (docs/style.md).
//!
//! Each is correct English and nearly always odd here: an event does not tell, it shows; a task is not somebody.
//! Only whole words in comments count. Quoted code is left out, so a function may have any name.

use crate::source;

/// A word, and what to write instead.
const WORDS: [(&str, &str); 20] = [
    ("tells", "shows, contains, reports"),
    ("told", "shown, recorded, reported"),
    ("heed", "use, follow"),
    ("heeds", "uses, follows"),
    ("heeded", "used, followed"),
    ("whoever", "the task that, whatever"),
    ("somebody", "a task, another task"),
    ("nobody", "no task, no CPU"),
    ("he", "it"),
    ("his", "its"),
    ("him", "it"),
    ("those who", "tasks that, CPUs that"),
    ("all who", "all tasks that"),
    ("some who", "some tasks that"),
    ("one who", "a task that"),
    ("by who", "by the task that"),
    ("of who", "of the task that"),
    ("for who", "for callers that"),
    ("hangs on", "depends on"),
    ("for all we know", "presumably"),
];

/// Comments that use one of the words, or begin a sentence with a "Who" that asks nothing.
///
/// # Errors
/// A file that cannot be read.
pub fn odd() -> Result<Vec<String>, String> {
    let mut wrong = Vec::new();
    for (file, text) in source::rust_files()? {
        // This file lists the words.
        if !file.ends_with("xtask/src/words.rs") {
            wrong.extend(of_text(&text).map(|(line, what)| format!("{file}:{line}: {what}")));
        }
    }
    Ok(wrong)
}

/// The line and the complaint for each odd word of a source text.
fn of_text(text: &str) -> impl Iterator<Item = (usize, String)> {
    text.lines().enumerate().filter_map(|(at, line)| {
        let comment = line.trim_start().strip_prefix("//")?.trim_start_matches(['/', '!']).trim();
        complaint(comment).map(|what| (at + 1, what))
    })
}

fn complaint(comment: &str) -> Option<String> {
    // Code between backticks is quoted: every second part.
    let prose: String = comment.split('`').step_by(2).collect::<Vec<_>>().join("`");
    let lower = prose.to_lowercase();
    let is_edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
    let has = |word: &str| {
        lower.match_indices(word).any(|(at, _)| {
            is_edge(lower[..at].chars().next_back()) && is_edge(lower[at + word.len()..].chars().next())
        })
    };
    if let Some((word, instead)) = WORDS.iter().find(|(word, _)| has(word)) {
        return Some(format!("\"{word}\" in a comment; write {instead}"));
    }
    let statement = prose.starts_with("Who ") && !prose.contains('?');
    statement.then(|| "a sentence that begins with \"Who\"; write \"the task that\"".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_words_are_found_in_comments_and_nowhere_else() {
        let found = |text: &str| of_text(text).map(|(line, what)| format!("{line}: {what}")).next();
        for (text, expected) in [
            ("/// What an event tells.", Some("1: \"tells\" in a comment; write shows, contains, reports")),
            ("\n    // Nobody waits.", Some("2: \"nobody\" in a comment; write no task, no CPU")),
            (
                "//! Who sleeps is not moved.",
                Some("1: a sentence that begins with \"Who\"; write \"the task that\""),
            ),
            ("//! Who sleeps here?", None),
            ("/// The task that `told` names, and how it tallies.", None),
            ("let told = tells(he); // 7", None),
            ("/// The scheduler's history; the sheds of this.", None),
        ] {
            assert_eq!(found(text).as_deref(), expected, "{text}");
        }
    }
}
