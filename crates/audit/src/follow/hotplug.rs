//! CPUs that go offline and come back during a recording.
//!
//! Their per-CPU threads show it ([`Hotplugs`](schedlab_trace::Hotplugs)). The trace contains the tasks that are moved
//! away or come back.

use schedlab_sched::{Curr, TaskState};
use schedlab_topology::CpuId;
use schedlab_trace::{Event, Hotplug};
use schedlab_units::Pid;

use crate::follow::shadow::Shadow;
use crate::follow::watch::Watch;

impl<W: Watch> Shadow<W> {
    /// A CPU goes one step on its way offline or online.
    pub fn hotplug(&mut self, cpu: CpuId, step: Hotplug, event: &Event) {
        let now = event.time;
        match step {
            Hotplug::Deactivating => self.sched.cpu_deactivate(cpu, now),
            Hotplug::Deactivated => {
                self.sched.cpuset_update_active_cpus(now);
                self.sched.pick_to_push(cpu, now);
            }
            Hotplug::Dead => self.sched.cpu_dying(cpu, now),
            Hotplug::Starting => {
                if let (Curr::Task(stopper), Pid::IDLE) = (self.sched.rqs[cpu].curr, event.shown()) {
                    // It stopped the CPU for good.
                    self.leave(stopper, TaskState::Interruptible, now);
                    self.run(cpu, Curr::Idle, self.clock_at(cpu, now), now);
                }
                self.sched.cpu_starting(cpu);
            }
            Hotplug::Active => {
                self.sched.cpu_activate(cpu, now);
                self.sched.cpuset_update_active_cpus(now);
            }
            Hotplug::Done => self.sched.cpuset_hotplug_work(now),
            Hotplug::Parked | Hotplug::Called => {}
        }
        self.sched.effects.clear();
    }
}
