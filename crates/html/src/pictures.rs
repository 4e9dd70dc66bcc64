//! Pictures of numbers that need no script, and cumulative curves, which become a table without scripts.

use std::fmt::{self, Display};

use serde::Serialize;

use crate::escape::Escaped;
use crate::tables::Table;

/// Colours of sides, in the order of `assets/charts.js`.
const SIDES: [&str; 8] =
    ["#3b6fd4", "#d9480f", "#2b8a3e", "#862e9c", "#0b7285", "#a61e4d", "#5f3dc4", "#846358"];

fn side(at: usize) -> &'static str {
    SIDES[at % SIDES.len()]
}

/// Every run as a dot, a line for each side.
#[derive(Clone, Debug, Default)]
pub struct Dots {
    /// What is measured: `copy, MB/s`.
    pub name: String,
    /// Sides with their values.
    pub sides: Vec<(String, Vec<f64>)>,
}

/// Cumulative curves on a logarithmic axis.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Cumulative {
    /// Unit of the values; `ns` is shown as us and ms where that is easier to read.
    pub unit: String,
    /// A curve for each side.
    pub curves: Vec<Curve>,
}

/// One side.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Curve {
    /// The side.
    pub name: String,
    /// Values in order, each with the percentage of all values that are not above it.
    pub points: Vec<(f64, f64)>,
}

/// Shares of each side as bars of one length.
#[derive(Clone, Debug, Default)]
pub struct Shares {
    /// What the shares are of.
    pub name: String,
    /// The sides.
    pub sides: Vec<String>,
    /// The parts, each with a value for each side, in percent.
    pub parts: Vec<(String, Vec<f64>)>,
}

/// How often something moved from one place to another.
#[derive(Clone, Debug, Default)]
pub struct Matrix {
    /// What is counted.
    pub name: String,
    /// What rows and columns stand for: `LLC`.
    pub of: String,
    /// Names of rows and columns.
    pub places: Vec<String>,
    /// Counts, row by row: moves from the row's place to the column's.
    pub counts: Vec<u64>,
}

/// Round tick values between two values.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let range = high - low;
    if range <= 0.0 || !range.is_finite() {
        return vec![low];
    }
    let rough = range / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|step| *step >= rough)
        .unwrap_or(power);
    let first = (low / step).ceil() as i64;
    (first..).map(|nth| nth as f64 * step).take_while(|tick| *tick <= high).collect()
}

/// A number with about four digits.
pub(crate) fn short(value: f64) -> String {
    let text = match value.abs() {
        size if size >= 1000.0 => return format!("{value:.0}"),
        size if size >= 100.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl Display for Dots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values =
            || self.sides.iter().flat_map(|(_, values)| values).copied().filter(|value| value.is_finite());
        let (low, high) = (values().fold(f64::MAX, f64::min), values().fold(f64::MIN, f64::max));
        if low > high {
            return Ok(());
        }
        // Start at zero if that costs little room, so that lengths can be compared.
        let low = if low > 0.0 && low < 0.5 * high { 0.0 } else { low };
        let margin = if high > low { (high - low) * 0.04 } else { high.abs().max(1.0) * 0.04 };
        let (low, high) = (if low == 0.0 { 0.0 } else { low - margin }, high + margin);
        const LEFT: f64 = 260.0;
        const WIDTH: f64 = 880.0;
        const ROW: f64 = 30.0;
        let x = |value: f64| LEFT + (value - low) / (high - low) * (WIDTH - LEFT - 20.0);
        let height = 20.0 + ROW * self.sides.len() as f64 + 22.0;
        write!(
            f,
            "<figure><svg viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" role=\"img\" aria-label=\"{}: every run as a dot\">",
            Escaped(&self.name)
        )?;
        write!(f, "<text x=\"0\" y=\"12\">{}</text>", Escaped(&self.name))?;
        let bottom = 20.0 + ROW * self.sides.len() as f64;
        for tick in ticks(low, high) {
            let at = x(tick);
            write!(
                f,
                "<line class=\"axis\" x1=\"{at:.1}\" y1=\"18\" x2=\"{at:.1}\" y2=\"{bottom}\"/><text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 14.0,
                short(tick)
            )?;
        }
        for (at, (name, values)) in self.sides.iter().enumerate() {
            let y = 20.0 + ROW * (at as f64 + 0.5);
            write!(f, "<text x=\"8\" y=\"{:.1}\">{}</text>", y + 4.0, Escaped(name))?;
            let own: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
            for (nth, value) in own.iter().enumerate() {
                // A small vertical offset keeps equal runs apart.
                let dy = (nth % 5) as f64 * 3.0 - 6.0;
                write!(
                    f,
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\" fill=\"{}\" fill-opacity=\"0.65\"><title>{}</title></circle>",
                    x(*value),
                    y + dy,
                    side(at),
                    short(*value)
                )?;
            }
            if !own.is_empty() {
                let mean = own.iter().sum::<f64>() / own.len() as f64;
                write!(
                    f,
                    "<line x1=\"{0:.1}\" y1=\"{1:.1}\" x2=\"{0:.1}\" y2=\"{2:.1}\" stroke=\"{3}\" stroke-width=\"2\"><title>mean {4}</title></line>",
                    x(mean),
                    y - 11.0,
                    y + 11.0,
                    side(at),
                    short(mean)
                )?;
            }
        }
        f.write_str("</svg></figure>")
    }
}

