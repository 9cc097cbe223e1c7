//! Support for all tests: a sandbox with the machine's engine, and tasks of the smallest image.

use std::collections::BTreeMap;
use std::io::{Cursor, Write as _};
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use bench_domain::{Agent, EpisodeReport, EpisodeState};
use bench_environments::{EngineHost, EnvironmentError, Labels};
use bench_episodes::{Advance, Episode, EpisodeTask, TaskFiles};
use bench_sandy::testing::{Options, SandyServer};
use bench_sandy::{NewSandbox, Sandy, Timing};
use bench_terminal_tasks::{AdmissionLimits, CustomAgent, TreeLimits};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// Maximum time of an episode.
const EPISODE_MAX: Duration = Duration::from_secs(600);
/// Dockerfile of the smallest image with a shell.
pub(crate) const DOCKERFILE: &str = "FROM scratch\nCOPY busybox /bin/busybox\n\
    RUN [\"/bin/busybox\", \"--install\", \"-s\", \"/bin\"]\n\
    RUN printf '#!/bin/sh\\nexec sh \"$@\"\\n' > /bin/bash && chmod +x /bin/bash && mkdir -p /tmp /root /etc /app && chmod 1777 /tmp\nENV PATH=/bin\nWORKDIR /app\n";
/// Test script that gives the reward 1 if the file `done` is in the working folder.
pub(crate) const TEST: &str = "#!/bin/sh\nif [ -f done ]; then echo '1 passed'; echo 1 > /logs/verifier/reward.txt\n\
    else echo '1 failed'; echo 0 > /logs/verifier/reward.txt; fi\n";
pub(crate) const SOLUTION: &str = "#!/bin/sh\necho working\ntouch done\n";

/// Every queue finds places.
pub(crate) static FREE: AtomicUsize = AtomicUsize::new(0);

/// A sandbox with an engine.
pub(crate) struct World {
    /// Ends with the test.
    server: SandyServer,
    sandy: Sandy,
    sandbox: String,
}

