//! The shadow scheduler: follows a recorded trace and judges each decision in it.
//!
//! A [`Sched`](schedlab_sched::Sched) is kept in step with the recording. At each decision of the kernel, our deciders
//! are evaluated in the shadow's state, the answer is compared with the kernel's choice, and then the kernel's choice
//! is applied. A trace hides much. If a hidden fact leaves several choices open, agreement means that one of them
//! happened, and it is counted separately. Where a fact is missing altogether, the verdict is undecided and names the
//! fact.
//!
//! Folders, each of which uses only those before it:
//! - `follow`: the shadow, kept in step with the recording. It knows no verdicts and makes no assumptions.
//! - `unknown`: the facts that no event shows, and the assumptions about them.
//! - `report`: verdicts and their totals.
//! - `judge`: the judgement of each kind of decision.

mod audit;
mod follow;
mod judge;
mod options;
mod report;
#[cfg(test)]
mod shadow_tests;
mod unknown;

pub use judge::Audit;
pub use options::Options;
pub use report::contested::{Contest, Contested};
pub use report::counts::{AuditReport, Counts, DecisionReport};
pub use report::listener::Listener;
pub use report::probe::{Carried, CarriedFacts};
pub use report::verdict::{Answer, Choice, Decision, Numbers, Possible, Verdict};
pub use unknown::about::Reading;
pub use unknown::list::Unknown;
pub use unknown::otherwise::{Nearest, Otherwise};
pub use unknown::wakee_flips::Inherited;
