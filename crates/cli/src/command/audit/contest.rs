//! How the rules of other kernels explain a recording, on the decisions where kernels disagree.

use std::io::{self, Write};

use schedlab::audit::{Contest, Contested, Options};
use schedlab::recording::Facts;
use schedlab::sched::Kernel;
use schedlab::trace::NullSink;
use serde_json::{Value, json};

use super::follow_with;
use crate::args::{Audit, Contest as When};
use crate::count::counted;
use crate::error::Error;
use crate::recorded::Recorded;
use crate::recording::is_read_once;

/// Kernels whose rules are used: one release of each scheduler that differs a lot.
const PRESETS: [&str; 5] = ["v5.5", "v5.18", "v6.1", "v6.12", "v7.2"];

/// Maximum number of events for which this is done by default.
const EVENTS_MAX: u64 = 500_000;

/// The results of each kernel, the audit's own first.
pub struct Explained {
    contest: Contest,
    kernels: Vec<String>,
    nr_cpus: usize,
}

/// Judges one recording by other kernels, if requested or if it takes little time.
pub fn of(args: &Audit, audited: &[(&Recorded, Facts, u64)]) -> Result<Option<Explained>, Error> {
    let [(recorded, facts, events)] = audited else {
        if args.contest == When::Always {
            return Err(Error::new("--contest always: there are several recordings; name the folder of one"));
        }
        return Ok(None);
    };
    let wanted = match args.contest {
        When::Always => true,
        When::Auto => *events <= EVENTS_MAX && !is_read_once(&recorded.trace),
        When::Never => false,
    };
    if !wanted {
        return Ok(None);
    }
    if is_read_once(&recorded.trace) {
        return Err(Error::new(format!(
            "{}: --contest reads the recording several times, and this can be read once; save it as a file",
            recorded.trace.display()
        )));
    }
    let own = &facts.kernel;
    let mut kernels = vec![own.name.clone()];
    kernels.extend(PRESETS.iter().filter(|name| **name != own.name).map(|name| (*name).to_owned()));
    let mut verdicts = Vec::new();
    for (number, name) in kernels.iter().enumerate() {
        let mut facts = facts.clone();
        if number > 0 {
            let other = Kernel::parse(name)?;
            facts.kernel = Kernel { tunables: own.tunables.clone(), preempt: own.preempt, ..other };
        }
        let options = Options { keep_verdicts: true, stories: 0, ..Options::of(&facts) };
        verdicts.push(follow_with(recorded, &facts, options, NullSink, true)?.0.verdicts);
    }
    let nr_cpus = facts.topology.online().weight();
    Ok(Some(Explained { contest: Contest::between(&verdicts), kernels, nr_cpus }))
}

impl Explained {
    /// Each kernel with its result on all contested decisions, the best agreement first.
    fn ranked(&self) -> Vec<(&str, Contested)> {
        let mut ranked: Vec<(&str, Contested)> =
            self.kernels.iter().map(String::as_str).zip(self.contest.total()).collect();
        ranked.sort_by(|a, b| b.1.agreement().unwrap_or(-1.0).total_cmp(&a.1.agreement().unwrap_or(-1.0)));
        ranked
    }
}

/// Prints the kernels in the order in which they explain the recording.
pub fn print(out: &mut dyn Write, explained: &Explained) -> io::Result<()> {
    let asked: u64 = explained.contest.asked.values().sum();
    let ranked = explained.ranked();
    let Some((best, first)) = ranked.first() else {
        return writeln!(
            out,
            "\nwhere kernels differ: on none of {asked} decisions; any preset explains this recording"
        );
    };
    let contested = first.judged() + first.undecided;
    writeln!(
        out,
        "\nwhere kernels differ: {contested} of {asked} decisions, on {}",
        counted(explained.nr_cpus as u64, "CPU")
    )?;
    writeln!(
        out,
        "{:<24} {:>7} {:>9} {:>8} {:>8} {:>10}   agreement",
        "rules of", "agrees", "in a set", "set size", "differs", "undecided"
    )?;
    for (name, of) in &ranked {
        let agreement = of.agreement().map_or_else(|| "-".to_owned(), |share| format!("{share:.2} %"));
        let size = match of.in_set {
            0 => "-".to_owned(),
            sets => format!("{:.1}", of.set_sizes as f64 / sets as f64),
        };
        writeln!(
            out,
            "  {name:<22} {:>7} {:>9} {size:>8} {:>8} {:>10} {agreement:>11}",
            of.exact, of.in_set, of.wrong, of.undecided
        )?;
    }
    let second = ranked.get(1).and_then(|(name, of)| Some((name, of.agreement()?)));
    match (first.agreement(), second) {
        (Some(most), Some((name, next))) if most > next => {
            writeln!(
                out,
                "{best} explains this recording best, {:.2} percentage points before {name}",
                most - next
            )
        }
        (Some(_), Some((name, _))) => writeln!(out, "{best} and {name} explain this recording equally well"),
        _ => Ok(()),
    }
}

/// The same numbers.
pub fn as_json(explained: &Explained) -> Value {
    let kernels: Vec<Value> = explained
        .ranked()
        .into_iter()
        .map(|(name, of)| {
            json!({
                "kernel": name,
                "agrees": of.exact,
                "agrees_in_set": of.in_set,
                "set_sizes": of.set_sizes,
                "differs": of.wrong,
                "undecided": of.undecided,
                "agreement_percent": of.agreement(),
            })
        })
        .collect();
    json!({ "decisions": explained.contest.asked.values().sum::<u64>(), "kernels": kernels })
}
