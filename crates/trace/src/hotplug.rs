//! CPUs that go offline and come back.
//!
//! No scheduler tracepoint reports this, but the thread that takes a CPU offline and online (`cpuhp/3`) and the CPU's
//! stopper show it. To take the CPU offline, the thread first closes it to tasks and waits for RCU; at the end it is
//! parked, and the stopper runs and never returns. On the way back the CPU acts again, and its thread wakes the
//! requesting task when other tasks may run there.
//!
//! If these threads have no events, as in simulated traces, the tracepoints cpuhp:cpuhp_enter and cpuhp_exit show it:
//! the scheduler's callbacks have the names of its functions.
//!
//! Kernel: sched_cpu_deactivate(), takedown_cpu(), take_cpu_down(), sched_cpu_activate(), v4.13, v5.5, v6.1, v6.12, v7.2.

use schedlab_topology::CpuId;
use schedlab_units::Pid;

use crate::comm::Comm;
use crate::event::{Event, Kind};
use crate::kthread::bound_kthread;
use crate::state::TaskState;

/// How far a CPU has come in going offline or online.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hotplug {
    /// No more tasks may come, except kernel threads bound to it.
    Deactivating,
    /// An RCU grace period has passed; domains may exclude it.
    Deactivated,
    /// Its thread has finished its part.
    Parked,
    /// It is offline.
    Dead,
    /// It is back, but only for kernel threads bound to it.
    Starting,
    /// Its thread is woken to open it to tasks.
    Called,
    /// Tasks may come.
    Active,
    /// The requesting task continues after the CPU is offline or online, and deferred work runs.
    Done,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Up,
    Leaving,
    Unplugged,
    /// Its thread is parked; the CPU itself is still running.
    Parked,
    /// Its stopper runs, and no event has followed.
    Off,
    /// It is back; its thread is still parked.
    Started,
    Coming,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    state: State,
    /// The task that last woke its thread.
    asked_by: Pid,
    /// There was a wake-up of its thread.
    has_thread: bool,
    /// The step of a callback that has not ended, and its number.
    callback: Option<(i32, Hotplug)>,
    /// The requesting task has not continued yet.
    not_done: bool,
}

/// Reads from a trace which CPUs go offline and come back.
#[derive(Clone, Debug, Default)]
pub struct Hotplugs {
    cpus: Vec<Cpu>,
    /// Number of CPUs that are not simply online.
    under_way: usize,
}

impl Hotplugs {
    /// Starts with these CPUs offline.
    pub fn new(offline: impl IntoIterator<Item = CpuId>) -> Hotplugs {
        let mut hotplugs = Hotplugs::default();
        for cpu in offline {
            hotplugs.cpu(cpu).state = State::Off;
            hotplugs.under_way += 1;
        }
        hotplugs
    }

    /// The CPU that took a step with this event, and the step.
    #[inline]
    pub fn event(&mut self, event: &Event) -> Option<(CpuId, Hotplug)> {
        let thread_of = match event.kind {
            Kind::SchedSwitch { prev_comm, .. } => cpu_of_thread(&prev_comm),
            Kind::SchedWaking { comm, .. } => cpu_of_thread(&comm),
            Kind::CpuhpEnter { .. } | Kind::CpuhpExit { .. } => return self.told(event),
            _ => None,
        };
        if self.under_way == 0 && thread_of.is_none() { None } else { self.follow(event, thread_of) }
    }

    fn follow(&mut self, event: &Event, thread_of: Option<CpuId>) -> Option<(CpuId, Hotplug)> {
        if let (Kind::SchedWaking { .. }, Some(cpu)) = (&event.kind, thread_of) {
            (self.cpu(cpu).asked_by, self.cpu(cpu).has_thread) = (event.pid, true);
        }
        self.step_of(event).inspect(|_| self.count())
    }

