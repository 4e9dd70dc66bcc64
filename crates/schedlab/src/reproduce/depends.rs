//! What each verdict depends on: every constant of the machine at either end of its range,
//! and every mechanism off, one at a time.
//!
//! There are some 160 such pushes, so each is evaluated only as far as needed:
//!
//! ```text
//!   unpushed, several seeds               a run that never asks for the constant?   as it was
//!        |
//!   first row, first kernel, one seed     every figure as before to the last bit?   plays no part
//!        |
//!   all verdicts, the same seed           each within twice its spread, or the same word?   stands
//!        |
//!   the verdicts in doubt, more seeds     another word, by twice its standard error?   turned
//! ```
//!
//! The third step misses changes smaller than the spread of one run, and the output says so. It also reports verdicts
//! that already differ because the scenario is shortened for this.

use std::collections::{BTreeMap, BTreeSet};

use schedlab_machine::{Mechanism, Without};
use serde::Serialize;

use super::cell::Word;
use super::copies::Spans;
use super::published::{Block, Published, Row};
use super::simulate::{Answers, End, Key, Scenarios, Setting};
use super::verdict::{Turned, Verdict, turned, verdicts};
use crate::error::Error;

/// What a table's verdicts depend on.
#[derive(Clone, Debug, Serialize)]
pub struct Depends {
    /// The verdicts without a push, in the form in which they are repeated.
    pub repeated: Vec<Repeated>,
    /// The shortened settings, by scenario.
    pub shorter: BTreeMap<String, toml::Table>,
    /// How long copies of a warm run continue, by scenario.
    pub copied: BTreeMap<String, Spans>,
    /// Constants that have a range.
    pub constants: usize,
    /// Those that change any figure at all.
    pub constants_at_work: usize,
    /// Mechanisms that change any figure at all.
    pub mechanisms_at_work: usize,
    /// Verdicts that turned.
    pub turned: Vec<Turned>,
}

/// A verdict that was repeated under every push.
#[derive(Clone, Debug, Serialize)]
pub struct Repeated {
    /// The verdict of the table.
    pub full: Verdict,
    /// The verdict in the repeated form.
    pub short: Verdict,
    /// A turn by fewer percentage points is not detected.
    pub escapes: f64,
}

impl Repeated {
    /// Whether the repeated form has the same verdict.
    pub fn can_be_told(&self) -> bool {
        self.full.word == self.short.word
    }
}

/// One constant at one end, or one mechanism off.
struct Push {
    name: String,
    end: Option<End>,
    setting: Setting,
}

