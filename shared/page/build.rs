//! Writes a table of the page's files, which `src/compiled.rs` includes.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../../frontend-static");
    // Cargo looks at all files of the folder.
    println!("cargo::rerun-if-changed={}", root.display());
    let root = root.canonicalize()?;
    let mut files = Vec::new();
    list(&root, &mut files)?;
    files.sort();
    let mut table = "[\n".to_owned();
    for file in files {
        let name = file.strip_prefix(&root).map_err(io::Error::other)?.to_string_lossy().into_owned();
        let file = file.to_string_lossy();
        writeln!(table, "    ({name:?}, include_bytes!({file:?})),").map_err(io::Error::other)?;
    }
    table.push_str("]\n");
    fs::write(Path::new(&env::var("OUT_DIR").unwrap_or_default()).join("files.rs"), table)
}

/// Collects the files of a folder, except hidden ones.
fn list(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')) {
            continue;
        }
        if path.is_dir() {
            list(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
