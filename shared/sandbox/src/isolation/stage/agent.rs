//! The second stage: the first process of a sandbox. It binds itself, then runs commands and writes files for the host
//! until the host or the sandbox is gone.

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
use super::{Doing, alive, bounds, control, landlock, priority, user};
use crate::isolation::wire::{
    self, AgentPlan, Ask, ExecBody, Kind, Parcel, Ready, Refusal, Tell, WriteBody, WriteRefusal,
};

/// Where commands find the working folder, in words of the interface.
const WORKSPACE: &str = "/workspace";
/// Where bash may be.
const SHELLS: [&str; 3] = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"];
/// The first stage has received the plan already.
const PLAN_WAIT: Duration = Duration::from_secs(30);
/// A shell's exit codes for what it cannot run, and for no process to run it in.
const CANNOT_RUN: i32 = 126;
const NO_PROCESS: i32 = 254;

/// Binds this process and serves the host.
pub(super) fn run() -> Result<(), String> {
    let control = control()?;
    if !wire::wait_readable(control.as_fd(), PLAN_WAIT).doing("the host is not to be heard")? {
        return Err("the host gave no plan".to_owned());
    }
    let parcel = wire::receive::<()>(control.as_fd()).doing("the plan cannot be received")?;
    let plan = parcel.and_then(|parcel| parcel.files.into_iter().next()).ok_or("the host is gone")?;
    let plan: AgentPlan = wire::read_json(plan).doing("the plan cannot be read")?;

    if let Some(uid) = plan.uid {
        user::become_user(uid)?;
    }
    if plan.kind == Kind::Confined {
        nix::sys::prctl::set_child_subreaper(true).doing("processes cannot be adopted")?;
    }
    if plan.kind == Kind::Confined || !plan.limits.memory_is_bounded {
        // Its group is one that no program is in: the filter keeps programs from joining it, and from sending signals to it.
        nix::unistd::setsid().doing("the session of the guard cannot be left")?;
    }
    if !plan.limits.memory_is_bounded {
        priority::come_after(plan.priority)?;
    }
    // No process of the sandbox looks into this one.
    nix::sys::prctl::set_dumpable(false).doing("the memory cannot be closed to others")?;
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGCHLD);
    signals.thread_block().doing("signals cannot be held back")?;
    let received = SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
        .doing("signals cannot be received")?;

    std::env::set_current_dir(&plan.home).doing("the working folder cannot be entered")?;
    let shell = SHELLS.map(Path::new).into_iter().find(|shell| shell.exists()).ok_or("there is no bash")?;
    let home = Home::open(&plan.home).doing("the working folder cannot be opened")?;
    let ready = bind(&plan)?;
    let guard = alive()?;
    let spawners = Spawners::start(&plan, signals)?;

    let mut agent = Agent { plan, shell, home, control, guard, signals, spawners, running: HashMap::new() };
    agent.tell(&Tell::Ready(ready))?;
    let outcome = agent.serve(&received);
    agent.end();
    outcome
}

/// Gives up, for good, what programs in this sandbox must not do.
fn bind(plan: &AgentPlan) -> Result<Ready, String> {
    let guard = nix::unistd::getppid();
    bounds::apply(plan)?;
    user::give_up_capabilities()?;
    let landlock = landlock::restrict(plan)?;
    let confined = plan.kind == Kind::Confined;
    let own_user = plan.uid.is_some();
    if confined {
        let (needed, why) = if own_user {
            (1, "to close the machine's files")
        } else {
            (landlock::SCOPES_SINCE, "to keep programs of the same user apart")
        };
        if landlock < needed {
            return Err(format!(
                "the kernel has version {landlock} of landlock, and version {needed} is needed {why} without namespaces"
            ));
        }
        if kill(guard, None) != Err(nix::errno::Errno::EPERM) {
            return Err("programs could send signals to processes outside of the sandbox".to_owned());
        }
    }
    // Sockets in the file system are not closed by older landlocks. A user of its own reaches only those that are
    // open to every user; the host's user would reach those of its session.
    let unix_sockets = !confined
        || landlock >= landlock::UNIX_SOCKETS_SINCE
        || (own_user && landlock >= landlock::SCOPES_SINCE);
    seccomp::apply(Filter {
        unix_sockets,
        internet_sockets: !confined || plan.allow_network,
        shared_objects: !confined,
        file_attributes: !confined || own_user,
        // In namespaces the guard may read every process, and programs need to close theirs to each other.
        hidden_processes: !confined,
        uncounted_memory: plan.limits.memory_is_bounded,
    })?;
    Ok(Ready { landlock, unix_sockets })
}

