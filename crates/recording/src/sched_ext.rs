//! Whether a sched_ext scheduler was active during a recording.
//!
//! No rule of the fair class explains what such a scheduler decides. `sched_ext.txt` in a folder of facts contains the
//! kernel's files as lines, each with its content. If the scheduler was loaded after the facts were written, the
//! recording has `scx-state.txt` beside the folder: the state on its first line, the scheduler's name on the next.

/// Name of the active sched_ext scheduler, from `sched_ext.txt` and `scx-state.txt`; `None` if there was none.
pub fn sched_ext(facts: &str, state: &str) -> Option<String> {
    let file = |name: &str| {
        let path = format!("/sys/kernel/sched_ext/{name} ");
        facts.lines().find_map(|line| line.strip_prefix(&path)).map(str::trim)
    };
    let mut lines = state.lines().map(str::trim);
    let by_lines = (file("state"), file("root/ops"));
    let by_state = (lines.next(), lines.next());
    let (_, name) = [by_lines, by_state].into_iter().find(|(state, _)| *state == Some("enabled"))?;
    Some(name.filter(|name| !name.is_empty()).unwrap_or("unnamed").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduler_is_known_by_the_facts_or_by_the_state_beside_them() {
        let check = |facts, state, expected: Option<&str>| {
            assert_eq!(sched_ext(facts, state).as_deref(), expected, "{facts} {state}");
        };
        check("", "", None);
        check("/sys/kernel/sched_ext/state disabled\n", "", None);
        check("/sys/kernel/sched_ext/state enabled\n", "", Some("unnamed"));
        check("/sys/kernel/sched_ext/state enabled\n/sys/kernel/sched_ext/root/ops a\n", "", Some("a"));
        check("ls: /sys/kernel/sched_ext: No such file or directory\n", "enabled\nb\nX 0\n", Some("b"));
        check("", "disabled\n", None);
    }
}
