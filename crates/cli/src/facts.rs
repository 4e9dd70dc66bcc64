//! What must be known about a recording besides the trace: the machine, the kernel, masks of tasks.

use std::path::{Path, PathBuf};

use schedlab::kernels::nearest;
use schedlab::recording::{
    AffinityHint, COMMAND, FactTexts, Facts, GroupsHidden, SCHED_EXT_STATE, apply_features, formed,
    strange_lines,
};
use schedlab::sched::Kernel;
use schedlab::topology::{CpuMask, Topology};

use crate::boot_parameters::unknown_to_the_scheduler;
use crate::count::counted;
use crate::error::Error;
use crate::recorded::{MACHINE, Recorded};
use crate::scenario::named_kernel;
use crate::{files, machine};

/// What the user says about a recording.
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
    /// The machine to use if neither the user nor the recording names one.
    pub machine_instead: Option<&'a str>,
    /// The kernel to use in that case.
    pub kernel_instead: Option<&'a str>,
}

/// Gathers the facts of one recording, and the files that contain them. The user's options take precedence over the
/// files beside it.
pub fn gather(args: &Asked<'_>, recorded: &Recorded) -> Result<(Facts, FactTexts), Error> {
    let folder = args.facts.or(recorded.facts.as_deref());
    let topology = match (args.machine, args.facts) {
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
        formed().for_each(|name| tell_strange_lines(folder, recorded, name));
    }
    let asked = match kernel_name(args.kernel, folder, recorded, args.kernel_option)? {
        Some(name) => name,
        None => kernel_instead(args, recorded)?,
    };
    let mut kernel = schedlab::kernels::rules(&asked, args.kernel_option)?;
    let texts = texts(folder, recorded)?;
    if let Some(folder) = folder {
        for name in [FEATURES, "debug_sched.txt"] {
            if texts.text(name).is_empty() {
                let folder = folder.display();
                say!("there is no {name} in {folder}: the kernel's defaults are assumed");
            }
        }
        texts.set(&mut kernel, &topology);
        // The user's additions come last.
        for part in asked.split('+').skip(1) {
            kernel.switch(part.trim())?;
        }
    }
    let mut facts = texts.facts(topology, kernel);
    tell_other_rules(recorded, &facts, &texts);
    let mut affinity = affinity_asked(args.affinity, facts.topology.nr_cpus())?;
    affinity.append(&mut facts.affinity);
    facts.affinity = affinity;
    if let (Some(folder), Some(GroupsHidden::Changed(why))) = (folder, facts.groups_hidden) {
        say!("{}: groups cannot be followed: {why}", folder.display());
    }
    Ok((facts, texts))
}

/// The file of the switches.
const FEATURES: &str = "sched_features.txt";

/// The kernel of a recording with the switches that were on; `None` if nothing names it.
pub fn known_kernel(
    asked: Option<&str>,
    folder: Option<&Path>,
    recorded: &Recorded,
) -> Result<Option<Kernel>, Error> {
    tell_other_kernel(asked, "--kernel", folder, recorded)?;
    let name = kernel_name(asked, folder, recorded, "--kernel")?;
    let mut kernel = name.map(|name| schedlab::kernels::rules(&name, "--kernel")).transpose()?;
    if let (Some(kernel), Some(folder), None) = (&mut kernel, folder, asked) {
        tell_strange_lines(folder, recorded, FEATURES);
        let path = places(folder, recorded, FEATURES).into_iter().find(|path| path.is_file());
        apply_features(kernel, &path.map_or_else(|| Ok(String::new()), |path| files::read(&path))?);
    }
    Ok(kernel)
}

fn recorded_machine(folder: &Path, option: &str) -> Result<Topology, Error> {
    if !folder.join(MACHINE).is_file() {
        return Err(without_machine(folder, option));
    }
    machine::folder(folder)
}

fn without_machine(folder: &Path, option: &str) -> Error {
    Error::new(format!(
        "{}: there is no {MACHINE} in it; a folder of facts has one (lines of /sys paths with their content), or name \
         the machine with {option}",
        folder.display()
    ))
}

/// The machine for a recording that does not show where it was made.
fn machine_instead(args: &Asked<'_>, recorded: &Recorded) -> Result<Topology, Error> {
    let (trace, option) = (recorded.trace.display(), args.machine_option);
    let Some(name) = args.machine_instead else {
        if let Some(folder) = &recorded.facts {
            return Err(without_machine(folder, option));
        }
        return Err(Error::new(format!(
            "{trace} does not say on which machine it was recorded; name it with {option}, or give the folder of its \
             {MACHINE} with --facts (`schedlab record` makes one)"
        )));
    };
    say!(
        "{trace} does not say on which machine it was recorded: {name} is assumed; name another with {option}"
    );
    Ok(machine::machine(name)?.topology)
}

