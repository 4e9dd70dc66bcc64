//! Resolves the names in a program.
//!
//! Mutexes, conditions, semaphores, timers, words, pipes and barriers are created where they are first named; an object
//! with required parameters must have been described before.

use std::collections::BTreeMap;

use schedlab_units::Duration;

use crate::{
    BarrierId, ChannelId, CondId, DeviceId, MutexId, ProgramId, QueueId, RegionId, SemId, SourceId, SpecId,
    TimerId, WordId, WorkloadBuilder,
};

/// Ids by kind and name.
#[derive(Debug)]
pub(super) struct Names<'a> {
    pub w: &'a mut WorkloadBuilder,
    ids: BTreeMap<(&'static str, String), u32>,
    /// Barriers without a given number of parties: they count their users.
    pub counting: Vec<BarrierId>,
    /// Objects created since the last check, as messages name them.
    pub fresh: Vec<String>,
}

/// A kind of object with names.
pub(super) trait Named: Sized {
    const WHAT: &'static str;
    fn from_index(index: u32) -> Self;
    fn index(&self) -> u32;
}

/// A task that is described, forked or not.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnyTask(pub SpecId);

impl Named for AnyTask {
    const WHAT: &'static str = "task";

    fn from_index(index: u32) -> AnyTask {
        AnyTask(SpecId(index))
    }

    fn index(&self) -> u32 {
        self.0.0
    }
}

/// A kind of object that is created when it is first named.
pub(super) trait Made: Named {
    fn make(names: &mut Names, name: &str) -> Self;
}

macro_rules! named {
    ($($type:ident $what:literal;)*) => {$(
        impl Named for $type {
            const WHAT: &'static str = $what;

            fn from_index(index: u32) -> $type {
                $type(index)
            }

            fn index(&self) -> u32 {
                self.0
            }
        }
    )*};
}

named! {
    MutexId "mutex";
    CondId "condition";
    SemId "semaphore";
    BarrierId "barrier";
    ChannelId "channel";
    TimerId "timer";
    WordId "word";
    DeviceId "device";
    QueueId "queue";
    RegionId "region";
    SourceId "interrupt";
    SpecId "forked task";
    ProgramId "program";
}

macro_rules! made {
    ($($type:ident: |$names:ident, $name:ident| $make:expr;)*) => {$(
        impl Made for $type {
            fn make($names: &mut Names, $name: &str) -> $type {
                $make
            }
        }
    )*};
}

made! {
    MutexId: |names, name| names.w.mutex(name);
    CondId: |names, name| names.w.cond(name);
    SemId: |names, name| names.w.sem(name, 0);
    ChannelId: |names, name| names.w.pipe(name);
    TimerId: |names, name| names.w.timer(name);
    WordId: |names, name| names.w.word(name, 0);
    BarrierId: |names, name| {
        let barrier = names.w.barrier(name, 1, Duration::ZERO);
        names.counting.push(barrier);
        barrier
    };
}

impl<'a> Names<'a> {
    /// No names yet.
    pub fn new(w: &'a mut WorkloadBuilder) -> Names<'a> {
        Names { w, ids: BTreeMap::new(), counting: Vec::new(), fresh: Vec::new() }
    }

    /// Gives an object its name; false if another of its kind has it.
    pub fn declare<T: Named>(&mut self, name: &str, id: T) -> bool {
        self.ids.insert((T::WHAT, name.to_string()), id.index()).is_none()
    }

    /// The object of a name that must have been described.
    pub fn known<T: Named>(&mut self, name: &str) -> Result<T, String> {
        let id = self.ids.get(&(T::WHAT, name.to_string()));
        id.map(|&id| T::from_index(id)).ok_or_else(|| {
            let others = self.ids.keys().filter(|(what, _)| *what == T::WHAT).map(|(_, name)| name.as_str());
            let others = crate::error::quoted(others);
            let there_is = if others.is_empty() { String::new() } else { format!("; there is {others}") };
            format!("there is no {} \"{name}\"{there_is}", T::WHAT)
        })
    }

    /// The object of a name, created if it does not exist.
    pub fn made<T: Made>(&mut self, name: &str) -> T {
        if let Some(&id) = self.ids.get(&(T::WHAT, name.to_string())) {
            return T::from_index(id);
        }
        let id = T::make(self, name);
        self.fresh.push(format!("{} \"{name}\"", T::WHAT));
        self.declare(name, T::from_index(id.index()));
        id
    }
}
