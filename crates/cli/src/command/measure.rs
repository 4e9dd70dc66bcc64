//! `schedlab measure`: this host as a machine file, measured by small programs in about a minute.
//!
//! A value that one probe shows alone is used as it is. A wake-up, a switch and an interrupt can only be measured
//! together: their prices are chosen so that the same probe takes as long in simulation. A value that cannot be
//! measured on this host or by this user is reported, and keeps its default.

mod check;
mod file;
mod memory;
mod probe;
mod simulated;

use std::path::Path;
use std::time::{Duration, Instant};

use schedlab::machine::Machine;
use schedlab::sched::Kernel;
use schedlab::topology::{CpuId, Topology};

use crate::args::Measure;
use crate::error::{Error, Status};
use crate::{facts, machine, output};
use file::Findings;
use probe::{By, Figure};

/// Number of pairs of CPUs tried per distance.
const PAIRS: usize = 3;

/// Measures, or compares a measurement with benchmarks.
pub fn run(args: &Measure) -> Result<Status, Error> {
    let release =
        std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_string();
    let kernel = match &args.kernel {
        Some(name) => Kernel::parse(name)?,
        None => {
            let known = facts::kernel_of(&release, "--kernel");
            let name = known.ok_or_else(|| {
                Error::new(format!("\"{release}\" is not a kernel release;  name one with --kernel"))
            })?;
            Kernel::parse(&name)?
        }
    };
    if let Some(path) = &args.check {
        let text = crate::files::read(path)?;
        let measured = Machine::from_toml(&path.display().to_string(), &text)?;
        check::run(&measured, &kernel)?;
        return Ok(Status::Done);
    }
    if let Some(path) = &args.output {
        output::check(path)?;
    }
    let began = Instant::now();
    let topology = machine::machine("host")?.topology;
    let mut host =
        Host { cpus: probe::allowed().map_err(Error::new)?, findings: Findings::new(topology), kernel };
    host.cpus.retain(|&cpu| host.findings.topology.online().contains(cpu));
    if let Some(load) = others_at_work().filter(|&load| load > 0.5) {
        host.findings.lacks(format!(
            "an idle host: {load:.1} other tasks ran or waited on average, so all values are too high and their ranges too wide; as \
             root you can run the command under `chrt --fifo 1`"
        ));
    }
    host.measure()?;
    let mut story =
        vec![format!("This host, as schedlab measure found it in {} s.", began.elapsed().as_secs())];
    story.extend(model_name().map(|name| format!("{name}, Linux {release}, rules of {}.", host.kernel.name)));
    // A file that cannot be read back must not be written.
    host.findings.machine()?;
    let text = host.findings.to_toml(&story);
    for sentence in &host.findings.missing {
        say!("not measured: {sentence}");
    }
    output::write(args.output.as_deref(), |out| out.write_all(text.as_bytes()))?;
    if let Some(path) = &args.output {
        let path = path.display();
        say!("wrote {path}; try: schedlab run SCENARIO --machine {path}, schedlab measure --check {path}");
    }
    Ok(Status::Done)
}

/// Mean number of running or waiting tasks in the last minute.
fn others_at_work() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

/// The processor's name for itself.
fn model_name() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name") || line.starts_with("CPU part"))?;
    Some(line.split_once(':')?.1.trim().to_string())
}

/// Whether this is a virtual machine, as far as can be detected.
fn is_virtual() -> bool {
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let x86 = flags
        .lines()
        .any(|line| line.starts_with("flags") && line.split_whitespace().any(|f| f == "hypervisor"));
    x86 || Path::new("/sys/hypervisor/type").exists()
}

/// The host, its allowed CPUs, and the results so far.
struct Host {
    cpus: Vec<CpuId>,
    findings: Findings,
    kernel: Kernel,
}

/// The distance between two CPUs, nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Distance {
    Core,
    Cluster,
    Cache,
    Package,
    Remote,
}

