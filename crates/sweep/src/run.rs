//! Runs what a store lacks, on all cores of this machine.
//!
//! Threads take points in order; the main thread gathers their rows and writes a chunk when it is complete. At any
//! time the number of open chunks is at most the number of threads plus one, so memory does not grow with the plan.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::cache::Cache;
use crate::chunk::chunk_bytes;
use crate::error::Error;
use crate::figures::{self, Figure, PointRow};
use crate::resolve::Resolver;
use crate::shard::Shard;
use crate::store::Store;

/// How long running points may continue after a request to stop.
const GRACE: Duration = Duration::from_secs(4);
/// Number of failures that are kept for display.
const FAILURES_KEPT: usize = 20;
/// How often progress is reported, and a request to stop is checked.
const BEAT: Duration = Duration::from_millis(100);

/// How a sweep is run.
#[derive(Debug)]
pub struct RunOptions {
    /// Threads; 0 is one per processor.
    pub threads: usize,
    /// Which chunks.
    pub shard: Shard,
    /// Run failed points again.
    pub retry: bool,
    /// The cache for finished points.
    pub cache: Option<Cache>,
}

/// The progress of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Points done by this run.
    pub done: u64,
    /// Points that this run must do.
    pub total: u64,
}

/// A point that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The point: what it sets.
    pub point: String,
    /// The error.
    pub error: String,
}

/// What a run did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Points that were already done.
    pub skipped: u64,
    /// Points done now.
    pub done: u64,
    /// Of these, found in the cache or left by an interrupted run.
    pub found: u64,
    /// Points done now that failed.
    pub failed: u64,
    /// Points that had already failed and were not tried again.
    pub failed_before: u64,
    /// The first of the points that failed now.
    pub failures: Vec<Failure>,
    /// Whether it was stopped before everything was done.
    pub stopped: bool,
}

/// What threads share.
struct Shared {
    store: Store,
    cache: Option<Cache>,
    queue: Mutex<Queue>,
    stop: AtomicBool,
}

/// The points still to be taken, in order.
struct Queue {
    chunks: std::vec::IntoIter<u64>,
    open: Option<(u64, std::ops::Range<u64>, Arc<Known>)>,
}

type Known = BTreeMap<String, Vec<Figure>>;

/// What a thread hands in.
struct Done {
    chunk: u64,
    index: u64,
    row: PointRow,
    found: bool,
}

/// Runs all points of a share that are not done. `beat` is called ten times per second, and returns whether to
/// continue.
///
/// # Errors
/// The sweep is of another version, or a file cannot be written. Errors of a point are recorded in its row.
pub fn run(
    store: &Store,
    options: RunOptions,
    beat: &mut dyn FnMut(Progress) -> bool,
) -> Result<Summary, Error> {
    store.check_engine()?;
    let mut summary = Summary::default();
    let mut missing = Vec::new();
    let mut total = 0;
    for chunk in (0..store.plan().chunks()).filter(|chunk| options.shard.has(*chunk)) {
        let points = store.plan().points_of(chunk);
        match store.is_done(chunk) {
            Some(failed) if failed == 0 || !options.retry => {
                summary.skipped += points.end - points.start;
                summary.failed_before += failed;
            }
            _ => {
                total += points.end - points.start;
                missing.push(chunk);
            }
        }
    }
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
    let threads = if options.threads == 0 { cores } else { options.threads }.min(total.max(1) as usize);
    let shared = Arc::new(Shared {
        store: store.clone(),
        cache: options.cache,
        queue: Mutex::new(Queue { chunks: missing.into_iter(), open: None }),
        stop: AtomicBool::new(false),
    });
    // Bounded, so that threads wait if writing is slower than running.
    let (hand_in, rows) = mpsc::sync_channel(threads * 16);
    for _ in 0..threads {
        let (shared, hand_in) = (Arc::clone(&shared), hand_in.clone());
        let spawned = thread::Builder::new().name("sweep".into()).spawn(move || work(&shared, &hand_in));
        spawned.map_err(|error| Error::new(format!("cannot start a thread: {error}")))?;
    }
    drop(hand_in);
    gather(&shared, &rows, total, &mut summary, beat)?;
    Ok(summary)
}

