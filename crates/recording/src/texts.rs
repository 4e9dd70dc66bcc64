//! The fact files of one recording: where they are found, and what they mean together.
//!
//! Several recordings on one machine share its facts. Those of tasks and groups, and switches that were changed for one
//! recording alone, are beside that recording. So each file is looked for in several places, and the first place that
//! has it counts:
//!
//! ```text
//!   MACHINE/facts/topology.txt ...       of all recordings on it
//!   MACHINE/scx-state.txt
//!   MACHINE/LOAD/trace.dat, cmd.txt      one recording
//!   MACHINE/LOAD/facts/tasks.txt ...     what is its own
//! ```

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use schedlab_sched::{Kernel, KernelError};
use schedlab_topology::{SavedSysfs, Topology, TopologyError};

use super::affinity::AffinityHint;
use super::command::hints_of_command;
use super::groups::{GroupFiles, Groups};
use super::in_force::{apply_config, apply_features, apply_tunables};
use super::policies::Policies;
use super::sched_ext::sched_ext;
use super::tasks::{BadLine, SeenTask, has_groups, hints_of_tasks, seen_tasks};

/// The recorded command; it is beside the trace.
pub const COMMAND: &str = "cmd.txt";

/// The state of sched_ext; it is beside the folder of facts.
pub const SCHED_EXT_STATE: &str = "scx-state.txt";

/// All files that are read.
const NAMES: [&str; 14] = [
    COMMAND,
    SCHED_EXT_STATE,
    "topology.txt",
    "cmdline.txt",
    "config.txt",
    "sched_features.txt",
    "debug_sched.txt",
    "sysctl.txt",
    "sched_ext.txt",
    "tasks.txt",
    "groups-before.txt",
    "groups-after.txt",
    "cgroups.txt",
    "cgroups-after.txt",
];

