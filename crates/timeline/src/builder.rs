//! Follows a trace and cuts it into chunks.

use schedlab_topology::{CpuId, Topology};
use schedlab_trace::read::Lost;
use schedlab_trace::write::Remark;
use schedlab_trace::{About, Event, Kind, QueueLengths, Sink, State, Unknown};
use schedlab_units::Pid;

use crate::chunk::{Chunk, Class};
use crate::columns::Columns;
use crate::cpu::{self, Cpu, Left};
use crate::decision::Decisions;
use crate::head::{ChunkHead, Cpus, Head};
use crate::names::Names;
use crate::overview::Overview;
use crate::tasks::{IDLE, Tasks, UNKNOWN};
use crate::wakes::Wakes;

/// Approximate number of events per chunk.
const EVENTS: u64 = 1 << 17;

/// Bins of the middle zoom level for one CPU.
const SUMMARY_BINS: usize = 256;

/// Number of stretches per CPU from which a chunk gets a middle zoom level.
const SUMMARY_FROM: usize = 4 * SUMMARY_BINS;

/// A sink that converts a trace to columns. `give` receives each chunk when it is complete.
pub struct Builder<F> {
    title: String,
    topology: Option<Topology>,
    give: F,
    decisions_wanted: bool,
    chunk_events: u64,
    start: Option<u64>,
    now: u64,
    events: u64,
    in_chunk: u64,
    from: u64,
    lost_events: u64,
    losses: u64,
    tasks: Tasks,
    names: Names,
    cpus: Vec<Cpu>,
    queues: QueueLengths,
    overview: Overview,
    wakes: Wakes,
    /// Placements and balancing, preemptions, picks.
    decisions: [Decisions; 3],
    migrations: Migrations,
    marks: Marks,
    heads: Vec<ChunkHead>,
}

/// Columns of migrations.
#[derive(Default)]
struct Migrations {
    times: Vec<u64>,
    tasks: Vec<u32>,
    from: Vec<u16>,
    to: Vec<u16>,
}

/// Columns of numbers that a workload reported.
#[derive(Default)]
struct Marks {
    times: Vec<u64>,
    tasks: Vec<u32>,
    labels: Vec<u32>,
    values: Vec<i64>,
}

impl<F: FnMut(Chunk)> Builder<F> {
    /// A builder of a trace with a title, made on a machine if that is known.
    pub fn new(title: &str, topology: Option<Topology>, give: F) -> Builder<F> {
        let nr_cpus = topology.as_ref().map_or(0, Topology::nr_cpus);
        Builder {
            title: title.to_owned(),
            topology,
            give,
            decisions_wanted: true,
            chunk_events: EVENTS,
            start: None,
            now: 0,
            events: 0,
            in_chunk: 0,
            from: 0,
            lost_events: 0,
            losses: 0,
            tasks: Tasks::new(),
            names: Names::default(),
            cpus: vec![Cpu::default(); nr_cpus],
            queues: QueueLengths::default(),
            overview: Overview::growing(),
            wakes: Wakes::default(),
            decisions: Default::default(),
            migrations: Migrations::default(),
            marks: Marks::default(),
            heads: Vec::new(),
        }
    }

    /// Leaves decisions out.
    pub fn without_decisions(self) -> Builder<F> {
        Builder { decisions_wanted: false, ..self }
    }

    /// Cuts chunks of this many events.
    pub fn chunks_of(self, events: u64) -> Builder<F> {
        Builder { chunk_events: events.max(1), ..self }
    }

    /// Adds a remark about the trace beside its decisions.
    pub fn remark(&mut self, remark: &Remark<'_>) {
        self.decisions[0].remark(remark, self.now, &mut self.tasks, &mut self.names);
    }

