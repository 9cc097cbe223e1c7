//! Compose files of a task, and the project that they become.
//!
//! `docker compose config` resolves the files ([`ComposeFiles`]) to JSON, in which nothing refers to anything else.
//! [`Project::new`] names the images that are built, lets the caller check the result, and adds limits, labels and the
//! network. Exactly this project is started: what was checked can't change afterwards.

mod files;
mod limits;
mod mounts;
mod project;

pub use files::{ComposeFiles, MainImage};
pub use project::{Network, Project, ProjectError, ProjectImage};