/// Contents of the fact files of one recording, by name.
#[derive(Clone, Debug, Default)]
pub struct FactTexts(BTreeMap<&'static str, (PathBuf, String)>);

/// What is wrong with the facts of a recording.
#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    /// A file cannot be read.
    #[error("{path}: {error}", path = .0.display(), error = .1)]
    File(PathBuf, io::Error),
    /// A file does not exist.
    #[error("there is no {0} beside the recording; `schedlab record` writes one into facts/")]
    Missing(&'static str),
    /// A line cannot be parsed.
    #[error("{path}:{bad}", path = .0.display(), bad = .1)]
    Line(PathBuf, BadLine),
    /// The kernel is not known.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The topology does not describe a valid machine.
    #[error(transparent)]
    Machine(#[from] TopologyError),
}

impl FactTexts {
    /// Names of the files in a folder of facts.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.into_iter().filter(|name| ![COMMAND, SCHED_EXT_STATE].contains(name)).chain(["uname.txt"])
    }

    /// Reads the files. Each is looked for in several places in turn; `read` returns `None` if there is no file.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn read<E>(
        places: impl Fn(&'static str) -> Vec<PathBuf>,
        mut read: impl FnMut(&Path) -> Result<Option<String>, E>,
    ) -> Result<FactTexts, E> {
        let mut found = BTreeMap::new();
        for name in NAMES {
            for path in places(name) {
                if let Some(text) = read(&path)? {
                    found.insert(name, (path, text));
                    break;
                }
            }
        }
        Ok(FactTexts(found))
    }

    /// Reads the files of the recording in a folder laid out as in `traces/`; `read` is `std::fs::read_to_string`.
    ///
    /// # Errors
    /// A file exists and cannot be read.
    pub fn beside(
        folder: &Path,
        read: impl Fn(&Path) -> io::Result<String>,
    ) -> Result<FactTexts, FactsError> {
        let above = folder.join("..");
        let places = |name| match name {
            COMMAND => vec![folder.join(name)],
            SCHED_EXT_STATE => vec![above.join(name)],
            _ => vec![folder.join("facts").join(name), above.join("facts").join(name)],
        };
        FactTexts::read(places, |path| match read(path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(FactsError::File(path.to_path_buf(), error)),
        })
    }

    /// Content of a file; empty if it does not exist.
    pub fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", |(_, text)| text)
    }

    /// Where a file was found, for messages; its bare name if it was not found.
    fn place<'a>(&'a self, name: &'a str) -> &'a Path {
        self.0.get(name).map_or(Path::new(name), |(path, _)| path)
    }

    /// Replaces the content of a file.
    pub fn put(&mut self, name: &'static str, text: String) {
        self.0.insert(name, (PathBuf::from(name), text));
    }

    /// Content of a file that must exist.
    ///
    /// # Errors
    /// The file does not exist.
    pub fn need(&self, name: &'static str) -> Result<&str, FactsError> {
        self.0.get(name).map(|(_, text)| text.as_str()).ok_or(FactsError::Missing(name))
    }

    /// The machine described by the facts, under this name.
    ///
    /// # Errors
    /// There is no `topology.txt`, or it does not describe a valid machine.
    pub fn topology(&self, name: &str) -> Result<Topology, FactsError> {
        let text = self.need("topology.txt")?;
        let saved = SavedSysfs::from_lines(&self.place("topology.txt").display().to_string(), text)?;
        Ok(Topology::from_sysfs(name, &saved)?)
    }

    /// The tasks that were listed.
    ///
    /// # Errors
    /// The first line that does not describe a task.
    pub fn tasks(&self) -> Result<Vec<SeenTask>, FactsError> {
        let bad = |bad| FactsError::Line(self.place("tasks.txt").to_path_buf(), bad);
        seen_tasks(self.text("tasks.txt")).collect::<Result<_, _>>().map_err(bad)
    }

    /// Applies the recorded settings to a kernel.
    pub fn set(&self, kernel: &mut Kernel, topology: &Topology) {
        apply_config(kernel, self.text("config.txt"), self.text("cmdline.txt"));
        apply_features(kernel, self.text("sched_features.txt"));
        for file in ["debug_sched.txt", "sysctl.txt"] {
            apply_tunables(kernel, self.text(file), topology.online().weight());
        }
    }

    /// The sched_ext scheduler that was active, if any.
    pub fn sched_ext(&self) -> Option<String> {
        sched_ext(self.text("sched_ext.txt"), self.text(SCHED_EXT_STATE))
    }

    /// Masks of tasks from the command and the list of tasks.
    pub fn affinity(&self, nr_cpus: usize) -> Vec<AffinityHint> {
        let mut hints = hints_of_command(self.text(COMMAND), nr_cpus);
        hints.extend(hints_of_tasks(self.text("tasks.txt"), nr_cpus));
        hints
    }

    /// The groups of the tasks, and the reason why they cannot be followed, if they cannot. A recording without a list
    /// of tasks had only its own tasks, all in one group. If a list exists without the tasks' groups, there were
    /// several groups if the list shows them, or if sessions were groups.
    pub fn groups(&self) -> (Groups, Option<GroupsHidden>) {
        let files = GroupFiles {
            before: self.text("groups-before.txt"),
            after: self.text("groups-after.txt"),
            cgroups: self.text("cgroups.txt"),
            cgroups_after: self.text("cgroups-after.txt"),
            sysctl: self.text("sysctl.txt"),
        };
        if let Some((groups, why)) = Groups::read(&files) {
            return (groups, why.map(GroupsHidden::Changed));
        }
        let tasks = self.text("tasks.txt");
        let several = !tasks.is_empty() && (files.sessions_are_groups() || has_groups(tasks));
        (Groups::default(), several.then_some(GroupsHidden::NotListed))
    }

    /// Everything that an audit needs to know about a recording made on this machine under this kernel.
    pub fn facts(&self, topology: Topology, kernel: Kernel) -> Facts {
        let affinity = self.affinity(topology.nr_cpus());
        let policies = Policies::of_tasks(self.text("tasks.txt"));
        let (groups, groups_hidden) = self.groups();
        Facts { topology, kernel, affinity, policies, groups, groups_hidden, sched_ext: self.sched_ext() }
    }
}

/// The facts of one recording.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The machine.
    pub topology: Topology,
    /// The kernel, with the recorded settings.
    pub kernel: Kernel,
    /// Masks of tasks.
    pub affinity: Vec<AffinityHint>,
    /// Policies of tasks, which no event shows.
    pub policies: Policies,
    /// Which groups tasks were in, as far as recorded.
    pub groups: Groups,
    /// Why groups cannot be followed, if they cannot.
    pub groups_hidden: Option<GroupsHidden>,
    /// The sched_ext scheduler that was active, if any.
    pub sched_ext: Option<String>,
}

