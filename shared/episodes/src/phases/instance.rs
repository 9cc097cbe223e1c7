//! Containers of instances: images that come with a repository and what its tests need. An agent works in one, without a
//! network, and its change is collected there.

use std::collections::BTreeMap;
use std::time::Duration;

use bench_agents::Act;
use bench_domain::{AgentOutcome, EpisodeReport, EpisodeState, json_text_bytes};
use bench_environments::{
    Build, BuildLimits, ComposeFiles, EnvironmentError, MainImage, Network, Project, ProjectError, Resolve,
    SkipReason, Start, Unpack, task_bundle,
};
use bench_terminal_tasks::NetworkPolicy;

use super::container::{Command, Container, ROOT};
use super::think::{Machine, Mind, Need, outcome, outcome_key, run_command};
use super::{BEGAN, setup_ms};
use crate::engine::engine_text;
use crate::instance::{Instance, InstanceImage, InstanceTask};
use crate::program::Program;
use crate::stop::{CHANGE_NOT_TEXT, CHANGE_TOO_LARGE, HOST_UNSUITABLE, Phase, Stop, WORKSPACE_LOST};
use crate::task::environment_name;

/// Service of the container.
const SERVICE: &str = "main";
/// Maximum number of processes of a container.
const PIDS_MAX: u32 = 4_096;
/// Time limits of a pull or build, of the start, and of the preparation.
const IMAGE_MAX: Duration = Duration::from_secs(45 * 60);
const START_MAX: Duration = Duration::from_secs(600);
const PREPARATION_MAX: Duration = Duration::from_secs(900);
/// Maximum number of pulls of an image, the wait after the first one, and the longest wait. Hosts end sandboxes that are unused for
/// half an hour, and the pulls would be counted anew.
const PULLS_MAX: u32 = 8;
const PULL_WAIT: Duration = Duration::from_secs(30);
const PULL_WAIT_MAX: Duration = Duration::from_secs(1_200);
/// Maximum size of a change as JSON text in bytes. Control characters take six each, and a stored answer has an end.
const CHANGE_JSON_BYTES_MAX: usize = 20 << 20;
/// Number of failed pulls, in the checkpoint.
const PULLS: &str = "pulls";
/// Texts in the errors of registries that every pull gets.
const NO_IMAGE: [&str; 6] = [
    "manifest unknown",
    "no matching manifest",
    "repository does not exist",
    "requested access to the resource is denied",
    "pull access denied",
    "invalid reference format",
];

/// Starts the container of an instance.
pub(super) async fn start(
    program: &mut Program<'_>,
    instance: &Instance<'_>,
    network: Network,
) -> Result<Container, Stop> {
    if program.known::<bench_domain::Timestamp>(BEGAN).is_none() {
        program.keep(BEGAN.to_owned(), &bench_clock::now());
    }
    let facts = program.facts().await?;
    check_host(instance, &facts.architecture, facts.has_network)?;
    let (files, image) = match instance.image {
        InstanceImage::Pulled(reference) => (&[][..], MainImage::Prebuilt(reference.clone())),
        InstanceImage::Built(files) => (&files[..], MainImage::Dockerfile("Dockerfile".to_owned())),
    };
    let environment = instance.environment(&environment_name(&program.state.nonce))?;
    program.upload(&environment.content_hash, || task_bundle(files)).await?;
    program.run_once(&environment, "unpack", &Unpack::default(), Phase::Setup, |()| true).await?;
    let key = format!("{}/started", environment.name);
    let started: bench_environments::Started = match program.known(&key) {
        Some(started) => started,
        None => {
            let files = ComposeFiles {
                service: SERVICE.to_owned(),
                image,
                folder: String::new(),
                files: Vec::new(),
                variables: BTreeMap::new(),
            };
            let resolve = Resolve { files: files.clone() };
            let resolved = program.run(&environment, "resolve", &resolve, Phase::Setup).await?;
            let project = Project::new(&resolved, &files, &environment, &facts, &|_| Ok(()))
                .map_err(|error: ProjectError| Stop::refused(error.to_string()))?
                .with_limits(&instance.limits(PIDS_MAX))
                .with_own_entry_point()
                .with_network(network);
            let limits = BuildLimits { time: IMAGE_MAX, ..BuildLimits::default() };
            let build = Build { project: project.clone(), builder: facts.builder, limits };
            get_image(program, &environment, instance.image, &build).await?;
            let start = Start { project, log_folders: Vec::new(), time_limit: START_MAX };
            let started = program.run(&environment, "start", &start, Phase::Setup).await?;
            program.keep(key, &started);
            started
        }
    };
    let id = started.container(SERVICE).map(str::to_owned);
    let id = id.ok_or_else(|| Stop::exception("RuntimeError", "the image has no container"))?;
    let is_connected = network == Network::Public;
    Ok(Container {
        environment,
        started,
        service: SERVICE.to_owned(),
        id,
        env: BTreeMap::new(),
        workdir: None,
        disk_bytes_max: instance.disk_bytes_max,
        network: if is_connected { NetworkPolicy::Public } else { NetworkPolicy::NoNetwork },
        has_network: is_connected,
        switches: 0,
        is_connected,
    })
}

