//! Setup: files, compose project, images, containers, health.

use std::collections::BTreeMap;

use bench_environments::{
    Build, BuildLimits, ComposeFiles, ContainerLimits, EngineFacts, Environment, MainImage, Network, Project,
    ProjectError, Resolve, Start, Unpack,
};
use bench_terminal_tasks::compose::{ComposePolicy, SHM_BYTES_MAX, check_compose, check_compose_source};
use bench_terminal_tasks::{Environment as Definition, NetworkPolicy, Step, TaskFormat};

use super::Course;
use super::container::Container;
use crate::program::Program;
use crate::stop::{Phase, Stop};
use crate::task::EpisodeTask;

/// Folders for logs in containers, by format.
const HARBOR_LOGS: [&str; 3] = ["/logs/agent", "/logs/verifier", "/logs/artifacts"];
/// Folders of Terminal-Bench 1 that are mounted, with their paths in the container.
const MOUNTED_LOGS: [(&str, &str); 2] = [("logs", "/logs"), ("agent-logs", "/agent-logs")];
/// Folders that older compose files of Harbor's format mount, with their paths in the container, and the part of the
/// variables' names between `HOST_` or `ENV_` and `_PATH`.
const HARBOR_MOUNTS: [(&str, &str, &str); 3] = [
    ("verifier-logs", "/logs/verifier", "VERIFIER_LOGS"),
    ("agent-logs", "/logs/agent", "AGENT_LOGS"),
    ("artifacts", "/logs/artifacts", "ARTIFACTS"),
];
/// Exception of a task that needs a network on a host that gives none.
const NO_NETWORK: &str = "ServiceOperationsUnsupportedError";
const NO_NETWORK_ADVICE: &str = "the task has a network, and the sandbox host can't limit what containers reach, so that \
    they have none: run the host as root with nftables installed, or set `network_mode` to `no-network`";
/// Disk space of a container whose task doesn't state any, in MiB: the default of Harbor 0.1.
const STORAGE_MB: u64 = 10_240;
/// Maximum number of processes of a container.
const PIDS_MAX: u32 = 2_048;

/// Starts an environment. `steps` are those whose phases may need a network.
pub(super) async fn start(
    program: &mut Program<'_>,
    course: &Course<'_>,
    environment: Environment,
    definition: &Definition,
    steps: &[&Step],
) -> Result<Container, Stop> {
    let task = course.task;
    let facts = program.facts().await?;
    let is_old = task.files.admitted.task.format == TaskFormat::TerminalBench1;
    let folders = mounted_folders(definition, is_old).iter().map(|name| (*name).to_owned()).collect();
    program.run_once(&environment, "unpack", &Unpack { folders }, Phase::Setup, |()| true).await?;
    let env = definition.env.resolve(task.variables).map_err(|missing| Stop::refused(missing.to_string()))?;
    let files = compose_files(definition, &environment, &facts, task, &env, is_old);
    let has_network = has_network(definition, steps);
    if has_network && !facts.has_network {
        return Err(Stop::exception(NO_NETWORK, NO_NETWORK_ADVICE));
    }
    let container = match program.known(&format!("{}/started", environment.name)) {
        Some(started) => started,
        None => {
            // Too large for the checkpoint, so it is read again until the containers run.
            let resolve = Resolve { files: files.clone() };
            let resolved = program.run(&environment, "resolve", &resolve, Phase::Setup).await?;
            let project = project(&resolved, &files, &environment, &facts, task, definition, &env, is_old)?
                .with_network(if has_network { Network::Public } else { Network::None });
            let limits = BuildLimits { time: definition.build_timeout, ..BuildLimits::default() };
            let build = Build { project: project.clone(), builder: facts.builder, limits };
            program.run_once(&environment, "build", &build, Phase::Setup, |built| built.images).await?;
            // A compose file of the old format need not mount the folders.
            let log_folders = match is_old {
                true => MOUNTED_LOGS.map(|(_, path)| path.to_owned()).to_vec(),
                false => HARBOR_LOGS.map(str::to_owned).to_vec(),
            };
            let start = Start { project, log_folders, time_limit: definition.build_timeout };
            let started = program.run(&environment, "start", &start, Phase::Setup).await?;
            program.keep(format!("{}/started", environment.name), &started);
            started
        }
    };
    let started: bench_environments::Started = container;
    let id = started.container(&definition.service).map(str::to_owned);
    let id = id.ok_or_else(|| {
        Stop::exception("RuntimeError", format!("service `{}` has no container", definition.service))
    })?;
    let mut container = Container {
        environment,
        started,
        service: definition.service.clone(),
        id,
        env,
        workdir: definition.workdir.clone(),
        disk_bytes_max: definition.storage_mb.unwrap_or(STORAGE_MB) << 20,
        network: definition.network.clone(),
        has_network,
        switches: 0,
        is_connected: has_network,
    };
    container.use_network(program, None).await?;
    put_loose_files(program, &container, definition, task).await?;
    if let Some(check) = &definition.healthcheck {
        container.check_health(program, "health", check).await?;
    }
    Ok(container)
}

