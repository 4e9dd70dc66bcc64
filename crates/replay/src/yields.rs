//! Calls of sched_yield(), which no event shows.
//!
//! A task that yields gives up its CPU soon after it began, to a task that has been waiting all the time. Slices that
//! end early sometimes look the same, especially in groups. So a task is assumed to yield only if it usually leaves
//! this way when it leaves by itself. A call shows only if another task is switched in. How many more calls there are
//! between two that show is an option of the replay.

use schedlab_topology::CpuId;
use schedlab_units::Duration;

use crate::learned::Step;

/// A slice on one CPU, shorter than the default of any kernel version. It grows with the logarithm of the number of
/// CPUs, eight at most.
const SLICE: Duration = Duration::micros(700);

/// A task that left early less often than this does not yield.
const OFTEN: u32 = 3;

/// How tasks leave their CPUs by themselves.
#[derive(Debug, Default)]
pub(crate) struct Yields {
    /// Whether a task was queued on each CPU since it last switched.
    arrived: Vec<bool>,
    /// By task.
    left: Vec<Left>,
}

/// How often a task left its CPU by itself.
#[derive(Clone, Copy, Debug, Default)]
struct Left {
    /// While runnable and having just begun.
    early: u32,
    /// At the end of a slice, or to sleep.
    otherwise: u32,
}

impl Yields {
    /// A task is queued on a CPU.
    pub fn arrives(&mut self, cpu: CpuId) {
        if let Some(arrived) = self.arrived.get_mut(cpu.index()) {
            *arrived = true;
        }
    }

    /// Sets the number of CPUs.
    pub fn cpus(&mut self, nr_cpus: usize) {
        self.arrived.resize(nr_cpus, false);
    }

    /// A CPU switches. Returns whether a task was queued there since its last switch.
    pub fn switches(&mut self, cpu: CpuId) -> bool {
        std::mem::take(&mut self.arrived[cpu.index()])
    }

    /// A task gives up its CPU after it ran for `ran`, although no task had arrived. Returns whether that is
    /// early.
    pub fn makes_way(&mut self, task: usize, ran: Duration) -> bool {
        let early = self.is_early(ran);
        let left = self.left(task);
        if early {
            left.early += 1;
        } else {
            left.otherwise += 1;
        }
        early
    }

    /// Whether a run is too short for its slice to be over.
    pub fn is_early(&self, ran: Duration) -> bool {
        let slice = SLICE.0 * (1 + u64::from(self.arrived.len().min(8).ilog2()));
        ran.0 < slice / 2
    }

    /// A task goes to sleep.
    pub fn sleeps(&mut self, task: usize) {
        self.left(task).otherwise += 1;
    }

    fn left(&mut self, task: usize) -> &mut Left {
        if self.left.len() <= task {
            self.left.resize(task + 1, Left::default());
        }
        &mut self.left[task]
    }

    /// Whether a task yields.
    pub fn yields(&self, task: usize) -> bool {
        self.left.get(task).is_some_and(|left| left.early >= OFTEN.max(left.otherwise))
    }
}

/// The median of the work right before each call; `None` if there is no call.
pub(crate) fn between_calls(steps: &[Step]) -> Option<Duration> {
    let mut works: Vec<Duration> = steps
        .windows(2)
        .filter_map(|two| match *two {
            [Step::Run(work), Step::Yield] => Some(work),
            _ => None,
        })
        .collect();
    works.sort_unstable();
    works.get(works.len() / 2).copied()
}

/// Splits work into pieces of length `long`; the last one is up to half longer.
pub(crate) fn pieces(work: Duration, long: Duration) -> impl Iterator<Item = Duration> {
    let long = long.max(Duration(1));
    let all = (work.0 + long.0 / 2) / long.0;
    let last = Duration(work.0 - all.saturating_sub(1) * long.0);
    (1..all.max(1)).map(move |_| long).chain([last])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a task yields that gives up its CPU after these times, us, or sleeps, on four CPUs.
    fn yields(times: &[u64]) -> bool {
        let mut yields = Yields::default();
        yields.cpus(4);
        for &us in times {
            match us {
                0 => yields.sleeps(1),
                _ => _ = yields.makes_way(1, Duration::micros(us)),
            }
        }
        yields.yields(1)
    }

    #[test]
    fn a_task_that_mostly_leaves_early_yields() {
        assert!(yields(&[100, 90, 1000]));
        assert!(!yields(&[100, 90]), "not often enough");
        assert!(!yields(&[100, 90, 100, 4000, 3000, 1100, 4000]), "mostly at the end of slices");
        assert!(!yields(&[0, 100, 0, 90, 0, 100, 0]), "mostly to sleep");
    }

    #[test]
    fn work_is_cut_into_pieces() {
        let cut = |work| pieces(Duration(work), Duration(10)).map(|piece| piece.0).collect::<Vec<_>>();
        assert_eq!(
            [4, 14, 15, 30, 34].map(cut),
            [vec![4], vec![14], vec![10, 5], vec![10; 3], vec![10, 10, 14]]
        );
        assert_eq!(pieces(Duration(3), Duration(0)).count(), 3, "of one ns at least");
    }

    #[test]
    fn a_cpu_reports_once_which_task_came() {
        let mut yields = Yields::default();
        yields.cpus(2);
        yields.arrives(CpuId(1));
        yields.arrives(CpuId(9));
        assert_eq!(
            [yields.switches(CpuId(0)), yields.switches(CpuId(1)), yields.switches(CpuId(1))],
            [false, true, false]
        );
    }
}
