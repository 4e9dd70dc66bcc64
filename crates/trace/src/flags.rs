//! The flags column of a trace line: the context of the event.
//!
//! ```text
//!   d..2.    irqs off, need-resched, hard or soft interrupt, preempt depth, migrate disable
//! ```
//!
//! The bits are those of the common header of each binary record, so text and binary traces share this type.
//!
//! Kernel: trace_print_lat_fmt(), kernel/trace/trace_output.c; enum
//! trace_flag_type, include/linux/trace_events.h.

use std::fmt;

/// The context of an event: interrupts, need-resched and the two depths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flags {
    bits: u16,
    preempt_depth: u8,
    migrate_disable: u8,
}

impl Flags {
    /// Task context, interrupts and preemption on, nothing pending.
    pub const NONE: Flags = Flags::new(0, 0, 0);
    /// Not recorded; every question is answered with no.
    pub const UNKNOWN: Flags = Flags { bits: 1 << 15, preempt_depth: 0, migrate_disable: 0 };

    /// Interrupts are off.
    pub const IRQS_OFF: u8 = 1;
    /// The lazy need-resched bit is set (6.13; before that the bit had another, rare meaning).
    pub const NEED_RESCHED_LAZY: u8 = 2;
    /// The need-resched bit is set.
    pub const NEED_RESCHED: u8 = 4;
    /// In a hard interrupt.
    pub const HARDIRQ: u8 = 8;
    /// In a soft interrupt.
    pub const SOFTIRQ: u8 = 16;
    /// The need-resched bit folded into the preempt count is set.
    pub const PREEMPT_RESCHED: u8 = 32;
    /// In a non-maskable interrupt.
    pub const NMI: u8 = 64;
    /// Soft interrupts are off.
    pub const BH_OFF: u8 = 128;

    /// Flags from bits and depths; a depth over 15 is stored as 15, as in the record.
    #[inline]
    pub const fn new(bits: u8, preempt_depth: u8, migrate_disable: u8) -> Flags {
        const fn nibble(depth: u8) -> u8 {
            if depth > 15 { 15 } else { depth }
        }
        Flags {
            bits: bits as u16,
            preempt_depth: nibble(preempt_depth),
            migrate_disable: nibble(migrate_disable),
        }
    }

    /// Flags from the two bytes of a binary record.
    pub const fn from_record(flags: u8, preempt_count: u8) -> Flags {
        Flags::new(flags, preempt_count & 15, preempt_count >> 4)
    }

    /// The two bytes of a binary record.
    pub const fn to_record(self) -> (u8, u8) {
        (self.bits as u8, self.migrate_disable << 4 | self.preempt_depth)
    }

    /// Whether flags were recorded.
    pub const fn is_known(self) -> bool {
        self.bits < 1 << 15
    }

    /// Whether one of these bits is set.
    pub const fn has(self, bits: u8) -> bool {
        self.bits & bits as u16 != 0
    }

    /// How deeply preemption is disabled.
    pub const fn preempt_depth(self) -> u8 {
        self.preempt_depth
    }

    /// How deeply migration is disabled.
    pub const fn migrate_disable(self) -> u8 {
        self.migrate_disable
    }

    /// Whether an interrupt of any kind runs here, so that the line's task was only interrupted by it.
    pub const fn in_interrupt(self) -> bool {
        self.has(Flags::HARDIRQ | Flags::SOFTIRQ | Flags::NMI)
    }

    /// Parses the column: four characters before 5.17, five since. Kernels built with the PREEMPT_RT patches print six
    /// or seven: the lazy need-resched bit has its own column after the other, and the depth of lazy preemption may
    /// have one after that of preemption. `None` if it is not such a column.
    pub fn parse(text: &[u8]) -> Option<Flags> {
        match *text {
            [a, b, c, d] => Flags::column([a, b, c, d, b'.']),
            [a, b, c, d, e] => Flags::column([a, b, c, d, e]),
            [a, b, lazy, c, d, e] => Flags::with_lazy([a, b, c, d, e], lazy),
            [a, b, lazy, c, d, lazy_depth, e] if DEPTH[usize::from(lazy_depth)] < NO_LETTER => {
                Flags::with_lazy([a, b, c, d, e], lazy)
            }
            _ => None,
        }
    }

    /// Flags of a column with a separate letter for the lazy need-resched bit.
    fn with_lazy(letters: [u8; 5], lazy: u8) -> Option<Flags> {
        let bits = match lazy {
            b'.' => 0,
            _ if RESCHED[usize::from(lazy)] < NO_LETTER => u16::from(Flags::NEED_RESCHED_LAZY),
            _ => return None,
        };
        Flags::column(letters).map(|flags| Flags { bits: flags.bits | bits, ..flags })
    }

    /// Parses a column of five characters.
    #[inline]
    pub fn column(letters: [u8; 5]) -> Option<Flags> {
        let [irqs, resched, interrupt, depth, migrate] = letters;
        let bits =
            IRQS[usize::from(irqs)] | RESCHED[usize::from(resched)] | INTERRUPT[usize::from(interrupt)];
        let (preempt_depth, migrate_disable) = (DEPTH[usize::from(depth)], DEPTH[usize::from(migrate)]);
        (bits | preempt_depth | migrate_disable < NO_LETTER).then_some(Flags {
            bits,
            preempt_depth: preempt_depth as u8,
            migrate_disable: migrate_disable as u8,
        })
    }

