//! What must be known of a recording besides the trace: the machine, the kernel, masks of tasks.

use std::path::{Path, PathBuf};

use schedlab::audit::{
    AffinityHint, GroupFiles, Groups, Policies, apply_config, apply_features, apply_tunables, has_groups,
    hints_of_command, hints_of_tasks, sched_ext,
};
use schedlab::sched::Kernel;
use schedlab::topology::{CpuMask, Topology};

use crate::boot_parameters::unknown_to_the_scheduler;
use crate::count::counted;
use crate::error::Error;
use crate::recorded::Recorded;
use crate::recording::{Recording, is_read_once};
use crate::{fact_lines, files, machine};

/// What the user says of a recording.
pub struct Asked<'a> {
    /// The machine.
    pub machine: Option<&'a str>,
    /// The kernel.
    pub kernel: Option<&'a str>,
    /// The folder of facts.
    pub facts: Option<&'a Path>,
    /// Masks of tasks: `NAME=CPUS`.
    pub affinity: &'a [String],
    /// The option that names the machine, for messages.
    pub machine_option: &'static str,
    /// The option that names the kernel.
    pub kernel_option: &'static str,
    /// The machine to take where neither the user nor the recording says.
    pub machine_instead: Option<&'a str>,
    /// The kernel to take there.
    pub kernel_instead: Option<&'a str>,
}

/// The facts of one recording.
pub struct Facts {
    /// The machine.
    pub topology: Topology,
    /// The kernel with all that was in force.
    pub kernel: Kernel,
    /// Masks of tasks.
    pub affinity: Vec<AffinityHint>,
    /// Policies of tasks that no event tells.
    pub policies: Policies,
    /// In which groups tasks were, as far as it is recorded.
    pub groups: Groups,
    /// Tasks were in groups, and in which is not recorded.
    pub groups_hidden: bool,
    /// The scheduler of sched_ext that made it, if one did.
    pub sched_ext: Option<String>,
}

impl Facts {
    /// What the user says goes before what lies beside the recording.
    pub fn gather(args: &Asked<'_>, recorded: &Recorded) -> Result<Facts, Error> {
        let folder = args.facts.or(recorded.facts.as_deref());
        let topology = match (args.machine, folder) {
            (Some(name), _) => machine::machine(name)?.topology,
            (None, Some(folder)) => recorded_machine(folder, args.machine_option)?,
            (None, None) => match recorded.machine()? {
                Some(topology) => topology,
                None => machine_instead(args, recorded)?,
            },
        };
        if let Some(named) = args.machine {
            tell_other_machine(&topology, named, args.machine_option, args.facts, recorded);
        }
        tell_other_kernel(args.kernel, args.kernel_option, folder, recorded)?;
        if let Some(folder) = folder {
            fact_lines::names()
                .filter_map(|name| place(folder, recorded, name))
                .for_each(|path| fact_lines::tell(&path));
        }
        let asked = match kernel_name(args.kernel, folder, recorded, args.kernel_option)? {
            Some(name) => name,
            None => kernel_instead(args, recorded)?,
        };
        let mut kernel = Kernel::parse(&asked)?;
        if let Some(folder) = folder {
            let command_line = fact(folder, recorded, "cmdline.txt")?;
            apply_config(&mut kernel, &fact(folder, recorded, "config.txt")?, &command_line);
            apply(&mut kernel, folder, recorded, &topology)?;
            // What the user asked for comes last.
            for part in asked.split('+').skip(1) {
                kernel.switch(part.trim())?;
            }
        }
        let sched_ext = folder.map(|folder| scheduler(folder, recorded)).transpose()?.flatten();
        if let Some(folder) = folder {
            tell_other_rules(folder, recorded, sched_ext.as_deref())?;
        }
        let tasks = folder.map(|folder| fact(folder, recorded, "tasks.txt")).transpose()?.unwrap_or_default();
        let affinity = affinity(args, recorded, &tasks, topology.nr_cpus())?;
        let policies = Policies::of_tasks(&tasks);
        let (groups, groups_hidden) = match folder {
            Some(folder) => groups(folder, recorded)?,
            None => (Groups::default(), false),
        };
        Ok(Facts { topology, kernel, affinity, policies, groups, groups_hidden, sched_ext })
    }
}

