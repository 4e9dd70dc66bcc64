//! Estimates the cost of a plan from some of its points.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::chunk::chunk_bytes;
use crate::figures::{self, PointRow};
use crate::plan::Plan;
use crate::resolve::Resolver;

/// The cost of some points.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// How many were run.
    pub tried: usize,
    /// Mean time of one, on one thread.
    pub each: Duration,
    /// Bytes of a chunk's file.
    pub chunk_bytes: u64,
    /// The first point that failed, and why.
    pub failed: Option<(u64, String)>,
    /// Whether a point was still running when the time was over, so that the total takes longer than this.
    pub at_least: bool,
}

/// The numbers of `most` points spread evenly over the plan.
pub fn spread_points(plan: &Plan, most: u64) -> Vec<u64> {
    let points = plan.points();
    let n = points.min(most);
    // Not at the same position in each part: kernels and seeds vary fastest, and would always be the same.
    (0..n).map(|nth| (points * nth / n + nth.min(points / n.max(1) - 1)).min(points - 1)).collect()
}

/// Runs points spread evenly over the plan, for the given time. A point that takes longer is left running.
pub fn estimate(plan: &Plan, budget: Duration) -> Estimate {
    let (send, receive) = mpsc::channel();
    let points = spread_points(plan, 10);
    let all = points.len();
    let background = plan.clone();
    thread::spawn(move || {
        let mut resolver = Resolver::new(&background);
        for index in points {
            let begun = Instant::now();
            let row = figures::row_of(&mut resolver, &background.point(index), |_| None);
            if send.send((index, row, begun.elapsed())).is_err() {
                return;
            }
        }
    });
    let end = Instant::now() + budget;
    let mut rows: Vec<PointRow> = Vec::new();
    let mut failed = None;
    let mut took = Duration::ZERO;
    while rows.len() < all
        && let Ok((index, row, time)) = receive.recv_timeout(end.saturating_duration_since(Instant::now()))
    {
        took += time;
        if let (Err(error), None) = (&row.outcome, &failed) {
            failed = Some((index, error.clone()));
        }
        rows.push(row);
    }
    let each = if rows.is_empty() { budget } else { took / rows.len() as u32 };
    let wanted = plan.points_of(0).count();
    let like_a_chunk: Vec<PointRow> = rows.iter().cycle().take(wanted).cloned().collect();
    let bytes = chunk_bytes(plan, 0, &like_a_chunk).map_or(0, |bytes| bytes.len() as u64);
    Estimate { tried: rows.len(), each, chunk_bytes: bytes, failed, at_least: rows.is_empty() }
}