/// Checks what an instance needs of its host, before anything is paid for. Its tests need a network, which its agent hasn't.
fn check_host(instance: &Instance<'_>, architecture: &str, has_network: bool) -> Result<(), Stop> {
    let is_same = |needed: &str| {
        let plain = |name: &str| match name {
            "x86_64" => "amd64".to_owned(),
            "aarch64" => "arm64".to_owned(),
            other => other.to_owned(),
        };
        architecture.is_empty() || plain(architecture) == plain(needed)
    };
    if let Some(needed) = instance.architecture.filter(|needed| !is_same(needed)) {
        let why = format!(
            "the item's image is for `{needed}`, and the container engine's host is `{architecture}`: use a sandbox host \
             with that architecture"
        );
        return Err(Stop::exception(HOST_UNSUITABLE, why));
    }
    if instance.needs_network && !has_network {
        let why = "the item's tests need a network, and the sandbox host can't limit what containers reach, so that they \
                   have none: run the host as root with nftables installed";
        return Err(Stop::exception(HOST_UNSUITABLE, why));
    }
    Ok(())
}

/// Builds the image, or pulls it, again after longer and longer waits if the registry fails.
async fn get_image(
    program: &mut Program<'_>,
    environment: &bench_environments::Environment,
    image: &InstanceImage,
    build: &Build,
) -> Result<(), Stop> {
    let key = format!("{}/image", environment.name);
    if program.known::<bool>(&key).is_some() {
        return Ok(());
    }
    let pulls: u32 = program.known(PULLS).unwrap_or_default();
    let name = format!("image-{pulls}");
    let error = match (program.try_run(environment, &name, build).await?, image) {
        (Ok(_), _) => {
            program.state.done.remove(EpisodeState::DELAY_REASON);
            program.keep(key, &true);
            return Ok(());
        }
        (Err(error), InstanceImage::Built(_)) => return Err(Stop::of(error, Phase::Setup)),
        (Err(error), InstanceImage::Pulled(_)) => error,
    };
    let (EnvironmentError::Build { why, log }
    | EnvironmentError::Engine { why, log }
    | EnvironmentError::LimitExceeded { why, log, .. }) = &error
    else {
        return Err(Stop::of(error, Phase::Setup));
    };
    let said = format!("{why}\n{log}").to_ascii_lowercase();
    let last = crate::stop::last_line(log).filter(|last| !why.contains(last.as_str()));
    let why = last.map_or_else(|| why.clone(), |last| format!("{why}: {last}"));
    if NO_IMAGE.iter().any(|text| said.contains(text)) {
        let why = format!("{why}; the registry doesn't give this image to the sandbox host");
        return Err(Stop::exception(HOST_UNSUITABLE, why));
    }
    let pulls = pulls.saturating_add(1);
    if pulls >= PULLS_MAX {
        let advice = match said.contains("no space left") || said.contains("disk limit") {
            true => "free disk space on the sandbox host",
            false => "check the sandbox host's way to the registry",
        };
        let why = format!("{why}; {PULLS_MAX} pulls failed: {advice}, then requeue");
        return Err(Stop::exception(HOST_UNSUITABLE, why));
    }
    program.keep(PULLS.to_owned(), &pulls);
    program.keep(EpisodeState::DELAY_REASON.to_owned(), &why);
    Err(Stop::Delay(pull_wait(pulls), why))
}

