//! The id of a point: the hash of everything that determines its figures.

use std::fmt::{self, Debug, Write};

use schedlab::sched::Kernel;
use schedlab::units::Duration;
use schedlab::{Limits, Row};
use sha2::{Digest, Sha256};

/// A hash of named parts.
pub(crate) struct Hash(Sha256);

impl Hash {
    pub fn new() -> Hash {
        Hash(Sha256::new())
    }

    /// Adds a part. Its length comes first, so that no two lists of parts have the same input.
    pub fn part(&mut self, name: &str, text: &str) {
        for text in [name, text] {
            self.0.update((text.len() as u64).to_le_bytes());
            self.0.update(text.as_bytes());
        }
    }

    /// Adds plain data as it prints itself, which names every field.
    pub fn data(&mut self, name: &str, data: &dyn Debug) {
        struct Into<'a>(&'a mut Sha256, u64);
        impl Write for Into<'_> {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                self.0.update(text.as_bytes());
                self.1 += text.len() as u64;
                Ok(())
            }
        }
        self.part(name, "");
        let mut into = Into(&mut self.0, 0);
        write!(into, "{data:?}").expect("a hash takes everything");
        let length = into.1;
        self.0.update(length.to_le_bytes());
    }

    pub fn bytes(self) -> [u8; 32] {
        self.0.finalize().into()
    }

    /// The first 128 bits.
    pub fn hex(self) -> String {
        self.bytes().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The hash of a row on a machine, without kernel and seed. `machine` is everything that determines the
/// machine.
pub(crate) fn load(machine: &str, row: &Row, limits: Limits) -> [u8; 32] {
    let mut hash = Hash::new();
    hash.part("machine", machine);
    hash.data("workload", &row.workload);
    hash.data("prologue", &row.prologue);
    let limits: (Option<Duration>, Duration) = (limits.limit, limits.endless);
    hash.data("limits", &limits);
    if let Some(over) = &row.over {
        hash.data("over", &over.settings());
    }
    hash.bytes()
}

/// The seed of a repeat. All kernels have the same one, as in every other comparison here; each load has its
/// own.
pub(crate) fn seed(load: &[u8; 32], plan_seed: u64, repeat: u64) -> u64 {
    let mut hash = Hash::new();
    hash.data("load", load);
    hash.data("seed", &(plan_seed, repeat));
    let bytes = hash.bytes();
    // 63 bits, as Parquet and most of its readers have signed integers.
    u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) >> 1
}

/// The id of a point: 32 hexadecimal digits.
pub(crate) fn of(load: &[u8; 32], kernel: &Kernel, seed: u64) -> String {
    let mut hash = Hash::new();
    hash.part("engine", crate::ENGINE);
    hash.data("load", load);
    // Not its name: v6.1 and v6.1+SIS_UTIL are the same kernel.
    hash.data("kernel", &(kernel.preset, &kernel.features, &kernel.rules, &kernel.tunables, &kernel.preempt));
    if let Some(code) = schedlab::kernels::code(kernel) {
        hash.part("code", &code);
    }
    hash.data("seed", &seed);
    hash.hex()
}