/// Warns if the user names a machine that is not the recording's.
pub fn tell_other_machine(
    topology: &Topology,
    named: &str,
    option: &str,
    facts: Option<&Path>,
    recorded: &Recorded,
) {
    // Facts that describe no machine are reported where a machine is needed.
    let said = match facts {
        Some(folder) => machine::folder(folder).ok(),
        None => recorded.machine().ok().flatten(),
    };
    let Some(said) = said.filter(|said| said.nr_cpus() != topology.nr_cpus()) else { return };
    say!(
        "{}: it was recorded on {}, as {} says, and {option} {named} has {}: caches and nodes are those of \
         {named}, and not where the recording was made",
        recorded.trace.display(),
        counted(said.nr_cpus() as u64, "CPU"),
        said.name,
        topology.nr_cpus(),
    );
}

/// Warns if the user names a kernel that is not the recording's.
fn tell_other_kernel(
    asked: Option<&str>,
    option: &str,
    folder: Option<&Path>,
    recorded: &Recorded,
) -> Result<(), Error> {
    let Some(asked) = asked else { return Ok(()) };
    let release = match folder.filter(|folder| folder.join("uname.txt").is_file()) {
        Some(folder) => files::read(&folder.join("uname.txt"))?.split_whitespace().nth(2).map(str::to_owned),
        None => recorded.release()?,
    };
    let Some(release) = release else { return Ok(()) };
    let named = asked.split('+').next().unwrap_or_default();
    let known = nearest_of(&release).map(|(known, _)| known);
    // As it would be chosen by default, or the recorded version.
    let agree =
        known.is_none_or(|known| known == named) || Kernel::version(named) == Kernel::version(&release);
    if !agree {
        say!(
            "{}: it was recorded on {release}, and {option} {asked} is taken instead: what differs may be what \
             changed between them",
            recorded.trace.display(),
        );
    }
    Ok(())
}

/// The kernel as named by the user, the facts, or the recording itself; `None` if none does.
fn kernel_name(
    asked: Option<&str>,
    folder: Option<&Path>,
    recorded: &Recorded,
    option: &str,
) -> Result<Option<String>, Error> {
    match (asked, folder.filter(|folder| folder.join("uname.txt").is_file())) {
        (Some(kernel), _) => Ok(Some(kernel.to_owned())),
        (None, Some(folder)) => recorded_kernel(folder, option).map(Some),
        (None, None) => Ok(recorded.release()?.and_then(|release| kernel_of(&release, option))),
    }
}

/// The kernel to use if nothing names the recorded one.
fn kernel_instead(args: &Asked<'_>, recorded: &Recorded) -> Result<String, Error> {
    let (trace, option) = (recorded.trace.display(), args.kernel_option);
    let Some(name) = args.kernel_instead else {
        return Err(Error::new(format!(
            "{trace} does not say which kernel was recorded; name it with {option}, as in {option} v6.12"
        )));
    };
    // A recording is followed with rules; for a tree these are the rules of its release.
    let release =
        nearest(&named_kernel(name)?).map(|near| near.split('+').next().unwrap_or_default().to_owned());
    let name = release.as_deref().unwrap_or(name);
    say!("{trace} does not say which kernel was recorded: {name} is assumed; name another with {option}");
    Ok(name.to_owned())
}

/// The kernel of the release in `uname.txt`: the third word of `uname -a`.
fn recorded_kernel(folder: &Path, option: &str) -> Result<String, Error> {
    let path = folder.join("uname.txt");
    let text = files::read(&path)?;
    let release = text.split_whitespace().nth(2).unwrap_or_default();
    kernel_of(release, option).ok_or_else(|| {
        Error::new(format!(
            "{}: \"{release}\" is not a kernel release;  name the kernel with {option}, one of {}",
            path.display(),
            Kernel::names().join(", ")
        ))
    })
}

/// The kernel of a release; the nearest if its version is unknown.
pub fn kernel_of(release: &str, option: &str) -> Option<String> {
    let (known, is_its_own) = nearest_of(release)?;
    if !is_its_own {
        say!(
            "the rules of {release} are not known: those of {known} are taken, and what changed since differs \
             for that reason; {option} names others, one of {}",
            Kernel::names().join(", ")
        );
    }
    Some(known)
}

