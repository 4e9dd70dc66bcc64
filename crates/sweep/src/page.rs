//! A report of a sweep as a page: the answer first, then where it holds, then every combination.

use schedlab::html::{Block, Dots, Page, Table};

use crate::report::{Change, Report};

/// Maximum number of combinations in the table; CSV has all.
const LINES: usize = 2000;

/// Maximum number of values of an axis that are drawn.
const VALUES: usize = 24;

impl Report {
    /// The report as a page. `most` is the number of combinations shown at either end of the text.
    pub fn page(&self, title: &str, most: usize) -> Page {
        let mut page = Page::new(title);
        let kernels = self.kernels();
        for kernel in &kernels {
            page.push(Block::Verdict(self.verdict(kernel)));
        }
        page.push(Block::Preformatted(self.text(most)));
        for kernel in &kernels {
            for nth in 0..self.axes.len() {
                if let Some(dots) = self.dots(kernel, nth) {
                    page.push(Block::Dots(dots));
                }
            }
        }
        page.push(Block::Heading("Every combination".to_owned()));
        page.push(Block::Table(self.table()));
        if self.lines.len() > LINES {
            page.push(Block::Note(format!(
                "The first {LINES} of {} lines; `schedlab sweep report --format csv` has all.",
                self.lines.len()
            )));
        }
        page
    }

    fn verdict(&self, kernel: &str) -> String {
        let changes: Vec<&Change> = self.compared(kernel).map(|(_, change)| change).collect();
        let count = |word: &str| changes.iter().filter(|change| change.verdict == word).count();
        format!(
            "{kernel} against {}, {}: better in {}, worse in {}, no difference in {} of {} combinations.",
            self.against,
            self.heading().0,
            count("better"),
            count("worse"),
            count("no difference"),
            changes.len()
        )
    }

    /// The change of each combination, a line for each value of an axis; nothing if all values are different.
    fn dots(&self, kernel: &str, axis: usize) -> Option<Dots> {
        let mut sides: Vec<(String, Vec<f64>)> = Vec::new();
        let mut all = 0;
        for (line, change) in self.compared(kernel) {
            let Some(change) = change.change else { continue };
            all += 1;
            let value = &line.values[axis];
            match sides.iter_mut().find(|(known, _)| known == value) {
                Some((_, changes)) => changes.push(100.0 * change),
                None => sides.push((value.clone(), vec![100.0 * change])),
            }
        }
        if sides.len() < 2 || sides.len() > VALUES || sides.len() * 2 > all && all > VALUES {
            return None;
        }
        let better = if self.lower_is_better { "lower" } else { "higher" };
        let name = format!(
            "{} under {kernel} against {}, change in % by {}; {better} is better",
            self.heading().0,
            self.against,
            self.axes[axis]
        );
        Some(Dots { name, sides })
    }

    fn table(&self) -> Table {
        let (mean, by) = self.heading();
        let mut columns: Vec<String> = self.axes.clone();
        columns.extend(
            ["kernel", "runs", &mean, "interval", "change, %", "interval", "verdict"].map(str::to_owned),
        );
        let texts: Vec<usize> = (1..=self.axes.len()).chain([self.axes.len() + 6]).collect();
        let mut table = Table { columns, ..Table::default() }.with_text_in(&texts);
        for line in self.lines.iter().take(LINES) {
            let interval = |interval: Option<[f64; 2]>, by: f64| {
                interval.map_or(String::new(), |[low, high]| format!("[{:.2}, {:.2}]", by * low, by * high))
            };
            let mut cells = line.values.clone();
            cells.extend([
                line.kernel.clone(),
                line.n.to_string(),
                format!("{:.2}", line.mean / by),
                interval(line.mean_interval, 1.0 / by),
            ]);
            cells.extend(match &line.change {
                Some(change) => [
                    change.change.map_or(String::new(), |change| format!("{:+.1}", 100.0 * change)),
                    interval(change.interval, 100.0),
                    change.verdict.clone(),
                ],
                None => Default::default(),
            });
            table.row(cells);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Line;

    fn line(groups: &str, kernel: &str, mean: f64, change: Option<(f64, &str)>) -> Line {
        Line {
            values: vec![groups.to_owned()],
            kernel: kernel.to_owned(),
            n: 5,
            mean,
            mean_interval: Some([mean - 1.0, mean + 1.0]),
            change: change.map(|(change, verdict)| Change {
                base: mean / (1.0 + change),
                change: Some(change),
                interval: Some([change - 0.01, change + 0.01]),
                verdict: verdict.to_owned(),
            }),
        }
    }

    #[test]
    fn the_answer_stands_first_and_every_combination_last() {
        let report = Report {
            metric: "time".to_owned(),
            unit: "s".to_owned(),
            lower_is_better: true,
            against: "v6.1".to_owned(),
            points: 20,
            failed: 0,
            missing: 0,
            axes: vec!["workload.groups".to_owned()],
            lines: vec![
                line("1", "v6.1", 10.0, None),
                line("1", "v6.12", 8.0, Some((-0.2, "better"))),
                line("2", "v6.1", 20.0, None),
                line("2", "v6.12", 20.0, Some((0.0, "no difference"))),
            ],
        };
        let mut bytes = Vec::new();
        report.page("a sweep", 5).write(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let answer =
            "v6.12 against v6.1, time, s: better in 1, worse in 0, no difference in 1 of 2 combinations.";
        let (answer, table) = (text.find(answer).unwrap(), text.find("Every combination").unwrap());
        assert!(answer < table);
        assert!(text.contains("-20.0") && text[table..].contains("class=\"better\""));
        assert_eq!(report.dots("v6.12", 0).unwrap().sides.len(), 2);
    }
}