struct Agent {
    plan: AgentPlan,
    shell: &'static Path,
    home: Home,
    control: OwnedFd,
    /// Its other end is held by the guard alone, and is closed when the guard is gone.
    guard: OwnedFd,
    /// Held back, and received between other things.
    signals: SigSet,
    /// Threads that start commands under filters that this process must not have.
    spawners: Spawners,
    /// Commands by their process, which leads a group.
    running: HashMap<Pid, u64>,
}

impl Agent {
    /// Until the host or the guard is gone.
    fn serve(&mut self, signals: &SignalFd) -> Result<(), String> {
        loop {
            let mut waits = [
                PollFd::new(&self.control, PollFlags::IN),
                PollFd::new(signals, PollFlags::IN),
                PollFd::new(&self.guard, PollFlags::empty()),
            ];
            match poll(&mut waits, None) {
                Err(Errno::INTR) => continue,
                other => other.doing("nothing can be waited for")?,
            };
            let [asked, signalled, unguarded] = waits.each_ref().map(|wait| !wait.revents().is_empty());
            if unguarded {
                return Ok(());
            }
            if signalled {
                while let Ok(Some(_)) = signals.read_signal() {}
                self.reap()?;
            }
            if asked {
                match wire::receive::<Ask>(self.control.as_fd()).doing("the host is not understood")? {
                    None => return Ok(()),
                    Some(parcel) => self.answer(parcel)?,
                }
            }
        }
    }

    /// Takes leave of all children that are over, orphans of the sandbox among them.
    fn reap(&mut self) -> Result<(), String> {
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            let Some(id) = self.running.remove(&pid) else { continue };
            let code =
                status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal));
            self.tell(&Tell::Exit { id, code: code.unwrap_or(-1) })?;
        }
        Ok(())
    }

    fn answer(&mut self, parcel: Parcel<Ask>) -> Result<(), String> {
        let mut files = parcel.files.into_iter();
        let answer = match parcel.message {
            Ask::Exec { id } => match self.start(id, files.next(), files.next(), files.next()) {
                // It may be over already.
                Ok(()) => return self.reap(),
                Err(reason) => Tell::Refused { id, reason },
            },
            Ask::Kill { id } => {
                for (pid, _) in self.running.iter().filter(|(_, running)| **running == id) {
                    // Not yet waited for, so the number is still its own.
                    let _ = rustix::process::kill_process_group(*pid, rustix::process::Signal::KILL);
                }
                return Ok(());
            }
            Ask::Write { id } => match self.write(files.next(), files.next()) {
                Ok(()) => Tell::Written { id },
                Err(reason) => Tell::NotWritten { id, reason },
            },
            Ask::Disk { id } => Tell::Disk { id, bytes: self.disk_bytes() },
        };
        self.tell(&answer)
    }

    fn start(
        &mut self,
        id: u64,
        body: Option<OwnedFd>,
        out: Option<OwnedFd>,
        err: Option<OwnedFd>,
    ) -> Result<(), Refusal> {
        let (Some(body), Some(out), Some(err)) = (body, out, err) else {
            return Err(Refusal::Sandbox("no file can be opened in the sandbox".to_owned()));
        };
        let body: ExecBody = wire::read_json(body)
            .map_err(|error| Refusal::Sandbox(format!("the command cannot be read: {error}")))?;
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
            None => shell(CANNOT_RUN, "bash: a command, its folder and its variables have no NUL".to_owned()),
            Some(Errno::TOOBIG) => shell(CANNOT_RUN, "bash: Argument list too long".to_owned()),
            Some(Errno::AGAIN | Errno::NOMEM) => {
                shell(NO_PROCESS, "bash: the sandbox has no process or memory left for a command".to_owned())
            }
            Some(_) => shell(CANNOT_RUN, format!("bash: {}", wire::reason(&error.to_string()))),
        })?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| Refusal::Sandbox("a process without a number was started".to_owned()))?;
        self.running.insert(pid, id);
        Ok(())
    }

    /// The folder a command starts in.
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
            return Err(WriteRefusal::Failed("no file can be opened in the sandbox".to_owned()));
        };
        let body: WriteBody =
            wire::read_json(body).map_err(|error| WriteRefusal::Failed(wire::reason(&error.to_string())))?;
        let path = files::relative(&body.path).ok_or(WriteRefusal::Path)?;
        self.home.write(&path, &mut File::from(content))
    }

    /// Only of a file system of its own: a folder is counted by the host.
    fn disk_bytes(&self) -> Option<u64> {
        if self.plan.kind == Kind::Confined {
            return None;
        }
        let at = rustix::fs::statvfs(&self.plan.home).ok()?;
        Some(at.f_blocks.saturating_sub(at.f_bfree).saturating_mul(at.f_frsize))
    }

    fn tell(&self, message: &Tell) -> Result<(), String> {
        match wire::send(self.control.as_fd(), message, &[]) {
            // Found out by the next wait as well, which then ends the sandbox.
            Err(Errno::PIPE | Errno::CONNRESET) => Ok(()),
            other => other.doing("the host cannot be told"),
        }
    }

    /// Kills whatever the sandbox still runs. In namespaces the kernel does it when this process, their first, is gone.
    fn end(&self) {
        if self.plan.kind == Kind::Confined {
            // Everything that this process may signal: it was made sure that this is only the sandbox.
            let _ = kill(nix::unistd::Pid::from_raw(-1), Signal::SIGKILL);
        }
    }
}

