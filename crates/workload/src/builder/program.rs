//! Writes a program op by op.

use std::collections::BTreeMap;

use schedlab_units::Duration;

use crate::{
    AccessId, AttrId, BarrierId, ChannelId, CommId, CondId, CpuListId, DeviceId, DistId, Expected, FOREVER,
    GroupAct, GroupId, LabelId, Miss, MutexId, Op, PartId, Pc, ProgramId, QueueId, RegionId, Section, SemId,
    SourceId, SpecId, TaskAct, Test, Timer, WordId,
};

/// A program under construction. Methods append one op and return the builder, so that short sequences fit on
/// one line.
#[derive(Debug)]
pub struct ProgramBuilder<'a> {
    code: &'a mut Vec<Op>,
    lines: &'a mut BTreeMap<Pc, (u32, u32)>,
    /// Line and column for the ops to come.
    line: Option<(u32, u32)>,
    depth: u8,
    /// The place of each label; `None` before it is placed.
    labels: Vec<Option<Pc>>,
    /// Jumps with the label they lead to.
    jumps: Vec<(Pc, Label)>,
}

/// A place to jump to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(usize);

/// Appends what `write` writes, and an exit.
pub(super) fn write(
    code: &mut Vec<Op>,
    lines: &mut BTreeMap<Pc, (u32, u32)>,
    write: impl FnOnce(&mut ProgramBuilder),
) {
    let mut p = ProgramBuilder { code, lines, line: None, depth: 0, labels: Vec::new(), jumps: Vec::new() };
    write(&mut p);
    p.op(Op::Exit);
    for (pc, Label(label)) in p.jumps {
        let target = p.labels[label].expect("a label that is jumped to was never placed");
        match &mut p.code[pc.index()] {
            Op::Jump { to } | Op::JumpIf { to, .. } | Op::JumpOdds { to, .. } => *to = target,
            op => unreachable!("{op:?} does not jump"),
        }
    }
}

impl ProgramBuilder<'_> {
    /// Sets the place in the file of the following ops.
    pub fn at(&mut self, line: u32, column: u32) -> &mut Self {
        self.line = Some((line, column));
        self
    }

    /// Appends any op whose ids the caller has.
    pub fn op(&mut self, op: Op) -> &mut Self {
        if let Some(line) = self.line {
            self.lines.insert(self.here(), line);
        }
        self.code.push(op);
        self
    }

    fn here(&self) -> Pc {
        Pc(self.code.len() as u32)
    }

    /// Does `body` this many times.
    pub fn repeat(&mut self, times: u32, body: impl FnOnce(&mut Self)) -> &mut Self {
        let begin = self.here();
        let slot = self.depth;
        self.op(Op::Loop { times, slot, end: begin });
        self.depth += 1;
        body(self);
        self.depth -= 1;
        let closes = self.here();
        if let Op::Loop { end, .. } = &mut self.code[begin.index()] {
            *end = closes;
        }
        self.op(Op::EndLoop { times, slot, begin })
    }

    /// Does `body` for ever.
    pub fn forever(&mut self, body: impl FnOnce(&mut Self)) -> &mut Self {
        self.repeat(FOREVER, body)
    }

    /// A label to jump to, not placed yet.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Places a label before the next op.
    pub fn place(&mut self, label: Label) -> &mut Self {
        self.labels[label.0] = Some(self.here());
        self
    }

    /// Continues at a label.
    pub fn jump(&mut self, label: Label) -> &mut Self {
        self.jumps.push((self.here(), label));
        self.op(Op::Jump { to: Pc(0) })
    }

    /// Continues at a label if the word passes the test.
    pub fn jump_if(&mut self, word: WordId, test: Test, value: i32, label: Label) -> &mut Self {
        self.jumps.push((self.here(), label));
        self.op(Op::JumpIf { word, test, value, to: Pc(0) })
    }

    /// Continues at a label `permille` times out of 1000.
    pub fn jump_odds(&mut self, permille: u16, label: Label) -> &mut Self {
        self.jumps.push((self.here(), label));
        self.op(Op::JumpOdds { permille, to: Pc(0) })
    }
}

