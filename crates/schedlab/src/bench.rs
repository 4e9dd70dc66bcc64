//! The benchmarks that mails to the scheduler list report, each as a small scenario.
//!
//! Loads scale with the machine: `{n}` in a text is the number of its CPUs, `{n/2}` half of it and so on, at least one.
//! Sizes are small, since a simulated second takes longer than a second. Kernels are compared, not machines.

/// One benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Bench {
    /// Its name in tables.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// The parameter whose values are its loads, for the keys of rows.
    pub load: &'static str,
    /// Its measure.
    pub measure: &'static str,
    /// The `[workload]` of its scenario.
    pub workload: &'static str,
}

macro_rules! set {
    ($($name:literal, $load:literal, $measure:literal, $about:literal, $workload:literal;)*) => {
        &[$(Bench { name: $name, load: $load, measure: $measure, about: $about, workload: $workload }),*]
    };
}

/// All of them, in the order of their table.
pub const SET: &[Bench] = set![
    "hackbench-process-pipe", "groups", "time", "perf bench sched messaging -p, processes",
        "model = \"hackbench\"\ngroups = [1, \"{n/16}\", \"{n/4}\"]\ntransport = \"pipe\"\nloops = 100";
    "hackbench-thread-pipe", "groups", "time", "the same, threads",
        "model = \"hackbench\"\ngroups = [1, \"{n/16}\", \"{n/4}\"]\ntransport = \"pipe\"\nkind = \"thread\"\nloops = 100";
    "hackbench-process-socket", "groups", "time", "perf bench sched messaging over sockets, processes",
        "model = \"hackbench\"\ngroups = [1, \"{n/16}\", \"{n/4}\"]\nloops = 100";
    "hackbench-thread-socket", "groups", "time", "the same, threads",
        "model = \"hackbench\"\ngroups = [1, \"{n/16}\", \"{n/4}\"]\nkind = \"thread\"\nloops = 100";
    "tbench", "clients", "transactions", "tbench: the packets of its load file",
        "model = \"tbench\"\nclients = [\"{n/8}\", \"{n/2}\", \"{n}\"]\nwall = \"20ms\"\nwarmup = \"5ms\"";
    "netperf-tcp-rr", "clients", "transactions", "netperf TCP_RR, one byte",
        "model = \"netperf\"\nclients = [\"{n/8}\", \"{n/2}\", \"{n}\"]\nwall = \"20ms\"\nwarmup = \"5ms\"";
    "netperf-udp-rr", "clients", "transactions", "netperf UDP_RR, one byte",
        "model = \"netperf\"\nclients = [\"{n/8}\", \"{n/2}\", \"{n}\"]\nstack = \"1500ns\"\nwall = \"20ms\"\nwarmup = \"5ms\"";
    "netperf-tcp-stream", "clients", "throughput", "netperf TCP_STREAM, 16 KB a send",
        "model = \"netperf\"\nway = \"stream\"\nrequest = 16384\nclients = [1, \"{n/8}\"]\nwall = \"40ms\"\nwarmup = \"10ms\"";
    "netperf-udp-stream", "clients", "throughput", "netperf UDP_STREAM, 1 KB a send",
        "model = \"netperf\"\nway = \"stream\"\nrequest = 1024\nstack = \"1500ns\"\nclients = [1, \"{n/8}\"]\nwall = \"40ms\"\nwarmup = \"10ms\"";
    "schbench-old", "workers", "requests", "schbench without think time: wake up, compute",
        "model = \"schbench\"\noperations = 0\nmessengers = 2\nwork = \"30us\"\nworkers = [\"{n/16}\", \"{n/4}\", \"{n/2}\"]\nwall = \"100ms\"";
    "schbench-request-p99", "workers", "request p99", "schbench: from wake-up to completion, 99th percentile",
        "model = \"schbench\"\nmessengers = 2\nworkers = [\"{n/16}\", \"{n/4}\", \"{n/2}\"]\nwall = \"150ms\"";
    "schbench-rps", "workers", "requests", "the same, requests per second",
        "model = \"schbench\"\nmessengers = 2\nworkers = [\"{n/16}\", \"{n/4}\", \"{n/2}\"]\nwall = \"150ms\"";
    "stream", "threads", "copy", "STREAM, copy",
        "model = \"stream\"\nthreads = [\"{n/8}\", \"{n/2}\"]\nelements = 4194304";
    "sysbench-cpu", "threads", "events", "sysbench cpu",
        "model = \"events\"\nthreads = [\"{n/2}\", \"{n}\", \"{2n}\"]\nwall = \"100ms\"";
    "sysbench-threads", "threads", "events", "sysbench threads: 8 locks and yields",
        "model = \"events\"\nlocks = 8\nwork = \"300ns\"\nyields = 10\nthreads = [\"{n/8}\", \"{n}\"]\nwall = \"20ms\"";
    "perf-bench-pipe", "pairs", "operations", "perf bench sched pipe",
        "model = \"token\"\npairs = [1]\nwall = \"50ms\"";
    "context1", "pairs", "operations", "UnixBench context1, a pair for each copy",
        "model = \"token\"\npairs = [\"{n/4}\", \"{n}\"]\nwall = \"10ms\"";
    "stress-ng-pipe", "pairs", "operations", "stress-ng --pipe, 4 KB",
        "model = \"token\"\npass = \"stream\"\nbytes = 4096\npairs = [\"{n/4}\", \"{n}\"]\nwall = \"10ms\"";
    "spawn", "parents", "forks", "UnixBench spawn: fork and wait",
        "model = \"spawn\"\nparents = [1, \"{n/4}\"]\nwall = \"50ms\"";
    "execl", "parents", "forks", "UnixBench execl: fork, exec and wait",
        "model = \"spawn\"\nexec = true\nparents = [1, \"{n/4}\"]\nwall = \"50ms\"";
    "cyclictest", "threads", "latency p99", "cyclictest --laptop -p 80: 99th percentile of its latency",
        "model = \"periodic\"\nthreads = [\"{n}\"]\nloops = 100";
    "kernbench", "jobs", "elapsed", "make -j",
        "model = \"kernbench\"\njobs = [\"{n/2}\", \"{n}\"]\nfiles = 40";
    "oltp", "clients", "transactions", "sysbench on a database",
        "model = \"sysbench\"\nclients = [\"{n/4}\", \"{n}\"]\nwall = \"80ms\"\nwarmup = \"20ms\"";
    "nas-like", "threads", "rounds", "threads that meet at barriers",
        "model = \"barrier\"\nthreads = [\"{n/2}\", \"{n}\"]";
    "mcf", "copies", "steps", "copies bound by memory",
        "model = \"copies\"\ncopies = [\"{n/4}\", \"{n/2}\"]\nwall = \"100ms\"";
];

