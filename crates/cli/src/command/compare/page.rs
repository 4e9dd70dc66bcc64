//! The page of a comparison.

use schedlab::html::{Page, ROOM};
use schedlab::pages::{self, Picture};
use schedlab::report::Comparison;
use schedlab::sched::Kernel;
use schedlab::{Column, Experiment, Judgement, Results, Scenario};

use crate::error::Error;

/// The comparison as a page, with a picture of the first run of the row that changes most.
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
    // If a column lacks a row, that row has fewer counts than there are columns.
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

/// The first run of a row under the first and the last kernel, for viewing side by side.
pub fn pictures(scenario: &Scenario, row: usize) -> Result<Vec<Picture>, Error> {
    let last = scenario.kernels.last().filter(|_| scenario.kernels.len() > 1);
    let kernels: Vec<&Kernel> = scenario.kernels.first().into_iter().chain(last).collect();
    let room = ROOM / kernels.len().max(1);
    let picture = |kernel: &&Kernel| -> Result<Picture, Error> {
        Ok(pages::picture(scenario, kernel, &scenario.rows[row], room)?)
    };
    kernels.iter().map(picture).collect()
}