/// Returns true if the environment or one of its phases needs a network.
fn has_network(definition: &Definition, steps: &[&Step]) -> bool {
    let phases = steps.iter().flat_map(|step| step.agent.network.iter().chain(&step.verifier.network));
    std::iter::once(&definition.network).chain(phases).any(|policy| *policy == NetworkPolicy::Public)
}

/// Copies the files beside a prebuilt image into the working folder, since nothing else uses them.
async fn put_loose_files(
    program: &mut Program<'_>,
    container: &Container,
    definition: &Definition,
    task: &EpisodeTask<'_>,
) -> Result<(), Stop> {
    let is_loose =
        definition.image.is_some() && definition.dockerfile.is_none() && definition.compose_file.is_none();
    if !is_loose || definition.folder.is_empty() {
        return Ok(());
    }
    let files = task.files.below(&definition.folder, &[]);
    if files.is_empty() {
        return Ok(());
    }
    let folder = container.working_folder(program).await?;
    container.put(program, "loose-files", &folder, false, files, Phase::Setup).await
}

fn compose_files(
    definition: &Definition,
    environment: &Environment,
    facts: &EngineFacts,
    task: &EpisodeTask<'_>,
    env: &BTreeMap<String, String>,
    is_old: bool,
) -> ComposeFiles {
    let in_folder = |path: &String| match definition.folder.as_str() {
        "" => path.clone(),
        folder => path.strip_prefix(&format!("{folder}/")).unwrap_or(path).to_owned(),
    };
    let image = match (&definition.image, &definition.dockerfile) {
        (Some(image), _) => MainImage::Prebuilt(image.clone()),
        // The compose file of Terminal-Bench 1 always defines the service.
        (None, Some(path)) if !is_old => MainImage::Dockerfile(in_folder(path)),
        _ => MainImage::Compose,
    };
    let mut variables = task.variables.clone();
    variables.extend(env.clone());
    variables.extend(match is_old {
        true => old_variables(environment, facts),
        false => harbor_variables(definition, environment, facts),
    });
    ComposeFiles {
        service: definition.service.clone(),
        image,
        folder: definition.folder.clone(),
        files: definition.compose_file.iter().cloned().collect(),
        variables,
    }
}

/// Returns the names of the environment's folders that a compose file of the task may mount.
fn mounted_folders(definition: &Definition, is_old: bool) -> Vec<&'static str> {
    match (is_old, &definition.compose_file) {
        (true, _) => MOUNTED_LOGS.map(|(name, _)| name).to_vec(),
        (false, Some(_)) => HARBOR_MOUNTS.map(|(name, _, _)| name).to_vec(),
        (false, None) => Vec::new(),
    }
}

