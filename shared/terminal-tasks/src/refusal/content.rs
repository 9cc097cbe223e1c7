//! Problems of a task's content: missing files, and demands that can't be met.

use super::Quoted;

/// Reason for which the content of a task is refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ContentProblem {
    /// No folder of the archive is a task.
    #[error(
        "there is no task: neither `task.toml` nor `task.yaml` is at the root or in a top folder; pack the folder that has it"
    )]
    NoTask,
    /// Several folders of the archive are tasks.
    #[error("there are several tasks, such as {} and {}; upload each alone", Quoted(first), Quoted(second))]
    SeveralTasks {
        /// Folder of a task.
        first: String,
        /// Folder of another task.
        second: String,
    },
    /// A file lies outside the task's folder.
    #[error(
        "the file is outside the task's folder {}; move it into the folder or leave it out",
        Quoted(folder)
    )]
    OutsideTask {
        /// Folder of the task.
        folder: String,
    },
    /// A required file is missing.
    #[error("the file is missing; {advice}")]
    MissingFile {
        /// Advice on what to do.
        advice: &'static str,
    },
    /// A required file is excluded by `.harborignore`.
    #[error("the file is excluded by `.harborignore`; remove the pattern")]
    IgnoredFile,
    /// A required text is empty.
    #[error("the file is empty; write {expected}")]
    EmptyFile {
        /// Expected content.
        expected: &'static str,
    },
    /// The task has neither an image nor a Dockerfile nor a compose file.
    #[error(
        "the task defines no environment; add `environment/Dockerfile` or `environment/docker-compose.yaml`, or set `environment.docker_image`"
    )]
    NoEnvironment,
    /// A number is above the limit of this system.
    #[error(
        "{} is {value} {unit}, more than the {max} {unit} that this system allows; lower it",
        Quoted(key)
    )]
    AboveLimit {
        /// Path of the field.
        key: String,
        /// Declared value.
        value: String,
        /// Limit.
        max: String,
        /// Unit of both.
        unit: &'static str,
    },
    /// The task needs something that this system doesn't have.
    #[error("{} needs {feature}, which this system doesn't have; {advice}", Quoted(key))]
    Unsupported {
        /// Path of the field.
        key: String,
        /// Missing feature.
        feature: &'static str,
        /// Advice on what to do.
        advice: &'static str,
    },
    /// The name of an image isn't a valid reference.
    #[error("{} is not the name of an image; write it as `NAME:TAG` or `NAME@sha256:DIGEST`", Quoted(image))]
    InvalidImage {
        /// Name in the task.
        image: String,
    },
}

impl ContentProblem {
    /// Returns the stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoTask => "no_task",
            Self::SeveralTasks { .. } => "several_tasks",
            Self::OutsideTask { .. } => "outside_task",
            Self::MissingFile { .. } => "missing_file",
            Self::IgnoredFile => "ignored_file",
            Self::EmptyFile { .. } => "empty_file",
            Self::NoEnvironment => "no_environment",
            Self::AboveLimit { .. } => "above_limit",
            Self::Unsupported { .. } => "unsupported_demand",
            Self::InvalidImage { .. } => "invalid_image",
        }
    }
}
