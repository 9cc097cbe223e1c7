//! Unpacks the task's files.

use std::time::Duration;

use serde_json::{Value, json};

use super::SHORT;
use crate::host::upload_name;
use crate::operation::{Operation, OperationResult, sealed::Program};
use crate::program;
use crate::{Environment, EnvironmentError};

/// Unpacks the uploaded files of the task into a folder of the environment's own, since containers may change files that
/// are mounted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unpack {
    /// Names of further folders of the environment, which all users may write: for logs that are mounted.
    pub folders: Vec<String>,
}

impl Program for Unpack {
    fn program(&self) -> &'static str {
        program::UNPACK
    }

    fn request(&self, environment: &Environment) -> Result<Value, EnvironmentError> {
        let is_plain = |name: &String| {
            let is_plain = |c: char| c.is_ascii_lowercase() || c == '-';
            !name.is_empty() && name.chars().all(is_plain) && !matches!(name.as_str(), "task" | "removed")
        };
        if !self.folders.iter().all(is_plain) {
            return Err(EnvironmentError::Invalid("a folder has no valid name".to_owned()));
        }
        let upload = upload_name(&environment.content_hash)?;
        Ok(json!({ "project": environment.name, "upload": upload.as_str(), "folders": self.folders }))
    }

    fn time_limit(&self) -> Duration {
        SHORT
    }
}

impl Operation for Unpack {
    type Output = ();

    fn read(&self, _done: Value, _result: &OperationResult<'_>) -> Result<(), EnvironmentError> {
        Ok(())
    }
}
