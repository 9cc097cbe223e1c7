//! Resources that a sandbox uses on the machine.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::cgroups::Group;
use super::instance::{Instance, remove_tree};
use super::stage::OVER_LIMIT;
use super::uids::ReservedUid;
use super::wire::REASON_BYTES_MAX;

/// Maximum time for the guard to exit after the host closes its pipe; then it is killed.
const END_TIMEOUT: Duration = Duration::from_secs(30);
/// Interval between checks for the guard's exit.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Processes, cgroups, files and user of a sandbox. Must be closed; closing blocks until everything is gone.
#[derive(Debug)]
pub(crate) struct SandboxResources {
    /// Pipe to the guard; closing it tells the guard to end the sandbox.
    pub(crate) host_pipe: Option<OwnedFd>,
    /// Process of the guard.
    pub(crate) child: Option<Child>,
    /// Standard error of the guard, for its error messages.
    pub(crate) stderr: OwnedFd,
    pub(crate) reserved_uid: Option<ReservedUid>,
    pub(crate) group: Group,
    /// Folder of its files on the machine, if it has one.
    pub(crate) folder: Option<PathBuf>,
    /// Keeps the host's instance alive as long as its sandboxes.
    pub(crate) _instance: Arc<Instance>,
}

impl SandboxResources {
    /// Returns the process id of the guard.
    pub(crate) fn guard(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Ends all processes and removes all files. The host's end of the stage channel must be closed first. Returns the
    /// limit that the guard ended the sandbox for, if any.
    pub(crate) fn close(mut self) -> Option<String> {
        let code = self.clear().and_then(|status| status.code());
        let error_output = super::wire::reason(&self.error_output());
        if !error_output.is_empty() {
            tracing::warn!("A sandbox ended: {error_output}");
        }
        (code == Some(i32::from(OVER_LIMIT))).then_some(error_output)
    }

    /// Closes a sandbox that never became ready, and returns the error that its stages reported, if any.
    pub(crate) fn close_failed(mut self) -> Option<String> {
        self.clear();
        let error_output = self.error_output();
        let reason = error_output.lines().map(str::trim).find(|line| !line.is_empty())?;
        Some(reason.trim_start_matches("hakoniwa: ").to_owned())
    }

    /// Returns the error messages of the stages; empty if there are none.
    fn error_output(&self) -> String {
        let mut text = vec![0; REASON_BYTES_MAX];
        // Doesn't block, since all writers have exited.
        let bytes = rustix::io::ioctl_fionbio(&self.stderr, true)
            .and_then(|()| rustix::io::read(&self.stderr, &mut text));
        text.truncate(bytes.unwrap_or_default());
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Ends everything, and returns the guard's exit status.
    fn clear(&mut self) -> Option<ExitStatus> {
        drop(self.host_pipe.take());
        let status = self.child.take().and_then(|mut child| wait(&mut child));
        self.group.remove();
        if let Some(folder) = self.folder.take() {
            remove_tree(&folder);
        }
        status
    }
}

impl Drop for SandboxResources {
    fn drop(&mut self) {
        // After `close`, there is nothing left to do.
        if self.child.is_some() {
            self.clear();
        }
    }
}

fn wait(child: &mut Child) -> Option<ExitStatus> {
    let until = Instant::now() + END_TIMEOUT;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < until => std::thread::sleep(POLL_INTERVAL),
            // The kernel kills the sandbox's first process together with its guard.
            Ok(None) | Err(_) => {
                tracing::warn!(guard = child.id(), "The guard of a sandbox did not exit and is killed");
                let _ = child.kill();
                return child.wait().ok();
            }
        }
    }
}
