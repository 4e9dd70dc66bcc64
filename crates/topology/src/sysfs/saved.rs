//! Sysfs files kept as text: from a tar, or from a list of paths and values.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use crate::sysfs::SysfsTree;
use crate::{Architecture, TopologyError};

/// A saved sysfs: the files below `devices/system` by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedSysfs {
    files: BTreeMap<String, String>,
}

/// Root below which all paths are stored.
const ROOT: &str = "/sys/devices/system/";
/// A sysfs file is at most a page; hosts with pages of 64 KiB exist.
const FILE_SIZE_MAX: u64 = 64 << 10;
/// Maximum size of an unpacked tar.
const TAR_SIZE_MAX: u64 = 4 << 30;

/// First bytes of files compressed in ways that are not read here, and the tools that unpack them.
const PACKED: [(&[u8], &str, &str); 3] =
    [(b"BZh", "bzip2", "bunzip2"), (b"\xfd7zXZ", "xz", "unxz"), (b"\x28\xb5\x2f\xfd", "zstd", "unzstd")];

impl SavedSysfs {
    /// No files.
    pub fn new() -> SavedSysfs {
        SavedSysfs::default()
    }

    /// Adds a file. Whatever precedes `devices/system/` in the path is ignored; without it, the path starts at its last
    /// part `cpu/` or `node/` that is known here.
    pub fn insert(&mut self, path: &str, text: &str) {
        if let Some(path) = below_system(path) {
            self.files.insert(format!("{ROOT}{path}"), text.to_string());
        }
    }

    /// Sets the architecture of the machine, if its files do not show it.
    pub fn set_architecture(&mut self, architecture: Architecture) {
        let path = format!("{ROOT}cpu/modalias");
        self.files.entry(path).or_insert_with(|| format!("cpu:type:{}:", architecture.name()));
    }

    /// The files in order of path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Reads lines with a path, a space and the file's text; errors refer to them as `name`.
    ///
    /// # Errors
    /// A line that does not begin with a path.
    pub fn from_lines(name: &str, text: &str) -> Result<SavedSysfs, TopologyError> {
        let mut saved = SavedSysfs::new();
        for (i, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (path, value) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            if below_system(path).is_none() {
                let what = format!("\"{path}\" is not a path below /sys/devices/system");
                let way_out = "write lines like /sys/devices/system/cpu/online 0-7";
                return Err(TopologyError::new(what, way_out).in_place(name).at_line(i + 1));
            }
            saved.insert(path, value.trim());
        }
        Ok(saved)
    }

    /// Writes the lines that [`SavedSysfs::from_lines`] reads.
    pub fn to_lines(&self) -> String {
        self.iter().map(|(path, text)| format!("{path} {text}\n")).collect()
    }

    /// Reads a tar, plain or compressed with gzip, of a sysfs or any folder that contains one.
    ///
    /// # Errors
    /// The bytes are not a tar, or the tar contains no file of sysfs.
    pub fn from_tar(name: &str, bytes: &[u8]) -> Result<SavedSysfs, TopologyError> {
        let packed = PACKED.iter().find(|(magic, ..)| bytes.starts_with(magic));
        if let Some((_, with, unpack)) = packed {
            let what = format!("this is compressed with {with}");
            return Err(TopologyError::new(what, format!("unpack it with {unpack} first")).in_place(name));
        }
        let wrong = |_: io::Error| {
            TopologyError::new("this is not a tar file, or it is damaged", "make one with tar -czf")
                .in_place(name)
        };
        let bytes: Box<dyn Read> = if bytes.starts_with(&[0x1f, 0x8b]) {
            Box::new(flate2::read::MultiGzDecoder::new(bytes))
        } else {
            Box::new(bytes)
        };
        let mut saved = SavedSysfs::new();
        let mut archive = tar::Archive::new(bytes.take(TAR_SIZE_MAX));
        for entry in archive.entries().map_err(wrong)? {
            let entry = entry.map_err(wrong)?;
            let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            if !entry.header().entry_type().is_file() || below_system(&path).is_none() {
                continue;
            }
            let mut text = Vec::new();
            entry.take(FILE_SIZE_MAX).read_to_end(&mut text).map_err(wrong)?;
            // tar pads a sysfs file, which claims to be a page long, with zeros.
            let text = String::from_utf8_lossy(&text);
            saved.insert(&path, text.trim_end_matches('\0').trim_end());
        }
        if saved.files.is_empty() {
            let way_out =
                "make it with tar -czf sysfs.tar.gz /sys/devices/system/cpu /sys/devices/system/node";
            return Err(
                TopologyError::new("no file in the tar is of /sys/devices/system", way_out).in_place(name)
            );
        }
        Ok(saved)
    }

