//! Admission of uploaded tasks: finds the task in the upload, reads it, and checks its demands.
//!
//! The worker runs the same checks again on what it extracted.

use std::io::{Read, Seek};
use std::time::Duration;

use crate::archive::read_tree;
use crate::compose::check_compose_source;
use crate::harbor;
use crate::ignore::IgnoreRules;
use crate::model::{Environment, OperatingSystem, Task, TaskFormat};
use crate::network::NetworkPolicy;
use crate::node::{Node, Value};
use crate::refusal::{ComposeProblem, ContentProblem, Refusal};
use crate::scripts;
use crate::tar::read_tar_gz_tree;
use crate::terminal_bench;
use crate::tree::{ContentHash, Tree, TreeLimits};

mod root;

/// Demands that a system can meet.
#[derive(Debug, Clone, PartialEq)]
pub struct AdmissionLimits {
    /// Maximum number of processors of a container.
    pub cpus_max: f64,
    /// Maximum memory of a container, in mebibytes.
    pub memory_mb_max: u64,
    /// Maximum disk space of a container, in mebibytes.
    pub storage_mb_max: u64,
    /// Maximum time limit of a build.
    pub build_max: Duration,
    /// Maximum time limit of an agent's phase, of a verification and of other commands, each.
    pub phase_max: Duration,
    /// True if the system enforces allowlists of hosts.
    pub has_allowlists: bool,
}

impl Default for AdmissionLimits {
    /// 16 processors, 64 GiB of memory, 128 GiB of disk space, two hours for a build, 23 for a phase, no allowlists.
    fn default() -> Self {
        Self {
            cpus_max: 16.0,
            memory_mb_max: 64 << 10,
            storage_mb_max: 128 << 10,
            build_max: Duration::from_secs(2 * 3600),
            phase_max: Duration::from_secs(23 * 3600),
            has_allowlists: false,
        }
    }
}

impl AdmissionLimits {
    /// Admits any number of processors and any amount of memory and disk space: for tasks whose demands are checked where
    /// they are stored, and limited where they run.
    pub fn any_demand() -> Self {
        Self { cpus_max: f64::INFINITY, memory_mb_max: u64::MAX, storage_mb_max: u64::MAX, ..Self::default() }
    }
}

/// Task that was admitted.
#[derive(Debug, Clone, PartialEq)]
pub struct AdmittedTask {
    /// The task.
    pub task: Task,
    /// Its files, relative to the task's folder.
    pub tree: Tree,
    /// Digest of its files.
    pub hash: ContentHash,
    /// Folder of the task in the upload; empty for the root.
    pub folder: String,
    /// Keys of `task.toml` that have no effect because the format doesn't know them, and scripts whose line ends keep them
    /// from running, one sentence each.
    pub warnings: Vec<String>,
}

impl AdmittedTask {
    /// Returns the task's name: its own, or the one of its folder. `None` for a task without name at the root of the
    /// upload, which the order must name.
    pub fn name(&self) -> Option<&str> {
        let folder = self.folder.rsplit('/').next().filter(|folder| !folder.is_empty());
        self.task.name.as_deref().or(folder)
    }
}

/// Admits a task in a ZIP archive.
///
/// # Errors
/// If the archive is unsafe or damaged, or for the reasons of [`admit`].
pub fn admit_archive(
    reader: impl Read + Seek,
    tree_limits: TreeLimits,
    limits: &AdmissionLimits,
) -> Result<AdmittedTask, Refusal> {
    admit(read_tree(reader, tree_limits)?, limits)
}

/// Admits a task among the files of an upload.
///
/// # Errors
/// If there is no task or more than one, a file is missing or invalid, or the task demands more than the system can
/// give. Compose files are checked as far as their source shows; `docker compose config` shows the rest.
pub fn admit(tree: Tree, limits: &AdmissionLimits) -> Result<AdmittedTask, Refusal> {
    let folder = root::find(&tree)?;
    let tree = tree.into_folder(&folder)?;
    let is_harbor = tree.has(harbor::TASK_FILE);
    let task = if is_harbor { harbor::read(&tree)? } else { terminal_bench::read(&tree, None)? };
    check(task, tree, folder, limits)
}

