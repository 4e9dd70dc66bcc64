//! Every number of a comparison, under stable names.
//!
//! Nothing is rounded. A value that does not exist (a deviation of one sample, an interval of two runs
//! without a baseline) is `null`. Keys are only ever added.

use schedlab_stats::{Interval, Mean, Stat};
use serde_json::{Value, json};

use crate::{CellComparison, Comparison, MetricComparison, RowComparison};

/// The whole comparison as one object.
pub fn json(comparison: &Comparison) -> Value {
    let options = &comparison.options;
    json!({
        "title": comparison.title,
        "kernels": comparison.kernels,
        "baseline": comparison.baseline(),
        "rule": { "name": options.rule.name(), "level": options.rule.level() },
        "confidence": options.confidence,
        "negligible": options.judge.negligible,
        "pairs_min": options.judge.pairs_min,
        "metrics": comparison.metrics.iter().map(|m| metric(comparison, m)).collect::<Vec<_>>(),
    })
}

/// The name of a statistic in JSON and CSV, the same for both kinds of mean.
pub(super) fn stat_key(stat: Stat) -> &'static str {
    match stat {
        Stat::Min => "min",
        Stat::Mean => "mean",
        Stat::Stddev => "stddev",
        Stat::CoeffVar => "coeff_var",
        Stat::Max => "max",
        Stat::BestMean95 => "best_mean_95",
    }
}

fn metric(comparison: &Comparison, metric: &MetricComparison) -> Value {
    let ratios = metric.ratios().into_iter().zip(&comparison.kernels).map(|(r, kernel)| {
        json!({
            "kernel": kernel,
            "gmean": r.gmean,
            "distance_mean": r.distance_mean,
            "distance_min": r.distance_min,
            "distance_max": r.distance_max,
        })
    });
    json!({
        "name": metric.name,
        "unit": metric.unit,
        "better": if metric.neutral { Value::Null } else { json!(metric.direction.to_string()) },
        "mean_kind": metric.label(Stat::Mean).to_lowercase(),
        "rows": metric.rows.iter().map(|r| row(comparison, metric, r)).collect::<Vec<_>>(),
        "ratios": ratios.collect::<Vec<_>>(),
    })
}

fn row(comparison: &Comparison, metric: &MetricComparison, row: &RowComparison) -> Value {
    let cells = row.cells.iter().enumerate().map(|(kernel, c)| {
        let mut value = cell(metric, row, kernel, c);
        value["kernel"] = json!(comparison.kernels[kernel]);
        value
    });
    json!({ "row": row.key, "cells": cells.collect::<Vec<_>>() })
}

fn cell(metric: &MetricComparison, row: &RowComparison, kernel: usize, cell: &CellComparison) -> Value {
    let each = |value: &dyn Fn(Stat) -> f64| -> Value {
        Stat::ALL.into_iter().map(|stat| (stat_key(stat).to_owned(), json!(value(stat)))).collect()
    };
    json!({
        "kernel": null,
        "runs": cell.runs,
        "samples": cell.summary.n(),
        "stats": each(&|stat| metric.value(stat, cell)),
        // The improvement of each statistic, as in the table: positive is good.
        "percent": each(&|stat| metric.percent(stat, cell, row.base())),
        "significant": cell.star.significant,
        "p": cell.star.p,
        "ratio": row.ratio(kernel),
        "distance": cell.distance,
        "paired": if kernel == 0 { Value::Null } else { paired(cell) },
    })
}

