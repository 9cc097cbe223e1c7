//! The stages of a sandbox, which run in the helper program.
//!
//! The first stage (`launch`) stays outside: it joins the cgroups, gives up its user, creates the namespaces and guards
//! the sandbox. The second stage (`agent`) is the sandbox's first process: it restricts itself (Landlock, seccomp,
//! limits) before it runs commands. Each stage gives up privileges while it has a single thread, so that they are gone
//! for the whole process, and starts threads afterward.

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

/// First argument of a stage.
pub(crate) const STAGE_ARGUMENT: &str = "__sandbox";
/// Name of the first stage.
pub(crate) const LAUNCH: &str = "launch";
/// Name of the second stage.
pub(crate) const AGENT: &str = "agent";
/// Exit code of a first stage that ended the sandbox because its programs exceeded a limit. It writes the limit to
/// standard error.
pub(crate) const OVER_LIMIT: u8 = 10;
/// Name of the stage that kills all processes of a uid, which is the next argument.
pub(crate) const SWEEP: &str = "sweep";

pub(crate) use files::relative;
pub(crate) use folder::folder_bytes;
pub(crate) use priority::{
    GUARD as GUARD_PRIORITY, LOWEST as LOWEST_PRIORITY, YIELDING as YIELDING_PRIORITY,
};
pub(crate) use processes::{descendants, threads_of_user, used};
pub(crate) use rules::{Files, files_of};

/// Runs a stage of a sandbox if this process was started as one, and returns its exit code; `None` otherwise.
///
/// Call it first in `main`, before any thread is started.
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
        _ => Err("unknown stage".to_owned()),
    };
    let (code, reason) = match outcome {
        Ok(None) => return Some(ExitCode::SUCCESS),
        Ok(Some(limit)) => (ExitCode::from(OVER_LIMIT), limit),
        Err(reason) => (ExitCode::FAILURE, reason),
    };
    // The host reads it; if the host is gone, the error doesn't matter.
    let _ = writeln!(std::io::stderr(), "{}", super::wire::reason(&reason));
    Some(code)
}

/// Closes inherited files except the three standard ones: whoever started the host may have left files open that
/// programs in sandboxes must not get.
fn close_inherited() -> Result<(), String> {
    const DOING: &str = "cannot close the files of the host";
    let mut open = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd").doing(DOING)? {
        let name = entry.doing(DOING)?.file_name();
        open.extend(name.to_str().and_then(|number| number.parse::<i32>().ok()).filter(|number| *number > 2));
    }
    for number in open {
        match nix::unistd::close(number) {
            // The handle of the folder itself was among them.
            Ok(()) | Err(nix::errno::Errno::EBADF) => {}
            Err(error) => return Err(format!("{DOING}: {error}")),
        }
    }
    Ok(())
}

/// Returns the socket to the host, which every stage has as its standard input.
fn control() -> Result<OwnedFd, String> {
    use std::os::fd::AsFd;
    std::io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map_err(|error| format!("cannot use the socket to the host: {error}"))
}

/// Returns the second stage's end of the pipe to its guard, which it has as its standard output.
fn alive() -> Result<OwnedFd, String> {
    use std::os::fd::AsFd;
    let alive = std::io::stdout().as_fd().try_clone_to_owned();
    alive.map_err(|error| format!("cannot use the pipe to the guard: {error}"))
}

/// Adds a description of the failed operation to an error.
trait Doing<T> {
    fn doing(self, what: &str) -> Result<T, String>;
}

impl<T, E: std::fmt::Display> Doing<T> for Result<T, E> {
    fn doing(self, what: &str) -> Result<T, String> {
        self.map_err(|error| format!("{what}: {error}"))
    }
}
