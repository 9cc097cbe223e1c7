//! Environments as plain data.

use bench_domain::SampleRef;
use serde::{Deserialize, Serialize};

use crate::{EngineFacts, EngineHost, EnvironmentError, EnvironmentName, Leftover};

/// Owner in the labels of samples' environments.
const OWNER: &str = "bench-runner";

/// Labels of everything that an environment has on the engine's host, by which a reaper finds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labels {
    /// Installation that made it. A reaper removes only what its own installation made.
    pub owner: String,
    /// Id of the run.
    pub run: String,
    /// Name of the sample within the run.
    pub sample: String,
}

impl Labels {
    /// Returns the labels of everything that a sample's environments have.
    #[must_use]
    pub fn of_sample(sample: &SampleRef) -> Self {
        Self { owner: OWNER.to_owned(), run: sample.run.to_string(), sample: sample.to_string() }
    }

    /// Returns true if an environment with this left over has the same labels.
    fn are_of(&self, left: &Leftover) -> bool {
        (&self.owner, &self.run, &self.sample) == (&left.owner, &left.run, &left.sample)
    }
}

impl EngineHost<'_> {
    /// Removes the environments with these labels whose names don't begin with `kept`, of whichever sandbox they are.
    ///
    /// # Errors
    /// The last error, after all were tried.
    pub async fn remove_labeled(&self, labels: &Labels, kept: Option<&str>) -> Result<(), EnvironmentError> {
        let is_wanted = |left: &Leftover| {
            labels.are_of(left) && kept.is_none_or(|kept| !left.environment.starts_with(kept))
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
}

/// One task's environment in one sandbox. Plain data, which callers save before the first operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Its name, and that of its compose project.
    pub name: EnvironmentName,
    /// Labels of its containers, networks and volumes.
    pub labels: Labels,
    /// SHA-256 of the task's content, lowercase hex, which names its images.
    pub content_hash: String,
}

/// Absolute paths of an environment's folders in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentFolders {
    /// Folder that contains the others.
    pub root: String,
    /// The task's files.
    pub task: String,
}

impl EnvironmentFolders {
    /// Returns another folder of the environment, for example for mounted logs.
    pub fn other(&self, name: &str) -> String {
        format!("{}/{name}", self.root)
    }
}

impl Environment {
    /// Returns its folders in a sandbox with this engine.
    pub fn folders(&self, facts: &EngineFacts) -> EnvironmentFolders {
        let root = format!("{}/environments/{}", facts.workspace.trim_end_matches('/'), self.name);
        EnvironmentFolders { task: format!("{root}/task"), root }
    }

    /// Returns the name of all images of the task, without their tags.
    pub fn image_repository(&self) -> String {
        format!("{IMAGE_PREFIX}{}", self.content_hash)
    }
}

/// Beginning of the names of all images that are built for tasks.
pub const IMAGE_PREFIX: &str = "bench__";
