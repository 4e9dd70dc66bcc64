//! The text that `perf script` prints for a recording of tracepoints.
//!
//! ```text
//!     make   812 [000]  1319.581649:       sched:sched_waking: comm=cc1 pid=813 prio=120 target_cpu=003
//! ```
//!
//! Nanoseconds (`--ns`), processes (`-F pid,tid,...`) and periods are read if they are printed. Call chains below an
//! event are skipped.
//!
//! The running task is the thread in front (`tid`). If only its process is printed there (`-F comm,pid,...`), or its
//! number in perf's own namespace, a switch shows another number; from then on the running task is taken from the
//! switches.

use std::collections::BTreeMap;
use std::io::BufRead;

use schedlab_topology::CpuId;
use schedlab_units::{Pid, Time};

use super::lines::{Line, Lines, Next, excerpt};
use super::{Error, Lost, Place, Record, head};
use crate::args;
use crate::comm::Comm;
use crate::event::{Event, Kind};

/// Reads the text of `perf script` line by line.
pub struct Reader<R> {
    lines: Lines<R>,
    time: Option<Time>,
    tasks: Tasks,
    /// What comes before the next line.
    next: Option<Record>,
}

/// The running tasks.
#[derive(Debug, Default)]
struct Tasks {
    /// The task that each CPU switched to last.
    current: BTreeMap<CpuId, (Pid, Comm)>,
    /// A switch has shown that the numbers in front are not those of threads.
    other_numbers: bool,
}

impl<R: BufRead> Reader<R> {
    /// A reader at the beginning of the text.
    pub fn new(input: R) -> Reader<R> {
        Reader { lines: Lines::new(input), time: None, tasks: Tasks::default(), next: None }
    }

    /// The place of the last record.
    pub fn place(&self) -> Place {
        self.lines.place()
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Record, Error>;

    fn next(&mut self) -> Option<Result<Record, Error>> {
        if let Some(record) = self.next.take() {
            return Some(Ok(record));
        }
        loop {
            let made = match self.lines.next() {
                Next::Line(line) => {
                    let trusted = !self.tasks.other_numbers;
                    let made = made(&line, &mut self.time, &mut self.tasks);
                    if trusted && self.tasks.other_numbers {
                        self.next = line.gap(OTHER_NUMBERS.to_owned()).ok();
                    }
                    made
                }
                Next::Other(record) => Some(record),
                Next::End => return None,
            };
            if made.is_some() {
                return made;
            }
        }
    }
}

/// The record made from a line, if any.
fn made(line: &Line<'_>, time: &mut Option<Time>, tasks: &mut Tasks) -> Option<Result<Record, Error>> {
    let gap = |why: &str| Some(line.gap(format!("{why}: {}", excerpt(line.bytes))));
    if let Some(told) = of_perf(line.bytes) {
        return lost(told).map(|count| Ok(Record::Lost(Lost { cpu: None, count, after: *time })));
    }
    let Some((head, rest)) = head::parse_perf(line.bytes) else {
        let empty = line.bytes.is_empty() || line.bytes.starts_with(b"#");
        let frame = line.bytes.starts_with(b"\t");
        return if empty || frame { None } else { gap("no task, CPU, time and event in front") };
    };
    let Some((name, args)) = event(rest) else { return gap("no event behind the time") };
    let Some(kind) = args::parse(name, args) else {
        return gap("the fields of the event are in no form that is known");
    };
    *time = Some(head.time);
    match tasks.with_task(head.before(kind)) {
        Some(event) => Some(Ok(Record::Event(event))),
        None => gap("nothing shows which task ran"),
    }
}

const OTHER_NUMBERS: &str = "the numbers in front are of processes or of a namespace, and differ from those in switches: \
                             from here on the running task is taken from the switches; perf script -F comm,tid,cpu,time,event,trace \
                             prints threads";

impl Tasks {
    /// Sets the task of an event if perf did not know it, which happens while a task dies, or has another pid for
    /// it: it is the task to which the CPU last switched. `None` if there was no switch.
    fn with_task(&mut self, mut event: Event) -> Option<Event> {
        let unknown = event.pid.0 < 0;
        match &event.kind {
            Kind::SchedSwitch { prev_pid, prev_comm, .. } => {
                self.other_numbers |= !unknown && event.pid != *prev_pid;
                if event.pid != *prev_pid {
                    (event.pid, event.comm) = (*prev_pid, *prev_comm);
                }
            }
            Kind::SchedStatRuntime { pid, comm, .. } if unknown => (event.pid, event.comm) = (*pid, *comm),
            _ if unknown => (event.pid, event.comm) = *self.current.get(&event.cpu)?,
            _ if self.other_numbers => {
                if let Some(task) = self.current.get(&event.cpu) {
                    (event.pid, event.comm) = *task;
                }
            }
            _ => {}
        }
        if let Kind::SchedSwitch { next_pid, next_comm, .. } = &event.kind {
            self.current.insert(event.cpu, (*next_pid, *next_comm));
        }
        Some(event)
    }
}

/// The event's name without its system, and its fields. A period may come first.
fn event(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = match head::number(rest) {
        Some((_, behind)) if behind.starts_with(b" ") => behind.trim_ascii_start(),
        _ => rest,
    };
    let end = rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len());
    let (name, args) = rest.split_at(end);
    let name = name.strip_suffix(b":")?;
    let name = name.rsplit(|&byte| byte == b':').next()?;
    Some((name, args.trim_ascii_start()))
}

