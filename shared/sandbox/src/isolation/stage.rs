//! The stages of a sandbox, which run in the helper program.
//!
//! The first stage (`launch`) stays outside: it joins the cgroups, gives up its user, creates the namespaces and guards
//! the sandbox. The second stage (`agent`) is the sandbox's first process: it restricts itself (Landlock, seccomp,
//! limits) before it runs commands. Each stage gives up privileges while it has a single thread, so that they are gone
//! for the whole process, and starts threads afterward.

mod agent;
mod allowed_files;
mod confined;
mod disk_usage;
mod files;
mod full_scan;
mod guard;
mod held_resources;
mod landlock;
mod launch;
mod locks;
mod loopback;
mod namespaces;
mod priority;
mod processes;
mod rlimits;
mod seccomp;
mod user;
mod watch_loop;
mod watcher;

use std::io::Write;
use std::os::fd::OwnedFd;
use std::process::ExitCode;

/// First argument of a stage.
pub(crate) const STAGE_ARGUMENT: &str = "__sandbox";
/// Variable of stages, for the allocator of the program (mimalloc): without it, the allocator reserves 1 GiB of address
/// space, which counts as memory where `RLIMIT_AS` limits it. Programs in sandboxes don't get it.
pub(crate) const ALLOCATOR_SETTING: (&str, &str) = ("MIMALLOC_DISALLOW_ARENA_ALLOC", "1");
/// Name of the first stage.
pub(crate) const LAUNCH: &str = "launch";
/// Name of the second stage.
pub(crate) const AGENT: &str = "agent";
/// Exit code of a first stage that ended the sandbox because its programs exceeded a limit. It writes the limit to
/// standard error.
pub(crate) const OVER_LIMIT: u8 = 10;
/// Name of the stage that kills all processes of a uid, which is the next argument.
pub(crate) const SWEEP: &str = "sweep";

pub(crate) use allowed_files::{AllowedFiles, allowed_files};
pub(crate) use disk_usage::folder_bytes;
pub(crate) use files::relative;
pub(crate) use priority::{
    GUARD as GUARD_PRIORITY, LOWEST as LOWEST_PRIORITY, YIELDING as YIELDING_PRIORITY,
};
pub(crate) use processes::{descendants, threads_of_user, total_usage};

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
        Some(SWEEP) => user::kill_user_processes_by_argument(arguments.next()).map(|()| None),
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

/// Closes inherited files except the three standard ones: the program that started the host may have left files open
/// that programs in sandboxes must not get.
fn close_inherited() -> Result<(), String> {
    const CONTEXT: &str = "cannot close the files of the host";
    let mut open = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd").context(CONTEXT)? {
        let name = entry.context(CONTEXT)?.file_name();
        open.extend(name.to_str().and_then(|number| number.parse::<i32>().ok()).filter(|number| *number > 2));
    }
    for number in open {
        match nix::unistd::close(number) {
            // The handle of the folder itself was among them.
            Ok(()) | Err(nix::errno::Errno::EBADF) => {}
            Err(error) => return Err(format!("{CONTEXT}: {error}")),
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
trait Context<T> {
    fn context(self, what: &str) -> Result<T, String>;
}

impl<T, E: std::fmt::Display> Context<T> for Result<T, E> {
    fn context(self, what: &str) -> Result<T, String> {
        self.map_err(|error| format!("{what}: {error}"))
    }
}
