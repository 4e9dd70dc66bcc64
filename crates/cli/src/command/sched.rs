//! `schedlab sched latency|map|timehist`: the reports of perf sched, on any recording.

use std::cell::{Cell, RefCell};
use std::io::{self, Write};
use std::path::Path;

use schedlab::report::perf_sched::{
    Latency, Map, MapRow, Reading, SortKey, Timehist, TimehistOptions, TimehistRow,
};
use schedlab::topology::{CpuId, CpuMask, NR_CPUS_MAX};
use schedlab::units::{Pid, Time};
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::{self, Like, Sched, SchedReport};
use crate::error::{Error, Status};
use crate::output::{self, Format};
use crate::recorded::Recorded;
use crate::recording::Seen;

/// Prints one of the reports.
pub fn run(args: &Sched) -> Result<Status, Error> {
    match &args.report {
        SchedReport::Latency(args) => latency(args),
        SchedReport::Map(args) => map(args),
        SchedReport::Timehist(args) => timehist(args),
        SchedReport::Stats(args) => super::schedstat::run(args),
    }
}

fn latency(args: &args::Latency) -> Result<Status, Error> {
    let keys: Vec<SortKey> = args
        .sort
        .iter()
        .map(|name| {
            SortKey::parse(name).ok_or_else(|| {
                Error::new(format!("--sort {name}: a table is sorted by avg, max, switch, runtime or pid"))
            })
        })
        .collect::<Result<_, _>>()?;
    let reading = match args.like {
        Like::Auto => Reading::Auto,
        Like::V6_1 => Reading::Perf61,
        Like::V6_9 => Reading::Perf69,
    };
    let mut fold = Latency::default();
    let seen = Recorded::one(&args.file)?.open_without_decisions()?.feed(&mut fold, || false)?;
    let rows = fold.rows(reading, args.pids, &keys);
    match args.format {
        Format::Json => output::print_json(&json!({
            "rows": rows,
            "total": fold.total(reading, &rows),
            "missing": seen.missing,
        }))?,
        Format::Text => {
            output::print_as_is(|out| out.write_all(fold.text(reading, args.pids, &keys).as_bytes()))?;
        }
    }
    Ok(Status::Done)
}

fn map(args: &args::Map) -> Result<Status, Error> {
    let recording = Recorded::one(&args.file)?.open_without_decisions()?;
    let nr_cpus = recording.nr_cpus().unwrap_or(0);
    let cpus = args.cpus.as_deref().map(|list| cpus("--cpus", list)).transpose()?;
    are_there(&args.file, "--cpus", cpus.as_deref(), recording.nr_cpus())?;
    let mut read = Ok(Seen::default());
    let shown = Cell::new(0u64);
    output::print_as_is(|out| {
        let rows = Rows::new(out, args.format);
        let put = |row: &MapRow| {
            shown.set(shown.get() + u64::from(row.is_shown));
            // perf prints the lines of the other CPUs.
            if row.is_shown || args.format == Format::Text {
                rows.put(row, MapRow::line);
            }
        };
        let mut map = if args.compact { Map::compact(put) } else { Map::new(nr_cpus, put) };
        if let Some(cpus) = cpus {
            map = map.only(cpus);
        }
        read = recording.feed(&mut map, || rows.is_over());
        drop(map);
        if read.is_ok() { rows.finish(None) } else { Ok(()) }
    })?;
    let seen = read?;
    if shown.get() == 0 && args.cpus.is_some() {
        tell_empty(&args.file, "--cpus names no CPU that switches", &seen);
    }
    Ok(Status::Done)
}

