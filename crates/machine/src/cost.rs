//! A constant of the machine: its value, its uncertainty, and its source.
//!
//! No price is a bare number in the code. Constants are collected in tables made by [`constants!`]. They can
//! be listed, set by name from a machine file, and pushed to either end of their range one at a time, which
//! shows on which constants a verdict depends.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};

/// A constant of the machine with its possible range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    value: u64,
    range: RangeInclusive<u64>,
    /// Where the value comes from; empty when it is the table's own.
    source: Cow<'static, str>,
    asked: Asked,
}

/// Whether a value was read. This is not part of a constant's value: a copy starts as unread.
#[derive(Debug, Default)]
struct Asked(AtomicBool);

impl Clone for Asked {
    fn clone(&self) -> Asked {
        Asked::default()
    }
}

impl PartialEq for Asked {
    fn eq(&self, _: &Asked) -> bool {
        true
    }
}

impl Eq for Asked {}

impl Cost {
    /// A value with its possible range.
    ///
    /// # Panics
    /// If the value is outside the range.
    pub const fn new(value: u64, range: RangeInclusive<u64>) -> Cost {
        assert!(*range.start() <= value && value <= *range.end(), "a cost lies in its own range");
        Cost { value, range, source: Cow::Borrowed(""), asked: Asked(AtomicBool::new(false)) }
    }

    /// The same with its source.
    pub fn from_source(mut self, source: impl Into<Cow<'static, str>>) -> Cost {
        self.source = source.into();
        self
    }

    /// The value.
    #[inline]
    pub fn get(&self) -> u64 {
        // Written once, so that parallel runs that share a machine do not contend for its cache lines.
        if !self.asked.0.load(Ordering::Relaxed) {
            self.asked.0.store(true, Ordering::Relaxed);
        }
        self.value
    }

    /// Whether [`Cost::get`] was called since this was made or copied. A run cannot depend on a constant that
    /// it never read.
    pub fn was_asked(&self) -> bool {
        self.asked.0.load(Ordering::Relaxed)
    }

    /// Its possible range.
    pub fn range(&self) -> RangeInclusive<u64> {
        self.range.clone()
    }

    /// Where it comes from; empty when it is the table's own.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Another value; the range is widened to hold it.
    pub fn set(&mut self, value: u64) {
        self.value = value;
        self.range = *self.range.start().min(&value)..=*self.range.end().max(&value);
    }
}

/// What a constant counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Thousandths.
    Permille,
    /// Bytes.
    Bytes,
    /// 10^6 bytes per second.
    MBps,
    /// 10^6 clocks per second.
    MHz,
    /// A number of things.
    Count,
}

impl Unit {
    /// As it is printed after a number.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Ns => "ns",
            Unit::Permille => "permille",
            Unit::Bytes => "bytes",
            Unit::MBps => "MB/s",
            Unit::MHz => "MHz",
            Unit::Count => "",
        }
    }
}

/// A constant's entry in tables and machine files.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its table in a machine file.
    pub table: &'static str,
    /// Its name there.
    pub name: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// What it is.
    pub sentence: &'static str,
    /// Where the default comes from.
    pub source: &'static str,
}

impl Row {
    /// Table and name, as [`crate::Machine::set`] takes them.
    pub fn path(&self) -> String {
        format!("{}.{}", self.table, self.name)
    }

    /// The values that a machine file may set: others, which no machine has, would stop time or overflow 64
    /// bits.
    pub fn limits(&self) -> RangeInclusive<u64> {
        let may_be_zero = match self.unit {
            Unit::Ns => !matches!(self.name, "local_ns" | "sample_ns"),
            Unit::Permille => true,
            Unit::Bytes | Unit::MHz => false,
            Unit::MBps => matches!(self.name, "llc_mbps" | "page_scan_mbps"),
            Unit::Count => matches!(self.name, "mwait" | "governor" | "write_allocate" | "pipe_lines"),
        };
        let most = match self.unit {
            Unit::Ns | Unit::MBps => 1_000_000_000,
            Unit::Permille | Unit::MHz | Unit::Count => 1_000_000,
            Unit::Bytes => 1 << 40,
        };
        u64::from(!may_be_zero)..=most
    }
}