macro_rules! ops {
    ($($(#[$doc:meta])* $name:ident($($field:ident: $type:ty),*) => $op:expr;)*) => {
        impl ProgramBuilder<'_> {$(
            $(#[$doc])*
            pub fn $name(&mut self, $($field: $type),*) -> &mut Self {
                self.op($op)
            }
        )*}
    };
}

ops! {
    /// [`Op::Run`].
    run(work: Duration) => Op::Run { work };
    /// [`Op::RunKernel`] that can be preempted and has no `cond_resched()`.
    run_kernel(work: Duration) => Op::RunKernel { work, section: Section::default() };
    /// [`Op::RunWall`].
    run_wall(wall: Duration, block: Duration) => Op::RunWall { wall, block };
    /// [`Op::RunDraw`].
    run_draw(dist: DistId) => Op::RunDraw { dist };
    /// [`Op::Touch`].
    touch(region: RegionId, bytes: u64) => Op::Touch { region, bytes };
    /// [`Op::Access`].
    access(access: AccessId) => Op::Access { access };
    /// [`Op::Share`], read.
    read_shared(region: RegionId, bytes: u32) => Op::Share { region, bytes, write: false };
    /// [`Op::Share`], written.
    write_shared(region: RegionId, bytes: u32) => Op::Share { region, bytes, write: true };
    /// [`Op::Sleep`].
    sleep(span: Duration) => Op::Sleep { span };
    /// [`Op::SleepDraw`].
    sleep_draw(dist: DistId) => Op::SleepDraw { dist };
    /// [`Op::Zero`].
    zero() => Op::Zero;
    /// [`Op::Origin`].
    origin(delay: Duration) => Op::Origin { delay };
    /// [`Op::TimerWait`].
    timer_wait(timer: Timer, period: Duration, miss: Miss) => Op::TimerWait { timer, period, miss };
    /// [`Op::Lock`].
    lock(mutex: MutexId) => Op::Lock { mutex };
    /// [`Op::Unlock`].
    unlock(mutex: MutexId) => Op::Unlock { mutex };
    /// [`Op::CondWait`].
    cond_wait(cond: CondId, mutex: MutexId) => Op::CondWait { cond, mutex };
    /// [`Op::Signal`].
    signal(cond: CondId) => Op::Signal { cond };
    /// [`Op::Broadcast`].
    broadcast(cond: CondId) => Op::Broadcast { cond };
    /// [`Op::SemPost`].
    sem_post(sem: SemId) => Op::SemPost { sem };
    /// [`Op::SemWait`].
    sem_wait(sem: SemId) => Op::SemWait { sem };
    /// [`Op::Barrier`].
    barrier(barrier: BarrierId) => Op::Barrier { barrier };
    /// [`Op::Write`].
    write(channel: ChannelId, bytes: u32) => Op::Write { channel, bytes };
    /// [`Op::Read`].
    read(channel: ChannelId, bytes: u32) => Op::Read { channel, bytes };
    /// [`Op::FutexWait`] without a timeout.
    futex_wait(word: WordId, value: i32) => Op::FutexWait {
        word, expected: Expected::Value(value), timeout: Duration::ZERO
    };
    /// [`Op::FutexWake`].
    futex_wake(word: WordId, count: u32) => Op::FutexWake { word, count };
    /// [`Op::BlockIo`] from the device.
    block_read(device: DeviceId, bytes: u32) => Op::BlockIo { device, bytes, write: false };
    /// [`Op::BlockIo`] to the device.
    block_write(device: DeviceId, bytes: u32) => Op::BlockIo { device, bytes, write: true };
    /// [`Op::QueueWork`].
    queue_work(queue: QueueId, work: ProgramId) => Op::QueueWork { queue, work };
    /// [`Op::Raise`].
    raise(source: SourceId) => Op::Raise { source };
    /// [`Op::Fork`].
    fork(task: SpecId) => Op::Fork { task };
    /// [`Op::Exec`].
    exec(comm: CommId) => Op::Exec { comm };
    /// [`Op::ExitGroup`].
    exit_group() => Op::ExitGroup;
    /// [`Op::WaitChildren`].
    wait_children() => Op::WaitChildren;
    /// [`Op::Join`].
    join(task: SpecId) => Op::Join { task };
    /// [`Op::Yield`].
    yield_cpu() => Op::Yield;
    /// [`Op::OwnComm`].
    own_comm() => Op::OwnComm;
    /// [`Op::SetComm`].
    set_comm(comm: CommId) => Op::SetComm { comm };
    /// [`Op::SetCpus`].
    set_cpus(cpus: Option<CpuListId>) => Op::SetCpus { cpus };
    /// [`Op::SetSched`].
    set_sched(attr: AttrId) => Op::SetSched { attr };
    /// [`Op::SetGroup`].
    set_group(group: Option<GroupId>) => Op::SetGroup { group };
    /// [`Op::OfTask`].
    of_task(task: SpecId, act: TaskAct) => Op::OfTask { task, act };
    /// [`Op::OfGroup`].
    of_group(group: GroupId, act: GroupAct) => Op::OfGroup { group, act };
    /// [`Op::Switch`].
    switch(part: PartId) => Op::Switch { part };
    /// [`Op::Mark`].
    mark(label: LabelId, value: i64) => Op::Mark { label, value };
    /// [`Op::MarkLate`].
    mark_late(label: LabelId, timer: u8) => Op::MarkLate { label, timer };
    /// [`Op::WordSet`].
    word_set(word: WordId, value: i32) => Op::WordSet { word, value };
    /// [`Op::WordAdd`].
    word_add(word: WordId, value: i32) => Op::WordAdd { word, value };
    /// [`Op::WordLoad`].
    word_load(word: WordId) => Op::WordLoad { word };
}
