//! Folders of the machine that a sandbox may mount, and paths that are fixed to what was checked.
//!
//! A sandbox can change its folders at any time, so a path that was checked could be a symbolic link when the engine
//! mounts it. Therefore a path is opened once without following links, and the open file is mounted at a private
//! place, whose path the engine receives. Without the right to mount, only whole shared folders are available.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat2};

use super::pins::{MountPoint, Pins};
use crate::refusal::Refusal;

/// A folder of the machine that a sandbox may mount into containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedFolder {
    /// Path by which the sandbox's programs know the folder.
    pub seen: PathBuf,
    /// Path of the folder on the machine.
    pub host: PathBuf,
    /// Containers may write to it.
    pub writable: bool,
}

/// Error of a shared folder that can't be opened.
#[derive(Debug, thiserror::Error)]
#[error("can't open the shared folder `{}`: {source}", path.display())]
pub struct FolderError {
    /// Path of the folder on the machine.
    pub path: PathBuf,
    /// The system's error.
    pub source: io::Error,
}

/// The shared folders of a sandbox, open.
#[derive(Debug)]
pub(crate) struct Folders {
    folders: Vec<(SharedFolder, OwnedFd)>,
    pins: Pins,
}

/// A file or folder that the engine may mount, at a path that the sandbox can't change.
#[derive(Debug)]
pub(crate) struct Pin {
    path: PathBuf,
    /// Unmounts the path when dropped.
    _mount: Option<MountPoint>,
    /// Containers may write to it.
    pub(crate) writable: bool,
}

impl Pin {
    /// Returns the path for the engine.
    pub(crate) fn path(&self) -> String {
        self.path.display().to_string()
    }
}

impl Folders {
    /// Opens the folders of a sandbox. Mount points are made in `pins`.
    pub(crate) fn open(folders: &[SharedFolder], pins: Pins) -> Result<Self, FolderError> {
        let open = |folder: &SharedFolder| {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let opened = rustix::fs::open(&folder.host, flags, Mode::empty());
            let error =
                |error: rustix::io::Errno| FolderError { path: folder.host.clone(), source: error.into() };
            opened.map(|file| (folder.clone(), file)).map_err(error)
        };
        Ok(Self { folders: folders.iter().map(open).collect::<Result<_, _>>()?, pins })
    }

    /// Opens what the sandbox knows as `path`: a file or folder below a shared folder, reached without links.
    pub(crate) fn pin(&self, field: &str, path: &str) -> Result<Pin, Refusal> {
        let refuse =
            |reason: &str| Refusal::field(format!("{field}: {path}"), format!("{}{reason}", self.list()));
        let wanted = Path::new(path);
        let is_plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
        if !wanted.is_absolute() || !wanted.components().all(is_plain) || path.contains('\0') {
            return Err(refuse(", as absolute paths without `..`"));
        }
        let found = self.folders.iter().filter_map(|(folder, file)| {
            wanted.strip_prefix(&folder.seen).ok().map(|inner| (folder, file, inner))
        });
        // The innermost folder, if one contains the other.
        let Some((folder, file, inner)) = found.min_by_key(|(_, _, inner)| inner.components().count()) else {
            return Err(refuse(""));
        };
        let writable = folder.writable;
        if inner.as_os_str().is_empty() {
            return Ok(Pin { path: folder.host.clone(), _mount: None, writable });
        }
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let opened = openat2(file, inner, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve);
        let opened = opened.map_err(|error| match error {
            rustix::io::Errno::NOENT => refuse("; this path does not exist"),
            rustix::io::Errno::LOOP | rustix::io::Errno::XDEV => refuse(", without symbolic links"),
            error => refuse(&format!("; this path can't be opened: {error}")),
        })?;
        let is_folder = match fstat(&opened).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            Ok(FileType::Directory) => true,
            Ok(FileType::RegularFile) => false,
            _ => return Err(refuse("; only files and folders can be mounted")),
        };
        let mount = self.pins.mount(&opened, is_folder).map_err(|error| {
            refuse(&format!("; this host can share only whole folders with containers: {error}"))
        })?;
        Ok(Pin { path: mount.path().to_owned(), _mount: Some(mount), writable })
    }

    /// Returns true if the folder of `path` is a shared folder or inside one.
    pub(crate) fn contains(&self, path: &Path) -> bool {
        let Ok(path) = std::fs::canonicalize(path) else { return false };
        self.folders
            .iter()
            .any(|(folder, _)| std::fs::canonicalize(&folder.host).is_ok_and(|host| path.starts_with(host)))
    }

    fn list(&self) -> String {
        if self.folders.is_empty() {
            return "no folders of the machine".to_owned();
        }
        let names: Vec<_> =
            self.folders.iter().map(|(folder, _)| format!("`{}`", folder.seen.display())).collect();
        format!("paths below {}", names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_files_and_folders_below_a_shared_folder_are_pinned() {
        let folder = tempfile::tempdir().unwrap();
        let host = folder.path().join("workspace");
        std::fs::create_dir_all(host.join("inner")).unwrap();
        std::fs::write(host.join("inner/file"), "inside").unwrap();
        symlink("/etc", host.join("link")).unwrap();
        symlink("inner", host.join("inner-link")).unwrap();
        std::os::unix::net::UnixListener::bind(host.join("socket")).unwrap();
        let shared = SharedFolder { seen: "/workspace".into(), host: host.clone(), writable: true };
        let folders = Folders::open(&[shared], Pins::none()).unwrap();
        for path in ["/workspace", "/workspace/"] {
            assert_eq!(folders.pin("Binds", path).unwrap().path(), host.display().to_string());
        }
        // A part of a shared folder passes all checks but needs the right to mount.
        for path in ["/workspace/inner", "/workspace//inner/./file"] {
            let refusal = folders.pin("Binds", path).unwrap_err().to_string();
            assert!(refusal.contains("only whole folders"), "{path}: {refusal}");
        }
        for path in [
            "/",
            "/etc",
            "/workspacex",
            "/workspace/..",
            "/workspace/../etc",
            "/workspace/link",
            "/workspace/link/passwd",
            "/workspace/inner-link/file",
            "/workspace/absent",
            "/workspace/socket",
            "workspace",
            "",
            "/workspace/a\0b",
        ] {
            let refusal = folders.pin("Binds", path).unwrap_err().to_string();
            assert!(refusal.contains("allowed: paths below `/workspace`"), "{path}: {refusal}");
            assert!(!refusal.contains("only whole folders"), "{path}: {refusal}");
        }
    }
}
