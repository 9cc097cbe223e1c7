//! Checker for compose projects: a positive list of keys and values.
//!
//! It reads the output of `docker compose config --format json`, in which `extends`, `include`, anchors and variables
//! are resolved, so none of them gets around it. Everything that isn't on the list is refused, above all what reaches
//! the engine's host: namespaces, devices, capabilities, sockets, folders, images and networks of others.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::node::Node;
use crate::refusal::{ComposeProblem, Refusal};
use crate::tree::Tree;

mod build;
mod literals;
mod mounts;
mod report;
mod rules;
mod service;
mod shared;
mod source;

pub use report::{BuildPlan, ProjectPlan, ServicePlan};
use rules::Element;
pub use source::check_compose_source;

/// Maximum number of services of a project.
pub const SERVICES_MAX: usize = 16;
/// Maximum number of networks, volumes, configs or secrets of a project, each.
pub const ELEMENTS_MAX: usize = 16;
/// Maximum size of the output of `docker compose config`, in bytes.
pub const COMPOSE_OUTPUT_BYTES_MAX: usize = 4 << 20;

/// Maximum size of `/dev/shm` of a container, in bytes.
pub const SHM_BYTES_MAX: u64 = 2 << 30;

/// Frame in which a compose project must stay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComposePolicy {
    /// Name of the project, with which the names of its containers, networks and volumes begin.
    pub project: String,
    /// Absolute path of the folder with the task's files, as in the output. Builds and mounts must be inside.
    pub task_folder: String,
    /// Absolute paths of other folders that may be mounted: the episode's own logs.
    pub mount_folders: Vec<String>,
    /// Beginning of the names of images that the project builds, so that they don't replace other images.
    pub image_prefix: String,
    /// Service in which the agent works.
    pub service: String,
    /// Maximum size of `/dev/shm`, in bytes.
    pub shm_bytes_max: u64,
}

/// Source file of a project, to find the lines of refused keys.
#[derive(Debug)]
pub struct ComposeSource {
    file: String,
    root: Node,
}

impl ComposeSource {
    /// Parses a compose file of the task.
    ///
    /// # Errors
    /// If the file is missing or isn't YAML.
    pub fn read(tree: &Tree, file: &str) -> Result<Self, Refusal> {
        let missing = crate::refusal::ContentProblem::MissingFile { advice: "add the compose file" };
        let bytes = tree.config(file)?.ok_or_else(|| Refusal::file(file, missing))?;
        Ok(Self { file: file.to_owned(), root: Node::parse_yaml(file, bytes)? })
    }

    /// Returns the names of the services in this file.
    pub(crate) fn service_names(&self) -> impl Iterator<Item = &str> {
        let services = match &self.root.value {
            crate::node::Value::Table(root) => root.get("services").map(|(_, node)| &node.value),
            _ => None,
        };
        let names = match services {
            Some(crate::node::Value::Table(services)) => Some(services.keys().map(String::as_str)),
            _ => None,
        };
        names.into_iter().flatten()
    }
}

/// Checks the output of `docker compose config --format json`.
///
/// # Errors
/// If anything isn't on the positive list. The refusal names the element and the key, and file and line of the source
/// that has the element; the longest part of the key's path that exists there counts.
pub fn check_compose(
    output: &[u8],
    policy: &ComposePolicy,
    sources: &[ComposeSource],
) -> Result<ProjectPlan, Refusal> {
    let invalid = |cause: String| Refusal::whole(ComposeProblem::InvalidOutput { cause });
    if output.len() > COMPOSE_OUTPUT_BYTES_MAX {
        return Err(invalid(format!("it has more than {COMPOSE_OUTPUT_BYTES_MAX} bytes")));
    }
    let root: Value = serde_json::from_slice(output).map_err(|error| invalid(error.to_string()))?;
    let Value::Object(root) = root else { return Err(invalid("it is not an object".to_owned())) };
    let project = Element::new(policy, sources, "the project".to_owned(), Vec::new(), &root);
    check_project(&project)
}

fn check_project(project: &Element<'_>) -> Result<ProjectPlan, Refusal> {
    for (key, value) in project.entries() {
        match key {
            "name" => project.expect_text(key, |name| name == project.policy.project, "leave `name` out")?,
            // Extensions and the old version number have no effect.
            "services" | "networks" | "volumes" | "configs" | "secrets" | "version" => {}
            key if key.starts_with("x-") => {}
            _ => return Err(project.refuse_key(key, value, "leave it out")),
        }
    }
    for (kind, check) in shared::CHECKS {
        let elements = section(project, kind, ELEMENTS_MAX)?;
        for (name, element) in &elements {
            check(element, name)?;
        }
    }
    let services = section(project, "services", SERVICES_MAX)?;
    if !services.contains_key(project.policy.service.as_str()) {
        let service = project.policy.service.clone();
        return Err(project.refuse(&["services"], ComposeProblem::MissingService { service }));
    }
    let names = Names {
        services: services.keys().copied().collect(),
        networks: keys(project, "networks"),
        volumes: keys(project, "volumes"),
        files: keys(project, "configs").union(&keys(project, "secrets")).copied().collect(),
    };
    let mut plans = BTreeMap::new();
    for (name, element) in &services {
        plans.insert((*name).to_owned(), service::check(element, &names)?);
    }
    Ok(ProjectPlan { services: plans })
}

/// Names of the elements that services may refer to.
struct Names<'a> {
    services: BTreeSet<&'a str>,
    networks: BTreeSet<&'a str>,
    volumes: BTreeSet<&'a str>,
    files: BTreeSet<&'a str>,
}

fn keys<'a>(project: &Element<'a>, section: &str) -> BTreeSet<&'a str> {
    project.object(section).into_iter().flat_map(Map::keys).map(String::as_str).collect()
}

/// Returns the elements of a section by name. A null element is empty.
fn section<'a>(
    project: &Element<'a>,
    section: &'static str,
    max: usize,
) -> Result<BTreeMap<&'a str, Element<'a>>, Refusal> {
    let elements = match project.get(section) {
        None | Some(Value::Null) => shared::empty(),
        Some(Value::Object(elements)) => elements,
        Some(other) => return Err(project.refuse_value(section, other, "write a table")),
    };
    if elements.len() > max {
        return Err(project.refuse(&[section], ComposeProblem::TooMany { what: section, max }));
    }
    let element = |(name, value): (&'a String, &'a Value)| {
        let table = match value {
            Value::Null => shared::empty(),
            Value::Object(table) => table,
            other => return Err(project.refuse_value(section, other, "write a table of tables")),
        };
        let kind = section.trim_end_matches('s');
        let owner = format!("{kind} {}", crate::refusal::Quoted(name));
        let path = vec![section.to_owned(), name.clone()];
        Ok((name.as_str(), Element::new(project.policy, project.sources, owner, path, table)))
    };
    elements.iter().map(element).collect()
}

#[cfg(test)]
mod tests;
