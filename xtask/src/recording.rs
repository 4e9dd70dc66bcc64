//! A recording in `traces/KERNEL/MACHINE/LOAD` with the files beside it: audited, and learned for a replay.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::Cursor;
use std::path::{Path, PathBuf};

use schedlab::audit::{AuditReport, Contest, Options, Reading};
use schedlab::audited::audit_recording;
use schedlab::learned::Known;
use schedlab::recording::{FactTexts, Facts};
use schedlab::replay::{Listener, Recorded};
use schedlab::sched::Kernel;
use schedlab::topology::Topology;
use schedlab::trace::read::{feed, open};

use crate::source::read;

/// A recording.
pub struct Recording {
    folder: PathBuf,
    trace: PathBuf,
    texts: FactTexts,
}

/// The programs learned from a recording, and its machine.
pub struct Learned {
    pub recorded: Recorded,
    pub topology: Topology,
    pub kernel: Kernel,
}

impl Recording {
    /// The recording in a folder.
    ///
    /// # Errors
    /// There is none, or facts that cannot be read.
    pub fn of(folder: &Path) -> Result<Recording, String> {
        let trace = trace_in(folder).ok_or_else(|| format!("{}: no trace", folder.display()))?;
        let texts = FactTexts::beside(folder, |path| fs::read_to_string(path)).map_err(|e| e.to_string())?;
        Ok(Recording { folder: folder.to_path_buf(), trace, texts })
    }

    /// Uses the switches and tunables of its machine as the active ones, instead of its own.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn with_switches_of_machine(&mut self) -> Result<(), String> {
        for name in ["sched_features.txt", "debug_sched.txt"] {
            self.texts.put(name, read(&self.folder.join("../facts").join(name))?);
        }
        Ok(())
    }

    /// Judges all decisions.
    ///
    /// # Errors
    /// A file that is missing or cannot be read.
    pub fn audit(&self) -> Result<AuditReport, String> {
        for name in ["sched_features.txt", "debug_sched.txt", "sysctl.txt"] {
            self.texts.need(name).map_err(|e| self.wrong(&e))?;
        }
        let facts = self.facts()?;
        let trace = File::open(&self.trace).map_err(|e| self.wrong(&e))?;
        let options = Options { stories: usize::MAX, ..Options::of(&facts) };
        audit_recording(trace, &facts, options).map_err(|e| self.wrong(&e))
    }

    /// The rules of its own kernel.
    ///
    /// # Errors
    /// A file that is missing or cannot be read.
    pub fn kernel(&self) -> Result<Kernel, String> {
        Ok(self.facts()?.kernel)
    }

    /// Judges all decisions without a reading, with the rules that `as_rules` derives from those of its own
    /// kernel.
    ///
    /// # Errors
    /// A file that is missing or cannot be read, or an error of `as_rules`.
    pub fn audit_as(
        &self,
        without: Option<Reading>,
        as_rules: impl Fn(Kernel) -> Result<Kernel, String>,
    ) -> Result<AuditReport, String> {
        let mut facts = self.facts()?;
        facts.kernel = as_rules(facts.kernel).map_err(|e| self.wrong(&e))?;
        let trace = File::open(&self.trace).map_err(|e| self.wrong(&e))?;
        let options = Options { stories: 0, without, ..Options::of(&facts) };
        audit_recording(trace, &facts, options).map_err(|e| self.wrong(&e))
    }

    /// The results with the rules of its own kernel, then with those of each of these presets, with the same
    /// tunables and preemption model; and the number of CPUs.
    ///
    /// # Errors
    /// A file that is missing or cannot be read.
    pub fn contest(&self, others: &[&str]) -> Result<(Contest, usize), String> {
        let mut facts = self.facts()?;
        let own = facts.kernel.clone();
        let mut verdicts = Vec::new();
        for name in std::iter::once(None).chain(others.iter().map(Some)) {
            if let Some(name) = name {
                let kernel = Kernel::parse(name).map_err(|e| self.wrong(&e))?;
                facts.kernel = Kernel { tunables: own.tunables.clone(), preempt: own.preempt, ..kernel };
            }
            let trace = File::open(&self.trace).map_err(|e| self.wrong(&e))?;
            let options = Options { keep_verdicts: true, stories: 0, ..Options::of(&facts) };
            verdicts.push(audit_recording(trace, &facts, options).map_err(|e| self.wrong(&e))?.verdicts);
        }
        Ok((Contest::between(&verdicts), facts.topology.nr_cpus()))
    }

    /// Learns what its tasks did.
    ///
    /// # Errors
    /// A file that is missing or cannot be read.
    pub fn learn(&self) -> Result<Learned, String> {
        let Facts { topology, kernel, affinity, sched_ext, groups, .. } = self.facts()?;
        let bytes = fs::read(&self.trace).map_err(|e| self.wrong(&e))?;
        let spool = || -> std::io::Result<Cursor<Vec<u8>>> { Ok(Cursor::default()) };
        let reader = open(Cursor::new(bytes), spool).map_err(|e| self.wrong(&e))?;
        let known = Known::of(&self.texts, groups).map_err(|e| self.wrong(&e))?;
        let mut listener = Listener::knowing(known);
        feed(reader, &mut listener).map_err(|e| self.wrong(&e))?;
        let mut recorded = listener.finish(&self.trace.display().to_string()).map_err(|e| e.to_string())?;
        recorded.sched_ext = sched_ext;
        recorded.affinity = affinity;
        Ok(Learned { recorded, topology, kernel })
    }

    fn facts(&self) -> Result<Facts, String> {
        Facts::of_trace(&self.folder, &self.texts).map_err(|e| self.wrong(&e))
    }

    fn wrong(&self, error: &dyn Display) -> String {
        format!("{}: {error}", self.trace.display())
    }
}

/// The trace in a folder, if there is one.
pub fn trace_in(folder: &Path) -> Option<PathBuf> {
    let names = ["trace.txt.gz", "trace.dat.gz", "trace.dat"];
    names.map(|name| folder.join(name)).into_iter().find(|path| path.is_file())
}
