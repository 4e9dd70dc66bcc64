//! Whether a verdict depends on facts that no source reports, checked with a few more runs.
//!
//! A starred change can be decided by the idle state that a CPU happens to choose, by turbo, or by prices that are only
//! known within a range. So its rows run again, on all sides and with the first seeds: without idle states, with
//! constant clocks, and with the prices of one part of the time at either end of their ranges, the part in which the
//! sides differ most. The shift of the change with those seeds is assumed to apply to all seeds:
//!
//! ```text
//!   all seeds +9.0 %     first seed +8.0 %, without idle states -4.0 %     so the verdict would be -3.0 %: a coin
//! ```
//!
//! The budget is half of the runs already made, but at least two checks of one seed. [`crate::ends`] does this for each
//! constant separately.

use std::ops::RangeInclusive;

use schedlab_machine::{Law, Machine, Mechanism, Without};
use schedlab_report::Comparison;
use schedlab_sim::{OfCpu, Part};

use crate::because::busy_share;
use crate::columns::{Column, Experiment};
use crate::error::Error;
use crate::experiment::Results;

/// A change that is smaller than this after a check says nothing about its sign.
const LEAST: f64 = 0.01;

/// Maximum number of seeds of a check.
const SEEDS_MAX: usize = 3;

/// Prices by the part of the time that they make up, as prefixes of their names.
const PRICES: &[(Part, &str, &[&str])] = &[
    (
        Part::Call,
        "prices of calls",
        &[
            "cost.syscall_ns",
            "cost.pipe_ns",
            "cost.pipe_write_ns",
            "cost.pipe_page_ns",
            "cost.pipe_free_page_ns",
            "cost.socket_ns",
            "cost.futex_ns",
            "cost.copy_kb_ns",
        ],
    ),
    (Part::Wakeup, "prices of wake-ups", &["cost.wakeup_ns", "cost.activate_ns", "cost.wake_list_ns"]),
    (Part::Search, "prices of searches", &["cost.idle_scan_cpu_ns", "cacheline.look_lines"]),
    (Part::Pass, "prices of passes", &["cost.balance_", "cost.blocked_update_ns", "cacheline.pass_lines"]),
    (Part::Lines, "distances of caches", &["cacheline."]),
    (Part::Waiting, "distances of caches", &["cacheline."]),
    (Part::Refill, "prices of cold caches", &["cache."]),
    (Part::Switch, "prices of switches", &["cost.context_switch_ns", "cost.sleep_ns"]),
    (Part::Irq, "prices of interrupts", &["ipi.", "cost.irq_ns", "cost.tick_ns", "cost.timer_irq_ns"]),
];

/// A task's own work depends on these. Bandwidths are not among them: they are properties of a machine that its file
/// specifies.
const WORK: (&str, &[&str]) = ("shares of threads of a core", &["smt."]);

/// A check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// `without idle states`
    pub name: String,
    /// Its column for each column of the comparison, baseline first.
    pub columns: Vec<usize>,
}

/// What is run: the columns as they are, and those of each check.
#[derive(Clone, Debug)]
pub struct Checks {
    /// All columns.
    pub experiment: Experiment,
    /// The checks; empty if none would have an effect.
    pub checks: Vec<Check>,
    /// Runs of each.
    pub seeds: u32,
}

/// What the checks say about one starred change.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// The unmodified change, a fraction.
    pub change: f64,
    /// The change under each check, by the names of the checks.
    pub would_be: Vec<(String, f64)>,
    /// The checks that change its sign.
    pub turned: Vec<String>,
    /// About twice the spread of so few pairs: a smaller shift of the change is not significant.
    pub noise: f64,
}

/// What a check changes on all sides.
enum How {
    Without(Mechanism),
    /// Constants by their paths.
    Set(Vec<(String, u64)>),
}

impl How {
    fn change(&self, column: &mut Column) -> Result<(), Error> {
        match self {
            How::Without(mechanism) => column.scenario.set_without(Without::one(*mechanism)),
            How::Set(values) => {
                for (path, value) in values {
                    column.scenario.set_constant(path, *value).map_err(|e| Error::new(e.to_string()))?;
                }
            }
        }
        Ok(())
    }
}