fn timehist(args: &args::Timehist) -> Result<Status, Error> {
    let recording = Recorded::one(&args.file)?.open_without_decisions()?;
    let options = options(args, recording.nr_cpus().unwrap_or(0))?;
    are_there(&args.file, "--cpu", options.cpus.as_deref(), recording.nr_cpus())?;
    let mut read = Ok(Seen::default());
    let shown = Cell::new(0u64);
    output::print_as_is(|out| {
        let rows = Rows::new(out, args.format);
        let mut fold = Timehist::new(options.clone(), |row: &TimehistRow| {
            shown.set(shown.get() + 1);
            if !args.summary {
                if rows.is_empty() {
                    rows.text(&options.header());
                }
                rows.put(row, |row| options.line(row));
            }
        });
        read = recording.feed(&mut fold, || rows.is_over());
        let wanted = read.is_ok() && (args.summary || args.with_summary);
        let summary = wanted.then(|| fold.summary());
        drop(fold);
        if let Some(summary) = &summary {
            rows.text(&summary.text());
        }
        if read.is_ok() { rows.finish(summary.map(|summary| ("summary", json!(summary)))) } else { Ok(()) }
    })?;
    let seen = read?;
    let asked =
        [("--time", args.time.is_some()), ("--cpu", args.cpu.is_some()), ("--tid", args.tid.is_some())];
    let asked: Vec<&str> = asked.into_iter().filter_map(|(option, given)| given.then_some(option)).collect();
    if shown.get() == 0 && !asked.is_empty() {
        let tasks = if args.tid.is_some() { "; `schedlab sched latency --pids` lists the tasks" } else { "" };
        tell_empty(&args.file, &format!("nothing is within {}{tasks}", asked.join(" and ")), &seen);
    }
    Ok(Status::Done)
}

/// Explains an empty answer, and what the recording contains.
fn tell_empty(file: &Path, why: &str, seen: &Seen) {
    say!("{}: {why}; there are {}", file.display(), seen.extent());
}

/// The options of a timehist from the command line.
fn options(args: &args::Timehist, nr_cpus: u16) -> Result<TimehistOptions, Error> {
    let tid = |text: &str| {
        let number = text.trim().parse().map(Pid);
        number.map_err(|_| Error::new(format!("--tid {text}: a task is given by its number")))
    };
    let (start, stop) = args.time.as_deref().map(window).transpose()?.unwrap_or_default();
    Ok(TimehistOptions {
        wakeups: args.wakeups,
        migrations: args.migrations,
        next: args.next,
        state: args.state,
        cpus: args.cpu.as_deref().map(|list| cpus("--cpu", list)).transpose()?,
        tids: args.tid.as_deref().map(|list| list.split(',').map(tid).collect()).transpose()?,
        start,
        stop,
        nr_cpus,
    })
}

/// A list of CPUs: `0-3,8`.
fn cpus(option: &str, list: &str) -> Result<Vec<CpuId>, Error> {
    let mask =
        CpuMask::parse_list(list, NR_CPUS_MAX).map_err(|error| Error::new(format!("{option}: {error}")))?;
    Ok(mask.iter().collect())
}

/// Refuses CPUs that do not exist in a recording with a known number of CPUs.
fn are_there(file: &Path, option: &str, cpus: Option<&[CpuId]>, nr_cpus: Option<u16>) -> Result<(), Error> {
    let (Some(cpus), Some(nr_cpus)) = (cpus, nr_cpus) else { return Ok(()) };
    match cpus.iter().find(|cpu| cpu.0 >= nr_cpus) {
        Some(cpu) => {
            let (file, last) = (file.display(), nr_cpus.saturating_sub(1));
            Err(Error::new(format!("{option}: CPU {cpu} is not in {file} (0-{last})")))
        }
        None => Ok(()),
    }
}

