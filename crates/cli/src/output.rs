//! Where results go: standard output, or a file that appears whole or not at all.

use std::cell::RefCell;
use std::fs::{File, Permissions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use nix::sys::signal::{SigSet, Signal};
use serde::Serialize;

use crate::error::Error;
use crate::width::{fitted, width};

/// How results are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON value with the same numbers.
    Json,
}

thread_local! {
    /// What this thread prints if another program calls the command.
    static CAPTURED: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// Calls a function and returns what it printed.
pub fn capture<T>(call: impl FnOnce() -> T) -> (T, Vec<u8>) {
    CAPTURED.set(Some(Vec::new()));
    let result = call();
    (result, CAPTURED.take().unwrap_or_default())
}

/// Writes a text result to standard output. Prose wider than the terminal is broken between words.
///
/// A reader that closes the pipe early (`| head`) is not an error.
pub fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Error> {
    if CAPTURED.with_borrow(Option::is_some) || !io::stdout().is_terminal() {
        return print_as_is(write);
    }
    print_as_is(|out| {
        let mut fitted = Fitted { out, line: Vec::new(), width: width() };
        write(&mut fitted)?;
        fitted.finish()
    })
}

/// Writes a result to standard output, line for line as it is: for programs, and for copying.
///
/// A reader that closes the pipe early (`| head`) is not an error.
pub fn print_as_is(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Error> {
    if let Some(mut captured) = CAPTURED.take() {
        let written = write(&mut captured);
        CAPTURED.set(Some(captured));
        return written.map_err(|error| Error::new(error.to_string()));
    }
    let stdout = io::stdout().lock();
    let is_terminal = stdout.is_terminal();
    let mut out = BufWriter::new(stdout);
    let written = if is_terminal { write(&mut Visible { out: &mut out, last: 0 }) } else { write(&mut out) };
    match written.and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::new(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Breaks prose into lines of a terminal.
struct Fitted<'a> {
    out: &'a mut dyn Write,
    line: Vec<u8>,
    width: usize,
}

impl Fitted<'_> {
    fn finish(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        match std::str::from_utf8(&line) {
            Ok(text) => self.out.write_all(fitted(text, self.width).as_bytes()),
            Err(_) => self.out.write_all(&line),
        }
    }
}

impl Write for Fitted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.line.pop();
                self.finish()?;
                self.out.write_all(b"\n")?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Passes text on to a terminal. Control characters in names of tasks and files become `?`.
struct Visible<'a> {
    out: &'a mut dyn Write,
    /// The byte before.
    last: u8,
}

impl Write for Visible<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let visible: Vec<u8> = bytes
            .iter()
            .map(|&byte| {
                // Control characters beyond ASCII are U+0080 to U+009F, two bytes in UTF-8.
                let beyond = self.last == 0xc2 && (0x80..0xa0).contains(&byte);
                self.last = byte;
                match byte {
                    b'\n' | b'\t' => byte,
                    0..0x20 | 0x7f => b'?',
                    _ if beyond => 0xbf,
                    _ => byte,
                }
            })
            .collect();
        self.out.write_all(&visible)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes a report for people to a file, or to standard output if there is none, as [`print`] does.
pub fn write_report(
    path: Option<&Path>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Error> {
    match path {
        Some(path) => write_file(path, write),
        None => print(write),
    }
}

/// Writes a result to a file, or to standard output if there is none.
pub fn write(path: Option<&Path>, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Error> {
    match path {
        Some(path) => write_file(path, write),
        None => print_as_is(write),
    }
}

/// Writes a value as JSON to standard output.
pub fn print_json(value: &impl Serialize) -> Result<(), Error> {
    print_as_is(|out| {
        serde_json::to_writer_pretty(&mut *out, value)?;
        writeln!(out)
    })
}

/// The file being written, to be removed on an interrupt.
static PARTIAL: Mutex<Option<PathBuf>> = Mutex::new(None);

/// What an interrupt does instead of ending the command.
static ON_INTERRUPT: Mutex<Option<Box<dyn Fn() + Send>>> = Mutex::new(None);

/// From now on an interrupt calls this, and the command ends by itself.
pub fn on_interrupt(call: impl Fn() + Send + 'static) {
    *ON_INTERRUPT.lock().expect("no holder panics") = Some(Box::new(call));
}

/// The first Ctrl-C only requests a stop, so that finished work can be printed. The second ends at once.
pub fn stop_on_interrupt() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = stop.clone();
    on_interrupt(move || {
        if asked.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        say!(
            "runs in progress are finished, then all finished runs are printed; press Ctrl-C again to stop at once"
        );
    });
    stop
}

/// Ctrl-C removes a half-written file. Status 130, as shells expect.
pub fn clean_up_on_interrupt() {
    // Without a handler an interrupt still leaves the old file unchanged.
    let _ = ctrlc::set_handler(|| {
        if let Ok(Some(call)) = ON_INTERRUPT.lock().as_deref() {
            return call();
        }
        if let Ok(Some(partial)) = PARTIAL.lock().as_deref() {
            let _ = std::fs::remove_file(partial);
        }
        std::process::exit(130);
    });
}

/// Turns the file size limit into a write error. Otherwise the signal would end the command and leave a
/// half-written file. All threads inherit this; child processes do not.
pub fn survive_file_size_limit() {
    // If the signal cannot be blocked, the command still runs.
    let _ = SigSet::from(Signal::SIGXFSZ).thread_block();
}

fn set_partial(path: Option<PathBuf>) {
    *PARTIAL.lock().expect("no holder panics") = path;
}

/// Refuses an output that is one of the inputs, as the input would be lost.
///
/// Two names are the same file if a link connects them.
pub fn refuse_input(output: Option<&Path>, inputs: &[&Path]) -> Result<(), Error> {
    let Some(output) = output else { return Ok(()) };
    // A device or a pipe may be read and written.
    if !output.is_file() {
        return Ok(());
    }
    for input in inputs {
        if same_file::is_same_file(output, input).unwrap_or(false) {
            return Err(Error::new(format!(
                "{}: this is the input {}; writing there would destroy it: name another file",
                output.display(),
                input.display()
            )));
        }
    }
    Ok(())
}

/// Checks, before work that takes long, that a result can be written to a file.
pub fn check(path: &Path) -> Result<(), Error> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match path.exists() {
        true => File::options().write(true).open(path).map(drop),
        false => tempfile::tempfile_in(folder).map(drop),
    }
    .map_err(|error| Error::file(path, &error))
}

/// Writes a regular file, or writes to a pipe or device of that name.
fn write_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Error> {
    let result = match std::fs::metadata(path) {
        // Moving a file there would replace the device itself.
        Ok(found) if !found.is_file() => {
            File::options().write(true).open(path).and_then(|file| write_whole(&file, write))
        }
        // A link is kept, and the file it names is replaced. That file keeps its mode.
        Ok(found) => std::fs::canonicalize(path).and_then(|path| replace(&path, found.permissions(), write)),
        Err(_) => replace(path, Permissions::from_mode(0o666), write),
    };
    result.map_err(|error| Error::file(path, &error))
}

/// Writes a file beside its final place and moves it there when complete, so that an interrupt leaves the old
/// file.
///
/// The temporary name is fresh and exclusive: two commands with one output do not mix their bytes, and no
/// link of that name is followed.
fn replace(
    path: &Path,
    mode: Permissions,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = tempfile::Builder::new()
        .prefix(&format!(".{name}."))
        .suffix(".partial")
        .permissions(mode.clone())
        .tempfile_in(folder)?;
    // The umask has been applied to a new file; an existing file keeps its mode.
    if path.exists() {
        beside.as_file().set_permissions(mode)?;
    }
    set_partial(Some(beside.path().to_path_buf()));
    // A file that is dropped before the move is removed.
    let result = write_whole(beside.as_file(), write)
        .and_then(|()| beside.persist(path).map(drop).map_err(|error| error.error));
    set_partial(None);
    result
}

fn write_whole(file: &File, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    write(&mut out)?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_controls_a_terminal_is_passed_on() {
        let mut out = Vec::new();
        let mut visible = Visible { out: &mut out, last: 0 };
        for part in ["a\u{1b}[2J\u{7}b\t\n", "\u{9b}31m", "\u{e9}\u{20ac}"] {
            visible.write_all(part.as_bytes()).unwrap();
        }
        assert_eq!(String::from_utf8(out).unwrap(), "a?[2J?b\t\n\u{bf}31m\u{e9}\u{20ac}");
    }
}
