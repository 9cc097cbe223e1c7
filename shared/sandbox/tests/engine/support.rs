//! Support for the tests: sandbox hosts with the machine's engine, their client, and small environments.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use bench_domain::FileContent;
use bench_engine::{Limits as ContainerLimits, ProbeOptions};
use bench_environments::{
    Build, BuildLimits, ComposeFiles, EngineFacts, EngineHost, Environment, EnvironmentError, Labels,
    MainImage, Network, Operation, Progress, Project, Resolve, Start, Started, TaskFile, Unpack, task_bundle,
};
use bench_sandbox::host::{ApiKey, EngineConfig, HostConfig, SandboxHost, router};
use bench_sandbox::isolation::{Isolation, IsolationOptions, Limits, forms};
use bench_sandy::job::{NoFiles, UploadProgress};
use bench_sandy::{ExecOutput, ExecRequest, NewSandbox, Sandy, SandyConfig};
use tempfile::TempDir;
use tokio::net::TcpListener;

const KEY: &str = "a-key";
/// Maximum time for an operation of a test.
const OPERATION_MAX: Duration = Duration::from_secs(600);
/// Prefix of the images of these tests, whose names no task has.
pub(crate) const OWN_IMAGES: &str = "docker.io/library/bench__";
/// Dockerfile of the smallest image with a shell.
pub(crate) const DOCKERFILE: &str = "FROM scratch\nCOPY busybox /bin/busybox\n\
    RUN [\"/bin/busybox\", \"--install\", \"-s\", \"/bin\"]\nRUN mkdir -p /tmp /root /etc /app && chmod 1777 /tmp\n\
    ENV PATH=/bin\nWORKDIR /app\n";

/// A sandbox host with its client.
pub(crate) struct World {
    pub(crate) host: Arc<SandboxHost>,
    pub(crate) sandy: Sandy,
    /// Name of the form of isolation.
    pub(crate) form: &'static str,
    folder: Arc<TempDir>,
}

/// A sandbox of a host.
pub(crate) struct Sandbox<'a> {
    pub(crate) sandy: &'a Sandy,
    pub(crate) id: String,
    pub(crate) facts: EngineFacts,
}

/// Returns the program of the sandboxes' stages.
pub(crate) fn helper() -> PathBuf {
    env!("CARGO_BIN_EXE_bench-sandbox-stage").into()
}

/// Returns options that look for the engine of the test's variables.
pub(crate) fn probe_options() -> ProbeOptions {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    ProbeOptions {
        docker_host: std::env::var("DOCKER_HOST").ok(),
        path: std::env::var_os("PATH").unwrap_or_default(),
        home: variable("HOME"),
        runtime_folder: variable("XDG_RUNTIME_DIR"),
        docker_config: variable("DOCKER_CONFIG"),
        containers_conf: variable("CONTAINERS_CONF"),
        storage_conf: variable("CONTAINERS_STORAGE_CONF"),
        ..ProbeOptions::new("")
    }
}

/// Returns the configuration of a host whose state is in `folder`.
pub(crate) fn config(folder: &Path) -> HostConfig {
    HostConfig {
        limits: Limits { memory_bytes: 1 << 30, processes: 256, disk_bytes: 256 << 20, open_files: 1_024 },
        key: ApiKey::new(KEY),
        memory_reserve_bytes: 0,
        engine: Some(EngineConfig {
            folder: folder.join("engine"),
            probe: probe_options(),
            limits: ContainerLimits {
                memory_bytes_default: 128 << 20,
                memory_bytes_max: 512 << 20,
                pids_default: 64,
                pids_max: 256,
                ..ContainerLimits::default()
            },
            images: vec!["docker.io/".to_owned()],
            own_images: OWN_IMAGES.to_owned(),
            images_bytes_max: 20 << 30,
            allow_network: false,
        }),
        ..HostConfig::with_slots(2)
    }
}

