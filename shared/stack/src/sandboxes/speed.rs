//! Speed of this machine's sandboxes: the time of a fixed program of each language.
//!
//! Proofs of programming tasks record it for the host that ran the reference. A host that needs more time for the same program
//! gives answers more time, too.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use bench_benchmarks::code_lab::SPEED_FILE;
use bench_code_tasks::Language;

use super::{packages, toolchains};

/// Times by the name of the language, in milliseconds.
pub type HostSpeed = BTreeMap<String, u64>;

/// Maximum size of the file, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// Returns a shell command whose time is the speed of a language: compilation and start, or a loop where nothing is compiled.
#[must_use]
pub fn fixed_program(language: Language) -> &'static str {
    match language {
        Language::Python => {
            "python3 -I -S -c 'total = 0\nfor i in range(5000000):\n    total += i * i % 7\nprint(\"ok\")'"
        }
        Language::JavaScript | Language::Html => {
            "node -e 'let total = 0; for (let i = 0; i < 200000000; i++) total = (total + i * 7) % 1000003; console.log(total < 0 ? \"no\" : \"ok\")'"
        }
        Language::Go | Language::Rust | Language::Cpp => toolchains::probe(language),
    }
}

/// Reads the speed that was measured last. Returns an empty one if none was.
#[must_use]
pub fn read(data_dir: &Path) -> HostSpeed {
    let path = path(data_dir);
    let is_short = fs::metadata(&path).is_ok_and(|file| file.len() <= FILE_BYTES_MAX);
    let text = if is_short { fs::read(path).unwrap_or_default() } else { Vec::new() };
    serde_json::from_slice(&text).unwrap_or_default()
}

/// Records times beside those of other languages.
///
/// # Errors
/// Fails if the file can't be written.
pub fn record(data_dir: &Path, measured: HostSpeed) -> io::Result<()> {
    let mut all = read(data_dir);
    all.extend(measured);
    let path = path(data_dir);
    let new = path.with_extension("new");
    super::create_shared_folder(&packages::folder(data_dir))?;
    fs::write(&new, serde_json::to_vec(&all)?)?;
    // Sandboxes run as another user.
    fs::set_permissions(&new, std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
    fs::rename(new, path)
}

fn path(data_dir: &Path) -> PathBuf {
    packages::folder(data_dir).join(SPEED_FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_kept_by_language() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(read(data.path()), HostSpeed::new());
        record(data.path(), [("go".to_owned(), 900), ("python".to_owned(), 400)].into()).unwrap();
        record(data.path(), [("python".to_owned(), 500)].into()).unwrap();
        assert_eq!(read(data.path()), [("go".to_owned(), 900), ("python".to_owned(), 500)].into());
        fs::write(path(data.path()), "no JSON").unwrap();
        assert_eq!(read(data.path()), HostSpeed::new());
    }
}
