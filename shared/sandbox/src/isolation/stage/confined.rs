//! The form `confined`: the second stage alone, for machines that refuse namespaces. This process is its guard: it
//! watches over what the kernel does not bound here, and kills what is left.

use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions};

use super::guard::{Guard, leave_control};
use super::watch::{Ends, Over};
use super::watched::Watch;
use super::{AGENT, Doing, STAGE_ARGUMENT, processes, user};
use crate::isolation::wire::Plan;

/// The second stage is given this long to end by itself.
const LAST_WAIT: Duration = Duration::from_secs(2);
/// Between two looks at what is left.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// What is left is hunted for so long, at most.
const HUNT_MAX: Duration = Duration::from_secs(20);

/// Starts the second stage and stays until it or the host is gone, or the sandbox is over a limit: then it gives which.
pub(super) fn run(guard: Guard) -> Result<Option<String>, String> {
    let Guard { plan, control, life } = guard;
    // What loses its parent becomes a child of this process, and is found.
    nix::sys::prctl::set_child_subreaper(true).doing("processes cannot be adopted")?;
    let (ended, alive) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).doing("no pipe can be made")?;
    let mut agent = Command::new("/proc/self/exe")
        .args([STAGE_ARGUMENT, AGENT])
        .env_clear()
        .stdin(control.try_clone().doing("no file can be opened")?)
        .stdout(Stdio::from(alive))
        .spawn()
        .doing("the second stage cannot be started")?;
    leave_control(control)?;
    // As the kernel names what is below it.
    let folder = plan.folder.as_ref().map(|folder| folder.canonicalize().unwrap_or_else(|_| folder.clone()));
    let watch = Watch { limits: plan.limits, folder, in_memory: &[], user: plan.uid, own_processes: 1 };
    let over = watch.run(&Ends { life: &life, ended: &ended });
    finish(&plan, &mut agent, ended)?;
    match over? {
        Over::Host | Over::Agent => Ok(None),
        Over::Limit(reason) => Ok(Some(reason)),
    }
}

/// Ends the second stage and everything that the sandbox started.
fn finish(plan: &Plan, agent: &mut Child, ended: OwnedFd) -> Result<(), String> {
    // The second stage sees this as its guard's end: it kills all that it may signal, and ends.
    drop(ended);
    let until = Instant::now() + LAST_WAIT;
    while matches!(agent.try_wait(), Ok(None)) && Instant::now() < until {
        std::thread::sleep(LOOK_EVERY);
    }
    let _ = agent.kill();
    let hunted = hunt();
    match plan.uid {
        // The kernel finds them by their user, all at once.
        Some(uid) => user::sweep(uid),
        None => hunted,
    }
}

/// Kills descendants until there are none.
fn hunt() -> Result<(), String> {
    let until = Instant::now() + HUNT_MAX;
    loop {
        let left = processes::descendants(std::process::id());
        for pid in left.iter().filter_map(|pid| Pid::from_raw(i32::try_from(*pid).ok()?)) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                // Children live: another round.
                Ok(None) => break,
                // No child, and so no descendant: orphans are ours.
                Err(_) => return Ok(()),
            }
        }
        if Instant::now() > until {
            return Err("processes of the sandbox cannot be killed".to_owned());
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
