//! Columns of whole numbers as bytes.
//!
//! Every number is a LEB128: seven bits per byte, the lowest first, the high bit set if more follow. Times are written
//! as differences, and signed numbers as zigzag. Most numbers then take one or two bytes, and similar bytes are
//! adjacent, which compresses well.

/// Writes numbers.
#[derive(Clone, Debug, Default)]
pub struct Columns(Vec<u8>);

impl Columns {
    /// Appends a number.
    #[inline]
    pub fn put(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// Appends a number with a sign.
    #[inline]
    pub fn put_signed(&mut self, number: i64) {
        self.put((number << 1 ^ number >> 63) as u64);
    }

    /// Appends all numbers of a column.
    pub fn put_all<T: Copy + Into<u64>>(&mut self, column: &[T]) {
        column.iter().for_each(|&number| self.put(number.into()));
    }

    /// Appends a column of instants in order, each as the time since the one before; the first since `from`.
    pub fn put_times(&mut self, column: &[u64], from: u64) {
        let mut before = from;
        for &time in column {
            self.put(time.saturating_sub(before));
            before = time.max(before);
        }
    }

    /// What was written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// Reads what [`Columns`] wrote.
#[derive(Clone, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// A reader of all numbers in the bytes.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }

    /// The next number; 0 after the end.
    pub fn get(&mut self) -> u64 {
        let mut number = 0;
        let mut shift = 0;
        while let Some((&byte, rest)) = self.0.split_first() {
            self.0 = rest;
            number |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte < 0x80 {
                break;
            }
            shift += 7;
        }
        number
    }

    /// The next number with a sign.
    pub fn get_signed(&mut self) -> i64 {
        let number = self.get();
        (number >> 1) as i64 ^ -((number & 1) as i64)
    }

    /// The next `count` numbers.
    pub fn take(&mut self, count: usize) -> Vec<u64> {
        (0..count).map(|_| self.get()).collect()
    }

    /// Whether all was read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let mut columns = Columns::default();
        let numbers = [0, 1, 127, 128, 300, u64::MAX];
        let signed = [0, -1, 1, -64, 64, i64::MIN, i64::MAX];
        columns.put_all(&numbers);
        signed.iter().for_each(|&number| columns.put_signed(number));
        columns.put_times(&[5, 5, 9], 2);
        let bytes = columns.into_bytes();
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.take(numbers.len()), numbers);
        assert_eq!(signed.map(|_| reader.get_signed()), signed);
        assert_eq!(reader.take(3), [3, 0, 4]);
        assert!(reader.is_empty());
        assert_eq!(reader.get(), 0);
    }
}
