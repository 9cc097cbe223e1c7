//! Support for all tests: a sandbox with the machine's engine, and environments of small images.

use std::collections::BTreeMap;
use std::time::Duration;

use bench_domain::FileContent;
use bench_environments::{
    Build, BuildLimits, ComposeFiles, ContainerLimits, EngineFacts, EngineHost, Environment,
    EnvironmentError, Exec, ExecResult, Labels, MainImage, Network, Operation, Progress, Project, Resolve,
    Start, Started, TaskFile, Unpack, task_bundle,
};
use bench_sandy::job::{NoFiles, UploadProgress};
use bench_sandy::testing::{Options, SandyServer};
use bench_sandy::{ExecRequest, NewSandbox, Sandy, Timing};

/// Maximum time for an operation of a test.
const OPERATION_MAX: Duration = Duration::from_secs(240);
/// Dockerfile of the smallest image with a shell.
pub(crate) const DOCKERFILE: &str = "FROM scratch\nCOPY busybox /bin/busybox\n\
    RUN [\"/bin/busybox\", \"--install\", \"-s\", \"/bin\"]\nRUN mkdir -p /tmp /root /etc /app && chmod 1777 /tmp\n\
    ENV PATH=/bin\nWORKDIR /app\n";

/// A sandbox with an engine.
pub(crate) struct World {
    pub(crate) server: SandyServer,
    pub(crate) sandy: Sandy,
    pub(crate) sandbox: String,
    pub(crate) facts: EngineFacts,
}

/// An environment of a test. Removed by [`World::remove`].
pub(crate) struct Running {
    pub(crate) environment: Environment,
    pub(crate) started: Started,
}

impl Running {
    pub(crate) fn main(&self) -> &str {
        self.started.container("main").unwrap()
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with_engine(std::env::var("DOCKER_HOST").ok()).await
    }

    /// Creates a world whose sandbox reaches the engine at this address; `None` for the default one.
    pub(crate) async fn with_engine(host: Option<String>) -> Self {
        let vars = [("DOCKER_HOST", host), ("DOCKER_CONFIG", std::env::var("DOCKER_CONFIG").ok())]
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let server =
            SandyServer::start(Options { vars: vars.collect(), ..Options::default() }).await.unwrap();
        let sandy = server.sandy(Timing::default()).unwrap();
        let sandbox =
            sandy.create(&NewSandbox { docker_socket: true, ..NewSandbox::default() }).await.unwrap();
        let facts = EngineHost::new(&sandy, &sandbox).probe().await.unwrap_or_else(|error| {
            panic!("these tests need a container engine: start dockerd or podman's service and set DOCKER_HOST ({error:?})")
        });
        Self { server, sandy, sandbox, facts }
    }

    pub(crate) fn host(&self) -> EngineHost<'_> {
        EngineHost::new(&self.sandy, &self.sandbox)
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
            let progress = self
                .host()
                .advance(environment, &name.parse().unwrap(), operation, Duration::from_secs(5))
                .await?;
            if let Progress::Done(done) = progress {
                return Ok(done);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
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
        let uploaded = self.host().upload(&environment.content_hash, bundle, &NoFiles).await?;
        assert_eq!(uploaded, UploadProgress::Ready);
        self.finish(environment, "unpack", &Unpack { folders: vec!["logs".to_owned()] }).await?;
        let resolved = self.finish(environment, "resolve", &Resolve { files: files.clone() }).await?;
        let project = Project::new(&resolved, files, environment, &self.facts, &|_| Ok(()))?;
        Ok(project.with_limits(&ContainerLimits { memory_bytes: 256 << 20, pids: 200, cpus: 1.0 }))
    }

    pub(crate) fn build(&self, project: &Project) -> Build {
        Build { project: project.clone(), builder: self.facts.builder, limits: BuildLimits::default() }
    }