/// Admits a task of Terminal-Bench 1 in a gzipped tar archive, whose folder may be the only one in it.
///
/// Some old tasks have no `instruction`; `instruction` is that of their dataset.
///
/// # Errors
/// If the archive is unsafe or damaged, or for the reasons of [`admit`].
pub fn admit_terminal_bench(
    archive: &[u8],
    instruction: Option<&str>,
    tree_limits: TreeLimits,
    limits: &AdmissionLimits,
) -> Result<AdmittedTask, Refusal> {
    let tree = read_tar_gz_tree(archive, tree_limits)?;
    let folder = root::find(&tree)?;
    let tree = tree.into_folder(&folder)?;
    let task = terminal_bench::read(&tree, instruction)?;
    check(task, tree, folder, limits)
}

/// Checks the demands of a task.
fn check(task: Task, tree: Tree, folder: String, limits: &AdmissionLimits) -> Result<AdmittedTask, Refusal> {
    let file = match task.format {
        TaskFormat::Harbor { .. } => harbor::TASK_FILE,
        TaskFormat::TerminalBench1 => terminal_bench::TASK_FILE,
    };
    for environment in task.environments() {
        check_environment(environment, limits).map_err(|problem| refusal(&tree, file, problem))?;
    }
    check_phases(&task, limits).map_err(|problem| refusal(&tree, file, problem))?;
    check_services(&task, &tree, file)?;
    check_ignored(&task, &tree)?;
    let hash = tree.content_hash();
    let mut warnings = match task.format {
        TaskFormat::Harbor { .. } => harbor::warnings(&tree),
        TaskFormat::TerminalBench1 => harbor::old_warnings(&tree),
    };
    warnings.extend(harbor::ignored_files(&task, &tree));
    warnings.extend(scripts::warnings(&tree));
    Ok(AdmittedTask { task, tree, hash, folder, warnings })
}

/// Creates a refusal at the line of the configuration that has the problem, if it is certain.
fn refusal(tree: &Tree, file: &str, problem: ContentProblem) -> Refusal {
    let (key, is_cause): (&str, &dyn Fn(&Value) -> bool) = match &problem {
        ContentProblem::Unsupported { key, .. } => (key, &|value| match value {
            Value::Integer(count) => *count > 0,
            Value::Text(text) => {
                ["windows", "allowlist"].iter().any(|cause| text.eq_ignore_ascii_case(cause))
            }
            value => matches!(value, Value::Table(_)),
        }),
        ContentProblem::AboveLimit { key, max, .. } => (key, &|value| match value {
            Value::Integer(value) => *value as f64 > max.parse().unwrap_or(0.0),
            Value::Float(value) => *value > max.parse().unwrap_or(0.0),
            value => matches!(value, Value::Text(_)),
        }),
        _ => return Refusal::file(file, problem),
    };
    let name = key.rsplit('.').next().unwrap_or(key).to_owned();
    Refusal::at(file, line_of(tree, file, &name, is_cause), problem)
}

/// Returns the line of the configuration's only field with a name and a property. Names of the old format have a prefix,
/// and sizes may lack their unit.
fn line_of(tree: &Tree, file: &str, name: &str, is_wanted: &dyn Fn(&Value) -> bool) -> Option<u32> {
    // The file was read before, so it can be parsed.
    let bytes = tree.config(file).ok().flatten()?;
    match file {
        harbor::TASK_FILE => {
            let is_named = |key: &str| key == name || Some(key) == name.strip_suffix("_mb");
            Node::parse_toml(file, bytes).ok()?.only_line_of(&is_named, is_wanted)
        }
        _ => Node::parse_yaml(file, bytes).ok()?.only_line_of(&|key| key.ends_with(name), is_wanted),
    }
}

