//! The library's functions: the only unsafe code here.
//!
//! Why it is sound: the library is ours, with the types of `lab.h`. All its state is in one private copy, so that
//! nothing is shared between two of them. It checks the numbers of tasks and groups itself; the caller checks the
//! numbers of CPUs. It never keeps a pointer of ours. It may unwind from [`fatal`] through C code that has nothing to
//! clean up.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};

use crate::Error;
use crate::fault;

/// `struct lab_machine`.
#[repr(C)]
struct Machine {
    cpus: c_int,
    nodes: c_int,
    levels: [*const c_int; 6],
    distance: *const c_int,
    reclaim_distance: c_int,
}

/// `struct lab_event`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Event {
    pub(crate) kind: c_int,
    pub(crate) a: c_int,
    pub(crate) b: c_int,
    pub(crate) c: c_int,
}

/// How long the work of the fair class takes by the clock with which it measures its searches and newidle passes, ns.
/// `struct lab_prices`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Prices {
    /// Looking at another CPU in a search.
    pub scan_cpu: c_int,
    /// A balance pass.
    pub pass: c_int,
    /// Looking at a CPU in a pass.
    pub pass_cpu: c_int,
    /// Moving a task.
    pub pass_task: c_int,
    /// The update of blocked averages before the passes.
    pub blocked_update: c_int,
}

/// Words of state, as in `lab.h`.
pub(crate) const WORDS: usize = 47;
/// Lines of atomics that a library distinguishes, as in `lab.h`.
pub const ATOMICS: usize = 1024;
/// Words of a mask of CPUs: 512 of them.
pub(crate) const MASK_WORDS: usize = 8;

macro_rules! functions {
    ($($name:ident: fn($($arg:ident: $type:ty),*) $(-> $ret:ty)?;)* -- $($special:ident: fn($($t:ty),*) $(-> $r:ty)?;)*) => {
        /// A loaded library.
        pub(crate) struct Raw {
            $($name: unsafe extern "C-unwind" fn($($type),*) $(-> $ret)?,)*
            $($special: unsafe extern "C-unwind" fn($($t),*) $(-> $r)?,)*
            // Dropped after its functions can no longer be called.
            _library: libloading::Library,
            file: PathBuf,
        }

        impl Raw {
            /// Loads a file that nothing else uses; the file is removed in the end.
            pub(crate) fn load(file: PathBuf) -> Result<Raw, Error> {
                let wrong = |error: libloading::Error| Error::new(format!("{}: {error}", file.display()));
                // SAFETY: the library was built by us and runs nothing when it is loaded; types are those of `lab.h`.
                unsafe {
                    let library = libloading::Library::new(&file).map_err(wrong)?;
                    Ok(Raw {
                        $($name: *library.get(concat!(stringify!($name), "\0").as_bytes()).map_err(wrong)?,)*
                        $($special: *library.get(concat!(stringify!($special), "\0").as_bytes()).map_err(wrong)?,)*
                        _library: library,
                        file,
                    })
                }
            }

            $(
                #[inline]
                pub(crate) fn $name(&self, $($arg: $type),*) $(-> $ret)? {
                    // SAFETY: see above; only numbers are passed.
                    unsafe { (self.$name)($($arg),*) }
                }
            )*
        }
    };
}

