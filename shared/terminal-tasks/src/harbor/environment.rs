//! Environments: `[environment]` and `[verifier.environment]`.

use std::time::Duration;

use super::{common, resources, servers};
use crate::model::{Environment, OperatingSystem, Task, TaskFormat};
use crate::network::NetworkPolicy;
use crate::node::Fields;
use crate::refusal::{ContentProblem, Refusal};
use crate::tree::Tree;
use crate::variables::Variables;

/// Folder of the agent's environment.
pub(super) const FOLDER: &str = "environment";
/// Service in which the agent works.
pub(super) const SERVICE: &str = "main";
const BUILD_TIMEOUT: Duration = Duration::from_secs(600);

/// Reads `[environment]`, and checks that something defines it.
pub(super) fn read(root: &Fields<'_>, tree: &Tree) -> Result<Environment, Refusal> {
    let mut environment = match root.table("environment")? {
        Some(fields) => read_table(&fields)?,
        None => default(),
    };
    place(&mut environment, tree, FOLDER);
    if environment.image.is_none() && environment.dockerfile.is_none() && environment.compose_file.is_none() {
        return Err(Refusal::file(root.file(), ContentProblem::NoEnvironment));
    }
    Ok(environment)
}

/// Sets the folder of an environment, and the Dockerfile and the compose file in it.
pub(super) fn place(environment: &mut Environment, tree: &Tree, folder: &str) {
    let existing = |name: &str| Some(format!("{folder}/{name}")).filter(|path| tree.has(path));
    folder.clone_into(&mut environment.folder);
    environment.dockerfile = existing("Dockerfile");
    environment.compose_file = existing("docker-compose.yaml");
}

/// Returns warnings of compose files whose names the format doesn't know.
pub(crate) fn ignored_files(task: &Task, tree: &Tree) -> Vec<String> {
    let mut folders: Vec<&str> = match task.format {
        TaskFormat::Harbor { .. } => {
            task.environments().map(|environment| environment.folder.as_str()).collect()
        }
        TaskFormat::TerminalBench1 => Vec::new(),
    };
    folders.dedup();
    let names = ["docker-compose.yml", "compose.yaml", "compose.yml"];
    let files = folders.iter().flat_map(|folder| names.map(|name| format!("{folder}/{name}")));
    let found = files.filter(|file| tree.has(file));
    found.map(|file| format!("`{file}` is ignored: the format knows `docker-compose.yaml` only")).collect()
}

/// Reads the table of an environment. Files aren't looked up.
pub(super) fn read_table(fields: &Fields<'_>) -> Result<Environment, Refusal> {
    let image = match fields.text("docker_image")? {
        None | Some("") => None,
        Some(image) if is_image(image) => Some(image.to_owned()),
        Some(image) => {
            return Err(
                fields.refuse("docker_image", ContentProblem::InvalidImage { image: image.to_owned() })
            );
        }
    };
    let os = match fields.text("os")?.map(str::to_ascii_lowercase).as_deref() {
        None | Some("linux") => OperatingSystem::Linux,
        Some("windows") => OperatingSystem::Windows,
        Some(other) => return Err(fields.invalid("os", other, "`linux` or `windows`")),
    };
    let workdir = fields.text("workdir")?;
    if let Some(path) = workdir.filter(|path| !path.starts_with('/') || path.contains('\0')) {
        return Err(fields.invalid("workdir", path, "an absolute path"));
    }
    Ok(Environment {
        image,
        os,
        build_timeout: fields.time_limit("build_timeout_sec")?.unwrap_or(BUILD_TIMEOUT),
        cpus: resources::cpus(fields)?,
        memory_mb: resources::size_mb(fields, "memory", "memory_mb")?,
        storage_mb: resources::size_mb(fields, "storage", "storage_mb")?,
        gpus: fields.count("gpus")?.unwrap_or(0),
        gpu_types: fields.texts("gpu_types")?.unwrap_or_default(),
        tpu: resources::tpu(fields)?,
        network: network(fields)?,
        env: common::variables(fields, "env")?,
        workdir: workdir.map(str::to_owned),
        skills_dir: fields.text("skills_dir")?.map(str::to_owned),
        mcp_servers: servers::read(fields)?,
        healthcheck: common::healthcheck(fields)?,
        ..default()
    })
}

/// Reads the network access, or the old boolean `allow_internet` if there is neither a mode nor a list of hosts.
fn network(fields: &Fields<'_>) -> Result<NetworkPolicy, Refusal> {
    let old = fields.boolean("allow_internet")?;
    let has_hosts = fields.texts("allowed_hosts")?.is_some_and(|hosts| !hosts.is_empty());
    if !fields.has("network_mode") && !has_hosts {
        return Ok(if old == Some(false) && !fields.has("allowed_hosts") {
            NetworkPolicy::NoNetwork
        } else {
            NetworkPolicy::Public
        });
    }
    Ok(common::network(fields)?.unwrap_or_default())
}

fn default() -> Environment {
    Environment {
        folder: FOLDER.to_owned(),
        image: None,
        dockerfile: None,
        compose_file: None,
        service: SERVICE.to_owned(),
        build_timeout: BUILD_TIMEOUT,
        os: OperatingSystem::Linux,
        cpus: None,
        memory_mb: None,
        storage_mb: None,
        gpus: 0,
        gpu_types: Vec::new(),
        tpu: None,
        network: NetworkPolicy::Public,
        env: Variables::default(),
        workdir: None,
        skills_dir: None,
        mcp_servers: Vec::new(),
        healthcheck: None,
    }
}

/// Returns true if the text may be the name of an image. It never begins with `-`, so it can't be read as an option.
fn is_image(image: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@".contains(&byte);
    let is_component = |component: &str| {
        component.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric()) && component.len() <= 255
    };
    image.len() <= 512 && image.bytes().all(is_allowed) && image.split('/').all(is_component)
}
