//! CPUs that leave and come back while a recording runs.
//!
//! Their threads tell ([`Hotplugs`](schedlab_trace::Hotplugs)). Whoever is moved away or comes back is in the trace.

use schedlab_sched::{Curr, TaskState};
use schedlab_topology::CpuId;
use schedlab_trace::{Event, Hotplug};
use schedlab_units::Pid;

use crate::shadow::Shadow;

impl Shadow {
    /// A CPU went a step, by an event.
    pub fn hotplug(&mut self, cpu: CpuId, step: Hotplug, event: &Event) {
        let now = event.time;
        if matches!(step, Hotplug::Deactivating | Hotplug::Dead) {
            // Its stopper was asked for that, by no pass.
            self.asked[cpu] = None;
        }
        match step {
            Hotplug::Deactivating => self.sched.cpu_deactivate(cpu, now),
            Hotplug::Deactivated => self.sched.cpuset_update_active_cpus(),
            Hotplug::Dead => self.sched.cpu_dying(cpu, now),
            Hotplug::Starting => {
                if let (Curr::Task(stopper), Pid::IDLE) = (self.sched.rqs[cpu].curr, event.shown()) {
                    // It stopped the CPU, for good.
                    self.leave(stopper, TaskState::Interruptible, now);
                    self.run(cpu, Curr::Idle, self.clock_at(cpu, now), now);
                }
                self.sched.cpu_starting(cpu);
            }
            Hotplug::Active => {
                self.sched.cpu_activate(cpu, now);
                self.sched.cpuset_update_active_cpus();
            }
            Hotplug::Done => self.sched.cpuset_hotplug_work(),
            Hotplug::Parked | Hotplug::Called => {}
        }
        self.sched.effects.clear();
    }
}
