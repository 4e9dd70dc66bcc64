//! A block device: so many requests in service, the others in order behind them.

use std::collections::VecDeque;

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Who is told when it is done.
    pub task: TaskId,
    /// The CPU it was submitted on.
    pub cpu: CpuId,
}

/// A device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Device {
    /// In service; a place is free when none.
    slots: Vec<Option<Request>>,
    waiting: VecDeque<Request>,
}

impl Device {
    /// A device that serves so many at once.
    pub fn new(depth: u32) -> Device {
        Device { slots: vec![None; depth.max(1) as usize], waiting: VecDeque::new() }
    }

    /// A request comes: the place in which its service begins, unless it must wait.
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

    /// The service in this place is done: whose request it was, and whether the
    /// next one's service begins there.
    pub fn complete(&mut self, slot: u32) -> (Request, bool) {
        let next = self.waiting.pop_front();
        let done = std::mem::replace(&mut self.slots[slot as usize], next);
        (done.expect("a request is in service"), next.is_some())
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
}
