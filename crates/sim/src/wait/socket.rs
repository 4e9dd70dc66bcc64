//! A connected socket, one direction: a queue of buffers.
//!
//! A writer sleeps when its unread buffers fill its share, and all sleeping writers are woken only when a quarter of
//! that is left: they then send many at once. A reader is woken by any write that finds it asleep.
//!
//! Kernel: unix_stream_sendmsg(), unix_stream_read_generic(), unix_writable(),
//! net/unix/af_unix.c.

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use super::Waiters;

/// One direction of a socket pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Socket {
    capacity: u32,
    filled: u32,
    /// The CPU of the last write.
    writer: Option<CpuId>,
    readers: Waiters,
    writers: Waiters,
}

impl Socket {
    /// An empty socket for this many bytes.
    pub fn new(capacity: u32) -> Socket {
        Socket {
            capacity: capacity.max(1),
            filled: 0,
            writer: None,
            readers: Waiters::default(),
            writers: Waiters::default(),
        }
    }

    /// Something was written on this CPU.
    pub fn wrote_on(&mut self, cpu: CpuId) {
        self.writer = Some(cpu);
    }

    /// The CPU of the last write.
    pub fn written_on(&self) -> Option<CpuId> {
        self.writer
    }

    /// Whether a writer must sleep. A write that begins before is taken whole.
    pub fn is_full(&self) -> bool {
        self.filled >= self.capacity
    }

    /// Whether sleeping writers are woken.
    pub fn is_writable(&self) -> bool {
        self.filled <= self.capacity / 4
    }

    /// Writes, if it is not full; returns how many bytes.
    pub fn write(&mut self, bytes: u32) -> u32 {
        if self.is_full() {
            return 0;
        }
        self.filled = self.filled.saturating_add(bytes);
        bytes
    }

    /// Reads the available data, at most `bytes`; returns how many bytes.
    pub fn read(&mut self, bytes: u32) -> u32 {
        let taken = bytes.min(self.filled);
        self.filled -= taken;
        taken
    }

    /// Tasks that wait for something to read.
    pub fn readers(&mut self) -> &mut Waiters {
        &mut self.readers
    }

    /// Tasks that wait for room.
    pub fn writers(&mut self) -> &mut Waiters {
        &mut self.writers
    }

    /// A task that waits is killed.
    pub fn give_up(&mut self, task: TaskId) -> bool {
        self.readers.remove(task).is_some() || self.writers.remove(task).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_stops_at_the_limit_and_goes_on_at_a_quarter() {
        let mut socket = Socket::new(1_000);
        let written = std::iter::repeat_with(|| socket.write(300)).take_while(|&b| b > 0).count();
        assert_eq!(written, 4, "the last begins below the limit");
        assert_eq!(socket.read(900), 900);
        assert!(!socket.is_full() && !socket.is_writable());
        assert_eq!(socket.read(100), 100);
        assert!(socket.is_writable());
        assert_eq!(socket.read(500), 200);
        assert_eq!(socket.read(500), 0);
    }
}