/// A struct of constants that can be listed and set by name.
pub trait Constants {
    /// One row for each constant, in order.
    const ROWS: &'static [Row];

    /// The constant in this row of the table.
    fn cost(&self, row: usize) -> &Cost;

    /// The constant in this row of the table, to change.
    fn cost_mut(&mut self, row: usize) -> &mut Cost;
}

macro_rules! constants {
    ($(#[$doc:meta])* $type:ident = $table:literal {
        $($(#[doc = $text:literal])* $field:ident: $unit:ident = $value:expr, $range:expr, $source:literal;)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $type { $($(#[doc = $text])* pub $field: $crate::Cost,)* }

        impl Default for $type {
            fn default() -> $type {
                $type { $($field: const { $crate::Cost::new($value, $range) },)* }
            }
        }

        impl $crate::Constants for $type {
            const ROWS: &'static [$crate::Row] = &[$($crate::Row {
                table: $table,
                name: stringify!($field),
                unit: $crate::Unit::$unit,
                sentence: concat!($($text),*).trim_ascii_start(),
                source: $source,
            },)*];

            fn cost(&self, row: usize) -> &$crate::Cost {
                [$(&self.$field),*][row]
            }

            fn cost_mut(&mut self, row: usize) -> &mut $crate::Cost {
                let fields = [$(&mut self.$field),*];
                fields.into_iter().nth(row).expect("a row of the table")
            }
        }
    };
}
pub(crate) use constants;

