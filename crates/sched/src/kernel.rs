//! A kernel is a set of rules; a preset is a kernel that was released.
//!
//! Written the way people say it: `v5.5`, `v5.5+SIS_KTHREAD_STACK`,
//! `v6.1+NO_SIS_UTIL`, `v6.10+preempt=auto/none`, `v6.3+RECENT_USED_CPU=off`,
//! `v6.12+base_slice_ns=3000000`.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::between::BETWEEN;
use crate::{FairPolicy, Feature, Features, Preempt, PreemptBuild, PreemptModel, Rules, Tunable, Tunables};

/// Names of the presets, oldest first.
pub const PRESETS: [&str; 9] = ["v4.13", "v5.5", "v5.18", "v6.1", "v6.3", "v6.10", "v6.12", "v7.2", "v7.3"];

/// What `preempt=` can be: the model that is in force, and whether the kernel was built with it, or can only
/// choose it as it boots.
pub const PREEMPT_FORMS: [&str; 10] = [
    "none",
    "voluntary",
    "full",
    "lazy",
    "static/none",
    "static/voluntary",
    "static/full",
    "auto/none",
    "auto/voluntary",
    "auto/full",
];

/// The rules of one kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// As the user wrote it.
    pub name: String,
    /// Place of the preset it started from in [`PRESETS`].
    pub preset: usize,
    /// Switches.
    pub features: Features,
    /// Rules with several forms.
    pub rules: Rules,
    /// Numbers.
    pub tunables: Tunables,
    /// Preemption model.
    pub preempt: Preempt,
}

/// Switches that only EEVDF uses.
const EEVDF_ALONE: [Feature; 7] = [
    Feature::PlaceLag,
    Feature::PlaceDeadlineInitial,
    Feature::PlaceRelDeadline,
    Feature::RunToParity,
    Feature::PreemptShort,
    Feature::DelayDequeue,
    Feature::DelayZero,
];

/// A kernel string that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelError(String);

impl fmt::Display for KernelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for KernelError {}

impl Kernel {
    /// A preset by its place in [`PRESETS`].
    pub fn preset(preset: usize) -> Kernel {
        let mut tunables = Tunables::default();
        if preset >= 6 {
            tunables.base_slice_ns = 700_000;
        }
        if preset < 2 {
            (tunables.busy_factor, tunables.imbalance_pct) = (32, 125);
        }
        let preempt = match preset {
            0 | 1 => Preempt { build: PreemptBuild::Static, model: PreemptModel::Voluntary },
            7.. => Preempt { build: PreemptBuild::Dynamic, model: PreemptModel::Lazy },
            _ => Preempt { build: PreemptBuild::Dynamic, model: PreemptModel::Voluntary },
        };
        Kernel {
            name: PRESETS[preset].to_string(),
            preset,
            features: Features::of_preset(preset),
            rules: Rules::of_preset(preset),
            tunables,
            preempt,
        }
    }

    /// Reads a kernel string.
    ///
    /// # Errors
    /// A sentence that names the part that is not known and the nearest that is.
    pub fn parse(text: &str) -> Result<Kernel, KernelError> {
        let mut parts = text.trim().split('+').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let version = name.strip_prefix('v').unwrap_or(name);
        let stands_in = || Kernel::released(&Kernel::nearest(version)?[1..]);
        let mut kernel = Kernel::released(version).or_else(stands_in).ok_or_else(|| {
            KernelError(format!("there is no kernel \"{name}\"; known are {}", Kernel::names().join(", ")))
        })?;
        #[cfg(test)]
        turn_over(&mut kernel);
        for part in parts {
            kernel.switch(part)?;
        }
        kernel.name = text.trim().to_string();
        Ok(kernel)
    }

