//! hackbench, also known as `perf bench sched messaging`.
//!
//! A group has as many senders as receivers, 20 each by default. A receiver owns
//! one pipe or socket pair; a sender writes `loops` messages to each receiver of
//! its group in turn. All report that they are ready, then start at one signal
//! from the main task; the time is taken from that signal to the last exit.
//!
//! As in the program, processes are waited for with `wait()` in any order and
//! threads are joined in the order of their creation.
//!
//! With `sample`, a part of a run represents the whole: after `warmup` from the signal on, when the filling of the
//! pipes is steady, messages are counted for that long, where they are sent and where they are received, and the time
//! is that of all messages at this rate. Each seed is a part of its own, so the spread over seeds is the error of the
//! sample. A sample must end before the run does; few groups are done too soon for that, and are simulated whole
//! (`sampled_from`).
//!
//! Left out: the start signal is one byte in a pipe that all poll; here it is a
//! futex on which all are woken, which differs in the hint that a pipe gives to
//! the scheduler (the waker is about to sleep) at this one moment.

use schedlab_topology::CpuId;
use schedlab_units::Duration;

use crate::param::{choice, params};
use crate::{
    ChannelId, ChannelKind, CpuList, CpuListId, Measure, MeasureRule, Policy, Process, ProgramBuilder,
    ProgramId, SOCKET_BYTES, STEADY, SchedAttr, SpecId, Start, TaskSpec, WorkloadBuilder,
};

choice! {
    /// What messages go through.
    Transport {
        /// A pipe for each receiver.
        Pipe = "pipe",
        /// A pair of unix stream sockets for each receiver.
        Socket = "socket",
    }
}

choice! {
    /// What senders and receivers are.
    Kind {
        /// Processes.
        Process = "process",
        /// Threads of one process.
        Thread = "thread",
    }
}

params! {
    /// hackbench; see the module.
    Hackbench = "hackbench" {
        /// Groups.
        groups: u32 = 10,
        /// Senders, and as many receivers, in a group.
        pairs: u32 = 20,
        /// Messages from each sender to each receiver.
        loops: u32 = 100,
        /// What messages go through.
        transport: Transport = Transport::Socket,
        /// What senders and receivers are.
        kind: Kind = Kind::Process,
        /// Size of a message.
        bytes: u32 = 100,
        /// Work of a task for each message, apart from the system call.
        work: Duration = Duration::nanos(100),
        /// Bytes that a socket holds before its sender sleeps.
        socket_bytes: u32 = SOCKET_BYTES,
        /// Cache footprint of each task, in bytes.
        footprint: u64 = 16 << 10,
        /// Length of the sample that represents the whole run; 0 runs to the end.
        sample: Duration = Duration::ZERO,
        /// Least number of groups for a sample; a run with fewer is simulated to its end.
        sampled_from: u32 = 1,
        /// CPUs on which the tasks start, round robin, as balancing leaves them after a second or two.
        spread: Option<CpuList> = None,
        /// Whether warm-up and sample end on time: the main task is SCHED_FIFO from the signal
        /// on. Otherwise it competes with the others.
        prompt: bool = false,
        /// Warm-up of a sample, which is not measured.
        warmup: Duration = Duration::millis(15),
        /// CPUs that all tasks are restricted to.
        cpus: Option<CpuList> = None,
        /// Time from the start of the run to the start of hackbench, so that the other tasks are running.
        delay: Duration = Duration::ZERO,
        /// Whether the main task starts on a random CPU, as its shell may be anywhere.
        start_anywhere: bool = false,
        /// The CPU on which the main task starts.
        start_cpu: Option<CpuId> = None,
    }
}

