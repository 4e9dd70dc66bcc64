//! Moves pages from the kernel's buffers into files, one per CPU, before the buffers overflow.
//!
//! Pages are copied unchanged. The wait between two rounds depends on how full the fullest buffer was: a
//! quiet machine is polled twice a second, a busy one so often that its buffers stay a quarter full.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::host::open_without_waiting;
use super::tracefs::Instance;
use crate::error::Error;

/// The buffers of all CPUs.
pub struct Drain {
    cpus: Vec<Cpu>,
    page: Vec<u8>,
    pages_max: u64,
    wait: Duration,
}

struct Cpu {
    number: usize,
    pipe: File,
    spool: File,
    path: PathBuf,
    bytes: u64,
}

/// Bounds of the wait.
const WAIT: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(500)];
/// By which factor a buffer may get fuller from one round to the next before it overflows.
const ROOM: u32 = 4;

/// A CPU's pages in their file.
pub struct Spooled {
    /// The CPU.
    pub cpu: usize,
    /// Its file.
    pub path: PathBuf,
    /// The file's size.
    pub bytes: u64,
}

impl Drain {
    /// Opens the buffers of an instance, with the given KiB each.
    pub fn new(
        instance: &Instance<'_>,
        folder: &Path,
        page_size: usize,
        buffer_kb: u64,
    ) -> Result<Drain, Error> {
        let cpu = |number: usize| -> Result<Cpu, Error> {
            let raw = instance.file(&format!("per_cpu/cpu{number}/trace_pipe_raw"));
            let pipe = open_without_waiting(&raw).map_err(|error| Error::file(&raw, &error))?;
            let path = folder.join(format!("cpu{number}.pages"));
            let spool = File::create(&path).map_err(|error| Error::file(&path, &error))?;
            Ok(Cpu { number, pipe, spool, path, bytes: 0 })
        };
        let cpus = instance.cpus().into_iter().map(cpu).collect::<Result<Vec<_>, _>>()?;
        let pages_max = (buffer_kb * 1024 / page_size as u64).max(1);
        Ok(Drain { cpus, page: vec![0; page_size], pages_max, wait: WAIT[0] })
    }

    /// Takes the available pages.
    pub fn round(&mut self) -> Result<(), Error> {
        let mut fullest = 0;
        for cpu in &mut self.cpus {
            let pages = cpu.take(&mut self.page).map_err(|error| Error::file(&cpu.path, &error))?;
            fullest = fullest.max(pages);
        }
        self.wait = next_wait(self.wait, fullest, self.pages_max);
        Ok(())
    }

    /// How much was taken.
    pub fn bytes(&self) -> u64 {
        self.cpus.iter().map(|cpu| cpu.bytes).sum()
    }

    /// How long the next round may wait.
    pub fn wait(&self) -> Duration {
        self.wait
    }

    /// Takes the rest, and closes the buffers.
    pub fn finish(mut self) -> Result<Vec<Spooled>, Error> {
        self.round()?;
        Ok(self
            .cpus
            .into_iter()
            .map(|Cpu { number: cpu, path, bytes, .. }| Spooled { cpu, path, bytes })
            .collect())
    }
}

impl Cpu {
    /// Copies pages until there are none, and returns their number.
    fn take(&mut self, page: &mut [u8]) -> io::Result<u64> {
        let mut pages = 0;
        loop {
            let mut filled = 0;
            while filled < page.len() {
                match self.pipe.read(&mut page[filled..]) {
                    Ok(0) => break,
                    Ok(read) => filled += read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
            if filled == 0 {
                return Ok(pages);
            }
            // A page itself records how much of it is used.
            page[filled..].fill(0);
            self.spool.write_all(page)?;
            self.bytes += page.len() as u64;
            pages += 1;
        }
    }
}

/// The wait after which the fullest buffer would be a quarter full, at the rate of the last one.
fn next_wait(last: Duration, fullest: u64, pages_max: u64) -> Duration {
    // A page is taken even if it contains little.
    let pages = u32::try_from(fullest).unwrap_or(u32::MAX).saturating_sub(1).max(1);
    let aim = u32::try_from(pages_max).unwrap_or(u32::MAX) / ROOM;
    (last.saturating_mul(aim.max(1)) / pages).clamp(WAIT[0], WAIT[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busier_the_shorter_the_wait() {
        let ms = Duration::from_millis;
        for (last, pages, wait) in
            [(10, 0, 500), (500, 1, 500), (100, 257, 100), (100, 513, 50), (100, 1024, 25), (20, 1024, 10)]
        {
            assert_eq!(next_wait(ms(last), pages, 1024).as_millis(), wait, "{last} ms, {pages} pages");
        }
    }
}
