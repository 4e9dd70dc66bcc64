//! Finds lines of fact files that do not have the file's form, so that unparsed text is not mistaken for recorded
//! settings.
//!
//! Only the form is checked. A file may contain switches and numbers that have no effect here. But in a file that was
//! truncated, overwritten or mixed up with another, the settings would silently keep their defaults.

use super::tasks::seen_task;

/// A kind of file: its name, a check for its lines, and an example line.
struct Form {
    name: &'static str,
    fits: fn(&str) -> bool,
    like: &'static str,
}

const FORMS: [Form; 10] = [
    Form { name: "sched_features.txt", fits: is_switches, like: "NO_HRTICK WAKEUP_PREEMPTION" },
    Form { name: "debug_sched.txt", fits: is_path, like: "/sys/kernel/debug/sched/nr_migrate 32" },
    Form { name: "sysctl.txt", fits: is_path, like: "/proc/sys/kernel/sched_autogroup_enabled 1" },
    Form { name: "config.txt", fits: is_option, like: "CONFIG_HZ=250" },
    Form { name: "tasks.txt", fits: is_task, like: "7 7 OTHER 0 0 0-3 / kworker/0:0" },
    Form { name: "groups-before.txt", fits: is_member, like: "7 7 / - 0 kworker/0:0" },
    Form { name: "groups-after.txt", fits: is_member, like: "7 7 / - 0 kworker/0:0" },
    Form { name: "cgroups.txt", fits: is_path, like: "/user.slice/cpu.weight 100" },
    Form { name: "cgroups-after.txt", fits: is_path, like: "/user.slice/cpu.weight 100" },
    Form { name: "domains.txt", fits: is_domain, like: "cpu0/domain0/name MC" },
];

/// Names of all files whose form is known.
pub fn formed() -> impl Iterator<Item = &'static str> {
    FORMS.iter().map(|form| form.name)
}

/// A message about the lines of a file that do not have its form: `3: "hello" is not a line of ...`.
pub fn strange_lines(name: &str, text: &str) -> Option<String> {
    FORMS.iter().find(|form| form.name == name).and_then(|form| note(form, text))
}

fn note(form: &Form, text: &str) -> Option<String> {
    let lines = || text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let mut strange = lines().filter(|(_, line)| !(form.fits)(line));
    let (first, line) = strange.next()?;
    let (wrong, all) = (1 + strange.count(), lines().count());
    let extent = if wrong == all {
        "no line in it is understood, so the defaults are used".to_owned()
    } else {
        let (noun, verb) = if wrong == 1 { ("line", "is") } else { ("lines", "are") };
        format!("{wrong} {noun} of {all} {verb} ignored")
    };
    let start: String = line.chars().take(40).collect();
    Some(format!(
        "{}: \"{start}\" is not a line of this file; \"{}\" would be one: {extent}",
        first + 1,
        form.like
    ))
}

/// An error message that a command wrote to its output when it found nothing to write.
fn is_complaint(line: &str) -> bool {
    line.contains(": No such file") || line.contains(": Permission denied")
}

fn is_switches(line: &str) -> bool {
    let is_name = |word: &str| {
        word.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    };
    is_complaint(line) || line.split_whitespace().all(is_name)
}

fn is_path(line: &str) -> bool {
    is_complaint(line) || (line.starts_with('/') && line.contains(' '))
}

fn is_option(line: &str) -> bool {
    line.starts_with('#') || (line.starts_with("CONFIG_") && line.contains('='))
}

fn is_task(line: &str) -> bool {
    line.starts_with('#') || seen_task(line).is_ok()
}

fn is_member(line: &str) -> bool {
    line.starts_with('#') || line.starts_with("hierarchy ") || begins_with_numbers(line)
}

fn is_domain(line: &str) -> bool {
    let at = |text: Option<&str>, lead: &str| text.is_some_and(|text| text.starts_with(lead));
    let mut parts = line.split('/');
    is_complaint(line) || (at(parts.next(), "cpu") && at(parts.next(), "domain"))
}

/// The numbers of the task and of its process.
fn begins_with_numbers(line: &str) -> bool {
    let mut words = line.split(' ');
    let mut number = || words.next().is_some_and(|word| word.parse::<u32>().is_ok());
    number() && number()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::{Path, PathBuf};

    #[test]
    fn each_example_is_a_line_of_its_file_and_nonsense_of_none() {
        for form in &FORMS {
            assert!((form.fits)(form.like), "{}", form.name);
            let note = |text: &str| note(form, text);
            assert_eq!(note(""), None);
            let all = note("hello world\nthis is nonsense 17 = x\n").expect(form.name);
            assert!(all.starts_with("1: \"hello world\"") && all.contains("no line in it"), "{all}");
            let some = note(&format!("{}\n\nhello world\n", form.like)).expect(form.name);
            assert!(some.starts_with("3: ") && some.ends_with("1 line of 2 is ignored"), "{some}");
        }
    }

    #[test]
    fn the_facts_of_all_recordings_have_their_form() {
        fn below(folder: PathBuf, found: &mut Vec<PathBuf>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    below(path, found);
                } else {
                    found.push(path);
                }
            }
        }
        let mut found = Vec::new();
        below(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces"), &mut found);
        let mut looked_at = 0;
        for path in found {
            let Some(form) = FORMS.iter().find(|form| path.ends_with(form.name)) else { continue };
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            assert_eq!(note(form, &text), None, "{}", path.display());
            looked_at += 1;
        }
        assert!(looked_at > 300, "{looked_at}");
    }
}
