//! Where results go: standard output, or a file that appears whole or not at all.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::Serialize;

use crate::error::Error;

/// How results are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON value with the same numbers.
    Json,
}

/// Writes a result to standard output.
///
/// A reader that closes the pipe early (`| head`) is no error.
pub fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Error> {
    let mut out = BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::new(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes a result to a file, or to standard output if there is none.
pub fn write(path: Option<&Path>, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Error> {
    match path {
        Some(path) => write_file(path, write),
        None => print(write),
    }
}

/// Writes a value as JSON to standard output.
pub fn print_json(value: &impl Serialize) -> Result<(), Error> {
    print(|out| {
        serde_json::to_writer_pretty(&mut *out, value)?;
        writeln!(out)
    })
}

/// The file being written, for an interruption to take away.
static PARTIAL: Mutex<Option<PathBuf>> = Mutex::new(None);

/// What an interruption does instead of ending the command.
static ON_INTERRUPT: Mutex<Option<Box<dyn Fn() + Send>>> = Mutex::new(None);

/// From now on an interruption calls this, and the command ends by itself.
pub fn on_interrupt(call: impl Fn() + Send + 'static) {
    *ON_INTERRUPT.lock().expect("no holder panics") = Some(Box::new(call));
}

/// Lets Ctrl-C take away what is half written. Status 130, as shells expect.
pub fn clean_up_on_interrupt() {
    // Without a handler an interruption still leaves the old file as it was.
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

fn set_partial(path: Option<PathBuf>) {
    *PARTIAL.lock().expect("no holder panics") = path;
}

/// Writes a file, or what stands there that is none: a pipe or a device.
fn write_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Error> {
    let result = match std::fs::metadata(path) {
        // Moving a file there would take the place of the device itself.
        Ok(found) if !found.is_file() => {
            File::options().write(true).open(path).and_then(|file| write_whole(file, write))
        }
        // A link stays, and what it names is replaced.
        Ok(_) => std::fs::canonicalize(path).and_then(|path| replace(&path, write)),
        Err(_) => replace(path, write),
    };
    result.map_err(|error| Error::file(path, &error))
}

/// Writes a file beside its final place and moves it there when it is whole, so
/// that an interruption leaves what was there before.
fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let partial = partial_path(path);
    set_partial(Some(partial.clone()));
    let result = File::create(&partial)
        .and_then(|file| write_whole(file, write))
        .and_then(|()| std::fs::rename(&partial, path));
    set_partial(None);
    result.inspect_err(|_| {
        // The message about the first failure is worth more than one about tidying up.
        let _ = std::fs::remove_file(&partial);
    })
}

fn write_whole(file: File, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    write(&mut out)?;
    out.flush()
}

fn partial_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.partial"))
}
