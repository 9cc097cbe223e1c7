//! Builds and pulls images.

use std::time::Duration;

use bench_domain::{FileContent, JobFile};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::operation::{Operation, OperationResult, sealed::Program};
use crate::program;
use crate::{BuildLimits, Environment, EnvironmentError, ImageBuilder, Project};

/// Builds or pulls the images of a project that the host doesn't have. One environment of a host builds at a time; the
/// others wait, and find the image if it was the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Build {
    /// The checked project.
    pub project: Project,
    /// Builder of the engine.
    pub builder: ImageBuilder,
    /// Limits.
    pub limits: BuildLimits,
}

/// Result of [`Build`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Built {
    /// Number of images that were built or pulled; 0 if the host had all.
    #[serde(rename = "built")]
    pub images: u32,
}

impl Program for Build {
    fn program(&self) -> &'static str {
        program::BUILD
    }

    fn request(&self, environment: &Environment) -> Result<Value, EnvironmentError> {
        let BuildLimits { time, lock_wait, memory_bytes, image_bytes_max } = self.limits;
        Ok(json!({
            "project": environment.name, "images": self.project.images(), "builder": self.builder,
            "limit_s": time.as_secs(), "lock_wait_s": lock_wait.as_secs(), "memory_bytes": memory_bytes,
            "image_bytes_max": image_bytes_max,
        }))
    }

    fn time_limit(&self) -> Duration {
        self.limits.time.saturating_add(self.limits.lock_wait)
    }

    fn files(&self) -> Result<Vec<JobFile>, EnvironmentError> {
        Ok(vec![project_file(&self.project)])
    }
}

impl Operation for Build {
    type Output = Built;

    fn read(&self, done: Value, result: &OperationResult<'_>) -> Result<Built, EnvironmentError> {
        result.parse(done)
    }
}

pub(super) fn project_file(project: &Project) -> JobFile {
    JobFile { path: "project.json".to_owned(), content: FileContent::Bytes(project.to_json().into_bytes()) }
}
