//! A table per metric, for issues and web pages.

use schedlab_stats::Stat;

use super::paired::{change, known};
use crate::{Comparison, MetricComparison};

/// The whole comparison.
pub fn markdown(comparison: &Comparison) -> String {
    let mut out = String::new();
    if !comparison.title.is_empty() {
        out += &format!("## {}\n\n", comparison.title);
    }
    let tables: Vec<String> = comparison.metrics.iter().map(|metric| table(comparison, metric)).collect();
    out + &tables.join("\n")
}

/// Per row: each kernel's mean and spread, then the change of each kernel other than the baseline.
fn table(comparison: &Comparison, metric: &MetricComparison) -> String {
    let others = &comparison.kernels[1..];
    let mut head = vec![metric.label(Stat::Mean).to_owned()];
    head.extend(comparison.kernels.iter().map(|kernel| code(kernel)));
    head.extend(others.iter().map(|kernel| match others {
        [_] => "change".to_owned(),
        _ => format!("change, {}", code(kernel)),
    }));

    let mut lines = vec![line(&head)];
    let rule: Vec<&str> = (0..head.len()).map(|at| if at == 0 { ":--" } else { "--:" }).collect();
    lines.push(line(&rule));
    for row in &metric.rows {
        let mut cells = vec![escaped(&row.key)];
        let digits = metric.digits();
        cells.extend(row.cells.iter().map(|cell| {
            let mean = known(metric.value(Stat::Mean, cell), digits);
            match metric.value(Stat::Stddev, cell) {
                deviation if deviation.is_finite() => format!("{mean} (sd {deviation:.digits$})"),
                _ => mean,
            }
        }));
        cells.extend(row.cells[1..].iter().map(|cell| {
            let (change, interval) = change(cell);
            // A backslash escapes the star.
            let star = if metric.is_starred(cell) && cell.span.is_none() { " \\*" } else { "" };
            let change = format!("{change} {interval}");
            format!("{} {}{star}", change.trim_end(), metric.word(cell))
        }));
        lines.push(line(&cells));
    }
    format!("{}\n\n{}", metric.heading(), lines.concat())
}

fn line(cells: &[impl AsRef<str>]) -> String {
    let cells: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
    format!("| {} |\n", cells.join(" | "))
}

fn code(kernel: &str) -> String {
    format!("`{}`", escaped(kernel))
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::render::testdata::{paired_runs, stream};
    use expect_test::expect;

    #[test]
    fn two_kernels_need_one_column_of_changes() {
        let options = Options { rule: "t-2020".parse().unwrap(), ..Options::default() };
        expect![[r#"
            ## dbench on uma-8c, 6 paired runs, seed 1

            loadfile time, ms: lower is better

            | Amean | `v5.5` | `v5.5+SIS_KTHREAD_STACK` | change |
            | :-- | --: | --: | --: |
            | 1 | 22.58 (sd 0.70) | 20.57 (sd 0.68) | -8.9 % [-9.1, -8.6] better \* |
            | 8 | 37.70 (sd 0.70) | 37.62 (sd 0.68) | -0.2 % [-0.3, -0.1] better |
            | 64 | 469.00 (sd 62.87) | 468.00 (sd 62.87) | -0.2 % [-24.9, +32.5] too few (~130) |
            | 128 | 1345.26 | 1372.64 | +2.0 % [?, ?] too few runs |

            migrations: lower is better

            | Amean | `v5.5` | `v5.5+SIS_KTHREAD_STACK` | change |
            | :-- | --: | --: | --: |
            | 1 | 18423.50 (sd 1.87) | 240.00 (sd 0.00) | -98.7 % [-98.7, -98.7] better \* |
            | 64 | 0.00 (sd 0.00) | 5.35 (sd 0.19) | +5.35 [+5.15, +5.55] worse \* |
        "#]]
        .assert_eq(&markdown(&Comparison::new(&paired_runs(), options)));
    }

    #[test]
    fn three_kernels_need_two() {
        expect![[r#"
            bandwidth, MB/s: higher is better

            | Hmean | `5.18.0-rc1-no-pinning` | `5.18.0-rc1-pinning` | `5.18.0-rc1-this-patch` | change, `5.18.0-rc1-pinning` | change, `5.18.0-rc1-this-patch` |
            | :-- | --: | --: | --: | --: | --: |
            | Copy | 109364.74 (sd 899.77) | 94220.50 (sd 3999.00) | 158301.28 (sd 699.82) | -13.8 % [-15.2, -12.4] worse \* | +44.7 % [+44.5, +45.0] better \* |
            | Scale | 109670.26 (sd 899.77) | 90210.59 (sd 3999.00) | 149525.64 (sd 699.82) | -17.7 % [-19.1, -16.3] worse \* | +36.3 % [+36.1, +36.6] better \* |
            | Add | 129029.01 (sd 899.77) | 101906.00 (sd 3999.00) | 186658.17 (sd 699.82) | -21.0 % [-22.2, -19.8] worse \* | +44.7 % [+44.4, +44.9] better \* |
            | Triad | 127260.05 (sd 899.77) | 106051.36 (sd 3999.00) | 184327.30 (sd 699.82) | -16.7 % [-17.9, -15.4] worse \* | +44.8 % [+44.6, +45.1] better \* |
        "#]].assert_eq(&markdown(&Comparison::new(&stream(), Options::default())));
    }
}
