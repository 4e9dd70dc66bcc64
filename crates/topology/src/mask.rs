//! A set of CPUs.

use core::fmt;

use crate::CpuId;

const BITS: usize = 64;

/// A set of CPUs, kept as words of 64.
///
/// Two masks of different length compare by members only where they overlap in
/// length; make all masks of a machine with [`CpuMask::new`] of its CPU count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CpuMask {
    words: Vec<u64>,
}

impl CpuMask {
    /// The empty set, with room for `nr_cpus` CPUs.
    pub fn new(nr_cpus: usize) -> CpuMask {
        CpuMask { words: vec![0; nr_cpus.div_ceil(BITS).max(1)] }
    }

    /// CPUs 0 to `nr_cpus - 1`.
    pub fn all(nr_cpus: usize) -> CpuMask {
        let mut mask = CpuMask::new(nr_cpus);
        for cpu in 0..nr_cpus {
            mask.set(CpuId::from(cpu));
        }
        mask
    }

    /// One CPU of `nr_cpus`.
    pub fn one(nr_cpus: usize, cpu: CpuId) -> CpuMask {
        let mut mask = CpuMask::new(nr_cpus);
        mask.set(cpu);
        mask
    }

    /// The given CPUs of `nr_cpus`.
    pub fn of(nr_cpus: usize, cpus: impl IntoIterator<Item = CpuId>) -> CpuMask {
        let mut mask = CpuMask::new(nr_cpus);
        for cpu in cpus {
            mask.set(cpu);
        }
        mask
    }

    /// Adds a CPU.
    pub fn set(&mut self, cpu: CpuId) {
        self.words[cpu.index() / BITS] |= 1 << (cpu.index() % BITS);
    }

    /// Removes a CPU.
    pub fn clear(&mut self, cpu: CpuId) {
        self.words[cpu.index() / BITS] &= !(1 << (cpu.index() % BITS));
    }

    /// Whether the CPU is in the set.
    #[inline]
    pub fn contains(&self, cpu: CpuId) -> bool {
        self.words.get(cpu.index() / BITS).is_some_and(|w| w >> (cpu.index() % BITS) & 1 == 1)
    }