    /// Writes a tar, the same bytes for the same files.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn to_tar(&self, out: impl Write) -> io::Result<()> {
        let mut builder = tar::Builder::new(out);
        for (path, text) in self.iter() {
            let text = format!("{text}\n");
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(0o444);
            builder.append_data(&mut header, path.trim_start_matches('/'), text.as_bytes())?;
        }
        builder.into_inner()?.flush()
    }
}

impl SysfsTree for SavedSysfs {
    fn read(&self, path: &str) -> Option<String> {
        self.files.get(path).cloned()
    }
}

/// The part of a path after `devices/system/`, or the path itself if it begins below.
fn below_system(path: &str) -> Option<&str> {
    let path = path.trim_start_matches("./").trim_start_matches('/');
    let below = match path.rsplit_once("devices/system/") {
        Some((_, below)) => below,
        None => path.strip_prefix("system/").unwrap_or(path),
    };
    (below.starts_with("cpu/") || below.starts_with("node/")).then_some(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_wherever_the_tree_begins() {
        let table = [
            ("/sys/devices/system/cpu/online", Some("cpu/online")),
            ("./sys/devices/system/node/node0/cpulist", Some("node/node0/cpulist")),
            ("my-host/sys/devices/system/cpu/online", Some("cpu/online")),
            ("devices/system/cpu/online", Some("cpu/online")),
            ("system/cpu/online", Some("cpu/online")),
            ("cpu/online", Some("cpu/online")),
            ("my-host/proc/cpuinfo", None),
            ("/sys/devices/system/memory/block_size_bytes", None),
        ];
        for (path, below) in table {
            assert_eq!(below_system(path), below, "{path}");
        }
    }

    #[test]
    fn lines_and_tars_hold_the_same_files() {
        let text = "/sys/devices/system/cpu/online 0-1\n/sys/devices/system/node/node0/distance 10 21\n";
        let saved = SavedSysfs::from_lines("facts", text).unwrap();
        assert_eq!(saved.to_lines(), text);
        let mut tar = Vec::new();
        saved.to_tar(&mut tar).unwrap();
        assert_eq!(SavedSysfs::from_tar("x.tar", &tar).unwrap(), saved);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(&tar).unwrap();
        assert_eq!(SavedSysfs::from_tar("x.tar.gz", &gzip.finish().unwrap()).unwrap(), saved);
    }

    #[test]
    fn what_is_not_a_saved_sysfs_is_refused() {
        let error = SavedSysfs::from_lines("facts", "# saved\n\nhello world").unwrap_err();
        assert_eq!(
            error.to_string(),
            "facts:3: \"hello\" is not a path below /sys/devices/system; write lines like /sys/devices/system/cpu/online 0-7"
        );
        let error = SavedSysfs::from_tar("x.tar", b"").unwrap_err();
        assert_eq!(
            error.to_string(),
            "x.tar: no file in the tar is of /sys/devices/system; make it with \
             tar -czf sysfs.tar.gz /sys/devices/system/cpu /sys/devices/system/node"
        );
        for bytes in [&[7; 600][..], b"\x1f\x8bzipped"] {
            let error = SavedSysfs::from_tar("x.tar", bytes).unwrap_err().to_string();
            assert_eq!(error, "x.tar: this is not a tar file, or it is damaged; make one with tar -czf");
        }
        let error = SavedSysfs::from_tar("x.tar", b"BZh91AY").unwrap_err().to_string();
        assert_eq!(error, "x.tar: this is compressed with bzip2; unpack it with bunzip2 first");
    }
}
