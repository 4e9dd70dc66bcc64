//! The answer as text.

use std::fmt::Write;

use super::{Answer, ERROR_RATE, Effect, Part, Role};

/// The answer as a table: rule, effect alone, effect of its absence, parts needed with it.
pub fn text(answer: &Answer, parts: &[Part], metric: &str, good: &str, bad: &str) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{metric} from {good} to {bad}: {}, {} paired seeds",
        shown(&answer.whole),
        answer.seeds
    );
    let _ = writeln!(
        text,
        "{} {} differ, {} of them play a role in this scenario; {} runs",
        parts.len(),
        if parts.iter().any(|part| part.tree.is_some()) {
            "patches and switches"
        } else {
            "rules and numbers"
        },
        answer.at_work.len(),
        answer.runs
    );
    if !answer.whole.is_real() {
        let _ = writeln!(
            text,
            "none of them: the kernels do not differ in {metric} here, as far as these seeds show"
        );
        return text;
    }
    let width =
        answer.culprits.iter().map(|culprit| parts[culprit.part].text.len()).max().unwrap_or(0).max(4);
    let _ = writeln!(
        text,
        "\n{:<width$}  {:<26}  {:<26}  {:<9}  needed with",
        "rule", "alone, added to good", "its share in bad", "confirmed"
    );
    for culprit in &answer.culprits {
        let with: Vec<&str> = culprit.with.iter().map(|part| parts[*part].text.as_str()).collect();
        let with = match culprit.role {
            Role::Alone => "nothing".to_owned(),
            Role::Together => with.join(", "),
            Role::Beside => "not what the change hangs on".to_owned(),
        };
        let _ = writeln!(
            text,
            "{:<width$}  {:<26}  {:<26}  {:<9}  {with}",
            parts[culprit.part].text,
            shown(&culprit.alone),
            shown(&culprit.in_bad),
            if culprit.confirmed { "yes" } else { "no" }
        );
    }
    let needed = answer.culprits.iter().filter(|culprit| culprit.role != Role::Beside).count();
    let word = match needed {
        0 => "no rule by itself, nor any set that was found, makes half of the change",
        1 => "one rule makes the change",
        _ if answer.culprits.iter().all(|culprit| culprit.role != Role::Together) => {
            "several rules each make a part of it"
        }
        _ => "these rules make it together",
    };
    let _ = writeln!(
        text,
        "\n{word}; on fresh seeds the smallest set makes up {:.0} % of it. Error rate {:.0} % over all rows.",
        answer.share * 100.0,
        ERROR_RATE * 100.0
    );
    text
}

fn shown(effect: &Effect) -> String {
    let percent = |fraction: f64| fraction * 100.0;
    format!("{:+.1} % [{:+.1}, {:+.1}]", percent(effect.change), percent(effect.low), percent(effect.high))
}