/// Repeats the verdicts of all rows under every push. `full` are the table's own.
///
/// # Errors
/// A run that could not be finished.
pub fn depends(
    published: &Published,
    scenarios: &Scenarios,
    full: &[Verdict],
    threads: usize,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Depends, Error> {
    let keys = published.keys_of_changes(|_, _| true);
    let runs = Some(published.end_runs);
    let base = Setting { runs, ..Setting::default() };
    let copies = scenarios.warm_up(&keys, &published.copied, published.end_runs, threads, progress)?;
    let base = scenarios.simulate(&copies, &[(base, keys.clone())], threads, progress)?.remove(0);
    let was = verdicts(published, |_, _| true, &base.answers);
    let unpushed: Answers = base.answers.iter().map(|(key, all)| (key.clone(), all[..1].to_vec())).collect();

    let pushes = pushes(scenarios);
    // A run cannot depend on a constant that it never uses.
    let matters = |push: &Push, key: &Key| push.end.is_none() || base.asked[key].contains(&push.name);
    let once = |push: &Push, keys: Vec<Key>| (Setting { runs: Some(1), ..push.setting.clone() }, keys);
    let may_matter: Vec<Vec<Key>> =
        pushes.iter().map(|push| keys.iter().filter(|key| matters(push, key)).cloned().collect()).collect();
    // First the first row of each scenario,
    let first: Vec<Vec<Key>> = may_matter.iter().map(|keys| scenarios.first_of_each(keys)).collect();
    let asked: Vec<_> = pushes.iter().zip(&first).map(|(push, first)| once(push, first.clone())).collect();
    let found = scenarios.simulate(&copies, &asked, threads, progress)?;
    let mut found: Vec<Answers> = found.into_iter().map(|found| found.answers).collect();
    // then all others of those scenarios where that made a difference,
    let asked: Vec<_> = (pushes.iter().zip(&may_matter))
        .zip(first.iter().zip(&found))
        .map(|((push, keys), (first, found))| {
            let moved: BTreeSet<&str> = found
                .iter()
                .filter(|(key, figures)| unpushed[*key] != **figures)
                .map(|(key, _)| key.scenario.as_str())
                .collect();
            let rest = |key: &&Key| moved.contains(key.scenario.as_str()) && !first.contains(key);
            once(push, keys.iter().filter(rest).cloned().collect())
        })
        .collect();
    for (found, more) in found.iter_mut().zip(scenarios.simulate(&copies, &asked, threads, progress)?) {
        found.extend(more.answers);
    }
    // and finally the verdicts that may have turned.
    let spread = |was: &Verdict| f64::from(published.end_runs).sqrt() * was.standard_error;
    let doubts: Vec<BTreeSet<(String, String)>> = found
        .iter()
        .map(|found| {
            let mut answers = unpushed.clone();
            answers.extend(found.iter().map(|(key, figures)| (key.clone(), figures.clone())));
            let is = verdicts(published, |_, _| true, &answers);
            let is_of = |was: &Verdict| is.iter().find(|is| is.is_of_same(was));
            let doubts =
                was.iter().filter(|was| is_of(was).is_some_and(|is| in_doubt(was, is.change, spread(was))));
            doubts.map(|was| (was.block.clone(), was.row.clone())).collect()
        })
        .collect();
    let doubtful = |doubts: &BTreeSet<(String, String)>, block: &Block, row: &Row| {
        doubts.contains(&(block.name.clone(), row.key.clone()))
    };
    let asked: Vec<_> = pushes
        .iter()
        .zip(&doubts)
        .map(|(push, doubts)| {
            let mut keys = published.keys_of_changes(|block, row| doubtful(doubts, block, row));
            keys.retain(|key| matters(push, key));
            (Setting { runs, ..push.setting.clone() }, keys)
        })
        .collect();
    let repeated = scenarios.simulate(&copies, &asked, threads, progress)?;
    let mut all_turned = Vec::new();
    for ((push, doubts), repeated) in pushes.iter().zip(&doubts).zip(repeated) {
        // A scenario that the push does not affect has no answers of its own.
        let mut answers = base.answers.clone();
        answers.extend(repeated.answers);
        let is = verdicts(published, |block, row| doubtful(doubts, block, row), &answers);
        all_turned.extend(turned(&push.name, push.end, &was, &is));
    }

    let at_work: BTreeMap<&str, bool> = pushes
        .iter()
        .zip(&found)
        .filter(|(_, found)| found.iter().any(|(key, figures)| unpushed[key] != *figures))
        .map(|(push, _)| (push.name.as_str(), push.end.is_some()))
        .collect();
    let repeated = was.iter().filter_map(|short| {
        let full = full.iter().find(|full| full.is_of_same(short))?.clone();
        Some(Repeated { full, short: short.clone(), escapes: 2.0 * spread(short) })
    });
    Ok(Depends {
        repeated: repeated.collect(),
        shorter: published.shorter.clone(),
        copied: published.copied.clone(),
        constants: scenarios.constants().len(),
        constants_at_work: at_work.values().filter(|constant| **constant).count(),
        mechanisms_at_work: at_work.values().filter(|constant| !**constant).count(),
        turned: all_turned,
    })
}

fn pushes(scenarios: &Scenarios) -> Vec<Push> {
    let mut pushes = Vec::new();
    for name in scenarios.constants() {
        for end in [End::Low, End::High] {
            let setting = Setting { constant: Some((name.clone(), end)), ..Setting::default() };
            pushes.push(Push { name: name.clone(), end: Some(end), setting });
        }
    }
    for &(mechanism, name, _) in Mechanism::TABLE {
        let setting = Setting { without: Without::NOTHING.with(mechanism), ..Setting::default() };
        pushes.push(Push { name: name.to_string(), end: None, setting });
    }
    pushes
}

/// Whether one run's change differs from the mean of several by more than twice the spread of one run.
fn in_doubt(was: &Verdict, change: f64, spread: f64) -> bool {
    let word = Word::of(change, was.standard_error, was.direction);
    word != was.word && (change - was.change).abs() > 2.0 * spread
}

#[cfg(test)]
mod tests {
    use schedlab_report::Direction;
    use schedlab_units::Duration;

    use super::*;
    use crate::embedded::embedded_scenario;
    use crate::reproduce::{Copies, published as tables};
    use crate::scenario::{NoFiles, Scenario};

    #[test]
    fn smaller_scenarios_can_be_read() {
        for table in tables() {
            for name in table.shorter.keys() {
                let text = embedded_scenario(name).unwrap_or_else(|| panic!("{}: {name}", table.file));
                let smaller = table.shortened(name, text);
                assert_ne!(smaller, text);
                if let Err(e) = Scenario::parse(name, &smaller, &NoFiles) {
                    panic!("{}: {e}", table.file);
                }
            }
        }
    }

    /// One client on 8 CPUs: few of the constants matter to it, and bandwidth does not.
    #[test]
    fn what_plays_no_part_is_distinguished_from_what_does() {
        let mut table = tables().into_iter().find(|table| table.name == "kthread-stack").unwrap();
        table.blocks.retain(|block| block.name == "uma");
        table.blocks[0].rows.retain(|row| row.key == "1");
        table.end_runs = 2;
        let keys = table.keys_of_changes(|_, _| true);
        assert_eq!(keys.len(), 2);
        let text = |name: &str| Some(table.shortened(name, embedded_scenario(name)?));
        let scenarios = Scenarios::read(&keys, text).unwrap();
        let full = scenarios
            .simulate(&Copies::default(), &[(Setting::default(), keys)], 0, &|_, _| ())
            .unwrap()
            .remove(0);
        let full = verdicts(&table, |_, _| true, &full.answers);
        let found = depends(&table, &scenarios, &full, 0, &|_, _| ()).unwrap();
        assert_eq!(found.repeated.len(), 1);
        assert!((10..found.constants / 2).contains(&found.constants_at_work), "{found:?}");
        assert!((3..9).contains(&found.mechanisms_at_work), "{found:?}");
    }

    /// hackbench with one group beside the flood: the cost of forks is only used before it is warm.
    #[test]
    fn copies_of_a_warm_run_tell_the_same_on_any_number_of_threads() {
        let mut table = tables().into_iter().find(|table| table.name == "irq-capacity").unwrap();
        table.blocks.retain(|block| block.name == "hackbench");
        table.blocks[0].rows.retain(|row| row.key == "1");
        table.end_runs = 2;
        let names = ["irq-capacity-hackbench.toml", "irq-capacity-hackbench-quiet.toml"].map(str::to_string);
        let spans = Spans { settle: Duration::micros(100), sample: Duration::millis(1) };
        table.copied = names.clone().map(|name| (name, spans)).into();
        table.shorter = names.map(|name| (name, toml::toml! { sampled_from = 1 })).into();
        let keys = table.keys_of_changes(|_, _| true);
        assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), 3);
        let text = |name: &str| Some(table.shortened(name, embedded_scenario(name)?));
        let scenarios = Scenarios::read(&keys, text).unwrap();
        let found = [1, 2].map(|threads| depends(&table, &scenarios, &[], threads, &|_, _| ()).unwrap());
        assert_eq!(format!("{:?}", found[0]), format!("{:?}", found[1]));
        assert!((10..found[0].constants / 2).contains(&found[0].constants_at_work), "{found:?}");

        let copies = scenarios.warm_up(&keys, &table.copied, 1, 0, &|_, _| ()).unwrap();
        let base = Setting { runs: Some(1), ..Setting::default() };
        let base = scenarios.simulate(&copies, &[(base, keys)], 0, &|_, _| ()).unwrap().remove(0);
        for (key, asked) in &base.asked {
            assert!(
                asked.contains("cost.socket_ns") && !asked.contains("cost.fork_ns"),
                "{key:?}: {asked:?}"
            );
        }
    }

    #[test]
    fn one_run_casts_doubt_on_a_verdict_only_beyond_its_spread() {
        let was = Verdict {
            block: "b".into(),
            row: "1".into(),
            column: "change".into(),
            direction: Direction::Lower,
            change: -4.0,
            standard_error: 1.0,
            word: Word::Better,
        };
        for (change, expected) in [(-4.1, false), (-1.5, false), (-0.5, false), (0.5, true), (3.0, true)] {
            assert_eq!(in_doubt(&was, change, 2.0), expected, "{change}");
        }
    }
}