    /// How many CPUs are in the set.
    pub fn weight(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Whether no CPU is in the set.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&w| w == 0)
    }

    /// The lowest CPU.
    pub fn first(&self) -> Option<CpuId> {
        self.next_from(0)
    }

    /// The lowest CPU whose number is `start` or higher.
    #[inline]
    pub fn next_from(&self, start: usize) -> Option<CpuId> {
        let mut i = start / BITS;
        let mut word = *self.words.get(i)? & (!0 << (start % BITS));
        loop {
            if word != 0 {
                return Some(CpuId::from(i * BITS + word.trailing_zeros() as usize));
            }
            i += 1;
            word = *self.words.get(i)?;
        }
    }

    /// The CPUs in increasing order.
    pub fn iter(&self) -> impl Iterator<Item = CpuId> + '_ {
        let mut next = 0;
        core::iter::from_fn(move || {
            let cpu = self.next_from(next)?;
            next = cpu.index() + 1;
            Some(cpu)
        })
    }

    /// The CPUs in increasing order from the first at or above `start`, wrapping
    /// past the end and stopping before the first is met again.
    ///
    /// Kernel: for_each_cpu_wrap(), include/linux/cpumask.h.
    pub fn iter_wrap(&self, start: usize) -> impl Iterator<Item = CpuId> + '_ {
        let mut next = start;
        let mut wrapped = false;
        core::iter::from_fn(move || {
            loop {
                match self.next_from(next) {
                    Some(cpu) if !wrapped || cpu.index() < start => {
                        next = cpu.index() + 1;
                        return Some(cpu);
                    }
                    _ if wrapped => return None,
                    _ => {
                        wrapped = true;
                        next = 0;
                    }
                }
            }
        })
    }

    /// Whether the sets share a CPU.
    #[inline]
    pub fn intersects(&self, other: &CpuMask) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    /// How many CPUs the sets share.
    pub fn weight_and(&self, other: &CpuMask) -> usize {
        self.words.iter().zip(&other.words).map(|(a, b)| (a & b).count_ones() as usize).sum()
    }

    /// The lowest CPU in both sets.
    pub fn first_and(&self, other: &CpuMask) -> Option<CpuId> {
        self.words.iter().zip(&other.words).enumerate().find_map(|(i, (a, b))| {
            let both = a & b;
            (both != 0).then(|| CpuId::from(i * BITS + both.trailing_zeros() as usize))
        })
    }

    /// Whether every CPU of this set is in `other`.
    pub fn is_subset(&self, other: &CpuMask) -> bool {
        self.words.iter().enumerate().all(|(i, a)| a & !other.words.get(i).copied().unwrap_or(0) == 0)
    }

    /// The CPUs in both sets.
    pub fn and(&self, other: &CpuMask) -> CpuMask {
        let mut mask = self.clone();
        mask.and_with(other);
        mask
    }

    /// The CPUs in either set.
    pub fn or(&self, other: &CpuMask) -> CpuMask {
        let mut mask = self.clone();
        mask.or_with(other);
        mask
    }

    /// Keeps only what is also in `other`.
    pub fn and_with(&mut self, other: &CpuMask) {
        for (i, word) in self.words.iter_mut().enumerate() {
            *word &= other.words.get(i).copied().unwrap_or(0);
        }
    }

    /// Adds all of `other`, which must have room in this set.
    pub fn or_with(&mut self, other: &CpuMask) {
        for (word, more) in self.words.iter_mut().zip(&other.words) {
            *word |= more;
        }
    }

    /// Removes all of `other`.
    pub fn remove_all(&mut self, other: &CpuMask) {
        for (word, less) in self.words.iter_mut().zip(&other.words) {
            *word &= !less;
        }
    }

    /// Makes this set equal to `other` without allocating when the lengths agree.
    pub fn copy_from(&mut self, other: &CpuMask) {
        self.words.clear();
        self.words.extend_from_slice(&other.words);
    }

    /// Reads a list as the kernel writes it: `0-3,8,10-14:2`.
    ///
    /// # Errors
    /// A sentence that names the part that cannot be parsed or is outside the machine.
    pub fn parse_list(list: &str, nr_cpus: usize) -> Result<CpuMask, String> {
        let mut mask = CpuMask::new(nr_cpus);
        for part in list.trim().split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (range, step) = match part.split_once(':') {
                Some((range, step)) => (range, step.parse().ok().filter(|&s| s > 0)),
                None => (part, Some(1)),
            };
            let (low, high) = range.split_once('-').unwrap_or((range, range));
            let bounds = low.trim().parse::<usize>().ok().zip(high.trim().parse::<usize>().ok());
            let (Some((low, high)), Some(step)) = (bounds, step) else {
                return Err(format!("cannot read CPU list part \"{part}\"; write it like 0-3,8"));
            };
            if low > high {
                return Err(format!("CPU range {low}-{high} runs backwards"));
            }
            if high >= nr_cpus {
                return Err(format!("CPU {high} is outside 0-{}", nr_cpus.saturating_sub(1)));
            }
            for cpu in (low..=high).step_by(step) {
                mask.set(CpuId::from(cpu));
            }
        }
        Ok(mask)
    }

    /// Reads a mask as the kernel and hwloc write it, in words of 32 bits, highest first:
    /// `ff,00000000` or `0x000000ff,0x0`. A word left out is zero.
    ///
    /// # Errors
    /// As of [`CpuMask::parse_list`].
    pub fn parse_hex(text: &str, nr_cpus: usize) -> Result<CpuMask, String> {
        let mut mask = CpuMask::new(nr_cpus);
        for (i, part) in text.trim().rsplit(',').enumerate() {
            let part = part.trim();
            let digits = part.strip_prefix("0x").unwrap_or(part);
            let word = if digits.is_empty() { Ok(0) } else { u32::from_str_radix(digits, 16) };
            let Ok(word) = word else {
                return Err(format!("cannot read mask part \"{part}\"; write it like 0x000000ff"));
            };
            for bit in (0..32).filter(|bit| word >> bit & 1 == 1) {
                let cpu = i * 32 + bit;
                if cpu >= nr_cpus {
                    return Err(format!("CPU {cpu} is outside 0-{}", nr_cpus.saturating_sub(1)));
                }
                mask.set(CpuId::from(cpu));
            }
        }
        Ok(mask)
    }

    /// Writes the mask that [`CpuMask::parse_hex`] reads, every word in full: `prefix` leads each.
    pub fn to_hex(&self, prefix: &str) -> String {
        let halves = self.words.iter().flat_map(|&word| [word as u32, (word >> 32) as u32]);
        let mut words: Vec<String> = halves.map(|word| format!("{prefix}{word:08x}")).collect();
        if self.words.last().is_some_and(|&word| word >> 32 == 0) {
            words.pop();
        }
        words.reverse();
        words.join(",")
    }

    /// The words, lowest CPUs first.
    pub fn words(&self) -> &[u64] {
        &self.words
    }
}

