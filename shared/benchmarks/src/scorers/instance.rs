//! Protocols by which an agent changes a repository in the container of an item's image, and the change is verified in another
//! container of the same image.

use std::collections::BTreeMap;
use std::time::Duration;

use bench_domain::{Verdict, VerificationReport};
use bench_items::Item;
use serde::{Deserialize, Serialize};

use crate::item_problem::ItemProblem;

/// Names of an instance's official files.
pub(crate) const RUN_SCRIPT: &str = "run_script.sh";
pub(crate) const PARSER: &str = "parser.py";
pub(crate) const BASE_DOCKERFILE: &str = "base/Dockerfile";
pub(crate) const INSTANCE_DOCKERFILE: &str = "instance/Dockerfile";

/// Image of an item's containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstanceImage {
    /// It is pulled from a registry.
    Pull {
        /// Name with tag, such as `user/images:tag`.
        reference: String,
        /// Platform that it is made for, such as `linux/amd64`.
        platform: &'static str,
    },
    /// It is built from these files; one of them is the `Dockerfile`.
    Build {
        /// Files of the build's folder.
        files: Vec<InstanceFile>,
    },
}

/// Text file of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceFile {
    /// Path in its folder.
    pub path: String,
    /// Content.
    pub text: String,
}

impl InstanceFile {
    /// Creates a file.
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { path: path.into(), text: text.into() }
    }
}

/// Official programs of an instance, which are stored before the first model call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceScripts {
    /// Shell script that runs tests.
    pub run_script: String,
    /// Python program that reads the tests' output.
    pub parser: String,
    /// Dockerfile of the base image, of which only the environment lines count.
    pub base_dockerfile: String,
    /// Dockerfile of the instance's image, of which only the environment lines count.
    pub instance_dockerfile: String,
}

impl InstanceScripts {
    /// Takes the scripts from an item's official files (`bench_datasets::load_official_files`), by their names. Line ends become
    /// those of Unix, as in the official program.
    ///
    /// # Errors
    /// Returns the name of the missing file.
    pub fn from_files(files: &BTreeMap<String, String>) -> Result<Self, ItemProblem> {
        let file = |name: &str| {
            let missing = || ItemProblem::Content(format!("the dataset has no `{name}` for this instance"));
            files.get(name).map(|text| unix_lines(text)).ok_or_else(missing)
        };
        Ok(Self {
            run_script: file(RUN_SCRIPT)?,
            parser: file(PARSER)?,
            base_dockerfile: file(BASE_DOCKERFILE)?,
            instance_dockerfile: file(INSTANCE_DOCKERFILE)?,
        })
    }
}

/// Reads a text as Python's text mode does.
fn unix_lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// Collection of an agent's change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceCollection {
    /// Script for `bash` in the agent's container. It ends with exit code 0 if the file is complete, and with
    /// [`CHANGE_TOO_LARGE_EXIT`] if the change exceeds its limit. Any other code means that the change can't be read.
    pub script: String,
    /// Path of the file with the change in the container. Its content is untrusted.
    pub file: &'static str,
    /// Maximum size of that file in bytes.
    pub bytes_max: usize,
    /// Maximum time of the script.
    pub time_limit: Duration,
}

/// Exit code of [`InstanceCollection::script`] for a change that is too large.
pub const CHANGE_TOO_LARGE_EXIT: i32 = 77;

/// Verification of a change in a new container of the item's image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceVerification {
    /// Folder of [`Self::files`] in the container, read and written by the command.
    pub folder: &'static str,
    /// Files that are put there before the command.
    pub files: Vec<InstanceFile>,
    /// Script for `bash` in the container. Its exit code doesn't count.
    pub command: String,
    /// Maximum time of the command.
    pub time_limit: Duration,
    /// Names of files in [`Self::folder`] to read after the command, the one with the results first. A missing file isn't an
    /// error.
    pub outputs: &'static [&'static str],
    /// Maximum size of an output file in bytes. Of larger files other than the first, beginning and end are kept. The first one is
    /// kept byte for byte or not at all.
    pub output_bytes_max: usize,
}

/// Protocol by which an agent changes a repository in the container of an item's image, and the change is verified in another
/// container of the same image. All functions are pure; callers drive the containers.
pub trait InstanceProtocol: Send + Sync {
    /// Returns the image of the item's containers.
    ///
    /// # Errors
    /// If the item doesn't match the format of its dataset.
    fn image(&self, item: &Item) -> Result<InstanceImage, ItemProblem>;

    /// Returns the text about the item for the agent.
    ///
    /// # Errors
    /// If the item doesn't match the format of its dataset.
    fn instruction(&self, item: &Item) -> Result<String, ItemProblem>;

    /// Returns the folder of the repository in the containers, in which the agent's commands start.
    fn folder(&self) -> &'static str;

    /// Returns the maximum time of the agent's work, in which its model's replies and its commands count.
    fn time_limit(&self) -> Duration;

    /// Returns the script for `bash` that runs in the agent's container before the agent. Afterwards the repository is at the
    /// item's base commit, and no later commit can be reached. It fails, with the reason as its last line, if that isn't so.
    ///
    /// # Errors
    /// If the item doesn't match the format of its dataset.
    fn preparation(&self, item: &Item) -> Result<String, ItemProblem>;

    /// Returns the script that collects the agent's change in its container.
    ///
    /// # Errors
    /// If the item doesn't match the format of its dataset.
    fn collection(&self, item: &Item) -> Result<InstanceCollection, ItemProblem>;

    /// Returns the verification of a change, which may be empty.
    ///
    /// # Errors
    /// If the item doesn't match the format of its dataset.
    fn verification(
        &self,
        item: &Item,
        patch: &str,
        scripts: &InstanceScripts,
    ) -> Result<InstanceVerification, ItemProblem>;

    /// Grades a change by the report of its verification, which came to an end: by itself or by its time limit.
    fn grade(&self, item: &Item, patch: &str, report: &VerificationReport) -> Verdict;
}
