//! The state of a run, and its main loop.
//!
//! Everything that happens is an event at a time; its handler changes the state of
//! the CPU it happens on, calls the scheduler, charges what that cost to the CPU,
//! and leaves behind the events that follow. Handlers that touch a CPU's execution
//! first bring it up to now ([`Engine::advance`]) and end by arming its next event
//! ([`Engine::go_on`]).
//!
//! What a CPU does for the kernel is done at once and paid for afterwards: its state changes at the beginning of the
//! path, the time passes before the CPU continues, and other CPUs notice it only when the time up to the notice has
//! passed.

use std::collections::BTreeMap;
use std::sync::Arc;

use schedlab_machine::{Machine, Mechanism, Rate, Work};
use schedlab_sched::{Curr, Lately, Looked, Scheduler, TgId, Took};
use schedlab_topology::{CpuId, CpuMask, PerCpu};
use schedlab_trace::Sink;
use schedlab_units::{Duration, TaskId, Time};
use schedlab_workload::{Start, Workload};

use crate::account::{Account, Part};
use crate::change::Change;
use crate::cpu::{CoreState, Cpu};
use crate::event::Event;
use crate::memory::Memory;
use crate::objects::Objects;
use crate::outcome::{Counts, End, Outcome};
use crate::past::Past;
use crate::queue::Queue;
use crate::rng::Stream;
use crate::settle::Settling;
use crate::task::Task;

/// Prices of the kernel's paths as they count in this run: nothing is charged for
/// what is switched off.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paths {
    pub context_switch: u64,
    pub syscall: u64,
    pub wakeup: u64,
    pub futex: u64,
    pub sleep: u64,
    /// The part of a wake-up that is queueing the task: the CPU that does it pays for it.
    pub activate: u64,
    pub idle_scan_cpu: u64,
    pub balance_cpu: u64,
    pub balance_pass: u64,
    pub balance_task: u64,
    pub blocked_update: u64,
    pub tick: u64,
    pub irq: u64,
    pub timer_irq: u64,
    pub timer_delivery: u64,
    pub wake_list: u64,
    pub ipi_send: u64,
    pub ipi_handle: u64,
    pub ipi_deliver: u64,
    pub ipi_polling: u64,
}

impl Paths {
    pub fn of(machine: &Machine) -> Paths {
        let on =
            |mechanism, cost: &schedlab_machine::Cost| if machine.has(mechanism) { cost.get() } else { 0 };
        let kernel = |cost| on(Mechanism::KernelCosts, cost);
        let search = |cost| on(Mechanism::SearchCosts, cost);
        let ipi = |cost| on(Mechanism::Ipi, cost);
        Paths {
            context_switch: kernel(&machine.cost.context_switch_ns),
            // A call takes some time, or a loop of calls would never end.
            syscall: kernel(&machine.cost.syscall_ns).max(1),
            wakeup: kernel(&machine.cost.wakeup_ns),
            futex: kernel(&machine.cost.futex_ns),
            sleep: kernel(&machine.cost.sleep_ns),
            activate: kernel(&machine.cost.activate_ns),
            idle_scan_cpu: search(&machine.cost.idle_scan_cpu_ns),
            balance_cpu: search(&machine.cost.balance_cpu_ns),
            balance_pass: search(&machine.cost.balance_pass_ns),
            balance_task: search(&machine.cost.balance_task_ns),
            blocked_update: search(&machine.cost.blocked_update_ns),
            tick: kernel(&machine.cost.tick_ns),
            irq: kernel(&machine.cost.irq_ns),
            timer_irq: kernel(&machine.cost.timer_irq_ns),
            // No timer is early: by a clock read just when it expires a slice may seem to lack its last nanosecond.
            timer_delivery: machine.cost.timer_delivery_ns.get(),
            wake_list: kernel(&machine.cost.wake_list_ns),
            ipi_send: ipi(&machine.ipi.send_ns),
            ipi_handle: ipi(&machine.ipi.handle_ns),
            ipi_deliver: ipi(&machine.ipi.deliver_ns),
            ipi_polling: ipi(&machine.ipi.polling_ns),
        }
    }
}

/// How long the scheduler's own work takes, before it was ever measured.
pub fn took(machine: &Machine) -> Took {
    let paths = Paths::of(machine);
    Took {
        scan_cpu: paths.idle_scan_cpu,
        pass: paths.balance_pass,
        pass_cpu: paths.balance_cpu,
        pass_task: paths.balance_task,
        blocked_update: paths.blocked_update,
    }
}