    /// Ends the trace.
    pub fn finish(mut self) -> Head {
        // The last instant belongs to the trace.
        self.now += 1;
        self.end_chunk();
        let mut cpus = Cpus::new(self.topology.as_ref(), self.cpus.len());
        for cpu in &self.cpus {
            cpus.busy_ns.push(cpu.busy_ns);
            cpus.stolen_ns.push(cpu.stolen_ns);
            cpus.switches.push(cpu.switches);
        }
        let (bins, bin_ns, overview) = self.overview.finish(self.cpus.len(), self.now);
        Head {
            version: 1,
            title: self.title,
            start_ns: self.start.unwrap_or(0).to_string(),
            duration: self.now,
            events: self.events,
            lost_events: self.lost_events,
            losses: self.losses,
            cpus,
            tasks: self.tasks.into_columns(),
            names: self.names.into_words(),
            chunks: self.heads,
            bins,
            bin_ns,
            overview,
        }
    }

    fn cpu(&mut self, cpu: CpuId) -> &mut Cpu {
        let index = cpu.index();
        if self.cpus.len() <= index {
            self.cpus.resize(index + 1, Cpu::default());
        }
        &mut self.cpus[index]
    }

    /// Ends the stretch of a CPU and begins that of another task.
    fn switch(&mut self, cpu: CpuId, now: u64, left: Left, next: Option<u32>) {
        let state = self.cpu(cpu);
        let ended = state.end_stretch(left);
        state.current = next.map(|task| (task, now));
        if let Some((task, since)) = ended {
            let ran = now - since;
            if task != IDLE {
                state.busy_ns += ran;
            }
            self.tasks.get(task).run_ns += ran;
            self.overview.ran(cpu.index(), task, since, now);
        }
    }

    fn sched_switch(&mut self, event: &Event, now: u64) {
        let Kind::SchedSwitch { prev_pid, prev_state, next_pid, .. } = event.kind else { return };
        let (prev, next) = (self.tasks.number(prev_pid, now), self.tasks.number(next_pid, now));
        let heard = self.cpu(event.cpu).heard;
        let state = self.cpu(event.cpu);
        let is_assumed = std::mem::replace(&mut state.is_assumed, false);
        match state.current {
            Some((_, since)) if is_assumed => state.current = Some((prev, since)),
            None => state.current = Some((prev, now)),
            Some((task, since)) if task != prev => {
                let heard = heard.max(since);
                self.switch(event.cpu, heard, Left::Other, Some(UNKNOWN));
                self.switch(event.cpu, now, Left::Other, Some(prev));
            }
            Some(_) => {}
        }
        self.switch(event.cpu, now, Left::of(prev_state), Some(next));
        self.cpu(event.cpu).switches += 1;
        self.tasks.get(prev).switches += 1;
        self.tasks.get(prev).awake = prev_state.is_runnable();
        self.tasks.get(next).awake = true;
        if prev_state.is_dead() && prev > UNKNOWN {
            self.tasks.get(prev).dead = true;
            self.wakes.dead(prev);
        }
        self.wakes.runs(next, event.cpu.0, now, &mut self.tasks);
    }

    fn other(&mut self, event: &Event, now: u64) {
        match &event.kind {
            Kind::SchedMigrateTask { pid, orig_cpu, dest_cpu, .. } => {
                let task = self.tasks.number(*pid, now);
                self.tasks.get(task).migrations += 1;
                self.migrations.times.push(now);
                self.migrations.tasks.push(task);
                self.migrations.from.push(orig_cpu.0);
                self.migrations.to.push(dest_cpu.0);
                self.cpu(*dest_cpu);
            }
            Kind::Mark { label, value } => {
                let task = self.tasks.number(event.pid, now);
                self.mark(now, task, label.as_str(), *value);
            }
            Kind::State(state) => {
                let task = match &state.about {
                    About::Task(_, _, pid) => Some(*pid),
                    _ => None,
                };
                let of = task.map_or(state.subject(), |_| String::new());
                state
                    .values
                    .iter()
                    .for_each(|(name, value)| self.state(now, task, &of, state.point, name, *value));
            }
            Kind::Unknown(unknown) if State::NAMES.contains(&unknown.name()) => self.state_read(unknown, now),
            Kind::IrqHandlerEntry { name, .. } => self.handler(event.cpu, now, name),
            Kind::SoftirqEntry { vec } => self.handler(event.cpu, now, vec.name()),
            Kind::IrqHandlerExit { .. } | Kind::SoftirqExit { .. } => {
                self.cpu(event.cpu).handler_ends(now);
            }
            Kind::Placement(_) | Kind::Balance(_) => self.decide(0, event, now),
            Kind::Preemption(_) => self.decide(1, event, now),
            Kind::Pick(pick) if pick.pid != Pid::IDLE => self.decide(2, event, now),
            _ => {}
        }
    }