/// Starts a command, which holds back no signal.
fn spawn(command: &mut Command, signals: &SigSet) -> std::io::Result<Child> {
    // Commands inherit what is held back. What arrives meanwhile is looked for after each start.
    signals.thread_unblock()?;
    let spawned = command.spawn();
    signals.thread_block()?;
    spawned
}

/// Threads that start commands, since a filter holds for the thread that applies it and for all that this thread starts.
/// `None` where this process starts them itself.
struct Spawners {
    /// For commands whose request does not allow Landlock, where no cgroup counts its memory.
    without_landlock: Option<Spawner>,
    /// For all others.
    ordinary: Option<Spawner>,
}

impl Spawners {
    fn start(plan: &AgentPlan, signals: SigSet) -> Result<Self, String> {
        let uncounted = !plan.limits.memory_is_bounded;
        // The first process of a pid namespace takes no signals from inside.
        let protects = plan.kind == Kind::Confined;
        let without_landlock = uncounted.then(|| Spawner::start(signals)).transpose()?;
        let ordinary = protects.then(|| Spawner::start(signals)).transpose()?;
        // A signal to one of its threads is a signal to this process: each filter names them all.
        let mut threads = vec![nix::unistd::getpid()];
        threads.extend([&without_landlock, &ordinary].into_iter().flatten().map(|spawner| spawner.thread));
        let protected = if protects { threads } else { Vec::new() };
        for (spawner, has_landlock) in [(&without_landlock, false), (&ordinary, true)] {
            if let Some(spawner) = spawner {
                spawner.bind(Binding { protected: protected.clone(), has_landlock })?;
            }
        }
        Ok(Self { without_landlock, ordinary })
    }

    /// Returns the thread for a command; `None` where this process starts it itself.
    fn choose(&self, allows_landlock: bool) -> Option<&Spawner> {
        self.without_landlock.as_ref().filter(|_| !allows_landlock).or(self.ordinary.as_ref())
    }
}

/// Filters of the commands that a thread starts.
struct Binding {
    /// Threads of this process, which commands must not send signals to. This process itself is not under that filter: it
    /// kills everything at once when the sandbox ends.
    protected: Vec<nix::unistd::Pid>,
    /// Whether commands may restrict themselves with Landlock.
    has_landlock: bool,
}

impl Binding {
    /// Applies the filters to this thread, for good.
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

/// A thread that applies filters to itself and starts commands.
struct Spawner {
    /// Its number, by which it can be sent a signal.
    thread: nix::unistd::Pid,
    bindings: mpsc::Sender<Binding>,
    bound: mpsc::Receiver<Result<(), String>>,
    commands: mpsc::Sender<Command>,
    spawned: mpsc::Receiver<std::io::Result<Child>>,
}

impl Spawner {
    const DOING: &str = "the thread that starts commands cannot be started";

    /// Starts the thread, which then waits for its filters.
    fn start(signals: SigSet) -> Result<Self, String> {
        /// It only starts commands.
        const STACK_BYTES: usize = 256 << 10;
        let (bindings, binding) = mpsc::channel::<Binding>();
        let (commands, asked) = mpsc::channel::<Command>();
        let (answers, spawned) = mpsc::channel();
        let (ready, bound) = mpsc::channel();
        let (started, thread) = mpsc::channel();
        let serve = move || {
            if started.send(nix::unistd::gettid()).is_err() {
                return;
            }
            let Ok(binding) = binding.recv() else { return };
            let outcome = binding.apply();
            let is_bound = outcome.is_ok();
            if ready.send(outcome).is_err() || !is_bound {
                return;
            }
            while let Ok(mut command) = asked.recv() {
                if answers.send(spawn(&mut command, &signals)).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().stack_size(STACK_BYTES).spawn(serve).doing(Self::DOING)?;
        let thread = thread.recv().doing(Self::DOING)?;
        Ok(Self { thread, bindings, bound, commands, spawned })
    }

    /// Applies the filters, once and before the first command.
    fn bind(&self, binding: Binding) -> Result<(), String> {
        self.bindings.send(binding).doing(Self::DOING)?;
        self.bound.recv().doing(Self::DOING)?
    }

    fn spawn(&self, command: Command) -> std::io::Result<Child> {
        let gone = || std::io::Error::other("the thread that starts commands is gone");
        self.commands.send(command).map_err(|_| gone())?;
        self.spawned.recv().map_err(|_| gone())?
    }
}
