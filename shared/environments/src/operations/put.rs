//! Puts files into containers.

use std::time::Duration;

use bench_domain::{FileContent, JobFile};
use serde_json::{Value, json};

use super::SHORT;
use super::exec::is_container;
use crate::bundle::{TaskFile, task_bundle};
use crate::operation::{Operation, OperationResult, sealed::Program};
use crate::program;
use crate::{Environment, EnvironmentError};

/// Puts files into a folder of a container, as root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutFiles {
    /// Id of the container.
    pub container: String,
    /// Absolute path of the folder. Created if missing. It may be the root folder if nothing is replaced.
    pub folder: String,
    /// If true, whatever is at the folder's path is removed first.
    pub replace: bool,
    /// The files, at most 60 MiB.
    pub files: Vec<TaskFile>,
}

impl Program for PutFiles {
    fn program(&self) -> &'static str {
        program::PUT
    }

    fn request(&self, environment: &Environment) -> Result<Value, EnvironmentError> {
        // Images that state no working folder have the root as theirs.
        let is_root = self.folder == "/" && !self.replace;
        if !is_container(&self.container) || !(is_root || is_container_path(&self.folder)) {
            return Err(EnvironmentError::Invalid(
                "the container or the folder is not a valid one".to_owned(),
            ));
        }
        Ok(json!({
            "project": environment.name, "container": self.container, "folder": self.folder, "replace": self.replace,
            "limit_s": 2 * SHORT.as_secs(),
        }))
    }

    fn time_limit(&self) -> Duration {
        3 * SHORT
    }

    fn files(&self) -> Result<Vec<JobFile>, EnvironmentError> {
        let bundle =
            task_bundle(&self.files).map_err(|error| EnvironmentError::Invalid(error.to_string()))?;
        Ok(vec![JobFile { path: "files.bundle".to_owned(), content: FileContent::Bytes(bundle) }])
    }
}

impl Operation for PutFiles {
    type Output = ();

    fn read(&self, _done: Value, _result: &OperationResult<'_>) -> Result<(), EnvironmentError> {
        Ok(())
    }
}

/// Returns true for an absolute path below the root, without `..`.
pub(super) fn is_container_path(path: &str) -> bool {
    path.len() > 1
        && path.starts_with('/')
        && !path.chars().any(char::is_control)
        && path.split('/').all(|part| !matches!(part, "." | ".."))
}

#[cfg(test)]
mod tests {
    use crate::Labels;

    use super::*;

    #[test]
    fn the_root_is_a_folder_that_is_never_replaced() {
        let environment = Environment {
            name: "x".parse().unwrap(),
            labels: Labels { owner: "o".to_owned(), run: "r".to_owned(), sample: "s".to_owned() },
            content_hash: "0".repeat(64),
        };
        for (folder, replace, is_allowed) in [
            ("/", false, true),
            ("/", true, false),
            ("/app", true, true),
            ("/app/..", false, false),
            ("app", false, false),
            ("", false, false),
        ] {
            let put =
                PutFiles { container: "0".repeat(64), folder: folder.to_owned(), replace, files: Vec::new() };
            assert_eq!(put.request(&environment).is_ok(), is_allowed, "{folder} {replace}");
        }
    }
}