impl Distance {
    const ALL: [(Distance, &'static str, &'static str); 5] = [
        (Distance::Core, "sibling_ns", "threads of one core"),
        (Distance::Cluster, "cluster_ns", "cores of one cluster"),
        (Distance::Cache, "llc_ns", "cores that share a last-level cache"),
        (Distance::Package, "node_ns", "cores of a package with different last-level caches"),
        (Distance::Remote, "remote_ns", "different packages or nodes"),
    ];

    fn of(t: &Topology, a: CpuId, b: CpuId) -> Distance {
        let (a, b) = (t.cpu(a), t.cpu(b));
        match () {
            () if a.core == b.core => Distance::Core,
            () if (a.llc, a.cluster) == (b.llc, b.cluster) => Distance::Cluster,
            () if a.llc == b.llc => Distance::Cache,
            () if (a.package, a.node) == (b.package, b.node) => Distance::Package,
            () => Distance::Remote,
        }
    }
}

/// Prints what is being measured, and the result.
fn told<T>(
    what: &str,
    probe: impl FnOnce() -> Result<T, String>,
    show: impl Fn(&T) -> String,
) -> Result<T, Error> {
    eprint!("schedlab: {what} ... ");
    let found = probe().map_err(|why| Error::new(format!("{what}: {why}")))?;
    eprintln!("{}", show(&found));
    Ok(found)
}

fn figure(what: &str, unit: &str, probe: impl FnOnce() -> Result<Figure, String>) -> Result<Figure, Error> {
    told(what, probe, |Figure { value, low, high }| format!("{value:.1} {unit} ({low:.1} to {high:.1})"))
}

impl Host {
    fn measure(&mut self) -> Result<(), Error> {
        let first = self.cpus[0];
        let call = figure("system call", "ns", || probe::syscall(first))?;
        self.findings.set("cost", "syscall_ns", call, "getppid()");
        let futex = figure("futex call", "ns", || probe::futex_call(first))?;
        self.findings.set(
            "cost",
            "futex_ns",
            futex.less(call.value),
            "a futex wake without a waiter, less a system call",
        );
        let pipe = figure("call on a pipe", "ns", || probe::pipe_call(first))?;
        self.findings.set(
            "cost",
            "pipe_ns",
            pipe.less(call.value),
            "a write and a read of 4 bytes without waiting, less system calls",
        );
        let spread =
            figure("how much that varies from call to call", "permille", || probe::pipe_spread(first))?;
        self.findings.set(
            "cost",
            "call_spread_permille",
            spread,
            "calls on a pipe, their standard deviation without the longest thousandth",
        );
        self.lines()?;
        self.memory()?;
        self.clocks()?;
        let switch = figure("futex ping-pong on one CPU, one way", "ns", || {
            probe::ping_pong(By::Futex, [first; 2], Duration::ZERO)
        })?;
        self.fit_switch(switch)?;
        self.wake_ups()?;
        self.compare_pipes()?;
        Ok(())
    }

    /// Pairs of CPUs of each distance, a few of each, spread over the machine.
    fn pairs(&self, distance: Distance) -> Vec<[CpuId; 2]> {
        let t = &self.findings.topology;
        let mut found = Vec::new();
        for (nth, &a) in self.cpus.iter().enumerate() {
            let at = |b: &&CpuId| Distance::of(t, a, **b) == distance;
            found.extend(self.cpus[nth + 1..].iter().filter(at).take(1).map(|&b| [a, b]));
        }
        let step = found.len().div_ceil(PAIRS).max(1);
        found.into_iter().step_by(step).collect()
    }

    /// Pairs of cores that share a last-level cache, those of different clusters first.
    fn pairs_of_cache(&self) -> Vec<[CpuId; 2]> {
        let clusters = self.pairs(Distance::Cluster);
        self.pairs(Distance::Cache).into_iter().chain(clusters).collect()
    }