    /// The step that a callback shows for a CPU without events of its thread.
    fn told(&mut self, event: &Event) -> Option<(CpuId, Hotplug)> {
        let (cpu, step) = match event.kind {
            Kind::CpuhpEnter { cpu, idx, ref fun, .. } => {
                let (begins, ends) = match &**fun {
                    "sched_cpu_deactivate" => (Some(Hotplug::Deactivating), Some(Hotplug::Deactivated)),
                    "sched_cpu_dying" => (Some(Hotplug::Dead), None),
                    "sched_cpu_starting" => (Some(Hotplug::Starting), None),
                    "sched_cpu_activate" => (None, Some(Hotplug::Active)),
                    _ => return None,
                };
                self.cpu(cpu).callback = ends.map(|step| (idx, step));
                (cpu, begins)
            }
            Kind::CpuhpExit { cpu, idx, ret, .. } => {
                let ended = self.cpu(cpu).callback.take_if(|(callback, _)| *callback == idx);
                (cpu, ended.map(|(_, step)| step).filter(|_| ret == 0))
            }
            _ => return None,
        };
        let step = step.filter(|_| !self.cpu(cpu).has_thread)?;
        if matches!(step, Hotplug::Dead | Hotplug::Active) {
            let entry = self.cpu(cpu);
            (entry.not_done, entry.asked_by) = (true, event.pid);
            self.count();
        }
        Some((cpu, step))
    }

    fn count(&mut self) {
        self.under_way = self.cpus.iter().filter(|cpu| cpu.state != State::Up || cpu.not_done).count();
    }

    fn step_of(&mut self, event: &Event) -> Option<(CpuId, Hotplug)> {
        if let Kind::SchedWaking { comm, .. } = event.kind
            && let Some(cpu) = cpu_of_thread(&comm).filter(|&cpu| self.cpu(cpu).state == State::Started)
        {
            return Some((cpu, Hotplug::Called));
        }
        if let Kind::SchedSwitch { prev_pid, prev_state, .. } = event.kind
            && !prev_state.is_runnable()
            && let Some(done) = self.cpus.iter().position(|cpu| cpu.not_done && cpu.asked_by == prev_pid)
        {
            self.cpus[done].not_done = false;
            return Some((CpuId::from(done), Hotplug::Done));
        }
        if let Some(cpu) = got_another(event)
            && !matches!(self.cpu(cpu).state, State::Up | State::Off)
        {
            // The CPU stayed online after all, or came online before it was tracked.
            self.cpu(cpu).state = State::Up;
            return Some((cpu, Hotplug::Active));
        }
        let step = self.step_on(event)?;
        let cpu = self.cpu(event.cpu);
        cpu.not_done |= matches!(step, Hotplug::Dead | Hotplug::Active);
        Some((event.cpu, step))
    }

    /// The step that the event's CPU took.
    fn step_on(&mut self, event: &Event) -> Option<Hotplug> {
        let cpu = self.cpu(event.cpu);
        let by_thread = cpu_of_thread(&event.comm) == Some(event.cpu);
        let (state, step) = match (cpu.state, &event.kind) {
            (State::Up, Kind::SchedSwitch { prev_state, .. })
                if by_thread && *prev_state == TaskState::UNINTERRUPTIBLE =>
            {
                (State::Leaving, Some(Hotplug::Deactivating))
            }
            (State::Leaving, _) if by_thread => (State::Unplugged, Some(Hotplug::Deactivated)),
            (State::Unplugged, Kind::SchedSwitch { prev_state, .. })
                if by_thread && *prev_state == TaskState::PARKED =>
            {
                (State::Parked, Some(Hotplug::Parked))
            }
            (State::Parked | State::Off, Kind::SchedSwitch { next_comm, .. })
                if cpu_of(next_comm, b"migration/") == Some(event.cpu) =>
            {
                (State::Off, (cpu.state == State::Parked).then_some(Hotplug::Dead))
            }
            // If the stopper itself continues, it had another job.
            (State::Off, _) if event.shown() != Pid::IDLE => (State::Parked, Some(Hotplug::Starting)),
            (State::Off, _) => (State::Started, Some(Hotplug::Starting)),
            (State::Parked | State::Started, Kind::SchedSwitch { next_comm, .. })
                if cpu_of_thread(next_comm) == Some(event.cpu) =>
            {
                (State::Coming, None)
            }
            (State::Coming, Kind::SchedWaking { pid, .. }) if by_thread && *pid == cpu.asked_by => {
                (State::Up, Some(Hotplug::Active))
            }
            _ => return None,
        };
        cpu.state = state;
        step
    }