impl Checks {
    /// Plans the checks of the rows with a star; `rows` index the experiment's keys.
    ///
    /// # Errors
    /// A constant that cannot be set.
    pub fn plan(experiment: &Experiment, results: &Results, rows: &[usize]) -> Result<Checks, Error> {
        let keys: Vec<String> = rows.iter().map(|&row| experiment.keys[row].clone()).collect();
        let mut columns = experiment.columns.clone();
        for column in &mut columns {
            column.scenario.rows.retain(|row| keys.contains(&row.key));
        }
        let sides = columns.clone();
        // Runs per side and row within the budget.
        let fewest = rows.iter().flat_map(|&row| &results.runs[row]).map(Vec::len).min().unwrap_or(0);
        let budget = (fewest / 2).max(2);
        let machine = &experiment.base().machine;
        let has_idle = machine.has(Mechanism::IdleStates) && !machine.idle.states().is_empty();
        let mut planned: Vec<(String, How)> = Vec::new();
        if has_idle {
            planned.push(("without idle states".to_string(), How::Without(Mechanism::IdleStates)));
        }
        if has_clocks(machine) {
            planned.push(("with constant clocks".to_string(), How::Without(Mechanism::Frequency)));
        }
        let (what, names) = prices(results, rows);
        let constants = machine.constants();
        let asked: Vec<(String, RangeInclusive<u64>)> = constants
            .iter()
            .map(|(row, cost)| (row.path(), cost))
            .filter(|(path, cost)| cost.was_asked() && names.iter().any(|name| path.starts_with(name)))
            .map(|(path, cost)| (path, cost.range()))
            .filter(|(_, range)| range.start() < range.end())
            .collect();
        if !asked.is_empty() && planned.len() + 2 <= budget {
            let at = |end: fn(&RangeInclusive<u64>) -> &u64| {
                How::Set(asked.iter().map(|(path, range)| (path.clone(), *end(range))).collect())
            };
            planned.push((format!("at the lowest {what}"), at(RangeInclusive::start)));
            planned.push((format!("at the highest {what}"), at(RangeInclusive::end)));
        }
        let mut checks = Vec::new();
        for (name, how) in planned {
            let first = columns.len();
            for side in &sides {
                let mut column = side.clone();
                how.change(&mut column)?;
                column.name = format!("{} {name}", side.name);
                columns.push(column);
            }
            checks.push(Check { name, columns: (first..columns.len()).collect() });
        }
        let seeds = (budget / checks.len().max(1)).clamp(1, SEEDS_MAX) as u32;
        Ok(Checks {
            experiment: Experiment {
                title: experiment.title.clone(),
                columns,
                keys,
                clock: experiment.clock.clone(),
            },
            checks,
            seeds,
        })
    }

    /// Results of the unmodified sides with the first seeds; the checks are still to be run.
    pub fn begun(&self, results: &Results, rows: &[usize]) -> Results {
        let mut begun = self.experiment.nothing();
        for (of, &row) in begun.runs.iter_mut().zip(rows) {
            for (runs, all) in of.iter_mut().zip(&results.runs[row]) {
                runs.extend(all.iter().take(self.seeds as usize).cloned());
            }
        }
        begun
    }

    /// What the checks say about a change of a column; `at` is its metric and row in what `compare` compares.
    ///
    /// `change` and `interval` are those of all seeds, of `pairs` pairs.
    pub fn of(
        &self,
        compare: impl Fn(usize, usize) -> Comparison,
        (metric, row, column): (usize, usize, usize),
        (change, interval, pairs): (f64, Option<[f64; 2]>, usize),
    ) -> Checked {
        let change_of = |base: usize, other: usize| {
            compare(base, other).metrics.get(metric)?.rows.get(row)?.cells.get(1)?.paired.change
        };
        let mut checked = Checked { change, would_be: Vec::new(), turned: Vec::new(), noise: 0.0 };
        let Some(of_seeds) = change_of(0, column) else { return checked };
        let noise = interval.map_or(0.0, |[low, high]| {
            (high - low) / 2.0 * (2.0 * pairs as f64 / f64::from(self.seeds)).sqrt()
        });
        checked.noise = noise;
        for check in &self.checks {
            let Some(at) = change_of(check.columns[0], check.columns[column]) else { continue };
            let moved = at - of_seeds;
            let would_be = change + moved;
            if would_be * change < 0.0 && would_be.abs() >= LEAST && moved.abs() > noise {
                checked.turned.push(check.name.clone());
            }
            checked.would_be.push((check.name.clone(), would_be));
        }
        checked
    }
}

/// Whether a CPU's clock can change.
fn has_clocks(machine: &Machine) -> bool {
    let turbo = machine.freq.all_cores_mhz.get() < machine.freq.one_core_mhz.get();
    machine.has(Mechanism::Frequency) && (turbo || machine.law != Law::Fixed)
}

/// The prices of the part of the time in which the sides differ most.
fn prices(results: &Results, rows: &[usize]) -> (&'static str, &'static [&'static str]) {
    let differs = |of: &dyn Fn(&OfCpu) -> u64| {
        let cells = rows.iter().map(|&row| &results.runs[row]);
        let pairs = cells.flat_map(|by_column| by_column[1..].iter().map(move |runs| (&by_column[0], runs)));
        pairs.map(|(base, other)| (busy_share(other, of) - busy_share(base, of)).abs()).fold(0.0, f64::max)
    };
    let mut most = (differs(&OfCpu::own_work), WORK.0, WORK.1);
    for &(part, what, names) in PRICES {
        let by = differs(&|total: &OfCpu| total.part(part));
        // The tasks' own work is what the other parts leave over, so a part that takes all of it has
        // priority.
        if by >= most.0 && by > 0.0 {
            most = (by, what, names);
        }
    }
    (most.1, most.2)
}
