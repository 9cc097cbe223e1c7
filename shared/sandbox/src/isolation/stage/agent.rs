//! The second stage: the first process of a sandbox. It restricts itself, then runs commands and writes files for the
//! host until the host or the guard is gone.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use bench_domain::job::ALLOW_LANDLOCK;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions};

use super::files::{self, Home};
use super::seccomp::{self, Filter};
use super::{Context, alive, control, landlock, priority, rlimits, user};
use crate::isolation::wire::{
    self, AgentPlan, ExecBody, FormKind, Ready, ReceivedMessage, Refusal, StageMessage, StageRequest,
    WriteBody, WriteRefusal,
};

/// Path of the working folder in requests.
const WORKSPACE: &str = "/workspace";
/// Possible paths of bash.
const SHELLS: [&str; 3] = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"];
/// Maximum time to wait for the plan. The host sends it before it starts the stages.
const PLAN_WAIT: Duration = Duration::from_secs(30);
/// Exit codes for a command that can't be run, and for a sandbox without a free process.
const CANNOT_RUN: i32 = 126;
const NO_PROCESS: i32 = 254;

/// Restricts this process and serves the host.
pub(super) fn run() -> Result<(), String> {
    let control = control()?;
    if !wire::wait_readable(control.as_fd(), PLAN_WAIT).context("cannot wait for the host")? {
        return Err("the host did not send a plan".to_owned());
    }
    let received = wire::receive::<()>(control.as_fd()).context("cannot receive the plan")?;
    let plan = received.and_then(|received| received.files.into_iter().next()).ok_or("the host is gone")?;
    let plan: AgentPlan = wire::read_json(plan).context("cannot read the plan")?;

    if let Some(uid) = plan.uid {
        user::become_user(uid)?;
    }
    if plan.kind == FormKind::Confined {
        nix::sys::prctl::set_child_subreaper(true).context("cannot become a subreaper")?;
    }
    if plan.kind == FormKind::Confined || !plan.limits.memory_is_bounded {
        // Its process group has no programs: the filter keeps programs from joining it and from sending signals to it.
        nix::unistd::setsid().context("cannot leave the guard's session")?;
    }
    if !plan.limits.memory_is_bounded {
        priority::set_program_priority(plan.priority)?;
    }
    // No process of the sandbox may read this process's memory.
    nix::sys::prctl::set_dumpable(false).context("cannot protect the memory from other processes")?;
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGCHLD);
    signals.thread_block().context("cannot block signals")?;
    let received = SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
        .context("cannot receive signals")?;

    std::env::set_current_dir(&plan.home).context("cannot enter the working folder")?;
    let shell = SHELLS.map(Path::new).into_iter().find(|shell| shell.exists()).ok_or("bash is missing")?;
    let home = Home::open(&plan.home).context("cannot open the working folder")?;
    let ready = restrict(&plan)?;
    let guard = alive()?;
    let spawners = Spawners::start(&plan, signals)?;

    let mut agent = Agent { plan, shell, home, control, guard, signals, spawners, running: HashMap::new() };
    agent.send(&StageMessage::Ready(ready))?;
    let outcome = agent.serve(&received);
    agent.end();
    outcome
}

/// Irrevocably gives up everything that programs in this sandbox must not do.
fn restrict(plan: &AgentPlan) -> Result<Ready, String> {
    let guard = nix::unistd::getppid();
    rlimits::apply(plan)?;
    user::give_up_capabilities()?;
    let landlock = landlock::restrict(plan)?;
    let is_confined = plan.kind == FormKind::Confined;
    let has_own_uid = plan.uid.is_some();
    if is_confined {
        let (needed, why) = if has_own_uid {
            (1, "to protect the machine's files")
        } else {
            (landlock::SCOPES_SINCE, "to keep programs of the same user apart")
        };
        if landlock < needed {
            return Err(format!(
                "the kernel has version {landlock} of Landlock, but version {needed} is needed {why} without namespaces"
            ));
        }
        if kill(guard, None) != Err(nix::errno::Errno::EPERM) {
            return Err("programs could send signals to processes outside of the sandbox".to_owned());
        }
    }
    // Older versions of Landlock don't restrict sockets in the file system. Programs with their own uid reach only
    // sockets that are open to every user; programs with the host's uid would reach those of its session.
    let unix_sockets = !is_confined
        || landlock >= landlock::UNIX_SOCKETS_SINCE
        || (has_own_uid && landlock >= landlock::SCOPES_SINCE);
    seccomp::apply(Filter {
        unix_sockets,
        internet_sockets: !is_confined || plan.allow_network,
        shared_objects: !is_confined,
        file_attributes: !is_confined || has_own_uid,
        // In namespaces, the guard can read every process, and programs need to hide theirs from each other.
        hidden_processes: !is_confined,
        uncounted_memory: plan.limits.memory_is_bounded,
    })?;
    Ok(Ready { landlock, unix_sockets })
}