/// Takes rows until no thread is left, or it is time to stop.
fn gather(
    shared: &Shared,
    rows: &mpsc::Receiver<Done>,
    total: u64,
    summary: &mut Summary,
    beat: &mut dyn FnMut(Progress) -> bool,
) -> Result<(), Error> {
    let plan = shared.store.plan();
    let mut open: BTreeMap<u64, BTreeMap<u64, PointRow>> = BTreeMap::new();
    let mut stop_at: Option<Instant> = None;
    let mut last_beat = Instant::now();
    let result = loop {
        match rows.recv_timeout(BEAT) {
            Ok(done) => {
                summary.done += 1;
                summary.found += u64::from(done.found);
                if let Err(error) = &done.row.outcome {
                    summary.failed += 1;
                    if summary.failures.len() < FAILURES_KEPT {
                        let point = plan.point(done.index).to_string();
                        summary.failures.push(Failure { point, error: error.clone() });
                    }
                }
                let rows = open.entry(done.chunk).or_default();
                rows.insert(done.index, done.row);
                let points = plan.points_of(done.chunk);
                if rows.len() as u64 == points.end - points.start {
                    let rows: Vec<PointRow> =
                        open.remove(&done.chunk).expect("just there").into_values().collect();
                    let bytes = chunk_bytes(plan, done.chunk, &rows)?;
                    if let Err(error) = shared.store.put(done.chunk, &bytes) {
                        break Err(error);
                    }
                }
            }
            Err(RecvTimeoutError::Disconnected) => break Ok(()),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if last_beat.elapsed() >= BEAT {
            last_beat = Instant::now();
            if !beat(Progress { done: summary.done, total }) && stop_at.is_none() {
                shared.stop.store(true, Ordering::Relaxed);
                stop_at = Some(Instant::now() + GRACE);
            }
        }
        if stop_at.is_some_and(|at| Instant::now() >= at) {
            break Ok(());
        }
    };
    shared.stop.store(true, Ordering::Relaxed);
    beat(Progress { done: summary.done, total });
    summary.stopped = summary.done < total;
    for (chunk, rows) in open {
        let keep = |row: PointRow| Some((row.id, row.outcome.ok()?));
        let points: Vec<_> = rows.into_values().filter_map(keep).collect();
        if !points.is_empty() {
            shared.store.put_part(chunk, &points)?;
        }
    }
    result
}

/// One thread.
fn work(shared: &Shared, hand_in: &mpsc::SyncSender<Done>) {
    let mut resolver = Resolver::new(shared.store.plan());
    while !shared.stop.load(Ordering::Relaxed) {
        let Some((chunk, index, known)) = shared.next() else { return };
        let mut found = false;
        let row = figures::row_of(&mut resolver, &shared.store.plan().point(index), |id| {
            let cached = || shared.cache.as_ref().and_then(|cache| cache.get(id));
            let figures = known.get(id).cloned().or_else(cached);
            found = figures.is_some();
            figures
        });
        if let (Some(cache), false, Ok(figures)) = (&shared.cache, found, &row.outcome) {
            cache.put(&row.id, figures);
        }
        if hand_in.send(Done { chunk, index, row, found }).is_err() {
            return;
        }
    }
}

impl Shared {
    /// The next point, with what an interrupted run has left of its chunk.
    fn next(&self) -> Option<(u64, u64, Arc<Known>)> {
        let mut queue = self.queue.lock().expect("no holder panics");
        loop {
            if let Some((chunk, points, known)) = &mut queue.open
                && let Some(index) = points.next()
            {
                return Some((*chunk, index, Arc::clone(known)));
            }
            let chunk = queue.chunks.next()?;
            let known = Arc::new(self.store.part(chunk));
            queue.open = Some((chunk, self.store.plan().points_of(chunk), known));
        }
    }
}
