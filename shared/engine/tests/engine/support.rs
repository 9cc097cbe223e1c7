//! An engine with a proxy, an image made from this machine's files, and the command `docker` through the proxy.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

use bench_engine::{
    Engine, ImageRules, Limits, NetworkPolicy, Owner, ProbeOptions, Proxy, SandboxRules, SharedFolder, probe,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Name of the image with busybox.
pub(crate) const BUSYBOX: &str = "localhost/bench-test/busybox:1";
const BUSYBOX_PROGRAMS: [&str; 4] =
    ["/bin/busybox", "/usr/bin/busybox", "/usr/sbin/busybox", "/sbin/busybox"];

/// Number of tests that use the image. The first imports it, and the last removes it.
static IMAGE_USERS: Mutex<usize> = Mutex::new(0);
/// Held by tests of limited and open networks: an interface's name goes from one network to the next, and the other test's
/// firewall could still limit it.
pub(crate) static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// An engine for one test.
pub(crate) struct World {
    /// Dropped before the engine's service ends.
    leftovers: Leftovers,
    pub(crate) engine: Engine,
    pub(crate) folder: TempDir,
    pub(crate) instance: String,
    /// Duration of the probe, in milliseconds.
    pub(crate) probe_ms: u128,
}

/// A sandbox with its proxy.
pub(crate) struct Sandbox {
    pub(crate) proxy: Proxy,
    pub(crate) workspace: PathBuf,
    pub(crate) id: String,
}

/// Returns options that look for the engine of the test's variables.
pub(crate) fn options(folder: &Path) -> ProbeOptions {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    ProbeOptions {
        docker_host: std::env::var("DOCKER_HOST").ok(),
        path: std::env::var_os("PATH").unwrap_or_default(),
        home: variable("HOME"),
        runtime_folder: variable("XDG_RUNTIME_DIR"),
        docker_config: variable("DOCKER_CONFIG"),
        containers_conf: variable("CONTAINERS_CONF"),
        storage_conf: variable("CONTAINERS_STORAGE_CONF"),
        ..ProbeOptions::new(folder.join("run"))
    }
}

impl World {
    /// Finds an engine and imports the image.
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let started = std::time::Instant::now();
        let engine = match probe(&options(folder.path())).await {
            Ok(engine) => engine,
            Err(error) => panic!("these tests need a container engine: {error}"),
        };
        let probe_ms = started.elapsed().as_millis();
        let instance = format!("test-{}", uuid::Uuid::new_v4().simple());
        let leftovers = Leftovers { socket: engine.client().socket().to_owned(), instance: instance.clone() };
        let world = Self { leftovers, engine, folder, instance, probe_ms };
        let mut users = IMAGE_USERS.lock().unwrap_or_else(PoisonError::into_inner);
        if *users == 0 {
            world.import();
        }
        *users += 1;
        drop(users);
        world
    }

    /// Imports busybox as an image of the machine.
    fn import(&self) {
        let Some(busybox) = BUSYBOX_PROGRAMS.iter().map(Path::new).find(|path| path.exists()) else {
            panic!("these tests need a static busybox (Debian, Ubuntu: `apt-get install busybox-static`)");
        };
        let root = self.folder.path().join("image");
        std::fs::create_dir_all(root.join("bin")).unwrap();
        for folder in ["tmp", "etc", "proc"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::fs::copy(busybox, root.join("bin/busybox")).unwrap();
        for program in [
            "sh", "ls", "cat", "sleep", "wget", "nc", "ip", "true", "echo", "id", "mkdir", "touch", "env",
            "dd", "mount", "head", "ping", "seq", "ln",
        ] {
            std::os::unix::fs::symlink("busybox", root.join("bin").join(program)).unwrap();
        }
        let archive = self.folder.path().join("image.tar");
        let packed = Command::new("tar").arg("-C").arg(&root).arg("-cf").arg(&archive).arg(".").status();
        assert!(packed.unwrap().success());
        let archive = archive.display().to_string();
        let imported = self.docker(&["import", "--change", "CMD sh", &archive, BUSYBOX]);
        assert!(imported.status.success(), "{imported:?}");
    }

    /// Runs docker on the engine's own socket.
    pub(crate) fn docker(&self, arguments: &[&str]) -> Output {
        docker(self.engine.client().socket(), arguments)
    }

    /// Starts a proxy.
    pub(crate) fn sandbox(&self, id: &str, network: NetworkPolicy) -> Sandbox {
        self.sandbox_with(id, network, ImageRules::of_sandbox(id).own, |_| {})
    }

    /// Starts a proxy of a sandbox that may give its images names with these prefixes.
    pub(crate) fn sandbox_naming(&self, id: &str, network: NetworkPolicy, own: Vec<String>) -> Sandbox {
        self.sandbox_with(id, network, own, |_| {})
    }

    /// Starts a proxy with other limits.
    pub(crate) fn limited(
        &self,
        id: &str,
        network: NetworkPolicy,
        change: impl FnOnce(&mut Limits),
    ) -> Sandbox {
        self.sandbox_with(id, network, ImageRules::of_sandbox(id).own, change)
    }

    fn sandbox_with(
        &self,
        id: &str,
        network: NetworkPolicy,
        own: Vec<String>,
        change: impl FnOnce(&mut Limits),
    ) -> Sandbox {
        let workspace = self.folder.path().join(format!("workspace-{id}"));
        std::fs::create_dir_all(&workspace).unwrap();
        let mut images = ImageRules::of_sandbox(id);
        images.usable = vec!["localhost/bench-test/".to_owned()];
        images.own = own;
        let mut limits = Limits { memory_bytes_default: 128 << 20, pids_default: 64, ..Limits::default() };
        change(&mut limits);
        let rules = SandboxRules {
            folders: vec![SharedFolder {
                seen: "/workspace".into(),
                host: workspace.clone(),
                writable: true,
            }],
            images,
            network,
            limits,
            ..SandboxRules::new(Owner::new(&self.instance, id).unwrap())
        };
        let socket = self.folder.path().join(format!("{id}.sock"));
        let proxy = Proxy::start(&self.engine, &socket, rules).unwrap();
        Sandbox { proxy, workspace, id: id.to_owned() }
    }

    /// Lists all objects of this test's instance.
    pub(crate) fn left(&self) -> Vec<String> {
        self.leftovers.list().into_iter().map(|(kind, id)| format!("{kind} {id}")).collect()
    }

    /// Stops the engine's service, if the probe started it.
    pub(crate) async fn stop(self) {
        assert_eq!(self.left(), Vec::<String>::new());
        let Self { leftovers, engine, .. } = self;
        drop(leftovers);
        engine.stop().await;
    }
}

/// Removes the objects of a test that failed, and the image.
struct Leftovers {
    socket: PathBuf,
    instance: String,
}

impl Leftovers {
    /// Returns kind and id of each object.
    fn list(&self) -> Vec<(&'static str, String)> {
        let filter = format!("label=bench-runner.instance={}", self.instance);
        let mut left = Vec::new();
        for kind in ["container", "network", "volume", "image"] {
            let all: &[&str] = if kind == "container" { &["--all"] } else { &[] };
            let output = docker(&self.socket, &[&[kind, "ls", "--quiet", "--filter", &filter], all].concat());
            left.extend(stdout(&output).lines().map(|id| (kind, id.to_owned())));
        }
        left
    }
}

impl Drop for Leftovers {
    fn drop(&mut self) {
        for (kind, id) in self.list() {
            docker(&self.socket, &[kind, "rm", "--force", &id]);
        }
        let mut users = IMAGE_USERS.lock().unwrap_or_else(PoisonError::into_inner);
        *users = users.saturating_sub(1);
        if *users == 0 {
            docker(&self.socket, &["image", "rm", BUSYBOX]);
        }
    }
}

impl Sandbox {
    /// Runs docker through the proxy.
    pub(crate) fn docker(&self, arguments: &[&str]) -> Output {
        docker(self.proxy.socket(), arguments)
    }

    /// Runs docker through the proxy with a file as standard input.
    pub(crate) fn docker_with(&self, arguments: &[&str], input: std::fs::File) -> Output {
        docker_with(self.proxy.socket(), arguments, input.into())
    }

    /// Runs docker through the proxy and returns its output, which must succeed.
    pub(crate) fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.docker(arguments);
        assert!(output.status.success(), "docker {arguments:?}: {output:?}");
        stdout(&output)
    }

    /// Runs docker through the proxy and returns its error, which must contain `expected`.
    pub(crate) fn refuse(&self, arguments: &[&str], expected: &str) {
        let output = self.docker(arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "docker {arguments:?} succeeded: {output:?}");
        assert!(error.contains(expected), "docker {arguments:?}: {error}");
    }

    /// Sends a request through the proxy with curl, and returns status and JSON.
    pub(crate) fn request(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let mut command = Command::new("curl");
        command.args(["--silent", "--max-time", "60", "--path-as-is", "--write-out", "\n%{http_code}"]);
        command.arg("--unix-socket").arg(self.proxy.socket());
        command.args(["--request", method, "--header", "Content-Type: application/json"]);
        command.args(["--data", &body.to_string(), &format!("http://engine{path}")]);
        let output = stdout(&command.output().unwrap());
        let (body, status) = output.rsplit_once('\n').unwrap();
        (status.parse().unwrap(), serde_json::from_str(body).unwrap_or(json!(null)))
    }
}

fn docker(socket: &Path, arguments: &[&str]) -> Output {
    docker_with(socket, arguments, Stdio::null())
}

fn docker_with(socket: &Path, arguments: &[&str], input: Stdio) -> Output {
    let mut command = Command::new("docker");
    command
        .args(arguments)
        .env_remove("DOCKER_CONTEXT")
        .env("DOCKER_HOST", format!("unix://{}", socket.display()));
    // The newer builder of docker's command needs what the proxy refuses; on the engine's own socket, too.
    command.env("DOCKER_BUILDKIT", "0").stdin(input);
    let output = command.output();
    output.unwrap_or_else(|error| {
        panic!("these tests need the command `docker` (Debian: docker.io or docker-cli): {error}")
    })
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
