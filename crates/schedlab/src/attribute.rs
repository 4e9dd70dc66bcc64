//! Which rules and mechanisms account for a difference between two kernels.
//!
//! Each rule in which they differ is flipped on its own on both sides: the baseline with it, and the other kernel
//! without it. Each mechanism of the hardware is switched off on both sides. All runs have the same seeds, so each line
//! says what the change would have been.

use schedlab_machine::{Mechanism, Without};
use schedlab_report::Comparison;
use schedlab_sched::Kernel;

use crate::columns::{Column, Experiment};
use crate::error::Error;
use crate::rulebook::Rulebook;
use crate::setting;

/// A rule in which two kernels differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its name.
    pub name: String,
    /// Its value in the baseline.
    pub base: String,
    /// Its value in the other kernel.
    pub other: String,
}

/// The parts of an account.
#[derive(Clone, Debug)]
pub struct Account {
    /// All columns: the two kernels, then for each line the sides it needs.
    pub experiment: Experiment,
    /// The lines.
    pub lines: Vec<Line>,
}

/// A line of an account.
#[derive(Clone, Debug)]
pub struct Line {
    /// The rule or number that is changed.
    pub what: What,
    /// Columns of the baseline and the other side that show the change alone.
    pub alone: (usize, usize),
    /// Columns that show the change without it; `None` for a mechanism.
    pub without: Option<(usize, usize)>,
}

/// The subject of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A rule.
    Rule(Difference),
    /// A mechanism that is off on both sides.
    Mechanism(&'static str),
}

/// The rules in which two kernels differ.
pub fn differences(base: &Kernel, other: &Kernel) -> Vec<Difference> {
    let (before, after) = (Rulebook::of(base), Rulebook::of(other));
    let pairs = before.entries.iter().zip(&after.entries).filter(|(a, b)| a.value != b.value);
    pairs
        .map(|(a, b)| Difference { name: a.name.to_string(), base: a.value.clone(), other: b.value.clone() })
        .collect()
}

impl Account {
    /// Plans the account of the difference between two columns.
    ///
    /// # Errors
    /// The two kernels do not differ, or one is the code of a tree.
    pub fn plan(base: &Column, other: &Column) -> Result<Account, Error> {
        for column in [base, other] {
            if crate::kernels::is_tree(column.kernel()) {
                return Err(Error::new(format!(
                    "{} is the code of a tree, and an account turns over rules of ours, one by one; compare trees with one \
                     patch each, or give the preset nearest to it",
                    column.name
                )));
            }
        }
        let differences = differences(base.kernel(), other.kernel());
        if differences.is_empty() {
            return Err(Error::new(format!(
                "{} and {} have the same rules; an account shows which rule carries a difference between two kernels",
                base.name, other.name
            )));
        }
        let mut columns = vec![base.clone(), other.clone()];
        let mut lines = Vec::new();
        for difference in differences {
            // A value that a kernel string cannot express, such as a preemption model of another build, is
            // left out.
            let with = |column: &Column, value: &str| -> Option<Column> {
                let part = setting::kernel_part(&difference.name, value);
                let kernel = Kernel::parse(&format!("{}{part}", column.kernel().name)).ok()?;
                let name = kernel.name.clone();
                let mut scenario = column.scenario.clone();
                scenario.kernels = vec![kernel];
                Some(Column::new(name, scenario))
            };
            let sides = (with(base, &difference.other), with(other, &difference.base));
            let (Some(with), Some(without)) = sides else { continue };
            let at = columns.len();
            columns.extend([with, without]);
            lines.push(Line { what: What::Rule(difference), alone: (0, at), without: Some((0, at + 1)) });
        }
        for mechanism in Mechanism::ALL {
            if !base.scenario.machine.has(mechanism) {
                continue;
            }
            let off = |column: &Column| {
                let mut column = column.clone();
                column.scenario.set_without(Without::one(mechanism));
                column.name = format!("{} without {}", column.name, mechanism.name());
                column
            };
            let at = columns.len();
            columns.extend([off(base), off(other)]);
            lines.push(Line { what: What::Mechanism(mechanism.name()), alone: (at, at + 1), without: None });
        }
        Ok(Account { experiment: Experiment::new(columns), lines })
    }

    /// The account of one figure: a comparison of `(base, other)` columns gives its change, as a fraction.
    pub fn changes(
        &self,
        compare: impl Fn(usize, usize) -> Comparison,
        metric: usize,
        row: usize,
    ) -> Vec<(String, Option<f64>, Option<f64>)> {
        let change = |(base, other): (usize, usize)| {
            let comparison = compare(base, other);
            let cell = comparison.metrics.get(metric)?.rows.get(row)?.cells.get(1)?.clone();
            cell.paired.change
        };
        let lines = self.lines.iter().map(|line| {
            let name = match &line.what {
                What::Rule(d) => format!("{} {} -> {}", d.name, d.base, d.other),
                What::Mechanism(name) => format!("{name} off"),
            };
            (name, change(line.alone), line.without.and_then(change))
        });
        lines.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{NoFiles, Scenario};

    #[test]
    fn each_rule_is_turned_over_on_both_sides_and_each_mechanism_is_off_on_both() {
        let text = "machine = \"2x2\"\nkernels = [\"v6.12\", \"v6.12+NO_SIS_UTIL+NO_WA_WEIGHT\"]\nlimit = \"1ms\"\n[workload]\n\
                    [[workload.task]]\nname = \"w\"\nprogram = \"loop forever; run 1ms; end\"\n";
        let scenario = Scenario::parse("f", text, &NoFiles).unwrap();
        let columns = Experiment::of(&scenario).columns;
        let account = Account::plan(&columns[0], &columns[1]).unwrap();
        let rules = account.lines.iter().filter(|line| matches!(line.what, What::Rule(_))).count();
        assert_eq!(rules, 2);
        let names = account.experiment.names();
        assert_eq!(names[2], "v6.12+NO_WA_WEIGHT");
        assert_eq!(names[3], "v6.12+NO_SIS_UTIL+NO_WA_WEIGHT+WA_WEIGHT");
        assert!(account.lines.iter().any(|line| line.what == What::Mechanism("smt")));
        assert!(Account::plan(&columns[0], &columns[0]).is_err());
        let mut tree = columns[1].clone();
        tree.scenario.kernels[0].name = "tree:linux+my.patch".into();
        assert!(Account::plan(&columns[0], &tree).unwrap_err().to_string().contains("code of a tree"));
        // Two patches of one tree have the same nearest rules and are still two columns.
        let mut patched = tree.clone();
        patched.scenario.kernels[0].name = "tree:linux".into();
        assert!(Experiment::new(vec![tree.clone(), patched]).alike().is_empty());
        assert_eq!(Experiment::new(vec![tree.clone(), tree]).alike().len(), 1);
    }
}