struct Agent {
    plan: AgentPlan,
    shell: &'static Path,
    home: Home,
    control: OwnedFd,
    /// Pipe to the guard, which alone holds the other end; it closes when the guard is gone.
    guard: OwnedFd,
    /// Blocked signals; the main loop receives them through a signalfd.
    signals: SigSet,
    /// Threads that start commands under filters that must not apply to this process.
    spawners: Spawners,
    /// Running commands by their first process, which leads a process group.
    running: HashMap<Pid, u64>,
}

impl Agent {
    /// Serves requests until the host or the guard is gone.
    fn serve(&mut self, signals: &SignalFd) -> Result<(), String> {
        loop {
            let mut waits = [
                PollFd::new(&self.control, PollFlags::IN),
                PollFd::new(signals, PollFlags::IN),
                PollFd::new(&self.guard, PollFlags::empty()),
            ];
            match poll(&mut waits, None) {
                Err(Errno::INTR) => continue,
                other => other.context("cannot poll")?,
            };
            let [has_request, has_signal, is_unguarded] =
                waits.each_ref().map(|wait| !wait.revents().is_empty());
            if is_unguarded {
                return Ok(());
            }
            if has_signal {
                while let Ok(Some(_)) = signals.read_signal() {}
                self.reap()?;
            }
            if has_request {
                match wire::receive::<StageRequest>(self.control.as_fd())
                    .context("cannot read the host's request")?
                {
                    None => return Ok(()),
                    Some(received) => self.answer(received)?,
                }
            }
        }
    }