/// Returns a folder that all users may enter.
pub(crate) fn folder() -> Arc<TempDir> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::Permissions::from_mode(0o711);
    Arc::new(tempfile::Builder::new().permissions(mode).tempdir().unwrap())
}

/// Returns every form that this machine allows; fails if there is none.
pub(crate) async fn all_forms(folder: &Path) -> Vec<Arc<dyn Isolation>> {
    let options = IsolationOptions::new(helper(), folder.join("sandboxes"));
    let outcomes = tokio::task::spawn_blocking(move || forms(&options)).await.unwrap();
    let mut allowed = Vec::new();
    for outcome in outcomes {
        match outcome {
            Ok(isolation) => allowed.push(isolation),
            Err((name, reason)) => println!("form {name} is not possible here: {reason}"),
        }
    }
    assert!(!allowed.is_empty(), "this machine allows no form");
    allowed
}

/// Runs a test on a host of every form that this machine allows.
pub(crate) async fn each_form<F, Fut>(change: impl Fn(&mut HostConfig), test: F)
where
    F: Fn(World) -> Fut,
    Fut: Future<Output = World>,
{
    let folder = folder();
    for isolation in all_forms(folder.path()).await {
        in_form(isolation, &folder, &change, &test).await;
    }
}

/// Does the same on a host of the strongest form, for tests in which the form makes no difference.
pub(crate) async fn first_form<F, Fut>(change: impl Fn(&mut HostConfig), test: F)
where
    F: Fn(World) -> Fut,
    Fut: Future<Output = World>,
{
    let folder = folder();
    let isolation = all_forms(folder.path()).await.remove(0);
    in_form(isolation, &folder, &change, &test).await;
}

async fn in_form<F, Fut>(
    isolation: Arc<dyn Isolation>,
    folder: &Arc<TempDir>,
    change: &impl Fn(&mut HostConfig),
    test: &F,
) where
    F: Fn(World) -> Fut,
    Fut: Future<Output = World>,
{
    println!("form: {}", isolation.form().name);
    let mut config = config(folder.path());
    change(&mut config);
    let world = test(World::start(isolation, config, folder.clone()).await).await;
    world.stop().await;
}

impl World {
    pub(crate) async fn start(
        isolation: Arc<dyn Isolation>,
        config: HostConfig,
        folder: Arc<TempDir>,
    ) -> Self {
        let form = isolation.form().name;
        let host = SandboxHost::new(isolation, config);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let routes = router(Arc::clone(&host));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        let _ = rustls::crypto::ring::default_provider().install_default();
        let config = SandyConfig::from_vars(|name| match name {
            "SANDY_BASE_URL" => Some(address.clone()),
            "SANDY_API_KEY" => Some(KEY.to_owned()),
            _ => None,
        });
        Self { host, sandy: Sandy::new(config.unwrap()), form, folder }
    }

    /// Creates a sandbox with an engine.
    pub(crate) async fn sandbox(&self) -> Sandbox<'_> {
        Sandbox::create(&self.sandy).await
    }

    /// Returns the folder of the host's engine, whose name labels what its sandboxes make.
    pub(crate) fn instance(&self) -> String {
        instances(self.folder.path()).pop().unwrap()
    }

    /// Lists what sandboxes of this host have in the engine, apart from named images.
    pub(crate) fn left(&self) -> Vec<String> {
        left(&self.socket(), &self.instance())
    }

    /// Returns the path of the engine's own socket.
    pub(crate) fn socket(&self) -> PathBuf {
        engine_socket(&self.folder.path().join("engine").join(self.instance()))
    }

    /// Ends the host and checks that nothing is left.
    pub(crate) async fn stop(self) {
        if let Some(instance) = instances(self.folder.path()).pop() {
            let socket = self.socket();
            for image in images(&socket, &instance) {
                docker(&socket, &["image", "rm", "--force", &image]);
            }
        }
        self.host.shut_down().await;
        assert_eq!(instances(self.folder.path()), Vec::<String>::new());
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(&self.folder.path().display().to_string()), "{mounts}");
    }
}