impl Cumulative {
    /// Percentiles for readers without scripts.
    pub(crate) fn table(&self) -> Table {
        let mut table = Table::new(["share", "at most"]);
        table.columns = std::iter::once("share of all".to_owned())
            .chain(self.curves.iter().map(|curve| format!("{}, {}", curve.name, self.unit)))
            .collect();
        for percent in [25.0, 50.0, 75.0, 90.0, 99.0, 99.9, 100.0] {
            let at = |curve: &Curve| {
                let found = curve.points.iter().find(|(_, share)| *share >= percent - 1e-9);
                found.map_or("-".to_owned(), |(value, _)| short(*value))
            };
            table.row(std::iter::once(format!("{percent} %")).chain(self.curves.iter().map(at)));
        }
        table
    }
}

impl Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LEFT: f64 = 250.0;
        const BAR: f64 = 420.0;
        let top = 20.0 + 14.0 * self.sides.len() as f64;
        let row = 8.0 + 13.0 * self.sides.len() as f64;
        let height = top + 4.0 + row * self.parts.len() as f64;
        let name = Escaped(&self.name);
        write!(
            f,
            "<figure><svg viewBox=\"0 0 760 {height}\" width=\"760\" role=\"img\" aria-label=\"{name}\">"
        )?;
        write!(f, "<text x=\"0\" y=\"12\">{name}</text>")?;
        for (at, name) in self.sides.iter().enumerate() {
            let y = 16.0 + 14.0 * at as f64;
            write!(f, "<rect x=\"8\" y=\"{y:.1}\" width=\"11\" height=\"11\" fill=\"{}\"/>", side(at))?;
            write!(f, "<text x=\"24\" y=\"{:.1}\">{}</text>", y + 9.5, Escaped(name))?;
        }
        for (nth, (name, values)) in self.parts.iter().enumerate() {
            let y = top + row * nth as f64;
            write!(f, "<text x=\"8\" y=\"{:.1}\">{}</text>", y + 10.0, Escaped(name))?;
            for (at, value) in values.iter().enumerate() {
                let top = y + 13.0 * at as f64;
                let least = if *value > 0.0 { 1.0 } else { 0.0 };
                let width = (value.clamp(0.0, 100.0) / 100.0 * BAR).max(least);
                write!(
                    f,
                    "<rect x=\"{LEFT}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"11\" fill=\"{}\"/>\
                     <text x=\"{:.1}\" y=\"{:.1}\">{value:.1} %</text>",
                    side(at),
                    LEFT + width + 5.0,
                    top + 9.5
                )?;
            }
        }
        f.write_str("</svg></figure>")
    }
}