    /// Reaps all children that have exited, including orphans of the sandbox.
    fn reap(&mut self) -> Result<(), String> {
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            let Some(id) = self.running.remove(&pid) else { continue };
            let code =
                status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal));
            self.send(&StageMessage::Exit { id, code: code.unwrap_or(-1) })?;
        }
        Ok(())
    }

    fn answer(&mut self, received: ReceivedMessage<StageRequest>) -> Result<(), String> {
        let mut files = received.files.into_iter();
        let answer = match received.message {
            StageRequest::Exec { id } => match self.start(id, files.next(), files.next(), files.next()) {
                // The command may have exited already.
                Ok(()) => return self.reap(),
                Err(reason) => StageMessage::Refused { id, reason },
            },
            StageRequest::Kill { id } => {
                for (pid, _) in self.running.iter().filter(|(_, running)| **running == id) {
                    // The process hasn't been reaped, so its id can't have been reused.
                    let _ = rustix::process::kill_process_group(*pid, rustix::process::Signal::KILL);
                }
                return Ok(());
            }
            StageRequest::Write { id } => match self.write(files.next(), files.next()) {
                Ok(()) => StageMessage::Written { id },
                Err(reason) => StageMessage::NotWritten { id, reason },
            },
            StageRequest::Disk { id } => StageMessage::Disk { id, bytes: self.disk_bytes() },
        };
        self.send(&answer)
    }

    fn start(
        &mut self,
        id: u64,
        body: Option<OwnedFd>,
        out: Option<OwnedFd>,
        err: Option<OwnedFd>,
    ) -> Result<(), Refusal> {
        let (Some(body), Some(out), Some(err)) = (body, out, err) else {
            return Err(Refusal::Sandbox("the sandbox cannot open more files".to_owned()));
        };
        let body: ExecBody = wire::read_json(body)
            .map_err(|error| Refusal::Sandbox(format!("cannot read the command: {error}")))?;
        let folder = self.folder(body.cwd.as_deref());
        let shell = |code: i32, text: String| Refusal::Shell { code, text };
        if !folder.is_dir() {
            return Err(shell(1, format!("bash: {}: No such directory", folder.display())));
        }
        let mut command = Command::new(self.shell);
        command
            .arg("-c")
            .arg(&body.command)
            .env_clear()
            .envs(&self.plan.env)
            .envs(&body.env)
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .process_group(0);
        let allows_landlock = body.env.get(ALLOW_LANDLOCK).is_some_and(|value| value == "1");
        let spawned = match self.spawners.choose(allows_landlock) {
            Some(spawner) => spawner.spawn(command),
            None => spawn(&mut command, &self.signals),
        };
        let child = spawned.map_err(|error| match error.raw_os_error().map(Errno::from_raw_os_error) {
            None => shell(
                CANNOT_RUN,
                "bash: a command, its folder and its variables must not contain NUL".to_owned(),
            ),
            Some(Errno::TOOBIG) => shell(CANNOT_RUN, "bash: Argument list too long".to_owned()),
            Some(Errno::AGAIN | Errno::NOMEM) => {
                shell(NO_PROCESS, "bash: the sandbox has no process or memory left for a command".to_owned())
            }
            Some(_) => shell(CANNOT_RUN, format!("bash: {}", wire::reason(&error.to_string()))),
        })?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| Refusal::Sandbox("the started process has no valid id".to_owned()))?;
        self.running.insert(pid, id);
        Ok(())
    }

    /// Returns the folder that a command starts in.
    fn folder(&self, cwd: Option<&str>) -> PathBuf {
        match cwd {
            None => self.plan.home.clone(),
            Some(cwd) => match Path::new(cwd).strip_prefix(WORKSPACE) {
                Ok(rest) => self.plan.home.join(rest),
                // An absolute path replaces the working folder.
                Err(_) => self.plan.home.join(cwd),
            },
        }
    }

    fn write(&self, body: Option<OwnedFd>, content: Option<OwnedFd>) -> Result<(), WriteRefusal> {
        let (Some(body), Some(content)) = (body, content) else {
            return Err(WriteRefusal::Failed("the sandbox cannot open more files".to_owned()));
        };
        let body: WriteBody =
            wire::read_json(body).map_err(|error| WriteRefusal::Failed(wire::reason(&error.to_string())))?;
        let path = files::relative(&body.path).ok_or(WriteRefusal::Path)?;
        self.home.write(&path, &mut File::from(content))
    }

    /// Returns the size of the files if the working folder is a separate file system; otherwise the host measures the
    /// folder.
    fn disk_bytes(&self) -> Option<u64> {
        if self.plan.kind == FormKind::Confined {
            return None;
        }
        let stat = rustix::fs::statvfs(&self.plan.home).ok()?;
        Some(stat.f_blocks.saturating_sub(stat.f_bfree).saturating_mul(stat.f_frsize))
    }

    fn send(&self, message: &StageMessage) -> Result<(), String> {
        match wire::send(self.control.as_fd(), message, &[]) {
            // The next poll reports the closed socket as well, which ends the sandbox.
            Err(Errno::PIPE | Errno::CONNRESET) => Ok(()),
            other => other.context("cannot answer the host"),
        }
    }

    /// Kills all processes of the sandbox. In namespaces, the kernel does it when this process, the first one, exits.
    fn end(&self) {
        if self.plan.kind == FormKind::Confined {
            // Everything that this process may signal, which is only the sandbox (checked in `restrict`).
            let _ = kill(nix::unistd::Pid::from_raw(-1), Signal::SIGKILL);
        }
    }
}

/// Starts a command with no signals blocked.
fn spawn(command: &mut Command, signals: &SigSet) -> std::io::Result<Child> {
    // Commands inherit blocked signals. Signals that arrive meanwhile are found by reaping after each start.
    signals.thread_unblock()?;
    let spawned = command.spawn();
    signals.thread_block()?;
    spawned
}

/// Threads that start commands, since a filter applies to the thread that installs it and to everything that this
/// thread starts. `None` if this process starts such commands itself.
struct Spawners {
    /// For commands whose request doesn't allow Landlock, if no cgroup counts its memory.
    without_landlock: Option<Spawner>,
    /// For all other commands.
    ordinary: Option<Spawner>,
}