impl Bench {
    /// The text of its scenario.
    pub fn scenario(
        &self,
        machine: &str,
        nr_cpus: usize,
        kernels: &[String],
        runs: u32,
        seed: u64,
    ) -> String {
        let mut workload = self.workload.to_string();
        for (word, value) in [
            ("{2n}", 2 * nr_cpus),
            ("{n}", nr_cpus),
            ("{n/2}", nr_cpus / 2),
            ("{n/4}", nr_cpus / 4),
            ("{n/8}", nr_cpus / 8),
            ("{n/16}", nr_cpus / 16),
        ] {
            workload = workload.replace(&format!("\"{word}\""), &value.max(1).to_string());
        }
        let workload: Vec<String> = workload.lines().map(distinct).collect();
        let kernels: Vec<String> = kernels.iter().map(|kernel| format!("{kernel:?}")).collect();
        format!(
            "machine = {machine:?}\nkernels = [{}]\nruns = {runs}\nseed = {seed}\nlimit = \"20s\"\n[workload]\n{}\n",
            kernels.join(", "),
            workload.join("\n")
        )
    }
}

/// Removes duplicates from a list: on a small machine several loads are equal.
fn distinct(line: &str) -> String {
    let Some((key, list)) = line.split_once(" = [") else { return line.to_string() };
    let mut values: Vec<&str> = Vec::new();
    for value in list.trim_end_matches(']').split(", ") {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    format!("{key} = [{}]", values.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Asked;
    use crate::scenario::{NoFiles, Scenario};

    #[test]
    fn every_benchmark_is_a_scenario_with_its_measure_on_machines_of_any_size() {
        for (machine, nr_cpus) in [("2", 2), ("2x4x8x2", 128)] {
            for bench in SET {
                let text = bench.scenario(machine, nr_cpus, &["v6.12".to_string()], 1, 1);
                let scenario = Scenario::parse(bench.name, &text, &NoFiles)
                    .unwrap_or_else(|e| panic!("{}: {e}", bench.name));
                let has = |row: &crate::Row| row.workload.measures.iter().any(|m| m.name == bench.measure);
                let measured = scenario.rows.iter().all(has) || Asked::parse(bench.measure).is_ok();
                assert!(measured, "{} has no {}", bench.name, bench.measure);
                assert!(scenario.rows.iter().all(|row| !row.key.is_empty()), "{}", bench.name);
            }
        }
    }
}
