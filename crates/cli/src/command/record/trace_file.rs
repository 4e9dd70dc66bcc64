//! Writes one trace.dat from the content of the buffers, and counts lost events.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use schedlab::trace::Comm;
use schedlab::trace::write::Recorded;
use schedlab::units::Pid;

use super::drain::Spooled;
use super::facts::uname;
use super::host::Host;
use super::tracefs::Instance;
use crate::error::Error;

/// Describes the events of an instance. Function names are stored only if the user selected other events: the usual
/// events contain none, and the names take megabytes.
pub fn describe(
    host: &Host,
    tracefs: &str,
    instance: &Instance<'_>,
    page_size: usize,
    named: bool,
) -> Recorded {
    let bytes = |path: String| host.bytes(&path).unwrap_or_default();
    let mut formats: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    let own =
        host.names(&format!("{tracefs}/events/ftrace")).into_iter().map(|name| format!("ftrace/{name}"));
    for event in own.chain(instance.events.iter().cloned()) {
        let text = bytes(format!("{tracefs}/events/{event}/format"));
        if let Some((system, _)) = event.split_once('/')
            && !text.is_empty()
        {
            formats.entry(system.to_owned()).or_default().push(text);
        }
    }
    Recorded {
        page_size,
        header_page: bytes(format!("{tracefs}/events/header_page")),
        header_event: bytes(format!("{tracefs}/events/header_event")),
        formats,
        kallsyms: if named { bytes("/proc/kallsyms".to_owned()) } else { Vec::new() },
        printk_formats: bytes(format!("{tracefs}/printk_formats")),
        comms: BTreeMap::new(),
        clock: instance.text("trace_clock").unwrap_or_default(),
        uname: uname(host),
    }
}

/// The size of a page of the buffers: the header and the records.
pub fn page_size(host: &Host, tracefs: &str) -> Result<usize, Error> {
    let path = format!("{tracefs}/events/header_page");
    let text = host.text(&path).unwrap_or_default();
    let number = |line: &str, key: &str| -> Option<usize> {
        line.split(';').find_map(|part| part.trim().strip_prefix(key))?.parse().ok()
    };
    let data = text.lines().find(|line| line.contains("char data"));
    data.and_then(|line| Some(number(line, "offset:")? + number(line, "size:")?))
        .filter(|size| size.is_power_of_two() && (512..=1 << 20).contains(size))
        .ok_or_else(|| Error::new(format!("{path} does not say how large a page is")))
}

/// Names of tasks that the kernel had saved.
pub fn saved_comms(host: &Host, tracefs: &str) -> BTreeMap<Pid, Comm> {
    let text = host.text(&format!("{tracefs}/saved_cmdlines")).unwrap_or_default();
    let saved = |line: &str| {
        let (pid, comm) = line.trim_start().split_once(' ')?;
        Some((Pid(pid.parse().ok()?), Comm::from(comm)))
    };
    text.lines().filter_map(saved).collect()
}

/// Appends the pages to their description, and removes their temporary files.
pub fn write(path: &Path, recorded: &Recorded, spooled: &[Spooled]) -> Result<(), Error> {
    let nr_cpus = spooled.iter().map(|pages| pages.cpu + 1).max().unwrap_or(0);
    let mut sizes = vec![0; nr_cpus];
    spooled.iter().for_each(|pages| sizes[pages.cpu] = pages.bytes);
    let mut file = File::create(path).map_err(|error| Error::file(path, &error))?;
    file.write_all(&recorded.head(&sizes)).map_err(|error| Error::file(path, &error))?;
    for pages in spooled {
        let copied = File::open(&pages.path)
            .and_then(|spool| io::copy(&mut spool.take(pages.bytes), &mut file))
            .and_then(|_| std::fs::remove_file(&pages.path));
        copied.map_err(|error| Error::file(&pages.path, &error))?;
    }
    file.flush().map_err(|error| Error::file(path, &error))
}

/// Number of recorded and of lost events, by the kernel's own count.
pub fn counts(instance: &Instance<'_>) -> (u64, u64) {
    let (mut events, mut lost) = (0, 0);
    for cpu in instance.cpus() {
        let stats = instance.text(&format!("per_cpu/cpu{cpu}/stats")).unwrap_or_default();
        for (name, number) in stats.lines().filter_map(|line| line.split_once(": ")) {
            let number: u64 = number.trim().parse().unwrap_or(0);
            match name {
                "read events" | "entries" => events += number,
                "overrun" | "commit overrun" | "dropped events" => lost += number,
                _ => {}
            }
        }
    }
    (events, lost)
}