    fn mark(&mut self, now: u64, task: u32, label: &str, value: i64) {
        self.marks.times.push(now);
        self.marks.tasks.push(task);
        self.marks.labels.push(self.names.number(label));
        self.marks.values.push(value);
    }

    /// Keeps a value of the scheduler's state as a mark: a task's value as its own, any other as the idle task's, with
    /// the subject before its name.
    fn state(&mut self, now: u64, task: Option<Pid>, of: &str, point: &str, name: &str, value: i64) {
        match task {
            Some(pid) => {
                let task = self.tasks.number(pid, now);
                self.mark(now, task, &format!("{point} {name}"), value);
            }
            None => self.mark(now, IDLE, &format!("{of}: {point} {name}"), value),
        }
    }

    /// The same of a trace from a file, whose readers keep these points as text.
    fn state_read(&mut self, unknown: &Unknown, now: u64) {
        const ABOUT: [&str; 5] = ["cpu", "path", "domain", "comm", "pid"];
        let task = unknown.int("pid").and_then(|pid| i32::try_from(pid).ok()).map(Pid);
        let place = unknown.field("path").or(unknown.field("domain"));
        let of = match (unknown.field("cpu"), place) {
            (Some(cpu), Some(place)) => format!("CPU {cpu} {place}"),
            (Some(cpu), None) => format!("CPU {cpu}"),
            _ => "machine".to_owned(),
        };
        for (name, _) in unknown.fields().filter(|(name, _)| !ABOUT.contains(name)) {
            if let Some(value) = unknown.int(name) {
                self.state(now, task, &of, unknown.name(), name, value);
            }
        }
    }

    fn handler(&mut self, cpu: CpuId, now: u64, name: &str) {
        self.cpu(cpu);
        let names = &mut self.names;
        self.cpus[cpu.index()].handler_begins(now, || names.number(name));
    }

    fn decide(&mut self, class: usize, event: &Event, now: u64) {
        self.decisions[class].push(event, now, &mut self.tasks, &mut self.names);
    }

    /// Passes on what was collected since the last chunk.
    fn end_chunk(&mut self) {
        let (from, to) = (self.from, self.now);
        for index in 0..self.cpus.len() {
            let cpu = CpuId(index as u16);
            let running = self.cpus[index].current.map(|(task, _)| task);
            self.switch(cpu, to, Left::RunsOn, running);
            self.cpus[index].cut(to);
        }
        let stretches: usize = self.cpus.iter().map(Cpu::nr_stretches).sum();
        let decisions: usize = self.decisions.iter().map(Decisions::len).sum();
        let mut columns = Columns::default();
        let summary = match stretches >= SUMMARY_FROM * self.cpus.len().max(1) {
            true => self.summary(from, to),
            false => Vec::new(),
        };
        cpu::encode(&mut self.cpus, from, to, &mut columns);
        let Migrations { times, tasks, from: sources, to: targets } = std::mem::take(&mut self.migrations);
        columns.put(times.len() as u64);
        columns.put_times(&times, from);
        columns.put_all(&tasks);
        columns.put_all(&sources);
        columns.put_all(&targets);
        let Marks { times, tasks, labels, values } = std::mem::take(&mut self.marks);
        columns.put(times.len() as u64);
        columns.put_times(&times, from);
        columns.put_all(&tasks);
        columns.put_all(&labels);
        values.iter().for_each(|&value| columns.put_signed(value));
        let [placements, preemptions, picks] = &mut self.decisions;
        let (placements, candidates) = placements.encode(from);
        let chunk = Chunk {
            from,
            to,
            // In the order of the classes.
            sections: [
                summary,
                columns.into_bytes(),
                self.wakes.encode(from),
                placements,
                candidates,
                preemptions.encode(from).0,
                picks.encode(from).0,
            ],
        };
        debug_assert_eq!(Class::ALL.len(), chunk.sections.len());
        self.heads.push(ChunkHead { from, to, stretches: stretches as u64, decisions: decisions as u64 });
        (self.give)(chunk);
        self.from = to;
        self.in_chunk = 0;
    }