fn pull_wait(pulls: u32) -> Duration {
    PULL_WAIT.saturating_mul(1 << pulls.saturating_sub(1).min(10)).min(PULL_WAIT_MAX)
}

/// Lets the agent work, and returns its change.
pub(crate) async fn work(
    program: &mut Program<'_>,
    task: &InstanceTask<'_>,
    report: &mut EpisodeReport,
) -> Result<String, Stop> {
    let mut container = start(program, &task.instance, Network::None).await?;
    report.engine = engine_text(&program.facts().await?);
    let (line, user) = (task.preparation, Some(ROOT.to_owned()));
    let prepare =
        Command { line, user, env: BTreeMap::new(), time_limit: PREPARATION_MAX, phase: Phase::Setup };
    let prepared = container.shell(program, "prepare", prepare).await?;
    if prepared.exit_code != Some(0) {
        let why = prepared.not_started.unwrap_or(prepared.last_line);
        return Err(Stop::exception("RuntimeError", format!("the repository could not be prepared: {why}")));
    }
    report.setup_ms = Some(setup_ms(program));
    container.workdir = Some(task.folder.to_owned());
    let key = outcome_key(0);
    let outcome: AgentOutcome = match program.known(&key) {
        Some(known) => known,
        None => {
            let outcome = think(program, task, &container).await?;
            program.keep(key, &outcome);
            program.state.agent = None;
            outcome
        }
    };
    outcome::report(report, outcome)?;
    collect(program, task, &container).await
}

/// Carries the agent on to its end, or to the next step that has to be stored.
async fn think(
    program: &mut Program<'_>,
    task: &InstanceTask<'_>,
    container: &Container,
) -> Result<AgentOutcome, Stop> {
    let (agent, thinker, limit) = (task.agent, task.thinker, task.time_limit);
    let machine = Machine::new(agent, thinker, task.instruction, task.folder, limit)?;
    let mind = Mind { agent, machine, thinker, limit, task_step: 0 };
    let (progress, step, act, left) = match mind.need(program.state.agent.clone())? {
        Need::Step(record) => return Err(Stop::Stepped(record)),
        Need::Ask(request) => return Err(Stop::Ask(request)),
        Need::Ended(outcome) => return Ok(outcome),
        Need::Act { progress, step, act, left } => (progress, step, act, left),
    };
    let Act::Run(command) = act else {
        return Err(Stop::refused(format!(
            "the agent `{agent}` needs a terminal, which these items don't have"
        )));
    };
    let (seen, took_ms) = run_command(program, container, (0, step), None, &command, left).await?;
    Err(Stop::Stepped(Box::new(mind.observe(&progress, seen, took_ms, None)?)))
}