fn paired(cell: &CellComparison) -> Value {
    let paired = &cell.paired;
    let ends = |i: Interval| json!([i.low, i.high]);
    json!({
        "pairs": paired.n,
        "mean_kind": match paired.mean { Mean::Arithmetic => "amean", Mean::Harmonic => "hmean" },
        "base": paired.base,
        "value": paired.value,
        "change_percent": paired.change.map(|c| c * 100.0),
        "interval_percent": paired.interval.map(|i| ends(i.scaled(100.0))),
        "span_percent": cell.span.map(|span| ends(span.scaled(100.0))),
        "difference": paired.difference.map(|d| d.value),
        "difference_interval": paired.difference.map(|d| ends(d.interval)),
        "verdict": cell.verdict.to_string(),
        "pairs_needed": cell.pairs_needed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testdata::{dbench, paired_runs};
    use crate::render::{mmtests, ratios};
    use crate::{Options, Rule};
    use expect_test::expect;

    #[test]
    fn the_keys_are_stable() {
        let mut table = crate::Table::new("STREAM on zen3-2s", ["v5.18", "v5.18+NUMA_IMB_AFFINITY"]);
        let metric = table.metric("bandwidth", "MB/s", crate::Direction::Higher);
        for seed in 1..=3 {
            metric.record("Copy", 0, seed, 90_000.0);
            metric.record("Copy", 1, seed, 150_000.0);
        }
        metric.record("Add", 0, 1, 90_000.0);
        let found = json(&Comparison::new(&table, Options::default()));
        expect![[r#"
            {
              "title": "STREAM on zen3-2s",
              "kernels": [
                "v5.18",
                "v5.18+NUMA_IMB_AFFINITY"
              ],
              "baseline": "v5.18",
              "rule": {
                "name": "ci-2024",
                "level": 0.05
              },
              "confidence": 0.95,
              "negligible": 0.05,
              "pairs_min": 3,
              "metrics": [
                {
                  "name": "bandwidth",
                  "unit": "MB/s",
                  "better": "higher",
                  "mean_kind": "hmean",
                  "rows": [
                    {
                      "row": "Copy",
                      "cells": [
                        {
                          "kernel": "v5.18",
                          "runs": 3,
                          "samples": 3,
                          "stats": {
                            "min": 90000.0,
                            "mean": 90000.0,
                            "stddev": 0.0,
                            "coeff_var": 0.0,
                            "max": 90000.0,
                            "best_mean_95": 90000.0
                          },
                          "percent": {
                            "min": 0.0,
                            "mean": 0.0,
                            "stddev": 0.0,
                            "coeff_var": 0.0,
                            "max": 0.0,
                            "best_mean_95": 0.0
                          },
                          "significant": false,
                          "p": null,
                          "ratio": 1.0,
                          "distance": 0.0,
                          "paired": null
                        },
                        {
                          "kernel": "v5.18+NUMA_IMB_AFFINITY",
                          "runs": 3,
                          "samples": 3,
                          "stats": {
                            "min": 150000.0,
                            "mean": 150000.0,
                            "stddev": 0.0,
                            "coeff_var": 0.0,
                            "max": 150000.0,
                            "best_mean_95": 150000.0
                          },
                          "percent": {
                            "min": 66.66666666666666,
                            "mean": 66.66666666666666,
                            "stddev": 0.0,
                            "coeff_var": 0.0,
                            "max": 66.66666666666666,
                            "best_mean_95": 66.66666666666666
                          },
                          "significant": true,
                          "p": null,
                          "ratio": 1.6666666666666667,
                          "distance": -60000.0,
                          "paired": {
                            "pairs": 3,
                            "mean_kind": "hmean",
                            "base": 90000.0,
                            "value": 150000.0,
                            "change_percent": 66.6666666666667,
                            "interval_percent": [
                              66.6666666666667,
                              66.6666666666667
                            ],
                            "span_percent": null,
                            "difference": 60000.0,
                            "difference_interval": [
                              60000.0,
                              60000.0
                            ],
                            "verdict": "better",
                            "pairs_needed": null
                          }
                        }
                      ]
                    },
                    {
                      "row": "Add",
                      "cells": [
                        {
                          "kernel": "v5.18",
                          "runs": 1,
                          "samples": 1,
                          "stats": {
                            "min": 90000.0,
                            "mean": 90000.0,
                            "stddev": null,
                            "coeff_var": 0.0,
                            "max": 90000.0,
                            "best_mean_95": 90000.0
                          },
                          "percent": {
                            "min": 0.0,
                            "mean": 0.0,
                            "stddev": null,
                            "coeff_var": 0.0,
                            "max": 0.0,
                            "best_mean_95": 0.0
                          },
                          "significant": false,
                          "p": null,
                          "ratio": 1.0,
                          "distance": 0.0,
                          "paired": null
                        },
                        {
                          "kernel": "v5.18+NUMA_IMB_AFFINITY",
                          "runs": 0,
                          "samples": 0,
                          "stats": {
                            "min": null,
                            "mean": null,
                            "stddev": null,
                            "coeff_var": 0.0,
                            "max": null,
                            "best_mean_95": null
                          },
                          "percent": {
                            "min": null,
                            "mean": null,
                            "stddev": null,
                            "coeff_var": 0.0,
                            "max": null,
                            "best_mean_95": null
                          },
                          "significant": false,
                          "p": null,
                          "ratio": 1.0,
                          "distance": 0.0,
                          "paired": {
                            "pairs": 0,
                            "mean_kind": "hmean",
                            "base": null,
                            "value": null,
                            "change_percent": null,
                            "interval_percent": null,
                            "span_percent": null,
                            "difference": null,
                            "difference_interval": null,
                            "verdict": "too few runs",
                            "pairs_needed": null
                          }
                        }
                      ]
                    }
                  ],
                  "ratios": [
                    {
                      "kernel": "v5.18",
                      "gmean": 1.0,
                      "distance_mean": 0.0,
                      "distance_min": 0.0,
                      "distance_max": 0.0
                    },
                    {
                      "kernel": "v5.18+NUMA_IMB_AFFINITY",
                      "gmean": 1.2909944487358056,
                      "distance_mean": -30000.0,
                      "distance_min": -60000.0,
                      "distance_max": 0.0
                    }
                  ]
                }
              ]
            }"#]]
        .assert_eq(&serde_json::to_string_pretty(&found).unwrap());
    }

    #[test]
    fn the_numbers_are_those_of_the_table() {
        let options = Options { rule: Rule::T2020 { level: 0.1 }, ..Options::default() };
        let comparison = Comparison::new(&dbench(), options);
        let value = json(&comparison);
        let table = mmtests(&comparison.metrics[0], &comparison.kernels, &[Stat::Mean]);
        let ratio_table = ratios(&comparison.metrics[0], &comparison.kernels);
        let rows = value["metrics"][0]["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 5);
        for (row, line) in rows.iter().zip(table.lines().skip(2)) {
            let cell = &row["cells"][1];
            assert!(line.contains(&format!("{:.2} ", cell["stats"]["mean"].as_f64().unwrap())), "{line}");
            assert!(line.contains(&format!("{:.2}%", cell["percent"]["mean"].as_f64().unwrap())), "{line}");
            assert_eq!(line.ends_with('*'), cell["significant"].as_bool().unwrap(), "{line}");
        }
        let gmean = value["metrics"][0]["ratios"][1]["gmean"].as_f64().unwrap();
        assert!(ratio_table.lines().last().unwrap().ends_with(&format!("{gmean:.2}")), "{ratio_table}");
    }

    #[test]
    fn what_does_not_exist_is_null() {
        let value = json(&Comparison::new(&paired_runs(), Options::default()));
        let lone = &value["metrics"][0]["rows"][3]["cells"][1];
        assert_eq!(lone["stats"]["stddev"], Value::Null);
        assert_eq!(lone["paired"]["interval_percent"], Value::Null);
        assert_eq!(lone["paired"]["verdict"], "too few runs");
        let from_nothing = &value["metrics"][1]["rows"][1]["cells"][1]["paired"];
        assert_eq!(from_nothing["change_percent"], Value::Null);
        assert_eq!(from_nothing["verdict"], "worse");
        assert_eq!(value["metrics"][0]["rows"][0]["cells"][0]["paired"], Value::Null);
    }
}
