//! A sandbox with a container engine, and what can be asked of it at any time.

mod query;

use std::time::Duration;

use bench_domain::{FileContent, JobFile, JobSpec};
use bench_sandy::Sandy;
use bench_sandy::job::{self, FileSource, JobName, UploadProgress};
use serde::{Deserialize, Serialize};
use serde_json::json;

use query::query;

use crate::program;
use crate::{EngineFacts, Environment, EnvironmentError, EnvironmentName, Labels, OperationName};

/// Time limits of queries.
const QUERY_TIMEOUT: Duration = Duration::from_secs(60);
const REMOVE_TIMEOUT: Duration = Duration::from_secs(180);
/// Memory that the job of an upload needs, in bytes.
pub(crate) const JOB_MEMORY_BYTES: u64 = 64 << 20;

/// A sandbox with a container engine.
#[derive(Debug, Clone, Copy)]
pub struct EngineHost<'a> {
    pub(crate) sandy: &'a Sandy,
    pub(crate) sandbox: &'a str,
}

/// What one environment still has on the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftover {
    /// Name of the environment, as in its label.
    pub environment: String,
    /// Installation that made it.
    pub owner: String,
    /// Id of the run.
    pub run: String,
    /// Name of the sample.
    pub sample: String,
    /// Number of its containers.
    pub containers: u32,
    /// Number of its networks.
    pub networks: u32,
    /// Number of its volumes.
    pub volumes: u32,
}

#[derive(Deserialize)]
struct Leftovers {
    environments: Vec<Leftover>,
}

#[derive(Deserialize)]
struct Removed {
    removed: u64,
}

impl<'a> EngineHost<'a> {
    /// Creates the value for a sandbox. Makes no call.
    pub fn new(sandy: &'a Sandy, sandbox: &'a str) -> Self {
        Self { sandy, sandbox }
    }

    /// Finds out what engine the sandbox has.
    ///
    /// # Errors
    /// [`EnvironmentError::NoEngine`] if it has none.
    pub async fn probe(&self) -> Result<EngineFacts, EnvironmentError> {
        query(*self, "probe", program::PROBE, &json!({}), QUERY_TIMEOUT).await
    }

    /// Uploads the files of a task ([`crate::task_bundle`]), once per content and sandbox, for [`crate::Unpack`]. Repeat
    /// the call until it returns [`UploadProgress::Ready`].
    pub async fn upload(
        &self,
        content_hash: &str,
        bundle: FileContent,
        source: &dyn FileSource,
    ) -> Result<UploadProgress, EnvironmentError> {
        let spec = JobSpec {
            files: vec![JobFile { path: "task.bundle".to_owned(), content: bundle }],
            script: "true".to_owned(),
            time_limit: QUERY_TIMEOUT,
            memory_bytes: JOB_MEMORY_BYTES,
            probe: None,
            needs_landlock: false,
            results: Vec::new(),
        };
        let name = upload_name(content_hash)?;
        Ok(job::upload(self.sandy, self.sandbox, &name, &spec, source).await?)
    }

    /// Stops an operation, whether it has started or not. It won't start later. What it started in containers may continue
    /// until the environment is removed.
    pub async fn stop(
        &self,
        environment: &EnvironmentName,
        operation: &OperationName,
    ) -> Result<(), EnvironmentError> {
        Ok(job::stop(self.sandy, self.sandbox, &environment.job(operation)?).await?)
    }

    /// Removes the containers, networks, volumes and files of an environment. Returns the number of containers, networks
    /// and volumes. Later operations of the environment fail with [`EnvironmentError::Removed`]. Stop open operations first.
    pub async fn remove(&self, environment: &EnvironmentName) -> Result<u64, EnvironmentError> {
        let request = json!({ "project": environment });
        let removed: Removed = query(*self, "remove", program::REMOVE, &request, REMOVE_TIMEOUT).await?;
        Ok(removed.removed)
    }

    /// Removes the environments with these labels whose names don't begin with `kept`, of whichever sandbox they are.
    ///
    /// # Errors
    /// The last error, after all were tried.
    pub async fn remove_labeled(&self, labels: &Labels, kept: Option<&str>) -> Result<(), EnvironmentError> {
        let is_wanted = |left: &Leftover| {
            let is_of =
                (&left.owner, &left.run, &left.sample) == (&labels.owner, &labels.run, &labels.sample);
            is_of && kept.is_none_or(|kept| !left.environment.starts_with(kept))
        };
        let found = self.leftovers().await?.into_iter().filter(is_wanted);
        self.remove_all(found.map(|left| left.environment)).await
    }

    /// Removes environments.
    ///
    /// # Errors
    /// The last error, after all were tried.
    pub async fn remove_all(&self, names: impl Iterator<Item = String>) -> Result<(), EnvironmentError> {
        let mut removed = Ok(());
        for name in names.filter_map(|name| name.parse::<EnvironmentName>().ok()) {
            if let Err(error) = self.remove(&name).await {
                removed = Err(error);
            }
        }
        removed
    }

    /// Lists what environments of all sandboxes have on this host's engine.
    pub async fn leftovers(&self) -> Result<Vec<Leftover>, EnvironmentError> {
        let found: Leftovers =
            query(*self, "leftovers", program::LEFTOVERS, &json!({}), QUERY_TIMEOUT).await?;
        Ok(found.environments)
    }

    /// Connects a container to the default network of its environment, or disconnects it. The environment must have been
    /// started with [`crate::Network::Public`].
    pub async fn switch_network(
        &self,
        environment: &Environment,
        service: &str,
        container: &str,
        is_connected: bool,
    ) -> Result<(), EnvironmentError> {
        let request = json!({
            "project": environment.name, "container": container, "network": format!("{}_default", environment.name),
            "aliases": [service], "connected": is_connected,
        });
        let _: serde_json::Value =
            query(*self, "network", program::SWITCH_NETWORK, &request, QUERY_TIMEOUT).await?;
        Ok(())
    }
}

/// Returns the name of the job whose folder has a task's files.
pub(crate) fn upload_name(content_hash: &str) -> Result<JobName, EnvironmentError> {
    let is_hash = (8..=64).contains(&content_hash.len())
        && content_hash.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
    match is_hash {
        true => Ok(format!("task-{content_hash}").parse()?),
        false => Err(EnvironmentError::Invalid("the content hash is not lowercase hexadecimal".to_owned())),
    }
}