    fn cpu(&mut self, cpu: CpuId) -> &mut Cpu {
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize(cpu.index() + 1, Cpu::default());
        }
        &mut self.cpus[cpu.index()]
    }
}

/// The CPU that a hotplug thread serves.
fn cpu_of_thread(comm: &Comm) -> Option<CpuId> {
    cpu_of(comm, b"cpuhp/")
}

/// The CPU of a kernel thread whose name begins with `name`.
fn cpu_of(comm: &Comm, name: &[u8]) -> Option<CpuId> {
    if comm.as_bytes().starts_with(name) { bound_kthread(comm) } else { None }
}

/// The CPU on which a task other than its own kernel threads was placed.
fn got_another(event: &Event) -> Option<CpuId> {
    let (comm, cpu) = match event.kind {
        Kind::SchedWakeupNew { comm, target_cpu, .. } => (comm, target_cpu),
        Kind::SchedMigrateTask { comm, dest_cpu, .. } => (comm, dest_cpu),
        _ => return None,
    };
    (bound_kthread(&comm) != Some(cpu)).then_some(cpu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{Record, ftrace};

    /// A switch on CPU 3, and a wake-up that begins.
    fn switch(prev: &str, state: &str, next: &str) -> String {
        on(3, prev, state, next)
    }

    fn on(cpu: u32, prev: &str, state: &str, next: &str) -> String {
        let (prev_pid, next_pid) = (pid(prev), pid(next));
        format!(
            "{prev}-{prev_pid} [00{cpu}] d..2. 1.0: sched_switch: prev_comm={prev} prev_pid={prev_pid} prev_prio=120 \
             prev_state={state} ==> next_comm={next} next_pid={next_pid} next_prio=120"
        )
    }

    fn wakes(cpu: u32, by: &str, whom: &str) -> String {
        let (by_pid, pid) = (pid(by), pid(whom));
        format!(
            "{by}-{by_pid} [00{cpu}] d..3. 1.0: sched_waking: comm={whom} pid={pid} prio=120 target_cpu=003"
        )
    }

    fn moves(comm: &str, to: u32) -> String {
        format!(
            "a-9 [001] d..2. 1.0: sched_migrate_task: comm={comm} pid=7 prio=120 orig_cpu=1 dest_cpu={to}"
        )
    }

    fn pid(comm: &str) -> u32 {
        match comm {
            "swapper/3" => 0,
            "init" => 1,
            "cpuhp/3" => 34,
            "migration/3" => 36,
            _ => 50,
        }
    }

    fn read(line: &str) -> Event {
        match ftrace::Reader::new(line.as_bytes()).next() {
            Some(Ok(Record::Event(event))) => event,
            other => panic!("{line}: {other:?}"),
        }
    }

    /// The steps that lines show, each with the number of its line.
    fn told(lines: &[String]) -> String {
        let mut hotplugs = Hotplugs::default();
        let steps = lines.iter().enumerate().filter_map(|(line, text)| {
            hotplugs.event(&read(text)).map(|(cpu, step)| format!("{line} {cpu} {step:?}"))
        });
        steps.collect::<Vec<_>>().join(", ")
    }

    fn leaving() -> Vec<String> {
        vec![
            wakes(0, "init", "cpuhp/3"),
            switch("a", "S", "cpuhp/3"),
            switch("cpuhp/3", "D", "b"),
            switch("b", "R", "migration/3"),
            switch("migration/3", "S", "swapper/3"),
            switch("swapper/3", "R", "cpuhp/3"),
            wakes(3, "cpuhp/3", "ksoftirqd/3"),
            switch("cpuhp/3", "P", "swapper/3"),
        ]
    }

    #[test]
    fn a_cpu_leaves_and_comes_back() {
        let mut lines = leaving();
        lines.extend([
            switch("swapper/3", "R", "migration/3"),
            on(0, "init", "D", "a"),
            wakes(3, "swapper/3", "migration/3"),
            switch("swapper/3", "R", "migration/3"),
        ]);
        let left = "2 3 Deactivating, 6 3 Deactivated, 7 3 Parked, 8 3 Dead, 9 3 Done, 10 3 Starting";
        assert_eq!(told(&lines), left);
        lines.extend([
            switch("migration/3", "S", "swapper/3"),
            wakes(1, "init", "cpuhp/3"),
            switch("swapper/3", "R", "cpuhp/3"),
            wakes(3, "cpuhp/3", "init"),
            on(1, "init", "R", "a"),
            on(1, "init", "S", "a"),
        ]);
        assert_eq!(told(&lines), format!("{left}, 13 3 Called, 15 3 Active, 17 3 Done"));
    }

    /// A callback of CPU 3 begins, or has ended.
    fn callback(by: &str, state: i32, fun: Option<&str>) -> String {
        let what = match fun {
            Some(fun) => format!("cpuhp_enter: cpu: 0003 target:   0 step: {state:3} ({fun})"),
            None => format!("cpuhp_exit:  cpu: 0003  state: {state:3} step: {state:3} ret: 0"),
        };
        format!("{by}-{} [003] d..1. 1.0: {what}", pid(by))
    }

    #[test]
    fn callbacks_tell_where_no_thread_does() {
        let mut lines = vec![
            callback("migration/3", 235, Some("sched_cpu_deactivate")),
            moves("a", 2),
            callback("migration/3", 235, None),
            callback("migration/3", 90, Some("sched_cpu_dying")),
            callback("migration/3", 90, None),
            switch("migration/3", "S", "swapper/3"),
            callback("init", 90, Some("sched_cpu_starting")),
            callback("init", 90, None),
            callback("init", 42, Some("page_alloc_cpu_online")),
            callback("init", 42, None),
            callback("init", 235, Some("sched_cpu_activate")),
            callback("init", 235, None),
            on(1, "init", "S", "a"),
        ];
        let told_by_callbacks =
            "0 3 Deactivating, 2 3 Deactivated, 3 3 Dead, 5 3 Done, 6 3 Starting, 11 3 Active, 12 3 Done";
        assert_eq!(told(&lines), told_by_callbacks);
        // The thread shows more than the callbacks.
        lines.insert(0, wakes(0, "init", "cpuhp/3"));
        assert_eq!(told(&lines), "");
    }

    #[test]
    fn a_stopper_that_goes_on_had_something_else_to_do() {
        let mut lines = leaving();
        lines.extend([
            switch("swapper/3", "R", "migration/3"),
            switch("migration/3", "S", "swapper/3"),
            switch("swapper/3", "R", "migration/3"),
        ]);
        let left = "2 3 Deactivating, 6 3 Deactivated, 7 3 Parked, 8 3 Dead, 9 3 Starting, 10 3 Dead";
        assert_eq!(told(&lines), left);
    }

    #[test]
    fn a_thread_that_only_did_something_takes_no_cpu_out() {
        let lines = [wakes(0, "init", "cpuhp/3"), switch("a", "S", "cpuhp/3"), wakes(3, "cpuhp/3", "init")];
        assert_eq!(told(&[&lines[..], &[switch("cpuhp/3", "S", "b")]].concat()), "");
    }

    #[test]
    fn a_cpu_that_gets_a_task_while_it_leaves_stays() {
        let mut lines = leaving()[..3].to_vec();
        lines.extend([moves("kworker/3:1", 3), moves("kworker/1:1", 2), moves("kworker/u8:3", 3)]);
        assert_eq!(told(&lines), "2 3 Deactivating, 5 3 Active");
    }

    #[test]
    fn a_cpu_that_was_not_there_comes() {
        let mut hotplugs = Hotplugs::new([CpuId(3)]);
        let event = read(&wakes(3, "swapper/3", "migration/3"));
        assert_eq!(hotplugs.event(&event), Some((CpuId(3), Hotplug::Starting)));
        // A task that is placed there shows that the CPU is online, even if events are missing.
        assert_eq!(hotplugs.event(&read(&moves("a", 3))), Some((CpuId(3), Hotplug::Active)));
    }
}
