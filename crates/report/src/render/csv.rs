//! One line per metric, row and kernel, for spreadsheets and scripts.
//!
//! Numbers are written in full; a number that does not exist is an empty field. The
//! columns are stable: new ones go to the end.

use schedlab_stats::Stat;

use super::json::stat_key;
use crate::{CellComparison, Comparison, MetricComparison, RowComparison};

/// Columns before the statistics.
const FIRST: [&str; 9] =
    ["metric", "unit", "better", "row", "kernel", "runs", "samples", "mean_kind", "significant"];
/// Columns after them.
const LAST: [&str; 10] = [
    "percent",
    "ratio",
    "distance",
    "pairs",
    "paired_base",
    "paired_value",
    "change_percent",
    "change_percent_low",
    "change_percent_high",
    "verdict",
];

/// The whole comparison.
pub fn csv(comparison: &Comparison) -> String {
    let names = FIRST.into_iter().chain(Stat::ALL.map(stat_key)).chain(LAST);
    let mut out = names.collect::<Vec<_>>().join(",") + "\n";
    for metric in &comparison.metrics {
        for row in &metric.rows {
            for (kernel, cell) in row.cells.iter().enumerate() {
                let fields = fields(&comparison.kernels[kernel], metric, row, kernel, cell);
                out += &(fields.join(",") + "\n");
            }
        }
    }
    out
}

fn fields(
    name: &str,
    metric: &MetricComparison,
    row: &RowComparison,
    kernel: usize,
    cell: &CellComparison,
) -> Vec<String> {
    let mut fields = vec![
        quoted(&metric.name),
        quoted(&metric.unit),
        metric.direction.to_string(),
        quoted(&row.key),
        quoted(name),
        cell.runs.to_string(),
        cell.summary.n().to_string(),
        metric.label(Stat::Mean).to_lowercase(),
        cell.star.significant.to_string(),
    ];
    fields.extend(Stat::ALL.map(|stat| number(metric.value(stat, cell))));
    fields.extend([
        number(metric.percent(Stat::Mean, cell, row.base())),
        number(row.ratio(kernel)),
        number(cell.distance),
    ]);
    if kernel == 0 {
        fields.resize(fields.len() + LAST.len() - 3, String::new());
        return fields;
    }
    let paired = &cell.paired;
    let percent = |x: Option<f64>| x.map_or(String::new(), |x| number(x * 100.0));
    fields.extend([
        paired.n.to_string(),
        number(paired.base),
        number(paired.value),
        percent(paired.change),
        percent(paired.interval.map(|i| i.low)),
        percent(paired.interval.map(|i| i.high)),
        cell.verdict.to_string(),
    ]);
    fields
}

fn number(x: f64) -> String {
    if x.is_finite() { x.to_string() } else { String::new() }
}

/// A text, quoted if needed.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testdata::paired_runs;
    use crate::{Direction, Options, Table};
    use expect_test::expect;

    #[test]
    fn every_cell_is_a_line() {
        expect![[r#"
            metric,unit,better,row,kernel,runs,samples,mean_kind,significant,min,mean,stddev,coeff_var,max,best_mean_95,percent,ratio,distance,pairs,paired_base,paired_value,change_percent,change_percent_low,change_percent_high,verdict
            loadfile time,ms,lower,1,v5.5,6,6,amean,false,21.779999999999998,22.58,0.6985699678629199,3.0937553935470326,23.68,22.36,0,1,0,,,,,,,
            loadfile time,ms,lower,1,v5.5+SIS_KTHREAD_STACK,6,6,amean,false,19.81,20.573333333333334,0.680960106516283,3.3099162662813497,21.68,20.352,8.886920578683188,0.9111307942131681,0.7421573156759191,6,22.58,20.573333333333334,-8.886920578683188,-9.143414867706644,-8.643645978906234,better
            loadfile time,ms,lower,8,v5.5,6,6,amean,false,36.900000000000006,37.70000000000001,0.6985699678629188,1.8529707370369195,38.800000000000004,37.480000000000004,0,1,0,,,,,,,
            loadfile time,ms,lower,8,v5.5+SIS_KTHREAD_STACK,6,6,amean,false,36.86,37.62333333333333,0.6809601065162819,1.809940922786255,38.73,37.402,0.2033598585323233,0.9979664014146769,0.028354847608886485,6,37.70000000000001,37.62333333333333,-0.20335985853231486,-0.30114478096056396,-0.10374437199638402,better
            loadfile time,ms,lower,64,v5.5,6,6,amean,false,397,469,62.871297107662734,13.405393839586937,568,449.2,0,1,0,,,,,,,
            loadfile time,ms,lower,64,v5.5+SIS_KTHREAD_STACK,6,6,amean,false,369,468,62.871297107662734,13.434037843517677,540,453.6,0.21321961620469665,0.997867803837953,0.004057602438605242,6,469,468,-0.2132196162046962,-24.85306253197893,32.49430756017128,too few runs
            loadfile time,ms,lower,128,v5.5,1,1,amean,false,1345.26,1345.26,,0,1345.26,1345.26,0,1,0,,,,,,,
            loadfile time,ms,lower,128,v5.5+SIS_KTHREAD_STACK,1,1,amean,false,1372.64,1372.64,,0,1372.64,1372.64,-2.035294292553118,1.0203529429255311,0,1,1345.26,1372.64,2.0352942925531137,,,too few runs
            migrations,,lower,1,v5.5,6,6,amean,false,18421,18423.5,1.8708286933869707,0.010154578084440908,18426,18423,0,1,0,,,,,,,
            migrations,,lower,1,v5.5+SIS_KTHREAD_STACK,6,6,amean,true,240,240,0,0,240,240,98.69731592802671,0.01302684071973295,4959.0143805169555,6,18423.5,240,-98.69731592802671,-98.69745473475479,-98.69717709171138,better
            migrations,,lower,64,v5.5,6,6,amean,false,0,0,0,0,0,0,0,0,0,,,,,,,
            migrations,,lower,64,v5.5+SIS_KTHREAD_STACK,6,6,amean,true,5.1,5.3500000000000005,0.18708286933869706,3.4968760624055517,5.6,5.3,-99,0,-14.590550188778229,6,0,5.3500000000000005,,,,worse
        "#]].assert_eq(&csv(&Comparison::new(&paired_runs(), Options::default())));
    }

    #[test]
    fn every_line_has_every_column_and_odd_names_are_quoted() {
        let mut table = Table::new("", ["a,b", "c"]);
        let metric = table.metric("the \"odd\" one", "s", Direction::Higher);
        metric.record("1, 2", 0, 1, 5.0);
        let csv = csv(&Comparison::new(&table, Options::default()));
        let lines: Vec<&str> = csv.lines().collect();
        assert!(lines[1].starts_with(r#""the ""odd"" one",s,higher,"1, 2","a,b",1,1,hmean,false,5,5,,0,"#));
        let columns = lines[0].split(',').count();
        // Two quoted commas on the first line, one on the second.
        assert_eq!([&lines[1], &lines[2]].map(|l| l.split(',').count()), [columns + 2, columns + 1]);
    }
}
