//! Podman's service on a private socket, started and stopped by this program.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use http::Method;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::{Instant, sleep, timeout};

use super::{ProbeOptions, tools};
use crate::build_group::{BuildGroup, HELPER_FOLDERS};
use crate::client::Client;
use crate::short_path::{ShortPath, is_short};

/// Time that the service has to listen.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that the service has to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(50);
/// Maximum length of podman's message in an error, in characters.
const MESSAGE_CHARS_MAX: usize = 500;

/// Name of the private socket in the run folder.
const SOCKET: &str = "podman.sock";

/// Writes its id into the files before `--`, then runs podman until standard input ends, so that the service doesn't outlive
/// this program.
const GUARD: &str = r#"signal=$1; shift
while [ "$1" != -- ]; do echo $$ >"$1" || exit; shift; done; shift
"$@" & child=$!; trap 'kill -s $signal $child' TERM; read -r line; kill -s $signal $child; wait $child"#;

/// Podman's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settings {
    /// Those of the machine and the user.
    Own,
    /// Settings with which podman also runs without the right to raise limits, and with cgroups of both versions.
    Adapted,
}

/// Podman's running service.
#[derive(Debug)]
pub(super) struct Podman {
    socket: PathBuf,
    child: Child,
    settings: Settings,
    /// The service ends when this is closed.
    guard: Option<ChildStdin>,
}

impl fmt::Display for Settings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Own => "its own settings",
            Self::Adapted => "adapted settings",
        })
    }
}

/// Folder, settings and build of a service that is started.
#[derive(Debug, Clone, Copy)]
pub(super) struct Launch<'a> {
    /// Folder for its socket, settings and log.
    pub(super) folder: &'a Path,
    pub(super) settings: Settings,
    pub(super) options: &'a ProbeOptions,
    /// The only build of the service.
    pub(super) build: Option<LaunchedBuild<'a>>,
}

/// The build for which a service is started.
#[derive(Debug, Clone, Copy)]
pub(super) struct LaunchedBuild<'a> {
    pub(super) group: &'a BuildGroup,
    /// Folder for temporary files.
    pub(super) scratch: &'a Path,
}

impl Podman {
    /// Starts the service for everything but builds, and waits until it answers.
    pub(super) async fn start(settings: Settings, options: &ProbeOptions) -> io::Result<Self> {
        Self::launch(Launch { folder: &options.run_folder, settings, options, build: None }).await
    }