/// Returns the names of the folders of hosts.
pub(crate) fn instances(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder.join("engine")).into_iter().flatten().flatten();
    let hosts = entries.filter(|entry| entry.path().join("alive").exists());
    hosts.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Returns the socket of the engine that the tests' variables name, or that a host has started.
pub(crate) fn engine_socket(run_folder: &Path) -> PathBuf {
    match std::env::var("DOCKER_HOST") {
        Ok(address) => address.trim_start_matches("unix://").into(),
        Err(_) => run_folder.join("podman.sock"),
    }
}

/// Runs docker on an engine's own socket and returns the lines of its output.
pub(crate) fn docker(socket: &Path, arguments: &[&str]) -> Vec<String> {
    let mut command = Command::new("docker");
    command.args(arguments).env("DOCKER_HOST", format!("unix://{}", socket.display()));
    let output = command.env("DOCKER_BUILDKIT", "0").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().map(str::to_owned).collect()
}

/// Lists what a host's sandboxes have in an engine, apart from named images.
pub(crate) fn left(socket: &Path, instance: &str) -> Vec<String> {
    let filter = format!("label=bench-runner.instance={instance}");
    let mut left = Vec::new();
    for list in [&["ps", "--all"][..], &["network", "ls"], &["volume", "ls"]] {
        let found = docker(socket, &[list, &["--quiet", "--filter", &filter]].concat());
        left.extend(found.into_iter().map(|id| format!("{} {id}", list[0])));
    }
    let dangling = ["image", "ls", "--quiet", "--filter", &filter, "--filter", "dangling=true"];
    left.extend(docker(socket, &dangling).into_iter().map(|id| format!("image {id}")));
    left
}

/// Returns the names of the images that a host's sandboxes keep.
pub(crate) fn images(socket: &Path, instance: &str) -> Vec<String> {
    let filter = format!("label=bench-runner.instance={instance}");
    docker(socket, &["image", "ls", "--filter", &filter, "--format", "{{.Repository}}:{{.Tag}}"])
}

impl<'a> Sandbox<'a> {
    pub(crate) async fn create(sandy: &'a Sandy) -> Self {
        let request = NewSandbox { docker_socket: true, preemptable: false, ..NewSandbox::default() };
        let id = sandy.create(&request).await.unwrap_or_else(|error| {
            panic!("these tests need a container engine: {error}");
        });
        let facts = EngineHost::new(sandy, &id).probe().await.unwrap();
        Self { sandy, id, facts }
    }

