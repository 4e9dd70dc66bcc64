//! A block device: a limited number of requests in service, the others queued in order.

use std::collections::VecDeque;

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// The task to notify when it is done.
    pub task: TaskId,
    /// The CPU it was submitted on.
    pub cpu: CpuId,
}

/// A device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Device {
    /// Requests in service; `None` is a free slot.
    slots: Vec<Option<Request>>,
    waiting: VecDeque<Request>,
    /// Requests queued behind the one that the device's only worker serves; `None` while the worker is idle.
    line: Option<VecDeque<Request>>,
}

impl Device {
    /// A device that serves this many requests at once.
    pub fn new(depth: u32) -> Device {
        Device { slots: vec![None; depth.max(1) as usize], waiting: VecDeque::new(), line: None }
    }

    /// A request arrives: the slot in which its service begins, unless it must wait.
    pub fn submit(&mut self, request: Request) -> Option<u32> {
        match self.slots.iter().position(Option::is_none) {
            Some(slot) => {
                self.slots[slot] = Some(request);
                Some(slot as u32)
            }
            None => {
                self.waiting.push_back(request);
                None
            }
        }
    }

    /// The service in this slot is done: which request it was, and whether the next one's service begins
    /// there.
    pub fn complete(&mut self, slot: u32) -> (Request, bool) {
        let next = self.waiting.pop_front();
        let done = std::mem::replace(&mut self.slots[slot as usize], next);
        (done.expect("a request is in service"), next.is_some())
    }

    /// A request arrives for the only worker: whether the worker has to be woken.
    pub fn stand_in_line(&mut self, request: Request) -> bool {
        match &mut self.line {
            Some(line) => line.push_back(request),
            None => self.line = Some(VecDeque::new()),
        }
        self.line.as_ref().is_some_and(VecDeque::is_empty)
    }

    /// The worker is done with a request: the next one.
    pub fn next_in_line(&mut self) -> Option<Request> {
        let next = self.line.as_mut()?.pop_front();
        if next.is_none() {
            self.line = None;
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_exceeds_the_depth_waits_in_order() {
        let request = |task| Request { task: TaskId(task), cpu: CpuId(0) };
        let mut device = Device::new(2);
        let slots: Vec<_> = (0..4).map(|task| device.submit(request(task))).collect();
        assert_eq!(slots, [Some(0), Some(1), None, None]);
        assert_eq!(device.complete(1), (request(1), true));
        assert_eq!(device.complete(1), (request(2), true));
        assert_eq!(device.complete(0), (request(0), false));
        assert_eq!(device.submit(request(9)), Some(0));
    }

    #[test]
    fn the_only_worker_is_called_once_and_finds_the_others_in_line() {
        let request = |task| Request { task: TaskId(task), cpu: CpuId(0) };
        let mut device = Device::new(1);
        assert!(device.stand_in_line(request(0)));
        assert!(!device.stand_in_line(request(1)));
        assert!(!device.stand_in_line(request(2)));
        assert_eq!(device.next_in_line(), Some(request(1)));
        assert_eq!(device.next_in_line(), Some(request(2)));
        assert_eq!(device.next_in_line(), None);
        assert!(device.stand_in_line(request(3)));
    }
}
