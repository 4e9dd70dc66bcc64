//! A reproduced table as text.

use std::fmt::Write as _;

use schedlab_report::Direction;

use super::cell::Cell;
use super::figure::Figure;
use super::published::Why;
use super::simulate::Answers;
use super::{Depends, Reproduced, Verdict};

impl Reproduced {
    /// The table cell by cell, then its last lines.
    pub fn text(&self) -> String {
        let p = &self.published;
        let mut text = format!("{}: {}\nPublished: {}; {}\n", p.name, p.title, p.source, p.kernel);
        if !self.instead.is_empty() {
            _ = writeln!(text, "Other kernels ran instead of those named: {}", self.instead.join(", "));
        }
        for block in &p.blocks {
            let cells: Vec<&Cell> = self.cells.iter().filter(|c| c.block == block.name).collect();
            if cells.is_empty() {
                continue;
            }
            let unit = if block.unit.is_empty() { String::new() } else { format!(", {}", block.unit) };
            let better = match block.direction {
                Direction::Lower => "lower",
                Direction::Higher => "higher",
            };
            _ = writeln!(text, "\n{}: {}{unit}: {better} is better", block.name, block.title);
            let mut lines = vec![
                [
                    &block.rows_are,
                    "",
                    "published",
                    "simulated",
                    "error",
                    "use",
                    "tolerance",
                    "inside",
                    "sign",
                ]
                .map(str::to_string),
            ];
            lines.extend(cells.iter().map(|cell| line(cell)));
            text.push_str(&aligned(&lines));
        }
        let (right, all) = self.signs;
        _ = writeln!(text, "\nsigns  {right} of {all} significant changes have the right sign");
        let (inside, predicted) = self.inside;
        _ = writeln!(text, "inside {inside} of {predicted} predicted cells are inside their tolerance");
        for line in &self.why {
            _ = writeln!(text, "why    {line}");
        }
        for (mechanism, pairs) in &self.without {
            for (with, without) in pairs {
                _ = writeln!(text, "without {mechanism}: {} -> {}", verdict(with), short(without));
            }
        }
        if let Some(depends) = &self.depends {
            text.push_str(&holds(depends));
        }
        text
    }
}

/// What the verdicts depend on.
fn holds(depends: &Depends) -> String {
    let Depends { repeated, shorter, copied, constants, constants_at_work, mechanisms_at_work, turned } =
        depends;
    let verdicts = repeated.len();
    let mut text = format!(
        "holds  {verdicts} verdicts at both ends of {constants} constants, {constants_at_work} of which play a part, \
         and without each of {mechanisms_at_work} mechanisms that do"
    );
    if turned.is_empty() {
        text.push('\n');
    } else {
        _ = writeln!(text, ", but for {}:", turned.len());
    }
    for turn in turned {
        let by = match turn.end {
            Some(end) => format!("{} at its {end}", turn.by),
            None => format!("without {}", turn.by),
        };
        _ = writeln!(text, "       {by}: {} -> {}", verdict(&turn.was), short(&turn.is));
    }
    let list = |parts: Vec<String>| parts.join(", ");
    if !shorter.is_empty() {
        let smaller = |table: &toml::Table| list(table.iter().map(|(k, v)| format!("{k} {v}")).collect());
        let forms = shorter.iter().map(|(scenario, table)| format!("{scenario} ({})", smaller(table)));
        _ = writeln!(text, "       in a shorter form: {}", list(forms.collect()));
    }
    if !copied.is_empty() {
        let forms = copied
            .iter()
            .map(|(scenario, spans)| format!("{scenario} ({} after {})", spans.sample, spans.settle));
        _ = writeln!(text, "       changed after a warm-up: {}", list(forms.collect()));
    }
    let escapes = repeated.iter().map(|r| format!("{} {:.1}", place(&r.short), r.escapes));
    _ = writeln!(
        text,
        "       a change of verdict by fewer points may be missed: {}",
        list(escapes.collect())
    );
    let others = repeated
        .iter()
        .filter(|r| !r.can_be_told())
        .map(|r| format!("{} -> {}", verdict(&r.full), short(&r.short)));
    let others: Vec<String> = others.collect();
    if !others.is_empty() {
        _ = writeln!(
            text,
            "       the shorter form has another verdict at the default costs for: {}",
            list(others)
        );
    }
    text
}

fn place(verdict: &Verdict) -> String {
    format!("{} {} {}", verdict.block, verdict.row, verdict.column)
}

fn verdict(verdict: &Verdict) -> String {
    format!("{} {}", place(verdict), short(verdict))
}

fn short(verdict: &Verdict) -> String {
    format!("{:+.1} % {}", verdict.change, verdict.word.name())
}

