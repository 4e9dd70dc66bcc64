//! The readings of hidden facts that an audit can do without.
//!
//! A reading supposes a fact that no event shows where the likeliest state does not lead to what happened, or keeps what
//! earlier verdicts show of such a fact. It costs code and may explain what our rules get wrong, so it must earn its place:
//! [`Options::without`](crate::Options::without) switches one off, and the difference in verdicts is what it buys.

macro_rules! readings {
    ($($(#[doc = $doc:literal])* $variant:ident = $name:literal, $sentence:literal;)*) => {
        /// A reading.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Reading { $($(#[doc = $doc])* $variant,)* }

        impl Reading {
            /// All of them, by the decision that they serve.
            pub const ALL: &'static [Reading] = &[$(Reading::$variant,)*];

            /// Its name in tables.
            pub fn name(self) -> &'static str {
                match self { $(Reading::$variant => $name,)* }
            }

            /// What it supposes or keeps.
            pub fn sentence(self) -> &'static str {
                match self { $(Reading::$variant => $sentence,)* }
            }
        }
    };
}

readings! {
    /// Of wake-ups.
    OnCpu = "ON_CPU", "the woken task was still on its CPU";
    /// Of wake-ups.
    WakeInMotion = "WAKE_IN_MOTION", "a CPU that was changing its state was seen in the new one";
    /// Of wake-ups.
    StillQueued = "STILL_QUEUED", "the dequeue of the woken task was still delayed";
    /// Of wake-ups.
    SentBack = "SENT_BACK", "a worker was sent back to the CPUs of its pool";
    /// Of wake-ups.
    LearnedFlag = "LEARNED_FLAG", "most wake-ups of a task have the same sync flag";
    /// Of wake-ups.
    LearnedLimit = "LEARNED_LIMIT", "searches since the last tick narrow the scan limit";
    /// Of wake-ups.
    LearnedFlips = "LEARNED_FLIPS", "wake-ups show how often a task changed its wakee";
    /// Of forks.
    ForkAverages = "FORK_AVERAGES", "averages are off by their widest error";
    /// Of forks.
    ForkEarlier = "FORK_EARLIER", "the CPU was chosen in an earlier state, or one was changing";
    /// Of forks.
    ForkHeld = "FORK_HELD", "a CPU went idle before its clock shows it";
    /// Of forks.
    ForkMark = "FORK_MARK", "affinity set or cleared the imbalance mark of a group";
    /// Of forks.
    LearnedRest = "LEARNED_REST", "choices show whether something is left of averages from before the recording";
    /// Of forks.
    IdleStates = "IDLE_STATES", "recorded idle states order CPUs by exit latency";
    /// Of picks and preemption.
    LostTurn = "LOST_TURN", "a CPU lost its turn between its clock and its event";
    /// Of picks and preemption.
    Yields = "YIELDS", "a task that makes way early again and again yields";
    /// Of picks.
    Throttled = "THROTTLED", "the tasks that come first were out of quota";
    /// Of picks.
    Budgets = "BUDGETS", "deadline tasks that are passed over are out of budget";
    /// Of picks and preemption under EEVDF.
    LeftAlready = "LEFT_ALREADY", "a task has left its queue before its switch";
    /// Of balancing.
    MoveInMotion = "MOVE_IN_MOTION", "a pass saw a CPU before or after its latest change";
    /// Of balancing.
    MoveOfSleeper = "MOVE_OF_SLEEPER", "a delayed sleeper was moved";
    /// Of balancing.
    MoveToHome = "MOVE_TO_HOME", "a process ran most in the destination's cache";
    /// Of all.
    HeldUp = "HELD_UP", "a CPU read its clock and was held up before its event";
}
