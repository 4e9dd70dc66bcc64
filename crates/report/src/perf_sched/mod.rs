//! The reports of `perf sched`: latency, map and timehist.
//!
//! Users know these tables and have scripts that cut them into columns, so they are printed as perf 6.1
//! prints them, including trailing blanks. Where perf itself reads a trace differently from version to
//! version, [`Reading`] names both ways.
//!
//! A table with one line per task is a fold that is rendered at the end; one with a line
//! per switch hands out its rows as they come, and nothing grows with the length of a trace.

mod by_pid;
mod latency;
mod map;
mod names;
mod timehist;

pub use latency::{Latency, LatencyRow, LatencyTotal, Reading, SortKey};
pub use map::{Map, MapRow};
pub use timehist::{
    CpuIdleRow, RunRow, SwitchRow, Timehist, TimehistOptions, TimehistRow, TimehistSummary, TimehistTotals,
};

use schedlab_units::{Duration, Pid, Time};

/// Seconds with six decimals, the rest cut off.
fn seconds(time: Time) -> String {
    let mut text = String::new();
    push_seconds(&mut text, time, 0);
    text
}

/// The same, padded on the left to `width`.
fn push_seconds(out: &mut String, time: Time, width: usize) {
    push_number(out, time.0 / 1_000_000_000, width.saturating_sub(7), b' ');
    out.push('.');
    push_number(out, time.0 % 1_000_000_000 / 1_000, 6, b'0');
}

/// Milliseconds with three decimals, the rest cut off.
fn millis(span: Duration, width: usize) -> String {
    let mut text = String::new();
    push_millis(&mut text, span, width);
    text
}

/// The same, with the integer part padded on the left to `width`.
fn push_millis(out: &mut String, span: Duration, width: usize) {
    push_number(out, span.0 / 1_000_000, width, b' ');
    out.push('.');
    push_number(out, span.0 % 1_000_000 / 1_000, 3, b'0');
}

/// A task's pid.
fn push_pid(out: &mut String, pid: Pid) {
    if pid.0 < 0 {
        out.push('-');
    }
    push_number(out, pid.0.unsigned_abs().into(), 0, b' ');
}

/// A number padded on the left to `width`. A table has millions of them, and `format!` takes ten times as long.
fn push_number(out: &mut String, mut number: u64, width: usize, fill: u8) {
    let mut places = [fill; 20];
    let mut first = places.len();
    loop {
        first -= 1;
        places[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    let first = first.min(places.len() - width.min(places.len()));
    out.push_str(std::str::from_utf8(&places[first..]).expect("digits are ASCII"));
}

#[cfg(test)]
mod testdata {
    use schedlab_trace::Sink;
    use schedlab_trace::read::{self, ftrace};

    /// Two CPUs: `make` forks `cc1`, which is moved and then preempts `ld`.
    pub const TRACE: &str = "\
<idle>-0 [001] 1.000000: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=ld next_pid=73 next_prio=120
<idle>-0 [000] 1.000100: sched_waking: comm=make pid=71 prio=120 target_cpu=000
<idle>-0 [000] 1.000200: sched_wakeup: comm=make pid=71 prio=120 target_cpu=000
<idle>-0 [000] 1.000250: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=make next_pid=71 next_prio=120
make-71 (70) [000] 1.000400: sched_process_fork: comm=make pid=71 child_comm=make child_pid=72
make-71 (70) [000] 1.000500: sched_wakeup_new: comm=make pid=72 prio=120 target_cpu=000
make-71 (70) [000] 1.001250: sched_switch: prev_comm=make prev_pid=71 prev_prio=120 prev_state=S ==> next_comm=make next_pid=72 next_prio=120
make-72 [000] 1.001750: sched_switch: prev_comm=cc1 prev_pid=72 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
ld-73 [001] 1.003000: sched_waking: comm=cc1 pid=72 prio=120 target_cpu=000
ld-73 [001] 1.003010: sched_migrate_task: comm=cc1 pid=72 prio=120 orig_cpu=0 dest_cpu=1
ld-73 [001] 1.003020: sched_wakeup: comm=cc1 pid=72 prio=120 target_cpu=001
ld-73 [001] 1.003100: sched_switch: prev_comm=ld prev_pid=73 prev_prio=120 prev_state=R+ ==> next_comm=cc1 next_pid=72 next_prio=120
cc1-72 [001] 1.004000: sched_process_exit: comm=cc1 pid=72 prio=120
cc1-72 [001] 1.004100: sched_switch: prev_comm=cc1 prev_pid=72 prev_prio=120 prev_state=X ==> next_comm=ld next_pid=73 next_prio=120
ld-73 [001] 1.009100: sched_switch: prev_comm=ld prev_pid=73 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
";

    /// Feeds trace text.
    pub fn feed(text: &str, sink: &mut impl Sink) {
        let summary = read::feed(ftrace::Reader::new(text.as_bytes()), sink).expect("memory can be read");
        assert_eq!(summary.gaps, 0, "{:?}", summary.first_gaps);
    }

    /// Text with bars around each line, as editors and tests strip blanks.
    pub fn barred(text: &str) -> String {
        text.lines().map(|line| format!("|{line}|\n")).collect()
    }
}
