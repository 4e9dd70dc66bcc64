//! What the shadow reports while it follows a recording, for types that learn from it.
//!
//! The shadow itself makes no assumptions: it is kept in step with what events show. What they only suggest is learned by a
//! type that implements these hooks; what it learns lies beside the shadow and beside each task. A hook is called where
//! the step is made, so it finds the state of that moment. All hooks are resolved at compile time.

use schedlab_sched::{Curr, Kernel};
use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use crate::follow::clocks::Clock;
use crate::follow::shadow::Shadow;

/// What learns from the steps of a shadow. Each hook does nothing by default.
pub trait Watch: Sized {
    /// What is learned of each task.
    type OfTask: Clone + Default;

    /// Nothing is learned yet.
    fn new(nr_cpus: usize, kernel: &Kernel) -> Self;

    /// The recording begins.
    fn begun(_: &mut Shadow<Self>, _now: Time) {}

    /// A task that is no kernel thread's parent forks; its child is born next.
    fn forks(_: &mut Shadow<Self>, _parent: TaskId, _now: Time) {}

    /// A task is born.
    fn born(_: &mut Shadow<Self>, _task: TaskId, _parent: TaskId) {}

    /// All busy CPUs had a tick.
    fn ticked(_: &mut Shadow<Self>, _at: Time) {}

    /// A task joins the queue of a CPU without any decision that was seen.
    fn joins(_: &mut Shadow<Self>, _task: TaskId, _now: Time) {}

    /// A CPU has switched; its scheduler used this clock.
    fn switched(_: &mut Shadow<Self>, _cpu: CpuId, _prev: Curr, _next: Curr, _clock: Clock) {}

    /// A task begins to run.
    fn begins(_: &mut Shadow<Self>, _task: TaskId) {}

    /// A CPU is idle although tasks seem to wait there.
    fn left_waiting(_: &mut Shadow<Self>, _cpu: CpuId, _now: Time) {}
}

/// Learns nothing.
impl Watch for () {
    type OfTask = ();

    fn new(_: usize, _: &Kernel) {}
}
