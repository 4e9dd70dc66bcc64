//! The recorded programs, by their command lines: `wl_hogs 12 1000 0 0 5 -5`.

use schedlab_topology::CpuId;
use schedlab_trace::Comm;
use schedlab_units::Duration;
use schedlab_workload::models::{Barrier, DeviceKind, ForkStorm, Hogs, Io, Model, Pipes, Sleepers, Spinners};
use schedlab_workload::{CpuList, Workload};

use schedlab::Error;

/// An instruction takes a nanosecond, and a turn of the programs' loop three instructions.
const TURN: Duration = Duration(3);

/// What a new process does before its work: it faults on pages shared with its parent and sets its name. If no other
/// CPU has a turn, a child of `fork` reaches its `sched_process_exit` 149 us after its first switch in 7.2, where that
/// event precedes freeing the memory; 60 us of that are its work and 2 us the entry.
const CHILD_BEGINS: Duration = Duration::micros(87);

/// How long the host takes to read its disk while the guest's CPUs execute. Calibrated on one row, `io-disk` of 7.2 on
/// 1x1x8, whose sleeps are the median of the twelve rows; its spread is an estimate. With 40 to 80 us, 0.2 to 0.8 of
/// the reads sleep.
const HOST_READ: Duration = Duration::micros(50);
const HOST_READ_SD: Duration = Duration::micros(30);

/// A program with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    name: String,
    args: Vec<String>,
}

impl Program {
    /// Reads a command line.
    ///
    /// # Errors
    /// The program is not one of the recorded ones.
    pub fn parse(cmd: &str) -> Result<Program, Error> {
        let mut words = cmd.split_whitespace().map(str::to_string);
        let name = words.next().unwrap_or_default();
        let program = Program { name, args: words.collect() };
        if program.prefix().is_empty() {
            return Err(Error::new(format!("\"{}\" is not a program that has a model", program.name)));
        }
        Ok(program)
    }

    /// Prefix of the names of its tasks.
    pub fn prefix(&self) -> &'static str {
        match self.name.as_str() {
            "wl_stream" => "st-",
            "wl_pipes" => "pp-",
            "wl_sleepers" => "sl-",
            "wl_barrier" => "br-",
            "wl_fork" => "fk-",
            "wl_hogs" => "hg-",
            "wl_io" => "io-",
            _ => "",
        }
    }

    /// Whether a task with this name belongs to the program: `wl_NAME` from the exec on, then the names it sets.
    pub fn own(&self) -> impl Fn(Comm) -> bool + Copy + use<> {
        let prefix = self.prefix().as_bytes();
        move |comm| comm.as_bytes().starts_with(prefix) || comm.as_bytes().starts_with(b"wl_")
    }

    /// The nice values of hogs; empty for other programs.
    pub fn nice(&self) -> Vec<i8> {
        match self.name.as_str() {
            "wl_hogs" => self.args.iter().skip(2).filter_map(|arg| arg.parse().ok()).collect(),
            _ => Vec::new(),
        }
    }

    /// How long hogs compute in wall time; `None` for other programs.
    pub fn wall(&self) -> Option<Duration> {
        let ms = self.number(1).ok().filter(|_| self.name == "wl_hogs")?;
        Some(Duration::millis(ms.into()))
    }

    fn number(&self, at: usize) -> Result<u32, Error> {
        let arg = self.args.get(at).and_then(|arg| arg.parse().ok());
        arg.ok_or_else(|| Error::new(format!("{}: argument {} is not a number", self.name, at + 1)))
    }

    /// The same as a model that starts on a CPU.
    ///
    /// # Errors
    /// Arguments are missing or wrong.
    pub fn model(&self, nr_cpus: usize, start_cpu: Option<CpuId>) -> Result<Workload, Error> {
        let n = |at| self.number(at);
        let work = |at| n(at).map(|turns| TURN * u64::from(turns));
        let millis = |at| n(at).map(|ms| Duration::millis(u64::from(ms)));
        let model = match self.name.as_str() {
            "wl_stream" => {
                let cpus = match self.args.first().map(String::as_str) {
                    None | Some("-") => None,
                    Some(list) => Some(list.parse::<CpuList>().map_err(Error::new)?),
                };
                let block = TURN * 1000;
                let wall = millis(2)?;
                Model::Spinners(Spinners {
                    threads: n(1)?,
                    wall,
                    block,
                    cpus,
                    start_cpu,
                    ..Spinners::default()
                })
            }
            "wl_pipes" => Model::Pipes(Pipes {
                groups: n(0)?,
                pairs: n(1)?,
                loops: n(2)?,
                start_cpu,
                ..Pipes::default()
            }),
            "wl_sleepers" => Model::Sleepers(Sleepers {
                messengers: n(0)?,
                workers: n(1)?,
                wall: millis(2)?,
                work: work(3)?,
                pause: Duration::micros(u64::from(n(4)?)),
                start_cpu,
                ..Sleepers::default()
            }),
            "wl_barrier" => Model::Barrier(Barrier {
                threads: match n(0)? {
                    0 => nr_cpus as u32,
                    threads => threads,
                },
                rounds: n(1)?,
                work: work(2)?,
                spins: n(3)?,
                // A pause ends the CPU's turn in the emulator; the other CPUs' turns pass meanwhile.
                pause: Duration::micros(10),
                start_cpu,
                ..Barrier::default()
            }),
            "wl_fork" => Model::ForkStorm(ForkStorm {
                width: n(0)?,
                rounds: n(1)?,
                work: work(2)?,
                overhead: CHILD_BEGINS,
                start_cpu,
            }),
            "wl_hogs" => Model::Hogs(Hogs {
                hogs: n(0)?,
                wall: millis(1)?,
                block: TURN * 2000,
                nice: self.nice(),
                overhead: CHILD_BEGINS,
                start_cpu,
                ..Hogs::default()
            }),
            _ => {
                let disk = !self.args.first().is_some_and(|device| device.contains("loop"));
                Model::Io(Io {
                    device: if disk { DeviceKind::Disk } else { DeviceKind::Loop },
                    readers: n(1)?,
                    reads: n(2)?,
                    work: work(3)?,
                    start_cpu,
                    service: HOST_READ,
                    service_sd: HOST_READ_SD,
                    ..Io::default()
                })
            }
        };
        model.workload().map_err(|e| Error::new(e.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_become_models() {
        for (cmd, tasks) in [
            ("wl_hogs 12 1000 0 0 5 -5", 13),
            ("wl_stream 0,4,8,12 4 200", 5),
            ("wl_stream - 8 200", 9),
            ("wl_barrier 0 200 20000 200", 16),
            ("wl_fork 32 30 20000", 33),
            ("wl_pipes 4 5 600", 41),
            ("wl_sleepers 2 8 400 20000 500", 19),
            ("wl_io /dev/loop0 4 400 5000", 5),
        ] {
            let workload = Program::parse(cmd).unwrap().model(16, None).unwrap();
            assert_eq!(workload.tasks.len(), tasks, "{cmd}");
        }
        assert_eq!(Program::parse("wl_hogs 12 1000 0 0 5 -5").unwrap().nice(), [0, 0, 5, -5]);
        let message = Program::parse("sleep 5").unwrap_err().to_string();
        assert!(message.contains("not a program that has a model"), "{message}");
        let message = Program::parse("wl_fork many").unwrap().model(4, None).unwrap_err().to_string();
        assert!(message.contains("argument 1"), "{message}");
    }
}