    /// Latencies between CPUs.
    fn lines(&mut self) -> Result<(), Error> {
        for (distance, name, words) in Distance::ALL {
            let pairs = self.pairs(distance);
            if pairs.is_empty() {
                self.findings.lacks(format!(
                    "lines between {words}: there are none among the CPUs that this process may use"
                ));
                continue;
            }
            let mut ways = Vec::new();
            for cpus in pairs {
                let what = format!("a line from CPU {} to CPU {} ({words})", cpus[0], cpus[1]);
                ways.push(figure(&what, "ns", || probe::ping_pong(By::Line, cpus, Duration::ZERO))?);
            }
            ways.sort_by(|a, b| a.value.total_cmp(&b.value));
            let Figure { value, .. } = ways[ways.len() / 2];
            let low = ways.iter().fold(f64::MAX, |low, way| low.min(way.low));
            let high = ways.iter().fold(0f64, |high, way| high.max(way.high));
            self.findings.set(
                "cacheline",
                name,
                Figure { value, low, high },
                format!("half a round trip of a word between {words}"),
            );
        }
        Ok(())
    }

    /// Caches, memory and bandwidth.
    fn memory(&mut self) -> Result<(), Error> {
        let first = self.cpus[0];
        let t = self.findings.topology.clone();
        let sizes = t.cache_sizes(first);
        let (l2, llc) = (sizes.l2.unwrap_or(1 << 20), sizes.llc.unwrap_or(32 << 20));
        if llc > 2 * l2 {
            // At most half of it: others use it too.
            let bytes = (4 * l2).min(llc / 2);
            let near = figure("a read from the last-level cache", "ns", || memory::latency(first, bytes))?;
            self.findings.set("cache", "llc_ns", near, format!("a chase through {} KB", bytes >> 10));
            if let Some(&[from, to]) = self.pairs_of_cache().first() {
                let extra = figure("a line of data after a move to another core", "ns", || {
                    memory::refill(from, to, l2 / 2)
                })?;
                if extra.value > 0.0 {
                    let at_once = (near.value / extra.value).clamp(1.0, 64.0);
                    let mlp = Figure { value: at_once, low: at_once, high: at_once };
                    self.findings.set("cache", "mlp", mlp, "latency of the last-level cache over the price of a line, read in order, after a move");
                }
            } else {
                self.findings.lacks("refilling a cache after a move: no two cores share one");
            }
        } else {
            self.findings.lacks(
                "the last-level cache: its size is not known, or hardly more than that of the second level",
            );
        }
        let far = (4 * llc).clamp(64 << 20, 512 << 20);
        let local = figure("a read from memory", "ns", || memory::latency(first, far))?;
        self.findings.set("cache", "local_ns", local, format!("a chase through {} MB", far >> 20));
        let each = far / 4;
        let core = figure("bandwidth of one core", "MB/s", || memory::bandwidth(&[first], far))?;
        self.findings.set("bandwidth", "core_mbps", core, "one thread reads in order");
        for (name, what, mask) in [
            ("llc_mbps", "cores of one last-level cache", t.llc_mask(first).clone()),
            ("node_mbps", "cores of one node", t.node_mask(t.cpu(first).node).clone()),
        ] {
            let cpus: Vec<CpuId> = self
                .cpus
                .iter()
                .copied()
                .filter(|&cpu| mask.contains(cpu) && t.cpu(cpu).thread == 0)
                .collect();
            if cpus.len() < 2 {
                self.findings.lacks(format!("bandwidth of {what}: this process may use one of them only"));
                continue;
            }
            let all = figure(&format!("bandwidth of {} {what}", cpus.len()), "MB/s", || {
                memory::bandwidth(&cpus, each)
            })?;
            // The bandwidth of an LLC is a separate limit only if the node's is higher.
            if name == "node_mbps" || t.llcs().len() > t.nodes().len() {
                self.findings.set("bandwidth", name, all, format!("{} threads read in order", cpus.len()));
            }
        }
        Ok(())
    }

