//! Starts the containers.

use std::collections::BTreeMap;
use std::time::Duration;

use bench_domain::JobFile;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::build::project_file;
use crate::operation::{Operation, OperationResult, sealed::Program};
use crate::program;
use crate::{Environment, EnvironmentError, Project};

/// Starts the containers of a project whose images exist, and waits until they run and compose's own health checks
/// succeed.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// The checked project.
    pub project: Project,
    /// Folders to create in the main container, with mode 777: for logs.
    pub log_folders: Vec<String>,
    /// Time limit, at least a second.
    pub time_limit: Duration,
}

/// Result of [`Start`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// Ids of the containers by service.
    pub containers: BTreeMap<String, String>,
}

impl Started {
    /// Returns the id of a service's container.
    pub fn container(&self, service: &str) -> Option<&str> {
        self.containers.get(service).map(String::as_str)
    }
}

impl Program for Start {
    fn program(&self) -> &'static str {
        program::START
    }

    fn request(&self, environment: &Environment) -> Result<Value, EnvironmentError> {
        Ok(json!({
            "project": environment.name, "service": self.project.service(), "folders": self.log_folders,
            "limit_s": self.time_limit.as_secs().max(1),
        }))
    }

    fn time_limit(&self) -> Duration {
        self.time_limit
    }

    fn files(&self) -> Result<Vec<JobFile>, EnvironmentError> {
        Ok(vec![project_file(&self.project)])
    }
}

impl Operation for Start {
    type Output = Started;

    fn read(&self, done: Value, result: &OperationResult<'_>) -> Result<Started, EnvironmentError> {
        result.parse(done)
    }
}