    /// Runs the whole way to a running environment. If that fails, removes it.
    pub(crate) async fn start(
        &self,
        task: &[TaskFile],
        files: &ComposeFiles,
        network: Network,
    ) -> Result<Running, EnvironmentError> {
        let environment = environment(task);
        match self.started(&environment, task, files, network).await {
            Ok(started) => Ok(Running { environment, started }),
            Err(error) => {
                self.remove(&environment).await;
                Err(error)
            }
        }
    }

    pub(crate) async fn started(
        &self,
        environment: &Environment,
        task: &[TaskFile],
        files: &ComposeFiles,
        network: Network,
    ) -> Result<Started, EnvironmentError> {
        let project = self.resolve(environment, task, files).await?.with_network(network);
        self.finish(environment, "build", &self.build(&project)).await?;
        let start = Start { project, log_folders: logs(), time_limit: Duration::from_secs(120) };
        self.finish(environment, "start", &start).await
    }

    /// Starts the smallest environment, without a network.
    pub(crate) async fn start_small(&self) -> Running {
        self.start(&small_task(), &dockerfile(), Network::None).await.unwrap()
    }

    pub(crate) async fn exec(&self, running: &Running, name: &str, exec: &Exec) -> ExecResult {
        self.finish(&running.environment, name, exec).await.unwrap()
    }

    /// Runs a shell command and returns its standard output.
    pub(crate) async fn shell(&self, running: &Running, name: &str, command: &str) -> String {
        let exec = Exec::shell(running.main(), command, Duration::from_secs(120));
        let ended = self.exec(running, name, &exec).await;
        assert_eq!(ended.exit_code, Some(0), "{command}: {ended:?}");
        ended.stdout.text()
    }

    /// Runs a shell command in the sandbox, outside the containers, and returns its standard output.
    pub(crate) async fn in_sandbox(&self, command: &str) -> String {
        let exec = ExecRequest::new(command).within(Duration::from_secs(120));
        let ended = self.sandy.exec(&self.sandbox, &exec).await.unwrap();
        assert_eq!(ended.exit_code, 0, "{command}: {ended:?}");
        ended.stdout
    }

    /// Removes an environment, and checks that nothing is left of it.
    pub(crate) async fn remove(&self, environment: &Environment) {
        self.host().remove(&environment.name).await.unwrap();
        let left = self.host().leftovers().await.unwrap();
        assert!(left.iter().all(|left| left.environment != environment.name.as_str()), "{left:?}");
    }
}

pub(crate) fn logs() -> Vec<String> {
    ["agent", "verifier", "artifacts"].iter().map(|name| format!("/logs/{name}")).collect()
}

pub(crate) fn file(path: &str, bytes: impl Into<Vec<u8>>) -> TaskFile {
    TaskFile { path: path.to_owned(), is_executable: path.ends_with(".sh"), bytes: bytes.into() }
}

/// A task with the smallest image.
pub(crate) fn small_task() -> Vec<TaskFile> {
    let found = ["/bin/busybox", "/usr/bin/busybox"].iter().find_map(|path| std::fs::read(path).ok());
    let busybox =
        found.unwrap_or_else(|| panic!("these tests need /bin/busybox: install the package busybox-static"));
    let busybox = TaskFile { is_executable: true, ..file("environment/busybox", busybox) };
    vec![file("environment/Dockerfile", DOCKERFILE), busybox]
}

/// The same task with a compose file.
pub(crate) fn compose_task(compose: &str) -> (Vec<TaskFile>, ComposeFiles) {
    let mut task = small_task();
    task.push(file("environment/docker-compose.yaml", compose));
    (task, ComposeFiles { files: vec!["environment/docker-compose.yaml".to_owned()], ..dockerfile() })
}

pub(crate) fn dockerfile() -> ComposeFiles {
    ComposeFiles {
        service: "main".to_owned(),
        image: MainImage::Dockerfile("Dockerfile".to_owned()),
        folder: "environment".to_owned(),
        files: Vec::new(),
        variables: BTreeMap::new(),
    }
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