    /// Clocks under load, and the SMT share of a core's threads.
    fn clocks(&mut self) -> Result<(), Error> {
        let first = self.cpus[0];
        let one = figure("clock of one busy CPU", "MHz", || probe::clock(&[first]))?;
        self.findings.set("freq", "one_core_mhz", one, "a dependency chain of two cycles per iteration");
        let t = self.findings.topology.clone();
        let cores: Vec<CpuId> = self.cpus.iter().copied().filter(|&cpu| t.cpu(cpu).thread == 0).collect();
        if cores.len() > 1 {
            let all =
                figure(&format!("clock of {} busy cores", cores.len()), "MHz", || probe::clock(&cores))?;
            self.findings.set(
                "freq",
                "all_cores_mhz",
                all,
                format!("the same on {} cores at once", cores.len()),
            );
        } else {
            self.findings.lacks("the clock of several busy cores: this process may use one");
        }
        let core: Vec<CpuId> =
            self.cpus.iter().copied().filter(|&cpu| t.cpu(cpu).core == t.cpu(first).core).collect();
        if core.len() > 1 {
            let share =
                figure("share of a thread while its core is shared", "permille", || probe::smt_share(&core))?;
            let name = match core.len() {
                2 => "two_permille",
                4 => "four_permille",
                _ => "eight_permille",
            };
            self.findings.set(
                "smt",
                name,
                share,
                "multiplications and a small table, alone and beside the others",
            );
        } else {
            self.findings.lacks(
                "what threads of a core share: cores have one thread each, or this process may use one",
            );
        }
        Ok(())
    }

    /// Wake-up, sleep and switch, in the proportion of their defaults, so that the simulated ping-pong takes as long.
    fn fit_switch(&mut self, way: Figure) -> Result<(), Error> {
        let names = ["wakeup_ns", "sleep_ns", "context_switch_ns"];
        let defaults = Machine::of(self.findings.topology.clone());
        let default = |name: &str| {
            let all = defaults.constants();
            let found = all.iter().find(|(row, _)| row.table == "cost" && row.name == name);
            found.map_or(0.0, |(_, cost)| cost.get() as f64)
        };
        let first = self.cpus[0];
        let simulated = |host: &mut Host, factor: f64| -> Result<f64, Error> {
            for name in names {
                let value = default(name) * factor;
                let spread =
                    Figure { value, low: value * way.low / way.value, high: value * way.high / way.value };
                host.findings.set("cost", name, spread, format!("a futex ping-pong on one CPU takes {:.0} ns one way; in the proportion of the defaults", way.value));
            }
            simulated::ping_pong(&host.findings.machine()?, &host.kernel, By::Futex, [first; 2])
        };
        let ways = [simulated(self, 0.5)?, simulated(self, 2.0)?];
        let factor = simulated::solve([0.5, 2.0], ways, way.value, [0.05, 50.0]);
        let again = simulated(self, factor)?;
        say!(
            "wake-up, sleep and switch are {factor:.2} times their defaults; one way then takes {again:.0} ns simulated"
        );
        Ok(())
    }

