//! Compares domains that a kernel reported with those built here.
//!
//! A recorded machine comes with three texts: `domains.txt`, each file below /sys/kernel/debug/sched/domains
//! with its content; `schedstat.txt`, which has the span of every domain; and the kernel log of
//! `sched_verbose`, which also has the groups. Each check returns one sentence per difference, and nothing if equal.

use std::collections::BTreeMap;

use crate::sched::{Domains, Kernel, LevelNames, SchedDomain, SgId};
use crate::topology::{CpuId, CpuMask};

/// What a kernel reported about its domains.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts<'a> {
    /// `cpu0/domain0/name MC` and so on.
    pub domains: Option<&'a str>,
    /// `/proc/schedstat`.
    pub schedstat: Option<&'a str>,
    /// The kernel log with `CPU0 attaching sched-domain(s):`.
    pub dmesg: Option<&'a str>,
}

/// How domains differ from recorded ones: one sentence each, in CPU order per text.
pub fn domain_differences(facts: Facts<'_>, kernel: &Kernel, domains: &Domains) -> Vec<String> {
    let built = Built { domains, names: kernel.rules.level_names };
    let mut differences = Vec::new();
    if let Some(text) = facts.domains {
        built.check_debugfs(text, &mut differences);
    }
    if let Some(text) = facts.schedstat {
        built.check_schedstat(text, &mut differences);
    }
    if let Some(text) = facts.dmesg {
        built.check_dmesg(text, &mut differences);
    }
    differences
}

struct Built<'a> {
    domains: &'a Domains,
    names: LevelNames,
}

