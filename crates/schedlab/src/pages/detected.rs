//! Findings of the detectors in a recording, each linked to its place in the timeline.

use schedlab_html::{Block, Packed, Page, Place};
use schedlab_report::detect::{Detected, Finding, Findings};

/// The page of what was found.
pub fn detected(title: &str, detected: &Detected, timeline: Packed) -> Page {
    let mut page = Page::new(title);
    page.reasons = super::reasons();
    let found: Vec<&Findings> = detected.detectors.iter().filter(|findings| findings.count > 0).collect();
    let names: Vec<String> =
        found.iter().map(|findings| format!("{} ({})", findings.detector, findings.count)).collect();
    page.push(Block::Verdict(match names.is_empty() {
        true => format!("None of {} detectors found anything.", detected.detectors.len()),
        false => format!("Found: {}.", names.join(", ")),
    }));
    if !found.is_empty() {
        page.push(Block::Note(
            "Times in front count from the start of the recording, as in the timeline; those in sentences are its own clock."
                .to_owned(),
        ));
    }
    for findings in &found {
        page.push(Block::Heading(findings.detector.to_owned()));
        page.push(Block::Text(format!("Looks for: {}.", findings.looks_for.trim_end_matches('.'))));
        page.push(Block::Places(findings.worst.iter().map(|finding| place(detected, finding)).collect()));
        let told: u64 = findings.worst.iter().map(|found| 1 + found.alike).sum();
        if told < findings.count {
            page.push(Block::Note(format!("and {} more", findings.count - told)));
        }
    }
    page.push(Block::Heading("Timeline".to_owned()));
    page.push(Block::Timelines(vec![timeline]));
    page.push(Block::Heading("The whole report".to_owned()));
    page.push(Block::Preformatted(detected.text()));
    page
}

fn place(detected: &Detected, finding: &Finding) -> Place {
    let seconds = |ns: u64| ns.saturating_sub(detected.from_ns) as f64 / 1e9;
    let remarks = finding.remarks().into_iter().map(|(word, line)| format!("{word}: {line}"));
    Place {
        from: seconds(finding.from_ns),
        to: seconds(finding.to_ns),
        cpu: finding.cpus.first().copied(),
        what: finding.what.clone(),
        lines: finding.chain.iter().cloned().chain(remarks).collect(),
    }
}