    pub(crate) fn engine(&self) -> EngineHost<'_> {
        EngineHost::new(self.sandy, &self.id)
    }

    /// Runs a shell command in the sandbox.
    pub(crate) async fn shell(&self, command: &str) -> ExecOutput {
        let request = ExecRequest::new(command).within(OPERATION_MAX);
        self.sandy.exec(&self.id, &request).await.unwrap()
    }

    /// Runs a shell command that must succeed, and returns its output.
    pub(crate) async fn output(&self, command: &str) -> String {
        let output = self.shell(command).await;
        assert_eq!(output.exit_code, 0, "{command}: {output:?}");
        output.stdout.trim_end().to_owned()
    }

    /// Runs a shell command that must fail with an output that contains `expected`.
    pub(crate) async fn refuse(&self, command: &str, expected: &str) {
        let output = self.shell(command).await;
        let text = format!("{}{}", output.stdout, output.stderr);
        assert!(output.exit_code != 0 && text.contains(expected), "{command}: {output:?}");
    }

    /// Repeats an operation until it ends.
    pub(crate) async fn finish<S: Operation>(
        &self,
        environment: &Environment,
        name: &str,
        operation: &S,
    ) -> Result<S::Output, EnvironmentError> {
        let until = tokio::time::Instant::now() + OPERATION_MAX;
        while tokio::time::Instant::now() < until {
            let name = name.parse().unwrap();
            let progress =
                self.engine().advance(environment, &name, operation, Duration::from_secs(5)).await?;
            if let Progress::Done(done) = progress {
                return Ok(done);
            }
        }
        panic!("operation {name} does not end");
    }

    /// Uploads, unpacks and resolves.
    pub(crate) async fn resolve(
        &self,
        environment: &Environment,
        task: &[TaskFile],
        files: &ComposeFiles,
    ) -> Result<Project, EnvironmentError> {
        let bundle = FileContent::Bytes(task_bundle(task).unwrap());
        let uploaded = self.engine().upload(&environment.content_hash, bundle, &NoFiles).await?;
        assert_eq!(uploaded, UploadProgress::Ready);
        self.finish(environment, "unpack", &Unpack { folders: vec!["logs".to_owned()] }).await?;
        let resolved = self.finish(environment, "resolve", &Resolve { files: files.clone() }).await?;
        let project = Project::new(&resolved, files, environment, &self.facts, &|_| Ok(()))?;
        let limits = bench_environments::ContainerLimits { memory_bytes: 256 << 20, pids: 100, cpus: 1.0 };
        Ok(project.with_limits(&limits))
    }

    pub(crate) fn build(&self, project: &Project, time: Duration) -> Build {
        let limits = BuildLimits { time, memory_bytes: 256 << 20, ..BuildLimits::default() };
        Build { project: project.clone(), builder: self.facts.builder, limits }
    }

    /// Runs the whole way to a running environment.
    pub(crate) async fn start(
        &self,
        environment: &Environment,
        task: &[TaskFile],
        files: &ComposeFiles,
        network: Network,
    ) -> Result<Started, EnvironmentError> {
        let project = self.resolve(environment, task, files).await?.with_network(network);
        self.finish(environment, "build", &self.build(&project, OPERATION_MAX)).await?;
        let start = Start { project, log_folders: Vec::new(), time_limit: Duration::from_secs(240) };
        self.finish(environment, "start", &start).await
    }

    pub(crate) async fn end(&self) {
        self.sandy.terminate(&self.id).await.unwrap();
    }
}

pub(crate) fn file(path: &str, bytes: impl Into<Vec<u8>>) -> TaskFile {
    TaskFile { path: path.to_owned(), is_executable: path.ends_with(".sh"), bytes: bytes.into() }
}

/// Returns a task with the smallest image, whose Dockerfile ends with these lines.
pub(crate) fn task(lines: &str) -> Vec<TaskFile> {
    let found = ["/bin/busybox", "/usr/bin/busybox"].iter().find_map(|path| std::fs::read(path).ok());
    let busybox =
        found.unwrap_or_else(|| panic!("these tests need /bin/busybox: install the package busybox-static"));
    let busybox = TaskFile { is_executable: true, ..file("environment/busybox", busybox) };
    vec![file("environment/Dockerfile", format!("{DOCKERFILE}{lines}")), busybox]
}

/// Returns the compose files of a task.
pub(crate) fn dockerfile() -> ComposeFiles {
    ComposeFiles {
        service: "main".to_owned(),
        image: MainImage::Dockerfile("Dockerfile".to_owned()),
        folder: "environment".to_owned(),
        files: Vec::new(),
        variables: BTreeMap::new(),
    }
}

/// Adds a compose file to a task.
pub(crate) fn with_compose(task: &mut Vec<TaskFile>, compose: &str) -> ComposeFiles {
    task.push(file("environment/docker-compose.yaml", compose));
    ComposeFiles { files: vec!["environment/docker-compose.yaml".to_owned()], ..dockerfile() }
}

/// Returns a new environment for a task.
pub(crate) fn environment(task: &[TaskFile]) -> Environment {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    for file in task {
        (&file.path, &file.bytes).hash(&mut hasher);
    }
    let labels = Labels { owner: "test".to_owned(), run: "run-1".to_owned(), sample: "sample-1".to_owned() };
    let name = format!("test-{}", uuid::Uuid::new_v4().simple());
    Environment { name: name.parse().unwrap(), labels, content_hash: format!("{:016x}", hasher.finish()) }
}
