//! The page of a comparison, and where a kernel tree parts from what it is compared with.

use schedlab::html::{Page, ROOM};
use schedlab::pages::{self, Picture};
use schedlab::report::Comparison;
use schedlab::sched::Kernel;
use schedlab::units::Time;
use schedlab::{Column, Experiment, Judgement, Results, Scenario};

use crate::error::Error;

/// The comparison as a page, with the first run of the row that changes most to look at.
pub fn page(
    experiment: &Experiment,
    results: &Results,
    comparison: &Comparison,
    judgements: &[Judgement],
) -> Result<Page, Error> {
    let row = pages::telling_row(experiment.keys.iter().map(String::as_str), comparison);
    let key = &experiment.keys[row];
    let columns = experiment.columns.len();
    let stats = results.perf_stats(experiment);
    // Where a column lacks a row, no row has as many counts as there are columns.
    let counts =
        if stats.len() == columns * experiment.keys.len() { &stats[row * columns..][..columns] } else { &[] };
    let last = experiment.columns.last().filter(|_| columns > 1);
    let shown: Vec<&Column> = experiment.columns.first().into_iter().chain(last).collect();
    let room = ROOM / shown.len().max(1);
    let pictures = shown.iter().filter_map(|column| {
        let row = column.row(key)?;
        Some(pages::picture(&column.scenario, column.kernel(), row, room).map_err(Error::from))
    });
    Ok(pages::compare(pages::Compared {
        story: &experiment.base().story,
        comparison,
        samples: &results.table(experiment),
        judgements,
        because: schedlab::because(experiment, results),
        row: key,
        runs: &results.runs[row],
        counts,
        pictures: pictures.collect::<Result<_, _>>()?,
    }))
}

/// The first run of a row under the first and the last kernel, to look at side by side.
pub fn pictures(scenario: &Scenario, row: usize) -> Result<Vec<Picture>, Error> {
    let last = scenario.kernels.last().filter(|_| scenario.kernels.len() > 1);
    let kernels: Vec<&Kernel> = scenario.kernels.first().into_iter().chain(last).collect();
    let room = ROOM / kernels.len().max(1);
    let picture = |kernel: &&Kernel| -> Result<Picture, Error> {
        Ok(pages::picture(scenario, kernel, &scenario.rows[row], room)?)
    };
    kernels.iter().map(picture).collect()
}

/// Where columns part from the first, if any of them is of a kernel tree: in the first run of the first row.
pub fn parts(experiment: &Experiment) -> Result<String, Error> {
    let mut text = String::new();
    let (base, others) = experiment.columns.split_first().expect("there is a column");
    let is_tree = |column: &Column| column.kernel().name.starts_with("tree:");
    for other in others.iter().filter(|other| is_tree(base) || is_tree(other)) {
        // Runs of different things part for other reasons than their kernels.
        if !other.is_same_scenario(base) {
            continue;
        }
        let kernels = [base.kernel(), other.kernel()];
        let found = schedlab::parting::parting(&base.scenario, &base.scenario.rows[0], kernels)?;
        let Some(found) = found else {
            text.push_str(&format!("parts  {} never parts from {}\n", other.name, base.name));
            continue;
        };
        let [later, others_later] = found.later;
        text.push_str(&format!(
            "parts  {} from {} after {} equal decisions ({later} and {others_later} follow):\n",
            other.name, base.name, found.same
        ));
        for (column, first) in [base, other].into_iter().zip(&found.first) {
            let told = first.as_ref().map_or("the run is over".to_string(), |first| {
                format!("{} CPU {}  {}", Time(first.time_ns), first.cpu, first.sentence)
            });
            text.push_str(&format!("       {}: {told}\n", column.name));
        }
        if found.paired > 0 {
            text.push_str(&format!(
                "       of {} placements from there on, the same task's in turn, {} chose another CPU\n",
                found.paired, found.elsewhere
            ));
        }
    }
    Ok(text)
}