impl World {
    pub(crate) async fn new() -> Self {
        let vars = ["DOCKER_HOST", "DOCKER_CONFIG"]
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)));
        let options = Options { vars: vars.collect(), ..Options::default() };
        let server = SandyServer::start(options).await.unwrap();
        let sandy = server.sandy(Timing::default()).unwrap();
        let request = NewSandbox { docker_socket: true, ..NewSandbox::default() };
        let sandbox = sandy.create(&request).await.unwrap();
        Self { server, sandy, sandbox }
    }

    pub(crate) fn sandy(&self) -> &Sandy {
        &self.sandy
    }

    pub(crate) fn sandbox(&self) -> &str {
        &self.sandbox
    }

    /// Runs an episode with turns of `linger` each, and checks that nothing is left of it.
    pub(crate) async fn run(
        &self,
        task: &[(&str, &str)],
        agent: Agent,
        linger: Duration,
    ) -> Result<EpisodeReport, EnvironmentError> {
        self.run_files(&files(task), agent, linger).await
    }

    /// Does the same with a task that was read.
    pub(crate) async fn run_files(
        &self,
        files: &TaskFiles,
        agent: Agent,
        linger: Duration,
    ) -> Result<EpisodeReport, EnvironmentError> {
        self.run_with(files, agent, None, linger).await
    }

    /// Does the same with a custom agent. Fails the test unless there is a report.
    pub(crate) async fn custom(
        &self,
        task: &[(&str, &str)],
        agent: &CustomAgent,
        linger: Duration,
    ) -> EpisodeReport {
        self.run_with(&files(task), Agent::Custom, Some(agent), linger).await.unwrap()
    }

    async fn run_with(
        &self,
        files: &TaskFiles,
        agent: Agent,
        custom: Option<&CustomAgent>,
        linger: Duration,
    ) -> Result<EpisodeReport, EnvironmentError> {
        let nonce = uuid::Uuid::new_v4().simple().to_string();
        let labels = labels(&nonce);
        let variables = BTreeMap::from([("GIVEN".to_owned(), "from the order".to_owned())]);
        let about =
            EpisodeTask { files, agent, custom, thinker: None, variables: &variables, labels: &labels };
        let mut state = EpisodeState::new(1, nonce.as_str());
        let until = tokio::time::Instant::now() + EPISODE_MAX;
        let mut turns = 0;
        let report = loop {
            assert!(tokio::time::Instant::now() < until, "the episode does not end: {state:?}");
            turns += 1;
            // As after a kill: nothing but the checkpoint reaches the next turn.
            let saved = serde_json::to_string(&state).unwrap();
            assert!(saved.len() < 64_000, "the checkpoint has {} bytes", saved.len());
            state = serde_json::from_str(&saved).unwrap();
            let episode =
                Episode { sandy: &self.sandy, sandbox: &self.sandbox, task: about, places_wanted: &FREE };
            match episode.advance(&mut state, linger).await {
                Advance::Waiting(wait) => tokio::time::sleep(wait.min(Duration::from_millis(300))).await,
                Advance::Ended(report) => break Ok(*report),
                Advance::Failed(error) => break Err(error),
                other => panic!("the agent asks no model: {other:?}"),
            }
        };
        assert!(linger > Duration::from_secs(5) || turns > 1, "{turns} turns");
        let left = EngineHost::new(&self.sandy, &self.sandbox).leftovers().await.unwrap();
        assert!(left.iter().all(|left| !left.environment.contains(&nonce)), "{left:?} after {report:?}");
        report
    }

    /// Carries an episode on until its agent works, then loses the sandbox. Returns the checkpoint, and another sandbox
    /// of the same engine.
    pub(crate) async fn lose_sandbox(
        &self,
        task: &[(&str, &str)],
        labels: &Labels,
    ) -> (EpisodeState, String) {
        let (files, variables) = (files(task), BTreeMap::new());
        let about = EpisodeTask {
            files: &files,
            agent: Agent::Oracle,
            custom: None,
            thinker: None,
            variables: &variables,
            labels,
        };
        let mut state = EpisodeState::new(1, labels.sample.as_str());
        while state.open.as_ref().is_none_or(|open| !open.name.ends_with("-agent")) {
            let episode =
                Episode { sandy: &self.sandy, sandbox: &self.sandbox, task: about, places_wanted: &FREE };
            let advanced = episode.advance(&mut state, Duration::from_millis(500)).await;
            assert!(matches!(advanced, Advance::Waiting(_)), "{advanced:?}");
        }
        self.server.lose(&self.sandbox);
        let request = NewSandbox { docker_socket: true, ..NewSandbox::default() };
        (state, self.sandy.create(&request).await.unwrap())
    }

    /// Cancels an episode through a sandbox.
    pub(crate) async fn cancel(&self, sandbox: &str, state: &EpisodeState) -> Result<(), EnvironmentError> {
        bench_episodes::cancel(&self.sandy, sandbox, state).await
    }

    /// Removes what other rounds left, through a sandbox.
    pub(crate) async fn remove_other_rounds(&self, sandbox: &str, labels: &Labels, nonce: &str) {
        bench_episodes::remove_other_rounds(&self.sandy, sandbox, labels, nonce).await.unwrap();
    }

    /// Returns the number of environments with these labels that the engine has.
    pub(crate) async fn count(&self, sandbox: &str, labels: &Labels) -> usize {
        let left = EngineHost::new(&self.sandy, sandbox).leftovers().await.unwrap();
        left.iter().filter(|left| left.sample == labels.sample).count()
    }

    /// Runs an episode in few turns, which must end with a report.
    pub(crate) async fn report(&self, task: &[(&str, &str)], agent: Agent) -> EpisodeReport {
        self.run(task, agent, Duration::from_secs(20)).await.unwrap()
    }
}

/// Returns labels of a sample with this name.
pub(crate) fn labels(sample: &str) -> Labels {
    Labels { owner: "test".to_owned(), run: "run".to_owned(), sample: sample.to_owned() }
}

/// Reads a task of these files, with the shell of the smallest image added.
pub(crate) fn files(task: &[(&str, &str)]) -> TaskFiles {
    let found = ["/bin/busybox", "/usr/bin/busybox"].iter().find_map(|path| std::fs::read(path).ok());
    let busybox =
        found.unwrap_or_else(|| panic!("these tests need /bin/busybox: install the package busybox-static"));
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let mut add = |path: &str, bytes: &[u8], mode: u32| {
        zip.start_file(path, SimpleFileOptions::default().unix_permissions(mode)).unwrap();
        zip.write_all(bytes).unwrap();
    };
    for (path, text) in task {
        add(path, text.as_bytes(), 0o644);
        if let Some(folder) = path.strip_suffix("Dockerfile") {
            add(&format!("{folder}busybox"), &busybox, 0o755);
        }
    }
    let archive = zip.finish().unwrap().into_inner();
    TaskFiles::read(&archive, TreeLimits::default(), &AdmissionLimits::default()).unwrap()
}

/// The smallest task, in which these files are added or replaced.
pub(crate) fn task<'a>(changes: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut files: BTreeMap<&str, &str> = BTreeMap::from([
        (
            "task.toml",
            "schema_version = \"1.4\"\n[agent]\ntimeout_sec = 600\n[verifier]\ntimeout_sec = 600\n[environment]\nnetwork_mode = \"no-network\"\n",
        ),
        ("instruction.md", "Create the file `done`."),
        ("environment/Dockerfile", DOCKERFILE),
        ("tests/test.sh", TEST),
        ("solution/solve.sh", SOLUTION),
    ]);
    files.extend(changes.iter().copied());
    files.into_iter().collect()
}