/// A span of the trace's clock, either end left out: `3.95,4.0`.
fn window(text: &str) -> Result<(Option<Time>, Option<Time>), Error> {
    let wrong =
        || Error::new(format!("--time {text}: write it like 3.95,4.1 in seconds, either end left out"));
    let instant = |text: &str| {
        if text.is_empty() {
            return Ok(None);
        }
        let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(seconds) || !digits(fraction) || fraction.len() > 9 {
            return Err(wrong());
        }
        let seconds: u64 = seconds.parse().map_err(|_| wrong())?;
        let nanos: u64 = format!("{fraction:0<9}").parse().map_err(|_| wrong())?;
        Ok(Some(Time(seconds.checked_mul(1_000_000_000).ok_or_else(wrong)?.saturating_add(nanos))))
    };
    let (start, stop) = text.split_once(',').ok_or_else(wrong)?;
    let (start, stop) = (instant(start.trim())?, instant(stop.trim())?);
    if let (Some(from), Some(to)) = (start, stop)
        && to < from
    {
        return Err(Error::new(format!("--time {text}: it ends before it begins")));
    }
    Ok((start, stop))
}

/// Rows written as they come: lines, or the elements of a JSON array.
struct Rows<'a> {
    out: RefCell<&'a mut dyn Write>,
    /// Nothing is written after an error.
    state: RefCell<io::Result<()>>,
    format: Format,
    written: Cell<u64>,
}

impl<'a> Rows<'a> {
    fn new(out: &'a mut dyn Write, format: Format) -> Rows<'a> {
        Rows { out: RefCell::new(out), state: RefCell::new(Ok(())), format, written: Cell::new(0) }
    }

    fn write(&self, text: &str) {
        let mut state = self.state.borrow_mut();
        if state.is_ok() {
            *state = self.out.borrow_mut().write_all(text.as_bytes());
        }
    }

    /// Text between the rows; ignored for JSON.
    fn text(&self, text: &str) {
        if self.format == Format::Text {
            self.write(text);
        }
    }

    fn put<T: Serialize>(&self, row: &T, line: impl FnOnce(&T) -> String) {
        let first = self.written.replace(self.written.get() + 1) == 0;
        match self.format {
            Format::Text => self.write(&(line(row) + "\n")),
            Format::Json => {
                let row = serde_json::to_string(row).expect("a row is plain data");
                let lead = if first { "{\"rows\":[\n" } else { ",\n" };
                self.write(&format!("{lead}{row}"));
            }
        }
    }

    /// Whether no row was written yet.
    fn is_empty(&self) -> bool {
        self.written.get() == 0
    }

    /// Whether the reader of the output has closed it.
    fn is_over(&self) -> bool {
        self.state.borrow().is_err()
    }

    /// Ends the JSON value, with another entry if there is one.
    fn finish(self, last: Option<(&str, Value)>) -> io::Result<()> {
        if self.format == Format::Json {
            self.write(if self.written.get() == 0 { "{\"rows\":[" } else { "\n" });
            self.write("]");
            if let Some((name, value)) = last {
                self.write(&format!(",\n\"{name}\":{value}"));
            }
            self.write("}\n");
        }
        self.state.into_inner()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_may_lack_either_end() {
        let times = |text| window(text).unwrap();
        assert_eq!(times("3.95,4"), (Some(Time(3_950_000_000)), Some(Time(4_000_000_000))));
        assert_eq!(times(",4.000000001"), (None, Some(Time(4_000_000_001))));
        assert_eq!(times("3,"), (Some(Time(3_000_000_000)), None));
        for wrong in ["3", "3,x", "-1,2", "1.0000000001,2", "99999999999999999999,"] {
            assert!(window(wrong).unwrap_err().to_string().contains("write it like"), "{wrong}");
        }
    }

    #[test]
    fn rows_make_one_json_value() {
        for rows in 0..3 {
            let mut out = Vec::new();
            let json = Rows::new(&mut out, Format::Json);
            (0..rows).for_each(|row| json.put(&row, |_| unreachable!()));
            json.finish(Some(("sum", json!(rows)))).unwrap();
            let value: Value = serde_json::from_slice(&out).unwrap();
            assert_eq!(value, json!({ "rows": (0..rows).collect::<Vec<u32>>(), "sum": rows }));
        }
    }
}
