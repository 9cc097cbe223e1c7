//! What runs in the helper program.
//!
//! The first stage (`launch`) is outside: it joins the cgroups, gives up its user, makes the namespaces and watches over
//! the sandbox. The second (`agent`) is the sandbox's first process: it binds itself (landlock, seccomp, limits) before
//! it runs a command of others. Each gives up what it gives up while it has one thread, so that all of it gives it up; threads
//! come after.

mod agent;
mod bounds;
mod confined;
mod files;
mod folder;
mod full_look;
mod guard;
mod held;
mod landlock;
mod launch;
mod locks;
mod loopback;
mod priority;
mod processes;
mod rules;
mod seccomp;
mod spaces;
mod user;
mod watch;
mod watched;

use std::io::Write;
use std::os::fd::OwnedFd;
use std::process::ExitCode;

/// The first argument of a stage.
pub(crate) const STAGE_ARGUMENT: &str = "__sandbox";
/// The first stage.
pub(crate) const LAUNCH: &str = "launch";
/// The second stage.
pub(crate) const AGENT: &str = "agent";
/// Exit code of a first stage that has ended the sandbox since its programs went over a limit. It writes which one.
pub(crate) const OVER_LIMIT: u8 = 10;
/// Kills what is left of a user: its number is the next argument.
pub(crate) const SWEEP: &str = "sweep";

pub(crate) use files::relative;
pub(crate) use folder::folder_bytes;
pub(crate) use priority::{
    GUARD as GUARD_PRIORITY, LOWEST as LOWEST_PRIORITY, YIELDING as YIELDING_PRIORITY,
};
pub(crate) use processes::{descendants, threads_of_user, used};
pub(crate) use rules::{Files, files_of};

/// Runs a stage of a sandbox when this process was started as one, and gives its exit code; `None` otherwise.
///
/// To be called first in `main`, before any thread is started.
#[must_use]
pub fn stage_main() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != STAGE_ARGUMENT {
        return None;
    }
    let stage = arguments.next().unwrap_or_default();
    let outcome = match stage.to_str() {
        Some(LAUNCH) => close_inherited().and_then(|()| launch::run()),
        Some(AGENT) => close_inherited().and_then(|()| agent::run()).map(|()| None),
        Some(SWEEP) => user::sweep_by_argument(arguments.next()).map(|()| None),
        _ => Err("there is no such stage".to_owned()),
    };
    let (code, reason) = match outcome {
        Ok(None) => return Some(ExitCode::SUCCESS),
        Ok(Some(limit)) => (ExitCode::from(OVER_LIMIT), limit),
        Err(reason) => (ExitCode::FAILURE, reason),
    };
    // The host reads it; where it is gone nobody is left to tell.
    let _ = writeln!(std::io::stderr(), "{}", super::wire::reason(&reason));
    Some(code)
}

/// Closes what this process was started with beside its three standard files: whoever started the host may have left
/// files open that are nobody else's business.
fn close_inherited() -> Result<(), String> {
    const DOING: &str = "the files of the host cannot be closed";
    let mut open = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd").doing(DOING)? {
        let name = entry.doing(DOING)?.file_name();
        open.extend(name.to_str().and_then(|number| number.parse::<i32>().ok()).filter(|number| *number > 2));
    }
    for number in open {
        match nix::unistd::close(number) {
            // The folder itself was among them.
            Ok(()) | Err(nix::errno::Errno::EBADF) => {}
            Err(error) => return Err(format!("{DOING}: {error}")),
        }
    }
    Ok(())
}

/// The socket to the host, which every stage has as its standard input.
fn control() -> Result<OwnedFd, String> {
    use std::os::fd::AsFd;
    std::io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map_err(|error| format!("the host is not to be reached: {error}"))
}

/// The second stage's end of the pipe to its guard, which it has as its standard output.
fn alive() -> Result<OwnedFd, String> {
    use std::os::fd::AsFd;
    let alive = std::io::stdout().as_fd().try_clone_to_owned();
    alive.map_err(|error| format!("the guard is not to be seen: {error}"))
}

/// Says what was being done when a call failed.
trait Doing<T> {
    fn doing(self, what: &str) -> Result<T, String>;
}

impl<T, E: std::fmt::Display> Doing<T> for Result<T, E> {
    fn doing(self, what: &str) -> Result<T, String> {
        self.map_err(|error| format!("{what}: {error}"))
    }
}
