//! The project's own source files.

use std::fs;
use std::path::{Path, PathBuf};

/// The top of the checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the checkout").to_path_buf()
}

/// What is in a file.
pub fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// Every Rust file below `crates` and `xtask`, in order, as a path from the top with its text.
pub fn rust_files() -> Result<Vec<(String, String)>, String> {
    let mut found = Vec::new();
    for folder in ["crates", "xtask"] {
        walk(&root().join(folder), &mut found)?;
    }
    found.sort();
    Ok(found)
}

fn walk(folder: &Path, found: &mut Vec<(String, String)>) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|e| format!("{}: {e}", folder.display()))?.path();
        if path.is_dir() && path.file_name().is_some_and(|n| n != "target") {
            walk(&path, found)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = read(&path)?;
            let name = path.strip_prefix(root()).expect("below the top").display().to_string();
            found.push((name, text));
        }
    }
    Ok(())
}
