//! Instances: images that come with a repository, and what is done in their containers.

use std::time::Duration;

use bench_domain::Agent;
use bench_environments::{
    ContainerLimits, Environment, EnvironmentError, InvalidName, Labels, TaskFile, task_bundle,
};
use sha2::{Digest, Sha256};

use crate::stop::Stop;
use crate::thinker::Thinker;

/// Image of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstanceImage {
    /// An image of a registry, by its name with tag.
    Pulled(String),
    /// An image that is built from files, with a `Dockerfile` among them.
    Built(Vec<TaskFile>),
}

/// An instance, and what its containers get.
#[derive(Debug, Clone, Copy)]
pub struct Instance<'a> {
    /// Its image.
    pub image: &'a InstanceImage,
    /// Architecture of a pulled image, as Docker names it; `None` for any.
    pub architecture: Option<&'a str>,
    /// True if its verification needs a network.
    pub needs_network: bool,
    /// Memory of a container in bytes.
    pub memory_bytes: u64,
    /// Number of processors of a container.
    pub cpus: f64,
    /// Maximum number of bytes that a container may write to its file system.
    pub disk_bytes_max: u64,
    /// Labels of everything that it has at the container engine.
    pub labels: &'a Labels,
}

impl Instance<'_> {
    /// Returns the environment of this name.
    pub(crate) fn environment(&self, name: &str) -> Result<Environment, Stop> {
        let invalid = |why: String| Stop::Failure(EnvironmentError::Invalid(why));
        let name = name.parse().map_err(|error: InvalidName| invalid(error.to_string()))?;
        let content = match self.image {
            InstanceImage::Pulled(reference) => reference.clone().into_bytes(),
            InstanceImage::Built(files) => {
                task_bundle(files).map_err(|error| Stop::refused(error.to_string()))?
            }
        };
        let content_hash = hex::encode(Sha256::digest(content));
        Ok(Environment { name, labels: self.labels.clone(), content_hash })
    }

    pub(crate) const fn limits(&self, pids: u32) -> ContainerLimits {
        ContainerLimits { cpus: self.cpus, memory_bytes: self.memory_bytes, pids }
    }
}

/// Work of an agent in the container of an instance, which has no network.
#[derive(Debug, Clone, Copy)]
pub struct InstanceTask<'a> {
    /// The instance.
    pub instance: Instance<'a>,
    /// The agent, which runs commands.
    pub agent: Agent,
    /// What the agent needs to ask its model.
    pub thinker: &'a Thinker,
    /// Text about the task for the agent.
    pub instruction: &'a str,
    /// Folder of the repository.
    pub folder: &'a str,
    /// Shell script that prepares the repository before the agent's work. It fails if that isn't possible.
    pub preparation: &'a str,
    /// Shell script that writes the change to [`Self::change_path`] after the agent's work.
    pub collection: &'a str,
    /// Absolute path of the file with the change.
    pub change_path: &'a str,
    /// Exit code by which that script says that the change is too large.
    pub too_large_exit: i32,
    /// Maximum time of that script.
    pub collection_time_limit: Duration,
    /// Maximum size of the change in bytes.
    pub change_bytes_max: u64,
    /// Maximum time of the agent's work.
    pub time_limit: Duration,
}

/// Verification of an answer in a container of an instance, which has a network.
#[derive(Debug, Clone, Copy)]
pub struct VerificationTask<'a> {
    /// The instance.
    pub instance: Instance<'a>,
    /// Absolute path of the folder for the files and the outputs.
    pub workspace: &'a str,
    /// Files to put there.
    pub files: &'a [TaskFile],
    /// Command line for the shell.
    pub command: &'a str,
    /// Maximum time of the command.
    pub time_limit: Duration,
    /// Names of the output files in the workspace, the most important one first.
    pub outputs: &'a [&'a str],
    /// Maximum size of an output file in bytes. Logs that are larger are shortened, others left out. The first file is kept byte
    /// for byte or not at all.
    pub output_bytes_max: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_of_one_image_are_of_one_environment() {
        let labels = Labels { owner: "o".to_owned(), run: "r".to_owned(), sample: "s".to_owned() };
        let hash = |image: &InstanceImage| {
            let instance = Instance {
                image,
                architecture: None,
                needs_network: false,
                memory_bytes: 1,
                cpus: 1.0,
                disk_bytes_max: 1,
                labels: &labels,
            };
            instance.environment("episode-1").unwrap().content_hash
        };
        let file = |text: &str| TaskFile {
            path: "Dockerfile".to_owned(),
            is_executable: false,
            bytes: text.as_bytes().to_vec(),
        };
        let built = |text: &str| InstanceImage::Built(vec![file(text)]);
        assert_eq!(hash(&built("FROM a")), hash(&built("FROM a")));
        assert_ne!(hash(&built("FROM a")), hash(&built("FROM b")));
        assert_ne!(
            hash(&InstanceImage::Pulled("a".to_owned())),
            hash(&InstanceImage::Pulled("b".to_owned()))
        );
    }
}
