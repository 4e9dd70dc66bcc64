//! Runs a workload without a scheduler: every task on a CPU of its own, calls free.
//!
//! Only for tests. It shows that a workload ends, that no task waits for ever, and how long it takes at least.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use schedlab_units::{Duration, Time};

use crate::{
    Cursor, DistId, Expected, Miss, Op, Pc, Process, SpecId, Start, Timer, Trigger, WordId, Workload,
};

/// The result.
#[derive(Debug, Default)]
pub(crate) struct Rehearsal {
    /// When the last foreground task ended, or the limit.
    pub end: Time,
    /// Tasks that existed, by the name of their spec.
    pub tasks: BTreeMap<String, u32>,
    /// Tasks that still waited for others at the end.
    pub stuck: Vec<String>,
    /// Marks in order.
    pub marks: Vec<(Time, String)>,
    /// How often each kind of op was done.
    pub ops: BTreeMap<String, u64>,
}

struct Task {
    spec: SpecId,
    cursor: Cursor,
    parent: Option<usize>,
    origin: Time,
    timers: [Option<Time>; 8],
    alive: bool,
    /// The op whose wait is over, if it needs a second step.
    then: Option<Op>,
    waits: Option<Op>,
    last_child: BTreeMap<SpecId, usize>,
}

#[derive(Default)]
struct State {
    now: Time,
    order: u64,
    ready: BinaryHeap<Reverse<(Time, u64, usize)>>,
    tasks: Vec<Task>,
    words: Vec<i32>,
    holders: Vec<Option<usize>>,
    sems: Vec<u64>,
    arrived: Vec<u32>,
    bytes: Vec<u64>,
    timers: Vec<Option<Time>>,
    zero: Time,
    queue: VecDeque<usize>,
    out: Rehearsal,
}

/// Runs until every foreground task has ended, no task can continue, or the limit.
pub(crate) fn rehearse(w: &Workload, limit: Duration) -> Rehearsal {
    let o = &w.objects;
    let mut s = State {
        words: w.words(),
        holders: vec![None; o.mutexes.len()],
        sems: o.sems.iter().map(|s| s.initial.into()).collect(),
        arrived: vec![0; o.barriers.len()],
        bytes: vec![0; o.channels.len()],
        timers: vec![None; o.timers.len()],
        ..State::default()
    };
    for spec in w.roots() {
        let Start::At(at) = w.task(spec).start else { unreachable!() };
        s.add(w, spec, None, Time::ZERO + at);
    }
    // Posts of a recurring source are always available.
    for source in &o.sources {
        if let (Trigger::Every(_), Some(sem)) = (source.trigger, source.posts) {
            s.sems[sem.index()] = u64::MAX;
        }
    }
    while let Some(Reverse((at, _, task))) = s.ready.pop() {
        s.now = at;
        let foreground = |t: &Task| t.alive && !w.task(t.spec).background;
        if at.0 > limit.0 || !s.tasks.iter().any(foreground) {
            break;
        }
        if s.tasks[task].alive {
            s.go_on(w, task);
        }
    }
    s.out.end = s.now;
    for task in s.tasks.iter().filter(|t| t.alive && !w.task(t.spec).background) {
        if let Some(op) = task.waits {
            s.out.stuck.push(format!("{}: {}", w.task_name(task.spec), w.op_text(op)));
        }
    }
    s.out
}

fn mean(w: &Workload, dist: DistId) -> Duration {
    w.dists[dist.index()].mean()
}

impl State {
    fn add(&mut self, w: &Workload, spec: SpecId, parent: Option<usize>, at: Time) -> usize {
        let entry = w.programs[w.task(spec).program.index()].entry;
        *self.out.tasks.entry(w.task_name(spec).into_owned()).or_default() += 1;
        self.start(spec, entry, parent, at)
    }

    fn start(&mut self, spec: SpecId, entry: Pc, parent: Option<usize>, at: Time) -> usize {
        let task = Task {
            spec,
            cursor: Cursor::new(entry),
            parent,
            origin: at,
            timers: [None; 8],
            alive: true,
            then: None,
            waits: None,
            last_child: BTreeMap::new(),
        };
        self.tasks.push(task);
        let id = self.tasks.len() - 1;
        self.wake_at(id, at);
        id
    }

