//! What an audit needs besides the trace: the machine and the settings of its scheduler.
//!
//! Files have the names and formats of the recordings under `traces/`: a line for each file of the kernel,
//! its path and its content.

use std::io::Read;

use schedlab::recording::sched_ext;

use super::host::{Host, open_without_waiting};

/// A file of facts: its name and its text.
pub type Fact = (&'static str, String);

/// The file that shows whether a sched_ext scheduler is active.
const SCHED_EXT: &str = "/sys/kernel/sched_ext/state";

/// All facts that the host provides, and sentences about missing ones.
pub fn facts(host: &Host) -> (Vec<Fact>, Vec<String>) {
    let mut missing = Vec::new();
    let debug = host.mounted("debugfs").map(|place| format!("{place}/sched"));
    let debug = debug.unwrap_or_else(|| "/sys/kernel/debug/sched".to_owned());
    let features =
        host.text(&format!("{debug}/features")).or_else(|| host.text(&format!("{debug}_features")));
    if features.is_none() {
        let why = match host.path(&format!("{debug}/features")).exists() {
            true => format!("{debug}/features cannot be read, as on a locked down kernel"),
            false => {
                format!("{debug} has no features; `mount -t debugfs debugfs /sys/kernel/debug` may help")
            }
        };
        missing.push(format!(
            "{why}: switches and tunables are not recorded; an audit uses the kernel's defaults"
        ));
    }
    let topology = topology(host);
    if topology.is_empty() {
        missing.push("/sys has no topology; an audit needs --machine".to_owned());
    }
    let ext = [SCHED_EXT, "/sys/kernel/sched_ext/root/ops"].iter().filter_map(|path| line(host, path));
    let ext: String = ext.collect();
    if sched_ext(&ext, "").is_some() {
        missing.push(
            "a scheduler of sched_ext is at work: an audit judges it by rules that it need not follow".into(),
        );
    }
    let facts = [
        ("uname.txt", uname(host)),
        ("sched_ext.txt", ext),
        ("cmdline.txt", host.text("/proc/cmdline").unwrap_or_default()),
        ("topology.txt", topology),
        ("sched_features.txt", features.unwrap_or_default()),
        ("debug_sched.txt", tunables(host, &debug)),
        ("domains.txt", domains(host, &format!("{debug}/domains"))),
        ("schedstat.txt", host.text("/proc/schedstat").unwrap_or_default()),
        ("sysctl.txt", sysctls(host)),
        ("config.txt", config(host)),
        ("dmesg-sched.txt", log(host)),
    ];
    let facts = facts.into_iter().filter(|(_, text)| !text.is_empty());
    (facts.map(|(name, text)| (name, text.trim_end().to_owned() + "\n")).collect(), missing)
}

/// Kernel and machine as `uname -a` prints them, without the host's name.
pub fn uname(host: &Host) -> String {
    let kernel = |name: &str| host.text(&format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    let (system, release, version) = (kernel("ostype"), kernel("osrelease"), kernel("version"));
    let machine = host.text("/proc/sys/kernel/arch").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    format!("{system} (none) {release} {version} {machine} GNU/Linux")
}

/// A line of a file's path and content, if there is such a file.
fn line(host: &Host, path: &str) -> Option<String> {
    let text = host.text(path)?.replace('\n', "|");
    Some(format!("{path} {text}\n"))
}

/// The files of /sys that describe CPUs, caches and nodes.
fn topology(host: &Host) -> String {
    const CPU: &str = "/sys/devices/system/cpu";
    const NODE: &str = "/sys/devices/system/node";
    const TOPOLOGY: [&str; 10] = [
        "physical_package_id",
        "die_id",
        "cluster_id",
        "core_id",
        "thread_siblings_list",
        "core_cpus_list",
        "cluster_cpus_list",
        "die_cpus_list",
        "package_cpus_list",
        "core_siblings_list",
    ];
    const CACHE: [&str; 7] =
        ["level", "type", "id", "size", "shared_cpu_list", "ways_of_associativity", "coherency_line_size"];
    let mut paths: Vec<String> =
        ["online", "possible", "isolated"].map(|name| format!("{CPU}/{name}")).into();
    paths.push(format!("{NODE}/online"));
    for (_, cpu) in host.numbered(CPU, "cpu") {
        paths.extend(TOPOLOGY.iter().map(|name| format!("{CPU}/{cpu}/topology/{name}")));
        for (_, index) in host.numbered(&format!("{CPU}/{cpu}/cache"), "index") {
            paths.extend(CACHE.iter().map(|name| format!("{CPU}/{cpu}/cache/{index}/{name}")));
        }
        paths.push(format!("{CPU}/{cpu}/cpu_capacity"));
    }
    for (_, node) in host.numbered(NODE, "node") {
        paths.extend(["cpulist", "distance"].map(|name| format!("{NODE}/{node}/{name}")));
    }
    paths.iter().filter_map(|path| line(host, path)).collect()
}

/// The numbers of the scheduler in debugfs, down to one folder below.
fn tunables(host: &Host, debug: &str) -> String {
    // These grow with the number of tasks; servers have a folder per CPU, and only the first is kept.
    const OTHERS: [&str; 5] = ["debug", "features", "domains", "fair_server", "ext_server"];
    let mut lines = String::new();
    let names = host.names(debug).into_iter().filter(|name| !OTHERS.contains(&name.as_str()));
    for name in names.chain(["fair_server/cpu0".to_string()]) {
        let path = format!("{debug}/{name}");
        if host.path(&path).is_dir() {
            lines.extend(host.names(&path).iter().filter_map(|name| line(host, &format!("{path}/{name}"))));
        } else {
            lines.extend(line(host, &path));
        }
    }
    lines
}

/// The domains of each CPU in debugfs, the lowest first.
fn domains(host: &Host, place: &str) -> String {
    let mut lines = String::new();
    for (_, cpu) in host.numbered(place, "cpu") {
        for (_, domain) in host.numbered(&format!("{place}/{cpu}"), "domain") {
            for name in host.names(&format!("{place}/{cpu}/{domain}")) {
                let text = host.text(&format!("{place}/{cpu}/{domain}/{name}")).unwrap_or_default();
                lines += &format!("{cpu}/{domain}/{name} {text}\n");
            }
        }
    }
    lines
}

fn sysctls(host: &Host) -> String {
    const KERNEL: &str = "/proc/sys/kernel";
    let names = host.names(KERNEL).into_iter();
    let ours = names.filter(|name| {
        name.starts_with("sched_") || name.starts_with("numa_balancing") || name == "timer_migration"
    });
    ours.filter_map(|name| line(host, &format!("{KERNEL}/{name}"))).collect()
}

/// The options of the kernel's build that concern the scheduler.
fn config(host: &Host) -> String {
    let release = host.text("/proc/sys/kernel/osrelease").unwrap_or_default();
    let own = std::fs::File::open(host.path("/proc/config.gz")).ok().and_then(|packed| {
        let mut text = String::new();
        flate2::read::GzDecoder::new(packed).read_to_string(&mut text).ok()?;
        Some(text)
    });
    let text = own.or_else(|| host.text(&format!("/boot/config-{release}"))).unwrap_or_default();
    const BEGINNINGS: [&str; 8] = [
        "PREEMPT",
        "HZ",
        "NO_HZ",
        "SCHED",
        "NUMA_BALANCING",
        "FAIR_GROUP_SCHED",
        "CFS_BANDWIDTH",
        "UCLAMP_TASK",
    ];
    let is_ours = |line: &&str| {
        let option = line.trim_start_matches("# ").strip_prefix("CONFIG_");
        option.is_some_and(|option| BEGINNINGS.iter().any(|beginning| option.starts_with(beginning)))
    };
    text.lines().filter(is_ours).map(|line| format!("{line}\n")).collect()
}

/// What the kernel log says about CPUs and domains; empty if its beginning is lost, because then half of the
/// domains may be lost, too.
fn log(host: &Host) -> String {
    let Ok(mut file) = open_without_waiting(&host.path("/dev/kmsg")) else { return String::new() };
    let (mut text, mut record) = (Vec::new(), vec![0; 16 << 10]);
    // Each read returns one record, and an error if none is left.
    while let Ok(read @ 1..) = file.read(&mut record) {
        text.extend_from_slice(&record[..read]);
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    let records = text.lines().filter_map(|line| {
        let (head, said) = line.split_once(';')?;
        let mut head = head.split(',').skip(1);
        let number: u64 = head.next()?.parse().ok()?;
        Some((number, head.next()?.parse::<u64>().ok()?, said))
    });
    if records.clone().next().is_none_or(|(number, ..)| number != 0) {
        return String::new();
    }
    const WORDS: [&str; 8] =
        ["sched", "domain", "groups:", "smpboot", "numa", "tsc", "clocksource", "preempt"];
    let mut lines = String::new();
    for (_, micros, said) in records {
        let lower = said.to_ascii_lowercase();
        if WORDS.iter().any(|word| lower.contains(word)) {
            lines += &format!("[{:5}.{:06}] {said}\n", micros / 1_000_000, micros % 1_000_000);
        }
    }
    lines
}