/// Why groups of tasks cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupsHidden {
    /// Tasks were in groups, and their groups were not recorded.
    NotListed,
    /// Something changed after it was recorded.
    Changed(&'static str),
}

impl Facts {
    /// Reads the facts of a recording in `traces/KERNEL/MACHINE/LOAD`: the folders give the machine and the kernel.
    ///
    /// # Errors
    /// The topology does not describe a valid machine, or no preset has the kernel's rules.
    pub fn of_trace(folder: &Path, texts: &FactTexts) -> Result<Facts, FactsError> {
        let name = |folder: Option<&Path>| {
            folder.and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned()
        };
        let machine = folder.parent();
        let topology = texts.topology(&name(machine))?;
        let mut kernel = Kernel::parse(&format!("v{}", name(machine.and_then(Path::parent))))?;
        texts.set(&mut kernel, &topology);
        let mut facts = texts.facts(topology, kernel);
        // If no groups were listed, all tasks belonged to the session that the machine booted into.
        facts.groups_hidden = facts.groups_hidden.filter(|hidden| *hidden != GroupsHidden::NotListed);
        Ok(facts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_sched::Feature;

    /// Facts of a recording in `6.12/1x1x2/load`, from files with their text.
    fn texts(files: &[(&str, &str)]) -> Result<FactTexts, FactsError> {
        FactTexts::beside(Path::new("6.12/1x1x2/load"), |path| {
            let found = files.iter().find(|(name, _)| Path::new(name) == path);
            found.map(|(_, text)| (*text).to_owned()).ok_or(io::ErrorKind::NotFound.into())
        })
    }

    const TOPOLOGY: (&str, &str) = (
        "6.12/1x1x2/load/../facts/topology.txt",
        "/sys/devices/system/cpu/online 0-1\n/sys/devices/system/cpu/possible 0-1\n",
    );
    const FEATURES: (&str, &str) = ("6.12/1x1x2/load/../facts/sched_features.txt", "NO_SIS_UTIL\n");
    const TASKS: (&str, &str) = ("6.12/1x1x2/load/facts/tasks.txt", "7 7 IDLE 0 0 1 / low\n");

    #[test]
    fn facts_of_a_recording_precede_facts_of_its_machine() {
        let of = |files: &[(&str, &str)]| {
            Facts::of_trace(Path::new("6.12/1x1x2/load"), &texts(files).unwrap()).unwrap()
        };
        let facts = of(&[TOPOLOGY, FEATURES, TASKS]);
        assert!(!facts.kernel.has(Feature::SisUtil));
        assert_eq!((facts.topology.name.as_str(), facts.topology.nr_cpus()), ("1x1x2", 2));
        assert_eq!((facts.affinity.len(), facts.groups_hidden), (1, None));
        let own = of(&[TOPOLOGY, FEATURES, ("6.12/1x1x2/load/facts/sched_features.txt", "SIS_UTIL\n")]);
        assert!(own.kernel.has(Feature::SisUtil));
        let groups = |files: &[(&str, &str)]| texts(files).unwrap().groups().1;
        let sessions =
            ("6.12/1x1x2/load/../facts/sysctl.txt", "/proc/sys/kernel/sched_autogroup_enabled 1\n");
        assert_eq!(groups(&[TOPOLOGY, sessions]), None, "no tasks were listed");
        assert_eq!(groups(&[TOPOLOGY, sessions, TASKS]), Some(GroupsHidden::NotListed));
    }

    #[test]
    fn errors_name_the_place_and_the_way_out() {
        let told =
            |texts: &FactTexts| Facts::of_trace(Path::new("6.12/1x1x2/load"), texts).unwrap_err().to_string();
        assert_eq!(
            told(&texts(&[]).unwrap()),
            "there is no topology.txt beside the recording; `schedlab record` writes one into facts/"
        );
        let damaged = texts(&[(TOPOLOGY.0, "/sys/devices/system/cpu/online 0-1\nhello\n")]).unwrap();
        assert!(
            told(&damaged).starts_with("6.12/1x1x2/load/../facts/topology.txt:2: "),
            "{}",
            told(&damaged)
        );
        let bad = texts(&[TOPOLOGY, ("6.12/1x1x2/load/facts/tasks.txt", "# tid\n7 7 OTHER\n")]).unwrap();
        assert_eq!(
            bad.tasks().unwrap_err().to_string(),
            "6.12/1x1x2/load/facts/tasks.txt:2: nice is missing"
        );
    }
}