/// The text of one of perf's own records (`--show-task-events` and the like), from its kind on.
fn of_perf(line: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(line).ok()?;
    text.split_once("PERF_RECORD_").map(|(_, told)| told)
}

/// The number of lost events in a record; the inner `None` if it contains none.
fn lost(told: &str) -> Option<Option<u64>> {
    let told = told.strip_prefix("LOST")?;
    Some(told.split_ascii_whitespace().find_map(|word| word.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn lines_of_all_forms_are_read() {
        let text = "\
            # a comment\n\
            \x20           perf  9938 [000]  1319.581649: sched:sched_stat_runtime: comm=perf pid=9938 runtime=49604 [ns]\n\
            \x20           perf  9938/9939  [000]  1319.581671584:       sched:sched_switch: perf:9939 [120] D ==> migration/0:18 [0]\n\
            \tffffffff81 schedule ([kernel.kallsyms])\n\
            \n\
            \x20        swapper     0 [001]  1319.59:          1 sched:sched_waking: comm=a pid=18 prio=0 target_cpu=000\n\
            \x20        swapper     0 [001]  1319.60: PERF_RECORD_LOST lost 7\n\
            \x20        swapper     0 [001]  1319.60: PERF_RECORD_FORK(1:1):(0:0)\n\
            \x20        swapper     0 [001]  1319.61: cycles: 12 x\n\
            \x20        swapper     0 [001]  1319.61: sched:sched_waking: comm=a\n\
            \x20            :-1  9938/-1 [000]  1319.62: sched:sched_waking: comm=a pid=18 prio=0 target_cpu=000\n\
            \x20            :-1  9938/-1 [005]  1319.62: sched:sched_waking: comm=a pid=18 prio=0 target_cpu=000\n\
            nonsense\n";
        let mut shown = String::new();
        for record in Reader::new(text.as_bytes()) {
            shown += &match record.unwrap() {
                Record::Event(event) => {
                    let mut fields = Vec::new();
                    args::print(&event, &mut fields);
                    let fields = String::from_utf8(fields).unwrap();
                    format!("{}-{} {} {}: {fields}\n", event.comm, event.pid, event.time, event.kind.name())
                }
                Record::Lost(lost) => format!("{lost}\n"),
                Record::Gap(gap) => format!("{gap}\n"),
            };
        }
        expect![[r#"
            perf-9938 1319.581649000 sched_stat_runtime: comm=perf pid=9938 runtime=49604 [ns]
            perf-9939 1319.581671584 sched_switch: prev_comm=perf prev_pid=9939 prev_prio=120 prev_state=D ==> next_comm=migration/0 next_pid=18 next_prio=0
            <idle>-0 1319.590000000 sched_waking: comm=a pid=18 prio=0 target_cpu=000
            7 events lost after 1319.590000000
            <idle>-0 1319.610000000 cycles: 12 x
            line 10: the fields of the event are in no form that is known:          swapper     0 [001]  1319.61: sched:sched_waking: comm=a
            migration/0-18 1319.620000000 sched_waking: comm=a pid=18 prio=0 target_cpu=000
            line 12: nothing shows which task ran:              :-1  9938/-1 [005]  1319.62: sched:sched_waking: comm=a pid=18 prio=0 target_cpu=000
            line 13: no task, CPU, time and event in front: nonsense
        "#]]
        .assert_eq(&shown);
    }

    #[test]
    fn where_processes_stand_in_front_switches_show_what_runs() {
        let text = "\
            make  9 [000]  1.1: sched:sched_waking: comm=a pid=18 prio=0 target_cpu=000\n\
            make  9 [000]  1.2: sched:sched_switch: make:10 [120] S ==> make:11 [120]\n\
            make  9 [000]  1.3: sched:sched_waking: comm=a pid=18 prio=0 target_cpu=000\n\
            make  9 [001]  1.4: sched:sched_waking: comm=a pid=18 prio=0 target_cpu=000\n";
        let mut told = 0;
        let mut who = Vec::new();
        for record in Reader::new(text.as_bytes()) {
            match record.unwrap() {
                Record::Event(event) => who.push(event.pid.0),
                Record::Gap(gap) => told += u32::from(gap.why == OTHER_NUMBERS),
                Record::Lost(lost) => panic!("{lost}"),
            }
        }
        assert_eq!((who, told), (vec![9, 10, 11, 9], 1));
    }
}
