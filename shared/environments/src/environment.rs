//! Environments as plain data.

use bench_domain::SampleRef;
use serde::{Deserialize, Serialize};

use crate::{EngineFacts, EnvironmentName};

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
