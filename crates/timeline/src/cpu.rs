//! What one CPU does: stretches of tasks, the length of its queue, and its interrupt time.

use schedlab_trace::TaskState;

use crate::columns::Columns;

/// How a task left its CPU, as stored in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Left {
    /// It runs on in the next chunk, or at the end of the trace.
    RunsOn = 0,
    /// It called schedule() and stays runnable.
    Runnable = 1,
    /// It was preempted.
    Preempted = 2,
    /// It sleeps.
    Sleeps = 3,
    /// It sleeps and no signal wakes it.
    Blocked = 4,
    /// It is gone.
    Dead = 5,
    /// Another state, or not known.
    Other = 6,
}

impl Left {
    pub fn of(state: TaskState) -> Left {
        match state {
            state if state.is_dead() => Left::Dead,
            state if state.is_preempted() => Left::Preempted,
            state if state.is_runnable() => Left::Runnable,
            state if state.is_uninterruptible() => Left::Blocked,
            TaskState::INTERRUPTIBLE => Left::Sleeps,
            _ => Left::Other,
        }
    }
}

/// A CPU, and its columns of the chunk that is being filled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cpu {
    /// The running task and its start; `None` before the first event.
    pub current: Option<(u32, u64)>,
    /// Only an event has shown it so far, no switch.
    pub is_assumed: bool,
    /// Time of its last event.
    pub heard: u64,
    /// The outermost active interrupt handler: its start and its name.
    handler: Option<(u64, u32)>,
    /// Nesting depth of handlers.
    depth: u32,
    queue: u32,
    pub busy_ns: u64,
    pub stolen_ns: u64,
    pub switches: u64,
    starts: Vec<u64>,
    tasks: Vec<u32>,
    left: Vec<u8>,
    queue_times: Vec<u64>,
    queue_lengths: Vec<u32>,
    stolen_from: Vec<u64>,
    stolen_for: Vec<u64>,
    stolen_by: Vec<u32>,
}

impl Cpu {
    /// Ends a stretch, and returns it if there was one: the task and its start.
    pub fn end_stretch(&mut self, left: Left) -> Option<(u32, u64)> {
        let (task, since) = self.current.take()?;
        // A stretch of no length counts as well: trace clocks are coarse, and it separates two switches.
        self.starts.push(since);
        self.tasks.push(task);
        self.left.push(left as u8);
        Some((task, since))
    }

    /// The queue has another length.
    pub fn queued(&mut self, now: u64, length: u32) {
        self.queue = length;
        if self.queue_times.last() == Some(&now) {
            self.queue_lengths.pop();
            self.queue_times.pop();
        }
        self.queue_times.push(now);
        self.queue_lengths.push(length);
    }

    /// A handler begins.
    pub fn handler_begins(&mut self, now: u64, name: impl FnOnce() -> u32) {
        if self.depth == 0 {
            self.handler = Some((now, name()));
        }
        self.depth += 1;
    }

    /// A handler ends.
    pub fn handler_ends(&mut self, now: u64) {
        self.depth = self.depth.saturating_sub(1);
        if self.depth == 0
            && let Some((since, name)) = self.handler.take()
        {
            self.stole(since, now, name);
        }
    }

    fn stole(&mut self, since: u64, now: u64, name: u32) {
        self.stolen_ns += now - since;
        self.stolen_from.push(since);
        self.stolen_for.push(now - since);
        self.stolen_by.push(name);
    }

    /// Cuts stretches in progress at the end of a chunk.
    pub fn cut(&mut self, now: u64) {
        if let Some((since, name)) = self.handler
            && since < now
        {
            self.stole(since, now, name);
            self.handler = Some((now, name));
        }
    }

    pub fn nr_stretches(&self) -> usize {
        self.starts.len()
    }

    /// The stretches of the chunk: task, start and end.
    pub fn stretches(&self, to: u64) -> impl Iterator<Item = (u32, u64, u64)> {
        let ends = self.starts.iter().copied().skip(1).chain(std::iter::once(to));
        self.tasks.iter().zip(&self.starts).zip(ends).map(|((&task, &start), end)| (task, start, end))
    }

    /// When its queue had another length in the chunk.
    pub fn queue_changes(&self) -> impl Iterator<Item = (u64, u32)> {
        self.queue_times.iter().copied().zip(self.queue_lengths.iter().copied())
    }
}

/// Appends the columns of all CPUs, and empties them for the next chunk, which begins at `to`.
pub(crate) fn encode(cpus: &mut [Cpu], from: u64, to: u64, columns: &mut Columns) {
    columns.put(cpus.len() as u64);
    let each = |columns: &mut Columns, column: &dyn Fn(&Cpu, &mut Columns)| {
        cpus.iter().for_each(|cpu| column(cpu, columns));
    };
    each(columns, &|cpu, columns| columns.put(cpu.starts.len() as u64));
    each(columns, &|cpu, columns| columns.put_times(&cpu.starts, from));
    each(columns, &|cpu, columns| columns.put_all(&cpu.tasks));
    each(columns, &|cpu, columns| columns.put_all(&cpu.left));
    each(columns, &|cpu, columns| columns.put(cpu.queue_times.len() as u64));
    each(columns, &|cpu, columns| columns.put_times(&cpu.queue_times, from));
    each(columns, &|cpu, columns| columns.put_all(&cpu.queue_lengths));
    each(columns, &|cpu, columns| columns.put(cpu.stolen_from.len() as u64));
    each(columns, &|cpu, columns| columns.put_times(&cpu.stolen_from, from));
    each(columns, &|cpu, columns| columns.put_all(&cpu.stolen_for));
    each(columns, &|cpu, columns| columns.put_all(&cpu.stolen_by));
    for cpu in cpus {
        for times in [&mut cpu.starts, &mut cpu.stolen_from, &mut cpu.stolen_for, &mut cpu.queue_times] {
            times.clear();
        }
        for numbers in [&mut cpu.tasks, &mut cpu.stolen_by, &mut cpu.queue_lengths] {
            numbers.clear();
        }
        cpu.left.clear();
        if cpu.queue > 0 {
            cpu.queue_times.push(to);
            cpu.queue_lengths.push(cpu.queue);
        }
    }
}
