//! Preemption models: which bit asks for a reschedule, and where it is honoured.
//!
//! The two tables of the PREEMPT_AUTO mail are the two functions
//! [`Preempt::lazy_request`] and [`Preempt::honours`].

use alloc::format;
use alloc::string::{String, ToString};

/// How the kernel was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PreemptBuild {
    /// One model compiled in; none and voluntary keep no preempt count.
    Static,
    /// PREEMPT_DYNAMIC: chosen at boot, built preemptible.
    Dynamic,
    /// PREEMPT_AUTO (2024, out of tree).
    Auto,
}

/// What the user chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PreemptModel {
    /// Reschedule at explicit points and at the exit to user mode.
    None,
    /// Also where the kernel might sleep.
    Voluntary,
    /// Wherever the preempt count is zero.
    Full,
    /// Preemptible, but the fair class asks lazily (v6.13).
    Lazy,
}

/// Build and model together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Preempt {
    /// Build.
    pub build: PreemptBuild,
    /// Model.
    pub model: PreemptModel,
}

/// Requests pending for the current task of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NeedResched {
    /// TIF_NEED_RESCHED.
    pub full: bool,
    /// TIF_NEED_RESCHED_LAZY.
    pub lazy: bool,
}

impl NeedResched {
    /// Whether either bit is set.
    #[inline]
    pub fn any(self) -> bool {
        self.full || self.lazy
    }
}

/// A place where a pending request may be honoured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    /// Return to user mode from a system call or interrupt, or entry to a guest.
    ExitToUser,
    /// Return from an interrupt to preemptible kernel code.
    IrqReturnToKernel,
    /// preempt_enable() that drops the count to zero.
    PreemptEnable,
    /// cond_resched().
    CondResched,
    /// might_sleep() with might_resched().
    MightSleep,
    /// The idle loop.
    IdleLoop,
}

impl Preempt {
    /// As kernel strings write it: `voluntary`, `auto/none`.
    pub fn name(self) -> String {
        let model = match self.model {
            PreemptModel::None => "none",
            PreemptModel::Voluntary => "voluntary",
            PreemptModel::Full => "full",
            PreemptModel::Lazy => "lazy",
        };
        if self.build == PreemptBuild::Auto { format!("auto/{model}") } else { model.to_string() }
    }

    /// Whether kernel code can be preempted at all.
    pub fn kernel_preemptible(self) -> bool {
        self.build == PreemptBuild::Auto || matches!(self.model, PreemptModel::Full | PreemptModel::Lazy)
    }

    /// Whether the kernel was built so that its code can be preempted (CONFIG_PREEMPTION),
    /// whatever was chosen at boot.
    pub fn is_preemption(self) -> bool {
        self.build != PreemptBuild::Static || self.kernel_preemptible()
    }

    /// The bit to set when a task asks for a CPU: true for the lazy one.
    /// `higher_class` says whether the asking task is of a higher class than the
    /// current one; `curr_idle` whether the CPU runs its idle task.
    pub fn lazy_request(self, higher_class: bool, curr_idle: bool) -> bool {
        if curr_idle {
            return false;
        }
        match (self.build, self.model) {
            (_, PreemptModel::Lazy) => !higher_class,
            (PreemptBuild::Auto, PreemptModel::None) => true,
            (PreemptBuild::Auto, PreemptModel::Voluntary) => !higher_class,
            _ => false,
        }
    }

    /// Whether pending requests are acted on at a point.
    pub fn honours(self, point: Point, pending: NeedResched) -> bool {
        match point {
            Point::ExitToUser => pending.any(),
            Point::IdleLoop => pending.full,
            Point::IrqReturnToKernel | Point::PreemptEnable => pending.full && self.kernel_preemptible(),
            Point::CondResched => {
                pending.full
                    && !self.kernel_preemptible()
                    && matches!(self.model, PreemptModel::None | PreemptModel::Voluntary)
            }
            Point::MightSleep => {
                pending.full && !self.kernel_preemptible() && self.model == PreemptModel::Voluntary
            }
        }
    }

    /// Whether a lazy request still pending at the tick becomes a full one.
    pub fn tick_upgrades(self) -> bool {
        self.build == PreemptBuild::Auto || self.model == PreemptModel::Lazy
    }
}
