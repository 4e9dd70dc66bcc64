//! The shadow scheduler: follows a recorded trace and judges each decision in it.
//!
//! A [`Sched`](schedlab_sched::Sched) is kept in step with the recording. At each decision of the kernel, our deciders
//! are evaluated in the shadow's state, the answer is compared with the kernel's choice, and then the kernel's choice
//! is applied. A trace hides much. If a hidden fact leaves several choices open, agreement means that one of them
//! happened, and it is counted separately. Where a fact is missing altogether, the verdict is undecided and names the
//! fact.
//!
//! Folders, each of which uses only those to its left (`cargo xtask tidy` checks that):
//!
//! ```text
//! follow <- unknown <- report <- judge <- audit.rs
//! ```
//!
//! - `follow`: the shadow, kept in step with the recording. It knows no verdicts and makes no assumptions. It reports its
//!   steps to a type that learns (`follow/watch.rs`), and keeps what that learns without looking at it.
//! - `unknown`: a file for each fact that no event shows. It contains the fact's name and sentence, its readings, the values
//!   that it may have, how a recording teaches it, and what it may have been beyond its bounds. `list.rs` is the list,
//!   `learned.rs` what is kept beside the shadow.
//! - `report`: verdicts and their totals.
//! - `judge`: a file for each kind of decision, with the parts of the larger ones in a folder of that name.
//!
//! `audit.rs` distributes the events.
//!
//! Three things differ from that plan, because the shadow cannot take a step without them. How far virtual times may be off
//! (`follow/errors.rs`), how long before its event a CPU read its clock (`clocks.rs`, `slack.rs`) and on which CPUs a switch
//! was missed (`unseen.rs`) change with each step and decide how the next one is applied; the facts `VIRTUAL_TIME`,
//! `IN_MOTION` and `UNSEEN_SWITCH` read them. Verdicts name hidden facts and judgements make verdicts, so `report` lies
//! between `unknown` and `judge`. And a supposition that moves tasks or changes what several deciders share is set in the
//! shadow, asked and taken back by its fact; only those that one value expresses go through `View::supposing`.

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
