//! Resolves the compose files.

use std::time::Duration;

use bench_domain::ResultFile;
use serde_json::{Value, json};

use super::SHORT;
use crate::operation::{Operation, OperationResult, sealed::Program};
use crate::program;
use crate::{ComposeFiles, Environment, EnvironmentError};

/// Maximum size of a resolved project, in bytes.
const PROJECT_BYTES_MAX: u64 = 4 << 20;
const CONFIG: &str = "config.json";

/// Resolves the compose files by `docker compose config`. Returns the JSON for [`crate::Project::new`]. Compose reads files
/// that the task's compose files name, so callers check those before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolve {
    /// The compose files.
    pub files: ComposeFiles,
}

impl Program for Resolve {
    fn program(&self) -> &'static str {
        program::RESOLVE
    }

    fn request(&self, environment: &Environment) -> Result<Value, EnvironmentError> {
        self.files.check().map_err(|why| EnvironmentError::Invalid(why.to_owned()))?;
        Ok(json!({
            "project": environment.name, "base": self.files.base().to_string(), "folder": self.files.folder,
            "files": self.files.files, "variables": self.files.variables, "bytes_max": PROJECT_BYTES_MAX,
        }))
    }

    fn time_limit(&self) -> Duration {
        SHORT
    }

    fn results(&self) -> Vec<ResultFile> {
        vec![ResultFile { path: CONFIG.to_owned(), bytes_max: PROJECT_BYTES_MAX }]
    }
}

impl Operation for Resolve {
    type Output = String;

    fn read(&self, _done: Value, result: &OperationResult<'_>) -> Result<String, EnvironmentError> {
        result.text(CONFIG).map(str::to_owned)
    }
}
