//! The one window through which a decision reads the state.
//!
//! A [`View`] shows a decider its run queues and records which were examined. The simulator uses this to charge
//! the scan, and an explanation to list the CPUs passed over.

use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use crate::wakeup::ForkFacts;
use crate::{CfsRqId, Curr, Kernel, Reason, Rq, Sched, SchedGroup, SdId, SharedId, Supposed};

macro_rules! refusals {
    ($($(#[doc = $doc:literal])* $variant:ident = $name:literal,)*) => {
        /// Why a CPU was passed over.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Refused { $($(#[doc = $doc])* $variant,)* }

        impl Refused {
            /// Its word in traces and sentences.
            pub fn name(self) -> &'static str {
                match self { $(Refused::$variant => $name,)* }
            }
        }
    };
}

refusals! {
    /// Something runs or is queued there.
    Busy = "BUSY",
    /// A remote wake-up is pending there.
    WakePending = "WAKE_PENDING",
    /// Its virtual CPU is preempted.
    VcpuPreempted = "VCPU_PREEMPTED",
    /// The task may not run there.
    NotAllowed = "NOT_ALLOWED",
    /// Not on the same last-level cache.
    OtherLlc = "OTHER_LLC",
    /// Not on the same cluster.
    OtherCluster = "OTHER_CLUSTER",
    /// A sibling is busy.
    CoreBusy = "CORE_BUSY",
    /// Too small for the task.
    TooSmall = "TOO_SMALL",
    /// Too much of it is taken by interrupts and RT.
    ReducedCapacity = "REDUCED_CAPACITY",
    /// Another was idle in a shallower state.
    DeeperIdle = "DEEPER_IDLE",
    /// Another went idle more recently.
    IdleLonger = "IDLE_LONGER",
    /// Another has less load.
    MoreLoad = "MORE_LOAD",
    /// Another group has more idle CPUs, or is of a better type.
    WorseGroup = "WORSE_GROUP",
}

/// A CPU that was examined and not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Which.
    pub cpu: CpuId,
    /// Why not.
    pub refused: Refused,
}

/// What a placement decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The CPU chosen for the task.
    pub cpu: CpuId,
    /// Why that CPU.
    pub reason: Reason,
    /// The reason and the answer of the affine step; `None` for fork and exec.
    pub affine: Option<(Reason, CpuId)>,
    /// The number that decided the affine step, with its name.
    pub affine_number: Option<(&'static str, i64)>,
    /// CPUs examined in scans: the cost of the search.
    pub examined: u32,
    /// The number that decided, with its name, for explanations.
    pub number: Option<(&'static str, i64)>,
    /// The wakee's average is updated, as its CPU was chosen by capacity.
    pub syncs: bool,
    /// The wakee's recently used CPU after the decision.
    pub recent_used_cpu: Option<CpuId>,
    /// The waker's recently used CPU after the decision (v5.5).
    pub waker_recent_used_cpu: Option<CpuId>,
    /// The search for an idle core failed: clear has_idle_cores of the LLC of this CPU.
    pub clear_idle_cores: Option<CpuId>,
    /// SIS_PROP: a complete scan examined this many CPUs of this CPU's LLC.
    pub scan_to_account: Option<u32>,
    /// The CPU that the waker's CPU took, of several that it takes in turn.
    pub in_turn: bool,
}

impl Placement {
    /// A placement with no side effects.
    pub fn new(cpu: CpuId, reason: Reason) -> Placement {
        Placement {
            cpu,
            reason,
            affine: None,
            affine_number: None,
            examined: 0,
            number: None,
            syncs: false,
            recent_used_cpu: None,
            waker_recent_used_cpu: None,
            clear_idle_cores: None,
            scan_to_account: None,
            in_turn: false,
        }
    }
}

/// What the placement of a new task depends on, besides the tasks on each CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leans {
    /// With other averages another group or CPU could be chosen.
    pub averages: bool,
    /// Another CPU could be chosen if it went idle at this time or later.
    pub idle_stamp: u64,
}

