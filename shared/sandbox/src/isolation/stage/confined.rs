//! The form `confined`: the second stage without namespaces, for machines that refuse them. This process is its guard:
//! it watches the limits that the kernel doesn't enforce here, and kills all remaining processes at the end.

use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions};

use super::guard::{Guard, leave_control};
use super::watch_loop::{WatchEnd, WatchedPipes};
use super::watcher::Watcher;
use super::{AGENT, ALLOCATOR_SETTING, Context, STAGE_ARGUMENT, processes, user};
use crate::isolation::wire::Plan;

/// Maximum time for the second stage to exit by itself.
const EXIT_WAIT: Duration = Duration::from_secs(2);
/// Interval between checks for remaining processes.
const POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Maximum time to kill remaining processes.
const KILL_TIMEOUT: Duration = Duration::from_secs(20);

/// Starts the second stage, and returns when it or the host is gone, or when the sandbox exceeds a limit, which it
/// returns.
pub(super) fn run(guard: Guard) -> Result<Option<String>, String> {
    let Guard { plan, control, host_pipe } = guard;
    // Orphans become children of this process, so that it finds them.
    nix::sys::prctl::set_child_subreaper(true).context("cannot become a subreaper")?;
    let (agent_pipe, alive) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).context("cannot create a pipe")?;
    let mut agent = Command::new("/proc/self/exe")
        .args([STAGE_ARGUMENT, AGENT])
        .env_clear()
        .env(ALLOCATOR_SETTING.0, ALLOCATOR_SETTING.1)
        .stdin(control.try_clone().context("cannot open a file")?)
        .stdout(Stdio::from(alive))
        .spawn()
        .context("cannot start the second stage")?;
    leave_control(control)?;
    // Canonical, since the kernel reports canonical paths of files below.
    let folder = plan.folder.as_ref().map(|folder| folder.canonicalize().unwrap_or_else(|_| folder.clone()));
    let watcher = Watcher { limits: plan.limits, folder, in_memory: &[], user: plan.uid, own_processes: 1 };
    let watch_end = watcher.run(&WatchedPipes { host_pipe: &host_pipe, agent_pipe: &agent_pipe });
    finish(&plan, &mut agent, agent_pipe)?;
    match watch_end? {
        WatchEnd::HostGone | WatchEnd::AgentGone => Ok(None),
        WatchEnd::OverLimit(reason) => Ok(Some(reason)),
    }
}

/// Ends the second stage and every process that the sandbox started.
fn finish(plan: &Plan, agent: &mut Child, agent_pipe: OwnedFd) -> Result<(), String> {
    // To the second stage, this looks like the guard's exit: it kills everything that it may signal, and exits.
    drop(agent_pipe);
    let until = Instant::now() + EXIT_WAIT;
    while matches!(agent.try_wait(), Ok(None)) && Instant::now() < until {
        std::thread::sleep(POLL_INTERVAL);
    }
    let _ = agent.kill();
    let result = kill_descendants();
    match plan.uid {
        // The kernel finds all processes of the user at once.
        Some(uid) => user::kill_user_processes(uid),
        None => result,
    }
}

/// Kills descendants until none are left.
fn kill_descendants() -> Result<(), String> {
    let until = Instant::now() + KILL_TIMEOUT;
    loop {
        let left = processes::descendants(std::process::id());
        for pid in left.iter().filter_map(|pid| Pid::from_raw(i32::try_from(*pid).ok()?)) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                // Some children are still alive: another round.
                Ok(None) => break,
                // No children, and therefore no descendants, since orphans become our children.
                Err(_) => return Ok(()),
            }
        }
        if Instant::now() > until {
            return Err("cannot kill the processes of the sandbox".to_owned());
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}
