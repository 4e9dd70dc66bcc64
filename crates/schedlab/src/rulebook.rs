//! What can be switched, and what each switch means: one list for people.
//!
//! Features, rules with forms and tunables live in three tables of the `sched` crate; users want one list,
//! with the value in each kernel beside the sentence.

use schedlab_sched::{Feature, Kernel, PREEMPT_FORMS, Reason, Rules, Tunables};
use serde::Serialize;

/// One thing that a kernel string can set.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// `feature`, `rule`, `tunable` or `preemption`.
    pub kind: &'static str,
    /// Name in kernel strings.
    pub name: &'static str,
    /// One sentence.
    pub sentence: &'static str,
    /// Kernel function, version or document.
    pub source: &'static str,
    /// What it can be set to; empty for numbers.
    pub forms: Vec<&'static str>,
    /// Value in each kernel that has a name, in their order.
    pub presets: Vec<String>,
    /// Value in the kernel asked about.
    pub value: String,
}

/// Every [`Entry`] for one kernel.
#[derive(Clone, Debug, Serialize)]
pub struct Rulebook {
    /// The kernel asked about.
    pub kernel: String,
    /// Names of the presets and the kernels between them, oldest first.
    pub presets: Vec<&'static str>,
    /// Preemption model of the kernel asked about.
    pub preempt: String,
    /// Features, then rules, then tunables, then the model of preemption.
    pub entries: Vec<Entry>,
}

impl Rulebook {
    /// The list for a kernel.
    pub fn of(kernel: &Kernel) -> Rulebook {
        let names = Kernel::names();
        let parsed = |name: &&str| Kernel::parse(name).expect("it has a name");
        let presets: Vec<Kernel> = names.iter().map(parsed).collect();
        let on_off = |k: &Kernel, f| if k.has(f) { "on" } else { "off" }.to_string();
        let features = Feature::TABLE.iter().map(|row| Entry {
            kind: "feature",
            name: row.name,
            sentence: row.sentence,
            source: row.source,
            forms: vec!["on", "off"],
            presets: presets.iter().map(|k| on_off(k, row.feature)).collect(),
            value: on_off(kernel, row.feature),
        });
        let rules = Rules::TABLE.iter().map(|row| Entry {
            kind: "rule",
            name: row.name,
            sentence: row.sentence,
            source: row.source,
            forms: row.forms.to_vec(),
            presets: presets.iter().map(|k| (row.get)(&k.rules).to_string()).collect(),
            value: (row.get)(&kernel.rules).to_string(),
        });
        let tunables = Tunables::ALL.iter().map(|row| Entry {
            kind: "tunable",
            name: row.name,
            sentence: row.sentence,
            source: "",
            forms: Vec::new(),
            presets: presets.iter().map(|k| (row.get)(&k.tunables).to_string()).collect(),
            value: (row.get)(&kernel.tunables).to_string(),
        });
        let preemption = Entry {
            kind: "preemption",
            name: "preempt",
            sentence: "Where a running task can be preempted: none at exits to user mode and explicit points, voluntary \
                       also where the kernel might sleep, full wherever nothing forbids it, lazy as full but fair tasks \
                       wait for the exit or the next tick; static/ is built so, auto/ the series PREEMPT_AUTO, else it is \
                       chosen at boot.",
            source: "kernel/Kconfig.preempt, PREEMPT_DYNAMIC",
            forms: PREEMPT_FORMS.to_vec(),
            presets: presets.iter().map(|k| k.preempt.name()).collect(),
            value: kernel.preempt.name(),
        };
        Rulebook {
            kernel: kernel.name.clone(),
            presets: names,
            preempt: kernel.preempt.name(),
            entries: features.chain(rules).chain(tunables).chain([preemption]).collect(),
        }
    }

    /// The entry of a name, in any case, with or without `NO_`.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        let bare = name.strip_prefix("NO_").unwrap_or(name);
        self.entries.iter().find(|e| e.name.eq_ignore_ascii_case(bare))
    }
}

/// The reason of a name as traces print it, in any case.
pub fn reason(name: &str) -> Option<Reason> {
    Reason::ALL.iter().copied().find(|r| r.name().eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_over_all_three_tables() {
        let book = Rulebook::of(&Kernel::preset(0));
        let mut names: Vec<&str> = book.entries.iter().map(|e| e.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), book.entries.len());
    }

    #[test]
    fn an_entry_shows_the_kernel_beside_the_others() {
        let kernel = Kernel::parse("v6.1+NO_SIS_UTIL").unwrap();
        let book = Rulebook::of(&kernel);
        let entry = book.entry("no_sis_util").or(book.entry("NO_SIS_UTIL")).unwrap();
        assert_eq!((entry.value.as_str(), entry.presets.len()), ("off", book.presets.len()));
        let of = |name: &str| {
            let at = book.presets.iter().position(|preset| *preset == name).unwrap();
            book.entry("FORK_STATS_ALLOWED").unwrap().presets[at].as_str()
        };
        // It was in stable releases of older kernels before it was merged in 6.19.
        assert_eq!(["v6.12", "v6.18", "v6.19"].map(of), ["on", "off", "on"]);
    }
}
