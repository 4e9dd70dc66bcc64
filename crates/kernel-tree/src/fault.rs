//! A fault that ends a kernel: a sentence with its place, raised through the C code as a panic that is not printed.

use std::fmt;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::Command;

use crate::tools::run;

/// Names of loaded libraries begin so.
pub(crate) const LIBRARY: &str = "schedlab-kernel-";

/// A `BUG()`, a division by zero, a lock taken twice, a call that does not return, a function that the library lacks, or a
/// driver's request for something that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault(String);

impl Fault {
    /// The same with more about it.
    pub(crate) fn and(&self, more: &str) -> Fault {
        Fault(format!("{}{more}", self.0))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}

/// Runs code that drives kernels, and returns the fault if a kernel ends with one. Other panics continue.
///
/// # Errors
/// The fault.
pub fn guarded<T>(run: impl FnOnce() -> T) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|payload| match payload.downcast::<Fault>() {
        Ok(fault) => *fault,
        Err(other) => resume_unwind(other),
    })
}

/// Raises a fault. `at` is an address in a library, or 0.
pub(crate) fn raise(text: &str, at: usize) -> ! {
    let place = (at != 0).then(|| place(at)).flatten();
    let text = text.trim_end();
    let sentence = match place {
        Some(place) => format!("the kernel cannot go on: {place}: {text}"),
        None => format!("the kernel cannot go on: {text}"),
    };
    end_run(sentence)
}

/// Ends a run with a sentence that the caller of [`guarded`] gets.
pub fn end_run(sentence: String) -> ! {
    resume_unwind(Box::new(Fault(sentence)))
}

/// The file of the library whose code contains an address.
pub(crate) fn library_at(at: usize) -> Option<String> {
    mapped(at).map(|(file, _)| file).filter(|file| file.contains(LIBRARY))
}

/// The file that is mapped at an address, and where it begins.
fn mapped(at: usize) -> Option<(String, usize)> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let start = |line: &str| usize::from_str_radix(line.split(['-', ' ']).next()?, 16).ok();
    let end = |line: &str| usize::from_str_radix(line.split(['-', ' ']).nth(1)?, 16).ok();
    let holds = |line: &&str| start(line).is_some_and(|s| s <= at) && end(line).is_some_and(|e| at < e);
    let file = maps.lines().find(holds)?.split_whitespace().nth(5)?;
    let base = maps.lines().filter(|line| line.ends_with(file)).filter_map(start).min()?;
    Some((file.to_string(), base))
}

/// File, line and function of an address.
fn place(at: usize) -> Option<String> {
    let (file, base) = mapped(at)?;
    // The call is just before the address to which it returns.
    let mut command = Command::new("addr2line");
    let words = run(command.args(["-f", "-e", &file, &format!("{:#x}", at - base - 1)]), "the place").ok()?;
    let (function, line) = words.trim().split_once('\n')?;
    let line = line.trim_start_matches("./");
    let line = ["/kernel/", "/lib/", "/include/"]
        .iter()
        .find_map(|top| line.find(top).map(|i| &line[i + 1..]))
        .unwrap_or(line);
    let line = line.split(" (").next().unwrap_or(line);
    (!line.starts_with('?')).then(|| format!("{line}, {function}()"))
}