/// The kernel of a recording with the switches that were on; none if nothing says which it was.
pub fn known_kernel(
    asked: Option<&str>,
    folder: Option<&Path>,
    recorded: &Recorded,
) -> Result<Option<Kernel>, Error> {
    tell_other_kernel(asked, "--kernel", folder, recorded)?;
    let name = kernel_name(asked, folder, recorded, "--kernel")?;
    let mut kernel = name.map(|name| Kernel::parse(&name)).transpose()?;
    if let (Some(kernel), Some(folder), None) = (&mut kernel, folder, asked) {
        place(folder, recorded, "sched_features.txt").iter().for_each(|path| fact_lines::tell(path));
        apply_features(kernel, &fact(folder, recorded, "sched_features.txt")?);
    }
    Ok(kernel)
}

fn recorded_machine(folder: &Path, option: &str) -> Result<Topology, Error> {
    if !folder.join("topology.txt").is_file() {
        return Err(Error::new(format!(
            "{}: there is no topology.txt in it; a folder of facts has one (lines of /sys paths with their \
             content), or name the machine with {option}",
            folder.display()
        )));
    }
    machine::folder(folder)
}

/// The machine of a recording of which nothing says where it was made.
fn machine_instead(args: &Asked<'_>, recorded: &Recorded) -> Result<Topology, Error> {
    let (trace, option) = (recorded.trace.display(), args.machine_option);
    let Some(name) = args.machine_instead else {
        return Err(Error::new(format!(
            "{trace} does not say on which machine it was recorded; name it with {option}, or give the folder of its \
             topology.txt with --facts (`schedlab record` makes one)"
        )));
    };
    eprintln!(
        "schedlab: {trace} does not say on which machine it was recorded: {name} is taken for it; {option} names another"
    );
    Ok(machine::machine(name)?.topology)
}

/// Tells of a machine that the user names and the recording says is another.
pub fn tell_other_machine(
    topology: &Topology,
    named: &str,
    option: &str,
    facts: Option<&Path>,
    recorded: &Recorded,
) {
    // What describes no machine is told where it is needed.
    let said = match facts {
        Some(folder) => machine::folder(folder).ok(),
        None => recorded.machine().ok().flatten(),
    };
    let Some(said) = said.filter(|said| said.nr_cpus() != topology.nr_cpus()) else { return };
    eprintln!(
        "schedlab: {}: it was recorded on {}, as {} says, and {option} {named} has {}: caches and nodes are those of \
         {named}, and not where the recording was made",
        recorded.trace.display(),
        counted(said.nr_cpus() as u64, "CPU"),
        said.name,
        topology.nr_cpus(),
    );
}

/// Tells of a kernel that the user names and the recording says is another.
fn tell_other_kernel(
    asked: Option<&str>,
    option: &str,
    folder: Option<&Path>,
    recorded: &Recorded,
) -> Result<(), Error> {
    let Some(asked) = asked else { return Ok(()) };
    let release = match folder.filter(|folder| folder.join("uname.txt").is_file()) {
        Some(folder) => files::read(&folder.join("uname.txt"))?.split_whitespace().nth(2).map(str::to_owned),
        None if is_read_once(&recorded.trace) => None,
        None => Recording::open(&recorded.trace)?.release().map(str::to_owned),
    };
    let Some(release) = release else { return Ok(()) };
    let named = asked.split('+').next().unwrap_or_default();
    let known = newest_of(&release).map(|(known, _)| known);
    // As it would be taken by itself, or the version that was recorded.
    let agree =
        known.is_none_or(|known| known == named) || Kernel::version(named) == Kernel::version(&release);
    if !agree {
        eprintln!(
            "schedlab: {}: it was recorded on {release}, and {option} {asked} is taken instead: what differs may be what \
             changed between them",
            recorded.trace.display(),
        );
    }
    Ok(())
}