functions! {
    lab_close: fn();
    lab_now: fn(ns: u64);
    lab_seed: fn(seed: u64);
    lab_cpu_seed: fn(cpu: c_int, seed: u64);
    lab_fork: fn(cpu: c_int, task: c_int, kthread: c_int);
    lab_wake_new: fn(cpu: c_int, task: c_int) -> c_int;
    lab_wake: fn(cpu: c_int, task: c_int, flags: c_int, in_irq: c_int) -> c_int;
    lab_sleep: fn(cpu: c_int) -> c_int;
    lab_exit: fn(cpu: c_int);
    lab_yield: fn(cpu: c_int);
    lab_resched: fn(cpu: c_int) -> c_int;
    lab_resched_lazy: fn(cpu: c_int) -> c_int;
    lab_tick: fn(cpu: c_int);
    lab_ipi: fn(cpu: c_int);
    lab_timer: fn(cpu: c_int);
    lab_timer_at: fn(cpu: c_int) -> u64;
    lab_pending: fn(cpu: c_int) -> c_int;
    lab_softirq: fn(cpu: c_int);
    lab_stopper: fn(cpu: c_int) -> c_int;
    lab_nohz_enter: fn(cpu: c_int);
    lab_nohz_exit: fn(cpu: c_int);
    lab_offline: fn(cpu: c_int) -> c_int;
    lab_take_down: fn(cpu: c_int);
    lab_wake_stopper: fn(cpu: c_int);
    lab_starting: fn(cpu: c_int);
    lab_activate: fn(cpu: c_int);
    lab_steal: fn(cpu: c_int, ns: u64);
    lab_join_process: fn(task: c_int, process: c_int);
    lab_sched_cache: fn(on: c_int) -> c_int;
    lab_exiting: fn(task: c_int);
    lab_bind: fn(task: c_int, cpu: c_int);
    lab_per_cpu: fn(task: c_int, cpu: c_int);
    lab_nice: fn(cpu: c_int, task: c_int, nice: c_int);
    lab_forget_average: fn(task: c_int);
    lab_begin_average: fn(task: c_int);
    lab_at_idle: fn(cpu: c_int, pending: c_int);
    lab_policy: fn(cpu: c_int, task: c_int, policy: c_int, nice_or_prio: c_int, runtime: u64, deadline: u64, period: u64) -> c_int;
    lab_group: fn(parent: c_int, shares: u64) -> c_int;
    lab_group_shares: fn(group: c_int, shares: u64);
    lab_group_quota: fn(group: c_int, period_us: u64, quota_us: i64) -> c_int;
    lab_move: fn(cpu: c_int, task: c_int, group: c_int);
    lab_curr: fn(cpu: c_int) -> c_int;
    lab_task_cpu: fn(task: c_int) -> c_int;
    lab_nr_running: fn(cpu: c_int) -> c_int;
    lab_switches: fn() -> u64;
    lab_note: fn(on: c_int);
    lab_exec_of: fn(cpu: c_int) -> c_int;
    lab_stopper_works: fn(cpu: c_int) -> c_int;
    lab_fork_of: fn(cpu: c_int, task: c_int, kthread: c_int, parent: c_int, group: c_int);
    lab_sleeps: fn(task: c_int);
    lab_is_stopper: fn(cpu: c_int, task: c_int);
    lab_recent_cpu: fn(task: c_int, cpu: c_int);
    lab_hide_queued: fn(cpu: c_int, hidden: c_int);
    lab_overload: fn(cpu: c_int) -> c_int;
    lab_set_overload: fn(cpu: c_int, on: c_int);
    lab_wake_new_at: fn(cpu: c_int, task: c_int, at: c_int) -> c_int;
    lab_left: fn(task: c_int);
    lab_wake_of: fn(cpu: c_int, task: c_int, flags: c_int, in_irq: c_int, pending: c_int) -> c_int;
    lab_schedule: fn(cpu: c_int, how: c_int, pending: c_int) -> c_int;
    lab_balance: fn(cpu: c_int);
    lab_yields: fn(cpu: c_int);
    lab_freq_scale: fn(cpu: c_int, scale: u64);
    lab_idle_state: fn(cpu: c_int, exit_ns: i64);
    lab_set_prices: fn(prices: *const Prices);
    lab_past_cpu: fn(cpu: c_int, idle_stamp: u64, next_balance: u64, idle_scan: u64, balance_scan: u64, idle_cores: c_int);
    lab_past_domain: fn(cpu: c_int, level: c_int, last_balance: u64, interval: u64, newidle_cost: u64, decayed: u64) -> c_int;
    lab_group_idle: fn(group: c_int, idle: c_int) -> c_int;
    lab_exit_to_user: fn(cpu: c_int) -> c_int;
    --
    lab_events: fn(*mut *const Event) -> c_int;
    lab_affinity_of: fn(c_int, c_int, *const u64) -> c_int;
    lab_read: fn(c_int, *mut u64);
    lab_boot: fn(*const Machine) -> c_int;
    lab_on_fatal: fn(extern "C-unwind" fn(*const c_char, *const c_void) -> !);
    lab_release: fn() -> *const c_char;
    lab_feature: fn(*const c_char, c_int) -> c_int;
    lab_tunable: fn(*const c_char, u32) -> c_int;
    lab_preempt: fn(*const c_char) -> c_int;
    lab_warnings: fn(*mut *const c_char) -> c_int;
    lab_state_task: fn(c_int, *mut u64);
    lab_state_cpu: fn(c_int, *mut u64);
    lab_state_domain: fn(c_int, c_int, *mut u64, *mut u64) -> c_int;
    lab_state_group: fn(c_int, c_int, *mut u64);
    lab_state_process: fn(c_int, c_int, *mut u64);
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.lab_close();
        let _ = std::fs::remove_file(&self.file);
    }
}