    /// The kernel here whose rules a release has that has none of its own; see [`Kernel::nearest_to`]. None for a name that is no
    /// release.
    fn nearest(version: &str) -> Option<&'static str> {
        let numbers: Vec<&str> = version.split('.').collect();
        let whole = |part: &&str| !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit());
        let release = Kernel::version(version).filter(|_| numbers.len() <= 3 && numbers.iter().all(whole))?;
        Kernel::nearest_to(release)
    }

    /// The preset nearest to a release: the newest that is not after it, except for the first releases with EEVDF,
    /// which are nearer to v6.10 than to CFS. `None` if the release is older than all.
    pub fn nearest_to(release: (u32, u32)) -> Option<&'static str> {
        if ((6, 6)..(6, 10)).contains(&release) {
            return Some("v6.10");
        }
        Kernel::names().into_iter().rev().find(|name| Kernel::version(name).is_some_and(|of| of <= release))
    }

    /// The kernel here whose rules this one has, if the release in its name has none of its own: of `v7.4+hz=100` v7.3.
    pub fn stand_in(&self) -> Option<&'static str> {
        let name = self.name.split('+').next().unwrap_or_default().trim();
        let version = name.strip_prefix('v').unwrap_or(name);
        if Kernel::released(version).is_some() { None } else { Kernel::nearest(version) }
    }

    /// Presets and those between them, oldest first.
    pub fn names() -> Vec<&'static str> {
        let mut names: Vec<&str> = PRESETS.into_iter().chain(BETWEEN.map(|(name, _)| name)).collect();
        names.sort_by_key(|name| Kernel::version(name));
        names
    }

    /// The first two numbers of a name or a release: of `v6.12` as of `6.12.95+deb12-amd64` 6 and 12.
    pub fn version(name: &str) -> Option<(u32, u32)> {
        let mut numbers = name.trim_start_matches('v').split(|c: char| !c.is_ascii_digit());
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    }

    /// A kernel by its version.
    fn released(version: &str) -> Option<Kernel> {
        if let Some(preset) = PRESETS.iter().position(|name| &name[1..] == version) {
            return Some(Kernel::preset(preset));
        }
        let (_, made_of) = BETWEEN.iter().find(|(name, _)| &name[1..] == version)?;
        let mut parts = made_of.split('+');
        let mut kernel = Kernel::released(&parts.next()?[1..])?;
        for part in parts {
            kernel.switch(part).ok()?;
        }
        Some(kernel)
    }

    /// Applies one part of a kernel string: `NAME`, `NO_NAME`, `NAME=form` or `tunable=number`.
    ///
    /// # Errors
    /// As [`Kernel::parse`].
    pub fn switch(&mut self, part: &str) -> Result<(), KernelError> {
        if let Some((name, value)) = part.split_once('=') {
            return self.assign(name.trim(), value.trim());
        }
        let (name, on) = match part.strip_prefix("NO_") {
            Some(name) => (name, false),
            None => (part, true),
        };
        match Feature::TABLE.iter().find(|row| row.name == name) {
            Some(row) => {
                self.features.set(row.feature, on);
                Ok(())
            }
            None => Err(unassigned(name).unwrap_or_else(|| unknown_name(part, name))),
        }
    }

    /// Whether a part of a kernel string changes what this kernel does: not if it is so already, nor if only EEVDF
    /// uses the switch and this is CFS.
    pub fn is_turned_by(&self, part: &str) -> bool {
        let mut turned = self.clone();
        let changes = turned.switch(part).is_ok() && turned != *self;
        let unheeded = self.rules.policy == FairPolicy::Cfs
            && EEVDF_ALONE.iter().any(|&feature| self.has(feature) != turned.has(feature));
        changes && !unheeded
    }

    /// Why a part of a kernel string turns nothing, where [`Kernel::is_turned_by`] says so.
    pub fn unturned(&self, part: &str) -> &'static str {
        let mut turned = self.clone();
        if turned.switch(part).is_ok() && turned == *self {
            return "it is so already";
        }
        "only EEVDF looks at it, and this is CFS"
    }

    fn assign(&mut self, name: &str, value: &str) -> Result<(), KernelError> {
        if name == "preempt" {
            self.preempt = parse_preempt(value, self.preempt.build)?;
            return Ok(());
        }
        if let Some(row) = Rules::TABLE.iter().find(|row| row.name == name) {
            return if (row.set)(&mut self.rules, value) {
                Ok(())
            } else {
                Err(KernelError(format!("{name} is one of {}, not \"{value}\"", row.forms.join(", "))))
            };
        }
        if let Some(row) = Tunables::named(name) {
            let name = row.name;
            let digits = match row.name.rsplit_once('_') {
                Some((_, unit @ ("ns" | "us" | "ms"))) => {
                    in_units(value, unit).unwrap_or(value.replace('_', ""))
                }
                _ => value.replace('_', ""),
            };
            if digits.is_empty() || !digits.bytes().all(|c| c.is_ascii_digit()) {
                return Err(KernelError(format!("{name} is a whole number, not \"{value}\"")));
            }
            // What does not fit into 64 bits is in no range either.
            let Some(number) = digits.parse().ok().filter(|number| row.range.contains(number)) else {
                let (least, most) = (row.range.start(), row.range.end());
                return Err(KernelError(format!("{name} is {least} to {most}, not {digits}")));
            };
            (row.set)(&mut self.tunables, number);
            return Ok(());
        }
        let bare = name.strip_prefix("NO_").unwrap_or(name);
        if Feature::TABLE.iter().any(|row| row.name == bare) {
            return Err(KernelError(format!(
                "{bare} is on or off: write {bare} or NO_{bare}, not \"{name}={value}\""
            )));
        }
        Err(unknown_name(name, name))
    }

    /// Whether a switch is on.
    #[inline]
    pub fn has(&self, feature: Feature) -> bool {
        self.features.has(feature)
    }
}

