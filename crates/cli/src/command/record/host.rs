//! The recorded host: its files, below a root that tests replace.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Larger than any of the files that must be read at once.
const AT_ONCE: usize = 64 << 10;

/// Where the files of a host are, and how its kernel creates and removes a trace instance.
pub struct Host {
    root: PathBuf,
    /// Creates the folder; the kernel then creates the files in it.
    pub make_instance: fn(&Path) -> io::Result<()>,
    /// Removes the folder; the kernel then removes the files in it.
    pub remove_instance: fn(&Path) -> io::Result<()>,
}

impl Host {
    /// The host we run on.
    pub fn own() -> Host {
        Host {
            root: PathBuf::from("/"),
            make_instance: |path| std::fs::create_dir(path),
            remove_instance: |path| std::fs::remove_dir(path),
        }
    }

    /// A host whose files are below a folder.
    #[cfg(test)]
    pub fn below(
        root: &Path,
        make_instance: fn(&Path) -> io::Result<()>,
        remove_instance: fn(&Path) -> io::Result<()>,
    ) -> Host {
        Host { root: root.to_owned(), make_instance, remove_instance }
    }

    /// Where an absolute path of the host is.
    pub fn path(&self, absolute: &str) -> PathBuf {
        self.root.join(absolute.trim_start_matches('/'))
    }

    /// The text of a file, without trailing space; `None` if there is no such file.
    pub fn text(&self, absolute: &str) -> Option<String> {
        Some(String::from_utf8_lossy(&self.bytes(absolute)?).trim_end().to_owned())
    }

    /// The bytes of a file. Some files of the kernel return all their content to the first read and nothing to later
    /// ones, however small that read was, so the first read requests the largest possible size.
    pub fn bytes(&self, absolute: &str) -> Option<Vec<u8>> {
        let mut file = File::open(self.path(absolute)).ok()?;
        let (mut bytes, mut part) = (Vec::new(), vec![0; AT_ONCE]);
        loop {
            match file.read(&mut part) {
                Ok(0) => return Some(bytes),
                Ok(read) => bytes.extend_from_slice(&part[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }

    /// Names in a folder, in order; empty if there is no such folder.
    pub fn names(&self, absolute: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(absolute)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Names that consist of a word and a number, in order of the numbers: `cpu0`, `cpu1`.
    pub fn numbered(&self, absolute: &str, word: &str) -> Vec<(usize, String)> {
        let number = |name: String| Some((name.strip_prefix(word)?.parse().ok()?, name));
        let mut names: Vec<(usize, String)> = self.names(absolute).into_iter().filter_map(number).collect();
        names.sort();
        names
    }

    /// The first mount point of a kind of filesystem, as a path of the host.
    pub fn mounted(&self, kind: &str) -> Option<String> {
        self.mounts().into_iter().find(|(_, found, _)| found == kind).map(|(place, ..)| place)
    }

    /// The mounts: place, kind and options.
    pub fn mounts(&self) -> Vec<(String, String, String)> {
        let mounts = self.text("/proc/mounts").unwrap_or_default();
        let mount = |line: &str| {
            let mut words = line.split(' ').skip(1).map(str::to_owned);
            Some((words.next()?.replace("\\040", " "), words.next()?, words.next()?))
        };
        mounts.lines().filter_map(mount).collect()
    }
}

/// Opens a kernel file that would block its reader until there is more data.
pub fn open_without_waiting(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)
}
