//! What a sandbox holds on the machine besides its processes.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::cgroups::Group;
use super::instance::{Instance, remove_tree};
use super::slots::Slot;
use super::stage::OVER_LIMIT;
use super::wire::REASON_BYTES_MAX;

/// The guard ends by itself when the host lets go; after this time it is killed.
const END_MAX: Duration = Duration::from_secs(30);
/// Between two looks at it.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Processes, cgroups, files and user of a sandbox. To be closed; blocks while it is.
#[derive(Debug)]
pub(crate) struct Cell {
    /// Closed to tell the guard that the host lets go.
    pub(crate) life: Option<OwnedFd>,
    /// The guard.
    pub(crate) child: Option<Child>,
    /// What the guard says when it fails.
    pub(crate) errors: OwnedFd,
    pub(crate) slot: Option<Slot>,
    pub(crate) group: Group,
    /// Its files, where it has no file system of its own.
    pub(crate) folder: Option<PathBuf>,
    /// Outlives its sandboxes.
    pub(crate) _instance: Arc<Instance>,
}

impl Cell {
    /// The guard's process.
    pub(crate) fn guard(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Ends all processes and removes all files. The other end of the talk must be closed before. Gives the limit that the
    /// guard has ended the sandbox for, if it has.
    pub(crate) fn close(mut self) -> Option<String> {
        let code = self.clear().and_then(|status| status.code());
        let complaints = super::wire::reason(&self.complaints());
        if !complaints.is_empty() {
            tracing::warn!("A sandbox was ended: {complaints}");
        }
        (code == Some(i32::from(OVER_LIMIT))).then_some(complaints)
    }

    /// The same for a sandbox that was never ready; gives the reason when there is one.
    pub(crate) fn close_failed(mut self) -> Option<String> {
        self.clear();
        let complaints = self.complaints();
        let reason = complaints.lines().map(str::trim).find(|line| !line.is_empty())?;
        Some(reason.trim_start_matches("hakoniwa: ").to_owned())
    }

    /// What the stages have said; empty when all went well.
    fn complaints(&self) -> String {
        let mut text = vec![0; REASON_BYTES_MAX];
        // Nobody is waited for: whoever had something to say is gone.
        let bytes = rustix::io::ioctl_fionbio(&self.errors, true)
            .and_then(|()| rustix::io::read(&self.errors, &mut text));
        text.truncate(bytes.unwrap_or_default());
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Gives how the guard ended.
    fn clear(&mut self) -> Option<ExitStatus> {
        drop(self.life.take());
        let status = self.child.take().and_then(|mut child| wait(&mut child));
        self.group.remove();
        if let Some(folder) = self.folder.take() {
            remove_tree(&folder);
        }
        status
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        // Nothing is left to do after `close`.
        if self.child.is_some() {
            self.clear();
        }
    }
}

fn wait(child: &mut Child) -> Option<ExitStatus> {
    let until = Instant::now() + END_MAX;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < until => std::thread::sleep(LOOK_EVERY),
            // The kernel kills the sandbox's first process with its guard.
            Ok(None) | Err(_) => {
                tracing::warn!(guard = child.id(), "The guard of a sandbox did not end and is killed");
                let _ = child.kill();
                return child.wait().ok();
            }
        }
    }
}
