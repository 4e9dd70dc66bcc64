//! The cost of memory: pointer chasing through caches, streaming through memory, refilling a cache after a move.

use std::sync::Barrier;
use std::time::Instant;

use schedlab::topology::CpuId;

use super::probe::{Figure, bind};

/// Words of a line of 64 bytes.
const LINE: usize = 8;
const PASSES: usize = 21;

/// A cycle through all lines of a buffer in an order that no prefetcher follows: word `i * LINE` holds the next.
fn cycle(bytes: u64) -> Vec<u64> {
    let lines = (bytes as usize / 64).max(16);
    let mut order: Vec<usize> = (0..lines).collect();
    let mut x = 0x2545_f491_4f6c_dd1d_u64;
    for at in (1..lines).rev() {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        order.swap(at, (x % (at as u64 + 1)) as usize);
    }
    let mut buffer = vec![0; lines * LINE];
    for (nth, &line) in order.iter().enumerate() {
        buffer[line * LINE] = (order[(nth + 1) % lines] * LINE) as u64;
    }
    buffer
}

/// Follows the given number of links; ns per link.
fn chase(buffer: &[u64], links: usize) -> f64 {
    let began = Instant::now();
    let mut at = 0;
    for _ in 0..links {
        at = buffer[at as usize];
    }
    std::hint::black_box(at);
    began.elapsed().as_nanos() as f64 / links as f64
}

/// Latency of a read that depends on the previous one, ns, in a buffer of `bytes`.
pub fn latency(cpu: CpuId, bytes: u64) -> Result<Figure, String> {
    on(cpu, || {
        let buffer = cycle(bytes);
        let lines = buffer.len() / LINE;
        chase(&buffer, lines);
        Figure::of((0..PASSES).map(|_| chase(&buffer, lines.min(20_000))).collect())
    })
}

/// Sum of all words, four chains at a time.
fn sum(buffer: &[u64]) -> u64 {
    let mut sums = [0u64; 4];
    for words in buffer.chunks_exact(4) {
        for (sum, word) in sums.iter_mut().zip(words) {
            *sum = sum.wrapping_add(*word);
        }
    }
    sums.iter().fold(0, |all, sum| all.wrapping_add(*sum))
}

/// Total bandwidth of CPUs that read from memory at the same time, MB/s; each has its own buffer of `bytes`.
pub fn bandwidth(cpus: &[CpuId], bytes: u64) -> Result<Figure, String> {
    let meet = Barrier::new(cpus.len());
    let rates = std::thread::scope(|scope| {
        let threads: Vec<_> = cpus
            .iter()
            .map(|&cpu| {
                let meet = &meet;
                scope.spawn(move || {
                    let bound = bind(&[cpu]);
                    // Each touches its own first.
                    let buffer: Vec<u64> = (0..bytes / 8).collect();
                    let passes: Vec<f64> = (0..PASSES)
                        .map(|_| {
                            meet.wait();
                            let began = Instant::now();
                            std::hint::black_box(sum(std::hint::black_box(&buffer)));
                            bytes as f64 * 1e3 / began.elapsed().as_nanos() as f64
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
    Ok(Figure::of_rates((0..PASSES).map(|pass| rates.iter().map(|of| of[pass]).sum()).collect()))
}

/// Extra cost per line when a task first reads its data on a CPU other than its last, ns, in order.
pub fn refill(from: CpuId, to: CpuId, bytes: u64) -> Result<Figure, String> {
    let mut buffer: Vec<u64> = (0..bytes / 8).collect();
    let lines = (bytes / 64) as f64;
    let read = |buffer: &[u64]| {
        let began = Instant::now();
        std::hint::black_box(sum(std::hint::black_box(buffer)));
        began.elapsed().as_nanos() as f64 / lines
    };
    let mut extra = Vec::new();
    for _ in 0..PASSES {
        on(from, || {
            buffer.iter_mut().for_each(|word| *word = word.wrapping_add(1));
            (0..3).for_each(|_| _ = read(&buffer));
        })?;
        let (cold, warm) = on(to, || {
            let cold = read(&buffer);
            (0..3).for_each(|_| _ = read(&buffer));
            (cold, read(&buffer))
        })?;
        extra.push((cold - warm).max(0.0));
    }
    Ok(Figure::of(extra))
}

fn on<T: Send>(cpu: CpuId, probe: impl FnOnce() -> T + Send) -> Result<T, String> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| bind(&[cpu]).map(|()| probe()));
        thread.join().map_err(|_| "a probe panicked".to_string())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_comes_to_every_line_before_it_comes_back() {
        let buffer = cycle(64 * 100);
        let (mut at, mut seen) = (0, 0);
        loop {
            at = buffer[at as usize];
            seen += 1;
            if at == 0 {
                break;
            }
        }
        assert_eq!(seen, 100);
    }

    #[test]
    fn memory_is_farther_than_a_cache() {
        let cpu = super::super::probe::allowed().unwrap()[0];
        let (near, far) = (latency(cpu, 16 << 10).unwrap(), latency(cpu, 64 << 20).unwrap());
        assert!(near.value > 0.1 && far.low > 2.0 * near.value, "{near:?} {far:?}");
    }
}
