//! Packs the folders of `tasks` into the rows of a dataset.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Writes one row per task that has a proof of its admission, in the order of their names, without the wrong solutions.
pub(crate) fn write(tasks: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={}", tasks.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(tasks)? {
        let entry = entry?;
        if entry.path().join("proof.json").is_file() {
            names.push(entry.file_name().into_string().map_err(|_| "the name of a task isn't UTF-8")?);
        }
    }
    names.sort();
    let mut rows = String::new();
    for name in names {
        let mut files = BTreeMap::new();
        add(&tasks.join(&name), "", &mut files)?;
        let fields: Vec<String> =
            files.iter().map(|(path, file)| format!("{}:{file}", quoted(path))).collect();
        writeln!(rows, r#"{{"task_id":{},"files":{{{}}}}}"#, quoted(&name), fields.join(","))?;
    }
    Ok(fs::write(to, rows)?)
}

fn add(folder: &Path, prefix: &str, files: &mut BTreeMap<String, String>) -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().into_string().map_err(|_| "the name of a file isn't UTF-8")?;
        let path = format!("{prefix}{name}");
        if entry.file_type()?.is_dir() {
            add(&entry.path(), &format!("{path}/"), files)?;
        } else if !path.starts_with("solutions/wrong-") {
            let text = fs::read_to_string(entry.path()).map_err(|error| format!("{path}: {error}"))?;
            let is_executable = entry.metadata()?.permissions().mode() & 0o111 != 0;
            let mark = if is_executable { r#","x":true"# } else { "" };
            files.insert(path, format!(r#"{{"text":{}{mark}}}"#, quoted(&text)));
        }
    }
    Ok(())
}

/// Returns a text as JSON.
fn quoted(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                json.push('\\');
                json.push(c);
            }
            c if c < ' ' => {
                let _ = write!(json, "\\u{:04x}", u32::from(c));
            }
            c => json.push(c),
        }
    }
    json.push('"');
    json
}
