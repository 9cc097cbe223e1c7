//! Binding a socket in a data directory, and its path.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use tokio::net::UnixListener;

use super::SOCKET_FILE;

/// Maximum length of a socket's path in bytes, on Linux and macOS.
const PATH_BYTES_MAX: usize = 103;

/// Path of a socket that the operating system accepts.
#[derive(Debug)]
pub(super) struct SocketAddress {
    pub(super) path: PathBuf,
    /// Keeps the descriptor open that a shortened path refers to.
    _dir: Option<File>,
}

impl SocketAddress {
    /// Returns the path of a data directory's socket. A path that is too long is shortened through the descriptor of
    /// the directory, where the operating system supports that.
    pub(super) fn of(data_dir: &Path) -> io::Result<Self> {
        let path = data_dir.join(SOCKET_FILE);
        if path.as_os_str().len() <= PATH_BYTES_MAX {
            return Ok(Self { path, _dir: None });
        }
        Self::through_descriptor(data_dir)
    }

    #[cfg(target_os = "linux")]
    fn through_descriptor(data_dir: &Path) -> io::Result<Self> {
        use std::os::fd::AsRawFd as _;

        let dir = File::open(data_dir)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}/{SOCKET_FILE}", dir.as_raw_fd()));
        Ok(Self { path, _dir: Some(dir) })
    }

    #[cfg(not(target_os = "linux"))]
    fn through_descriptor(_: &Path) -> io::Result<Self> {
        Err(io::Error::new(
            io::ErrorKind::InvalidFilename,
            "the path of the data directory is too long for a socket",
        ))
    }
}

/// A listening socket of a data directory.
#[derive(Debug)]
pub struct SocketListener {
    listener: UnixListener,
    file: PathBuf,
}

impl SocketListener {
    /// Listens in a data directory, whose lock this process must hold: it replaces a socket that an earlier owner left.
    ///
    /// # Errors
    /// Returns an error if the file system has no sockets, or the path is too long where it can't be shortened.
    pub fn bind(data_dir: &Path) -> io::Result<Self> {
        use std::os::unix::fs::PermissionsExt as _;

        let address = SocketAddress::of(data_dir)?;
        let file = data_dir.join(SOCKET_FILE);
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&address.path)?;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600))?;
        Ok(Self { listener, file })
    }

    /// Returns the path of the socket's file.
    pub fn file(&self) -> &Path {
        &self.file
    }
}

impl axum::serve::Listener for SocketListener {
    type Io = tokio::net::UnixStream;
    type Addr = tokio::net::unix::SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        axum::serve::Listener::accept(&mut self.listener).await
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}
