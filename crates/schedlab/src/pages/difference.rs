//! Two traces side by side, as a page.

use schedlab_diff::{Difference, Side};
use schedlab_html::{Block, Cumulative, Packed, Page, Shares, Table};
use schedlab_stats::Histogram;

use super::curves::cumulative;

/// Reasons in a picture.
const REASONS: usize = 14;

/// The page of a difference.
pub fn difference(difference: &Difference, sides: [&Side; 2], timelines: Vec<Packed>) -> Page {
    let [a, b] = &difference.names;
    let mut page = Page::new(&format!("{a} and {b}"));
    page.reasons = super::reasons();
    page.push(Block::Verdict(difference.first_in_words()));
    page.push(Block::Text(format!("A is {a}, B is {b}. {}", difference.tasks_in_words())));
    page.push(Block::Heading("How often".to_owned()));
    let mut counts = Table::new(["per second", "A", "B", "change", "chance alone", ""]).with_text_in(&[5]);
    for count in &difference.counts {
        counts.row([
            count.what.clone(),
            format!("{:.1}", count.rates[0]),
            format!("{:.1}", count.rates[1]),
            format!("{:+.1}", count.chance.difference),
            format!("±{:.1}", count.chance.within),
            count.chance.word().to_owned(),
        ]);
    }
    page.push(Block::Table(counts));
    page.push(Block::Note(Difference::NOTE.to_owned()));
    page.push(Block::Heading("Tasks".to_owned()));
    page.push(Block::Table(kinds(difference)));
    let waits = sides.map(|side| {
        side.tasks.iter().fold(Histogram::new(), |mut sum, task| {
            sum.merge(&task.waits);
            sum
        })
    });
    if waits.iter().all(|waits| waits.n() > 0) {
        page.push(Block::Heading("From wake-up to run".to_owned()));
        let curves = [("A", &waits[0]), ("B", &waits[1])].map(|(name, waits)| cumulative(name, waits));
        page.push(Block::Cumulative(Cumulative { unit: "ns".to_owned(), curves: curves.into() }));
    }
    if !difference.reasons.is_empty() {
        page.push(Block::Heading("Reasons of decisions".to_owned()));
        let parts = difference.reasons.iter().take(REASONS);
        page.push(Block::Shares(Shares {
            name: "share of decisions of their kind, those that changed most".to_owned(),
            sides: vec!["A".to_owned(), "B".to_owned()],
            parts: parts
                .map(|reason| (format!("{}: {}", reason.kind, reason.reason), reason.shares.to_vec()))
                .collect(),
        }));
    }
    if !timelines.is_empty() {
        page.push(Block::Heading("Timelines".to_owned()));
        page.push(Block::Timelines(timelines));
    }
    page
}

fn kinds(difference: &Difference) -> Table {
    let mut table = Table::new([
        "tasks",
        "matched",
        "ran in A, ms",
        "in B",
        "wait p50 in A, us",
        "in B",
        "p99 in A, us",
        "in B",
        "preempted in A",
        "in B",
        "moved in A",
        "in B",
        "elsewhere, %",
        "where",
    ])
    .with_text_in(&[13]);
    let optional = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1}"));
    for kind in &difference.kinds {
        table.row([
            kind.name.clone(),
            kind.tasks.to_string(),
            format!("{:.1}", kind.ran_ms[0]),
            format!("{:.1}", kind.ran_ms[1]),
            optional(kind.wait_p50_us[0]),
            optional(kind.wait_p50_us[1]),
            optional(kind.wait_p99_us[0]),
            optional(kind.wait_p99_us[1]),
            kind.preempted[0].to_string(),
            kind.preempted[1].to_string(),
            kind.moved[0].to_string(),
            kind.moved[1].to_string(),
            format!("{:.1}", kind.elsewhere),
            kind.places_in_words().split_once(": ").map_or(String::new(), |(_, places)| places.to_owned()),
        ]);
    }
    table
}