extern "C-unwind" fn fatal(text: *const c_char, at: *const c_void) -> ! {
    // SAFETY: the library passes a string that ends with a zero.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    fault::raise(&text, at as usize)
}

impl Raw {
    /// Boots a machine: for each CPU `levels` contains its first sibling, cluster, LLC, package, node and its capacity.
    pub(crate) fn boot(
        &self,
        levels: &[Vec<c_int>; 6],
        nodes: usize,
        distance: &[c_int],
        reclaim_distance: u32,
    ) -> Result<(), Error> {
        let cpus = levels[0].len();
        assert!(levels.iter().all(|level| level.len() == cpus) && distance.len() == nodes * nodes);
        let machine = Machine {
            cpus: cpus as c_int,
            nodes: nodes as c_int,
            levels: levels.each_ref().map(|level| level.as_ptr()),
            distance: distance.as_ptr(),
            reclaim_distance: reclaim_distance as c_int,
        };
        // SAFETY: the arrays are as long as the library reads them, and it keeps none.
        let done = unsafe {
            (self.lab_on_fatal)(fatal);
            (self.lab_boot)(&machine)
        };
        match done {
            0 => Ok(()),
            _ => Err(Error::new(format!(
                "a library has 512 CPUs and 64 nodes at most, not {cpus} and {nodes}"
            ))),
        }
    }

    /// The kernel's version.
    pub(crate) fn release(&self) -> String {
        // SAFETY: a constant string of the library.
        unsafe { CStr::from_ptr((self.lab_release)()) }.to_string_lossy().into_owned()
    }

    /// Turns a feature of the scheduler on or off; returns its previous value, if the feature exists.
    pub(crate) fn feature(&self, name: &str, on: bool) -> Option<bool> {
        let name = CString::new(name).ok()?;
        // SAFETY: the string lives as long as the call.
        let was = unsafe { (self.lab_feature)(name.as_ptr(), on.into()) };
        (was >= 0).then_some(was > 0)
    }

    /// Sets a variable; returns whether the kernel has it.
    pub(crate) fn tunable(&self, name: &str, value: u32) -> bool {
        // SAFETY: the string lives as long as the call.
        CString::new(name).is_ok_and(|name| unsafe { (self.lab_tunable)(name.as_ptr(), value) } != 0)
    }

    /// Changes the preemption model; returns whether the kernel has it.
    pub(crate) fn preempt(&self, model: &str) -> bool {
        // SAFETY: the string lives as long as the call.
        CString::new(model).is_ok_and(|model| unsafe { (self.lab_preempt)(model.as_ptr()) } != 0)
    }

