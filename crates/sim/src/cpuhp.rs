//! Events for CPUs that go offline and online: the scheduler's callbacks of CPU hotplug, as they begin and end.
//!
//! In a kernel the CPU's own thread `cpuhp/N` calls those that let tasks in and out, and the stopper or the idle task
//! calls the others. Here the task that brings the CPU online calls them, or the CPU's stopper. State numbers are
//! those of v6.12; they differ between kernels, so readers use the names of the functions.
//!
//! Kernel: cpuhp_invoke_callback(), kernel/cpu.c; enum cpuhp_state, include/linux/cpuhotplug.h, v6.12.

use schedlab_sched::Scheduler;
use schedlab_topology::CpuId;
use schedlab_trace::Kind;

use crate::emit::Context;
use crate::engine::Engine;

/// A callback: its function, the number of its state, and the target state of its CPU.
pub(crate) struct Callback(&'static str, i32, i32);

const OFFLINE: i32 = 0;
const SCHED_STARTING: i32 = 90;
const ACTIVE: i32 = 235;
const ONLINE: i32 = 236;

/// No more tasks may be placed there.
pub(crate) const DEACTIVATE: Callback = Callback("sched_cpu_deactivate", ACTIVE, OFFLINE);
/// It is offline.
pub(crate) const DYING: Callback = Callback("sched_cpu_dying", SCHED_STARTING, OFFLINE);
/// It is online again.
pub(crate) const STARTING: Callback = Callback("sched_cpu_starting", SCHED_STARTING, ONLINE);
/// Tasks may be placed there.
pub(crate) const ACTIVATE: Callback = Callback("sched_cpu_activate", ACTIVE, ONLINE);

impl<S: Scheduler> Engine<'_, S> {
    /// What a CPU executes of a callback for itself or for another.
    pub fn callback(
        &mut self,
        by: CpuId,
        cpu: CpuId,
        Callback(fun, idx, target): Callback,
        act: impl FnOnce(&mut Self),
    ) {
        if self.tracing {
            self.emit(by, Context::Task, Kind::CpuhpEnter { cpu, target, idx, fun: fun.into() });
        }
        act(self);
        self.effects(by, Context::Task);
        if self.tracing {
            self.emit(by, Context::Task, Kind::CpuhpExit { cpu, state: idx, idx, ret: 0 });
        }
    }
}