    /// Starts a service and waits until it answers.
    pub(super) async fn launch(launch: Launch<'_>) -> io::Result<Self> {
        let Launch { settings, options, build, .. } = launch;
        let folder = std::path::absolute(launch.folder)?;
        let socket = folder.join(SOCKET);
        match std::fs::remove_file(&socket) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let log = folder.join("podman.log");
        let mut command = Command::new("/bin/sh");
        // A build isn't to be finished without this program.
        let signal = if build.is_some() { "KILL" } else { "TERM" };
        command.args(["-c", GUARD, "sh", signal]);
        command.args(build.into_iter().flat_map(|build| build.group.service_files()));
        command.args(["--", "podman"]);
        if build.is_some() {
            // Groups of systemd are elsewhere.
            command.arg("--cgroup-manager=cgroupfs");
        }
        command.args(["system", "service", "--time", "0"]);
        // Podman writes a file into its working folder when a container runs out of memory.
        command.current_dir(&folder);
        let address = match is_short(&socket) {
            true => socket.clone(),
            false => PathBuf::from("/proc/self/cwd/podman.sock"),
        };
        command.arg(format!("unix://{}", address.display()));
        // Variables of this program, which may be secrets, don't reach containers through podman.
        command.env_clear().env("PATH", &options.path);
        let folders = [
            ("HOME", &options.home),
            ("XDG_RUNTIME_DIR", &options.runtime_folder),
            ("CONTAINERS_CONF", &options.containers_conf),
            ("CONTAINERS_STORAGE_CONF", &options.storage_conf),
        ];
        for (name, folder) in folders {
            if let Some(folder) = folder {
                command.env(name, folder);
            }
        }
        if let Some(build) = build {
            // It is removed at the end, with everything that a killed build leaves there.
            command.env("TMPDIR", build.scratch);
        }
        if settings == Settings::Adapted {
            let path = folder.join("containers.conf");
            std::fs::write(&path, adapted_settings(options))?;
            command.env("CONTAINERS_CONF", path);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(File::create(&log)?);
        // Not killed when dropped: the guard has to survive to end podman.
        let mut child = command.process_group(0).spawn()?;
        let guard = child.stdin.take();
        let mut podman = Self { socket, child, settings, guard };
        match podman.wait_until_ready(&log).await {
            Ok(()) => Ok(podman),
            Err(error) => {
                podman.stop().await;
                Err(error)
            }
        }
    }

    /// Returns the settings with which the service was started.
    pub(super) fn settings(&self) -> Settings {
        self.settings
    }

    /// Returns the path of the private socket.
    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Ends the service. Containers continue.
    pub(super) async fn stop(mut self) {
        let id = self.child.id().and_then(|id| i32::try_from(id).ok());
        let group = id.and_then(Pid::from_raw);
        drop(self.guard.take());
        if timeout(STOP_TIMEOUT, self.child.wait()).await.is_err() {
            let killed = group.map(|group| kill_process_group(group, Signal::KILL));
            tracing::warn!(?killed, "Podman's service had to be killed");
            if let Err(error) = self.child.wait().await {
                tracing::warn!(%error, "Podman's service can't be waited for");
            }
        }
        // A guard that was killed has left podman behind.
        if let Some(run_folder) = self.socket.parent() {
            end_abandoned(run_folder);
        }
    }

    async fn wait_until_ready(&mut self, log: &Path) -> io::Result<()> {
        let client = Client::new(&self.socket);
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            if self.socket.exists() && client.call(Method::HEAD, "/_ping", None).await.is_ok() {
                return Ok(());
            }
            let ended = self.child.try_wait()?.is_some();
            if ended || Instant::now() > deadline || !is_running(log) {
                let message = std::fs::read_to_string(log).unwrap_or_default();
                let last = message.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no message");
                let last: String = last.chars().take(MESSAGE_CHARS_MAX).collect();
                return Err(io::Error::other(format!("its service did not start: {last}")));
            }
            sleep(POLL).await;
        }
    }
}

/// Ends a service of podman that still listens in the run folder of an earlier process, whose guard was killed, too.
pub(super) fn end_abandoned(run_folder: &Path) {
    let connected =
        ShortPath::new(&run_folder.join(SOCKET)).and_then(|short| UnixStream::connect(short.path()));
    let Ok(stream) = connected else { return };
    // The process that listens.
    let Ok(peer) = socket_peercred(&stream) else { return };
    let ended = kill_process(peer.pid, Signal::TERM);
    tracing::info!(?ended, "Podman's service was left behind");
}

/// Returns false once podman has printed an error, after which only the guard is left.
fn is_running(log: &Path) -> bool {
    !std::fs::read_to_string(log).unwrap_or_default().lines().any(|line| line.starts_with("Error:"))
}

/// Settings with which podman works where its own fail.
fn adapted_settings(options: &ProbeOptions) -> String {
    let mut settings = "[containers]\n\
        # Podman's default limits are above those of this process, which may not raise them.\n\
        default_ulimits = []\n\
        # Addresses of proxies may contain passwords.\n\
        http_proxy = false\n"
        .to_owned();
    // Other network programs leave gaps that the firewall doesn't expect.
    if HELPER_FOLDERS.iter().any(|folder| Path::new(folder).join("netavark").is_file()) {
        settings += "[network]\nnetwork_backend = \"netavark\"\n";
    }
    settings += "[engine]\nevents_logger = \"file\"\n\
        # Podman keeps a process for each ended command this long, by default for five minutes.\n\
        exit_command_delay = 10\n";
    // A user can have limits only through systemd.
    if rustix::process::geteuid().is_root() {
        settings += "cgroup_manager = \"cgroupfs\"\n";
    }
    // crun refuses cgroups of both versions at once.
    if let Some(runc) = tools::find("runc", &options.path) {
        settings += &format!("runtime = \"runc\"\n[engine.runtimes]\nrunc = [\"{}\"]\n", runc.display());
    }
    settings
}
