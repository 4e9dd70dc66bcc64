//! A recording as our rules judge it, as a page: agreement by kind of decision, and each verdict in the timeline.

use schedlab_audit::{AuditReport, DecisionReport};
use schedlab_html::{Block, Packed, Page, Table};

/// The page of an audit; `text` is its report for people.
pub fn audited(title: &str, report: &AuditReport, text: &str, timeline: Packed) -> Page {
    let kinds: [(&str, &DecisionReport); 7] = [
        ("wake-ups", &report.wakeup),
        ("forks", &report.fork),
        ("execs", &report.exec),
        ("picks", &report.pick),
        ("preemption", &report.preempt),
        ("balancing", &report.balance),
        ("pushes and pulls", &report.push),
    ];
    let mut page = Page::new(title);
    page.reasons = super::reasons();
    let differs: u64 = kinds.iter().map(|(_, kind)| kind.counts.differs).sum();
    let agrees: u64 = kinds.iter().map(|(_, kind)| kind.counts.agrees + kind.counts.agrees_in_set).sum();
    let undecided: u64 = kinds.iter().map(|(_, kind)| kind.counts.undecided).sum();
    page.push(Block::Verdict(format!(
        "Our rules explain {agrees} of {} decisions that can be judged; {differs} differ, and {undecided} hang on facts that \
         were not recorded.",
        agrees + differs
    )));
    let columns = ["", "agrees", "in a set", "differs", "undecided", "agreement"];
    let mut table = Table::new(columns);
    for (name, kind) in kinds {
        let counts = &kind.counts;
        let agreement = counts.agreement().map_or("-".to_owned(), |part| format!("{:.1} %", part * 100.0));
        let figures = [counts.agrees, counts.agrees_in_set, counts.differs, counts.undecided];
        let figures = figures.iter().map(u64::to_string);
        table.row(std::iter::once(name.to_owned()).chain(figures).chain([agreement]));
    }
    page.push(Block::Table(table));
    page.push(Block::Heading("Timeline".to_owned()));
    page.push(Block::Note(
        "Zoomed in, each verdict is a diamond: red differs, grey is undecided, green agrees. A search for DIFFERS goes through \
         the disagreements."
            .to_owned(),
    ));
    page.push(Block::Timelines(vec![timeline]));
    page.push(Block::Heading("The whole report".to_owned()));
    page.push(Block::Preformatted(text.to_owned()));
    page
}
