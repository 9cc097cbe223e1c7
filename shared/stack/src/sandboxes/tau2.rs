//! Official tau2 package that sandboxes share with this machine, for conversations of `tau_bench_telecom`.
//!
//! `bench sandy setup tau2` makes an environment of its own in the data directory, with the package beside it.

use std::fs;
use std::path::{Path, PathBuf};

use bench_benchmarks::tau_bench_telecom::step::PACKAGE_MARKER;
use serde::{Deserialize, Serialize};

use super::python::{PythonEnvironment, PythonEnvironmentError};

/// Folder of the package, in the data directory.
const FOLDER: &str = "tau2";
/// Link to the folder of the current package.
const CURRENT: &str = "current";
/// Path of the package inside sandboxes.
pub(super) const INSIDE: &str = "/opt/tau2";
/// Maximum size of a description, in bytes.
const MARKER_BYTES_MAX: u64 = 64 << 10;

/// Returns the folder of all versions of a data directory.
#[must_use]
pub fn folder(data_dir: &Path) -> PathBuf {
    data_dir.join(FOLDER)
}

/// Returns the path of the link to the current package.
#[must_use]
pub fn current_link(data_dir: &Path) -> PathBuf {
    folder(data_dir).join(CURRENT)
}

/// Description of an installed package, in a file beside it. The step script returns the first three with each response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstalledTau2 {
    /// Name of the package.
    pub name: String,
    /// Version of the package.
    pub version: String,
    /// SHA-256 of the list of its files with their digests.
    pub digest: String,
    /// Version of its Python.
    pub python: String,
    /// Libraries, with their versions and digests, that were installed for it, as a SHA-256.
    pub libraries: String,
}

impl InstalledTau2 {
    /// Returns the path of the description in a folder.
    #[must_use]
    pub fn path(folder: &Path) -> PathBuf {
        folder.join(PACKAGE_MARKER)
    }

    /// Reads the description of the current package. Returns `None` if there's none.
    #[must_use]
    pub fn current(data_dir: &Path) -> Option<Self> {
        let path = Self::path(&current_link(data_dir));
        if fs::metadata(&path).ok()?.len() > MARKER_BYTES_MAX {
            return None;
        }
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }
}

/// Returns the environment with the current package, or `None` if there's none.
///
/// # Errors
/// Fails if the environment is no longer usable, such as without its Python.
pub fn environment(data_dir: &Path) -> Result<Option<PythonEnvironment>, PythonEnvironmentError> {
    match InstalledTau2::current(data_dir) {
        Some(_) => PythonEnvironment::open(&current_link(data_dir)).map(Some),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_a_complete_package_is_shared() {
        let place = tempfile::tempdir().unwrap();
        let data = place.path().canonicalize().unwrap();
        assert_eq!(environment(&data).unwrap(), None);
        let made = folder(&data).join("env-1");
        fs::create_dir_all(made.join("bin")).unwrap();
        symlink("env-1", current_link(&data)).unwrap();
        fs::write(InstalledTau2::path(&made), "{}").unwrap();
        assert_eq!(environment(&data).unwrap(), None);
        let installed = InstalledTau2 {
            name: "tau2".to_owned(),
            version: "1.0.1".to_owned(),
            digest: "00".to_owned(),
            python: "3.12.1".to_owned(),
            libraries: "00".to_owned(),
        };
        fs::write(InstalledTau2::path(&made), serde_json::to_vec(&installed).unwrap()).unwrap();
        assert_eq!(InstalledTau2::current(&data), Some(installed));
        assert!(environment(&data).unwrap_err().to_string().contains("pyvenv.cfg"));
        fs::write(made.join("pyvenv.cfg"), "").unwrap();
        symlink("/bin/sh", made.join("bin/python3")).unwrap();
        assert_eq!(environment(&data).unwrap(), Some(PythonEnvironment { folder: made, base: None }));
    }
}