/// The kernel as the user names it, the facts do, or the recording itself; none if none does.
fn kernel_name(
    asked: Option<&str>,
    folder: Option<&Path>,
    recorded: &Recorded,
    option: &str,
) -> Result<Option<String>, Error> {
    match (asked, folder.filter(|folder| folder.join("uname.txt").is_file())) {
        (Some(kernel), _) => Ok(Some(kernel.to_owned())),
        (None, Some(folder)) => recorded_kernel(folder, option).map(Some),
        (None, None) if is_read_once(&recorded.trace) => Ok(None),
        (None, None) => {
            let recording = Recording::open(&recorded.trace)?;
            Ok(recording.release().and_then(|release| kernel_of(release, option)))
        }
    }
}

/// The kernel to take where nothing says which was recorded.
fn kernel_instead(args: &Asked<'_>, recorded: &Recorded) -> Result<String, Error> {
    let (trace, option) = (recorded.trace.display(), args.kernel_option);
    let Some(name) = args.kernel_instead else {
        return Err(Error::new(format!(
            "{trace} does not say which kernel was recorded; name it with {option}, as in {option} v6.12"
        )));
    };
    eprintln!(
        "schedlab: {trace} does not say which kernel was recorded: {name} is taken for it; {option} names another"
    );
    Ok(name.to_owned())
}

/// The kernel of the release in `uname.txt`: the third word of `uname -a`.
fn recorded_kernel(folder: &Path, option: &str) -> Result<String, Error> {
    let path = folder.join("uname.txt");
    let text = files::read(&path)?;
    let release = text.split_whitespace().nth(2).unwrap_or_default();
    kernel_of(release, option).ok_or_else(|| {
        Error::new(format!(
            "{}: \"{release}\" is no release of a kernel; name the kernel with {option}, one of {}",
            path.display(),
            Kernel::names().join(", ")
        ))
    })
}

/// The kernel of a release; where none of its version is known, the newest before it.
fn kernel_of(release: &str, option: &str) -> Option<String> {
    let (known, is_its_own) = newest_of(release)?;
    if !is_its_own {
        eprintln!(
            "schedlab: the rules of {release} are not known: those of {known} are taken, and what changed since differs \
             for that reason; {option} names others, one of {}",
            Kernel::names().join(", ")
        );
    }
    Some(known)
}

/// The newest kernel of a release's version or one before it, and whether it is of that version.
fn newest_of(release: &str) -> Option<(String, bool)> {
    let recorded = Kernel::version(release)?;
    let names = Kernel::names();
    let before = names.iter().rev().find(|name| Kernel::version(name).is_some_and(|of| of <= recorded));
    let known = before.unwrap_or(&names[0]);
    Some(((*known).to_owned(), Kernel::version(known) == Some(recorded)))
}

/// Sets what was in force when the recording was made.
fn apply(kernel: &mut Kernel, folder: &Path, recorded: &Recorded, topology: &Topology) -> Result<(), Error> {
    let text = |name: &str| {
        let text = fact(folder, recorded, name)?;
        if text.is_empty() {
            eprintln!(
                "schedlab: there is no {name} in {}: what a kernel has by default is taken",
                folder.display()
            );
        }
        Ok::<_, Error>(text)
    };
    apply_features(kernel, &text("sched_features.txt")?);
    apply_tunables(kernel, &text("debug_sched.txt")?, topology.online().weight());
    Ok(())
}

/// Tells what may have decided by rules that are not the kernel's.
fn tell_other_rules(folder: &Path, recorded: &Recorded, sched_ext: Option<&str>) -> Result<(), Error> {
    let trace = recorded.trace.display();
    if let Some(name) = sched_ext {
        eprintln!(
            "schedlab: {trace}: a scheduler of sched_ext ({name}) was at work: what differs from these rules may be \
             its choice"
        );
    }
    for word in unknown_to_the_scheduler(&fact(folder, recorded, "cmdline.txt")?) {
        eprintln!(
            "schedlab: {trace}: the kernel was booted with {word}, which none of those known here has: what differs \
             from these rules may be that of a patch"
        );
    }
    Ok(())
}

