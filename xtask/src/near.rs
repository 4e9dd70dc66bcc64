//! How close simulated figures are to recorded ones. There are several recordings, as no two boots of a kernel give the
//! same figures.

use std::ops::{AddAssign, Range};

use schedlab_closed_loop::ROWS;

/// Those of [`ROWS`] that are counts, and judged as such.
const COUNTS: Range<usize> = 2..11;

/// Smaller counts are not judged.
const HANDFUL: f64 = 20.0;

/// The recorded value, minimum and maximum of the repeated recordings, and the simulated value; a single one if all are
/// the same. If it is more than a tenth off, the ratio to the mean of all recordings follows: slanted if one of them is
/// as far off.
pub fn cell(recorded: f64, again: &[f64], simulated: f64) -> String {
    let figures = told(recorded, again, simulated, 0);
    match Off::of(simulated, &[again, &[recorded]].concat()) {
        Off::Within => format!(" {figures} |"),
        Off::Inside(ratio) => format!(" {figures} (*{ratio:.2}*) |"),
        Off::Outside(ratio) => format!(" {figures} (**{ratio:.2}**) |"),
    }
}

/// The recorded value, minimum and maximum of the repeated recordings, and the simulated value.
pub fn told(recorded: f64, again: &[f64], simulated: f64, places: usize) -> String {
    let in_words = |figure: f64| format!("{figure:.places$}");
    let mut words = vec![in_words(recorded)];
    if !again.is_empty() {
        let (least, most) = range(again);
        let (least, most) = (in_words(least), in_words(most));
        words.push(if least == most { least } else { format!("{least}-{most}") });
    }
    words.push(in_words(simulated));
    if words.iter().all(|word| *word == words[0]) { words.swap_remove(0) } else { words.join(", ") }
}

/// Number of rows of a load in which every count is close enough.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    rows: usize,
    /// Within a tenth of the recording in the tree.
    one: usize,
    /// Within a tenth of the mean of all recordings.
    mean: usize,
    /// That, or no further off than some recording.
    inside: usize,
    /// Repeated recordings, and those within a tenth of the one in the tree.
    again: usize,
    again_one: usize,
}

impl Tally {
    /// Adds a row, with the repeated recordings.
    pub fn add(
        &mut self,
        recorded: [f64; ROWS.len()],
        again: &[[f64; ROWS.len()]],
        simulated: [f64; ROWS.len()],
    ) {
        let near =
            |row: &[f64; ROWS.len()]| COUNTS.clone().all(|at| is_within_a_tenth(row[at], recorded[at]));
        let off = |at: usize| {
            let all: Vec<f64> = again.iter().chain([&recorded]).map(|row| row[at]).collect();
            Off::of(simulated[at], &all)
        };
        let of = |good: bool| usize::from(good);
        self.rows += 1;
        self.one += of(near(&simulated));
        self.mean += of(COUNTS.map(off).all(|off| off == Off::Within));
        self.inside += of(!COUNTS.map(off).any(|off| matches!(off, Off::Outside(_))));
        self.again += again.len();
        self.again_one += again.iter().filter(|&row| near(row)).count();
    }

    /// A row of the table.
    pub fn row(&self, load: &str) -> String {
        let Tally { rows, one, mean, inside, again, again_one } = self;
        format!("| {load} | {rows} | {one} | {mean} | {inside} | {again_one} of {again} |\n")
    }

    /// Rows of the table of goals.
    pub fn goals(&self) -> String {
        let Tally { rows, one, mean, inside, again, again_one } = self;
        format!(
            "| counts of a row | within a tenth of the recording | {one} of {rows} rows | {again_one} of {again} |\n\
             | the same | within a tenth of the mean of all recordings | {mean} of {rows} rows | - |\n\
             | the same | that, or as near to it as some recording | {inside} of {rows} rows | - |\n"
        )
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.rows += other.rows;
        self.one += other.one;
        self.mean += other.mean;
        self.inside += other.inside;
        self.again += other.again;
        self.again_one += other.again_one;
    }
}

/// The deviation of a figure from several recordings.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Off {
    /// Within a tenth of their mean, or a handful.
    Within,
    /// By more, but some recording was off as far: the ratio to the mean.
    Inside(f64),
    /// By more than any recording was.
    Outside(f64),
}

impl Off {
    /// How far a simulated figure is off from the recorded ones.
    fn of(simulated: f64, recorded: &[f64]) -> Off {
        let mean = recorded.iter().sum::<f64>() / recorded.len() as f64;
        if is_within_a_tenth(simulated, mean) {
            return Off::Within;
        }
        let (least, most) = range(recorded);
        let ratio = simulated / mean;
        if (least..=most).contains(&simulated) { Off::Inside(ratio) } else { Off::Outside(ratio) }
    }
}

/// Whether a figure is within a tenth of another, or both are a handful.
fn is_within_a_tenth(simulated: f64, recorded: f64) -> bool {
    recorded < HANDFUL && simulated < HANDFUL || (0.9..=1.1).contains(&(simulated / recorded))
}

/// Minimum and maximum of some figures.
fn range(figures: &[f64]) -> (f64, f64) {
    let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
    (least, figures.iter().copied().fold(0.0, f64::max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_some_recording_was_off_by_is_inside() {
        for (simulated, recorded, off) in [
            (105.0, [100.0, 100.0, 100.0], Off::Within),
            (19.0, [3.0, 2.0, 1.0], Off::Within),
            (150.0, [50.0, 100.0, 150.0], Off::Inside(1.5)),
            (75.0, [90.0, 100.0, 110.0], Off::Outside(0.75)),
            (30.0, [5.0, 10.0, 15.0], Off::Outside(3.0)),
        ] {
            assert_eq!(Off::of(simulated, &recorded), off, "{simulated} of {recorded:?}");
        }
    }

    #[test]
    fn cells_say_what_was_recorded_and_where_it_is_off() {
        assert_eq!(cell(40.0, &[40.0, 40.0], 40.0), " 40 |");
        assert_eq!(cell(100.0, &[90.0, 110.0], 104.0), " 100, 90-110, 104 |");
        assert_eq!(cell(100.0, &[80.0, 120.0], 120.0), " 100, 80-120, 120 (*1.20*) |");
        assert_eq!(cell(100.0, &[90.0, 110.0], 130.0), " 100, 90-110, 130 (**1.30**) |");
        assert_eq!(cell(100.0, &[90.0], 101.0), " 100, 90, 101 |", "recorded again once");
        assert_eq!(cell(100.0, &[], 130.0), " 100, 130 (**1.30**) |", "never again");
    }

    #[test]
    fn rows_are_reported_by_their_counts_alone() {
        let row = |wakeups: f64, latency: f64| {
            let mut row = [100.0; ROWS.len()];
            row[4] = wakeups;
            row[12] = latency;
            row
        };
        let again = [row(120.0, 1.0), row(140.0, 1.0), row(102.0, 1.0)];
        let mut tally = Tally::default();
        tally.add(row(100.0, 1.0), &again, row(105.0, 99.0));
        assert_eq!(tally.row("x"), "| x | 1 | 1 | 1 | 1 | 1 of 3 |\n", "of a mean of 115.5");
        tally.add(row(100.0, 1.0), &again, row(139.0, 1.0));
        assert_eq!(tally.row("x"), "| x | 2 | 1 | 1 | 2 | 2 of 6 |\n", "one recording was as far off");
        tally.add(row(100.0, 1.0), &again, row(150.0, 1.0));
        assert_eq!(tally.row("x"), "| x | 3 | 1 | 1 | 2 | 3 of 9 |\n");
    }
}
