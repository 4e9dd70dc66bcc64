//! Handles a scheduler that hangs: a call that does not return ends the process with a message.
//!
//! C code that loops cannot be stopped from outside and its state is lost, so the process cannot continue.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use schedlab_units::Time;

/// CPU time that a single call may take, in ticks of 10 ms. The longest calls take some ms.
const TICKS_MAX: u64 = 500;

/// Counts the calls of a library.
#[derive(Clone, Debug, Default)]
pub struct Heart {
    calls: Arc<AtomicU64>,
    now: Arc<AtomicU64>,
}

impl Heart {
    #[inline]
    pub(crate) fn beat(&self, now: Time) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.now.store(now.0, Ordering::Relaxed);
    }
}

/// Runs a function that calls a library, and ends the process with status 2 if a call does not return.
pub fn watched<T>(name: &str, heart: &Heart, run: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    let thread = fs::read_link("/proc/thread-self").ok();
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let (mut calls, mut since) = (u64::MAX, 0);
            loop {
                thread::park_timeout(Duration::from_secs(1));
                if over.load(Ordering::Acquire) {
                    return;
                }
                let used = thread.as_deref().and_then(|thread| ticks(&thread.to_string_lossy())).unwrap_or(0);
                let now = heart.calls.load(Ordering::Relaxed);
                if now != calls {
                    (calls, since) = (now, used);
                } else if used > since + TICKS_MAX {
                    let at = Time(heart.now.load(Ordering::Relaxed));
                    eprintln!(
                        "schedlab: {name}: the scheduler hangs: it does not return from the call of {at}"
                    );
                    std::process::exit(2);
                }
            }
        });
        // The watcher must also stop if the run ends with a fault.
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        over.store(true, Ordering::Release);
        watcher.thread().unpark();
        ended.unwrap_or_else(|fault| std::panic::resume_unwind(fault))
    })
}

/// CPU time of a thread, in ticks.
fn ticks(thread: &str) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{thread}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let user: u64 = fields.nth(11)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}