/// A file of facts; empty where there is none. Where several recordings share the facts of a machine, those of
/// their tasks, and the switches that were turned over for one alone, lie beside each.
/// The folder that the user names goes before both.
pub fn fact(folder: &Path, recorded: &Recorded, name: &str) -> Result<String, Error> {
    place(folder, recorded, name).map_or_else(|| Ok(String::new()), |path| files::read(&path))
}

/// Where a file of facts lies, if there is one.
fn place(folder: &Path, recorded: &Recorded, name: &str) -> Option<PathBuf> {
    let beside = recorded.trace.parent().map(|parent| parent.join("facts"));
    let mut places = [beside.as_deref(), Some(folder)];
    if recorded.facts.as_deref() != Some(folder) {
        places.reverse();
    }
    places.into_iter().flatten().map(|place| place.join(name)).find(|path| path.is_file())
}

/// The scheduler of sched_ext that was at work, if one was.
fn scheduler(folder: &Path, recorded: &Recorded) -> Result<Option<String>, Error> {
    let beside = folder.parent().map(|parent| parent.join("scx-state.txt")).filter(|path| path.is_file());
    let state = beside.map_or_else(|| Ok(String::new()), |path| files::read(&path))?;
    Ok(sched_ext(&fact(folder, recorded, "sched_ext.txt")?, &state))
}

/// The groups of the tasks, and whether something of them is hidden. A recording without a list
/// of tasks had none but its own, which are in one; one with a list but without their groups had
/// several if the list says so, or if sessions were groups.
fn groups(folder: &Path, recorded: &Recorded) -> Result<(Groups, bool), Error> {
    let text = |name: &str| fact(folder, recorded, name);
    let sysctl = text("sysctl.txt")?;
    let read = Groups::read(&GroupFiles {
        before: &text("groups-before.txt")?,
        after: &text("groups-after.txt")?,
        cgroups: &text("cgroups.txt")?,
        cgroups_after: &text("cgroups-after.txt")?,
        sysctl: &sysctl,
    });
    if let Some((groups, hidden)) = read {
        if let Some(why) = hidden {
            eprintln!("schedlab: {}: groups cannot be followed: {why}", folder.display());
        }
        return Ok((groups, hidden.is_some()));
    }
    let tasks = text("tasks.txt")?;
    let autogroup = sysctl.lines().any(|line| line.ends_with("sched_autogroup_enabled 1"));
    Ok((Groups::default(), !tasks.is_empty() && (autogroup || has_groups(&tasks))))
}

/// Masks that the user names, and those that the command beside the trace and the list of tasks tell.
fn affinity(
    args: &Asked<'_>,
    recorded: &Recorded,
    tasks: &str,
    nr_cpus: usize,
) -> Result<Vec<AffinityHint>, Error> {
    let mut hints = Vec::new();
    for hint in args.affinity {
        let (comm, list) = hint.split_once('=').ok_or_else(|| {
            Error::new(format!("--affinity is NAME=CPUS, as in 'st-*=0,4', not \"{hint}\""))
        })?;
        let allowed =
            CpuMask::parse_list(list, nr_cpus).map_err(|e| Error::new(format!("--affinity {hint}: {e}")))?;
        hints.push(AffinityHint { comm: comm.to_owned(), allowed });
    }
    if let Some(path) = &recorded.command {
        hints.extend(hints_of_command(&files::read(path)?, nr_cpus));
    }
    hints.extend(hints_of_tasks(tasks, nr_cpus));
    Ok(hints)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_has_the_rules_of_its_version_or_of_the_newest_before_it() {
        for (release, preset) in [
            ("6.12.95-amd64", Some("v6.12")),
            ("6.1.0-41-amd64", Some("v6.1")),
            ("6.18.44-fc-v669", Some("v6.18")),
            ("6.8.0", Some("v6.3")),
            ("7.0.13+deb13", Some("v6.19")),
            ("7.3.4", Some("v7.2")),
            ("3.10.0-1160.el7", Some("v4.13")),
            ("", None),
            ("unknown", None),
        ] {
            assert_eq!(kernel_of(release, "--kernel").as_deref(), preset, "{release}");
        }
    }
}
