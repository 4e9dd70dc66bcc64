//! Remedies for findings in a simulated run, each tried by running it.
//!
//! Remedies that a finding names are always run. For findings that name none, every feature is flipped and every form
//! of a rule is tried, one at a time, if the runs are short enough.

use schedlab::Rulebook;
use schedlab::report::detect::Detected;
use schedlab::report::render;
use schedlab::sched::Kernel;
use serde::Serialize;

use crate::error::Error;

/// Maximum number of events in a search; the search is skipped if it would need more.
const EVENTS: u64 = 30_000_000;

/// Results of the remedies.
#[derive(Debug, Default, Serialize)]
pub struct Ways {
    /// Remedies that findings name.
    pub tested: Vec<Tested>,
    /// The search for others, if some finding names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
}

/// A remedy that was run.
#[derive(Debug, Serialize)]
pub struct Tested {
    switch: String,
    detector: &'static str,
    /// Findings without it and with it.
    found: [u64; 2],
    /// Lost time without it and with it, ns.
    lost_ns: [u64; 2],
}

/// A search over every switch of a kernel.
#[derive(Debug, Serialize)]
pub struct Search {
    /// Number of switches that were flipped, one at a time.
    pub tried: usize,
    /// Why nothing was tried, if nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
    /// Switches that leave at most half of the lost time, the best first.
    pub found: Vec<Tested>,
}

/// Tries all remedies; `look` returns the findings under a kernel.
pub fn tried(
    detected: &Detected,
    kernel: &Kernel,
    look: impl Fn(&Kernel) -> Result<Detected, Error>,
) -> Result<Ways, Error> {
    let with = |switch: &str| -> Result<Detected, Error> {
        look(&schedlab::kernels::kernel(&format!("{}+{switch}", kernel.name), &mut |_| {})?)
    };
    let mut ways = Ways::default();
    let mut known: Vec<&str> = Vec::new();
    for avoid in detected.detectors.iter().flat_map(|of| &of.worst).flat_map(|found| &found.avoid) {
        if !known.contains(&avoid.switch) {
            known.push(avoid.switch);
            ways.tested.extend(changed(avoid.switch, detected, &with(avoid.switch)?));
        }
    }
    let nameless: Vec<&'static str> = detected
        .detectors
        .iter()
        .filter(|of| of.worst.iter().any(|found| found.avoid.is_empty() && found.lost_ns > 0))
        .map(|of| of.detector)
        .collect();
    if nameless.is_empty() || schedlab::kernels::is_tree(kernel) {
        return Ok(ways);
    }
    let switches = switches(kernel);
    let events = detected.events * switches.len() as u64;
    if events > EVENTS {
        let left_out = format!(
            "{} switches of a run of {} events would take too long; a shorter --limit makes room",
            switches.len(),
            detected.events
        );
        ways.search = Some(Search { tried: 0, left_out: Some(left_out), found: Vec::new() });
        return Ok(ways);
    }
    let mut search = Search { tried: switches.len(), left_out: None, found: Vec::new() };
    for switch in &switches {
        let changed = changed(switch, detected, &with(switch)?);
        search.found.extend(
            changed
                .into_iter()
                .filter(|one| nameless.contains(&one.detector) && 2 * one.lost_ns[1] <= one.lost_ns[0]),
        );
    }
    search.found.sort_by_key(|one| one.lost_ns[1]);
    ways.search = Some(search);
    Ok(ways)
}

/// Every flipped feature, and every other form of a rule, that has an effect in this kernel.
fn switches(kernel: &Kernel) -> Vec<String> {
    let mut switches = Vec::new();
    for entry in Rulebook::of(kernel).entries {
        match entry.kind {
            "feature" if entry.value == "on" => switches.push(format!("NO_{}", entry.name)),
            "feature" => switches.push(entry.name.to_string()),
            "rule" => {
                let others = entry.forms.iter().filter(|form| **form != entry.value);
                switches.extend(others.map(|form| format!("{}={form}", entry.name)));
            }
            _ => {}
        }
    }
    switches.retain(|switch| kernel.is_turned_by(switch));
    switches
}

fn changed(switch: &str, before: &Detected, after: &Detected) -> Vec<Tested> {
    let pairs = before.detectors.iter().zip(&after.detectors).filter(|(b, a)| b.count + a.count > 0);
    let tested = pairs.map(|(before, after)| Tested {
        switch: switch.to_string(),
        detector: before.detector,
        found: [before.count, after.count],
        lost_ns: [before.lost_ns, after.lost_ns],
    });
    tested.collect()
}

impl Ways {
    /// The text lines.
    pub fn text(&self, kernel: &Kernel) -> String {
        let mut out = String::new();
        if !self.tested.is_empty() {
            out += &format!("\nremedies, run under {}:\n", kernel.name);
            self.tested.iter().for_each(|one| out += &one.text());
        }
        let Some(search) = &self.search else { return out };
        if let Some(left_out) = &search.left_out {
            return out
                + &format!("\nno remedy is known for some of it, and none was searched for: {left_out}\n");
        }
        out += &format!("\n{} switches of {} flipped, one at a time:  ", search.tried, kernel.name);
        match search.found.len() {
            0 => out += "none of them halves the time lost\n",
            n => out += &format!("{n} halve the time lost\n"),
        }
        search.found.iter().take(8).for_each(|one| out += &one.text());
        out
    }
}

impl Tested {
    fn text(&self) -> String {
        let lost = self.lost_ns.map(|ns| render::quantity(ns as f64, "ns"));
        let [before, after] = self.found;
        format!(
            "  {:<28} {:<18} {before} found, {} lost -> {after} found, {} lost\n",
            self.switch, self.detector, lost[0], lost[1]
        )
    }
}
