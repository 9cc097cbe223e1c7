//! Verification: `[verifier]` of the task and of its steps.

use std::time::Duration;

use super::{artifact, common, environment};
use crate::model::{CollectHook, Environment, Grading, Verifier, VerifierEnvironment};
use crate::node::Fields;
use crate::refusal::{ContentProblem, FormatProblem, Refusal};
use crate::tree::Tree;
use crate::variables::Variables;

const TIMEOUT: Duration = Duration::from_secs(600);
const COLLECT_TIMEOUT: Duration = Duration::from_secs(60);
const TEST_SCRIPT: &str = "test.sh";
/// Top folder of the tests.
const TESTS: &str = "tests";

/// Table `[verifier]` of the task or of a step.
pub(super) struct VerifierTable {
    timeout: Option<Duration>,
    env: Variables,
    user: Option<crate::model::User>,
    network: Option<crate::network::NetworkPolicy>,
    collect: Vec<CollectHook>,
    is_separate: Option<bool>,
    environment: Option<Environment>,
    has_os: bool,
}

impl VerifierTable {
    /// Reads the table of the task or of a step.
    pub(super) fn read(owner: &Fields<'_>) -> Result<Self, Refusal> {
        const MODE: &str = "environment_mode";
        let Some(fields) = owner.table("verifier")? else {
            return Ok(Self {
                timeout: None,
                env: Variables::default(),
                user: None,
                network: None,
                collect: Vec::new(),
                is_separate: None,
                environment: None,
                has_os: false,
            });
        };
        let own = fields.table("environment")?;
        let is_separate = match fields.text(MODE)? {
            None => own.is_some().then_some(true),
            Some("separate") => Some(true),
            Some("shared") if own.is_some() => return Err(fields.conflict("environment", MODE)),
            Some("shared") => Some(false),
            Some(other) => return Err(fields.invalid(MODE, other, "`shared` or `separate`")),
        };
        Ok(Self {
            timeout: fields.time_limit("timeout_sec")?,
            env: common::variables(&fields, "env")?,
            user: common::user(&fields)?,
            network: common::network(&fields)?,
            collect: fields.tables("collect")?.iter().map(read_hook).collect::<Result<_, _>>()?,
            is_separate,
            has_os: own.as_ref().is_some_and(|own| own.has("os")),
            environment: own.as_ref().map(environment::read_table).transpose()?,
        })
    }
}

fn read_hook(hook: &Fields<'_>) -> Result<CollectHook, Refusal> {
    let command = hook.required_text("command")?;
    if command.trim().is_empty() {
        return Err(hook.refuse("command", FormatProblem::MissingField { key: hook.key("command") }));
    }
    Ok(CollectHook {
        command: command.to_owned(),
        service: artifact::service(hook, "service")?.unwrap_or_else(|| environment::SERVICE.to_owned()),
        timeout: hook.time_limit("timeout_sec")?.unwrap_or(COLLECT_TIMEOUT),
        user: common::user(hook)?,
    })
}

/// Combines the tables of task and step, and looks up the test script and the environment.
///
/// Values of a step win over those of the task, except for collect hooks, of which both run.
pub(super) fn combine(
    task: &VerifierTable,
    step: Option<(&str, &VerifierTable)>,
    agent_environment: &Environment,
    tree: &Tree,
) -> Result<Verifier, Refusal> {
    let own = step.map(|(_, table)| table);
    let first = |pick: fn(&VerifierTable) -> Option<Duration>| own.and_then(pick).or_else(|| pick(task));
    let is_separate = own.and_then(|own| own.is_separate).or(task.is_separate).unwrap_or(false);
    let step_tests = step.map(|(name, _)| format!("steps/{name}/{TESTS}"));
    let environment = if is_separate {
        separate(task, own, step_tests.as_deref(), agent_environment, tree)
    } else {
        VerifierEnvironment::Shared
    };
    let script = match &environment {
        VerifierEnvironment::Separate { has_tests: true, .. } => None,
        _ => Some(find_script(step_tests.as_deref(), tree)?),
    };
    Ok(Verifier {
        timeout: first(|table| table.timeout).unwrap_or(TIMEOUT),
        env: own.map_or_else(|| task.env.clone(), |own| task.env.extended_by(&own.env)),
        user: own.and_then(|own| own.user.clone()).or_else(|| task.user.clone()),
        network: own.and_then(|own| own.network.clone()).or_else(|| task.network.clone()),
        collect: task.collect.iter().chain(own.iter().flat_map(|own| &own.collect)).cloned().collect(),
        environment,
        script,
        grading: Grading::RewardFile,
    })
}

/// Returns the definition of a separate environment: an image or a build with the tests of the step, then of the task,
/// else the agent's own definition.
fn separate(
    task: &VerifierTable,
    step: Option<&VerifierTable>,
    step_tests: Option<&str>,
    agent_environment: &Environment,
    tree: &Tree,
) -> VerifierEnvironment {
    let declared = step.and_then(|step| step.environment.as_ref()).or(task.environment.as_ref());
    let has_os = step.filter(|step| step.environment.is_some()).unwrap_or(task).has_os;
    let mut environment = declared.unwrap_or(agent_environment).clone();
    let of_step = step_tests.map(|folder| (step.and_then(|step| step.environment.as_ref()), folder));
    for (declared, folder) in of_step.into_iter().chain([(task.environment.as_ref(), TESTS)]) {
        let image = declared.and_then(|declared| declared.image.clone());
        environment::place(&mut environment, tree, folder);
        if image.is_some() || environment.dockerfile.is_some() || environment.compose_file.is_some() {
            environment.image = image;
            return VerifierEnvironment::Separate { environment: Box::new(environment), has_tests: true };
        }
    }
    environment::place(&mut environment, tree, environment::FOLDER);
    environment.image = agent_environment.image.clone();
    if !has_os {
        environment.os = agent_environment.os;
    }
    VerifierEnvironment::Separate { environment: Box::new(environment), has_tests: false }
}

/// Returns the path of the test script: the step's, else the task's.
fn find_script(step_tests: Option<&str>, tree: &Tree) -> Result<String, Refusal> {
    let paths = step_tests.into_iter().chain([TESTS]).map(|folder| format!("{folder}/{TEST_SCRIPT}"));
    let missing = || ContentProblem::MissingFile {
        advice: "add the script that tests the result and writes the reward",
    };
    let expected = format!("{}/{TEST_SCRIPT}", step_tests.unwrap_or(TESTS));
    paths.into_iter().find(|path| tree.has(path)).ok_or_else(|| Refusal::file(expected, missing()))
}