/// Turns over the rule that the environment names, in every preset: `cargo xtask rules`
/// asks whether a test notices.
#[cfg(test)]
fn turn_over(kernel: &mut Kernel) {
    let Ok(name) = std::env::var("SCHEDLAB_TURN_OVER") else { return };
    if let Some(row) = Feature::TABLE.iter().find(|row| row.name == name) {
        let on = kernel.features.has(row.feature);
        kernel.features.set(row.feature, !on);
    }
    if let Some(row) = Rules::TABLE.iter().find(|row| row.name == name) {
        let now = (row.get)(&kernel.rules);
        let next = row.forms.iter().cycle().skip_while(|form| **form != now).nth(1);
        (row.set)(&mut kernel.rules, next.expect("a rule has forms"));
    }
}

fn parse_preempt(value: &str, build: PreemptBuild) -> Result<Preempt, KernelError> {
    let (build, model) = match value.split_once('/') {
        Some(("auto", model)) => (PreemptBuild::Auto, model),
        Some(("static", model)) => (PreemptBuild::Static, model),
        _ if build == PreemptBuild::Auto => (PreemptBuild::Dynamic, value),
        _ => (build, value),
    };
    let model = match (model, build) {
        ("none", _) => PreemptModel::None,
        ("voluntary", _) => PreemptModel::Voluntary,
        ("full", _) => PreemptModel::Full,
        ("lazy", PreemptBuild::Static | PreemptBuild::Dynamic) => PreemptModel::Lazy,
        _ => {
            let forms = PREEMPT_FORMS.join(", ");
            return Err(KernelError(format!("preempt is one of {forms}, not \"{value}\"")));
        }
    };
    Ok(Preempt { build, model })
}

/// What lacks its value, if this is the name of such a thing.
fn unassigned(name: &str) -> Option<KernelError> {
    let rule = Rules::TABLE.iter().find(|row| row.name == name).map(|row| row.forms);
    let forms = if name == "preempt" { Some(&PREEMPT_FORMS[..]) } else { rule };
    if let Some(forms) = forms {
        return Some(KernelError(format!("{name} has forms: write {name}= and one of {}", forms.join(", "))));
    }
    let row = Tunables::named(name)?;
    let (name, least, most) = (row.name, row.range.start(), row.range.end());
    Some(KernelError(format!("{name} is a number: write {name}= and {least} to {most}")))
}

