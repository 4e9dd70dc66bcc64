//! Preemption models: which bit requests a reschedule, and where it is honoured.
//!
//! The two tables of the PREEMPT_AUTO mail are the two functions
//! [`Preempt::lazy_request`] and [`Preempt::honours`].

use alloc::format;
use alloc::string::{String, ToString};

/// How the kernel was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PreemptBuild {
    /// One model compiled in; `none` and `voluntary` keep no preempt count.
    Static,
    /// PREEMPT_DYNAMIC: chosen at boot, built preemptible.
    Dynamic,
    /// PREEMPT_AUTO (2024, out of tree).
    Auto,
}

/// The model chosen by the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PreemptModel {
    /// Reschedule at explicit points and at the exit to user mode.
    None,
    /// Also where the kernel might sleep.
    Voluntary,
    /// Wherever the preempt count is zero.
    Full,
    /// Preemptible, but requests of the fair class are lazy (v6.13).
    Lazy,
}

impl PreemptModel {
    /// As the kernel's parameter `preempt=` has it.
    pub fn name(self) -> &'static str {
        match self {
            PreemptModel::None => "none",
            PreemptModel::Voluntary => "voluntary",
            PreemptModel::Full => "full",
            PreemptModel::Lazy => "lazy",
        }
    }
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
    /// As kernel strings write it: `voluntary`, `static/none`, `auto/none`.
    pub fn name(self) -> String {
        let model = self.model.name();
        match self.build {
            PreemptBuild::Static => format!("static/{model}"),
            PreemptBuild::Dynamic => model.to_string(),
            PreemptBuild::Auto => format!("auto/{model}"),
        }
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

    /// The bit to set when a task requests a CPU: true for the lazy one. `higher_class` says whether the
    /// requesting task is of a higher class than the current one; `curr_idle` whether the CPU runs its idle
    /// task.
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
    #[inline]
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

    /// When a lazy request still pending at the tick becomes a full one.
    pub fn tick_upgrades(self) -> TickUpgrade {
        match (self.build, self.model) {
            (PreemptBuild::Auto, _) => TickUpgrade::IfAsked,
            (_, PreemptModel::Lazy) => TickUpgrade::Always,
            _ => TickUpgrade::Never,
        }
    }
}

/// When the tick turns a lazy request into a full one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TickUpgrade {
    /// There are no lazy requests.
    Never,
    /// If the tick itself makes a request, because a slice has ended. PREEMPT_AUTO v2, "sched/fair: handle
    /// tick expiry under lazy preemption" (28 May 2024).
    IfAsked,
    /// At each tick (v6.13).
    Always,
}

#[cfg(test)]
mod tests {
    use super::*;

    const AUTO: [PreemptModel; 3] = [PreemptModel::None, PreemptModel::Voluntary, PreemptModel::Full];

    /// The first table of the mail: which bit a request sets, for a task of a higher class
    /// and for others.
    #[test]
    fn bits_of_requests_under_preempt_auto() {
        let lazy = |model| {
            let preempt = Preempt { build: PreemptBuild::Auto, model };
            [preempt.lazy_request(true, false), preempt.lazy_request(false, false)]
        };
        assert_eq!(AUTO.map(lazy), [[true, true], [false, true], [false, false]]);
        for model in AUTO {
            let preempt = Preempt { build: PreemptBuild::Auto, model };
            assert!(!preempt.lazy_request(false, true), "the idle task is preempted at once");
            assert_eq!(preempt.tick_upgrades(), TickUpgrade::IfAsked);
        }
    }

    /// The second: where each bit is checked. cond_resched() does nothing.
    #[test]
    fn points_at_which_bits_are_honoured_under_preempt_auto() {
        let points = [Point::ExitToUser, Point::IrqReturnToKernel, Point::PreemptEnable, Point::CondResched];
        let full = NeedResched { full: true, lazy: false };
        let lazy = NeedResched { full: false, lazy: true };
        for model in AUTO {
            let preempt = Preempt { build: PreemptBuild::Auto, model };
            assert_eq!(points.map(|p| preempt.honours(p, lazy)), [true, false, false, false]);
            assert_eq!(points.map(|p| preempt.honours(p, full)), [true, true, true, false]);
        }
    }

    /// Without the series none and voluntary act at explicit points, full wherever possible.
    #[test]
    fn points_at_which_the_single_bit_is_honoured_without_it() {
        let points = [
            Point::ExitToUser,
            Point::IrqReturnToKernel,
            Point::PreemptEnable,
            Point::CondResched,
            Point::MightSleep,
        ];
        let pending = NeedResched { full: true, lazy: false };
        let honoured = |model| {
            let preempt = Preempt { build: PreemptBuild::Dynamic, model };
            assert!(!preempt.lazy_request(false, false));
            assert_eq!(preempt.tick_upgrades(), TickUpgrade::Never);
            points.map(|p| preempt.honours(p, pending))
        };
        assert_eq!(
            AUTO.map(honoured),
            [
                [true, false, false, true, false],
                [true, false, false, true, true],
                [true, true, true, false, false],
            ]
        );
    }
}