    /// The middle zoom level: the number of bins, their width, and what an overview has.
    fn summary(&self, from: u64, to: u64) -> Vec<u8> {
        let mut overview = Overview::of_span(from, to, SUMMARY_BINS);
        for (index, cpu) in self.cpus.iter().enumerate() {
            cpu.stretches(to).for_each(|(task, from, to)| overview.ran(index, task, from, to));
            cpu.queue_changes().for_each(|(time, length)| overview.queued(index, time, length));
        }
        let (bins, bin_ns, cells) = overview.finish(self.cpus.len(), to);
        let mut columns = Columns::default();
        columns.put(bins as u64);
        columns.put(bin_ns);
        let mut bytes = columns.into_bytes();
        bytes.extend(cells);
        bytes
    }
}

impl<F: FnMut(Chunk)> Sink for Builder<F> {
    fn event(&mut self, event: &Event) {
        let start = *self.start.get_or_insert(event.time.0);
        // If the clock goes back, all events get the same time until it has caught up.
        let now = event.time.0.saturating_sub(start).max(self.now);
        if self.in_chunk >= self.chunk_events && now > self.now {
            self.now = now;
            self.end_chunk();
        }
        self.now = now;
        self.events += 1;
        self.in_chunk += 1;
        if self.cpu(event.cpu).current.is_none() {
            // The task that the first event of a CPU shows ran there before it.
            let task = self.tasks.number(event.shown(), now);
            let from = self.from;
            let state = self.cpu(event.cpu);
            (state.current, state.is_assumed) = (Some((task, from)), true);
        }
        if !event.kind.is_decision() {
            self.tasks.learn(event, now);
            self.wakes.event(event, now, &mut self.tasks);
            let (cpus, overview) = (&mut self.cpus, &mut self.overview);
            self.queues.event(event, |cpu, length| {
                if cpus.len() <= cpu.index() {
                    cpus.resize(cpu.index() + 1, Cpu::default());
                }
                cpus[cpu.index()].queued(now, length);
                overview.queued(cpu.index(), now, length);
            });
        }
        match event.kind {
            Kind::SchedSwitch { .. } => self.sched_switch(event, now),
            _ => self.other(event, now),
        }
        self.cpu(event.cpu).heard = now;
    }

    fn lost(&mut self, lost: &Lost) {
        self.losses += 1;
        self.lost_events = self.lost_events.saturating_add(lost.count.unwrap_or(0));
    }

    fn wants_decisions(&self) -> bool {
        self.decisions_wanted
    }
}

#[cfg(test)]
mod tests {
    use schedlab_trace::read::{Record, ftrace};

    use super::*;
    use crate::columns::Reader;

    const TRACE: &str = "\
        main-1 [000] 1.000000000: sched_waking: comm=work pid=2 prio=120 target_cpu=001\n\
        main-1 [000] 1.000000100: schedlab_placement: pid=2 how=wakeup prev_cpu=1 target=1 cpu=1 remote=0 reason=PREV_IDLE numbers=nr_idle_scan:4 examined=0:BUSY,1\n\
        main-1 [000] 1.000000200: sched_wakeup: comm=work pid=2 prio=120 target_cpu=001\n\
        <idle>-0 [001] 1.000001000: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=work next_pid=2 next_prio=120\n\
        work-2 [001] 1.000005000: sched_switch: prev_comm=work prev_pid=2 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120\n\
        main-1 [000] 1.000009000: sched_switch: prev_comm=main prev_pid=1 prev_prio=120 prev_state=X ==> next_comm=swapper/0 next_pid=0 next_prio=120\n";

