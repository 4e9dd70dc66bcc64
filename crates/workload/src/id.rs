//! Dense ids into the tables of a workload, so that nothing is looked up by name while it runs.

use core::fmt;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The index into the table that this id belongs to.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

ids! {
    /// A place in [`Workload::code`](crate::Workload::code).
    Pc,
    /// A program.
    ProgramId,
    /// A kind of task; a forked kind makes a task at each fork.
    SpecId,
    /// A group of tasks. The root group has no id.
    GroupId,
    /// A process whose threads share an address space.
    ProcessId,
    /// A name that a task can take, in [`Workload::comms`](crate::Workload::comms).
    CommId,
    /// The text of a mark, in [`Workload::labels`](crate::Workload::labels).
    LabelId,
    /// A part of a kernel string, in [`Workload::parts`](crate::Workload::parts).
    PartId,
    /// A set of allowed CPUs.
    CpuListId,
    /// A set of scheduling attributes.
    AttrId,
    /// A distribution to draw spans from.
    DistId,
    /// A mutex.
    MutexId,
    /// A condition variable.
    CondId,
    /// A counting semaphore.
    SemId,
    /// A barrier.
    BarrierId,
    /// A pipe or one direction of a socket pair.
    ChannelId,
    /// A timer that several tasks share.
    TimerId,
    /// A word of memory that tasks test, change and wait on.
    WordId,
    /// A block device.
    DeviceId,
    /// A workqueue.
    QueueId,
    /// A stretch of memory with its pages.
    RegionId,
    /// A pass over a region.
    AccessId,
    /// A source of interrupts.
    SourceId,
}