    /// The five characters of the column.
    pub fn letters(self) -> [u8; 5] {
        let irqs = match (self.has(Flags::IRQS_OFF), self.has(Flags::BH_OFF)) {
            (true, true) => b'D',
            (true, false) => b'd',
            (false, true) => b'b',
            (false, false) => b'.',
        };
        let resched = match (
            self.has(Flags::NEED_RESCHED),
            self.has(Flags::PREEMPT_RESCHED),
            self.has(Flags::NEED_RESCHED_LAZY),
        ) {
            (true, true, true) => b'B',
            (true, true, false) => b'N',
            (false, true, true) => b'L',
            (true, false, true) => b'b',
            (true, false, false) => b'n',
            (false, false, true) => b'l',
            (false, true, false) => b'p',
            (false, false, false) => b'.',
        };
        let interrupt = match (self.has(Flags::NMI), self.has(Flags::HARDIRQ), self.has(Flags::SOFTIRQ)) {
            (true, true, _) => b'Z',
            (true, false, _) => b'z',
            (false, true, true) => b'H',
            (false, true, false) => b'h',
            (false, false, true) => b's',
            (false, false, false) => b'.',
        };
        [irqs, resched, interrupt, digit(self.preempt_depth), digit(self.migrate_disable)]
    }
}

/// Table entry for a character that its column cannot contain.
const NO_LETTER: u16 = 1 << 15;

/// The meaning of each character of a column: the value at its position in the list.
const fn letters<const N: usize>(values: [(u8, u8); N]) -> [u16; 256] {
    let mut table = [NO_LETTER; 256];
    let mut i = 0;
    while i < N {
        table[values[i].0 as usize] = values[i].1 as u16;
        i += 1;
    }
    table
}

static IRQS: [u16; 256] = letters([
    (b'.', 0),
    (b'd', Flags::IRQS_OFF),
    (b'b', Flags::BH_OFF),
    (b'D', Flags::IRQS_OFF | Flags::BH_OFF),
    (b'X', 0),
]);

static RESCHED: [u16; 256] = letters([
    (b'.', 0),
    (b'N', Flags::NEED_RESCHED | Flags::PREEMPT_RESCHED),
    (b'n', Flags::NEED_RESCHED),
    (b'p', Flags::PREEMPT_RESCHED),
    (b'B', Flags::NEED_RESCHED | Flags::PREEMPT_RESCHED | Flags::NEED_RESCHED_LAZY),
    (b'L', Flags::PREEMPT_RESCHED | Flags::NEED_RESCHED_LAZY),
    (b'b', Flags::NEED_RESCHED | Flags::NEED_RESCHED_LAZY),
    (b'l', Flags::NEED_RESCHED_LAZY),
]);

static INTERRUPT: [u16; 256] = letters([
    (b'.', 0),
    (b'h', Flags::HARDIRQ),
    (b's', Flags::SOFTIRQ),
    (b'H', Flags::HARDIRQ | Flags::SOFTIRQ),
    (b'z', Flags::NMI),
    (b'Z', Flags::NMI | Flags::HARDIRQ),
]);

static DEPTH: [u16; 256] = letters([
    (b'.', 0),
    (b'0', 0),
    (b'1', 1),
    (b'2', 2),
    (b'3', 3),
    (b'4', 4),
    (b'5', 5),
    (b'6', 6),
    (b'7', 7),
    (b'8', 8),
    (b'9', 9),
    (b'a', 10),
    (b'b', 11),
    (b'c', 12),
    (b'd', 13),
    (b'e', 14),
    (b'f', 15),
]);

fn digit(depth: u8) -> u8 {
    match depth {
        0 => b'.',
        1..=9 => b'0' + depth,
        _ => b'a' + (depth - 10),
    }
}

impl Default for Flags {
    fn default() -> Flags {
        Flags::NONE
    }
}

impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.letters().iter().try_for_each(|&letter| write!(f, "{}", letter as char))
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_known() { write!(f, "{self}") } else { write!(f, "?????") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_that_can_be_printed_reads_back() {
        for irqs in *b".dbD" {
            for resched in *b".NnpBLbl" {
                for interrupt in *b".hsHzZ" {
                    for depth in *b".19af" {
                        let column = [irqs, resched, interrupt, depth, b'1'];
                        let flags = Flags::parse(&column).expect("a valid column");
                        assert_eq!(flags.letters(), column);
                        let (bits, count) = flags.to_record();
                        assert_eq!(Flags::from_record(bits, count), flags);
                    }
                }
            }
        }
    }

    #[test]
    fn older_kernels_print_four_characters() {
        let flags = Flags::parse(b"dN.4").unwrap();
        assert!(flags.has(Flags::NEED_RESCHED) && !flags.in_interrupt());
        assert_eq!((flags.preempt_depth(), flags.migrate_disable()), (4, 0));
    }

    #[test]
    fn kernels_with_preempt_rt_print_six_or_seven_characters() {
        let shown = |text: &str| Flags::parse(text.as_bytes()).map(|flags| flags.to_string());
        let table = [
            ("dN.h4..", "dNh4."),
            ("d...2..", "d..2."),
            (".....13", "....3"),
            ("dN..213", "dN.23"),
            ("d.Lh2..", "dlh2."),
            ("dN.h4.", "dNh4."),
            ("d...21", "d..21"),
            ("d..q2..", ""),
        ];
        for (text, read) in table {
            assert_eq!(shown(text).unwrap_or_default(), read, "{text}");
        }
    }

    #[test]
    fn other_words_are_no_flags() {
        for word in ["", "...", "[001]", "10.5:", "dq..."] {
            assert_eq!(Flags::parse(word.as_bytes()), None, "{word}");
        }
    }

    #[test]
    fn unknown_flags_answer_no() {
        assert!(!Flags::UNKNOWN.is_known() && !Flags::UNKNOWN.in_interrupt());
        assert_eq!(Flags::UNKNOWN.to_string(), ".....");
    }
}