impl Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.places.len();
        let most = self.counts.iter().copied().max().unwrap_or(0);
        let total: u64 = self.counts.iter().sum();
        let cell = (640.0 / n.max(1) as f64).clamp(3.0, 26.0);
        let (left, top) = (60.0, 34.0);
        let title = format!("{}: {total}, from the {} of a row to that of a column", self.name, self.of);
        // A letter of this size is about 6.5 wide.
        let width = (left + cell * n as f64 + 10.0).max(6.5 * title.chars().count() as f64);
        let height = top + cell * n as f64 + 10.0;
        write!(
            f,
            "<figure><svg viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" role=\"img\" aria-label=\"{}\">\
             <text x=\"0\" y=\"12\">{}</text>",
            Escaped(&self.name),
            Escaped(&title)
        )?;
        // Names of columns are side by side, and need space for the longest.
        let longest = self.places.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let every = ((8.0 * longest as f64).max(14.0) / cell).ceil() as usize;
        for (at, name) in self.places.iter().enumerate().step_by(every.max(1)) {
            let middle = cell * (at as f64 + 0.5);
            write!(
                f,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                left - 4.0,
                top + middle + 4.0,
                Escaped(name),
                left + middle,
                top - 4.0,
                Escaped(name)
            )?;
        }
        write!(
            f,
            "<rect class=\"axis\" x=\"{left}\" y=\"{top}\" width=\"{0:.1}\" height=\"{0:.1}\" fill=\"none\"/>",
            cell * n as f64
        )?;
        for from in 0..n {
            for to in 0..n {
                let count = self.counts[from * n + to];
                if count == 0 {
                    continue;
                }
                let strength = 0.12 + 0.88 * ((count as f64).ln_1p() / (most as f64).ln_1p());
                write!(
                    f,
                    "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{cell:.1}\" height=\"{cell:.1}\" fill=\"#3b6fd4\" fill-opacity=\"{strength:.2}\"><title>{count} from {} to {}</title></rect>",
                    left + cell * to as f64,
                    top + cell * from as f64,
                    Escaped(&self.places[from]),
                    Escaped(&self.places[to])
                )?;
            }
        }
        f.write_str("</svg></figure>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(ticks(0.0, 10.0), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ticks(3.0, 3.0), [3.0]);
    }

    #[test]
    fn every_run_is_a_dot_and_names_stay_text() {
        let dots = Dots { name: "a<b".to_owned(), sides: vec![("x".to_owned(), vec![1.0, 2.0, f64::NAN])] };
        let svg = dots.to_string();
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(svg.contains("a&lt;b") && !svg.contains("a<b"));
    }

    #[test]
    fn a_matrix_draws_only_what_happened() {
        let matrix = Matrix {
            name: "m".into(),
            of: "LLC".into(),
            places: vec!["0".into(), "1".into()],
            counts: vec![0, 3, 0, 0],
        };
        assert_eq!(matrix.to_string().matches("<title>").count(), 1);
    }

    #[test]
    fn names_of_a_large_matrix_do_not_overlap() {
        let matrix = Matrix {
            name: "migrations under v6.12+A_RULE_WITH_A_LONG_NAME".into(),
            of: "LLC".into(),
            places: (0..128).map(|place| place.to_string()).collect(),
            counts: vec![0; 128 * 128],
        };
        let svg = matrix.to_string();
        let columns: Vec<f64> = svg
            .split("<text x=\"")
            .filter(|text| text.contains("\"middle\""))
            .map(|text| text.split('"').next().unwrap().parse().unwrap())
            .collect();
        // Three digits of 7 each and a gap.
        assert!(
            columns.len() > 10 && columns.windows(2).all(|pair| pair[1] - pair[0] >= 24.0),
            "{columns:?}"
        );
    }
}