impl Hackbench {
    /// Adds the tasks.
    pub fn add(&self, w: &mut WorkloadBuilder) {
        let ready = w.pipe("ready");
        let go = w.word("go", 0);
        let (begin, end) = (w.label("hackbench begin"), w.label("hackbench end"));
        let cpus = self.cpus.clone().map(|cpus| w.cpus(cpus));
        let process = w.process();
        let membership = match self.kind {
            Kind::Process => Process::Own,
            Kind::Thread => Process::Thread(process),
        };
        let samples = self.sample > Duration::ZERO && self.groups >= self.sampled_from;
        let places: Vec<CpuListId> =
            self.spread.iter().flat_map(|list| list.cpus()).map(|&cpu| w.cpus(CpuList::one(cpu))).collect();
        let start = |p: &mut ProgramBuilder, child: usize| {
            if !places.is_empty() {
                p.set_cpus(Some(places[child % places.len()])).set_cpus(cpus);
            }
            p.write(ready, 1).futex_wait(go, 0);
        };
        let (passed, steady) = (w.label("hackbench passed"), w.label(STEADY));
        let mut children: Vec<SpecId> = Vec::new();
        for group in 0..self.groups {
            let channels: Vec<ChannelId> = (0..self.pairs).map(|r| self.channel(w, group, r)).collect();
            for &channel in &channels {
                let receiver = w.program(format!("receiver of {}", channel.0), |p| {
                    start(p, children.len());
                    p.repeat(self.loops, |p| {
                        p.repeat(self.pairs, |p| {
                            p.read(channel, self.bytes).run(self.work);
                        });
                        if samples {
                            p.mark(passed, 1);
                        }
                    });
                });
                let spec = TaskSpec::forked("hackbench", receiver);
                children.push(w.task(TaskSpec {
                    process: membership,
                    footprint: self.footprint,
                    background: samples,
                    ..spec
                }));
            }
            // Tasks with different starting CPUs have a program each.
            let programs = if places.is_empty() { 1 } else { self.pairs as usize };
            let first = children.len();
            let senders: Vec<ProgramId> = (0..programs)
                .map(|number| {
                    w.program(format!("sender of group {group}"), |p| {
                        start(p, first + number);
                        p.repeat(self.loops, |p| {
                            for &channel in &channels {
                                p.run(self.work).write(channel, self.bytes);
                            }
                            if samples {
                                p.mark(passed, 1);
                            }
                        });
                    })
                })
                .collect();
            for number in 0..self.pairs as usize {
                let spec = TaskSpec::forked("hackbench", senders[number % programs]);
                children.push(w.task(TaskSpec {
                    process: membership,
                    footprint: self.footprint,
                    background: samples,
                    ..spec
                }));
            }
        }
        let fifo = SchedAttr { policy: Policy::Fifo { priority: 1 }, ..SchedAttr::default() };
        let prompt = self.prompt.then(|| w.attr(fifo));
        let main = w.program("hackbench", |p| {
            for &child in &children {
                p.fork(child);
            }
            p.repeat(children.len() as u32, |p| _ = p.read(ready, 1));
            if let Some(prompt) = prompt {
                p.set_sched(prompt);
            }
            p.mark(begin, 0).word_set(go, 1).futex_wake(go, u32::MAX);
            if samples {
                p.sleep(self.warmup).mark(steady, 0).sleep(self.sample).exit_group();
            }
            match self.kind {
                Kind::Process => _ = p.wait_children(),
                Kind::Thread => {
                    for &child in &children {
                        p.join(child);
                    }
                }
            }
            p.mark(end, 0);
        });
        let spec = TaskSpec::root("hackbench", main).thread_of(process);
        w.task(TaskSpec {
            start: Start::At(self.delay),
            start_cpu: self.start_cpu,
            start_anywhere: self.start_anywhere,
            cpus,
            ..spec
        });
        let messages = u64::from(self.groups * self.pairs) * u64::from(self.pairs) * u64::from(self.loops);
        w.workload_mut().operations = Some(messages);
        w.measure(Measure {
            name: "time".to_string(),
            unit: "s",
            lower_is_better: true,
            rule: if samples {
                let whole = u64::from(2 * self.groups * self.pairs) * u64::from(self.loops);
                MeasureRule::Whole { label: passed, whole }
            } else {
                MeasureRule::Elapsed { from: begin, to: end }
            },
        });
    }

    fn channel(&self, w: &mut WorkloadBuilder, group: u32, receiver: u32) -> ChannelId {
        let name = format!("{group}.{receiver}");
        match self.transport {
            Transport::Pipe => w.pipe(name),
            Transport::Socket => w.channel(name, ChannelKind::Socket, self.socket_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_groups_are_simulated_whole() {
        let rules = [1, 3, 4].map(|groups| {
            let model =
                Hackbench { groups, sample: Duration::millis(100), sampled_from: 4, ..Hackbench::default() };
            let mut w = WorkloadBuilder::new("test");
            model.add(&mut w);
            matches!(w.finish().unwrap().measures[0].rule, MeasureRule::Whole { .. })
        });
        assert_eq!(rules, [false, false, true]);
    }
}