impl Built<'_> {
    fn of(&self, cpu: usize) -> Vec<&SchedDomain> {
        if cpu >= self.domains.per_cpu.len() {
            return Vec::new();
        }
        self.domains.walk(CpuId::from(cpu)).map(|(_, sd)| sd).collect()
    }

    /// Compares how many domains each CPU has; true when all agree.
    fn check_count(
        &self,
        what: &str,
        counts: &BTreeMap<usize, usize>,
        differences: &mut Vec<String>,
    ) -> bool {
        let before = differences.len();
        for cpu in 0..self.domains.per_cpu.len() {
            let (recorded, built) = (counts.get(&cpu).copied().unwrap_or(0), self.of(cpu).len());
            if recorded != built {
                differences.push(format!("{what}: CPU {cpu} has {recorded} domains, built are {built}"));
            }
        }
        if let Some((&last, _)) = counts.last_key_value()
            && last >= self.domains.per_cpu.len()
        {
            let have = self.domains.per_cpu.len();
            differences.push(format!("{what}: CPU {last} is not in the machine, which has {have}"));
        }
        differences.len() == before
    }

    fn check_debugfs(&self, text: &str, differences: &mut Vec<String>) {
        let mut facts: BTreeMap<(usize, usize), BTreeMap<&str, &str>> = BTreeMap::new();
        for (at, line) in text.lines().enumerate() {
            let (path, value) = line.split_once(' ').unwrap_or((line, ""));
            let mut parts = path.rsplit('/');
            let (key, domain, cpu) = (parts.next(), parts.next(), parts.next());
            let number = |part: Option<&str>, prefix| part?.strip_prefix(prefix)?.parse::<usize>().ok();
            match (number(cpu, "cpu"), number(domain, "domain"), key) {
                (Some(cpu), Some(domain), Some(key)) => {
                    facts.entry((cpu, domain)).or_default().insert(key, value.trim());
                }
                _ => differences.push(format!("domains: line {} is not cpuN/domainN/NAME VALUE", at + 1)),
            }
        }
        let mut counts = BTreeMap::new();
        for &(cpu, domain) in facts.keys() {
            let count = counts.entry(cpu).or_insert(0);
            *count = (domain + 1).max(*count);
        }
        if !self.check_count("domains", &counts, differences) {
            return;
        }
        for ((cpu, domain), recorded) in facts {
            let sd = self.of(cpu)[domain];
            for (key, recorded) in recorded {
                let Some(built) = self.debugfs_value(sd, key) else { continue };
                if recorded != built {
                    differences
                        .push(format!("domains: cpu{cpu}/domain{domain}/{key} is {recorded}, built {built}"));
                }
            }
        }
    }

    /// The content of a debugfs file of a domain; `None` for values that change while the kernel runs.
    fn debugfs_value(&self, sd: &SchedDomain, key: &str) -> Option<String> {
        Some(match key {
            "name" => sd.name.to_string(),
            "level" => sd.number.to_string(),
            "flags" => self.flags(sd.flags),
            "groups_flags" => self.flags(self.domains.sg(sd.groups.local()).flags),
            "min_interval" => sd.min_interval.to_string(),
            "max_interval" => sd.max_interval.to_string(),
            "busy_factor" => sd.busy_factor.to_string(),
            "imbalance_pct" => sd.imbalance_pct.to_string(),
            "cache_nice_tries" => sd.cache_nice_tries.to_string(),
            _ => return None,
        })
    }

    fn flags(&self, flags: crate::sched::SdFlags) -> String {
        flags.names(self.names).collect::<Vec<_>>().join(" ")
    }

    fn check_schedstat(&self, text: &str, differences: &mut Vec<String>) {
        let mut cpu = None;
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        let mut spans: Vec<(usize, usize, &str)> = Vec::new();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let Some(head) = words.next() else { continue };
            if let Some(number) = head.strip_prefix("cpu").and_then(|n| n.parse().ok()) {
                cpu = Some(number);
            } else if let Some(domain) = head.strip_prefix("domain").and_then(|n| n.parse::<usize>().ok())
                && let Some(cpu) = cpu
            {
                // From version 17 on the name comes before the mask.
                let mask = words.next().unwrap_or_default();
                let is_mask = mask.chars().all(|c| c.is_ascii_hexdigit() || c == ',');
                let next = words.next().unwrap_or_default();
                // A name of hexadecimal letters alone would be taken for a mask; no level has one.
                spans.push((cpu, domain, if is_mask { mask } else { next }));
                *counts.entry(cpu).or_insert(0) = domain + 1;
            }
        }
        if !self.check_count("schedstat", &counts, differences) {
            return;
        }
        for (cpu, domain, recorded) in spans {
            let sd = self.of(cpu)[domain];
            match hex_mask(recorded, self.domains.per_cpu.len()) {
                Some(mask) if mask == *sd.span => {}
                Some(mask) => differences
                    .push(format!("schedstat: domain {domain} of CPU {cpu} spans {mask}, built {}", sd.span)),
                None => differences.push(format!(
                    "schedstat: cannot read the span \"{recorded}\" of domain {domain} of CPU {cpu}"
                )),
            }
        }
    }

    fn check_dmesg(&self, text: &str, differences: &mut Vec<String>) {
        // A CPU may be attached several times; the last one counts. The saved log may lack the lines of
        // groups.
        let mut attached: BTreeMap<usize, Vec<(&str, Option<&str>)>> = BTreeMap::new();
        let mut cpu = None;
        for line in text.lines() {
            let line = line.strip_prefix('[').and_then(|l| l.split_once("] ")).map_or(line, |(_, l)| l);
            let said = line.trim();
            if let Some((number, _)) = said.strip_prefix("CPU").and_then(|l| l.split_once(" attaching")) {
                cpu = number.parse().ok();
                if let Some(cpu) = cpu {
                    attached.insert(cpu, Vec::new());
                }
                continue;
            }
            let Some(domains) = cpu.and_then(|cpu| attached.get_mut(&cpu)) else { continue };
            if said.starts_with("domain-") {
                domains.push((said, None));
            } else if let Some((_, groups)) = domains.last_mut()
                && said.starts_with("groups:")
            {
                *groups = Some(said);
            } else {
                cpu = None;
            }
        }
        if attached.is_empty() {
            return;
        }
        let counts = attached.iter().map(|(&cpu, domains)| (cpu, domains.len())).collect();
        if !self.check_count("dmesg", &counts, differences) {
            return;
        }
        for (cpu, domains) in attached {
            let mut compare = |recorded: &str, built: String| {
                if recorded != built {
                    differences.push(format!("dmesg: CPU {cpu} has {recorded}, built {built}"));
                }
            };
            for ((i, sd), (domain, groups)) in self.of(cpu).into_iter().enumerate().zip(domains) {
                compare(domain, format!("domain-{i}: span={} level={}", sd.span, sd.name));
                if let Some(groups) = groups {
                    compare(groups, self.groups(sd));
                }
            }
        }
    }

    /// The groups of a domain as the kernel log shows them.
    ///
    /// Kernel: sched_domain_debug_one(), kernel/sched/topology.c, v6.12.
    fn groups(&self, sd: &SchedDomain) -> String {
        let group = |id: SgId| {
            let (sg, sgc) = (self.domains.sg(id), self.domains.sgc(id));
            let mask =
                if sg.balance_mask == sg.span { String::new() } else { format!(" mask={}", sg.balance_mask) };
            let cap = if sgc.capacity == 1024 { String::new() } else { format!(" cap={}", sgc.capacity) };
            format!("{}:{{ span={}{mask}{cap} }}", sgc.id, sg.span)
        };
        format!("groups: {}", sd.groups.iter().map(group).collect::<Vec<_>>().join(", "))
    }
}

