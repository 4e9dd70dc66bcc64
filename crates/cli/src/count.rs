//! Numbers with their noun, for sentences.

/// `1 event` or `3 events`.
pub fn counted(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// `1 event was` or `3 events were`.
pub fn were(n: u64, what: &str) -> String {
    format!("{} {}", counted(n, what), if n == 1 { "was" } else { "were" })
}

/// `1 switch` or `3 switches`.
pub fn switches(n: u64) -> String {
    format!("{n} switch{}", if n == 1 { "" } else { "es" })
}

/// `1 switch is` or `3 switches are`.
pub fn are_switches(n: u64) -> String {
    format!("{} {}", switches(n), if n == 1 { "is" } else { "are" })
}
