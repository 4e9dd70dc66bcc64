//! A recording with its facts, as texts and bytes, audited.

use std::io::{Cursor, Read, Seek};

use crate::audit::{
    Audit, AuditReport, GroupFiles, Groups, Options, Policies, apply_features, apply_tunables,
    hints_of_command, hints_of_tasks,
};
use crate::error::Error;
use crate::sched::Kernel;
use crate::topology::Topology;
use crate::trace::read::{feed, open};

/// What was recorded beside a trace, as the files in `traces/` have it.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordedFacts<'a> {
    /// Name of the machine.
    pub machine: &'a str,
    /// The kernel, e.g. `v6.12`.
    pub kernel: &'a str,
    /// `topology.txt`.
    pub topology: &'a str,
    /// `sched_features.txt`.
    pub features: &'a str,
    /// `debug_sched.txt`.
    pub debug_sched: &'a str,
    /// `cmd.txt`, the command that was recorded.
    pub command: &'a str,
    /// `tasks.txt`, policies and CPUs of tasks.
    pub tasks: &'a str,
    /// In which groups tasks were.
    pub groups: GroupFiles<'a>,
    /// Disagreements that are told of each kind and rule, with what would have led to the kernel's choice.
    pub stories: usize,
}

/// Judges every decision of a recording.
///
/// # Errors
/// Facts that make no machine or kernel, or a trace that cannot be read.
pub fn audit_recording(
    trace: impl Read + Seek + 'static,
    facts: &RecordedFacts<'_>,
) -> Result<AuditReport, Error> {
    let topology =
        Topology::from_sysfs_lines(facts.machine, facts.topology).map_err(|e| Error::new(e.to_string()))?;
    let mut kernel = Kernel::parse(facts.kernel).map_err(|e| Error::new(e.to_string()))?;
    apply_features(&mut kernel, facts.features);
    apply_tunables(&mut kernel, facts.debug_sched, topology.online().weight());
    let mut affinity = hints_of_command(facts.command, topology.nr_cpus());
    affinity.extend(hints_of_tasks(facts.tasks, topology.nr_cpus()));
    let policies = Policies::of_tasks(facts.tasks);
    let (groups, hidden) = Groups::read(&facts.groups).unwrap_or_default();
    let stories = facts.stories;
    let groups_hidden = hidden.is_some();
    let options = Options { affinity, policies, groups, groups_hidden, stories, ..Options::default() };
    let mut audit = Audit::new(&topology, &kernel, options);
    let spool = || Ok(Cursor::<Vec<u8>>::default());
    let reader = open(trace, spool).map_err(|e| Error::new(e.to_string()))?;
    feed(reader, &mut audit).map_err(|e| Error::new(e.to_string()))?;
    Ok(audit.finish().0)
}
