//! Compares results with the expectations of a scenario.

use schedlab_report::Comparison;

use crate::experiment::{Results, Run};
use crate::scenario::{Expect, Row, Scenario, What};

/// An expectation and whether it was met.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Judgement {
    /// Line of the scenario.
    pub line: usize,
    /// Whether it was met.
    pub met: bool,
    /// The expectation and the result.
    pub sentence: String,
}

impl Scenario {
    /// Judges every expectation.
    pub fn judge(&self, results: &Results, comparison: &Comparison) -> Vec<Judgement> {
        self.expect.iter().flat_map(|expect| self.judge_one(expect, results, comparison)).collect()
    }

    fn judge_one(&self, expect: &Expect, results: &Results, comparison: &Comparison) -> Vec<Judgement> {
        let kernel = match &expect.kernel {
            Some(name) => self.kernels.iter().position(|k| &k.name == name).expect("checked when read"),
            None => self.kernels.len() - 1,
        };
        match &expect.what {
            What::Change { metric, change } => self.judge_change(expect, kernel, metric, *change, comparison),
            What::Value { metric, value } => self.judge_value(expect, kernel, metric, *value, results),
            What::Forks(cpus) => vec![self.judge_forks(expect, kernel, cpus, results)],
        }
    }

    fn judge_change(
        &self,
        expect: &Expect,
        kernel: usize,
        metric: &str,
        bounds: [f64; 2],
        comparison: &Comparison,
    ) -> Vec<Judgement> {
        let [low, high] = bounds.map(|b| 100.0 * b);
        let mut found = Vec::new();
        for m in &comparison.metrics {
            for row in &m.rows {
                // STREAM's kernels are rows of one table, so a metric may be named by its row.
                let named = m.name == metric || row.key == metric;
                if !named || expect.row.as_ref().is_some_and(|wanted| wanted != &row.key) {
                    continue;
                }
                let change = 100.0 * (row.cells[kernel].summary.mean() / row.cells[0].summary.mean() - 1.0);
                let key = if row.key.is_empty() { &m.name } else { &row.key };
                found.push(Judgement {
                    line: expect.line,
                    met: (low..=high).contains(&change),
                    sentence: format!(
                        "{key} under {}: {change:+.1} %, expected {low:+.1} to {high:+.1} %",
                        self.kernels[kernel].name
                    ),
                });
            }
        }
        if found.is_empty() {
            found.push(Judgement {
                line: expect.line,
                met: false,
                sentence: format!("no run measured \"{metric}\""),
            });
        }
        found
    }

    fn judge_value(
        &self,
        expect: &Expect,
        kernel: usize,
        metric: &str,
        [low, high]: [f64; 2],
        results: &Results,
    ) -> Vec<Judgement> {
        let name = &self.kernels[kernel].name;
        let of_row = |(row, runs): (&Row, &Vec<Vec<Run>>)| {
            let at = row.workload.measures.iter().position(|measure| measure.name == metric)?;
            let values: Option<Vec<f64>> =
                runs.get(kernel)?.iter().map(|run| run.folds.marks[at].value()).collect();
            let values = values.filter(|values| !values.is_empty())?;
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let unit = row.workload.measures[at].unit;
            let key = if row.key.is_empty() { metric } else { &row.key };
            let sentence = format!("{key} under {name}: {mean} {unit}, expected {low} to {high}");
            Some(Judgement { line: expect.line, met: (low..=high).contains(&mean), sentence })
        };
        let rows = self.rows.iter().zip(&results.runs);
        let wanted = rows.filter(|(row, _)| expect.row.as_ref().is_none_or(|key| key == &row.key));
        let found: Vec<Judgement> = wanted.filter_map(of_row).collect();
        match found.is_empty() {
            true => vec![Judgement {
                line: expect.line,
                met: false,
                sentence: format!("no run under {name} measured \"{metric}\""),
            }],
            false => found,
        }
    }

    fn judge_forks(&self, expect: &Expect, kernel: usize, cpus: &[u16], results: &Results) -> Judgement {
        let rows = self.rows.iter().zip(&results.runs);
        let wanted = rows.filter(|(row, _)| expect.row.as_ref().is_none_or(|key| key == &row.key));
        let runs: Vec<_> = wanted.flat_map(|(_, by_kernel)| &by_kernel[kernel]).collect();
        let differs = runs.iter().find_map(|run| {
            let went: Vec<u16> =
                run.folds.placements.tasks.iter().take(cpus.len()).map(|task| task.to.0).collect();
            (went != cpus).then_some((run.seed, went))
        });
        let name = &self.kernels[kernel].name;
        let sentence = match &differs {
            None => format!("new tasks under {name}: CPUs {} in all {} runs", list(cpus), runs.len()),
            Some((seed, went)) => format!(
                "new tasks under {name}: CPUs {} with seed {seed}, expected {}",
                list(went),
                list(cpus)
            ),
        };
        Judgement { line: expect.line, met: differs.is_none(), sentence }
    }
}

fn list(cpus: &[u16]) -> String {
    cpus.iter().map(u16::to_string).collect::<Vec<_>>().join(" ")
}
