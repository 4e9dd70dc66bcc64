//! The shadow scheduler: follows a recorded trace and judges each decision in it.
//!
//! A [`Sched`](schedlab_sched::Sched) is kept in step with the recording. At each decision of the kernel, our deciders
//! are asked in the shadow's state, the answer is compared with what happened, and then what happened is applied. A
//! trace hides much. Where a hidden fact leaves several choices open, agreement means that one of them happened, and it
//! is counted separately. Where a fact is missing altogether, the verdict is undecided and names the fact.

mod affinity;
mod arrival;
mod audit;
mod averages;
mod balance;
mod clocks;
mod contested;
mod dead;
mod deadlines;
mod due_ticks;
mod errors;
mod exec;
mod facts;
mod flips;
mod floors;
mod fork;
mod forking;
mod grouping;
mod hotplug;
mod idle_states;
mod leaving;
mod listener;
mod meeting;
mod motion;
mod moving;
mod nearest;
mod opens;
mod options;
mod pairing;
mod pick;
mod pids;
mod placement;
mod pool;
mod possibilities;
mod preempt;
mod probe;
mod pushing;
mod queues;
mod quota;
mod readings;
mod report;
mod runtime;
mod scan_limits;
mod search;
mod shadow;
mod slices;
mod spare;
mod steady;
mod sync_flags;
mod turns;
mod unseen;
mod verdict;
mod waking;
mod yields;

pub use affinity::AffinityHint;
pub use audit::Audit;
pub use contested::{Contest, Contested};
pub use facts::cgroups::{Given, GivenQuota, MadeGroups, cgroups};
pub use facts::forms::{formed, strange_lines};
pub use facts::groups::{GroupFiles, Groups, Member, moves_with};
pub use facts::in_force::{apply_features, apply_tunables};
pub use facts::policies::{Policies, PolicyKind};
pub use facts::sched_ext::sched_ext;
pub use facts::tasks::{BadLine, SeenTask, seen_tasks};
pub use facts::texts::{COMMAND, FactTexts, Facts, FactsError, GroupsHidden, SCHED_EXT_STATE};
pub use flips::Inherited;
pub use grouping::Clones;
pub use listener::Listener;
pub use nearest::{Fact, Nearest, Otherwise};
pub use options::Options;
pub use probe::{Carried, CarriedFacts};
pub use readings::Reading;
pub use report::{AuditReport, Counts, DecisionReport};
pub use steady::Steady;
pub use verdict::{Answer, Choice, Decision, Hidden, Numbers, Possible, Verdict};
