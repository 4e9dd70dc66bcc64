//! Files that a scenario names, relative to it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use schedlab::Files;

use crate::error::Error;
use crate::recording::is_read_once;

/// Reads relative to a folder.
pub struct Folder(PathBuf);

impl Folder {
    /// The folder of a file.
    pub fn of(file: &Path) -> Folder {
        Folder(file.parent().unwrap_or(Path::new("")).to_path_buf())
    }
}

impl Files for Folder {
    fn text(&self, name: &str) -> Result<String, String> {
        let path = self.0.join(name);
        read(&path).map_err(|error| error.to_string())
    }
}

/// Maximum size of a file that is read as a whole: scenarios, machines, plans. The largest known ones have 3 MB.
const WHOLE_MAX: u64 = 256 << 20;

/// How long a stream may take before a line says that it is still being read.
const PATIENCE: Duration = Duration::from_secs(5);

/// The bytes of a file the user named; `-` is standard input.
pub fn bytes(path: &Path) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let mut take = |input: &mut dyn Read| input.take(WHOLE_MAX + 1).read_to_end(&mut bytes);
    let read = if path == Path::new("-") {
        take(&mut Stream::new(path, std::io::stdin().lock()))
    } else if is_read_once(path) {
        // Even opening a pipe waits for the other end.
        let waiting = Waiting::new(path);
        std::fs::File::open(path).and_then(|file| take(&mut Stream::waited_for(waiting, file)))
    } else {
        std::fs::File::open(path).and_then(|mut file| take(&mut file))
    };
    if read.map_err(|error| Error::file(path, &error))? as u64 > WHOLE_MAX {
        return Err(Error::new(format!(
            "{}: this has more than {} MiB, which no scenario and no machine has; is it another file, or a device?",
            path.display(),
            WHOLE_MAX >> 20
        )));
    }
    Ok(bytes)
}

/// Reports from time to time that a stream is still being read, until it is dropped.
pub struct Waiting {
    read: Arc<AtomicU64>,
    /// Closed when reading ends.
    over: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Waiting {
    /// Begins.
    pub fn new(path: &Path) -> Waiting {
        let name = match path == Path::new("-") {
            true => "standard input".to_owned(),
            false => path.display().to_string(),
        };
        let read = Arc::new(AtomicU64::new(0));
        let (over, is_over) = channel::<()>();
        let counted = Arc::clone(&read);
        let thread = std::thread::spawn(move || {
            let mut patience = PATIENCE;
            while is_over.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                let done = counted.load(Ordering::Relaxed);
                let so_far = match done {
                    0 => "nothing has come".to_owned(),
                    _ => format!("{} MiB so far, and no end", done >> 20),
                };
                say!("{name}: still reading, {so_far}; Ctrl-C ends it");
                patience *= 2;
            }
        });
        Waiting { read, over: Some(over), thread: Some(thread) }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.over = None;
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// Input that can be read only once and may be endless. If that takes long, a line says so.
pub struct Stream<R> {
    inner: R,
    waiting: Waiting,
}

impl<R: Read> Stream<R> {
    /// The stream that the user knows by this path.
    pub fn new(path: &Path, inner: R) -> Stream<R> {
        Stream::waited_for(Waiting::new(path), inner)
    }

    /// A stream that has already been waited for.
    pub fn waited_for(waiting: Waiting, inner: R) -> Stream<R> {
        Stream { inner, waiting }
    }
}

impl<R: Read> Read for Stream<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.waiting.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// The name of a file or folder in reports: the same however its path was typed.
pub fn label(path: &Path) -> String {
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    whole.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The text of a file the user named, without the byte order mark that some editors put before it.
pub fn read(path: &Path) -> Result<String, Error> {
    let (bytes, name) = (bytes(path)?, path.display());
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err(Error::new(format!(
            "{name}: this is text in UTF-16, which is not read; convert it first: iconv -f UTF-16 -t UTF-8"
        )));
    }
    let mut text = String::from_utf8(bytes)
        .map_err(|_| Error::new(format!("{name}: this is not text; is it damaged, or another file?")))?;
    if text.starts_with('\u{feff}') {
        text.remove(0);
    }
    Ok(text)
}
