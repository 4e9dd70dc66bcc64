//! The files of a recording in `traces/KERNEL/MACHINE/LOAD`, and its audit.

use std::fs::File;
use std::path::{Path, PathBuf};

use schedlab::audit::{AuditReport, GroupFiles};
use schedlab::audited::{RecordedFacts, audit_recording};

use crate::source::{name, read};

/// A recording, with what lies beside it and what holds of its machine.
pub struct Recording {
    folder: PathBuf,
    /// The switches and numbers that were in force.
    pub features: String,
    pub debug_sched: String,
}

impl Recording {
    /// The recording in a folder.
    ///
    /// # Errors
    /// Facts that cannot be read.
    pub fn of(folder: &Path) -> Result<Recording, String> {
        let mut recording =
            Recording { folder: folder.to_path_buf(), features: String::new(), debug_sched: String::new() };
        recording.features = recording.in_force("sched_features.txt")?;
        recording.debug_sched = recording.in_force("debug_sched.txt")?;
        Ok(recording)
    }

    /// A fact of the recording alone; none if it has no such file.
    fn own(&self, name: &str) -> Result<Option<String>, String> {
        let path = self.folder.join("facts").join(name);
        path.exists().then(|| read(&path)).transpose()
    }

    /// What is known of groups before and after, and of control groups: all of it, or nothing.
    fn groups(&self) -> Result<[String; 4], String> {
        let names = ["groups-before.txt", "groups-after.txt", "cgroups.txt", "cgroups-after.txt"];
        let found = names.map(|name| self.own(name));
        let mut texts: [String; 4] = Default::default();
        if found.iter().all(|found| matches!(found, Ok(None))) {
            return Ok(texts);
        }
        for ((text, found), name) in texts.iter_mut().zip(found).zip(names) {
            let missing = || format!("{}: there is no facts/{name} beside the others", self.folder.display());
            *text = found?.ok_or_else(missing)?;
        }
        Ok(texts)
    }

    /// A fact of all recordings of the machine.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn of_machine(&self, name: &str) -> Result<String, String> {
        read(&self.folder.join("../facts").join(name))
    }

    /// A fact of the machine, unless the recording has its own.
    fn in_force(&self, name: &str) -> Result<String, String> {
        self.own(name)?.map_or_else(|| self.of_machine(name), Ok)
    }

    /// Judges all decisions.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn audit(&self) -> Result<AuditReport, String> {
        let machine = self.folder.parent().ok_or("a recording lies in the folder of its machine")?;
        let kernel = machine.parent().map(name).unwrap_or_default();
        let [before, after, cgroups, cgroups_after] = &self.groups()?;
        let facts = RecordedFacts {
            machine: &name(machine),
            kernel: &format!("v{kernel}"),
            topology: &self.of_machine("topology.txt")?,
            features: &self.features,
            debug_sched: &self.debug_sched,
            command: &read(&self.folder.join("cmd.txt"))?,
            tasks: &self.own("tasks.txt")?.unwrap_or_default(),
            groups: GroupFiles {
                before,
                after,
                cgroups,
                cgroups_after,
                sysctl: &self.of_machine("sysctl.txt")?,
            },
            stories: usize::MAX,
        };
        let path = self.folder.join("trace.txt.gz");
        let trace = File::open(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        audit_recording(trace, &facts).map_err(|e| format!("{}: {e}", path.display()))
    }
}
