//! Switches users and drops privileges.

use std::ffi::OsString;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Gid, Pid, Uid, getresuid, setgroups, setresgid, setresuid};

use super::Context;
use crate::isolation::uids;

/// Switches irrevocably to a user, and leaves all groups of the previous one.
pub(super) fn become_user(uid: u32) -> Result<(), String> {
    let (user, group) = (Uid::from_raw(uid), Gid::from_raw(uid));
    setgroups(&[]).context("cannot give up the groups of the host")?;
    setresgid(group, group, group).context("cannot give up the group of the host")?;
    setresuid(user, user, user).context("cannot give up the user of the host")?;
    check_only_user(user)
}

/// Fails unless `user` is the real, effective and saved user of this process, and not root.
fn check_only_user(user: Uid) -> Result<(), String> {
    let now = getresuid().context("cannot read the user")?;
    if user.is_root() || (now.real, now.effective, now.saved) != (user, user, user) {
        return Err("the process still has the user of the host".to_owned());
    }
    Ok(())
}

/// Gives up every capability, and the possibility to regain one by executing a program.
pub(super) fn give_up_capabilities() -> Result<(), String> {
    const CONTEXT: &str = "cannot give up the capabilities of the host";
    // A process without `CAP_SETPCAP` can't shrink its bounding set, and needn't: no program can give it new
    // privileges.
    if caps::has_cap(None, caps::CapSet::Effective, caps::Capability::CAP_SETPCAP).context(CONTEXT)? {
        caps::clear(None, caps::CapSet::Bounding).context(CONTEXT)?;
    }
    for set in
        [caps::CapSet::Ambient, caps::CapSet::Effective, caps::CapSet::Permitted, caps::CapSet::Inheritable]
    {
        caps::clear(None, set).context(CONTEXT)?;
    }
    Ok(())
}

/// Kills every process of a sandbox user by becoming that user, since the kernel then refuses signals to any other
/// process.
pub(super) fn kill_user_processes(uid: u32) -> Result<(), String> {
    if !uids::is_sandbox_uid(uid) {
        return Err(format!("{uid} is not the user of a sandbox"));
    }
    become_user(uid)?;
    check_only_user(Uid::from_raw(uid))?;
    // ESRCH: no process is left.
    match kill(Pid::from_raw(-1), Signal::SIGKILL) {
        Ok(()) | Err(nix::errno::Errno::ESRCH) => Ok(()),
        Err(error) => Err(format!("cannot kill the remaining processes: {error}")),
    }
}

/// Runs [`kill_user_processes`] for the uid given on the command line.
pub(super) fn kill_user_processes_by_argument(uid: Option<OsString>) -> Result<(), String> {
    let uid = uid.and_then(|uid| uid.to_str()?.parse().ok()).ok_or("the uid is missing")?;
    kill_user_processes(uid)
}
