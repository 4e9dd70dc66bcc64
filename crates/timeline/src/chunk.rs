//! A part of a trace, complete in itself.

/// The content of a section of a chunk. The order is that of their value in a file of limited size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// The chunk at the middle zoom level.
    Summary,
    /// For each CPU the stretches of its tasks, its queue length and its interrupt time; migrations, and numbers that
    /// workloads report.
    Runs,
    /// Wake-ups.
    Wakes,
    /// Placements and balancing.
    Placements,
    /// The CPUs that placements examined.
    Candidates,
    /// Whether running tasks were preempted.
    Preemptions,
    /// Which tasks were picked.
    Picks,
}

impl Class {
    /// Every class in order.
    pub const ALL: [Class; 7] = [
        Class::Summary,
        Class::Runs,
        Class::Wakes,
        Class::Placements,
        Class::Candidates,
        Class::Preemptions,
        Class::Picks,
    ];

    /// Its name on the page.
    pub fn name(self) -> &'static str {
        match self {
            Class::Summary => "summary",
            Class::Runs => "runs",
            Class::Wakes => "wakes",
            Class::Placements => "placements",
            Class::Candidates => "candidates",
            Class::Preemptions => "preemptions",
            Class::Picks => "picks",
        }
    }

    /// What a reader misses if it was left out.
    pub fn meaning(self) -> &'static str {
        match self {
            Class::Summary => "the middle zoom level",
            Class::Runs => "single switches and run queues",
            Class::Wakes => "wake-ups",
            Class::Placements => "decisions of placement and balancing",
            Class::Candidates => "the candidates of placements",
            Class::Preemptions => "decisions of preemption",
            Class::Picks => "picks of the next task",
        }
    }
}

/// A part of a trace: one section for each class, empty if it has no content.
#[derive(Clone, Debug, Default)]
pub struct Chunk {
    /// First instant, ns since the start of the trace.
    pub from: u64,
    /// Where the next chunk begins.
    pub to: u64,
    /// The columns by class; see [`crate::Columns`].
    pub sections: [Vec<u8>; Class::ALL.len()],
}
