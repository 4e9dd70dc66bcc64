//! The CPUs that have read an object since it was last written.
//!
//! Most objects, such as tasks, are read by one or two CPUs before they are written again: these are stored in the
//! object's own entry. A larger set takes a row of bits from a common pool until the next write.

use schedlab_topology::CpuId;

/// No CPU.
const NOBODY: u16 = u16::MAX;

/// A set of CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readers {
    /// At most two, in order of their reads.
    Few([u16; 2]),
    /// The number of a row of bits.
    Many(u32),
}

/// The rows of bits of sets that are large.
#[derive(Clone, Debug)]
pub(crate) struct Many {
    words: usize,
    rows: Vec<u64>,
    free: Vec<u32>,
}

impl Many {
    /// An empty pool, for rows of one bit per CPU.
    pub fn new(nr_cpus: usize) -> Many {
        Many { words: nr_cpus.div_ceil(64), rows: Vec::new(), free: Vec::new() }
    }

    fn row(&mut self, row: u32) -> &mut [u64] {
        &mut self.rows[row as usize * self.words..][..self.words]
    }

    #[cold]
    fn make(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.rows.resize(self.rows.len() + self.words, 0);
            (self.rows.len() / self.words - 1) as u32
        })
    }
}

impl Readers {
    /// No CPU.
    pub const NONE: Readers = Readers::Few([NOBODY; 2]);

    /// Adds a CPU; false if it is already in the set.
    #[inline]
    pub fn add(&mut self, cpu: CpuId, many: &mut Many) -> bool {
        let row = match self {
            Readers::Few([a, b]) if *a == cpu.0 || *b == cpu.0 => return false,
            Readers::Few([a, _]) if *a == NOBODY => {
                *a = cpu.0;
                return true;
            }
            Readers::Few([_, b]) if *b == NOBODY => {
                *b = cpu.0;
                return true;
            }
            Readers::Few(few) => {
                let row = many.make();
                for cpu in *few {
                    many.row(row)[usize::from(cpu / 64)] |= 1 << (cpu % 64);
                }
                *self = Readers::Many(row);
                row
            }
            Readers::Many(row) => *row,
        };
        let (word, bit) = (&mut many.row(row)[cpu.index() / 64], 1 << (cpu.index() % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Empties the set.
    #[inline]
    pub fn clear(&mut self, many: &mut Many) {
        if let Readers::Many(row) = *self {
            many.row(row).fill(0);
            many.free.push(row);
        }
        *self = Readers::NONE;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_set_has_each_cpu_once_however_many_there_are() {
        let mut many = Many::new(130);
        let mut sets = vec![(Readers::NONE, BTreeSet::new()); 3];
        let mut random = 7u64;
        for _ in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (readers, known) = &mut sets[(random >> 33) as usize % 3];
            if random >> 40 & 15 == 0 {
                readers.clear(&mut many);
                known.clear();
                assert_eq!(*readers, Readers::NONE);
            }
            let cpu = CpuId((random >> 50) as u16 % 130);
            assert_eq!(readers.add(cpu, &mut many), known.insert(cpu));
        }
        assert_eq!(many.rows.len(), 3 * many.words, "rows are used again");
    }
}