fn unknown_name(part: &str, name: &str) -> KernelError {
    let known = Feature::TABLE
        .iter()
        .map(|r| r.name)
        .chain(Rules::TABLE.iter().map(|r| r.name))
        .chain(Tunables::ALL.iter().map(|r| r.name));
    // A number whose unit was left out: base_slice of base_slice_ns.
    let lower = name.to_ascii_lowercase();
    let begins = |row: &&Tunable| row.name.rsplit_once('_').is_some_and(|(lead, _)| lead == lower);
    if let Some(row) = Tunables::ALL.iter().find(begins) {
        let (least, most) = (row.range.start(), row.range.end());
        return KernelError(format!(
            "there is no rule \"{part}\"; did you mean {}? write {}= and {least} to {most}",
            row.name, row.name
        ));
    }
    // With more letters wrong than one in three and one, what is nearest is not what was meant.
    let most = name.len() / 3 + 1;
    let nearest = known.map(|k| (distance(k, name), k)).filter(|(wrong, _)| *wrong <= most);
    let nearest = nearest.min_by_key(|(wrong, _)| *wrong);
    let meant = nearest.map_or(String::new(), |(_, nearest)| format!("; did you mean {nearest}?"));
    let also = if meant.is_empty() { ";" } else { "" };
    KernelError(format!("there is no rule \"{part}\"{meant}{also} `schedlab features` lists them all"))
}

/// A span like `3ms` in a unit; `None` if it is no span, or no whole number of units.
fn in_units(value: &str, unit: &str) -> Option<String> {
    let ns = |unit: &str| match unit {
        "ns" => Some(1u64),
        "us" => Some(1_000),
        "ms" => Some(1_000_000),
        "s" => Some(1_000_000_000),
        _ => None,
    };
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let span = digits.parse::<u64>().ok()?.checked_mul(ns(&value[digits.len()..])?)?;
    let size = ns(unit)?;
    span.is_multiple_of(size).then(|| (span / size).to_string())
}