impl fmt::Display for CpuMask {
    /// A list as the kernel writes it: `0-3,8`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        let mut next = self.next_from(0);
        while let Some(low) = next {
            let mut high = low.index();
            while self.contains(CpuId::from(high + 1)) {
                high += 1;
            }
            if !first {
                f.write_str(",")?;
            }
            first = false;
            if high == low.index() {
                write!(f, "{low}")?;
            } else {
                write!(f, "{low}-{high}")?;
            }
            next = self.next_from(high + 1);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(cpus: impl Iterator<Item = CpuId>) -> Vec<u16> {
        cpus.map(|c| c.0).collect()
    }

    #[test]
    fn lists_read_and_print_alike() {
        for list in ["0", "0-3,8", "1,3,5", "62-66,127", ""] {
            assert_eq!(CpuMask::parse_list(list, 128).unwrap().to_string(), list);
        }
        assert_eq!(CpuMask::parse_list("0-9:4", 16).unwrap().to_string(), "0,4,8");
    }

    #[test]
    fn masks_in_hex_are_read_from_the_right() {
        let table = [("f", "0-3"), ("00000001,00000000,00000080", "7,64"), ("0x8,,0x1", "0,67"), ("", "")];
        for (hex, list) in table {
            assert_eq!(CpuMask::parse_hex(hex, 128).unwrap().to_string(), list, "{hex}");
        }
        let mask = CpuMask::parse_list("0,67", 128).unwrap();
        assert_eq!(mask.to_hex(""), "00000008,00000000,00000001");
        assert_eq!(CpuMask::all(4).to_hex("0x"), "0x0000000f");
        assert_eq!(CpuMask::parse_hex("1,00000000", 32).unwrap_err(), "CPU 32 is outside 0-31");
        let error = CpuMask::parse_hex("0xf...f", 32).unwrap_err();
        assert_eq!(error, "cannot read mask part \"0xf...f\"; write it like 0x000000ff");
    }

    #[test]
    fn a_wrapped_walk_meets_each_cpu_once() {
        let mask = CpuMask::parse_list("1,5,70", 128).unwrap();
        assert_eq!(numbers(mask.iter_wrap(0)), [1, 5, 70]);
        assert_eq!(numbers(mask.iter_wrap(5)), [5, 70, 1]);
        assert_eq!(numbers(mask.iter_wrap(6)), [70, 1, 5]);
        assert_eq!(numbers(mask.iter_wrap(128)), [1, 5, 70]);
        assert_eq!(numbers(CpuMask::new(128).iter_wrap(3)), Vec::<u16>::new());
    }

    #[test]
    fn a_cpu_outside_the_machine_is_named() {
        let error = CpuMask::parse_list("0-8", 8).unwrap_err();
        assert_eq!(error, "CPU 8 is outside 0-7");
    }
}
