//! `schedlab sched stats`: `/proc/schedstat` of a simulated run, a report of it, and the difference of two.

use std::path::Path;

use schedlab::domain_tree;
use schedlab::report::schedstat::{IDLE_TYPES, SchedStat, SchedStatFold, Span, Version};
use schedlab::sched::Kernel;
use schedlab::topology::{CpuMask, Topology};
use serde_json::json;

use crate::args::{Stats, What};
use crate::error::{Error, Status};
use crate::output::{self, Format};
use crate::recorded::Recorded;
use crate::{facts, scenario};

/// Prints the file, its report, or a difference.
pub fn run(args: &Stats) -> Result<Status, Error> {
    match &args.what[..] {
        [diff, a, b] if diff == "diff" => difference(args, a, b),
        [one] if one != "diff" => {
            let (version, stat) = read(args, one)?;
            let version = match args.version {
                None => version,
                Some(number) => Version::of_number(number)
                    .ok_or_else(|| Error::new(format!("--version is 15, 16 or 17, not {number}")))?,
            };
            match (args.schedstat, args.format) {
                (true, _) => output::print_as_is(|out| out.write_all(stat.text(version).as_bytes()))?,
                (false, Format::Json) => output::print_json(&stat)?,
                (false, Format::Text) => output::print(|out| out.write_all(report(&stat).as_bytes()))?,
            }
            Ok(Status::Done)
        }
        _ => Err(Error::new(
            "name a scenario, a recording or a file of /proc/schedstat, or `diff` and two of them: schedlab sched stats diff A B",
        )),
    }
}

/// A file of /proc/schedstat, a scenario that is run, or a recording that is read.
fn read(args: &Stats, name: &str) -> Result<(Version, SchedStat), Error> {
    let path = Path::new(name);
    let is_text = path.is_file() && std::fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"version "));
    if is_text {
        let text = crate::files::read(path)?;
        return SchedStat::parse(&text).map_err(|why| Error::new(format!("{name}: {why}")));
    }
    let is_scenario = path.extension().is_some_and(|e| e == "toml" || e == "json");
    if is_scenario || (!path.exists() && schedlab::embedded_scenario(name).is_some()) {
        return simulated(args, name);
    }
    let recorded = Recorded::one(path)?;
    let kernel = facts::known_kernel(args.kernel.as_deref(), recorded.facts.as_deref(), &recorded)?;
    let kernel = kernel.unwrap_or_else(|| Kernel::preset(schedlab::sched::PRESETS.len() - 1));
    let topology = match &args.machine {
        Some(machine) => Some(crate::machine::machine(machine)?.topology),
        None => recorded.machine()?,
    };
    let mut fold = fold(topology.as_ref(), &kernel);
    recorded.open()?.feed(&mut fold, || false)?;
    Ok((version_of(&kernel), fold.finish(kernel.tunables.hz)))
}

fn simulated(args: &Stats, name: &str) -> Result<(Version, SchedStat), Error> {
    let what = What {
        scenario: name.to_owned(),
        machine: args.machine.clone(),
        set: Vec::new(),
        limit: None,
        seed: args.seed,
        without: None,
    };
    let scenario = scenario::load(&what)?;
    let kernel = scenario::kernel(&scenario, args.kernel.as_deref())?;
    let row = scenario::row(&scenario, args.row.as_deref())?;
    let fold = fold(Some(&scenario.machine.topology), &kernel);
    let (_, fold) = scenario.run_row(&kernel, row, |_| fold)?;
    Ok((version_of(&kernel), fold.finish(kernel.tunables.hz)))
}

fn version_of(kernel: &Kernel) -> Version {
    Version::of_release(schedlab::kernels::release(kernel).unwrap_or((0, 0)))
}

fn fold(topology: Option<&Topology>, kernel: &Kernel) -> SchedStatFold {
    let Some(topology) = topology else { return SchedStatFold::new(Vec::new(), 1) };
    let nr_cpus = topology.nr_cpus();
    let mut spans = vec![Vec::new(); nr_cpus];
    for tree in domain_tree::trees(topology, kernel, None) {
        let span = |level: &domain_tree::Level| Span {
            name: level.name.clone(),
            span: CpuMask::parse_list(&level.span, nr_cpus).unwrap_or_default(),
        };
        spans[usize::from(tree.cpu)] = tree.domains.iter().map(span).collect();
    }
    SchedStatFold::new(spans, nr_cpus)
}

