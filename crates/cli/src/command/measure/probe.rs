//! Small programs that measure this host: the cost of each system call, switch, wake-up and cache line.
//!
//! A probe runs a loop many times and records every pass. A pass is long enough to dwarf the cost of reading the clock
//! and short enough to fall between two interrupts most of the time. The value is the fastest quartile, so that other
//! load on the CPU for most of the time does not spoil it; the fastest tenth and the median are its spread. Tasks are
//! bound to CPUs that this process may use.

use std::io::{Read, Write};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, futex, sched_getaffinity, sched_setaffinity};
use schedlab::topology::CpuId;

/// Passes of each probe.
const PASSES: usize = 41;

/// A figure with its spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// A quarter of the passes is lower.
    pub value: f64,
    /// A tenth is lower than this...
    pub low: f64,
    /// ... and half of them higher than that.
    pub high: f64,
}

impl Figure {
    /// From passes in any order, at least one.
    pub fn of(mut passes: Vec<f64>) -> Figure {
        passes.sort_by(f64::total_cmp);
        let at = |part: f64| passes[((passes.len() - 1) as f64 * part).round() as usize];
        Figure { value: at(0.25), low: at(0.1), high: at(0.5) }
    }

    /// The same for rates, of which a quarter is higher.
    pub fn of_rates(mut passes: Vec<f64>) -> Figure {
        passes.sort_by(f64::total_cmp);
        let at = |part: f64| passes[((passes.len() - 1) as f64 * part).round() as usize];
        Figure { value: at(0.75), low: at(0.5), high: at(0.9) }
    }

    /// The same minus a known part of it, but not below zero.
    pub fn less(self, part: f64) -> Figure {
        let minus = |value: f64| (value - part).max(0.0);
        Figure { value: minus(self.value), low: minus(self.low), high: minus(self.high) }
    }

    /// The same multiplied by a factor.
    pub fn times(self, factor: f64) -> Figure {
        Figure { value: self.value * factor, low: self.low * factor, high: self.high * factor }
    }
}

/// CPUs that this process may use.
pub fn allowed() -> Result<Vec<CpuId>, String> {
    let set = sched_getaffinity(None).map_err(|e| format!("the CPUs of this process cannot be read: {e}"))?;
    Ok((0..CpuSet::MAX_CPU.min(4096)).filter(|&cpu| set.is_set(cpu)).map(|cpu| CpuId(cpu as u16)).collect())
}

/// Binds the calling thread.
pub fn bind(cpus: &[CpuId]) -> Result<(), String> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        set.set(cpu.index());
    }
    sched_setaffinity(None, &set).map_err(|e| format!("a task cannot be bound to CPU {}: {e}", cpus[0]))
}

/// Runs a probe on a CPU.
pub fn on<T: Send>(cpu: CpuId, probe: impl FnOnce() -> T + Send) -> Result<T, String> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| bind(&[cpu]).map(|()| probe()));
        thread.join().map_err(|_| "a probe panicked".to_string())?
    })
}

/// Passes of a loop, ns for each turn.
fn passes(turns: u32, mut turn: impl FnMut()) -> Vec<f64> {
    let mut pass = || {
        let began = Instant::now();
        (0..turns).for_each(|_| turn());
        began.elapsed().as_nanos() as f64 / f64::from(turns)
    };
    pass();
    (0..PASSES).map(|_| pass()).collect()
}

/// A system call that does nothing, ns.
pub fn syscall(cpu: CpuId) -> Result<Figure, String> {
    on(cpu, || Figure::of(passes(1_000, || _ = std::hint::black_box(rustix::process::getppid()))))
}

/// A futex call that wakes no task, ns.
pub fn futex_call(cpu: CpuId) -> Result<Figure, String> {
    let word = AtomicU32::new(0);
    on(cpu, || Figure::of(passes(1_000, || _ = futex::wake(&word, futex::Flags::PRIVATE, 1))))
}

/// A call on a pipe that need not wait: the mean of a write and a read of 4 bytes, ns.
pub fn pipe_call(cpu: CpuId) -> Result<Figure, String> {
    let (mut reader, mut writer) = std::io::pipe().map_err(|e| format!("no pipe can be made: {e}"))?;
    let probe = move || {
        let mut bytes = [0; 4];
        let both = passes(400, || {
            _ = writer.write(&bytes);
            _ = reader.read(&mut bytes);
        });
        Figure::of(both).times(0.5)
    };
    on(cpu, probe)
}

