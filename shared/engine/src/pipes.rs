//! Frees an engine that a container keeps waiting.
//!
//! Engines read `/etc/passwd` and `/etc/group` of a container themselves, podman while it holds the container's lock. From a
//! pipe in their place they would read for ever, and every list of podman's containers would wait for it. Where this process
//! sees the containers' folders, it opens such a pipe for a moment, after which the engine has read an empty file, and ends
//! the processes of the container, which could do it again.

use std::collections::HashSet;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, open, openat2, stat};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::task::JoinHandle;

/// Time between two searches for pipes.
const INTERVAL: Duration = Duration::from_secs(1);
/// Folders of layers in the storage of podman and docker.
const FOLDERS: [&str; 2] = ["overlay", "overlay2"];
/// Files that engines read.
const FILES: [&str; 2] = ["etc/passwd", "etc/group"];

/// Watch over the containers of an engine. Ends when it is dropped.
#[derive(Debug)]
pub(crate) struct PipeWatch {
    layers: Arc<Mutex<HashSet<PathBuf>>>,
    task: JoinHandle<()>,
}

impl PipeWatch {
    /// Starts to watch the containers in an engine's storage; `None` if this process may not read their files, or the engine
    /// stores them in another way.
    pub(crate) fn start(storage: &Path) -> Option<Self> {
        let mut folders = FOLDERS.iter().map(|name| storage.join(name));
        let overlay = folders.find(|folder| folder.is_dir())?;
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let layers: Arc<Mutex<HashSet<PathBuf>>> = Arc::default();
        let task = tokio::spawn(watch(overlay, Arc::clone(&layers)));
        Some(Self { layers, task })
    }

    /// Adds a container by the folder of its layer, whose processes may be ended. Others are only freed.
    pub(crate) fn add(&self, layer: &Path) {
        let mut layers = self.layers.lock().unwrap_or_else(PoisonError::into_inner);
        layers.retain(|layer| layer.is_dir());
        layers.insert(layer.to_owned());
    }
}

impl Drop for PipeWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn watch(overlay: PathBuf, layers: Arc<Mutex<HashSet<PathBuf>>>) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let (overlay, layers) = (overlay.clone(), Arc::clone(&layers));
        let freed = tokio::task::spawn_blocking(move || free_all(&overlay, &layers)).await;
        if let Err(error) = freed {
            tracing::warn!(%error, "Pipes in containers were not looked for");
        }
    }
}

fn free_all(overlay: &Path, layers: &Mutex<HashSet<PathBuf>>) {
    for layer in std::fs::read_dir(overlay).into_iter().flatten().flatten() {
        let (layer, merged) = (layer.path(), layer.path().join("merged"));
        // Each of them has to be freed.
        let pipes = FILES.iter().filter(|file| is_freed(&merged, file)).count();
        let is_own = || layers.lock().unwrap_or_else(PoisonError::into_inner).contains(&layer);
        if pipes > 0 && is_own() {
            tracing::info!(layer = %layer.display(), "A container has a pipe where the engine reads a file");
            end_processes(&merged);
        }
    }
}

/// Opens a file of a container for a moment, if it is a pipe. Returns true if it is one.
fn is_freed(root: &Path, file: &str) -> bool {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let Ok(root) = open(root, flags | OFlags::DIRECTORY, Mode::empty()) else { return false };
    let Ok(found) = openat2(&root, file, flags, Mode::empty(), resolve) else { return false };
    let is_pipe = fstat(&found).is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Fifo);
    if is_pipe {
        // Fails without a reader, which is fine.
        let path = format!("/proc/self/fd/{}", found.as_raw_fd());
        drop(open(path, OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()));
    }
    is_pipe
}

/// Ends all processes with this root folder.
fn end_processes(root: &Path) {
    let Ok(wanted) = stat(root) else { return };
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = process.file_name();
        let number = name.to_str().and_then(|name| name.parse().ok());
        let Some(pid) = number.and_then(Pid::from_raw) else { continue };
        // Of a process that ends meanwhile, another one may get the number.
        let Ok(process_fd) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        let has_root = stat(process.path().join("root"))
            .is_ok_and(|found| (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino));
        if has_root && let Err(error) = pidfd_send_signal(&process_fd, Signal::KILL) {
            tracing::debug!(%error, "A process of a container was not ended");
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::mknodat;

    use super::*;

    #[test]
    fn a_reader_of_a_pipe_is_freed() {
        let storage = tempfile::tempdir().unwrap();
        let etc = storage.path().join("layer/merged/etc");
        std::fs::create_dir_all(&etc).unwrap();
        std::fs::write(etc.join("group"), "root:x:0:\n").unwrap();
        mknodat(rustix::fs::CWD, etc.join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        std::os::unix::fs::symlink("/etc/pipe", etc.join("passwd")).unwrap();
        let reader = std::thread::spawn({
            let pipe = etc.join("pipe");
            move || std::fs::read(pipe).unwrap()
        });
        while !reader.is_finished() {
            free_all(storage.path(), &Mutex::default());
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(reader.join().unwrap(), b"");
        assert!(!is_freed(&storage.path().join("layer/merged"), "etc/group"), "a regular file");
    }
}
