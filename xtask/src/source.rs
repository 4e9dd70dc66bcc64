//! The project's own source files.

use std::fs;
use std::path::{Path, PathBuf};

/// The top of the checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the checkout").to_path_buf()
}

/// The content of a file.
pub fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// Folders in a folder, in order, except those of incomplete recordings.
pub fn folders_in(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut folders: Vec<PathBuf> =
        paths.filter(|path| path.is_dir() && path.extension().is_none_or(|end| end != "partial")).collect();
    folders.sort();
    Ok(folders)
}

/// The name of a folder or file, without its path.
pub fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A generated part of a document: which, and the command that writes it.
pub struct Section {
    pub document: &'static str,
    pub name: &'static str,
    pub command: &'static str,
}

impl Section {
    fn begin(&self) -> String {
        format!("<!-- {}: begin, written by `cargo xtask {}` -->", self.name, self.command)
    }

    fn end(&self) -> String {
        format!("<!-- {}: end -->", self.name)
    }

    /// The document with its section replaced.
    pub fn with(&self, document: &str, text: &str) -> Result<String, String> {
        let [before, _, after] = self.split(document)?;
        Ok(format!("{before}{}\n\n{text}\n{}{after}", self.begin(), self.end()))
    }

    /// Replaces the section in the document.
    pub fn write(&self, text: &str) -> Result<(), String> {
        let path = root().join(self.document);
        let document = self.with(&read(&path)?, text)?;
        fs::write(&path, document).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// The text before it, in it, and after it.
    pub fn split<'a>(&self, document: &'a str) -> Result<[&'a str; 3], String> {
        let (begin, end) = (self.begin(), self.end());
        let missing = |mark: &str| format!("{} has no line {mark}", self.document);
        let (before, rest) = document.split_once(&begin).ok_or_else(|| missing(&begin))?;
        let (text, after) = rest.split_once(&end).ok_or_else(|| missing(&end))?;
        Ok([before, text, after])
    }
}

/// The head of a table.
pub fn head(columns: &[&str]) -> String {
    format!("| {} |\n|{}\n", columns.join(" | "), "---|".repeat(columns.len()))
}

/// Every Rust file below `crates` and `xtask`, in order, as a path from the top with its text.
pub fn rust_files() -> Result<Vec<(String, String)>, String> {
    let mut found = Vec::new();
    for folder in ["crates", "xtask"] {
        walk(&root().join(folder), "rs", &mut found)?;
    }
    found.sort();
    Ok(found)
}

/// Every document of the checkout, in order, as a path from the top with its text.
pub fn documents() -> Result<Vec<(String, String)>, String> {
    let mut found = Vec::new();
    walk(&root(), "md", &mut found)?;
    found.sort();
    Ok(found)
}

/// Files with an extension, except those of builds and hidden folders.
fn walk(folder: &Path, extension: &str, found: &mut Vec<(String, String)>) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|e| format!("{}: {e}", folder.display()))?.path();
        let of_builds = || name(&path) == "target" || name(&path).starts_with('.');
        if path.is_dir() {
            if !of_builds() {
                walk(&path, extension, found)?;
            }
        } else if path.extension().is_some_and(|e| e == extension) {
            let text = read(&path)?;
            let name = path.strip_prefix(root()).expect("below the top").display().to_string();
            found.push((name, text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_replaced_between_its_marks() {
        let section = Section { document: "docs/x.md", name: "figures", command: "x" };
        let document =
            "a\n<!-- figures: begin, written by `cargo xtask x` -->\n\nold\n<!-- figures: end -->\nb\n";
        assert_eq!(section.split(document).unwrap().map(str::trim), ["a", "old", "b"]);
        let fresh = section.with(document, "new\n").unwrap();
        assert_eq!(fresh, document.replace("old", "new\n"));
        assert_eq!(
            section.split("a").unwrap_err(),
            "docs/x.md has no line <!-- figures: begin, written by `cargo xtask x` -->"
        );
    }
}
