//! Tables that the tests of several renderers share.

use crate::{Direction, Table};

/// `n` samples with exactly this mean and standard deviation; `n` is even.
pub(crate) fn spread(n: usize, mean: f64, stddev: f64) -> Vec<f64> {
    let step = stddev * ((n - 1) as f64 / n as f64).sqrt();
    (0..n).map(|i| if i % 2 == 0 { mean - step } else { mean + step }).collect()
}

/// The same for a harmonic mean.
pub(crate) fn harmonic_spread(n: usize, mean: f64, stddev: f64) -> Vec<f64> {
    spread(n, 1.0 / mean, stddev / (mean * mean)).into_iter().map(|x| 1.0 / x).collect()
}

/// Twenty runs per kernel: what a row's samples are is given as (mean, deviation).
pub(crate) fn table(
    kernels: &[&str],
    name: &str,
    unit: &str,
    direction: Direction,
    rows: &[(&str, &[(f64, f64)])],
) -> Table {
    let mut table = Table::new("", kernels.iter().copied());
    let metric = table.metric(name, unit, direction);
    for (key, cells) in rows {
        for (kernel, &(mean, stddev)) in cells.iter().enumerate() {
            let samples = match direction {
                Direction::Lower => spread(2000, mean, stddev),
                Direction::Higher => harmonic_spread(2000, mean, stddev),
            };
            for (i, sample) in samples.into_iter().enumerate() {
                metric.record(key, kernel, i as u64 % 20, sample);
            }
        }
    }
    table
}

/// Mel Gorman's dbench table of 28 January 2020 for 8 CPUs, kthread stacking before and after.
///
/// The third decimals are chosen to reproduce the printed percentages, which mmtests computed from unrounded
/// values.
pub(crate) fn dbench() -> Table {
    table(
        &["5.5.0-rc7-tipsched-20200124", "5.5.0-rc7-kworkerstack"],
        "loadfile time",
        "ms",
        Direction::Lower,
        &[
            ("1", &[(22.63, 1.003), (20.541, 0.721)]),
            ("2", &[(25.56, 1.62), (23.402, 1.969)]),
            ("4", &[(28.628, 2.5349), (27.854, 3.579)]),
            ("8", &[(37.66, 5.301), (37.68, 5.199)]),
            ("64", &[(469.47, 86.36), (468.26, 94.53)]),
        ],
    )
}

/// K Prateek Nayak's STREAM table for Zen3: unpinned, pinned, pinned with the change.
pub(crate) fn stream() -> Table {
    table(
        &["5.18.0-rc1-no-pinning", "5.18.0-rc1-pinning", "5.18.0-rc1-this-patch"],
        "bandwidth",
        "MB/s",
        Direction::Higher,
        &[
            ("Copy", &[(109364.74, 900.0), (94220.50, 4000.0), (158301.28, 700.0)]),
            ("Scale", &[(109670.26, 900.0), (90210.59, 4000.0), (149525.64, 700.0)]),
            ("Add", &[(129029.01, 900.0), (101906.00, 4000.0), (186658.17, 700.0)]),
            ("Triad", &[(127260.05, 900.0), (106051.36, 4000.0), (184327.30, 700.0)]),
        ],
    )
}

/// One run per seed with shared noise: a change that is real, one that is not, one that is undecided, one from zero,
/// and one measured once.
pub(crate) fn paired_runs() -> Table {
    let mut table = Table::new("dbench on uma-8c, 6 paired runs, seed 1", ["v5.5", "v5.5+SIS_KTHREAD_STACK"]);
    let noise = [0.0, 1.1, -0.8, 0.5, -0.3, -0.5];
    let time = table.metric("loadfile time", "ms", Direction::Lower);
    for (seed, shared) in noise.into_iter().enumerate() {
        let seed = seed as u64 + 1;
        let own = noise[(seed as usize * 2) % 6] * 0.1;
        time.record("1", 0, seed, 22.58 + shared);
        time.record("1", 1, seed, 20.61 + shared + own);
        time.record("8", 0, seed, 37.70 + shared);
        time.record("8", 1, seed, 37.66 + shared + own);
        time.record("64", 0, seed, 469.0 + 90.0 * shared);
        time.record("64", 1, seed, 468.0 - 90.0 * shared);
    }
    time.record("128", 0, 1, 1345.26);
    time.record("128", 1, 1, 1372.64);
    let migrations = table.metric("migrations", "", Direction::Lower);
    for seed in 1..=6 {
        migrations.record("1", 0, seed, 18_420.0 + seed as f64);
        migrations.record("1", 1, seed, 240.0);
        migrations.record("64", 0, seed, 0.0);
        migrations.record("64", 1, seed, 5.0 + seed as f64 / 10.0);
    }
    table
}