/// A mask as `%*pb` prints it: hexadecimal words of 32 bits, highest first.
fn hex_mask(text: &str, nr_cpus: usize) -> Option<CpuMask> {
    let mut mask = CpuMask::new(nr_cpus);
    for (i, word) in text.rsplit(',').enumerate() {
        let word = u32::from_str_radix(word, 16).ok()?;
        for bit in (0..32).filter(|bit| word >> bit & 1 == 1) {
            let cpu = i * 32 + bit;
            if cpu >= nr_cpus {
                return None;
            }
            mask.set(CpuId::from(cpu));
        }
    }
    Some(mask)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Topology;

    #[test]
    fn each_kind_of_difference_is_named() {
        let topology = Topology::regular("2x1x2").unwrap();
        let kernel = Kernel::parse("v6.1").unwrap();
        let domains = Domains::build(&topology, &kernel, topology.online());
        let differences = |facts| domain_differences(facts, &kernel, &domains);
        let debugfs = (0..4)
            .flat_map(|cpu| [format!("cpu{cpu}/domain0/name MC"), format!("cpu{cpu}/domain1/name NUMA")])
            .collect::<Vec<_>>()
            .join("\n");
        assert_eq!(differences(Facts { domains: Some(&debugfs), ..Facts::default() }), [""; 0]);
        let wrong = debugfs.replace("cpu3/domain0/name MC", "cpu3/domain0/name SMT");
        assert_eq!(
            differences(Facts { domains: Some(&wrong), ..Facts::default() }),
            ["domains: cpu3/domain0/name is SMT, built MC"]
        );
        let stat = "version 15\ncpu0 0\ndomain0 3 0\ndomain1 f 0\ncpu1 0\ndomain0 3 0\ndomain1 7 0\n\
                    cpu2 0\ndomain0 c 0\ndomain1 f 0\ncpu3 0\ndomain0 c 0\n";
        assert_eq!(
            differences(Facts { schedstat: Some(stat), ..Facts::default() }),
            ["schedstat: CPU 3 has 1 domains, built are 2"]
        );
        let stat = format!("{stat}domain1 f 0\n");
        assert_eq!(
            differences(Facts { schedstat: Some(&stat), ..Facts::default() }),
            ["schedstat: domain 1 of CPU 1 spans 0-2, built 0-3"]
        );
    }

    #[test]
    fn a_kernel_log_may_lack_the_groups() {
        let topology = Topology::regular("2x1x2").unwrap();
        let kernel = Kernel::parse("v6.1").unwrap();
        let domains = Domains::build(&topology, &kernel, topology.online());
        let differences =
            |log: &str| domain_differences(Facts { dmesg: Some(log), ..Facts::default() }, &kernel, &domains);
        let groups =
            |text: &str| if text.is_empty() { String::new() } else { format!("[    0.4]   {text}\n") };
        let log = |level: &str, inner: &str, outer: &str| -> String {
            let one = |cpu: usize| {
                format!(
                    "[    0.4] CPU{cpu} attaching sched-domain(s):\n[    0.4]  domain-0: span={} level={}\n{}\
                     [    0.4]   domain-1: span=0-3 level=NUMA\n{}[    0.5] clocksource: tsc\n",
                    ["0-1", "2-3"][cpu / 2],
                    ["MC", level][usize::from(cpu == 0)],
                    groups(if cpu == 0 { inner } else { "" }),
                    groups(if cpu == 0 { outer } else { "" }),
                )
            };
            (0..4).map(one).collect()
        };
        assert_eq!(differences(&log("MC", "", "")), [""; 0], "only what was said is compared");
        let (inner, outer) = (
            "groups: 0:{ span=0 }, 1:{ span=1 }",
            "groups: 0:{ span=0-1 cap=2048 }, 2:{ span=2-3 cap=2048 }",
        );
        assert_eq!(differences(&log("MC", inner, outer)), [""; 0]);
        assert_eq!(
            differences(&log("SMT", inner, &outer.replace("2048", "2047"))),
            [
                "dmesg: CPU 0 has domain-0: span=0-1 level=SMT, built domain-0: span=0-1 level=MC"
                    .to_string(),
                format!("dmesg: CPU 0 has {}, built {outer}", outer.replace("2048", "2047")),
            ]
        );
    }

    #[test]
    fn masks_of_many_words_read_highest_first() {
        assert_eq!(hex_mask("1,00000000,00000003", 128).unwrap().to_string(), "0-1,64");
        assert_eq!(hex_mask("10", 4), None);
    }
}
