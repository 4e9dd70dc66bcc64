//! The name of a kernel over its column, on two lines.
//!
//! mmtests splits a name at its first `-`, after an `-rcN` if there is one: the version above, the change
//! below. Our own names separate the change with `+` and are split there, keeping the sign; a name with
//! neither is on the first line.

/// The two parts of a kernel's name.
pub(crate) fn split_name(name: &str) -> (&str, &str) {
    let Some(mut at) = name.find(['-', '+']) else {
        return (name, "");
    };
    if let Some(rc) = name[at..].strip_prefix("-rc") {
        let digits = rc.find(|c: char| !c.is_ascii_digit()).unwrap_or(rc.len());
        if digits > 0 {
            at += "-rc".len() + digits;
        }
    }
    let rest = &name[at..];
    (&name[..at], rest.strip_prefix('-').unwrap_or(rest))
}

/// Both header lines: names right-aligned to the ends of their columns.
pub(crate) fn header(first_width: usize, kernels: &[String], widths: &[usize]) -> String {
    let line = |part: fn(&str) -> &str| {
        let mut line = " ".repeat(first_width);
        for (name, &width) in kernels.iter().zip(widths) {
            line += &format!("{:>width$}", part(name));
        }
        line.trim_end().to_owned()
    };
    let lines = [line(|name| split_name(name).0), line(|name| split_name(name).1)];
    lines.iter().filter(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect()
}

/// The width of a kernel's header.
pub(crate) fn header_width(name: &str) -> usize {
    let (above, below) = split_name(name);
    above.chars().count().max(below.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_split_where_mmtests_splits_them() {
        for (name, above, below) in [
            ("5.5.0-rc7-tipsched-20200124", "5.5.0-rc7", "tipsched-20200124"),
            ("6.10.0-rc12-preempt-auto", "6.10.0-rc12", "preempt-auto"),
            ("6.9.0-00035-gc90017e055a6", "6.9.0", "00035-gc90017e055a6"),
            ("5.18.0-rc1", "5.18.0-rc1", ""),
            ("5.18.0-rcu", "5.18.0", "rcu"),
            ("v5.5", "v5.5", ""),
            ("v5.5+SIS_KTHREAD_STACK", "v5.5", "+SIS_KTHREAD_STACK"),
            ("v6.10+preempt=auto/none", "v6.10", "+preempt=auto/none"),
            ("v6.1-rc3+NO_SIS_UTIL", "v6.1-rc3", "+NO_SIS_UTIL"),
            ("", "", ""),
        ] {
            assert_eq!(split_name(name), (above, below), "{name}");
        }
    }
}
