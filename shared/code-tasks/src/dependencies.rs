//! Packages that a task declares, fixed by digests.
//!
//! A host installs them before it runs answers, with the package managers' own clients. Declarations that leave a choice of
//! versions, or name repositories or folders as sources, aren't fixed.

mod cargo;
mod go;
mod npm;
mod pip;

use std::collections::BTreeMap;
use std::fmt;

use sha2::{Digest, Sha256};

use crate::{Workspace, WorkspaceFile};

/// Number of hexadecimal digits of a declaration's digest in its name.
const NAME_DIGITS: usize = 32;

/// Package manager that reads a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PackageManager {
    /// pip, for `requirements.txt`.
    Pip,
    /// npm, for `package-lock.json`.
    Npm,
    /// Cargo, for `Cargo.lock`.
    Cargo,
    /// Go, for `go.sum`.
    Go,
}

impl PackageManager {
    /// Returns the name of its program.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pip => "pip",
            Self::Npm => "npm",
            Self::Cargo => "cargo",
            Self::Go => "go",
        }
    }
}

impl fmt::Display for PackageManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Packages that a task declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependencies {
    /// Package manager.
    pub manager: PackageManager,
    /// File that fixes the packages, as a path in the task or its workspace.
    pub declared_in: String,
    /// Folder of the workspace that has the file; empty for the workspace itself and the task's folder.
    pub folder: String,
    /// Files that the package manager needs, by their paths in an empty folder.
    pub files: BTreeMap<String, Vec<u8>>,
    /// True if the declaration has the digests of all packages. Otherwise it has exact versions, and the host records
    /// digests when it installs them first.
    pub has_digests: bool,
    /// Digest of the declaration.
    pub digest: String,
}

impl Dependencies {
    fn new(
        manager: PackageManager,
        declared_in: &Place<'_>,
        files: BTreeMap<String, Vec<u8>>,
        digested: &[&[u8]],
    ) -> Self {
        let mut hasher = Sha256::new();
        for part in [b"bench-packages-v1".as_slice(), manager.as_str().as_bytes()].iter().chain(digested) {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        Self {
            manager,
            declared_in: declared_in.path.clone(),
            folder: declared_in.folder.to_owned(),
            files,
            has_digests: true,
            digest: hex::encode(hasher.finalize()),
        }
    }

    /// Returns the name of the folder with the installed packages: the package manager, and the start of the digest.
    pub fn name(&self) -> String {
        let digits = self.digest.get(..NAME_DIGITS).unwrap_or(&self.digest);
        format!("{}-{digits}", self.manager)
    }
}

/// Reason why a declaration doesn't fix its packages.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{file}` doesn't fix its packages: {why}")]
pub struct Unfixed {
    /// File with the declaration.
    pub file: String,
    /// Problem, and what to do.
    pub why: String,
}

/// A file of a workspace.
pub(crate) struct Place<'a> {
    folder: &'a str,
    path: String,
    bytes: &'a [u8],
}

impl<'a> Place<'a> {
    /// Looks for a file in a folder of the workspace, and in the workspace itself.
    fn find(workspace: &'a Workspace, working_dir: Option<&'a str>, name: &str) -> Option<Self> {
        working_dir.into_iter().chain([""]).find_map(|folder| {
            let path = joined(folder, name);
            let bytes = workspace.get(&path)?.bytes.as_slice();
            Some(Self { folder, path, bytes })
        })
    }

    fn text(&self) -> Result<&'a str, Unfixed> {
        std::str::from_utf8(self.bytes).map_err(|_| self.unfixed("it isn't UTF-8"))
    }

    fn unfixed(&self, why: impl Into<String>) -> Unfixed {
        Unfixed { file: self.path.clone(), why: why.into() }
    }
}

/// Returns the path of a name in a folder; the folder may be empty.
fn joined(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Returns the packages that a task declares, at most one declaration for each package manager.
///
/// `requirements` is the file `requirements.txt` beside the workspace.
///
/// # Errors
/// Names the declaration that isn't fixed, and what is missing.
pub(crate) fn read(
    requirements: Option<&WorkspaceFile>,
    workspace: &Workspace,
    working_dir: Option<&str>,
) -> Result<Vec<Dependencies>, Unfixed> {
    let beside =
        requirements.map(|file| Place { folder: "", path: pip::REQUIREMENTS.to_owned(), bytes: &file.bytes });
    let requirements = beside.or_else(|| Place::find(workspace, working_dir, pip::REQUIREMENTS));
    let all = [
        requirements.map_or(Ok(None), |place| pip::read(&place))?,
        npm::read(workspace, working_dir)?,
        cargo::read(workspace, working_dir)?,
        go::read(workspace, working_dir)?,
    ];
    Ok(all.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests;