impl Spawners {
    fn start(plan: &AgentPlan, signals: SigSet) -> Result<Self, String> {
        let is_memory_uncounted = !plan.limits.memory_is_bounded;
        // The first process of a pid namespace ignores signals from inside.
        let needs_protection = plan.kind == FormKind::Confined;
        let without_landlock = is_memory_uncounted.then(|| Spawner::start(signals)).transpose()?;
        let ordinary = needs_protection.then(|| Spawner::start(signals)).transpose()?;
        // A signal to one of its threads is a signal to this process, so each filter names all threads.
        let mut threads = vec![nix::unistd::getpid()];
        threads.extend([&without_landlock, &ordinary].into_iter().flatten().map(|spawner| spawner.thread));
        let protected = if needs_protection { threads } else { Vec::new() };
        for (spawner, has_landlock) in [(&without_landlock, false), (&ordinary, true)] {
            if let Some(spawner) = spawner {
                spawner.install_filters(CommandFilters { protected: protected.clone(), has_landlock })?;
            }
        }
        Ok(Self { without_landlock, ordinary })
    }

    /// Returns the thread that starts a command; `None` if this process starts it itself.
    fn choose(&self, allows_landlock: bool) -> Option<&Spawner> {
        self.without_landlock.as_ref().filter(|_| !allows_landlock).or(self.ordinary.as_ref())
    }
}

/// Filters for the commands that a thread starts.
struct CommandFilters {
    /// Threads of this process, to which commands must not send signals. This process itself isn't under that filter,
    /// since it kills everything at once when the sandbox ends.
    protected: Vec<nix::unistd::Pid>,
    /// True if commands may restrict themselves with Landlock.
    has_landlock: bool,
}

impl CommandFilters {
    /// Installs the filters in this thread, irrevocably.
    fn apply(&self) -> Result<(), String> {
        if !self.protected.is_empty() {
            seccomp::protect(&self.protected)?;
        }
        if !self.has_landlock {
            seccomp::without_landlock()?;
        }
        Ok(())
    }
}

/// A thread that installs filters in itself and starts commands.
struct Spawner {
    /// Thread id, a possible target of signals.
    thread: nix::unistd::Pid,
    filters: mpsc::Sender<CommandFilters>,
    outcome: mpsc::Receiver<Result<(), String>>,
    commands: mpsc::Sender<Command>,
    spawned: mpsc::Receiver<std::io::Result<Child>>,
}

impl Spawner {
    const CONTEXT: &str = "cannot start the thread that starts commands";

    /// Starts the thread, which then waits for its filters.
    fn start(signals: SigSet) -> Result<Self, String> {
        /// Small, since the thread only starts commands.
        const STACK_BYTES: usize = 256 << 10;
        let (filters_sender, filters_receiver) = mpsc::channel::<CommandFilters>();
        let (commands, command_receiver) = mpsc::channel::<Command>();
        let (answers, spawned) = mpsc::channel();
        let (outcome_sender, outcome) = mpsc::channel();
        let (started, thread) = mpsc::channel();
        let serve = move || {
            if started.send(nix::unistd::gettid()).is_err() {
                return;
            }
            let Ok(filters) = filters_receiver.recv() else { return };
            let result = filters.apply();
            let is_installed = result.is_ok();
            if outcome_sender.send(result).is_err() || !is_installed {
                return;
            }
            while let Ok(mut command) = command_receiver.recv() {
                if answers.send(spawn(&mut command, &signals)).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().stack_size(STACK_BYTES).spawn(serve).context(Self::CONTEXT)?;
        let thread = thread.recv().context(Self::CONTEXT)?;
        Ok(Self { thread, filters: filters_sender, outcome, commands, spawned })
    }

    /// Installs the filters; called once, before the first command.
    fn install_filters(&self, filters: CommandFilters) -> Result<(), String> {
        self.filters.send(filters).context(Self::CONTEXT)?;
        self.outcome.recv().context(Self::CONTEXT)?
    }

    fn spawn(&self, command: Command) -> std::io::Result<Child> {
        let gone = || std::io::Error::other("the thread that starts commands has ended");
        self.commands.send(command).map_err(|_| gone())?;
        self.spawned.recv().map_err(|_| gone())?
    }
}