/// The kernel nearest to a release, and whether it is of that version.
fn nearest_of(release: &str) -> Option<(String, bool)> {
    let recorded = Kernel::version(release)?;
    let known = Kernel::nearest_to(recorded).unwrap_or(Kernel::names()[0]);
    Some((known.to_owned(), Kernel::version(known) == Some(recorded)))
}

/// Warns about anything that may have decided by other rules than the kernel's.
fn tell_other_rules(recorded: &Recorded, facts: &Facts, texts: &FactTexts) {
    let trace = recorded.trace.display();
    if let Some(name) = &facts.sched_ext {
        say!(
            "{trace}: a scheduler of sched_ext ({name}) was at work: what differs from these rules may be \
             its choice"
        );
    }
    for word in unknown_to_the_scheduler(texts.text("cmdline.txt")) {
        say!(
            "{trace}: the kernel was booted with {word}, which none of those known here has: what differs \
             from these rules may be that of a patch"
        );
    }
}

/// Warns about lines that do not belong in a file of facts.
fn tell_strange_lines(folder: &Path, recorded: &Recorded, name: &str) {
    if let Some(path) = places(folder, recorded, name).into_iter().find(|path| path.is_file()) {
        tell_strange_lines_of(&path);
    }
}

/// The same for the file at a path.
pub fn tell_strange_lines_of(path: &Path) {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // A file that cannot be read is reported where it is needed.
    let Ok(text) = files::read(path) else { return };
    if let Some(note) = strange_lines(name, &text) {
        say!("{}:{note}", path.display());
    }
}

/// The files of facts. Without a folder there is at most the command.
fn texts(folder: Option<&Path>, recorded: &Recorded) -> Result<FactTexts, Error> {
    let places = |name| match (name, folder) {
        // Read only if no other machine is named.
        (MACHINE, _) => Vec::new(),
        (COMMAND, _) => recorded.command.iter().cloned().collect(),
        (SCHED_EXT_STATE, Some(folder)) => {
            folder.parent().map(|parent| parent.join(name)).into_iter().collect()
        }
        (_, Some(folder)) => places(folder, recorded, name),
        (_, None) => Vec::new(),
    };
    FactTexts::read(places, |path| path.is_file().then(|| files::read(path)).transpose())
}

/// Where a file of facts may be: facts about a recording's own tasks, and switches flipped only for it, are
/// beside it. The folder that the user names takes precedence over both.
fn places(folder: &Path, recorded: &Recorded, name: &str) -> Vec<PathBuf> {
    let beside = recorded.trace.parent().map(|parent| parent.join("facts"));
    let mut places = [beside.as_deref(), Some(folder)];
    if recorded.facts.as_deref() != Some(folder) {
        places.reverse();
    }
    places.into_iter().flatten().map(|place| place.join(name)).collect()
}

/// Masks that the user names.
fn affinity_asked(asked: &[String], nr_cpus: usize) -> Result<Vec<AffinityHint>, Error> {
    let hint = |hint: &String| {
        let (comm, list) = hint.split_once('=').ok_or_else(|| {
            Error::new(format!("--affinity is NAME=CPUS, as in 'st-*=0,4', not \"{hint}\""))
        })?;
        let allowed =
            CpuMask::parse_list(list, nr_cpus).map_err(|e| Error::new(format!("--affinity {hint}: {e}")))?;
        if comm.is_empty() || allowed.is_empty() {
            return Err(Error::new(format!(
                "--affinity {hint}: a name and a CPU at least are needed, as in 'st-*=0,4'"
            )));
        }
        Ok(AffinityHint { comm: comm.to_owned(), allowed })
    };
    asked.iter().map(hint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_has_the_rules_of_its_version_or_of_the_nearest() {
        for (release, preset) in [
            ("6.12.95-amd64", Some("v6.12")),
            ("6.1.0-41-amd64", Some("v6.1")),
            ("6.18.44-fc-v669", Some("v6.18")),
            ("6.8.0", Some("v6.10")),
            ("7.0.13+deb13", Some("v6.19")),
            ("7.3.4", Some("v7.3")),
            ("3.10.0-1160.el7", Some("v4.13")),
            ("", None),
            ("unknown", None),
        ] {
            assert_eq!(kernel_of(release, "--kernel").as_deref(), preset, "{release}");
        }
    }
}
