//! The list of facts that no event shows, built from their files.
//!
//! Documents, `schedlab explain`, the table of what readings buy and the search for the nearest fact go through this list. Its
//! order decides between facts that are equally near. A new fact is a new file and a line here.

use serde::{Serialize, Serializer};

use super::about::{About, Reading};
use super::beyond::{Candidate, Case};

macro_rules! list {
    ($($fact:ident = $file:ident,)*) => {
        /// A fact that no event shows. In a set it leaves the choice open; in an undecided verdict it is missing.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Unknown { $(#[doc = concat!("The fact of `unknown/", stringify!($file), ".rs`.")] $fact,)* }

        impl Unknown {
            /// All of them.
            pub const ALL: &'static [Unknown] = &[$(Unknown::$fact,)*];

            const ABOUT: &'static [About] = &[$(super::$file::ABOUT,)*];
        }
    };
}

list! {
    InMotion = in_motion,
    IdleScanLimit = idle_scan_limit,
    IdleCores = idle_cores,
    SyncFlag = sync_flag,
    RecentCpu = recent_cpu,
    IdleStamp = idle_stamp,
    Loads = loads,
    WakeeFlips = wakee_flips,
    WorkerPool = worker_pool,
    CpuRotation = cpu_rotation,
    Deadlines = deadlines,
    BalanceTime = balance_time,
    TaskOrder = task_order,
    ImbalanceMark = imbalance_mark,
    CacheHome = cache_home,
    VirtualTime = virtual_time,
    DelayedDequeue = delayed_dequeue,
    LostTurn = lost_turn,
    SliceEnd = slice_end,
    Yield = yields,
    Quota = quota,
    Groups = groups,
    Fate = fate,
    Request = request,
    Unmet = unmet,
    UnseenSwitch = unseen_switch,
    UnseenMove = unseen_move,
}

impl Unknown {
    fn about(self) -> &'static About {
        &Unknown::ABOUT[self as usize]
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.about().name
    }

    /// What it is, after "a recording does not show".
    pub fn sentence(self) -> &'static str {
        self.about().sentence
    }

    /// The readings of it.
    pub fn readings(self) -> &'static [Reading] {
        self.about().readings
    }

    /// Further names of what would have had to be different beyond its bounds, and what that was.
    pub fn beyond(self) -> &'static [(&'static str, &'static str)] {
        self.about().further
    }
}

/// What would have had to be different for a decision, by any fact of the list beyond its bounds.
pub fn candidates(case: &Case<'_>) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    Unknown::ABOUT.iter().for_each(|about| (about.beyond)(case, &mut candidates));
    candidates
}

impl Serialize for Unknown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_one_thing() {
        let further = Unknown::ALL.iter().flat_map(|unknown| unknown.beyond()).map(|(name, _)| *name);
        let mut names: Vec<&str> = Unknown::ALL.iter().map(|unknown| unknown.name()).chain(further).collect();
        let mut readings: Vec<&str> = Unknown::ALL
            .iter()
            .flat_map(|unknown| unknown.readings())
            .map(|reading| reading.name())
            .collect();
        for names in [&mut names, &mut readings] {
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all);
        }
    }
}
