//! Paths of sockets in folders whose own path is too long for the address of a socket.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

/// Maximum length of a path in the address of a socket, in bytes (`sun_path` in unix(7), without its end).
pub const SOCKET_PATH_BYTES_MAX: usize = 107;

/// A path of a socket that can be bound and connected to while this exists.
pub(crate) struct ShortPath {
    path: PathBuf,
    /// The socket's folder, if the path leads through it.
    _folder: Option<File>,
}

impl ShortPath {
    /// Opens the folder of a socket if the socket's path is too long.
    pub(crate) fn new(socket: &Path) -> io::Result<Self> {
        let (Some(folder), Some(name)) = (socket.parent(), socket.file_name()) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a socket needs a folder and a name"));
        };
        if is_short(socket) {
            return Ok(Self { path: socket.to_owned(), _folder: None });
        }
        let opened =
            File::from(open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?);
        let path = Path::new("/proc/self/fd").join(opened.as_raw_fd().to_string()).join(name);
        Ok(Self { path, _folder: Some(opened) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Returns true if a path fits into the address of a socket.
pub(crate) fn is_short(socket: &Path) -> bool {
    socket.as_os_str().as_bytes().len() <= SOCKET_PATH_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    #[test]
    fn sockets_in_deep_folders_are_reached() {
        let folder = tempfile::tempdir().unwrap();
        for depth in [0, 1, 4] {
            let folder = folder.path().join("deep-folder-of-a-user/".repeat(depth * 2));
            std::fs::create_dir_all(&folder).unwrap();
            let socket = folder.join("engine.sock");
            assert_eq!(is_short(&socket), depth < 2, "{}", socket.display());
            let _listener = UnixListener::bind(ShortPath::new(&socket).unwrap().path()).unwrap();
            assert!(socket.exists());
            UnixStream::connect(ShortPath::new(&socket).unwrap().path()).unwrap();
        }
    }
}
