//! Merges one stream of records per CPU into one, by time.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};

use schedlab_topology::CpuId;
use schedlab_units::Time;

use super::{Error, Gap, Record};

/// A CPU's next records, each with its time.
pub(super) type Queue = VecDeque<(Time, Record)>;

/// Merges the CPUs' records. The caller fills a CPU's queue when it is empty.
#[derive(Debug, Default)]
pub(super) struct Merge {
    /// By CPU.
    queues: Vec<Queue>,
    /// The time of each CPU's next record.
    next: BinaryHeap<Reverse<(Time, CpuId)>>,
    last: Time,
}

impl Merge {
    /// Begins a CPU. `fill` adds its next records to the queue; adding none means that there are no more.
    pub fn start(
        &mut self,
        cpu: CpuId,
        fill: impl FnOnce(&mut Queue) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.queues.len() <= cpu.index() {
            self.queues.resize_with(cpu.index() + 1, Queue::default);
        }
        let queue = &mut self.queues[cpu.index()];
        fill(queue)?;
        if let Some((time, _)) = queue.front() {
            self.next.push(Reverse((*time, cpu)));
        }
        Ok(())
    }

    /// The next record. An event that is older than a previous one becomes a gap, so that times never go back.
    pub fn pop(
        &mut self,
        fill: impl FnOnce(CpuId, &mut Queue) -> Result<(), Error>,
    ) -> Result<Option<Record>, Error> {
        let Some(mut first) = self.next.peek_mut() else { return Ok(None) };
        let Reverse((time, cpu)) = *first;
        let queue = &mut self.queues[cpu.index()];
        let (_, record) = queue.pop_front().expect("only CPUs with records are waiting");
        if queue.is_empty() {
            fill(cpu, queue)?;
        }
        match queue.front() {
            Some((time, _)) => *first = Reverse((*time, cpu)),
            None => _ = PeekMut::pop(first),
        }
        if time < self.last && matches!(record, Record::Event(_)) {
            return Ok(Some(Record::Gap(Gap::out_of_order(cpu, time))));
        }
        self.last = self.last.max(time);
        Ok(Some(record))
    }
}
