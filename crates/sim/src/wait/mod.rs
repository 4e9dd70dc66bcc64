//! Objects through which tasks wait and wake each other.
//!
//! Each file is a state machine without time or CPUs: it decides which tasks may continue, the engine wakes them
//! and charges for it.

mod barrier;
mod block;
mod cond;
mod futex;
mod kernel_mutex;
mod mutex;
mod pipe;
mod semaphore;
mod socket;
mod timer;
mod waiters;
mod workqueue;

pub(crate) use barrier::{Arrival, Barrier};
pub(crate) use block::{Device, Request};
pub(crate) use cond::Cond;
pub(crate) use futex::Futex;
pub(crate) use kernel_mutex::KernelMutex;
pub(crate) use mutex::Mutex;
pub(crate) use pipe::Pipe;
pub(crate) use semaphore::Semaphore;
pub(crate) use socket::Socket;
pub(crate) use timer::{Expiry, advance};
pub(crate) use waiters::Waiters;
pub(crate) use workqueue::{Needs, Pool};