    /// Wake-ups of other CPUs, short and long idle, and timers.
    fn wake_ups(&mut self) -> Result<(), Error> {
        let near = self.pairs_of_cache().into_iter().chain(self.pairs(Distance::Package));
        let near: Vec<[CpuId; 2]> = near.chain(self.pairs(Distance::Remote)).take(1).collect();
        let Some(&cpus) = near.first() else {
            self.findings.lacks("wake-ups of other CPUs: this process may use one core");
            return Ok(());
        };
        let way =
            figure(&format!("futex ping-pong of CPUs {} and {}, one way", cpus[0], cpus[1]), "ns", || {
                probe::ping_pong(By::Futex, cpus, Duration::ZERO)
            })?;
        for (distance, words) in [(Distance::Package, "package"), (Distance::Remote, "machine")] {
            if let Some(&cpus) = self.pairs(distance).first().filter(|&&other| other != cpus) {
                figure(
                    &format!("the same across the {words}, CPUs {} and {}", cpus[0], cpus[1]),
                    "ns",
                    || probe::ping_pong(By::Futex, cpus, Duration::ZERO),
                )?;
            }
        }
        if is_virtual() {
            self.findings.lacks("idle states: this is a virtual machine, whose host has them; wake-up times include exits to the host");
        }
        let idle = figure("wake-up of a CPU idle for 4 ms", "ns", || probe::wake_from_idle(cpus))?;
        self.findings.idle_exit = Some(idle.less(way.value));
        let timer = figure("how late after its timer a task runs", "ns", || probe::timer(cpus[1]))?;
        let simulated = |host: &mut Host, deliver: f64| -> Result<f64, Error> {
            let spread = Figure {
                value: deliver,
                low: deliver * way.low / way.value,
                high: deliver * way.high / way.value,
            };
            for name in ["deliver_ns", "polling_ns"] {
                host.findings.set(
                    "ipi",
                    name,
                    spread,
                    format!("a futex ping-pong of two cores takes {:.0} ns one way", way.value),
                );
            }
            simulated::ping_pong(&host.findings.machine()?, &host.kernel, By::Futex, cpus)
        };
        let ways = [simulated(self, 1.0)?, simulated(self, 20_000.0)?];
        let deliver = simulated::solve([1.0, 20_000.0], ways, way.value, [1.0, 1e6]);
        let again = simulated(self, deliver)?;
        say!("an interrupt is delivered in {deliver:.0} ns; one way then takes {again:.0} ns simulated");
        if again > 1.1 * way.value {
            self.findings.lacks(format!(
                "the delivery of an interrupt: the other parts of a wake-up take {again:.0} ns simulated, and all of it {:.0} here",
                way.value
            ));
        }
        // The timer's own path is what is left of its lateness.
        let machine = self.findings.machine()?;
        let rest = machine.cost.timer_irq_ns.get()
            + machine.cost.wakeup_ns.get()
            + machine.cost.context_switch_ns.get();
        let late = timer.less(rest as f64 + idle.less(way.value).value);
        self.findings.set(
            "cost",
            "timer_delivery_ns",
            late,
            "how late a sleep of 300 us ends, less the wake-up and the return from idle",
        );
        Ok(())
    }

    /// A pipe between two CPUs and on one: measured and simulated, with nothing fitted to them.
    fn compare_pipes(&mut self) -> Result<(), Error> {
        let first = self.cpus[0];
        let mut both = vec![[first; 2]];
        both.extend(self.pairs_of_cache().into_iter().take(1));
        for cpus in both {
            let what = format!("pipe ping-pong of CPUs {} and {}, one way", cpus[0], cpus[1]);
            let here = figure(&what, "ns", || probe::ping_pong(By::Pipe, cpus, Duration::ZERO))?;
            let predicted = simulated::ping_pong(&self.findings.machine()?, &self.kernel, By::Pipe, cpus)?;
            say!(
                "  simulated, with nothing chosen for it: {predicted:.0} ns, {:.2} times as long",
                predicted / here.value
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_distinguished_by_what_they_share() {
        let t = Topology::regular("2x2x2x2").unwrap();
        let of = |b: u16| Distance::of(&t, CpuId(0), CpuId(b));
        assert_eq!(
            [of(1), of(2), of(4), of(8)],
            [Distance::Core, Distance::Cache, Distance::Package, Distance::Remote]
        );
        let t = Topology::regular("1x2x4:cluster=2").unwrap();
        let of = |b: u16| Distance::of(&t, CpuId(0), CpuId(b));
        assert_eq!([of(1), of(2), of(4)], [Distance::Cluster, Distance::Cache, Distance::Package]);
    }
}