/// What a sink wants to receive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listens {
    pub events: bool,
    /// Decisions with all that explains them.
    pub decisions: bool,
    /// Only the rules of decisions.
    pub reasons: bool,
    /// Charged times and the activity of idle CPUs as well.
    pub details: bool,
    pub state: bool,
}

impl Listens {
    pub fn of(sink: &dyn Sink) -> Listens {
        Listens {
            events: sink.enabled(),
            decisions: sink.enabled() && sink.wants_decisions(),
            reasons: sink.enabled() && sink.wants_reasons(),
            details: sink.enabled() && sink.wants_details(),
            state: sink.enabled() && sink.wants_state(),
        }
    }
}

/// An item for the sink.
#[derive(Clone)]
pub(crate) enum Told {
    Event(schedlab_trace::Event),
    Decided(schedlab_trace::Decided),
}

/// Limits of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// When all tasks are killed.
    pub until: Time,
    /// Events after which the run is aborted.
    pub events: u64,
    /// Tasks after which the run is aborted.
    pub tasks: usize,
    /// Whether it stops when the workload is warm.
    pub when_warm: bool,
}

/// A run. A copy continues independently.
#[derive(Clone)]
pub(crate) struct Engine<'a, S> {
    pub machine: &'a Machine,
    pub workload: &'a Workload,
    pub sched: S,
    pub now: Time,
    pub queue: Queue<Event>,
    pub cpus: PerCpu<Cpu>,
    pub cores: Vec<CoreState>,
    pub clusters: Vec<CoreState>,
    pub llcs: Vec<CoreState>,
    /// Whether programs can be slowed by others on their caches.
    pub crowds: bool,
    /// Whether several cores share an L2.
    pub shares_l2: bool,
    /// Whether figures have settled, or how far the run is with waiting for that.
    pub settling: Settling,
    /// Where time had gone when what counts began.
    pub begun: Account,
    /// When the measured part began.
    pub begun_at: Time,
    pub tasks: Vec<Task>,
    pub objects: Objects,
    pub memory: Memory,
    pub paths: Paths,
    pub seed: u64,
    /// By CPU, ticks that are known to come late: their numbers, and by how much, ns.
    pub late_ticks: PerCpu<Vec<(u64, u64)>>,
    /// Passes of balancing that are known to come.
    pub passes: Vec<crate::past::Pass>,
    /// When the workload began.
    pub began: Time,
    /// Zero of the workload's time.
    pub zero: Time,
    /// Groups of the workload in the scheduler.
    pub groups: Vec<schedlab_sched::TgId>,
    /// Foreground tasks that live or have not started yet.
    pub foreground: u64,
    /// Tasks without a parent that have not started yet.
    pub to_start: u32,
    /// Events in the queue that can wake a task or begin one.
    pub pending: u64,
    /// Busy CPUs.
    pub nr_busy: u32,
    /// The CPU whose turn it is, if one processor executes all CPUs.
    pub turns: Option<crate::turns::Turns>,
    /// Number of tasks named by count so far, in total and for each spec.
    pub named: u32,
    pub named_of: Vec<u32>,
    pub next_pid: i32,
    pub next_kernel_pid: i32,
    pub counts: Counts,
    /// Since when queues of groups are throttled.
    pub throttled: BTreeMap<(TgId, CpuId), Time>,
    /// The workload said that it is warm.
    pub warm: bool,
    pub end: Option<End>,
    /// What the sink still has to receive; empty between events.
    pub told: Vec<Told>,
    /// The sink wants events.
    pub tracing: bool,
    /// The sink wants decisions explained.
    pub explaining: bool,
    /// The sink counts the rules of decisions.
    pub counting: bool,
    /// The sink wants charged times and the activity of idle CPUs.
    pub wants_details: bool,
    /// They are passed on if the sink wants them, or as the first event of all, with which a trace begins.
    pub details: bool,
    /// How many of those were left out since the sink heard of it, and when the last one was.
    pub omitted: (u64, Time),
    /// State that was last reported; `None` if it is not wanted.
    pub state_told: Option<Box<crate::tell_state::Told>>,
    /// Whether threads of a core slow each other.
    pub smt: bool,
    /// Whether searching and balancing take time.
    pub searches: bool,
    /// The scheduler is notified when a CPU has switched to idle.
    pub lingers: bool,
    /// Where lines are that CPUs share.
    pub places: crate::shared::Places,
    /// Whether caches can be cold.
    pub warmth: bool,
    /// Whether clocks change.
    pub clocks: crate::clock::Clocks,
    /// Whether CPUs differ in capacity.
    pub asymmetric: bool,
    /// The lines that hold groups' load averages.
    pub lines: crate::lines::Lines,
    /// Idle CPUs with a first task that other CPUs cannot see yet.
    pub late: Vec<crate::late::Late>,
    /// When the waker that is at work chose a CPU.
    pub chose: Option<crate::late::Chosen>,
    /// Tasks to be woken at once; empty between calls.
    pub woken: Vec<TaskId>,
    /// Part of the next wake-up that its waker has paid already, ns.
    pub decides_paid: u64,
    /// An empty buffer for effects.
    pub spare_effects: Vec<schedlab_sched::Effect>,
    /// Softirqs, by CPU.
    pub softirqs: PerCpu<crate::softirq::SoftirqState>,
    pub handlers: crate::handlers::Handlers,
    /// What else runs.
    pub noise: crate::noise::Noise,
    /// Changes from outside.
    pub changes: Arc<[crate::change::Timed]>,
    /// Ticks are among the changes: CPUs do not tick by themselves.
    pub ticks_come: bool,
    /// What stoppers are asked to do, by CPU.
    pub stopper_work: PerCpu<Vec<crate::stopper::StopperWork>>,
    /// By CPU, threads of the kernel that are bound to it but for the time it is offline.
    pub unbound: PerCpu<Vec<TaskId>>,
    /// How many processes the tasks of the workload share; the number of any other process is above.
    pub shared_processes: u32,
    /// CPU masks by list of the workload, made once.
    pub masks: Vec<std::sync::Arc<schedlab_topology::CpuMask>>,
    pub all_cpus: std::sync::Arc<schedlab_topology::CpuMask>,
}