/// Collects the change as the file that the script writes. What keeps it from being collected is the agent's doing.
async fn collect(
    program: &mut Program<'_>,
    task: &InstanceTask<'_>,
    container: &Container,
) -> Result<String, Stop> {
    let (line, user, time_limit) = (task.collection, Some(ROOT.to_owned()), task.collection_time_limit);
    let collect = Command { line, user, env: BTreeMap::new(), time_limit, phase: Phase::Agent };
    let lost = |why: &str| {
        Stop::exception(
            WORKSPACE_LOST,
            format!("its change could not be collected after the agent had ended: {why}"),
        )
    };
    let collected = container.shell(program, "collect", collect).await?;
    let too_large = || {
        let why = format!("the agent's change has more than {} bytes", task.change_bytes_max);
        Stop::exception(CHANGE_TOO_LARGE, why)
    };
    if collected.exit_code == Some(task.too_large_exit) {
        return Err(too_large());
    }
    if collected.exit_code != Some(0) {
        return Err(lost(&collected.not_started.unwrap_or(collected.last_line)));
    }
    let mut fetch = container.fetch(&container.id, task.change_path);
    fetch.file_bytes_max = task.change_bytes_max;
    let fetched = program.run(&container.environment, "change", &fetch, Phase::Agent).await?;
    let fetched = fetched.ok_or_else(|| lost("the file is missing"))?;
    if fetched.skipped.iter().any(|file| file.why == SkipReason::TooLong) {
        return Err(too_large());
    }
    let file = fetched.files.into_iter().next().ok_or_else(|| lost("it is no regular file"))?;
    change_text(file.bytes)
}

/// Returns a change as the text that answers hold. A text that isn't the change byte for byte would be another patch.
fn change_text(bytes: Vec<u8>) -> Result<String, Stop> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let before = error.as_bytes().get(..at).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let why = format!(
            "the agent's change isn't UTF-8 in line {line} of the patch: an answer can't hold it as it is, so it isn't verified"
        );
        Stop::exception(CHANGE_NOT_TEXT, why)
    })?;
    let stored = json_text_bytes(&text);
    if stored > CHANGE_JSON_BYTES_MAX {
        let why = format!(
            "the agent's change takes {stored} bytes as JSON; a change takes at most {CHANGE_JSON_BYTES_MAX}"
        );
        return Err(Stop::exception(CHANGE_TOO_LARGE, why));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench_environments::Labels;

    #[test]
    fn pulls_are_repeated_after_longer_and_longer_waits() {
        let waits: Vec<u64> = (1..PULLS_MAX).map(|pulls| pull_wait(pulls).as_secs()).collect();
        assert_eq!(waits, [30, 60, 120, 240, 480, 960, 1_200]);
    }

    #[test]
    fn a_change_is_kept_byte_for_byte_or_refused() {
        let patch = "diff --git a/ä b/ä\r\n+a\rb\u{1}\u{fffd}\r\n\\ No newline";
        assert_eq!(change_text(patch.as_bytes().to_vec()).unwrap(), patch);
        let refusal = |bytes: Vec<u8>| match change_text(bytes) {
            Err(Stop::Exception(exception, _)) => (exception.name, exception.message),
            other => panic!("{other:?}"),
        };
        let (name, why) = refusal(b"diff\n+caf\xe9\n".to_vec());
        assert_eq!(name, CHANGE_NOT_TEXT);
        assert!(why.contains("in line 2 of the patch"), "{why}");
        let (name, why) = refusal(vec![1; CHANGE_JSON_BYTES_MAX / 5]);
        assert_eq!(name, CHANGE_TOO_LARGE);
        assert!(why.contains("as JSON"), "{why}");
    }

    #[test]
    fn what_a_host_lacks_is_said() {
        let labels = Labels { owner: "o".to_owned(), run: "r".to_owned(), sample: "s".to_owned() };
        let image = InstanceImage::Pulled("a/b:1".to_owned());
        let instance = Instance {
            image: &image,
            architecture: Some("amd64"),
            needs_network: true,
            memory_bytes: 1,
            cpus: 1.0,
            disk_bytes_max: 1,
            labels: &labels,
        };
        let message = |architecture: &str, has_network| match check_host(&instance, architecture, has_network)
        {
            Ok(()) => String::new(),
            Err(Stop::Exception(exception, _)) => exception.message,
            Err(other) => panic!("{other:?}"),
        };
        for architecture in ["amd64", "x86_64", ""] {
            assert_eq!(message(architecture, true), "");
            assert!(message(architecture, false).contains("nftables"));
        }
        let other = message("arm64", true);
        assert!(other.contains("for `amd64`") && other.contains("is `arm64`"), "{other}");
    }
}
