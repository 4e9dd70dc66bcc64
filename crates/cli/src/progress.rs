//! Progress with an estimate, on anything longer than two seconds.
//!
//! Quiet when standard error is not a terminal.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work shorter than this shows nothing.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether another program has called the command and wants no more of it.
static CANCELLED: AtomicBool = AtomicBool::new(false);

/// What a thread ends with that is to go no further.
pub const CANCEL: &str = "interrupted";

/// Ends runs at their next report of progress, or no longer does.
pub fn cancel(on: bool) {
    CANCELLED.store(on, Ordering::Relaxed);
}

/// A bar that shows itself late.
pub struct Progress {
    bar: ProgressBar,
    started: Instant,
    shown: Mutex<bool>,
}

impl Progress {
    /// Starts counting runs.
    pub fn new(what: &str) -> Progress {
        Progress::with(what, "{msg} {pos}/{len} runs, about {eta} left {wide_bar}")
    }

    /// Starts counting bytes.
    pub fn of_bytes(what: &str) -> Progress {
        Progress::with(what, "{msg} {bytes}/{total_bytes}, about {eta} left {wide_bar}")
    }

    /// Starts counting bytes of which nobody knows how many there will be.
    pub fn of_recording(what: &str) -> Progress {
        Progress::with(what, "{msg} {elapsed}, {bytes}")
    }

    fn with(what: &str, template: &str) -> Progress {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template(template).expect("the template is constant");
        bar.set_style(style);
        bar.set_message(what.to_string());
        Progress { bar, started: Instant::now(), shown: Mutex::new(false) }
    }

    /// Says how far it is.
    pub fn at(&self, done: usize, total: usize) {
        if CANCELLED.load(Ordering::Relaxed) {
            std::panic::resume_unwind(Box::new(CANCEL));
        }
        self.bar.set_length(total as u64);
        self.bar.set_position(done as u64);
        let mut shown = self.shown.lock().expect("no holder panics");
        if !*shown && self.started.elapsed() > PATIENCE {
            *shown = true;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