/// How much a call on a pipe varies from call to call, in thousandths: the standard deviation of writes and of reads of 4
/// bytes, as a part of their mean.
pub fn pipe_spread(cpu: CpuId) -> Result<Figure, String> {
    let (mut reader, mut writer) = std::io::pipe().map_err(|e| format!("no pipe can be made: {e}"))?;
    let probe = move || {
        let mut bytes = [0; 4];
        let pass = |_| {
            let (mut writes, mut reads) = (Vec::with_capacity(4_000), Vec::with_capacity(4_000));
            for _ in 0..4_000 {
                let began = Instant::now();
                _ = writer.write(&bytes);
                let written = Instant::now();
                _ = reader.read(&mut bytes);
                reads.push(written.elapsed().as_nanos() as f64);
                writes.push((written - began).as_nanos() as f64);
            }
            (deviation(writes) + deviation(reads)) / 2.0
        };
        Figure::of((0..PASSES).map(pass).collect())
    };
    on(cpu, probe)
}

/// The standard deviation of times as a part of their mean, in thousandths, without the longest thousandth of them, which
/// interrupts hit.
fn deviation(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.truncate(times.len() - times.len() / 1_000);
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    let squares = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / times.len() as f64;
    1_000.0 * squares.sqrt() / mean
}

/// How two tasks hand over to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A word that the other spins on.
    Line,
    /// A futex that the other sleeps on.
    Futex,
    /// A pipe that the other sleeps on.
    Pipe,
}

/// One way of a ping-pong between tasks on two CPUs, or on one, ns. Each waits `pause` before it answers.
pub fn ping_pong(by: By, cpus: [CpuId; 2], pause: Duration) -> Result<Figure, String> {
    let turns = match (by, pause.is_zero()) {
        (_, false) => 20,
        (By::Line, _) => 2_000,
        _ => 100,
    };
    let words = [AtomicU32::new(0), AtomicU32::new(0)];
    let pipes = || std::io::pipe().map_err(|e| format!("no pipe can be made: {e}"));
    let ((mut there, mut from_here), (mut back, mut from_there)) = (pipes()?, pipes()?);
    let meet = Barrier::new(2);
    let total = turns * (PASSES as u32 + 1);
    let wait = |word: &AtomicU32| match by {
        By::Line => {
            while word.swap(0, Ordering::AcqRel) == 0 {
                while word.load(Ordering::Acquire) == 0 {
                    std::hint::spin_loop();
                }
            }
        }
        _ => {
            while word.swap(0, Ordering::AcqRel) == 0 {
                _ = futex::wait(word, futex::Flags::PRIVATE, 0, None);
            }
        }
    };
    let post = |word: &AtomicU32| {
        word.store(1, Ordering::Release);
        if by == By::Futex {
            _ = futex::wake(word, futex::Flags::PRIVATE, 1);
        }
    };
    let times = std::thread::scope(|scope| {
        let answer = scope.spawn(|| {
            let bound = bind(&[cpus[1]]);
            meet.wait();
            bound?;
            let mut bytes = [0; 4];
            for _ in 0..total {
                if by == By::Pipe {
                    _ = there.read(&mut bytes);
                } else {
                    wait(&words[0]);
                }
                if !pause.is_zero() {
                    std::thread::sleep(pause);
                }
                if by == By::Pipe {
                    _ = from_there.write(&bytes);
                } else {
                    post(&words[1]);
                }
            }
            Ok::<_, String>(())
        });
        let ask = scope.spawn(|| {
            let bound = bind(&[cpus[0]]);
            meet.wait();
            bound?;
            let mut bytes = [0; 4];
            Ok::<_, String>(passes(turns, || {
                if by == By::Pipe {
                    _ = from_here.write(&bytes);
                    _ = back.read(&mut bytes);
                } else {
                    post(&words[0]);
                    wait(&words[1]);
                }
            }))
        });
        let times = ask.join().map_err(|_| "a probe panicked".to_string())?;
        answer.join().map_err(|_| "a probe panicked".to_string())??;
        times
    })?;
    Ok(Figure::of(times).less(pause.as_nanos() as f64).times(0.5))
}

/// How long after its expiry a timer's task runs again, ns, from an idle CPU.
pub fn timer(cpu: CpuId) -> Result<Figure, String> {
    let probe = || {
        _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let span = Duration::from_micros(300);
        let late: Vec<f64> = (0..400)
            .map(|_| {
                let began = Instant::now();
                std::thread::sleep(span);
                began.elapsed().saturating_sub(span).as_nanos() as f64
            })
            .collect();
        Figure::of(late)
    };
    on(cpu, probe)
}

