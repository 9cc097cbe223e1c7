//! Packages of programming tasks that sandboxes share with this machine.
//!
//! `bench sandy setup --packages` installs what tasks declare, in a folder of its own for each declaration.

use std::fs;
use std::path::{Path, PathBuf};

use bench_benchmarks::code_lab::{PACKAGES_MARKER, packages_folder};
use bench_code_tasks::{Dependencies, PackageManager};
use serde::{Deserialize, Serialize};

/// Folder of all packages, in the data directory.
const FOLDER: &str = "packages";
/// Path of the packages inside sandboxes.
pub(super) const INSIDE: &str = "/opt/packages";
/// Maximum size of a description, in bytes.
const MARKER_BYTES_MAX: u64 = 64 << 10;

/// Returns the folder of all packages of a data directory.
#[must_use]
pub fn folder(data_dir: &Path) -> PathBuf {
    data_dir.join(FOLDER)
}

/// Description of installed packages, in a file beside them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstalledPackages {
    /// Digest of the declaration.
    pub digest: String,
    /// Major and minor version of the Python that they were installed for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// Size of all files, in bytes.
    pub bytes: u64,
}

impl InstalledPackages {
    /// Returns the path of the description in a declaration's folder.
    #[must_use]
    pub fn path(folder: &Path) -> PathBuf {
        folder.join(PACKAGES_MARKER)
    }

    /// Returns the path of a package manager's packages in a declaration's folder.
    #[must_use]
    pub fn content(folder: &Path, manager: PackageManager) -> PathBuf {
        folder.join(packages_folder(manager))
    }

    /// Reads the description of a declaration's packages. Returns `None` if they aren't installed.
    #[must_use]
    pub fn find(data_dir: &Path, dependencies: &Dependencies) -> Option<Self> {
        let path = Self::path(&folder(data_dir).join(dependencies.name()));
        if fs::metadata(&path).ok()?.len() > MARKER_BYTES_MAX {
            return None;
        }
        let found: Self = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
        (found.digest == dependencies.digest).then_some(found)
    }
}
