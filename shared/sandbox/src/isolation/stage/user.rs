//! The user that a sandbox is.

use std::ffi::OsString;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Gid, Pid, Uid, getresuid, setgroups, setresgid, setresuid};

use super::Doing;
use crate::isolation::slots;

/// Becomes this user, for good: no group of the old one stays, and no way back.
pub(super) fn become_user(uid: u32) -> Result<(), String> {
    let (user, group) = (Uid::from_raw(uid), Gid::from_raw(uid));
    setgroups(&[]).doing("the groups of the host cannot be given up")?;
    setresgid(group, group, group).doing("the group of the host cannot be given up")?;
    setresuid(user, user, user).doing("the user of the host cannot be given up")?;
    is_only(user)
}

/// That this process is this user and none beside.
fn is_only(user: Uid) -> Result<(), String> {
    let now = getresuid().doing("the user cannot be told")?;
    if user.is_root() || (now.real, now.effective, now.saved) != (user, user, user) {
        return Err("the user of the host was not given up".to_owned());
    }
    Ok(())
}

/// Gives up every capability, and the right to get one back by a program that has it.
pub(super) fn give_up_capabilities() -> Result<(), String> {
    const DOING: &str = "the capabilities of the host cannot be given up";
    // A process without any cannot shrink the set of what it may ever have, and has no need to: no program may give it
    // new privileges.
    if caps::has_cap(None, caps::CapSet::Effective, caps::Capability::CAP_SETPCAP).doing(DOING)? {
        caps::clear(None, caps::CapSet::Bounding).doing(DOING)?;
    }
    for set in
        [caps::CapSet::Ambient, caps::CapSet::Effective, caps::CapSet::Permitted, caps::CapSet::Inheritable]
    {
        caps::clear(None, set).doing(DOING)?;
    }
    Ok(())
}

/// Kills every process of a user of ours, by becoming that user: the kernel then refuses to touch any other.
pub(super) fn sweep(uid: u32) -> Result<(), String> {
    if !slots::is_ours(uid) {
        return Err(format!("{uid} is no user of a sandbox"));
    }
    become_user(uid)?;
    is_only(Uid::from_raw(uid))?;
    // ESRCH: nobody is left.
    match kill(Pid::from_raw(-1), Signal::SIGKILL) {
        Ok(()) | Err(nix::errno::Errno::ESRCH) => Ok(()),
        Err(error) => Err(format!("what is left cannot be killed: {error}")),
    }
}

/// [`sweep`] for the user named on the command line.
pub(super) fn sweep_by_argument(uid: Option<OsString>) -> Result<(), String> {
    let uid = uid.and_then(|uid| uid.to_str()?.parse().ok()).ok_or("no user is named")?;
    sweep(uid)
}