/// Edit distance, ignoring case.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<u8> = b.bytes().map(|c| c.to_ascii_lowercase()).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.bytes().map(|c| c.to_ascii_lowercase()).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &cb) in b.iter().enumerate() {
            let substitute = diagonal + usize::from(ca != cb);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_switch_what_they_name() {
        let kernel = Kernel::parse("v6.1+NO_SIS_UTIL+RECENT_USED_CPU=off+preempt=auto/none+hz=100").unwrap();
        assert!(!kernel.has(Feature::SisUtil));
        assert_eq!(kernel.rules.recent_used_cpu, crate::RecentUsedCpu::Off);
        assert_eq!(kernel.preempt, Preempt { build: PreemptBuild::Auto, model: PreemptModel::None });
        assert_eq!(kernel.tunables.hz, 100);
        for preempt in ["none", "static/none", "auto/none", "static/full", "lazy"] {
            assert_eq!(Kernel::parse(&format!("v6.10+preempt={preempt}")).unwrap().preempt.name(), preempt);
        }
        let builds = ["none", "static/none", "auto/none", "static/full"].map(|preempt| {
            Kernel::parse(&format!("v6.10+preempt={preempt}")).unwrap().preempt.is_preemption()
        });
        assert_eq!(builds, [true, false, true, true], "CONFIG_PREEMPTION");
        assert_eq!(Kernel::parse("6.12").unwrap().tunables.base_slice_ns, 700_000);
    }

    #[test]
    fn a_release_without_rules_of_its_own_has_those_of_the_nearest() {
        for (name, stands_in) in [
            ("v9.9", Some("v7.3")),
            ("7.2.13+hz=100", Some("v7.2")),
            ("v6.5", Some("v6.3")),
            ("v6.6", Some("v6.10")),
            ("6.9.12", Some("v6.10")),
            ("v6.12+hz=100", None),
            ("v5.10", None),
        ] {
            let kernel = Kernel::parse(name).unwrap();
            assert_eq!(kernel.stand_in(), stands_in, "{name}");
            assert_eq!(kernel.name, name);
            let same = Kernel::parse(stands_in.unwrap_or(name)).unwrap();
            assert_eq!((kernel.rules, kernel.features), (same.rules, same.features), "{name}");
        }
        for name in ["v4.4", "61", "v6.12-rc1", "v6..1", "v1.2.3.4"] {
            assert!(Kernel::parse(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_switch_turns_what_is_not_so_already() {
        for (kernel, part, turns) in [
            ("v6.1", "NO_SIS_UTIL", true),
            ("v6.1+NO_SIS_UTIL", "NO_SIS_UTIL", false),
            ("v6.1", "NO_SIS_PROP", false),
            ("v5.5", "SIS_KTHREAD_STACK", true),
            ("v6.1", "SIS_KTHREAD_STACK", false),
            ("v6.1", "RUN_TO_PARITY", false),
            ("v6.12+NO_RUN_TO_PARITY", "RUN_TO_PARITY", true),
            ("v6.12", "preempt=lazy", true),
            ("v7.2", "preempt=lazy", false),
            ("v7.2", "NO_SUCH_THING", false),
        ] {
            assert_eq!(Kernel::parse(kernel).unwrap().is_turned_by(part), turns, "{kernel}+{part}");
        }
    }

    #[test]
    fn every_number_may_be_what_it_is_and_what_its_range_ends_with() {
        for row in Tunables::ALL {
            let values = (0..PRESETS.len()).map(|preset| (row.get)(&Kernel::preset(preset).tunables));
            for value in values.chain([*row.range.start(), *row.range.end()]) {
                let kernel = Kernel::parse(&format!("v6.12+{}={value}", row.name)).unwrap();
                assert_eq!((row.get)(&kernel.tunables), value, "{}", row.name);
            }
        }
    }

    #[test]
    fn what_is_not_known_is_named_with_a_way_out() {
        for (text, message) in [
            (
                "v6.x",
                "there is no kernel \"v6.x\"; known are v4.13, v5.5, v5.10, v5.18, v6.1, v6.3, v6.10, v6.12, v6.17, v6.18, v6.19, \
                 v7.1, v7.2, v7.3",
            ),
            (
                "v6.1+NO_SIS_UTL",
                "there is no rule \"NO_SIS_UTL\"; did you mean SIS_UTIL? `schedlab features` lists them all",
            ),
            ("v6.1+FOO", "there is no rule \"FOO\"; `schedlab features` lists them all"),
            ("v6.1+POLICY=rr", "POLICY is one of cfs, eevdf, not \"rr\""),
            ("v6.1+hz=fast", "hz is a whole number, not \"fast\""),
            ("v6.1+hz=", "hz is a whole number, not \"\""),
            ("v6.1+hz=0", "hz is 1 to 10000, not 0"),
            (
                "v6.12+base_slice_ns=9_223_372_036_854_775_807",
                "base_slice_ns is 12500 to 1000000000, not 9223372036854775807",
            ),
            (
                "v6.12+rt_period_us=99999999999999999999",
                "rt_period_us is 1 to 2147483647, not 99999999999999999999",
            ),
            ("v4.13+sched_time_avg_ms=0", "sched_time_avg_ms is 1 to 2147483647, not 0"),
            ("v6.12+SIS_UTIL=1", "SIS_UTIL is on or off: write SIS_UTIL or NO_SIS_UTIL, not \"SIS_UTIL=1\""),
            (
                "v6.12+NO_SIS_UTIL=on",
                "SIS_UTIL is on or off: write SIS_UTIL or NO_SIS_UTIL, not \"NO_SIS_UTIL=on\"",
            ),
            ("v6.12+POLICY", "POLICY has forms: write POLICY= and one of cfs, eevdf"),
            ("v6.12+hz", "hz is a number: write hz= and 1 to 10000"),
            (
                "v6.1+preempt=auto/lazy",
                "preempt is one of none, voluntary, full, lazy, static/none, static/voluntary, static/full, auto/none, auto/voluntary, auto/full, not \"auto/lazy\"",
            ),
        ] {
            assert_eq!(Kernel::parse(text).unwrap_err().to_string(), message);
        }
    }
}
