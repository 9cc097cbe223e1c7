//! Support for all tests: sandboxes with the scripted `docker` command.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use bench_domain::FileContent;
use bench_environments::{
    Build, BuildLimits, ComposeFiles, ContainerLimits, EngineHost, Environment, EnvironmentError, ErrorKind,
    Exec, Labels, MainImage, Operation, Progress, Project, Resolve, Start, Started, TaskFile, Unpack,
    task_bundle,
};
use bench_sandy::job::{NoFiles, UploadProgress};
use bench_sandy::testing::{Call, Fault, Options, Rule, SandyServer};
use bench_sandy::{NewSandbox, Sandy, Timing};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinHandle;

use crate::api;

/// Maximum time for an operation of a test.
const OPERATION_MAX: Duration = Duration::from_secs(120);
/// What the scripted `docker compose config` prints.
const CONFIG: &str =
    r#"{"name":"x","services":{"main":{"build":{"context":"/c"}}},"networks":{"default":{}}}"#;

/// A server of sandboxes with one pretended engine, and a sandbox.
pub(crate) struct World {
    pub(crate) server: SandyServer,
    pub(crate) sandy: Sandy,
    pub(crate) sandbox: String,
    engine: TempDir,
    api: JoinHandle<()>,
    /// Limits the number of concurrent tests, since each starts many processes.
    _permit: SemaphorePermit<'static>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with_rule(|_| Fault::None).await
    }

    pub(crate) async fn with_rule(rule: impl Fn(&Call) -> Fault + Send + Sync + 'static) -> Self {
        static CONCURRENT_TESTS: OnceLock<Semaphore> = OnceLock::new();
        let permit = CONCURRENT_TESTS.get_or_init(|| Semaphore::new(2)).acquire().await.unwrap();
        let engine = TempDir::new().unwrap();
        let docker = engine.path().join("docker");
        std::fs::write(&docker, include_str!("docker.py")).unwrap();
        std::fs::set_permissions(&docker, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::write(engine.path().join("config.json"), CONFIG).unwrap();
        let socket = engine.path().join("api.sock");
        let api = api::serve(engine.path(), &socket);
        let rule: Rule = std::sync::Arc::new(rule);
        let vars = vec![("DOCKER_HOST".to_owned(), format!("unix://{}", socket.display()))];
        let path = Some(engine.path().to_owned());
        let options = Options { rule: Some(rule), vars, path, ..Options::default() };
        let server = SandyServer::start(options).await.unwrap();
        let timing = Timing { repeat_wait: Duration::from_millis(1), ..Timing::default() };
        let sandy = server.sandy(timing).unwrap();
        let sandbox = sandy.create(&NewSandbox::default()).await.unwrap();
        Self { server, sandy, sandbox, engine, api, _permit: permit }
    }

    pub(crate) fn host(&self) -> EngineHost<'_> {
        EngineHost::new(&self.sandy, &self.sandbox)
    }

    pub(crate) async fn new_sandbox(&self) -> String {
        self.sandy.create(&NewSandbox::default()).await.unwrap()
    }

    /// Returns a file of the pretended engine, such as `hold-build`.
    pub(crate) fn engine(&self, path: &str) -> PathBuf {
        self.engine.path().join(path)
    }

    pub(crate) fn set(&self, path: &str, text: &str) {
        std::fs::write(self.engine(path), text).unwrap();
    }

    pub(crate) fn unset(&self, path: &str) {
        std::fs::remove_file(self.engine(path)).unwrap();
    }

    /// Lets a script answer in the containers in place of their shell.
    pub(crate) fn fake_shell(&self, script: &str) {
        self.set("fake-sh", &format!("#!/bin/sh\n{script}"));
        std::fs::set_permissions(self.engine("fake-sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Ends the engine's API.
    pub(crate) fn end_api(&self) {
        self.api.abort();
        self.unset("api.sock");
    }

    /// Returns the calls that changed something.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.log().iter().map(|line| line["call"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) fn count(&self, call: &str) -> usize {
        self.calls().iter().filter(|found| found.split(' ').next() == Some(call)).count()
    }

    pub(crate) fn log(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.engine("calls.log")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) async fn wait_for_call(&self, call: &str) {
        for _ in 0..6_000 {
            if self.count(call) > 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("there was no call `{call}`");
    }

    /// Repeats a call as redelivered messages do, as long as its error says so, until it ends.
    pub(crate) async fn finish<S: Operation>(
        &self,
        environment: &Environment,
        name: &str,
        operation: &S,
    ) -> Result<S::Output, EnvironmentError> {
        let until = tokio::time::Instant::now() + OPERATION_MAX;
        while tokio::time::Instant::now() < until {
            let wait = Duration::from_millis(500);
            match self.host().advance(environment, &name.parse().unwrap(), operation, wait).await {
                Ok(Progress::Done(done)) => return Ok(done),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Busy => {}
                Err(error) => return Err(error),
            }
        }
        panic!("operation {name} does not end");
    }

    /// Uploads, unpacks and resolves.
    pub(crate) async fn project(&self, environment: &Environment) -> Result<Project, EnvironmentError> {
        self.unpack(environment).await?;
        let resolved = self.finish(environment, "resolve", &Resolve { files: files() }).await?;
        let facts = self.repeat(async || self.host().probe().await).await?;
        let project = Project::new(&resolved, &files(), environment, &facts, &|_| Ok(()))?;
        Ok(project.with_limits(&ContainerLimits::default()))
    }

    async fn unpack(&self, environment: &Environment) -> Result<(), EnvironmentError> {
        let bundle = || FileContent::Bytes(task_bundle(&task()).unwrap());
        let upload = async || self.host().upload(&environment.content_hash, bundle(), &NoFiles).await;
        assert_eq!(self.repeat(upload).await?, UploadProgress::Ready);
        self.finish(environment, "unpack", &Unpack::default()).await
    }

    /// Repeats a call that can be repeated.
    pub(crate) async fn repeat<T>(
        &self,
        call: impl AsyncFn() -> Result<T, EnvironmentError>,
    ) -> Result<T, EnvironmentError> {
        for _ in 0..100 {
            match call().await {
                Err(error) if error.kind() == ErrorKind::Busy => {}
                ended => return ended,
            }
        }
        panic!("a call does not succeed");
    }

    /// Runs the whole way to a running environment.
    pub(crate) async fn start(&self, environment: &Environment) -> Result<Started, EnvironmentError> {
        let project = self.project(environment).await?;
        self.finish(environment, "build", &build(&project)).await?;
        self.finish(environment, "start", &start(&project)).await
    }
}

pub(crate) fn build(project: &Project) -> Build {
    Build {
        project: project.clone(),
        builder: bench_environments::ImageBuilder::Classic,
        limits: BuildLimits { time: Duration::from_secs(120), ..BuildLimits::default() },
    }
}

pub(crate) fn start(project: &Project) -> Start {
    Start { project: project.clone(), log_folders: Vec::new(), time_limit: Duration::from_secs(120) }
}

pub(crate) fn shell(started: &Started, command: &str) -> Exec {
    Exec::shell(started.container("main").unwrap(), command, Duration::from_secs(120))
}

pub(crate) fn task() -> Vec<TaskFile> {
    vec![TaskFile {
        path: "environment/Dockerfile".to_owned(),
        is_executable: false,
        bytes: b"FROM x".to_vec(),
    }]
}

pub(crate) fn files() -> ComposeFiles {
    ComposeFiles {
        service: "main".to_owned(),
        image: MainImage::Dockerfile("Dockerfile".to_owned()),
        folder: "environment".to_owned(),
        files: Vec::new(),
        variables: BTreeMap::new(),
    }
}

pub(crate) fn environment(name: &str) -> Environment {
    let labels = Labels { owner: "test".to_owned(), run: "run-1".to_owned(), sample: "sample-1".to_owned() };
    Environment { name: name.parse().unwrap(), labels, content_hash: "0123456789abcdef".to_owned() }
}
