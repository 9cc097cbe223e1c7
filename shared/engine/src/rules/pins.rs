//! Mount points at private paths, for files and folders that were opened and checked.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::mount::{UnmountFlags, mount_bind, unmount};

/// Private folder in which open files and folders are mounted, or none.
#[derive(Debug, Clone)]
pub(crate) struct Pins {
    folder: Option<PathBuf>,
}

/// A mount point, which is unmounted and removed when dropped.
#[derive(Debug)]
pub(crate) struct MountPoint {
    path: PathBuf,
}

impl Pins {
    /// Mount points can't be made.
    pub(crate) fn none() -> Self {
        Self { folder: None }
    }

    /// Makes mount points in `folder`, which is created with access for its owner only.
    pub(crate) fn in_folder(folder: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        Ok(Self { folder: Some(folder.to_owned()) })
    }

    /// Mounts an open file or folder, without the mounts below it.
    pub(crate) fn mount(&self, opened: &OwnedFd, is_folder: bool) -> io::Result<MountPoint> {
        let folder = self.folder.as_ref().ok_or(io::ErrorKind::PermissionDenied)?;
        let path = folder.join(uuid::Uuid::new_v4().simple().to_string());
        if is_folder {
            std::fs::create_dir(&path)?;
        } else {
            File::create_new(&path)?;
        }
        let source = format!("/proc/self/fd/{}", opened.as_raw_fd());
        if let Err(error) = mount_bind(source.as_str(), &path) {
            remove(&path);
            return Err(error.into());
        }
        Ok(MountPoint { path })
    }
}

impl MountPoint {
    /// Returns the path of the mount point.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for MountPoint {
    fn drop(&mut self) {
        release(&self.path);
    }
}

/// Unmounts and removes all mount points that an earlier process left in `folder`.
pub(crate) fn release_all(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        release(&entry.path());
    }
}

fn release(path: &Path) {
    // Fails where nothing is mounted, for example after a restart of the machine.
    if let Err(error) = unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
        tracing::debug!(path = %path.display(), %error, "Mount point was not mounted");
    }
    remove(path);
}

/// Removes an empty mount point. What is still mounted stays, because neither call empties a folder.
fn remove(path: &Path) {
    if std::fs::remove_dir(path).is_err()
        && std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() == 0)
        && let Err(error) = std::fs::remove_file(path)
    {
        tracing::warn!(path = %path.display(), %error, "Mount point was not removed");
    }
}
