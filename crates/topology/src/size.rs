//! Cache sizes as people and the kernel write them: `32K`, `1280K`, `32M`.

/// Reads a size in bytes; K, M and G are powers of 1024.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        b'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number: u64 = digits.parse().ok()?;
    let bytes = number.checked_mul(1 << shift)?;
    (bytes > 0).then_some(bytes)
}

/// Writes a size in the largest unit that divides it.
pub(crate) fn format(bytes: u64) -> String {
    for (shift, unit) in [(30, "G"), (20, "M"), (10, "K")] {
        if bytes != 0 && bytes.is_multiple_of(1 << shift) {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_and_print_alike() {
        for text in ["512", "32K", "1280K", "32M", "1G"] {
            assert_eq!(format(parse(text).unwrap()), text);
        }
        assert_eq!(parse("16384K"), Some(16 << 20));
        for text in ["", "K", "-1K", "0", "1.5M", "32 M", "99999999999999999999G", "20000000000G", "é"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
