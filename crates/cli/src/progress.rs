//! Progress with an estimate, on anything longer than two seconds.
//!
//! Silent if standard error is not a terminal.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use schedlab::RunClock;

/// Work shorter than this shows nothing.
const PATIENCE: Duration = Duration::from_secs(2);

/// The display for runs.
const RUNS: &str = "{msg} {pos}/{len} runs{prefix}, {left} {wide_bar}";

/// How often the remaining time is updated.
const TICK: Duration = Duration::from_millis(250);

/// Whether another program that called the command has cancelled it.
static CANCELLED: AtomicBool = AtomicBool::new(false);

/// The panic message of a cancelled thread.
pub const CANCEL: &str = "interrupted";

/// Ends runs at their next progress report, or stops doing so.
pub fn cancel(on: bool) {
    CANCELLED.store(on, Ordering::Relaxed);
}

/// A progress bar that appears late.
pub struct Progress {
    bar: ProgressBar,
    /// Dropped when the work is over.
    ended: Option<Sender<()>>,
    waits: Option<JoinHandle<()>>,
}

impl Progress {
    /// Starts counting runs.
    pub fn new(what: &str) -> Progress {
        Progress::with(what, RUNS, None)
    }

    /// Starts counting runs, and shows the progress of the one that reported last: a single run may take
    /// minutes.
    pub fn of_runs(what: &str, clock: &RunClock) -> Progress {
        Progress::with(what, RUNS, Some(clock.clone()))
    }

    /// Starts counting bytes.
    pub fn of_bytes(what: &str) -> Progress {
        Progress::with(what, "{msg} {bytes}/{total_bytes}, {left} {wide_bar}", None)
    }

    /// Starts counting bytes whose total is unknown.
    pub fn of_recording(what: &str) -> Progress {
        Progress::with(what, "{msg} {elapsed}, {bytes}", None)
    }

    fn with(what: &str, template: &str, clock: Option<RunClock>) -> Progress {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let style =
            ProgressStyle::with_template(template).expect("the template is constant").with_key("left", left);
        bar.set_style(style);
        bar.set_message(what.to_string());
        let (ended, over) = channel::<()>();
        let shown = bar.clone();
        // The first step may take long, without any call until then.
        let waits = std::thread::spawn(move || {
            if over.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                shown.set_draw_target(ProgressDrawTarget::stderr());
                shown.enable_steady_tick(TICK);
                while let Some(clock) = &clock
                    && over.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout)
                {
                    shown.set_prefix(format!(", one is at {:.3} s", clock.reached().0 as f64 / 1e9));
                }
            }
        });
        Progress { bar, ended: Some(ended), waits: Some(waits) }
    }

    /// Reports the progress.
    pub fn at(&self, done: usize, total: usize) {
        if CANCELLED.load(Ordering::Relaxed) {
            std::panic::resume_unwind(Box::new(CANCEL));
        }
        self.bar.set_length(total as u64);
        self.bar.set_position(done as u64);
    }
}

/// The remaining time; unknown before the first step is done.
fn left(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    let _ = match state.pos() {
        0 => write!(out, "{} so far", HumanDuration(state.elapsed())),
        _ => write!(out, "about {} left", HumanDuration(state.eta())),
    };
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self.ended.take());
        if let Some(waits) = self.waits.take() {
            let _ = waits.join();
        }
        self.bar.finish_and_clear();
    }
}
