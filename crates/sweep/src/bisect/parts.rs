//! In what two kernels differ, as parts of a kernel string.

use schedlab::sched::{Feature, Kernel, Preempt, Rules, Tunables};
use serde::Serialize;

use crate::error::Error;

/// One setting in which two kernels differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// The rule: `SIS_UTIL`, `IMB_NUMA_NR`, `base_slice_ns`, `preempt`.
    pub name: String,
    /// As a kernel string has it, to make the first kernel as the second: `NO_SIS_UTIL`, `base_slice_ns=3000000`.
    pub text: String,
    /// What the rule is.
    pub sentence: String,
    /// The model of preemption itself, as no kernel string says of a kernel built one way that it was built another.
    #[serde(skip)]
    pub(super) preempt: Option<Preempt>,
}

/// What turns the first kernel into the second, part by part.
pub fn parts(good: &Kernel, bad: &Kernel) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut part = |name: &str, text: String, sentence: &str| {
        parts.push(Part { name: name.to_owned(), text, sentence: sentence.to_owned(), preempt: None });
    };
    for row in Feature::TABLE.iter().filter(|row| good.has(row.feature) != bad.has(row.feature)) {
        let no = if bad.has(row.feature) { "" } else { "NO_" };
        part(row.name, format!("{no}{}", row.name), row.sentence);
    }
    for row in Rules::TABLE.iter().filter(|row| (row.get)(&good.rules) != (row.get)(&bad.rules)) {
        part(row.name, format!("{}={}", row.name, (row.get)(&bad.rules)), row.sentence);
    }
    for row in Tunables::ALL.iter().filter(|row| (row.get)(&good.tunables) != (row.get)(&bad.tunables)) {
        part(row.name, format!("{}={}", row.name, (row.get)(&bad.tunables)), row.sentence);
    }
    if good.preempt != bad.preempt {
        parts.push(Part {
            name: "preempt".to_owned(),
            text: format!("preempt={}", bad.preempt.name()),
            sentence: "Where a running task can be preempted.".to_owned(),
            preempt: Some(bad.preempt),
        });
    }
    parts
}

/// The kernels that have names from one to another, `v6.3..v6.12`, both included.
///
/// # Errors
/// A kernel without a name here, and an empty range.
pub fn between(range: &str) -> Result<Vec<Kernel>, Error> {
    let written =
        || Error::new(format!("--between is two released kernels, as v6.3..v6.12, not \"{range}\""));
    let (first, last) = range.split_once("..").ok_or_else(written)?;
    let names = Kernel::names();
    let place = |name: &str| {
        names.iter().position(|known| *known == name.trim()).ok_or_else(|| {
            Error::new(format!(
                "--between {range}: there is no kernel \"{name}\"; known are {}",
                names.join(", ")
            ))
        })
    };
    let (first, last) = (place(first)?, place(last)?);
    if first >= last {
        return Err(Error::new(format!("--between {range}: the older kernel comes first")));
    }
    let parsed = names[first..=last].iter().map(|name| Kernel::parse(name));
    parsed.collect::<Result<_, _>>().map_err(|error| Error::new(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bisect::kernel_with;

    #[test]
    fn all_parts_together_make_the_second_kernel_of_the_first() {
        let kernels: Vec<Kernel> = Kernel::names().iter().map(|name| Kernel::parse(name).unwrap()).collect();
        for good in &kernels {
            for bad in &kernels {
                let parts = parts(good, bad);
                let all: Vec<usize> = (0..parts.len()).collect();
                let made = kernel_with(good, &parts, &all).unwrap();
                assert_eq!(
                    (&made.features, &made.rules, &made.tunables, &made.preempt),
                    (&bad.features, &bad.rules, &bad.tunables, &bad.preempt),
                    "{} to {}",
                    good.name,
                    bad.name
                );
            }
        }
    }

    #[test]
    fn released_kernels_are_named_by_a_range() {
        let names = |range: &str| between(range).unwrap().into_iter().map(|k| k.name).collect::<Vec<_>>();
        assert_eq!(names("v6.1..v6.10"), ["v6.1", "v6.3", "v6.10"]);
        for (range, says) in [("v6.1", "two released"), ("v6.1..v6.6", "known are"), ("v6.10..v6.1", "older")]
        {
            assert!(between(range).unwrap_err().to_string().contains(says), "{range}");
        }
    }
}