fn check_environment(environment: &Environment, limits: &AdmissionLimits) -> Result<(), ContentProblem> {
    let unsupported = |key: &str, feature, advice| {
        Err(ContentProblem::Unsupported { key: format!("environment.{key}"), feature, advice })
    };
    if environment.os == OperatingSystem::Windows {
        return unsupported("os", "Windows containers", "port the task to Linux");
    }
    if environment.gpus > 0 {
        return unsupported("gpus", "a GPU", "set it to 0 or leave it out");
    }
    if environment.tpu.is_some() {
        return unsupported("tpu", "a TPU", "leave it out");
    }
    check_number("environment.cpus", environment.cpus, limits.cpus_max, "processors")?;
    let mebibytes = |value: Option<u64>| value.map(|value| value as f64);
    check_number(
        "environment.memory_mb",
        mebibytes(environment.memory_mb),
        limits.memory_mb_max as f64,
        "MiB",
    )?;
    check_number(
        "environment.storage_mb",
        mebibytes(environment.storage_mb),
        limits.storage_mb_max as f64,
        "MiB",
    )?;
    check_time("environment.build_timeout_sec", environment.build_timeout, limits.build_max)?;
    if let Some(check) = &environment.healthcheck {
        for (key, time) in [
            ("interval_sec", check.interval),
            ("timeout_sec", check.timeout),
            ("start_period_sec", check.start_period),
            ("start_interval_sec", check.start_interval),
        ] {
            check_time(&format!("environment.healthcheck.{key}"), time, limits.phase_max)?;
        }
    }
    Ok(())
}

fn check_phases(task: &Task, limits: &AdmissionLimits) -> Result<(), ContentProblem> {
    let has_allowlist = task.network_policies().any(|policy| matches!(policy, NetworkPolicy::Allowlist(_)));
    if has_allowlist && !limits.has_allowlists {
        return Err(ContentProblem::Unsupported {
            key: "network_mode".to_owned(),
            feature: "an allowlist of hosts",
            advice: "use `no-network`, with everything in the image, or `public`",
        });
    }
    for step in &task.steps {
        check_time("agent.timeout_sec", step.agent.timeout.unwrap_or_default(), limits.phase_max)?;
        check_time("verifier.timeout_sec", step.verifier.timeout, limits.phase_max)?;
        for hook in &step.verifier.collect {
            check_time("verifier.collect.timeout_sec", hook.timeout, limits.phase_max)?;
        }
    }
    Ok(())
}

fn check_time(key: &str, time: Duration, max: Duration) -> Result<(), ContentProblem> {
    check_number(key, Some(time.as_secs_f64()), max.as_secs_f64(), "seconds")
}

fn check_number(key: &str, value: Option<f64>, max: f64, unit: &'static str) -> Result<(), ContentProblem> {
    match value {
        Some(value) if value > max => Err(ContentProblem::AboveLimit {
            key: key.to_owned(),
            value: value.to_string(),
            max: max.to_string(),
            unit,
        }),
        _ => Ok(()),
    }
}

/// Checks the sources of compose files, and that hooks and artifacts name services that exist.
fn check_services(task: &Task, tree: &Tree, file: &str) -> Result<(), Refusal> {
    let mut services = vec![task.environment.service.clone()];
    for environment in task.environments() {
        let Some(compose_file) = &environment.compose_file else { continue };
        let own: Vec<String> = check_compose_source(tree, compose_file)?
            .iter()
            .flat_map(|source| source.service_names().map(str::to_owned).collect::<Vec<_>>())
            .collect();
        // Harbor's runner adds its service itself.
        if task.format == TaskFormat::TerminalBench1 && !own.contains(&environment.service) {
            let problem = ComposeProblem::MissingService { service: environment.service.clone() };
            return Err(Refusal::file(compose_file.as_str(), problem));
        }
        services.extend(own);
    }
    let hooks = task.steps.iter().flat_map(|step| step.verifier.collect.iter().map(|hook| &hook.service));
    let artifacts =
        task.steps.iter().flat_map(|step| step.artifacts.iter().filter_map(|kept| kept.service.as_ref()));
    match hooks.chain(artifacts).find(|service| !services.contains(service)) {
        Some(service) => {
            let is_it = |value: &Value| matches!(value, Value::Text(text) if text.trim() == service);
            let problem = ComposeProblem::MissingService { service: service.clone() };
            Err(Refusal::at(file, line_of(tree, file, "service", &is_it), problem))
        }
        None => Ok(()),
    }
}

/// Checks that no test script or solution is excluded.
fn check_ignored(task: &Task, tree: &Tree) -> Result<(), Refusal> {
    let rules = IgnoreRules::read(tree)?;
    let scripts = task.steps.iter().flat_map(|step| {
        let solution = match &step.solution {
            Some(crate::model::Solution::Script { path, .. }) => Some(path),
            _ => None,
        };
        step.verifier.script.iter().chain(solution)
    });
    match scripts.into_iter().find(|script| rules.is_excluded(script)) {
        Some(script) => Err(Refusal::file(script.as_str(), ContentProblem::IgnoredFile)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