/// How long a wake-up takes if its CPU has been idle for a long time, ns: from the post until the other task
/// runs.
pub fn wake_from_idle(cpus: [CpuId; 2]) -> Result<Figure, String> {
    let word = AtomicU32::new(0);
    let (clock, rounds) = (Instant::now(), 150);
    let (posted, ran) = (AtomicU32::new(0), AtomicU32::new(0));
    let nanos = || clock.elapsed().as_nanos() as u32;
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            bind(&[cpus[1]])?;
            for _ in 0..rounds {
                while word.swap(0, Ordering::AcqRel) == 0 {
                    _ = futex::wait(&word, futex::Flags::PRIVATE, 0, None);
                }
                ran.store(nanos() | 1, Ordering::Release);
            }
            Ok::<_, String>(())
        });
        let waker = scope.spawn(|| {
            bind(&[cpus[0]])?;
            let mut times = Vec::new();
            for _ in 0..rounds {
                std::thread::sleep(Duration::from_millis(4));
                ran.store(0, Ordering::Release);
                posted.store(nanos(), Ordering::Release);
                word.store(1, Ordering::Release);
                _ = futex::wake(&word, futex::Flags::PRIVATE, 1);
                while ran.load(Ordering::Acquire) == 0 {
                    std::hint::spin_loop();
                }
                times.push(f64::from(
                    ran.load(Ordering::Acquire).wrapping_sub(posted.load(Ordering::Acquire)),
                ));
            }
            Ok::<_, String>(times)
        });
        let times = waker.join().map_err(|_| "a probe panicked".to_string())??;
        sleeper.join().map_err(|_| "a probe panicked".to_string())??;
        Ok(Figure::of(times))
    })
}

/// Work that only computes: a dependency chain of two cycles per turn that cannot be shortened.
fn chain(turns: u64) -> u64 {
    (0..turns).fold(0x9e37_79b9, |x: u64, i| x.rotate_left(7) ^ i)
}

/// Work with several chains at once, as in real programs: two threads of a core share it.
fn mixed(turns: u64) -> u64 {
    let mut table = [0u64; 512];
    let mut x = [1u64, 2, 3, 4];
    for i in 0..turns {
        for (lane, x) in x.iter_mut().enumerate() {
            *x = x.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(i);
            let slot = &mut table[(*x >> 55) as usize];
            *slot = slot.wrapping_add(*x ^ lane as u64);
        }
    }
    table.iter().fold(x[0], |sum, x| sum ^ x)
}

/// Turns per microsecond on CPUs that all do the work at once: their mean in each pass.
fn rates(cpus: &[CpuId], work: fn(u64) -> u64, turns: u64) -> Result<Figure, String> {
    let meet = Barrier::new(cpus.len());
    let passes = std::thread::scope(|scope| {
        let threads: Vec<_> = cpus
            .iter()
            .map(|&cpu| {
                let meet = &meet;
                scope.spawn(move || {
                    let bound = bind(&[cpu]);
                    let passes: Vec<f64> = (0..PASSES)
                        .map(|_| {
                            meet.wait();
                            let began = Instant::now();
                            std::hint::black_box(work(std::hint::black_box(turns)));
                            turns as f64 / (began.elapsed().as_nanos() as f64 / 1e3)
                        })
                        .collect();
                    bound.map(|()| passes)
                })
            })
            .collect();
        let joined =
            threads.into_iter().map(|thread| thread.join().map_err(|_| "a probe panicked".to_string())?);
        joined.collect::<Result<Vec<_>, String>>()
    })?;
    let mean = |pass: usize| passes.iter().map(|rates| rates[pass]).sum::<f64>() / passes.len() as f64;
    Ok(Figure::of_rates((0..PASSES).map(mean).collect()))
}

/// The clock of CPUs that all compute, MHz.
pub fn clock(cpus: &[CpuId]) -> Result<Figure, String> {
    Ok(rates(cpus, chain, 500_000)?.times(2.0))
}

/// Throughput of a core's thread while the core's other threads work, in thousandths of its throughput alone.
pub fn smt_share(core: &[CpuId]) -> Result<Figure, String> {
    let alone = rates(&core[..1], mixed, 100_000)?;
    Ok(rates(core, mixed, 100_000)?.times(1000.0 / alone.value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deviation_leaves_out_the_longest_thousandth() {
        // Half of the calls take 90 ns, half 110, and one in a thousand is hit by an interrupt.
        let mut times = [90.0, 110.0].repeat(999);
        times.extend([50_000.0, 80_000.0]);
        assert_eq!(deviation(times).round(), 100.0);
    }

    #[test]
    fn a_figure_is_what_a_quarter_of_the_passes_beats() {
        let passes = vec![9.0, 1.0, 5.0, 100.0, 4.0, 6.0, 7.0, 8.0, 10.0];
        let figure = Figure::of(passes.clone());
        assert_eq!(figure, Figure { value: 5.0, low: 4.0, high: 7.0 });
        assert_eq!(figure.less(5.0), Figure { value: 0.0, low: 0.0, high: 2.0 });
        assert_eq!(Figure::of_rates(passes), Figure { value: 9.0, low: 7.0, high: 10.0 });
    }

    #[test]
    fn probes_run_on_any_host() {
        let cpus = allowed().unwrap();
        let call = syscall(cpus[0]).unwrap();
        assert!(call.value > 5.0 && call.value < 1e6, "{call:?}");
        for by in [By::Futex, By::Pipe] {
            let way = ping_pong(by, [cpus[0]; 2], Duration::ZERO).unwrap();
            assert!(way.value > call.value, "{by:?}: a way has several calls: {way:?}");
        }
        assert!(clock(&cpus[..1]).unwrap().value > 100.0);
    }
}
