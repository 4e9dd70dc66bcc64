//! One run queue drawn in virtual time, the language of the tests about picking.
//!
//! ```text
//! a* v=0 d=3 | b v=-1 d=2 nice=5 | c v=4 slice=1 delayed next
//! ```
//!
//! `*` runs; `v` is its vruntime and `d` its deadline in ms from the floor (by default three after `v`);
//! `slice` a slice of its own, ms; `nice`, `batch`, `idle`, `fifo`; `ran` for how long it runs already, ms;
//! `protected`, `delayed`; the marks `next`, `last`, `skip`.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use crate::drawing::machine;
use crate::{
    CfsRqId, Curr, Kernel, LoadWeight, NewTask, Policy, Protection, Queued, Reason, Sched, SeId, TaskState,
    Took,
};

const MS: u64 = 1_000_000;

/// Virtual time of the floor.
const FLOOR: u64 = 1_000 * MS;

pub(crate) const CPU: CpuId = CpuId(0);
pub(crate) const CFS: CfsRqId = CfsRqId(0);

pub(crate) struct Drawn {
    pub(crate) sched: Sched,
    names: Vec<String>,
}

/// Milliseconds with up to three digits after the point, as ns.
fn ms(text: &str) -> i64 {
    let (whole, part) =
        text.trim_start_matches('-').split_once('.').unwrap_or((text.trim_start_matches('-'), ""));
    let part = format!("{part:0<3}");
    let ns = whole.parse::<i64>().unwrap() * 1_000_000 + part.parse::<i64>().unwrap() * 1_000;
    if text.starts_with('-') { -ns } else { ns }
}

/// The queue of CPU 0 of a machine of eight.
pub(crate) fn draw(kernel: &str, drawing: &str) -> Drawn {
    let kernel = Kernel::parse(kernel).unwrap();
    let mut sched = Sched::new(&machine("1x1x8"), &kernel, Took::default(), 1);
    sched.cfs_mut(CFS).min_vruntime = FLOOR;
    sched.cfs_mut(CFS).zero_vruntime = FLOOR;
    let mut drawn = Drawn { sched, names: Vec::new() };
    for text in drawing.split('|') {
        drawn.add(text.trim());
    }
    drawn.sched.effects.clear();
    drawn
}

impl Drawn {
    fn add(&mut self, text: &str) {
        let mut words = text.split(' ');
        let name = words.next().unwrap();
        let words: Vec<&str> = words.collect();
        let value = |key: &str| words.iter().find_map(|w| w.strip_prefix(key)?.strip_prefix('='));
        let has = |word: &str| words.contains(&word);
        let policy = match () {
            () if has("batch") => Policy::Batch,
            () if has("idle") => Policy::Idle,
            () if has("fifo") => Policy::Fifo(1),
            () => Policy::Normal,
        };
        let spec = NewTask {
            policy,
            nice: value("nice").map_or(0, |n| n.parse().unwrap()),
            slice: value("slice").map(|s| ms(s) as u64),
            ..NewTask::plain(8)
        };
        let task = self.sched.new_task(&spec, None, Time(0));
        self.names.push(name.trim_end_matches('*').to_string());
        self.sched.set_cpu(task, CPU);
        let at = |text: &str| FLOOR.wrapping_add(ms(text) as u64);
        let vruntime = at(value("v").unwrap_or("0"));
        let eevdf = self.sched.is_eevdf();
        let rules = self.sched.kernel.rules;
        let ran = value("ran").map_or(0, |ran| ms(ran) as u64);
        let entry = self.sched.task_mut(task);
        entry.state = TaskState::Running;
        entry.on_rq = true;
        let se = &mut entry.se;
        se.vruntime = vruntime;
        se.deadline = value("d").map_or(vruntime + 3 * MS, at);
        se.sum_exec_runtime = ran;
        se.on_rq = true;
        se.sched_delayed = has("delayed");
        match rules.protection {
            Protection::MinSlice => se.vprot = if has("protected") { se.deadline } else { se.vruntime },
            _ => se.vlag = se.deadline as i64 + !has("protected") as i64,
        }
        let (se, load) = (SeId(task.0), se.load);
        if policy.is_fair() {
            let runnable = !has("delayed") as u32;
            let queue = self.sched.cfs_mut(CFS);
            queue.nr_queued += 1;
            queue.h_nr_queued += 1;
            queue.h_nr_runnable += runnable;
            queue.load = LoadWeight { weight: queue.load.weight + load.weight, inv_weight: 0 };
            for (mark, slot) in
                [("next", &mut queue.next), ("last", &mut queue.last), ("skip", &mut queue.skip)]
            {
                if has(mark) {
                    *slot = Some(se);
                }
            }
        }
        self.sched.rqs[CPU].nr_running += 1;
        if name.ends_with('*') {
            self.sched.rqs[CPU].curr = Curr::Task(task);
            if policy.is_fair() {
                self.sched.cfs_mut(CFS).curr = Some(se);
            }
        } else if policy.is_fair() {
            let entity = self.sched.se(se);
            let key = if eevdf { entity.deadline } else { vruntime };
            let entry = Queued { key, vruntime, slice: entity.slice, se };
            let queue = &mut self.sched.cfs_rqs[0];
            queue.timeline.insert(entry);
            if eevdf {
                queue.account_avg(&rules, vruntime, load.weight, true);
            }
        }
    }

    pub(crate) fn name(&self, se: SeId) -> &str {
        &self.names[se.0 as usize]
    }

    pub(crate) fn task(&self, name: &str) -> TaskId {
        TaskId(self.names.iter().position(|n| n == name).expect("the task is drawn") as u32)
    }

    /// The task that is picked at a switch, and why.
    pub(crate) fn pick(&self) -> String {
        let (se, reason): (SeId, Reason) = match self.sched.is_eevdf() {
            true => self.sched.pick_eevdf_next(CFS),
            false => self.sched.pick_cfs(CFS, self.sched.queued_curr(CFS)),
        };
        format!("{} {}", self.name(se), reason.name())
    }

    /// The reschedule request of a task that was just woken, with its side effects.
    pub(crate) fn wake(&self, name: &str, flags: u32) -> String {
        let decision = self.sched.check_preempt(CPU, self.task(name), flags);
        let mut text = match (decision.preempt, decision.lazy) {
            (false, _) => "keep".to_string(),
            (true, false) => "preempt".to_string(),
            (true, true) => "preempt lazily".to_string(),
        };
        text += &format!(", {}", decision.reason.name());
        let then = decision.then;
        for (what, se) in [
            ("next", then.next_buddy),
            ("last", then.last_buddy),
            ("unprotect", then.cancel),
            ("protect less", then.lower),
            ("prefer if shorter", then.short_buddy),
            ("dequeue", then.dequeue),
        ] {
            if let Some(se) = se {
                text += &format!(", {what} {}", self.name(se));
            }
        }
        text
    }
}
