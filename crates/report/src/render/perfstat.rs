//! The block of `perf stat -r`.
//!
//! Columns as perf 6.1 prints them; counts have commas, as with a locale that has them, and as in mail.

use crate::{Elapsed, PerfRow, PerfStat};

/// Width of a count.
const COUNT: usize = 18;
/// Width of an event's name.
const EVENT: usize = 32;
/// Width of the text after a rate.
const NOTE: usize = 23;

/// The block, with a blank line after its title and around its last line.
pub fn perf_stat(stat: &PerfStat) -> String {
    let event = stat.rows.iter().map(|row| row.event.len()).fold(EVENT, usize::max);
    let note = stat.rows.iter().filter_map(|row| row.note.as_ref());
    let note = note.map(|(_, text)| text.len()).fold(NOTE, usize::max);

    let runs = if stat.runs == 1 { String::new() } else { format!(" ({} runs)", stat.runs) };
    let mut out = format!(" Performance counter stats for '{}'{runs}:\n\n", stat.title);
    for row in &stat.rows {
        out += line(row, event, note).trim_end();
        out.push('\n');
    }
    if let Some(time) = &stat.elapsed {
        out += &format!("\n{}\n", elapsed(time).trim_end());
    }
    out
}

fn line(row: &PerfRow, event: usize, note: usize) -> String {
    let digits = if row.unit.is_empty() { 0 } else { 2 };
    let count = with_commas(row.mean, digits);
    let mut line = format!("{count:>COUNT$} {:<4} {:<event$}", row.unit, row.event);
    match &row.note {
        Some((value, text)) if text.starts_with('%') => {
            // A share keeps its sign close: `0.85% of all branches`.
            line += &format!(" # {value:>8.2}{text:<width$}", width = note + 1);
        }
        Some((value, text)) => line += &format!(" # {value:>8.3} {text:<note$}"),
        None => line += &" ".repeat(" # ".len() + 8 + 1 + note),
    }
    if let Some(percent) = row.error_percent {
        line += &error(percent);
    }
    line
}

fn elapsed(time: &Elapsed) -> String {
    let Some(stderr) = time.stderr else {
        return format!(" {:>17.9} seconds time elapsed", time.mean);
    };
    let digits = digits(time.stddev.unwrap_or(0.0));
    let value = format!(" {:>17.digits$} +- {stderr:.digits$} seconds time elapsed", time.mean);
    value + &error(100.0 * stderr / time.mean)
}

fn error(percent: f64) -> String {
    format!("  ( +-{percent:>6.2}% )")
}

/// Two digits more than the first one in which runs differ, at most nine.
fn digits(stddev: f64) -> usize {
    let mut digits = 0;
    let mut unit = 1.0;
    while digits < 7 && unit > stddev {
        digits += 1;
        unit /= 10.0;
    }
    digits + 2
}

