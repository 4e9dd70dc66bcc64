//! The whole trace at one coarse zoom level, computed while it streams by.
//!
//! The length of a stream is not known in advance, so bins start narrow, and pairs of bins are merged whenever the
//! trace outgrows them. A bin contains the time its CPU was busy, the task with the longest single stretch in it, and
//! the longest run queue.

use crate::columns::Columns;
use crate::tasks::IDLE;

/// One CPU in one bin.
#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    busy: u64,
    longest: u64,
    task: u32,
    queue: u32,
}

/// Bins of one width for every CPU.
#[derive(Clone, Debug)]
pub(crate) struct Overview {
    /// Start of the first bin.
    from: u64,
    width: u64,
    nr_bins: usize,
    cpus: Vec<Vec<Bin>>,
    /// For each CPU, the length of its queue and since when.
    queues: Vec<(u64, u32)>,
}

/// Cells of an overview, over all CPUs.
const CELLS: usize = 1 << 21;

/// Bins of an overview for one CPU, at most.
const BINS: usize = 4096;

impl Overview {
    /// An overview that grows with the trace.
    pub fn growing() -> Overview {
        Overview { from: 0, width: 1 << 10, nr_bins: BINS, cpus: Vec::new(), queues: Vec::new() }
    }

    /// An overview of a span in a given number of bins.
    pub fn of_span(from: u64, to: u64, nr_bins: usize) -> Overview {
        let width = (to.saturating_sub(from) / nr_bins as u64 + 1).max(1);
        Overview { from, width, nr_bins, cpus: Vec::new(), queues: Vec::new() }
    }

    fn row(&mut self, cpu: usize) -> &mut Vec<Bin> {
        if self.cpus.len() <= cpu {
            self.cpus.resize_with(cpu + 1, Vec::new);
            self.queues.resize(cpu + 1, (self.from, 0));
            // Many CPUs get fewer bins each.
            while self.nr_bins > 256 && self.nr_bins * self.cpus.len() > CELLS {
                self.nr_bins /= 2;
                self.refit();
            }
        }
        &mut self.cpus[cpu]
    }

    /// Doubles the width while there are too many bins.
    fn refit(&mut self) {
        while self.cpus.iter().any(|row| row.len() > self.nr_bins) {
            self.double();
        }
    }

    fn double(&mut self) {
        self.width *= 2;
        for row in &mut self.cpus {
            let half = row.len().div_ceil(2);
            for at in 0..half {
                let (a, b) = (row[2 * at], row.get(2 * at + 1).copied().unwrap_or_default());
                let longer = if b.longest > a.longest { b } else { a };
                row[at] = Bin { busy: a.busy + b.busy, queue: a.queue.max(b.queue), ..longer };
            }
            row.truncate(half);
        }
    }

    /// Makes room up to an instant, and returns its bin.
    fn bin_of(&mut self, time: u64) -> usize {
        loop {
            let bin = (time.saturating_sub(self.from) / self.width) as usize;
            if bin < self.nr_bins {
                return bin;
            }
            self.double();
        }
    }

    /// A task ran on a CPU from one instant to another.
    pub fn ran(&mut self, cpu: usize, task: u32, from: u64, to: u64) {
        self.row(cpu);
        if task == IDLE || to <= from {
            return;
        }
        let last = self.bin_of(to - 1);
        let first = self.bin_of(from);
        let (start, width) = (self.from, self.width);
        let row = self.row(cpu);
        if row.len() <= last {
            row.resize(last + 1, Bin::default());
        }
        for (nth, bin) in row[first..=last].iter_mut().enumerate() {
            let begins = start + (first + nth) as u64 * width;
            let part = to.min(begins + width) - from.max(begins);
            bin.busy += part;
            if part > bin.longest {
                (bin.longest, bin.task) = (part, task);
            }
        }
    }

    /// A queue has another length from an instant on.
    pub fn queued(&mut self, cpu: usize, now: u64, length: u32) {
        self.row(cpu);
        let (since, before) = self.queues[cpu];
        self.fill_queue(cpu, since, now, before);
        self.fill_queue(cpu, now, now + 1, length);
        self.queues[cpu] = (now, length);
    }

    fn fill_queue(&mut self, cpu: usize, from: u64, to: u64, length: u32) {
        if length == 0 || to <= from {
            return;
        }
        let last = self.bin_of(to - 1);
        let first = self.bin_of(from);
        let row = self.row(cpu);
        if row.len() <= last {
            row.resize(last + 1, Bin::default());
        }
        row[first..=last].iter_mut().for_each(|bin| bin.queue = bin.queue.max(length));
    }

    /// The number of bins in a span, their width, and the columns of `nr_cpus` CPUs.
    pub fn finish(mut self, nr_cpus: usize, to: u64) -> (usize, u64, Vec<u8>) {
        for cpu in 0..nr_cpus {
            self.row(cpu);
            let (since, length) = self.queues[cpu];
            self.fill_queue(cpu, since, to, length);
        }
        let nr_bins = self.bin_of(to.saturating_sub(1).max(self.from)) + 1;
        let width = self.width;
        for row in &mut self.cpus {
            row.resize(nr_bins, Bin::default());
        }
        let mut columns = Columns::default();
        let cells = || self.cpus[..nr_cpus].iter().flatten();
        // A CPU that was busy at all is not shown as idle.
        let share = |bin: &Bin| (bin.busy * 255 / width).clamp(u64::from(bin.busy > 0), 255);
        cells().for_each(|bin| columns.put(share(bin)));
        cells().for_each(|bin| columns.put(bin.task.into()));
        cells().for_each(|bin| columns.put(bin.queue.into()));
        (nr_bins, width, columns.into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Reader;

    #[test]
    fn bins_double_until_the_trace_fits_and_keep_every_busy_nanosecond() {
        let mut overview = Overview::growing();
        let second = 1_000_000_000;
        for millisecond in 0..1000 {
            let from = millisecond * 1_000_000;
            overview.ran(1, 2 + (millisecond % 2) as u32, from, from + 500_000);
        }
        let (nr_bins, width, bytes) = overview.finish(2, second);
        assert!(nr_bins <= BINS && nr_bins as u64 * width >= second);
        let mut reader = Reader::new(&bytes);
        let busy = reader.take(2 * nr_bins);
        let tasks = reader.take(2 * nr_bins);
        assert!(busy[..nr_bins].iter().all(|&share| share == 0), "CPU 0 was idle");
        let sum: u64 = busy[nr_bins..].iter().sum();
        let half = sum as f64 * width as f64 / 255.0 / second as f64;
        assert!((half - 0.5).abs() < 0.01, "{half}");
        assert!(tasks[nr_bins..].contains(&2) && tasks[nr_bins..].contains(&3));
    }

    #[test]
    fn a_queue_is_as_long_as_it_ever_was_in_a_bin() {
        let mut overview = Overview::of_span(0, 100, 10);
        overview.queued(0, 5, 3);
        overview.queued(0, 6, 1);
        overview.queued(0, 60, 0);
        let (nr_bins, _, bytes) = overview.finish(1, 100);
        let queues = Reader::new(&bytes).take(3 * nr_bins).split_off(2 * nr_bins);
        assert_eq!(queues, [3, 1, 1, 1, 1, 1, 0, 0, 0, 0][..nr_bins]);
    }

    #[test]
    fn many_cpus_have_fewer_bins_each() {
        let mut overview = Overview::growing();
        overview.ran(1023, 2, 0, 10_000_000);
        let (nr_bins, _, _) = overview.finish(1024, 10_000_000);
        assert!(nr_bins * 1024 <= CELLS, "{nr_bins}");
    }
}
