//! Guard against a full disk.
//!
//! Answers cost money, and on a full disk they can't be stored. So a process asks for nothing more while its disk has almost
//! no room, and answers in progress use what is left.

use std::path::Path;
use std::time::Duration;

use bench_embedded::Embedded;
use tokio_util::task::AbortOnDropHandle;

/// Free space below which a disk counts as full, in bytes. It suffices for answers in progress.
const FREE_BYTES_MIN: u64 = 2 * 1024 * 1024;
/// Free space from which a disk that was full has room again, in bytes.
const ROOM_BYTES_MIN: u64 = 2 * FREE_BYTES_MIN;
/// Interval of the checks.
const CHECK_EVERY: Duration = Duration::from_millis(250);

/// Returns true if the disk of a folder has too little room for work. A disk that `was_full` needs more room to count as
/// usable again.
pub fn is_disk_full(dir: &Path, was_full: bool) -> bool {
    let wanted = if was_full { ROOM_BYTES_MIN } else { FREE_BYTES_MIN };
    rustix::fs::statvfs(dir).is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < wanted)
}

/// Stops the delivery of messages while the disk is full. Ends when it is dropped.
pub(crate) struct DiskGuard {
    _task: AbortOnDropHandle<()>,
}

impl DiskGuard {
    /// Starts to check the disk. Logs changes if `logs` is true; otherwise the process's commands report them.
    pub(crate) fn start(embedded: &Embedded, logs: bool) -> Self {
        let embedded = embedded.clone();
        let task = tokio::spawn(async move {
            let mut is_full = false;
            loop {
                let (dir, was_full) = (embedded.data_dir().to_owned(), is_full);
                // A network mount may not answer.
                let checked = tokio::task::spawn_blocking(move || is_disk_full(&dir, was_full)).await;
                is_full = checked.unwrap_or(was_full);
                if is_full != was_full {
                    embedded.halt_delivery(is_full);
                    let dir = embedded.data_dir().display();
                    match is_full {
                        true if logs => {
                            tracing::error!(
                                "The disk of `{dir}` is full: no work is done until there is room"
                            );
                        }
                        false if logs => tracing::warn!("The disk of `{dir}` has room again: work goes on"),
                        _ => {}
                    }
                }
                tokio::time::sleep(CHECK_EVERY).await;
            }
        });
        Self { _task: AbortOnDropHandle::new(task) }
    }
}
