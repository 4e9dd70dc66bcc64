//! Interrupts from outside: recurring, or in response to something sent.

use schedlab_machine::Mechanism;
use schedlab_sched::Scheduler;
use schedlab_topology::CpuId;
use schedlab_workload::{DistId, SourceId, Trigger};

use crate::engine::Engine;
use crate::event::Event;
use crate::task::Wait;

impl<S: Scheduler> Engine<'_, S> {
    /// The recurring sources fire for the first time.
    pub fn start_sources(&mut self) {
        for (id, spec) in self.workload.objects.sources.iter().enumerate() {
            let source = SourceId(id as u32);
            if let Trigger::Every(dist) = spec.trigger {
                let wakes = spec.posts.is_some();
                self.pending += u64::from(wakes);
                self.source_after(source, dist);
            }
        }
    }

    fn source_after(&mut self, source: SourceId, dist: DistId) {
        let dice = &mut self.objects.source_dice[source.index()];
        let span = self.workload.dists[dist.index()].draw(|| dice.next());
        self.queue.push(self.now + span.max(schedlab_units::Duration(1)), Event::Irq { source });
    }

    /// A task provokes an interrupt.
    pub fn raise(&mut self, cpu: CpuId, source: SourceId) {
        self.charge(cpu, self.paths.syscall);
        if let Trigger::Raised(dist) = self.workload.objects.sources[source.index()].trigger {
            self.pending += 1;
            self.source_after(source, dist);
        }
    }

    /// A source interrupts its CPU.
    pub fn source(&mut self, source: SourceId) {
        let spec = &self.workload.objects.sources[source.index()];
        let cpu = self.instead_of(spec.cpu);
        if self.put_off(cpu, Event::Irq { source }) {
            return;
        }
        match spec.trigger {
            Trigger::Every(dist) => self.source_after(source, dist),
            Trigger::Raised(_) => self.pending -= 1,
        }
        let takes_time = self.machine.has(Mechanism::Interrupts);
        let hard = if takes_time { self.paths.irq + spec.hard.0 } else { 0 };
        let hit = self.interrupt(cpu, hard);
        self.emit_irq_entry(cpu, source);
        let soft = self.softirq(cpu, source);
        let soft = if takes_time { soft } else { 0 };
        self.take_time(cpu, soft);
        self.emit_irq_exit(cpu, source, hard, soft);
        self.irq_return(cpu, hit);
        let lasts = self.workload.duration.is_some();
        if !lasts
            && self.pending == 0
            && self.nr_busy == 0
            && self.foreground > 0
            && !self.somebody_is_awake()
        {
            self.end = Some(self.deadlock());
        }
    }

    /// Whether a task could run: its idle CPU has not noticed it yet, or its group has no quota left.
    fn somebody_is_awake(&self) -> bool {
        self.tasks.iter().any(|task| !task.ended && task.wait == Wait::Nothing)
    }
}