fn with_commas(x: f64, digits: usize) -> String {
    let text = format!("{x:.digits$}");
    let whole = text.find('.').unwrap_or(text.len());
    let mut out = String::new();
    for (at, c) in text.char_indices() {
        let left = whole.saturating_sub(at);
        if c.is_ascii_digit() && left > 0 && left % 3 == 0 && out.ends_with(|c: char| c.is_ascii_digit()) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    /// A bar marks the left edge, which perf leaves blank.
    fn check(stat: &PerfStat, expected: Expect) {
        let lines = perf_stat(stat);
        expected.assert_eq(&lines.lines().map(|line| format!("|{line}\n")).collect::<String>());
    }

    #[test]
    fn columns_are_those_of_perf() {
        // A block that perf 6.1 printed for five runs of a small shell loop.
        let row = |event: &str, unit: &str, mean: f64, note: (f64, &str), error: f64| PerfRow {
            error_percent: Some(error),
            ..PerfRow::new(event, unit, [mean]).note(note.0, note.1)
        };
        let stat = PerfStat {
            title: "sh -c loop".to_owned(),
            runs: 5,
            rows: vec![
                row("task-clock", "msec", 6.05, (0.784, "CPUs utilized"), 0.89),
                row("context-switches", "", 23.0, (3.793, "K/sec"), 2.95),
                row("cpu-migrations", "", 8.0, (1.319, "K/sec"), 11.59),
                row("page-faults", "", 452.0, (74.543, "K/sec"), 0.13),
            ],
            elapsed: Some(Elapsed { mean: 0.007722, stderr: Some(0.000408), stddev: Some(0.000912) }),
        };
        check(
            &stat,
            expect![[r#"
            | Performance counter stats for 'sh -c loop' (5 runs):
            |
            |              6.05 msec task-clock                       #    0.784 CPUs utilized            ( +-  0.89% )
            |                23      context-switches                 #    3.793 K/sec                    ( +-  2.95% )
            |                 8      cpu-migrations                   #    1.319 K/sec                    ( +- 11.59% )
            |               452      page-faults                      #   74.543 K/sec                    ( +-  0.13% )
            |
            |          0.007722 +- 0.000408 seconds time elapsed  ( +-  5.28% )
        "#]],
        );
    }

    #[test]
    fn a_scheduler_block_keeps_its_columns() {
        let switches = PerfRow::new("context-switches", "", [170_400_000.0, 171_100_000.0, 170_659_283.0]);
        let voluntary = PerfRow::new("context-switches:voluntary", "", [168e6, 169e6, 168.5e6]);
        let stat = PerfStat {
            title: "none.process.pipe.60".to_owned(),
            runs: 3,
            rows: vec![
                voluntary.share_of(&switches),
                switches.per_second(30.833),
                PerfRow::new("cpu-migrations", "", [16_871_449.0; 3]).per_second(30.833),
                PerfRow::new("cpu-migrations:a-cause-with-a-very-long-name", "", [12.0, 0.0, 3.0])
                    .per_second(30.833),
                PerfRow::new("wakeup-latency:p99.9", "usec", [1234.5, 1250.25, 1199.0]),
                PerfRow::new("page-faults", "", [0.0; 3]),
            ],
            elapsed: Some(Elapsed::new([30.833112186, 30.9, 30.75])),
        };
        check(
            &stat,
            expect![[r#"
            | Performance counter stats for 'none.process.pipe.60' (3 runs):
            |
            |       168,500,000      context-switches:voluntary                   #    98.70% of context-switches     ( +-  0.17% )
            |       170,719,761      context-switches                             #    5.537 M/sec                    ( +-  0.12% )
            |        16,871,449      cpu-migrations                               #  547.188 K/sec                    ( +-  0.00% )
            |                 5      cpu-migrations:a-cause-with-a-very-long-name #    0.162 /sec                     ( +- 72.11% )
            |          1,227.92 usec wakeup-latency:p99.9                                                             ( +-  1.23% )
            |                 0      page-faults
            |
            |           30.8277 +- 0.0434 seconds time elapsed  ( +-  0.14% )
        "#]],
        );
    }

    #[test]
    fn a_single_run_has_no_errors() {
        let stat = PerfStat {
            title: "stream".to_owned(),
            runs: 1,
            rows: vec![PerfRow::new("context-switches", "", [1_000.0]).per_second(2.0)],
            elapsed: Some(Elapsed::new([2.0])),
        };
        check(
            &stat,
            expect![[r#"
            | Performance counter stats for 'stream':
            |
            |             1,000      context-switches                 #  500.000 /sec
            |
            |       2.000000000 seconds time elapsed
        "#]],
        );
    }

    #[test]
    fn commas_stand_between_thousands() {
        for (x, digits, text) in [
            (0.0, 0, "0"),
            (999.0, 0, "999"),
            (1_000.0, 0, "1,000"),
            (577_719_907_794_874.0, 0, "577,719,907,794,874"),
            (168_980_939.76, 2, "168,980,939.76"),
            (-1_234.5, 1, "-1,234.5"),
            (-123.0, 0, "-123"),
        ] {
            assert_eq!(with_commas(x, digits), text);
        }
    }
}