/// The pid of the first kernel thread that is made.
const FIRST_KERNEL_PID: i32 = 100;

/// The pid of the first task that is not a kernel thread.
pub(crate) const FIRST_USER_PID: i32 = 1000;

/// How long the machine has been up when a run begins.
pub(crate) const UPTIME: Time = Time(1_000_000_000);

impl<'a, S: Scheduler> Engine<'a, S> {
    pub fn new(
        machine: &'a Machine,
        sched: S,
        workload: &'a Workload,
        seed: u64,
        past: &Past,
        listens: Listens,
    ) -> Engine<'a, S> {
        let topology = &machine.topology;
        let objects = Objects::new(workload, machine, sched.kernel(), seed);
        let nr_atomics = sched.nr_atomics();
        let mut engine = Engine {
            machine,
            workload,
            sched,
            now: UPTIME,
            queue: Queue::new(),
            cpus: PerCpu::new(topology.nr_cpus(), |cpu| Cpu::new(cpu, UPTIME)),
            cores: vec![CoreState::default(); topology.cores().len()],
            clusters: vec![CoreState::default(); topology.clusters().len()],
            llcs: vec![CoreState::default(); topology.llcs().len()],
            crowds: false,
            shares_l2: topology.clusters().len() < topology.cores().len(),
            settling: Settling::default(),
            begun: Account::default(),
            begun_at: UPTIME,
            tasks: Vec::new(),
            objects,
            memory: Memory::new(workload, topology),
            paths: Paths::of(machine),
            seed,
            late_ticks: PerCpu::new(topology.nr_cpus(), |_| Vec::new()),
            passes: Vec::new(),
            began: UPTIME,
            zero: UPTIME,
            groups: Vec::new(),
            foreground: 0,
            to_start: 0,
            pending: 0,
            nr_busy: 0,
            turns: None,
            named: 0,
            named_of: vec![0; workload.tasks.len()],
            next_pid: FIRST_USER_PID,
            next_kernel_pid: FIRST_KERNEL_PID,
            counts: Counts::default(),
            throttled: BTreeMap::new(),
            warm: false,
            end: None,
            told: Vec::new(),
            tracing: listens.events,
            explaining: listens.decisions,
            counting: listens.reasons,
            wants_details: listens.details,
            details: true,
            omitted: (0, UPTIME),
            state_told: listens.state.then(Default::default),
            smt: topology.is_smt() && machine.has(Mechanism::Smt),
            searches: machine.has(Mechanism::SearchCosts),
            lingers: false,
            places: crate::shared::Places::new(machine, workload, nr_atomics),
            warmth: machine.has(Mechanism::CacheWarmth),
            clocks: crate::clock::Clocks::new(machine),
            asymmetric: topology.cpus().any(|(_, cpu)| cpu.capacity != 1024),
            lines: crate::lines::Lines::new(topology.nr_cpus(), topology.nr_nodes(), 1, seed),
            late: Vec::new(),
            chose: None,
            woken: Vec::new(),
            decides_paid: 0,
            spare_effects: Vec::new(),
            softirqs: PerCpu::new(topology.nr_cpus(), |_| crate::softirq::SoftirqState::default()),
            handlers: crate::handlers::Handlers::new(topology.nr_cpus()),
            noise: crate::noise::Noise::QUIET,
            changes: Arc::from([]),
            ticks_come: false,
            stopper_work: PerCpu::new(topology.nr_cpus(), |_| Vec::new()),
            unbound: PerCpu::new(topology.nr_cpus(), |_| Vec::new()),
            shared_processes: workload.nr_processes(),
            masks: masks(workload, topology.nr_cpus()),
            all_cpus: Arc::new(topology.housekeeping()),
        };
        let least_l2 = topology.online().iter().map(|cpu| machine.l2_bytes(cpu)).min().unwrap_or(0);
        let wants = |least| workload.tasks.iter().any(|task| task.footprint > least);
        engine.crowds = engine.warmth && wants(if engine.shares_l2 { 0 } else { least_l2 / 2 });
        *engine.sched.looked() = Looked::of(topology.nr_cpus());
        engine.lingers = engine.sched.linger();
        engine.expect_tasks();
        engine.turns = machine
            .shared_clock
            .then(|| crate::turns::Turns::new(topology.nr_cpus(), engine.sched.tick_ns(), seed));
        engine.lines.counters = engine.sched.nr_load_avgs();
        engine.log_balancing();
        engine.begin(past);
        engine
    }

    /// Puts the machine to sleep and the first events into the queue.
    fn begin(&mut self, past: &Past) {
        let mut draw = Stream::new(self.seed, "uptime", 0);
        self.sched.has_been_up(UPTIME, || draw.next());
        self.sched.set_newidle_cost(self.machine.newidle_cost);
        if let Some(experience) = &past.experience {
            self.sched.has_learned(experience);
        }
        // Programs do not start at a tick.
        let tick = self.sched.tick_ns();
        let drawn = draw.next() % tick;
        let at = UPTIME + past.at;
        let phase = past.since_tick.map(|since| (since.0 % tick + tick - at.0 % tick) % tick);
        let begin = UPTIME + Duration(phase.unwrap_or(drawn));
        let lately = if self.workload.fresh_domains { Lately::Fresh } else { past.lately };
        self.sched.was_balanced(begin, lately, || draw.next());
        for late in &past.late_ticks {
            let number = (begin + past.at).0 / tick + late.number;
            self.late_ticks[late.cpu].push((number, late.late.0));
        }
        for (number, pass) in past.passes.iter().enumerate() {
            // In the middle between the tick before and its own.
            let at = (begin + past.at + pass.after).0 / tick * tick - tick / 2;
            self.queue.push(Time(at), Event::Pass { number: number as u32 });
        }
        self.passes = past.passes.clone();
        self.began = begin;
        self.zero = begin;
        self.begun = Account::idle(self.machine.topology.nr_cpus(), begin.since(UPTIME).0);
        let cpus: Vec<CpuId> = self.machine.topology.online().iter().collect();
        for &cpu in &cpus {
            self.cpus[cpu].rate = self.rate_of(cpu);
            self.enter_idle(cpu);
        }
        self.make_groups();
        for spec in self.workload.roots() {
            let task = self.workload.task(spec);
            let Start::At(delay) = task.start else { continue };
            self.foreground += u64::from(!task.background);
            self.to_start += 1;
            self.pending += 1;
            self.queue.push(begin + delay, Event::Start { spec });
        }
        self.start_sources();
    }

    /// Lets changes come at their times.
    pub fn plan(&mut self, changes: &Arc<[crate::change::Timed]>) {
        self.changes = changes.clone();
        self.ticks_come = changes.iter().any(|timed| matches!(timed.change, Change::Tick(_)));
        for (number, timed) in changes.iter().enumerate() {
            self.queue.push(self.began + timed.at, Event::Change { number: number as u32 });
        }
    }

    /// A queue of a group is throttled or unthrottled.
    pub fn count_throttled(&mut self, tg: TgId, cpu: CpuId, on: bool) {
        if on {
            self.throttled.entry((tg, cpu)).or_insert(self.now);
        } else if let Some(since) = self.throttled.remove(&(tg, cpu)) {
            self.counts.throttled_ns += self.now.since(since).0;
        }
    }

    /// The result of the run, besides its trace.
    pub fn outcome(&mut self, end: End) -> Outcome {
        self.count_busy();
        let profile = self.lines.profile.clone();
        let mut counts = self.counts;
        [counts.periods, counts.throttled_periods] = self.sched.periods();
        for &since in self.throttled.values() {
            counts.throttled_ns += self.now.since(since).0;
        }
        let account = self.account().since(&self.begun);
        let elapsed = self.now.since(self.began);
        let slower =
            self.slow_clocks(&account).into_iter().filter(|clock| clock.round_at() > elapsed).collect();
        let settled = self.settling.settled;
        Outcome { end, began: self.began, time: self.now, counts, profile, account, slower, settled }
    }

    /// Handles events until the run ends.
    pub fn run(&mut self, limits: Limits, sink: &mut dyn Sink) -> End {
        let end = self.go(limits, sink);
        let (number, last) = std::mem::replace(&mut self.omitted, (0, self.now));
        if number > 0 {
            sink.omitted(number, last);
        }
        end
    }

    fn tell(&mut self, sink: &mut dyn Sink) {
        for told in &self.told {
            match told {
                Told::Event(event) => sink.event(event),
                Told::Decided(decided) => sink.decided(decided),
            }
        }
        self.told.clear();
    }

    fn go(&mut self, limits: Limits, sink: &mut dyn Sink) -> End {
        loop {
            if !self.told.is_empty() {
                self.tell(sink);
            }
            if let Some(end) = self.end.take() {
                return end;
            }
            if limits.when_warm && self.warm {
                return End::Duration;
            }
            if self.counts.events >= limits.events {
                return End::Events(limits.events);
            }
            if self.tasks.len() > limits.tasks {
                return self.too_many_tasks(limits.tasks);
            }
            let Some((time, event)) = self.queue.pop() else { return self.nothing_left(limits.until) };
            if time > limits.until {
                self.queue.push(time, event);
                self.now = limits.until;
                return End::Duration;
            }
            debug_assert!(time >= self.now, "time never goes back");
            if self.tracing {
                self.tell_handlers(time);
            }
            self.now = time;
            self.counts.events += 1;
            if self.turns.is_none() || !self.awaits_turn(event) {
                self.handle(event);
            }
            if self.memory.is_dirty() {
                self.share_bandwidth();
            }
            if self.state_told.is_some() {
                self.tell_state(CpuId(0));
            }
        }
    }

    #[inline]
    pub fn handle(&mut self, event: Event) {
        match event {
            Event::Turn { number } => self.turn_over(number),
            Event::Cpu { cpu, number } => {
                if self.cpus[cpu].number == number {
                    self.cpus[cpu].armed = None;
                    self.advance(cpu);
                    self.go_on(cpu);
                }
            }
            Event::Timer { task, number } => self.timer(task, number),
            Event::Notify { cpu } => self.noticed(cpu),
            Event::Tick { cpu } => self.tick(cpu),
            Event::HrTick { cpu, number } => self.hrtick(cpu, number),
            Event::Deeper { cpu, number } => self.deeper(cpu, number),
            Event::Start { spec } => self.start(spec),
            Event::Period { tg, cpu } => self.period(tg, cpu),
            Event::Slack { tg, cpu } => self.slack(tg, cpu),
            Event::RtPeriod { cpu } => self.rt_period(cpu),
            Event::Replenish { task } => self.replenish(task),
            Event::DlInactive { task } => self.dl_inactive(task),
            Event::Irq { source } => self.source(source),
            Event::Pass { number } => {
                let pass = self.passes[number as usize];
                self.sched.balances_at(pass.cpu, pass.from, self.now + Duration(self.sched.tick_ns() / 2));
            }
            Event::Half { over } => self.half(over),
            Event::NoOverload { cpu } => self.sched.set_overload(cpu, false),
            Event::Change { number } => {
                let changes = self.changes.clone();
                self.change(&changes[number as usize].change);
            }
            Event::Device { device, slot } => self.device_done(device, slot),
            Event::Line { line } => self.line_comes(line),
            Event::Pay { sem } => self.pay(sem),
            Event::DeviceIrq { cpu, task } => self.device_irq(cpu, task),
        }
    }

    /// The queue is empty: all is done, or all wait for each other; of a workload with a duration until that is over.
    fn nothing_left(&mut self, until: Time) -> End {
        match self.foreground {
            0 => End::Done,
            // A run with a fixed duration lasts that long, even if tasks still wait.
            _ if self.workload.duration.is_some() => {
                self.now = until;
                End::Duration
            }
            _ => self.deadlock(),
        }
    }

    /// The task a CPU runs.
    #[inline]
    pub fn curr(&self, cpu: CpuId) -> Option<TaskId> {
        self.sched.curr(cpu).task()
    }

    /// Whether a CPU runs its idle task.
    #[inline]
    pub fn is_idle(&self, cpu: CpuId) -> bool {
        self.sched.curr(cpu) == Curr::Idle
    }

    /// Advances the execution of a CPU to now.
    #[inline]
    pub fn advance(&mut self, cpu: CpuId) {
        let Curr::Task(task) = self.sched.curr(cpu) else {
            self.cpus[cpu].advance(self.now, None);
            return;
        };
        let task = &mut self.tasks[task.index()];
        let worked = self.cpus[cpu].advance(self.now, Some(&mut task.work));
        if let Some(part) = task.stage.part() {
            self.cpus[cpu].account.charge_within(part, worked);
        }
    }

    /// Time the CPU spends in the kernel before it continues, as work of a call.
    #[inline]
    pub fn charge(&mut self, cpu: CpuId, ns: u64) {
        self.charge_to(cpu, Part::Call, ns);
    }

    /// The same for another part of the account.
    #[inline]
    pub fn charge_to(&mut self, cpu: CpuId, part: Part, ns: u64) {
        let entry = &mut self.cpus[cpu];
        let work = Work::nanos(ns);
        entry.overhead = entry.overhead.plus(work);
        entry.account.charge(part, work.time_at(entry.rate));
    }

    /// The same for costs that do not depend on the clock rate, such as the transfer of a line.
    pub fn charge_time(&mut self, cpu: CpuId, part: Part, ns: u64) {
        let entry = &mut self.cpus[cpu];
        entry.overhead = entry.overhead.plus(Work::done_in(ns, entry.rate));
        entry.account.charge(part, ns);
    }

    /// Arms the CPU's next event at a time; one armed earlier is left alone.
    #[inline]
    pub fn arm(&mut self, cpu: CpuId, at: Time) {
        let entry = &mut self.cpus[cpu];
        if entry.armed.is_some_and(|armed| armed <= at) {
            return;
        }
        entry.number = entry.number.wrapping_add(1);
        entry.armed = Some(at);
        self.queue.push(at, Event::Cpu { cpu, number: entry.number });
    }

    /// Changes a CPU's rate from now on.
    pub fn set_rate(&mut self, cpu: CpuId, rate: Rate) {
        if self.cpus[cpu].rate == rate {
            return;
        }
        self.advance(cpu);
        let streams = self.curr(cpu).is_some_and(|task| self.tasks[task.index()].streams);
        let entry = &mut self.cpus[cpu];
        entry.rate = rate;
        if !streams {
            entry.work_rate = rate;
        }
        if !self.is_idle(cpu) {
            self.arm_next(cpu);
        }
    }
}

/// The workload's CPU lists as masks of this machine. The lists were checked to fit.
fn masks(workload: &Workload, nr_cpus: usize) -> Vec<Arc<CpuMask>> {
    let mask =
        |list: &schedlab_workload::CpuList| Arc::new(list.mask(nr_cpus).expect("CPU lists fit the machine"));
    workload.cpu_lists.iter().map(mask).collect()
}
