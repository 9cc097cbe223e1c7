//! The project that is checked, built and started.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::files::is_service;
use super::{ComposeFiles, limits, mounts};
use crate::{ContainerLimits, EngineFacts, Environment};

/// Number of hexadecimal digits of a build's checksum in an image's tag.
const BUILD_DIGITS: usize = 12;

/// Network access of an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// Internet access, as far as the host allows it.
    Public,
    /// None. Services of one environment reach each other.
    None,
}

/// An image that the project needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectImage {
    /// Service that runs it.
    pub service: String,
    /// Name with tag.
    pub name: String,
    /// True if it is built, false if it is pulled.
    pub is_built: bool,
}

/// Errors of projects.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProjectError {
    /// The caller's check refused it.
    #[error("{0}")]
    Refused(String),
    /// The output of `docker compose config` isn't a project.
    #[error("the compose project is not usable: {0}")]
    Unusable(String),
}

/// A resolved and checked project.
#[derive(Debug, Clone, PartialEq)]
pub struct Project {
    root: Value,
    service: String,
    images: Vec<ProjectImage>,
}

impl Project {
    /// Makes the project of an environment from the output of `docker compose config`.
    ///
    /// `check` gets the output, in which only the names of images to build were changed, before limits, labels, network
    /// and the host's paths are added. Its text is the error if it refuses.
    ///
    /// # Errors
    /// If the check refuses the project, or it lacks the main service.
    pub fn new(
        resolved: &str,
        files: &ComposeFiles,
        environment: &Environment,
        facts: &EngineFacts,
        check: &dyn Fn(&[u8]) -> Result<(), String>,
    ) -> Result<Self, ProjectError> {
        let unusable = |why: &str| ProjectError::Unusable(why.to_owned());
        let mut root: Value = serde_json::from_str(resolved).map_err(|error| unusable(&error.to_string()))?;
        let folder = environment.folders(facts).task;
        let services = root.get_mut("services").and_then(Value::as_object_mut);
        let services = services.ok_or_else(|| unusable("it has no services"))?;
        let mut images = Vec::new();
        for (name, service) in services {
            let service = service.as_object_mut().filter(|_| is_service(name));
            let service =
                service.ok_or_else(|| unusable("a service has no valid name, or is not a table"))?;
            images.push(name_image(name, service, environment, &folder).ok_or_else(|| {
                ProjectError::Unusable(format!("service `{name}` has neither `image` nor `build`"))
            })?);
        }
        if !images.iter().any(|image| image.service == files.service) {
            return Err(ProjectError::Unusable(format!("service `{}` is missing", files.service)));
        }
        check(root.to_string().as_bytes()).map_err(ProjectError::Refused)?;
        mounts::translate(&mut root, &facts.workspace, &facts.host_workspace);
        add_labels(&mut root, environment);
        Ok(Self { root, service: files.service.clone(), images })
    }

    /// Sets limits of all containers.
    #[must_use]
    pub fn with_limits(mut self, limits: &ContainerLimits) -> Self {
        for service in self.services() {
            limits::apply(service, limits);
            // Otherwise containers would come back with the engine, after their episode.
            if matches!(service.get("restart").and_then(Value::as_str), Some("always" | "unless-stopped")) {
                service.insert("restart".to_owned(), "on-failure".into());
            }
            // Reaps processes whose parents have ended, and ends at once.
            service.entry("init").or_insert_with(|| true.into());
            service.insert("stop_grace_period".to_owned(), "1s".into());
        }
        self
    }

    /// Adds variables to the main service. They win over those of the compose file.
    #[must_use]
    pub fn with_variables(mut self, variables: &BTreeMap<String, String>) -> Self {
        let main = self.service.clone();
        if let Some(service) = self.root["services"].get_mut(&main).and_then(Value::as_object_mut) {
            let own = service.entry("environment").or_insert_with(|| json!({}));
            if !own.is_object() {
                *own = json!({});
            }
            for (name, value) in variables {
                own[name] = value.replace('$', "$$").into();
            }
        }
        self
    }

    /// Keeps the main container running whatever entry point its image has.
    #[must_use]
    pub fn with_own_entry_point(mut self) -> Self {
        let main = self.service.clone();
        if let Some(service) = self.root["services"].get_mut(&main).and_then(Value::as_object_mut) {
            let command = service.remove("command").unwrap_or_else(|| json!(["sh", "-c", "sleep infinity"]));
            service.insert("entrypoint".to_owned(), command);
        }
        self
    }

    /// Sets the network access of all containers.
    #[must_use]
    pub fn with_network(mut self, network: Network) -> Self {
        if network == Network::Public {
            return self;
        }
        if self.images.len() == 1 {
            for service in self.services() {
                service.remove("networks");
                service.insert("network_mode".to_owned(), "none".into());
            }
            if let Some(root) = self.root.as_object_mut() {
                root.remove("networks");
            }
            return self;
        }
        for network in section(&mut self.root, "networks") {
            network.insert("internal".to_owned(), true.into());
        }
        self
    }

    /// Returns the images that the project needs.
    pub fn images(&self) -> &[ProjectImage] {
        &self.images
    }

    /// Returns the service in which the agent works.
    pub fn service(&self) -> &str {
        &self.service
    }

    /// Returns the project as JSON, which is also YAML.
    pub fn to_json(&self) -> String {
        self.root.to_string()
    }

    fn services(&mut self) -> impl Iterator<Item = &mut Map<String, Value>> {
        section(&mut self.root, "services")
    }
}

/// Returns the tables of a section.
fn section<'a>(root: &'a mut Value, kind: &str) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    let elements = root.get_mut(kind).and_then(Value::as_object_mut);
    elements.into_iter().flat_map(Map::values_mut).filter_map(|element| {
        if element.is_null() {
            *element = json!({});
        }
        element.as_object_mut()
    })
}

/// Names the image of a service by the task's content and the build, so that builds of the same content share it and
/// replace no other image.
fn name_image(
    name: &str,
    service: &mut Map<String, Value>,
    environment: &Environment,
    folder: &str,
) -> Option<ProjectImage> {
    let image = match service.get("build").filter(|build| !build.is_null()) {
        Some(build) => {
            let build = build.to_string().replace(folder, "");
            let digest = hex::encode(Sha256::digest(build.as_bytes()));
            let tag = format!("{name}-{}", digest.get(..BUILD_DIGITS)?);
            let image = format!("{}:{tag}", environment.image_repository());
            service.insert("image".to_owned(), image.clone().into());
            ProjectImage { service: name.to_owned(), name: image, is_built: true }
        }
        None => {
            let image = service.get("image")?.as_str()?;
            ProjectImage { service: name.to_owned(), name: image.to_owned(), is_built: false }
        }
    };
    Some(image)
}

fn add_labels(root: &mut Value, environment: &Environment) {
    let labels = &environment.labels;
    let labels = [
        ("environment", environment.name.as_str()),
        ("owner", labels.owner.as_str()),
        ("run", labels.run.as_str()),
        ("sample", labels.sample.as_str()),
    ];
    for kind in ["services", "networks", "volumes"] {
        for element in section(root, kind) {
            let own = element.entry("labels").or_insert_with(|| json!({}));
            if !own.is_object() {
                *own = json!({});
            }
            for (name, value) in labels {
                own[format!("bench-runner.{name}")] = value.replace('$', "$$").into();
            }
        }
    }
}

#[cfg(test)]
mod tests;