/// Returns the variables that compose files of Harbor's format may use, as Harbor 0.25 sets them. Its converter of tasks of
/// Terminal-Bench writes the first four into every file. A task's own variables don't replace them.
fn harbor_variables(
    definition: &Definition,
    environment: &Environment,
    facts: &EngineFacts,
) -> Vec<(String, String)> {
    let folders = environment.folders(facts);
    let context = format!("{}/{}", folders.task, definition.folder);
    let digits = environment.content_hash.get(..12).unwrap_or_default();
    let limits = limits(definition);
    let mut variables = vec![
        ("CONTEXT_DIR".to_owned(), context.trim_end_matches('/').to_owned()),
        ("MAIN_IMAGE_NAME".to_owned(), format!("hb__{digits}")),
        ("CPUS".to_owned(), limits.cpus.to_string()),
        ("MEMORY".to_owned(), format!("{}M", limits.memory_bytes >> 20)),
    ];
    if let Some(image) = &definition.image {
        variables.push(("PREBUILT_IMAGE_NAME".to_owned(), image.clone()));
    }
    for (name, path, part) in HARBOR_MOUNTS {
        variables.push((format!("HOST_{part}_PATH"), folders.other(name)));
        variables.push((format!("ENV_{part}_PATH"), path.to_owned()));
    }
    variables
}

/// Returns the variables that compose files of Terminal-Bench 1 expect.
fn old_variables(environment: &Environment, facts: &EngineFacts) -> Vec<(String, String)> {
    let folders = environment.folders(facts);
    let digits = environment.content_hash.get(..12).unwrap_or_default();
    [
        ("T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME", format!("tb__{digits}__client")),
        ("T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME", environment.name.to_string()),
        ("T_BENCH_TASK_DOCKER_NAME_PREFIX", format!("tb__{digits}")),
        ("T_BENCH_TASK_LOGS_PATH", folders.other("logs")),
        ("T_BENCH_CONTAINER_LOGS_PATH", "/logs".to_owned()),
        ("T_BENCH_TASK_AGENT_LOGS_PATH", folders.other("agent-logs")),
        ("T_BENCH_CONTAINER_AGENT_LOGS_PATH", "/agent-logs".to_owned()),
        ("T_BENCH_TEST_DIR", "/tests".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

#[allow(clippy::too_many_arguments)] // all of them describe the one environment
fn project(
    resolved: &str,
    files: &ComposeFiles,
    environment: &Environment,
    facts: &EngineFacts,
    task: &EpisodeTask<'_>,
    definition: &Definition,
    env: &BTreeMap<String, String>,
    is_old: bool,
) -> Result<Project, Stop> {
    let folders = environment.folders(facts);
    let mounted = mounted_folders(definition, is_old);
    let policy = ComposePolicy {
        project: environment.name.to_string(),
        task_folder: folders.task.clone(),
        mount_folders: mounted.iter().map(|name| folders.other(name)).collect(),
        image_prefix: bench_environments::IMAGE_PREFIX.to_owned(),
        service: definition.service.clone(),
        shm_bytes_max: SHM_BYTES_MAX,
    };
    let tree = &task.files.admitted.tree;
    // Refusals also name lines of the files that `extends` leads to.
    let sources = files.files.iter().map(|file| check_compose_source(tree, file));
    let sources: Vec<_> =
        sources.collect::<Result<_, _>>().map_err(|refusal| Stop::refused(refusal.to_string()))?;
    let sources: Vec<_> = sources.into_iter().flatten().collect();
    let check = |output: &[u8]| {
        check_compose(output, &policy, &sources).map(drop).map_err(|refusal| refusal.to_string())
    };
    let project = Project::new(resolved, files, environment, facts, &check)
        .map_err(|error: ProjectError| Stop::refused(error.to_string()))?;
    Ok(project.with_variables(env).with_limits(&limits(definition)))
}

/// Returns the limits of each container: those of the task, or the defaults of Harbor 0.1.
fn limits(definition: &Definition) -> ContainerLimits {
    let default = ContainerLimits::default();
    ContainerLimits {
        cpus: definition.cpus.unwrap_or(default.cpus),
        memory_bytes: definition.memory_mb.map_or(default.memory_bytes, |memory| memory << 20),
        pids: PIDS_MAX,
    }
}