    fn wake_at(&mut self, task: usize, at: Time) {
        self.tasks[task].waits = None;
        self.order += 1;
        self.ready.push(Reverse((at, self.order, task)));
    }

    fn wait(&mut self, task: usize, op: Op) {
        self.tasks[task].waits = Some(op);
        self.queue.push_back(task);
    }

    /// Wakes up to `count` tasks whose wait matches, the longest waiting first; returns how many.
    fn wake(&mut self, count: usize, fits: impl Fn(Op) -> bool) -> usize {
        let mut woken = Vec::new();
        self.queue.retain(|&task| {
            let goes = woken.len() < count && self.tasks[task].waits.is_some_and(&fits);
            if goes {
                woken.push(task);
            }
            !goes
        });
        for &task in &woken {
            self.wake_at(task, self.now);
        }
        woken.len()
    }

    /// Does ops until one takes time or waits.
    fn go_on(&mut self, w: &Workload, id: usize) {
        loop {
            let op = match self.tasks[id].then.take() {
                Some(op) => op,
                None => {
                    let op = self.tasks[id].cursor.next(&w.code, &mut self.words, || 0);
                    let name = w.op_text(op).split(' ').next().unwrap().to_string();
                    *self.out.ops.entry(name).or_default() += 1;
                    op
                }
            };
            if !self.step(w, id, op) {
                return;
            }
        }
    }

    /// Executes an op; returns whether the task continues at once.
    fn step(&mut self, w: &Workload, id: usize, op: Op) -> bool {
        let span = match op {
            Op::Run { work } | Op::RunKernel { work, .. } => work,
            Op::RunWall { wall, .. } => wall,
            Op::Sleep { span } => span,
            Op::RunDraw { dist } | Op::SleepDraw { dist } => mean(w, dist),
            Op::BlockIo { device, .. } => mean(w, w.objects.devices[device.index()].service) + Duration(1),
            // One byte per nanosecond is as good as any other speed.
            Op::Touch { bytes, .. } => Duration(bytes),
            Op::Access { access } => {
                let access = w.objects.accesses[access.index()];
                Duration(access.read_bytes + access.write_bytes)
            }
            _ => return self.step_without_time(w, id, op),
        };
        self.wake_at(id, self.now + span);
        false
    }