    /// Number of warnings, and the place of the first.
    pub(crate) fn warnings(&self) -> (u32, String) {
        let mut text = std::ptr::null();
        // SAFETY: it writes one pointer, to a string of its own.
        let count = unsafe { (self.lab_warnings)(&mut text) };
        // SAFETY: as above.
        (count as u32, unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }

    /// Changes the CPUs that a task may use; returns 1 if the stopper must move it, or a negative error number.
    pub(crate) fn affinity_of(&self, cpu: c_int, task: c_int, mask: &[u64; MASK_WORDS]) -> c_int {
        // SAFETY: as many words as the kernel's mask has.
        unsafe { (self.lab_affinity_of)(cpu, task, mask.as_ptr()) }
    }

    /// Passes each event since the last call to `each`.
    pub(crate) fn events(&self, mut each: impl FnMut(&Event)) {
        let mut events = std::ptr::null();
        // SAFETY: it writes a pointer to its own array with as many events as it returns; nothing is called meanwhile.
        let all = unsafe {
            let count = (self.lab_events)(&mut events);
            std::slice::from_raw_parts(events, count as usize)
        };
        all.iter().for_each(&mut each);
    }

    /// The state of a task that an engine reads.
    pub(crate) fn read(&self, task: c_int) -> [u64; 9] {
        let mut words = [0; 9];
        // SAFETY: it writes nine words.
        unsafe { (self.lab_read)(task, words.as_mut_ptr()) };
        words
    }

    /// State words of a task.
    #[inline]
    pub(crate) fn task(&self, task: c_int) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        // SAFETY: no state has more words than this.
        unsafe { (self.lab_state_task)(task, words.as_mut_ptr()) };
        words
    }

    /// State words of a CPU.
    #[inline]
    pub(crate) fn cpu(&self, cpu: c_int) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        // SAFETY: as above.
        unsafe { (self.lab_state_cpu)(cpu, words.as_mut_ptr()) };
        words
    }

    /// State words of a domain of a CPU, counted from the lowest.
    #[inline]
    pub(crate) fn domain_state(&self, cpu: c_int, level: c_int) -> Option<[u64; WORDS]> {
        let mut words = [0; WORDS];
        // SAFETY: as above; without a mask none is written.
        let found = unsafe { (self.lab_state_domain)(cpu, level, words.as_mut_ptr(), std::ptr::null_mut()) };
        (found != 0).then_some(words)
    }

    /// The same, and its span.
    pub(crate) fn domain(&self, cpu: c_int, level: c_int) -> Option<([u64; WORDS], [u64; MASK_WORDS])> {
        let (mut words, mut span) = ([0; WORDS], [0; MASK_WORDS]);
        // SAFETY: as above; the mask is as long as the kernel's.
        let found = unsafe { (self.lab_state_domain)(cpu, level, words.as_mut_ptr(), span.as_mut_ptr()) };
        (found != 0).then_some((words, span))
    }

    /// State words of a group on a CPU.
    #[inline]
    pub(crate) fn group(&self, group: c_int, cpu: c_int) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        // SAFETY: as above.
        unsafe { (self.lab_state_group)(group, cpu, words.as_mut_ptr()) };
        words
    }

    /// State words of a process, with its time on a CPU.
    #[inline]
    pub(crate) fn process(&self, process: c_int, cpu: c_int) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        // SAFETY: as above.
        unsafe { (self.lab_state_process)(process, cpu, words.as_mut_ptr()) };
        words
    }
}

/// Copies a library to a file of its own, so that it has its own state.
pub(crate) fn private_copy(library: &Path, to: &Path) -> Result<Raw, Error> {
    std::fs::copy(library, to).map_err(|error| Error::io("copy it", library, &error))?;
    Raw::load(to.to_path_buf())
}