fn line(cell: &Cell) -> [String; 9] {
    let yes = |answer: Option<bool>, yes: &str, no: &str| match answer {
        Some(true) => yes.to_string(),
        Some(false) => no.to_string(),
        None => String::new(),
    };
    let change = cell.significant.is_some();
    let star = if cell.significant == Some(true) { "*" } else { "" };
    let show = |figure: &Option<Figure>| match figure {
        Some(Figure::Number(n)) if change => format!("{n:+.1} %"),
        Some(Figure::Number(n)) => number(*n),
        Some(Figure::Cpus(cpus)) => cpus.iter().map(u16::to_string).collect::<Vec<_>>().join(" "),
        None => "-".to_string(),
    };
    let spread = cell.standard_error.map_or(String::new(), |e| match change {
        true => format!(" ±{e:.1}"),
        false => format!(" ±{}", number(e)),
    });
    let error = cell.error.map_or(String::new(), |e| format!("{e:+.1} {}", cell.error_unit));
    [
        cell.row.clone(),
        cell.column.clone(),
        format!("{}{star}", show(&cell.published)),
        format!("{}{spread}", show(&cell.simulated)),
        error,
        cell.used.name().to_string(),
        cell.tolerance.clone(),
        yes(cell.inside, "yes", "NO"),
        if change { yes(cell.sign_right, "right", "WRONG") } else { String::new() },
    ]
}

/// Four significant digits, or all before the decimal point.
fn number(n: f64) -> String {
    let digits = match n.abs() {
        a if a >= 1000.0 => 0,
        a if a >= 100.0 => 1,
        a if a >= 1.0 => 2,
        0.0 => 0,
        _ => 3,
    };
    format!("{n:.digits$}")
}

fn aligned<const N: usize>(lines: &[[String; N]]) -> String {
    let wide = |column: usize| lines.iter().map(|l| l[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(wide).collect();
    let mut text = String::new();
    for line in lines {
        let mut out = String::new();
        for (column, cell) in line.iter().enumerate() {
            let gap = " ".repeat(widths[column] - cell.chars().count());
            // Names are aligned left, figures right.
            if (2..5).contains(&column) {
                _ = write!(out, "  {gap}{cell}");
            } else {
                _ = write!(out, "{}{cell}{gap}", if column == 0 { "" } else { "  " });
            }
        }
        text.push_str(out.trim_end());
        text.push('\n');
    }
    text
}

/// `one client: migrations 2.0 -> 0.0; CPUs at work 13.1 -> 1.8`.
pub fn why(why: &Why, answers: &Answers) -> Option<String> {
    let parts: Vec<String> = why
        .figures
        .iter()
        .filter_map(|figure| {
            let figures: Vec<String> =
                why.keys(figure).iter().filter_map(|key| mean(answers.get(key)?)).map(number).collect();
            (!figures.is_empty()).then(|| format!("{figure} {}", figures.join(" -> ")))
        })
        .collect();
    (!parts.is_empty()).then(|| format!("{}: {}", why.about, parts.join("; ")))
}

fn mean(figures: &[Option<Figure>]) -> Option<f64> {
    let numbers: Vec<f64> = figures.iter().filter_map(|f| f.as_ref()?.number()).collect();
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::depends::Repeated;
    use crate::reproduce::{Spans, Turned, Word};
    use schedlab_units::Duration;

    #[test]
    fn what_verdicts_depend_on_is_reported_with_what_is_not_known() {
        let verdict = |row: &str, change: f64, word: Word| Verdict {
            block: "numa".into(),
            row: row.into(),
            column: "change".into(),
            direction: Direction::Lower,
            change,
            standard_error: 0.1,
            word,
        };
        let better = verdict("1", -9.0, Word::Better);
        let depends = Depends {
            repeated: vec![
                Repeated { full: better.clone(), short: verdict("1", -8.0, Word::Better), escapes: 0.4 },
                Repeated {
                    full: verdict("2", 0.2, Word::Worse),
                    short: verdict("2", 0.1, Word::None),
                    escapes: 2.0,
                },
            ],
            shorter: [("s.toml".to_string(), toml::toml! { files = 4 })].into(),
            copied: [(
                "w.toml".to_string(),
                Spans { settle: Duration::millis(1), sample: Duration::millis(4) },
            )]
            .into(),
            constants: 78,
            constants_at_work: 29,
            mechanisms_at_work: 5,
            turned: vec![Turned {
                by: "cost.tick_ns".into(),
                end: Some("highest"),
                was: better,
                is: verdict("1", 0.0, Word::None),
            }],
        };
        let lines = [
            "holds  2 verdicts at both ends of 78 constants, 29 of which play a part, and without each of 5 mechanisms \
             that do, but for 1:",
            "       cost.tick_ns at its highest: numa 1 change -9.0 % better -> +0.0 % none",
            "       in a shorter form: s.toml (files 4)",
            "       changed after a warm-up: w.toml (4ms after 1ms)",
            "       a change of verdict by fewer points may be missed: numa 1 change 0.4, numa 2 change 2.0",
            "       the shorter form has another verdict at the default costs for: numa 2 change +0.2 % worse -> +0.1 % none",
        ];
        assert_eq!(holds(&depends).lines().collect::<Vec<_>>(), lines);
    }
}
