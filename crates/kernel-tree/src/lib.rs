//! The scheduler of an unmodified kernel tree as a library: built in a cache, loaded, and driven call by call.
//!
//! ```no_run
//! use schedlab_kernel_tree::{Cache, Library, Tree};
//! use schedlab_topology::{CpuId, Topology};
//!
//! let tree = Tree::open("/usr/src/linux".as_ref())?;
//! let built = Cache::of_user()?.build(&tree, &mut |step| eprintln!("{step}"))?;
//! let machine = Topology::preset_or_regular("2x2x4").unwrap();
//! let mut kernel = Library::load(&built)?.boot(&machine)?;
//! kernel.now(1_000_000_000);
//! let task = kernel.fork(CpuId(0), false); // by the task that runs on CPU 0
//! let cpu = kernel.wake_new(CpuId(0), task);
//! # Ok::<(), schedlab_kernel_tree::Error>(())
//! ```
//!
//! **Build.** [`Cache::build`] compiles `kernel/sched` and what it needs, with our overlay of headers instead of an
//! architecture (`c/asm`, `c/arch`) and a shim (`c/shim`). It never writes into the tree. Each step is cached by the
//! contents of the files that it read, so a second edit of `fair.c` compiles only that file and links; a copy of a tree
//! compiles only what differs.
//!
//! **Drive.** A [`Kernel`] is one booted scheduler with state of its own: any number may exist in a process, each used
//! by one thread at a time. Time stands still until [`Kernel::now`]. Nothing happens on its own: interrupts between
//! CPUs, softirqs, timers and stoppers are bits ([`Kernel::pending`], [`Kernel::timer_at`]) that the driver delivers,
//! in any order. A context switch is a change of [`Kernel::curr`].
//!
//! **Faults.** A `BUG()`, a lock taken twice or a function that the library lacks unwinds as a panic whose payload is a
//! [`Fault`]; [`guarded`] turns it into an error. After that the [`Kernel`] must not be used again.

mod build;
mod cache;
mod compile;
mod configure;
mod engine;
mod error;
mod fault;
mod kernel;
mod library;
mod link;
mod overlay;
#[allow(unsafe_code)]
mod raw;
mod state;
mod tools;
#[allow(unsafe_code)]
mod trap;
mod tree;
mod watch;

pub use cache::{Built, Cache, Kept};
pub use engine::{Event, How, OfDomain, Read};
pub use error::Error;
pub use fault::{Fault, end_run, guarded};
pub use kernel::{Curr, GroupId, Kernel, KernelTask, Pending, WakeFlag};
pub use library::Library;
pub use raw::{ATOMICS, Prices};
pub use state::{CpuState, DomainState, GroupState, ProcessState, TaskState, timer_cpu};
pub use tree::Tree;
pub use watch::{Heart, watched};
