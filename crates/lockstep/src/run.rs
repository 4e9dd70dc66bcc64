//! Random runs, and repeated ones.

use schedlab_kernel_tree::{Fault, Library, guarded, watched};
use schedlab_sched::Kernel;
use schedlab_topology::Topology;

use crate::generate::Generator;
use crate::{Counts, Difference, Loads, Operation, Operations, Pair};

/// The parameters of a run.
#[derive(Clone)]
pub struct Plan {
    /// The tree.
    pub library: Library,
    /// Our rules, [`crate::prepared`].
    pub rules: Kernel,
    /// The machine.
    pub machine: Topology,
    /// Maximum number of tasks at a time.
    pub tasks: usize,
    /// Operations, each after a pause.
    pub steps: u64,
    /// The seed.
    pub seed: u64,
    /// The loads of the run.
    pub loads: Loads,
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    /// What was done.
    pub counts: Counts,
    /// When, ns since the kernel's boot.
    pub at: u64,
    /// The operations, up to the one after which the sides differ.
    pub operations: Operations,
    /// What differs; empty if nothing does.
    pub differ: Vec<Difference>,
    /// What was being done when the difference appeared.
    pub at_work: String,
    /// Number of kernel warnings, and the place of the first.
    pub warnings: (u32, String),
}

impl Ended {
    /// Whether the sides stayed equal to the end.
    pub fn equal(&self) -> bool {
        self.differ.is_empty()
    }
}

impl Plan {
    /// Both sides, at the start.
    ///
    /// # Panics
    /// The machine is too large for a library: it was booted before. The loads do not [`Loads::fit`] the tree.
    pub(crate) fn pair(&self) -> Pair {
        let kernel = self.library.boot(&self.machine).unwrap_or_else(|error| panic!("{error}"));
        let (mut kernel, mut rules) = (kernel, self.rules.clone());
        if self.loads.has("lazy") {
            assert!(kernel.set_preempt("lazy"), "Linux {} has no lazy preemption", kernel.release());
            rules.switch("preempt=lazy").expect("every kernel has this switch");
        }
        if self.loads.has("hrtick") {
            for name in ["HRTICK", "HRTICK_DL"] {
                kernel.feature(name, true);
                rules.switch(name).expect("every kernel has this switch");
            }
        }
        if self.loads.has("cache") {
            assert!(kernel.set_sched_cache(true), "Linux {} has no cache-aware balancing", kernel.release());
            rules.switch("SCHED_CACHE").expect("every kernel has this switch");
        } else {
            kernel.set_sched_cache(false);
        }
        Pair::new(kernel, &self.machine, &rules, self.seed, self.loads.has("nohz"))
    }
}

/// Draws a run and applies it until both sides differ.
///
/// # Errors
/// The kernel reached a `BUG()` or the like.
pub fn run(plan: &Plan) -> Result<Ended, Fault> {
    guarded(|| {
        let mut pair = plan.pair();
        let mut generator = Generator::new(plan.seed, &plan.loads, plan.tasks);
        let mut operations = Operations::new();
        watched(&pair.heart.clone(), || {
            pair.compare(format_args!("boot"));
            for _ in 0..plan.steps {
                if !pair.equal() {
                    break;
                }
                let pause = generator.pause();
                pair.apply(&pause);
                operations.push(pause);
                if !pair.equal() {
                    break;
                }
                let next = generator.next(&pair);
                // One that a single side refuses is what differs.
                if pair.apply(&next) || !pair.equal() {
                    operations.push(next);
                }
            }
        });
        pair.ended(operations)
    })
}

/// Repeats operations.
///
/// # Errors
/// As [`run`].
pub(crate) fn repeat(
    plan: &Plan,
    operations: &[Operation],
    tell: bool,
) -> Result<(Ended, Vec<String>), Fault> {
    guarded(|| {
        let mut pair = plan.pair();
        pair.told = tell.then(Vec::new);
        pair.sched.balance_log = tell.then(Vec::new);
        let mut done = Operations::new();
        watched(&pair.heart.clone(), || {
            pair.compare(format_args!("boot"));
            for operation in operations {
                if !pair.equal() {
                    break;
                }
                if tell {
                    let queues = pair.queues();
                    pair.tell(|| format!("{operation}\n    {queues}"));
                }
                if pair.apply(operation) {
                    done.push(operation.clone());
                }
            }
        });
        let told = pair.told.take().unwrap_or_default();
        (pair.ended(done), told)
    })
}

impl Pair {
    fn ended(self, operations: Operations) -> Ended {
        Ended {
            counts: self.counts,
            at: self.now,
            operations,
            warnings: self.kernel.warnings(),
            differ: self.differ,
            at_work: self.at_work,
        }
    }
}