    /// The head and the chunks of a text, cut at this many events.
    fn build(text: &str, events: u64) -> (Head, Vec<Chunk>) {
        let mut chunks = Vec::new();
        let mut builder = Builder::new("test", None, |chunk| chunks.push(chunk)).chunks_of(events);
        for record in ftrace::Reader::new(text.as_bytes()) {
            let Ok(Record::Event(event)) = record else { panic!("{record:?}") };
            builder.event(&event);
        }
        let head = builder.finish();
        (head, chunks)
    }

    /// The stretches of a chunk: CPU, task, start and how it left.
    fn stretches(chunk: &Chunk) -> Vec<(usize, u64, u64, u64)> {
        let mut reader = Reader::new(&chunk.sections[Class::Runs as usize]);
        let nr_cpus = reader.get() as usize;
        let counts = reader.take(nr_cpus);
        let mut found = Vec::new();
        for (cpu, &count) in counts.iter().enumerate() {
            let mut time = chunk.from;
            for _ in 0..count {
                time += reader.get();
                found.push((cpu, 0, time, 0));
            }
        }
        found.iter_mut().for_each(|stretch| stretch.1 = reader.get());
        found.iter_mut().for_each(|stretch| stretch.3 = reader.get());
        found
    }

    #[test]
    fn stretches_say_what_ran_from_when_and_how_it_left() {
        let (head, chunks) = build(TRACE, 1000);
        assert_eq!(head.tasks.name, ["idle", "unknown", "main", "work"]);
        let [chunk] = &chunks[..] else { panic!("one chunk") };
        let (main, work) = (2, 3);
        assert_eq!(
            stretches(chunk),
            [
                (0, main, 0, Left::Dead as u64),
                (0, 0, 9000, 0),
                (1, 0, 0, Left::Runnable as u64),
                (1, work, 1000, Left::Sleeps as u64),
                (1, 0, 5000, 0)
            ]
        );
        assert_eq!((head.tasks.run_ns[3], head.tasks.wait_ns_max[3]), (4000, 1000));
        assert_eq!(head.cpus.busy_ns, [9000, 4000]);
    }

    #[test]
    fn state_is_kept_for_its_task_or_for_what_it_is_of() {
        let text = "\
            work-2 [001] 1.000000000: schedlab_se: cpu=1 comm=work pid=2 lag=-5\n\
            work-2 [001] 1.000000100: pelt_cfs: cpu=1 path=/a load=1024\n";
        let (head, chunks) = build(text, 1000);
        let mut reader = Reader::new(&chunks[0].sections[Class::Runs as usize]);
        let words = ["schedlab_se lag", "CPU 1 /a: pelt_cfs load"];
        let labels =
            words.map(|word| head.names.iter().position(|name| name == word).expect("a name") as u64);
        let rest: Vec<u64> = std::iter::from_fn(|| (!reader.is_empty()).then(|| reader.get())).collect();
        // At the end of the section: how many, their times, tasks, names and values. -5 is written as 9, 1024 as 2048.
        assert_eq!(rest[rest.len() - 9..], [2, 0, 100, 2, 0, labels[0], labels[1], 9, 2048]);
    }

    #[test]
    fn a_wakeup_is_kept_with_its_waker_and_latency() {
        let (_, chunks) = build(TRACE, 1000);
        let mut reader = Reader::new(&chunks[0].sections[Class::Wakes as usize]);
        // One of them: when it ran, the latency, waker and its CPU, wakee and its CPU, flags.
        assert_eq!(reader.take(8), [1, 1000, 1000, 2, 0, 3, 1, 0]);
        assert!(reader.is_empty());
    }

