//! Interrupts in the trace, with the time that they take.
//!
//! A handler takes effect at once and its time is taken from what runs next, so the event that ends it is
//! later than the next things that happen on the CPU:
//!
//! ```text
//!   irq_handler_entry   wake-ups, a switch ..   irq_handler_exit, softirq_entry   softirq_exit
//!   |<---------------- hard ----------------------------->|<------- soft ---------->|
//! ```
//!
//! Future events of handlers are kept here until they are due, and not in the event queue: a sink that wants
//! events must not change a run.

use std::collections::BTreeMap;

use schedlab_sched::Scheduler;
use schedlab_topology::{CpuId, PerCpu};
use schedlab_trace::{Kind, Name, Softirq};
use schedlab_units::{Duration, Time};
use schedlab_workload::SourceId;

use crate::emit::Context;
use crate::engine::Engine;

/// Interrupt events that are not emitted yet.
#[derive(Clone, Debug)]
pub(crate) struct Handlers {
    /// Until when each CPU handles interrupts; one that arrives meanwhile follows.
    until: PerCpu<Time>,
    /// By time, then in order of insertion.
    ahead: BTreeMap<(Time, u64), (CpuId, Context, Kind)>,
    number: u64,
}

impl Handlers {
    /// No interrupt yet.
    pub fn new(nr_cpus: usize) -> Handlers {
        Handlers { until: PerCpu::new(nr_cpus, |_| Time::ZERO), ahead: BTreeMap::new(), number: 0 }
    }

    fn add(&mut self, time: Time, cpu: CpuId, context: Context, kind: Kind) {
        self.ahead.insert((time, self.number), (cpu, context, kind));
        self.number += 1;
    }
}

impl<S: Scheduler> Engine<'_, S> {
    /// A source's handler begins.
    pub fn emit_irq_entry(&mut self, cpu: CpuId, source: SourceId) {
        if self.tracing {
            let name = self.workload.objects.sources[source.index()].name.replace(' ', "_");
            let kind = Kind::IrqHandlerEntry { irq: source.0 as i32, name: Name::Owned(name) };
            self.emit(cpu, Context::Hardirq, kind);
        }
    }

    /// The handler takes this many ns, as does a soft interrupt after it, if any.
    pub fn emit_irq_exit(&mut self, cpu: CpuId, source: SourceId, hard: u64, soft: u64) {
        if !self.tracing {
            return;
        }
        let handlers = &mut self.handlers;
        let over = handlers.until[cpu].max(self.now) + Duration(hard);
        let kind = Kind::IrqHandlerExit { irq: source.0 as i32, handled: true };
        handlers.add(over, cpu, Context::Hardirq, kind);
        if soft > 0 {
            let vec = Softirq::NET_RX;
            handlers.add(over, cpu, Context::Softirq, Kind::SoftirqEntry { vec });
            handlers.add(over + Duration(soft), cpu, Context::Softirq, Kind::SoftirqExit { vec });
        }
        handlers.until[cpu] = over + Duration(soft);
    }

    /// Time advances to `time`: emits the handlers that end by then.
    pub fn tell_handlers(&mut self, time: Time) {
        while let Some(entry) = self.handlers.ahead.first_entry() {
            let at = entry.key().0;
            if at > time {
                return;
            }
            let (cpu, context, kind) = entry.remove();
            self.now = at;
            self.emit(cpu, context, kind);
        }
    }
}