impl Default for Leans {
    fn default() -> Leans {
        Leans { averages: false, idle_stamp: u64::MAX }
    }
}

/// The window.
pub struct View<'a> {
    /// The state.
    pub(crate) sched: &'a Sched,
    /// The instant.
    pub now: Time,
    examined: Cell<u32>,
    number: Cell<Option<(&'static str, i64)>>,
    passed_over: Option<&'a RefCell<Vec<Candidate>>>,
    leans: Cell<Leans>,
    /// Values assumed instead of the state's. Such a question does not change the state.
    supposed: Option<&'a Supposed<'a>>,
}

impl<'a> View<'a> {
    /// A window on the state at an instant. With `passed_over`, rejected CPUs are listed there.
    pub fn new(sched: &'a Sched, now: Time, passed_over: Option<&'a RefCell<Vec<Candidate>>>) -> View<'a> {
        View {
            sched,
            now,
            examined: Cell::new(0),
            number: Cell::new(None),
            passed_over,
            leans: Cell::new(Leans::default()),
            supposed: None,
        }
    }

    /// A window in which some values differ from the state. Questions through it are hypothetical: the load factors
    /// of queues are not kept for the rest of the jiffy.
    pub fn supposing(sched: &'a Sched, now: Time, supposed: &'a Supposed<'a>) -> View<'a> {
        View { supposed: Some(supposed), ..View::new(sched, now, None) }
    }

    /// Averages and idle stamps assumed for the placement of a new task.
    #[inline]
    pub(crate) fn facts(&self) -> Option<&'a ForkFacts> {
        self.supposed.and_then(|supposed| supposed.fork)
    }

    #[inline]
    fn or<T>(&self, supposed: impl FnOnce(&Supposed) -> Option<T>, state: impl FnOnce() -> T) -> T {
        self.supposed.and_then(supposed).unwrap_or_else(state)
    }

    /// How many CPUs of a cache a search may examine.
    #[inline]
    pub(crate) fn nr_idle_scan(&self, llc: SharedId) -> u32 {
        self.or(|supposed| supposed.nr_idle_scan, || self.sched.domains.shared[llc.0 as usize].nr_idle_scan)
    }

    /// How long searches over a domain took on average, ns.
    #[inline]
    pub(crate) fn avg_scan_cost(&self, sd: SdId) -> u64 {
        self.or(|supposed| supposed.avg_scan_cost, || self.sched.domains.sd(sd).avg_scan_cost)
    }

    /// Some core of the CPU's last-level cache may be wholly idle.
    #[inline]
    pub(crate) fn test_idle_cores(&self, cpu: CpuId) -> bool {
        self.or(|supposed| supposed.has_idle_cores, || self.sched.test_idle_cores(cpu))
    }

    /// The CPU that a task used recently.
    #[inline]
    pub(crate) fn recent_used_cpu(&self, task: TaskId) -> Option<CpuId> {
        let supposed = self.supposed.and_then(|supposed| supposed.recent_used_cpu);
        supposed.or(self.sched.task(task).recent_used_cpu)
    }

    /// Whether affinity kept a pass from taking tasks of a group.
    #[inline]
    pub(crate) fn is_imbalanced(&self, sgc: u32) -> bool {
        self.or(|supposed| supposed.imbalance(sgc), || self.sched.domains.sgcs[sgc as usize].imbalance)
    }

    /// How many passes over a domain have failed.
    pub(crate) fn nr_balance_failed(&self, sd: SdId) -> u32 {
        self.or(|supposed| supposed.nr_balance_failed, || self.sched.domains.sd(sd).nr_balance_failed)
    }

    /// Hierarchical load of a queue.
    pub(crate) fn cfs_rq_h_load(&self, cfs: CfsRqId) -> u64 {
        self.sched.h_load(cfs, self.now, self.supposed.is_none())
    }

    /// Load of a task at the root of its CPU.
    pub(crate) fn task_h_load(&self, task: TaskId) -> u64 {
        let se = &self.sched.task(task).se;
        let cfs = se.cfs_rq.expect("task has a queue");
        se.avg.load_avg * self.cfs_rq_h_load(cfs) / (self.sched.cfs(cfs).avg.load_avg + 1)
    }

    /// Load of a CPU.
    #[inline]
    pub(crate) fn cpu_load(&self, cpu: CpuId) -> u64 {
        self.facts().map_or_else(|| self.sched.cpu_load(cpu), |facts| facts.load(cpu))
    }

    /// When a CPU went idle.
    #[inline]
    pub(crate) fn idle_stamp(&self, cpu: CpuId) -> u64 {
        self.facts().map_or_else(|| self.rq(cpu).idle_stamp, |facts| facts.idle_stamp(cpu))
    }

    /// The kernel whose rules decide.
    #[inline]
    pub fn kernel(&self) -> &'a Kernel {
        &self.sched.kernel
    }

    /// A CPU's run queue.
    #[inline]
    pub fn rq(&self, cpu: CpuId) -> &'a Rq {
        &self.sched.rqs[cpu]
    }

    /// Ticks since the start.
    #[inline]
    pub fn jiffies(&self) -> u64 {
        self.sched.jiffies(self.now)
    }

    /// A CPU is examined.
    #[inline]
    pub fn examine(&self, cpu: CpuId) {
        self.examined.set(self.examined.get() + 1);
        self.sched.looked.note(cpu);
    }

    /// All CPUs of a group are examined.
    #[inline]
    pub fn examine_group(&self, group: &SchedGroup) {
        self.examined.set(self.examined.get() + group.group_weight);
        self.sched.looked.note_all(&group.span);
    }

    /// How many CPUs were examined so far.
    #[inline]
    pub fn examined(&self) -> u32 {
        self.examined.get()
    }

    /// Records the number that decides, for explanations; the last one recorded counts.
    #[inline]
    pub fn decided_by(&self, name: &'static str, value: i64) {
        self.number.set(Some((name, value)));
    }

    /// Records whether the placement of a new task depends on averages.
    #[inline]
    pub(crate) fn leans_if(&self, averages: bool) {
        let leans = self.leans.get();
        self.leans.set(Leans { averages: leans.averages | averages, ..leans });
    }

    /// Records that a CPU was preferred because it went idle last, at this time.
    #[inline]
    pub(crate) fn leans_on_stamp(&self, stamp: u64) {
        let leans = self.leans.get();
        self.leans.set(Leans { idle_stamp: leans.idle_stamp.min(stamp), ..leans });
    }

    /// What the placement depends on.
    pub fn leans(&self) -> Leans {
        self.leans.get()
    }

    /// Takes the number recorded last.
    pub fn take_number(&self) -> Option<(&'static str, i64)> {
        self.number.take()
    }

    /// The number recorded last.
    pub fn number(&self) -> Option<(&'static str, i64)> {
        self.number.get()
    }

    /// Whether the rejected CPUs are wanted.
    #[inline]
    pub(crate) fn lists_refused(&self) -> bool {
        self.passed_over.is_some()
    }

    /// Records that a CPU was passed over because it is not idle.
    pub fn refuse_busy(&self, cpu: CpuId) {
        if self.passed_over.is_some() {
            let rq = self.rq(cpu);
            let busy = rq.curr != Curr::Idle || rq.nr_running > 0;
            self.refuse(cpu, if busy { Refused::Busy } else { Refused::WakePending });
        }
    }

    /// Records that a CPU was passed over.
    #[inline]
    pub fn refuse(&self, cpu: CpuId, refused: Refused) {
        if let Some(list) = self.passed_over {
            list.borrow_mut().push(Candidate { cpu, refused });
        }
    }
}