    fn step_without_time(&mut self, w: &Workload, id: usize, op: Op) -> bool {
        match op {
            Op::Zero => self.zero = self.now,
            Op::Origin { delay } => {
                self.tasks[id].origin = self.zero + delay;
                self.wake_at(id, self.tasks[id].origin.max(self.now));
                return false;
            }
            Op::TimerWait { timer, period, miss } => {
                let origin = self.tasks[id].origin;
                let timer = match timer {
                    Timer::Shared(timer) => &mut self.timers[timer.index()],
                    Timer::Own(slot) => &mut self.tasks[id].timers[usize::from(slot)],
                };
                let next = timer.unwrap_or(origin) + period;
                let missed = next <= self.now;
                *timer = Some(if missed && miss == Miss::Rebase { self.now } else { next });
                // A task that always misses still spends some time on the call.
                self.wake_at(id, if missed { self.now + Duration(1) } else { next });
                return false;
            }
            Op::Lock { mutex } if self.holders[mutex.index()].is_some() => {
                self.tasks[id].then = Some(op);
                self.wait(id, op);
                return false;
            }
            Op::Lock { mutex } => self.holders[mutex.index()] = Some(id),
            Op::Unlock { mutex } => {
                assert_eq!(self.holders[mutex.index()].take(), Some(id));
                self.wake(1, |op| op == Op::Lock { mutex });
            }
            Op::CondWait { mutex, .. } => {
                assert_eq!(self.holders[mutex.index()].take(), Some(id));
                self.wake(1, |op| op == Op::Lock { mutex });
                self.tasks[id].then = Some(Op::Lock { mutex });
                self.wait(id, op);
                return false;
            }
            Op::Signal { cond } => {
                _ = self.wake(1, |op| matches!(op, Op::CondWait { cond: c, .. } if c == cond))
            }
            Op::Broadcast { cond } => {
                self.wake(usize::MAX, |op| matches!(op, Op::CondWait { cond: c, .. } if c == cond));
            }
            Op::SemPost { sem } => {
                let taken = self.wake(1, |op| op == Op::SemWait { sem });
                self.sems[sem.index()] += 1 - taken as u64;
            }
            Op::SemWait { sem } if self.sems[sem.index()] == 0 => {
                self.wait(id, op);
                return false;
            }
            Op::SemWait { sem } => self.sems[sem.index()] -= 1,
            Op::Barrier { barrier } => {
                let arrived = &mut self.arrived[barrier.index()];
                *arrived += 1;
                if *arrived < w.objects.barriers[barrier.index()].parties {
                    self.wait(id, op);
                    return false;
                }
                *arrived = 0;
                self.wake(usize::MAX, |other| other == op);
            }
            Op::Write { channel, bytes } => {
                let capacity = u64::from(w.objects.channels[channel.index()].capacity);
                if self.bytes[channel.index()] + u64::from(bytes) > capacity.max(bytes.into()) {
                    self.tasks[id].then = Some(op);
                    self.wait(id, op);
                    return false;
                }
                self.bytes[channel.index()] += u64::from(bytes);
                self.wake(usize::MAX, |op| matches!(op, Op::Read { channel: c, .. } if c == channel));
            }
            Op::Read { channel, bytes } => {
                if self.bytes[channel.index()] < u64::from(bytes) {
                    self.tasks[id].then = Some(op);
                    self.wait(id, op);
                    return false;
                }
                self.bytes[channel.index()] -= u64::from(bytes);
                self.wake(usize::MAX, |op| matches!(op, Op::Write { channel: c, .. } if c == channel));
            }
            Op::FutexWait { word, expected, timeout } => {
                return self.futex_wait(id, op, word, expected, timeout);
            }
            Op::FutexWake { word, count } => {
                self.wake(count as usize, |op| matches!(op, Op::FutexWait { word: w, .. } if w == word));
            }
            Op::QueueWork { work, .. } => {
                let (spec, entry) = (self.tasks[id].spec, w.programs[work.index()].entry);
                self.start(spec, entry, None, self.now);
            }
            Op::Raise { source } => {
                if let Some(sem) = w.objects.sources[source.index()].posts {
                    return self.step_without_time(w, id, Op::SemPost { sem });
                }
            }
            Op::Fork { task } => {
                let child = self.add(w, task, Some(id), self.now);
                self.tasks[id].last_child.insert(task, child);
            }
            Op::Exit => return self.exit(id),
            Op::ExitGroup => {
                let process = w.task(self.tasks[id].spec).process;
                let shares = |t: &Task| process != Process::Own && w.task(t.spec).process == process;
                let others: Vec<usize> =
                    (0..self.tasks.len()).filter(|&t| t == id || shares(&self.tasks[t])).collect();
                for other in others {
                    self.exit(other);
                }
                return false;
            }
            Op::WaitChildren if self.tasks.iter().any(|t| t.alive && t.parent == Some(id)) => {
                self.tasks[id].then = Some(op);
                self.wait(id, op);
                return false;
            }
            Op::Join { task } if self.tasks[self.tasks[id].last_child[&task]].alive => {
                self.tasks[id].then = Some(op);
                self.wait(id, op);
                return false;
            }
            Op::Mark { label, .. } | Op::MarkLate { label, .. } => {
                let text = w.mark_text(label, &self.tasks[id].cursor, self.now).into_owned();
                self.out.marks.push((self.now, text));
            }
            _ => {}
        }
        // Some time always passes, or two tasks could wake each other for ever in no time.
        if !op.is_instant() {
            self.wake_at(id, self.now + Duration(1));
        }
        op.is_instant()
    }

    fn futex_wait(&mut self, id: usize, op: Op, word: WordId, expected: Expected, timeout: Duration) -> bool {
        let value = match expected {
            Expected::Value(value) => value,
            Expected::Remembered => self.tasks[id].cursor.remembered(),
        };
        if self.words[word.index()] != value {
            self.wake_at(id, self.now + Duration(1));
        } else if timeout > Duration::ZERO {
            // Waking at the time-out is enough here; an earlier wake-up only makes it sooner.
            self.wake_at(id, self.now + timeout);
        } else {
            self.wait(id, op);
        }
        false
    }

    fn exit(&mut self, id: usize) -> bool {
        self.tasks[id].alive = false;
        self.tasks[id].waits = None;
        self.queue.retain(|&task| task != id);
        self.wake(usize::MAX, |op| matches!(op, Op::WaitChildren | Op::Join { .. }));
        false
    }
}