    #[test]
    fn a_task_that_is_awake_is_not_woken() {
        let text = "\
            a-1 [000] 1.000000: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=R ==> next_comm=b next_pid=2 next_prio=120\n\
            b-2 [000] 1.000001: sched_waking: comm=a pid=1 prio=120 target_cpu=000\n\
            b-2 [000] 1.000002: sched_switch: prev_comm=b prev_pid=2 prev_prio=120 prev_state=S ==> next_comm=a next_pid=1 next_prio=120\n";
        let (head, chunks) = build(text, 1000);
        assert_eq!(chunks[0].sections[Class::Wakes as usize], [0]);
        assert_eq!(head.tasks.wakeups, [0, 0, 0, 0]);
    }

    #[test]
    fn a_decision_is_kept_with_its_reason_numbers_and_candidates() {
        let (head, chunks) = build(TRACE, 1000);
        let word = |name: &str| head.names.iter().position(|word| word == name).unwrap() as u64;
        let mut reader = Reader::new(&chunks[0].sections[Class::Placements as usize]);
        assert_eq!(reader.take(6), [1, 100, 0, word("wakeup"), word("PREV_IDLE"), 3 + 1]);
        let nr_numbers = reader.get() as usize;
        let names = reader.take(nr_numbers);
        let at = names.iter().position(|&name| name == word("nr_idle_scan")).expect("the number");
        let numbers: Vec<i64> = (0..nr_numbers).map(|_| reader.get_signed()).collect();
        assert_eq!(numbers[at], 4);
        let mut reader = Reader::new(&chunks[0].sections[Class::Candidates as usize]);
        assert_eq!(reader.take(5), [2, 0, 1, word("BUSY") + 1, 0]);
    }

    #[test]
    fn chunks_are_complete_in_themselves_and_cut_no_time_away() {
        let (whole, _) = build(TRACE, 1000);
        let (head, chunks) = build(TRACE, 2);
        assert!(chunks.len() > 2);
        assert!(chunks.windows(2).all(|pair| pair[0].to == pair[1].from));
        assert_eq!(head.tasks.run_ns[2..], whole.tasks.run_ns[2..]);
        assert_eq!(head.overview, whole.overview);
        // CPU 0 has run main all the time.
        for chunk in &chunks {
            assert!(stretches(chunk).iter().any(|&(cpu, _, from, _)| cpu == 0 && from == chunk.from));
        }
    }

    #[test]
    fn the_task_that_ran_where_a_switch_is_missing_is_unknown() {
        let text = "\
            a-1 [000] 1.000000: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b next_pid=2 next_prio=120\n\
            c-3 [000] 1.000005: sched_switch: prev_comm=c prev_pid=3 prev_prio=120 prev_state=S ==> next_comm=a next_pid=1 next_prio=120\n";
        let (_, chunks) = build(text, 1000);
        let tasks: Vec<u64> = stretches(&chunks[0]).iter().map(|stretch| stretch.1).collect();
        assert!(tasks.contains(&u64::from(UNKNOWN)), "{tasks:?}");
    }

    #[test]
    fn a_pid_that_comes_back_is_another_task() {
        let text = "\
            a-1 [000] 1.000000: sched_switch: prev_comm=b prev_pid=2 prev_prio=120 prev_state=X ==> next_comm=a next_pid=1 next_prio=120\n\
            a-1 [000] 1.000001: sched_wakeup_new: comm=c pid=2 prio=120 target_cpu=000\n\
            a-1 [000] 1.000002: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=c next_pid=2 next_prio=120\n";
        let (head, _) = build(text, 1000);
        assert_eq!(head.tasks.name[2..], ["b", "a", "c"]);
        assert_eq!(head.tasks.pid[2..], [2, 1, 2]);
        assert_eq!(head.tasks.parent[4], 3 + 1);
    }
}
