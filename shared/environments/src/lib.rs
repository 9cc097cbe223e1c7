//! Container environments of terminal tasks, driven through a sandbox that was requested with `enableDockerSocket`.
//!
//! | type | purpose |
//! | --- | --- |
//! | [`EngineHost`] | a sandbox with a container engine: probe, removal, leftovers, network |
//! | [`Environment`] | one task's containers: name, folders and labels; plain data that callers save |
//! | [`ComposeFiles`], [`Project`] | compose files of the task, and the project that they become |
//! | [`Operation`], [`EngineHost::advance`] | durable operations: [`Unpack`], [`Resolve`], [`Build`], [`Start`], [`Exec`], [`PutFiles`], [`FetchFiles`], [`CheckHealth`], [`TypeKeys`] |
//! | [`EnvironmentError`] | failures, by whose fault they are and what callers can do |
//!
//! Everything goes through the `docker` command and its compose plugin in the sandbox, which find the engine by
//! `DOCKER_HOST` or its default socket. The command runs with an otherwise empty environment.
//!
//! An operation has a name and runs once in its sandbox, however often it is advanced: it is a job of [`bench_sandy::job`], whose
//! lock is in the sandbox's file system, which containers can't reach. Callers save the name before the first
//! [`EngineHost::advance`], and repeat the call until it returns [`Progress::Done`] or an error. Removal and queries can be
//! repeated at any time.
//!
//! Output of containers is untrusted: it is bounded, and it is never interpreted apart from process ids, which are used
//! in the same container only.

mod bundle;
mod compose;
mod environment;
mod error;
mod facts;
mod host;
mod limits;
mod name;
mod operation;
mod operations;
mod outcome;
mod program;

pub use bundle::{BundleError, TaskFile, task_bundle};
pub use compose::{ComposeFiles, MainImage, Network, Project, ProjectError, ProjectImage};
pub use environment::{Environment, EnvironmentFolders, IMAGE_PREFIX, Labels};
pub use error::{EnvironmentError, ErrorKind, Limit};
pub use facts::{EngineFacts, EngineName, ImageBuilder};
pub use host::{EngineHost, Leftover};
pub use limits::{BuildLimits, ContainerLimits};
pub use name::{EnvironmentName, InvalidName, OperationName};
pub use operation::{Operation, Progress};
pub use operations::{
    Build, Built, Captured, CheckHealth, Exec, ExecResult, FetchFiles, FetchedFile, FetchedFiles, Kept,
    PutFiles, Resolve, SHORTENED_LOG_BYTES, SkipReason, SkippedFile, Start, Started, Stroke, TypeKeys,
    Unpack,
};
