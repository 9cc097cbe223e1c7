//! Folders of a sandbox with a container engine: the one with the engine's socket, and a working folder on the machine,
//! since containers can't mount files of another mount namespace.

use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use bench_engine::SOCKET_PATH_BYTES_MAX;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::options::SharedFolder;
use super::wire::FormKind;
use super::{EnginePlace, Limits};

/// Name of the engine's socket.
const SOCKET: &str = "docker.sock";
/// Folder of the socket in the form `namespaces`.
pub(crate) const SOCKETS_INSIDE: &str = "/run/engine";
/// Minimum mean size of files, in bytes, which limits their number.
const FILE_BYTES_MEAN: u64 = 4 << 10;

/// Folders below the folder of a sandbox.
#[derive(Debug, Clone)]
pub(crate) struct EngineFolders {
    /// Folder with the engine's socket.
    pub(crate) sockets: PathBuf,
    /// The working folder, also in the form `confined` without an engine.
    pub(crate) workspace: PathBuf,
}

impl EngineFolders {
    pub(crate) fn below(folder: &Path) -> Self {
        Self { sockets: folder.join("engine"), workspace: folder.join("work") }
    }

    /// Creates the folder of the socket. Programs of the sandbox may enter it but not change it.
    pub(crate) fn make_sockets(&self, uid: Option<u32>) -> io::Result<()> {
        std::fs::DirBuilder::new().mode(0o700).create(&self.sockets)?;
        if let Some(uid) = uid {
            chown(&self.sockets, None, Some(uid))?;
            std::fs::set_permissions(&self.sockets, PermissionsExt::from_mode(0o710))?;
        }
        Ok(())
    }

    /// Mounts a file system of limited size on the working folder, which must exist. Returns false if this process
    /// may not mount.
    pub(crate) fn mount_workspace(&self, uid: Option<u32>, limits: &Limits) -> io::Result<bool> {
        let owner = uid.map(|uid| format!(",uid={uid},gid={uid}")).unwrap_or_default();
        let files = (limits.disk_bytes / FILE_BYTES_MEAN).max(1_024);
        let data = format!("size={},nr_inodes={files},mode=0700{owner}\0", limits.disk_bytes);
        let data = std::ffi::CStr::from_bytes_with_nul(data.as_bytes()).map_err(io::Error::other)?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        match mount("tmpfs", &self.workspace, "tmpfs", flags, data) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::PERM | rustix::io::Errno::ACCESS) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the places for the engine. `is_mounted`: the working folder is a file system of its own.
    pub(crate) fn place(&self, kind: FormKind, is_mounted: bool) -> EnginePlace {
        let inside = match kind {
            FormKind::Namespaces => is_mounted.then(|| PathBuf::from("/workspace")),
            FormKind::Confined => Some(self.workspace.clone()),
        };
        let workspace = inside.map(|inside| SharedFolder { host: self.workspace.clone(), inside });
        EnginePlace { socket: self.sockets.join(SOCKET), workspace }
    }

    /// Returns true if commands can connect to the engine: the path of a socket is limited.
    pub(crate) fn has_usable_address(&self, kind: FormKind) -> bool {
        let path = self.address(kind);
        path.strip_prefix("unix://").is_some_and(|path| path.len() <= SOCKET_PATH_BYTES_MAX)
    }

    /// Returns the address of the engine for commands.
    pub(crate) fn address(&self, kind: FormKind) -> String {
        let folder = match kind {
            FormKind::Namespaces => Path::new(SOCKETS_INSIDE),
            FormKind::Confined => &self.sockets,
        };
        format!("unix://{}", folder.join(SOCKET).display())
    }
}

/// Unmounts everything below a folder.
pub(crate) fn unmount_below(folder: &Path) {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    // Later mounts may be on earlier ones.
    for place in mounts.lines().rev().filter_map(mount_point).filter(|place| place.starts_with(folder)) {
        if let Err(error) = unmount(&place, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
            tracing::warn!(place = %place.display(), %error, "A sandbox's working folder can't be unmounted");
        }
    }
}

/// Returns the path in a line of `mountinfo`, where some bytes are written as octal numbers.
fn mount_point(line: &str) -> Option<PathBuf> {
    let field = line.split(' ').nth(4)?;
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let [first, after @ ..] = rest {
        let octal = after
            .get(..3)
            .filter(|_| *first == b'\\')
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(octal.unwrap_or(*first));
        rest = if octal.is_some() { after.get(3..).unwrap_or_default() } else { after };
    }
    Some(std::os::unix::ffi::OsStringExt::from_vec(bytes)).map(|path: std::ffi::OsString| path.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_decoded() {
        let line = "36 35 98:0 /mnt1 /with\\040space/\\134x rw,noatime master:1 - ext3 /dev/root rw";
        assert_eq!(mount_point(line), Some(PathBuf::from("/with space/\\x")));
        assert_eq!(mount_point("36 35"), None);
        assert_eq!(mount_point("1 2 3 / /a\\9 rw"), Some(PathBuf::from("/a\\9")));
    }

    #[test]
    fn only_programs_in_the_same_folders_need_a_short_path() {
        let folders = EngineFolders::below(Path::new(&format!("/{}", "folder/".repeat(14))));
        assert!(folders.has_usable_address(FormKind::Namespaces));
        assert!(!folders.has_usable_address(FormKind::Confined));
        assert!(EngineFolders::below(Path::new("/data/x")).has_usable_address(FormKind::Confined));
    }

    #[test]
    fn a_working_folder_is_mounted_and_unmounted() {
        let folder = tempfile::tempdir().unwrap();
        let folders = EngineFolders::below(folder.path());
        std::fs::create_dir(&folders.workspace).unwrap();
        folders.make_sockets(None).unwrap();
        let limits = Limits { disk_bytes: 1 << 20, ..Limits::default() };
        let is_mounted = folders.mount_workspace(None, &limits).unwrap();
        assert_eq!(is_mounted, nix::unistd::Uid::effective().is_root());
        if is_mounted {
            let written = std::fs::write(folders.workspace.join("large"), vec![1; 2 << 20]);
            assert!(written.is_err(), "{written:?}");
        }
        unmount_below(folder.path());
        assert!(!folders.workspace.join("large").exists());
        std::fs::remove_dir(&folders.workspace).unwrap();
    }
}
