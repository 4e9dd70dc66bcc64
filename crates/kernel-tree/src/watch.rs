//! A scheduler that hangs: a call that does not return ends the run with a fault.

use std::any::Any;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::fault::Fault;
use crate::trap;

/// CPU time that a single call may take, in ticks of 10 ms. The longest calls take some ms.
const TICKS_MAX: u64 = 500;

/// Attempts, one per second, to end the call where it is.
const ATTEMPTS: u32 = 10;

/// Counts the calls of a library.
#[derive(Clone, Debug, Default)]
pub struct Heart {
    calls: Arc<AtomicU64>,
    now: Arc<AtomicU64>,
}

impl Heart {
    /// A call begins at this time, ns.
    #[inline]
    pub fn beat(&self, now: u64) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.now.store(now, Ordering::Relaxed);
    }

    fn at(&self) -> String {
        format!("{:.9} s", self.now.load(Ordering::Relaxed) as f64 / 1e9)
    }
}

/// Runs a function that calls a library, inside [`crate::guarded`]. A call that does not return ends with a fault that names
/// where it is. If it is never in the library's own code, the process ends with status 2.
pub fn watched<T>(heart: &Heart, run: impl FnOnce() -> T) -> T {
    let (over, hangs) = (AtomicBool::new(false), AtomicBool::new(false));
    let stat = fs::read_link("/proc/thread-self").ok();
    let thread = trap::this_thread();
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let (mut calls, mut since, mut attempts) = (u64::MAX, 0, 0);
            loop {
                thread::park_timeout(Duration::from_secs(1));
                if over.load(Ordering::Acquire) {
                    return;
                }
                let used = stat.as_deref().and_then(|thread| ticks(&thread.to_string_lossy())).unwrap_or(0);
                let now = heart.calls.load(Ordering::Relaxed);
                if now != calls {
                    (calls, since, attempts) = (now, used, 0);
                } else if used > since + TICKS_MAX {
                    if attempts == ATTEMPTS {
                        eprintln!("schedlab: the scheduler hangs in the call at {}", heart.at());
                        std::process::exit(2);
                    }
                    attempts += 1;
                    hangs.store(true, Ordering::Release);
                    trap::interrupt(thread);
                }
            }
        });
        // The watcher must also stop if the run ends with a fault.
        let ended = catch_unwind(AssertUnwindSafe(run));
        over.store(true, Ordering::Release);
        watcher.thread().unpark();
        ended.unwrap_or_else(|payload| {
            resume_unwind(if hangs.load(Ordering::Acquire) { at_time(payload, heart) } else { payload })
        })
    })
}

/// The fault of a call that hangs, with the time of that call.
fn at_time(payload: Box<dyn Any + Send>, heart: &Heart) -> Box<dyn Any + Send> {
    match payload.downcast::<Fault>() {
        Ok(fault) => Box::new(fault.and(&format!(" in the call at {}", heart.at()))),
        Err(other) => other,
    }
}

/// CPU time of a thread, in ticks.
fn ticks(thread: &str) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{thread}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let user: u64 = fields.nth(11)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}