/// Totals of all CPUs, and balancing at each level by idle type.
fn report(stat: &SchedStat) -> String {
    let sum =
        |of: &dyn Fn(&schedlab::report::schedstat::CpuStat) -> u64| -> u64 { stat.cpus.iter().map(of).sum() };
    let mut text = format!("{} CPUs, timestamp {}\n\n", stat.cpus.len(), stat.timestamp);
    for (name, value) in totals(&sum) {
        text += &format!("{name:<34}{value:>16}\n");
    }
    for (name, domain) in stat.levels() {
        text +=
            &format!("\n{name}\n{:<26}{:>12}{:>12}{:>12}\n", "", IDLE_TYPES[0], IDLE_TYPES[1], IDLE_TYPES[2]);
        for (row, values) in rows(&domain) {
            text += &format!("  {row:<24}{:>12}{:>12}{:>12}\n", values[0], values[1], values[2]);
        }
        let [begun, failed, moved] = domain.active;
        text += &format!("  active balancing: {begun} begun, {failed} failed, {moved} moved a task\n");
        let [remote, affine, balance] = domain.ttwu;
        text += &format!(
            "  wake-ups: {remote} of tasks elsewhere, {affine} to the waker's side, {balance} by balance\n"
        );
    }
    text
}

type Sum<'a> = dyn Fn(&dyn Fn(&schedlab::report::schedstat::CpuStat) -> u64) -> u64 + 'a;

fn totals(sum: &Sum) -> [(&'static str, u64); 7] {
    [
        ("calls of schedule()", sum(&|cpu| cpu.sched[0])),
        ("of these, that left a CPU idle", sum(&|cpu| cpu.sched[1])),
        ("wake-ups", sum(&|cpu| cpu.ttwu[0])),
        ("of these, on the waker's own CPU", sum(&|cpu| cpu.ttwu[1])),
        ("time tasks ran, ns", sum(&|cpu| cpu.times_ns[0])),
        ("time tasks waited, ns", sum(&|cpu| cpu.times_ns[1])),
        ("times a task came to run", sum(&|cpu| cpu.timeslices)),
    ]
}

fn rows(domain: &schedlab::report::schedstat::DomainStat) -> [(&'static str, [u64; 3]); 8] {
    let of =
        |value: fn(&schedlab::report::schedstat::Passes) -> u64| [0, 1, 2].map(|i| value(&domain.passes[i]));
    [
        ("passes", of(|p| p.count)),
        ("found balanced", of(|p| p.balanced)),
        ("no busiest group", of(|p| p.nobusyg)),
        ("no busiest queue", of(|p| p.nobusyq)),
        ("failed", of(|p| p.failed)),
        ("tasks pulled", of(|p| p.gained)),
        ("with warm caches", of(|p| p.hot_gained)),
        ("imbalance", of(|p| p.imbalance.iter().sum())),
    ]
}

/// Two of them side by side.
fn difference(args: &Stats, a: &str, b: &str) -> Result<Status, Error> {
    let ((_, before), (_, after)) = (read(args, a)?, read(args, b)?);
    let mut lines: Vec<(String, u64, u64)> = Vec::new();
    let sum_of = |stat: &SchedStat| -> Vec<(&'static str, u64)> {
        let sum = |of: &dyn Fn(&schedlab::report::schedstat::CpuStat) -> u64| -> u64 {
            stat.cpus.iter().map(of).sum()
        };
        totals(&sum).to_vec()
    };
    for ((name, x), (_, y)) in sum_of(&before).into_iter().zip(sum_of(&after)) {
        lines.push((name.to_owned(), x, y));
    }
    let (levels, others) = (before.levels(), after.levels());
    let mut unmatched = Vec::new();
    for (number, (name, domain)) in levels.iter().enumerate() {
        // A file without names has levels by number.
        let by_name = others.iter().find(|(other, _)| other == name);
        let unnamed = |name: &str| name.starts_with("domain");
        let by_number = others.get(number).filter(|(other, _)| unnamed(name) || unnamed(other));
        let Some((_, other)) = by_name.or(by_number) else {
            unmatched.push(name.clone());
            continue;
        };
        for ((row, x), (_, y)) in rows(domain).into_iter().zip(rows(other)) {
            for idle in 0..3 {
                lines.push((format!("{name} {}: {row}", IDLE_TYPES[idle]), x[idle], y[idle]));
            }
        }
    }
    lines.retain(|(_, x, y)| *x > 0 || *y > 0);
    if args.format == Format::Json {
        let told: Vec<_> = lines.iter().map(|(name, x, y)| json!({"name": name, "a": x, "b": y})).collect();
        output::print_json(&told)?;
        return Ok(Status::Done);
    }
    let width = lines.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
    output::print(|out| {
        writeln!(out, "{:<width$}  {:>16}  {:>16}  {:>9}", "", "A", "B", "change")?;
        for (name, x, y) in &lines {
            let change = match x {
                0 => "new".to_owned(),
                _ => format!("{:+.1} %", 100.0 * (*y as f64 / *x as f64 - 1.0)),
            };
            writeln!(out, "{name:<width$}  {x:>16}  {y:>16}  {change:>9}")?;
        }
        for name in &unmatched {
            writeln!(out, "{name} is in the first only")?;
        }
        Ok(())
    })?;
    Ok(Status::Done)
}