constants! {
    /// What the kernel's own code paths cost, as work: ns on a CPU of capacity 1024 at its
    /// full clock. The cost of a path that is not listed is included in one that is.
    KernelCosts = "cost" {
        /// Switching from one task to another, without its effect on caches.
        context_switch_ns: Ns = 1_200, 600..=2_500, "estimate; spread of published lmbench figures";
        /// Entering the kernel and returning.
        syscall_ns: Ns = 150, 60..=400, "estimate: 150 ns, 350 with mitigations";
        /// Waking a task, without the search for a CPU and the notification of that CPU.
        wakeup_ns: Ns = 500, 250..=1_000, "estimate: a futex wake costs 600 ns with its hash bucket";
        /// The part of a wake-up that enqueues the task. The CPU that enqueues it pays: the waker's CPU, or the target CPU if the task goes through a wake list.
        activate_ns: Ns = 250, 0..=500, "estimate: half of a wake-up; 300 ns with a wake list";
        /// Looking up a futex in its hash table.
        futex_ns: Ns = 100, 50..=200, "estimate";
        /// Going to sleep: dequeueing, apart from the switch.
        sleep_ns: Ns = 300, 150..=600, "estimate";
        /// Checking one CPU in an idle search, if its cache lines are local.
        idle_scan_cpu_ns: Ns = 5, 3..=15, "estimate: two masks and four fields; lines that are not local are added (cacheline.look_lines)";
        /// Examining one CPU in a balance pass, if its cache lines are local.
        balance_cpu_ns: Ns = 25, 15..=60, "estimate: some thirty fields; lines that are not local are added (cacheline.pass_lines)";
        /// Fixed cost of a balance pass.
        balance_pass_ns: Ns = 300, 100..=1_000, "estimate";
        /// Moving one task in a balance pass.
        balance_task_ns: Ns = 300, 150..=800, "estimate";
        /// Updating blocked averages before newly idle balancing.
        blocked_update_ns: Ns = 500, 200..=2_000, "estimate";
        /// Work of `update_cfs_group()` at one level of groups; included in the prices of a wake-up and a sleep.
        update_cfs_group_ns: Ns = 30, 10..=80, "estimate: a division, and fields of the queue that are seldom in the cache";
        /// Work of `update_load_avg()` at one level, including its calls at switches; included in the same prices.
        update_load_avg_ns: Ns = 150, 50..=300, "estimate: three sums decayed for the entity and its queue, twice";
        /// The periodic tick.
        tick_ns: Ns = 2_000, 800..=5_000, "estimate";
        /// Entering and leaving an interrupt.
        irq_ns: Ns = 400, 150..=1_000, "estimate";
        /// The timer interrupt that ends a sleep, without the wake-up.
        timer_irq_ns: Ns = 800, 400..=2_000, "estimate";
        /// Time from the expiry of a CPU's timer until its handler reads the clock.
        timer_delivery_ns: Ns = 1_000, 300..=2_000, "estimate: with the wake-up of a thread cyclictest finds 1 to 3 us at least";
        /// Processing one entry of a wake list.
        wake_list_ns: Ns = 300, 150..=600, "estimate";
        /// How late a timer may fire, so that timers coalesce (`timer_slack_ns` of ordinary tasks).
        timer_slack_ns: Ns = 50_000, 0..=50_000, "kernel default; no slack for RT and deadline tasks";
        /// Size of a page; a pipe has sixteen pages.
        page_bytes: Bytes = 4_096, 4_096..=4_096, "processor manuals; distributions for POWER build their kernels with 64 KB";
        /// A page fault on a page of 4 KB, without clearing it.
        page_fault_ns: Ns = 500, 250..=1_500, "estimate";
        /// Rate at which one thread clears memory.
        clear_mbps: MBps = 5_000, 3_000..=10_000, "estimate: 4 to 6 GB/s per thread";
        /// Creating a thread.
        clone_thread_ns: Ns = 15_000, 8_000..=40_000, "estimate; forks in the mail of 7 Apr 2022 are 35 to 80 us apart, including the runtime's work between them";
        /// Creating a process.
        fork_ns: Ns = 80_000, 40_000..=400_000, "estimate";
        /// What its parent pays afterwards: both share their pages now, and the first write to each page faults.
        fork_return_ns: Ns = 0, 0..=0, "part of fork_ns, where it is not separate";
        /// Executing another program.
        exec_ns: Ns = 300_000, 100_000..=1_000_000, "estimate";
        /// Ending a task.
        exit_ns: Ns = 30_000, 10_000..=150_000, "estimate";
        /// The part of exit_ns after the task has left its session's group: notifying its parent.
        exit_notify_ns: Ns = 2_000, 500..=10_000, "estimate";
        /// Reaping a child that has ended.
        reap_ns: Ns = 0, 0..=0, "part of exit_ns, where it is not separate";
        /// One write to or read from a pipe, without copying.
        pipe_ns: Ns = 250, 100..=600, "estimate";
        /// Additional cost of a write to a pipe: it updates the file's times and allocates the page.
        pipe_write_ns: Ns = 0, 0..=800, "not known for pages of 4 KB, where it matters little";
        /// Share of a call on a pipe, without copying, that is done when it finds nothing to read or no room. The rest, and the way into the
        /// kernel and back, is paid when it has slept.
        pipe_vain_permille: Permille = 260, 200..=350, "measured on a guest: calls that return EAGAIN, less a system call: 28 of 106 ns";
        /// Allocating a page for a write to a pipe, if the pipe keeps none of those that were read. It is part of the time with the mutex.
        pipe_page_ns: Ns = 60, 40..=150, "measured on a guest: writes of 1, 2 and up to 16 pages in a row, without waiting";
        /// Freeing a page that was read from a pipe, if the pipe keeps as many as it may. It is part of the time with the mutex.
        pipe_free_page_ns: Ns = 100, 60..=250, "measured on a guest: reads of 1, 2 and up to 16 pages in a row, without waiting";
        /// Share of a pipe call, including its copy, during which the pipe's mutex is held.
        pipe_held_permille: Permille = 600, 300..=900, "estimate: 150 ns of 250; checks, file times and the return are outside the mutex";
        /// Cache lines of a pipe that are fetched one after the other from the CPU that used it last.
        pipe_lines: Count = 3, 1..=6, "estimate: the mutex, the ring and the page; prefetched lines are not counted";
        /// Additional lines if other tasks want the pipe's mutex: they poll it, so that its owner has to fetch it again, and queue for it.
        wanted_lines: Count = 6, 3..=9, "kernel/locking/mutex.c, v6.1: owner back and forth, osq tail and node, wait_lock, the first waiter and its task";
        /// One write to or read from a socket, without copying.
        socket_ns: Ns = 600, 300..=1_500, "estimate";
        /// How long a call on a socket holds its lock.
        socket_held_ns: Ns = 100, 50..=300, "estimate: the queue of packets is locked apart from the copy";
        /// How long a task that queues up to wait on a pipe or socket holds the lock of the wait queue.
        waiters_held_ns: Ns = 50, 20..=150, "estimate: two list entries and the state of the task";
        /// Standard deviation of a call on a pipe or socket, relative to its mean. Durations are drawn from a distribution
        /// with a long tail, which leaves the mean unchanged.
        call_spread_permille: Permille = 100, 0..=250, "measured on a guest, 200000 calls of each kind without the longest thousandth: deviations of 8 to 10 % for pipes, 16 to 20 % for sockets; schedlab measure measures it on a host";
        /// Copying, per KB.
        copy_kb_ns: Ns = 60, 20..=200, "estimate: 5 to 50 GB/s by cache level";
        /// An atomic operation on a cache line that the CPU owns.
        atomic_ns: Ns = 20, 5..=40, "estimate";
        /// Time until a spinning CPU sees that another CPU ended its spin.
        spin_exit_ns: Ns = 100, 40..=300, "a line from another cache; cacheline table";
        /// Queueing a work item on a workqueue.
        queue_work_ns: Ns = 400, 200..=1_000, "estimate";
        /// Submitting a request to a device.
        submit_io_ns: Ns = 3_000, 1_000..=8_000, "estimate";
        /// The interrupt that completes a request, without the wake-up.
        complete_io_ns: Ns = 2_000, 800..=5_000, "estimate";
        /// One item of work of a stopper, without moving a task.
        stopper_ns: Ns = 1_000, 400..=3_000, "estimate";
        /// A short system call that changes a task: affinity, policy, group, name.
        set_ns: Ns = 1_500, 500..=5_000, "estimate";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_finds_its_constants_by_row() {
        let mut costs = KernelCosts::default();
        let row = KernelCosts::ROWS.iter().position(|r| r.name == "syscall_ns").unwrap();
        assert_eq!(costs.cost(row), &costs.syscall_ns);
        costs.cost_mut(row).set(500);
        assert_eq!(costs.syscall_ns.get(), 500);
        assert_eq!(costs.syscall_ns.range(), 60..=500, "the range holds what was set");
        assert_eq!(KernelCosts::ROWS[row].sentence, "Entering the kernel and returning.");
    }

    #[test]
    fn a_constant_knows_whether_it_was_asked() {
        let cost = Cost::new(5, 1..=9);
        assert!(!cost.was_asked());
        let range = cost.range();
        assert!(!cost.was_asked() && range.contains(&cost.get()) && cost.was_asked());
        let copy = cost.clone();
        assert!(!copy.was_asked() && copy == cost);
    }

    #[test]
    fn every_constant_says_what_it_is_and_where_from() {
        for row in KernelCosts::ROWS {
            assert!(row.sentence.ends_with('.'), "{}", row.name);
            assert!(!row.source.is_empty(), "{}", row.name);
            let suffix = match row.unit {
                Unit::Ns => "_ns",
                Unit::MBps => "_mbps",
                _ => continue,
            };
            assert!(row.name.ends_with(suffix), "{} counts {}", row.name, row.unit.name());
        }
    }
}
