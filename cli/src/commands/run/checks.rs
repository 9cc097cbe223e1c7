//! Checks before anything is queued: the model, its judge and its user model must be callable.

use std::env;

use bench_domain::{ModelRole, Secret};
use bench_inference::{Endpoint, EndpointError, InferenceConfig, ModelSource};

use super::models::Model;
use super::order::Plan;
use crate::exit::Problem;
use crate::helper_keys::{JUDGE_VARIABLE, USER_VARIABLE};
use crate::judge_name::{MODEL_VARIABLE, NamedJudge};
use crate::output;
use bench_stack::StackOptions;
use bench_stack::sandboxes::SandboxSettings;
use bench_stack::sandboxes::python::missing_packages;

/// Fails before anything is queued if a provider lacks its settings.
pub(super) fn check_providers(plan: &Plan, key: Option<&Secret>) -> anyhow::Result<()> {
    let inference = InferenceConfig::from_vars(|name| env::var(name).ok());
    let inference = inference.map_err(|error| Problem::usage(error.to_string()))?;
    for Model { name, source, .. } in &plan.models {
        let Some(provider) = source.and_then(ModelSource::provider) else { continue };
        let endpoint = match (&plan.base_url, key) {
            (Some(base_url), key) => Endpoint::new(provider, base_url, key.cloned()),
            (None, Some(key)) => inference.endpoint_with_key(provider, key.clone()),
            (None, None) => inference.endpoint(provider),
        };
        endpoint.map_err(|error| {
            Problem::usage(format!("could not call {name}: {error}"))
                .hint("set the variable in the environment or in `.env`, or give --base-url or --api-key-env")
        })?;
    }
    Ok(())
}

/// Fails before anything is queued if episodes need a container engine, and this machine has none. That of a separate sandbox
/// service is unknown and not checked.
pub(super) fn check_engine(plan: &Plan, options: &StackOptions) -> anyhow::Result<()> {
    // Conversations run in sandboxes without containers.
    let needs_engine = |name: &&String| {
        bench_benchmarks::find(name).is_some_and(|known| known.has_agent() && known.dialogue().is_none())
    };
    let Some(benchmark) = plan.benchmarks.iter().find(needs_engine) else { return Ok(()) };
    let Some(settings) = own_sandboxes(options)? else { return Ok(()) };
    let problem = match settings.engine.expect_any() {
        Some(Ok(())) => return Ok(()),
        Some(Err(error)) => error.to_string(),
        None => "BENCH_SANDBOX_ENGINE is `none`".to_owned(),
    };
    Err(Problem::failure(format!("{benchmark} needs a container engine: {problem}"))
        .hint("`bench doctor` checks the engine; nothing was ordered")
        .into())
}

/// Fails before any model is called if the sandboxes of this machine lack packages that grading needs. The packages of
/// a separate sandbox service are unknown and not checked.
pub(super) async fn check_packages(plan: &Plan, options: &StackOptions) -> anyhow::Result<()> {
    let Some((benchmark, facts)) = plan.executed().find(|(_, facts)| !facts.packages.is_empty()) else {
        return Ok(());
    };
    let Some(settings) = own_sandboxes(options)? else { return Ok(()) };
    let environment = settings.python()?;
    let missing_packages = missing_packages(environment.as_ref(), facts.packages).await;
    if missing_packages.is_empty() {
        return Ok(());
    }
    let message = format!(
        "{benchmark} can't be graded: the Python of the sandboxes lacks {}",
        missing_packages.join(", ")
    );
    Err(Problem::failure(message)
        .hint("`bench sandy setup` installs the packages; the model was not asked")
        .into())
}

/// Returns the settings of this machine's sandboxes; `None` if a separate service is configured.
fn own_sandboxes(options: &StackOptions) -> anyhow::Result<Option<SandboxSettings>> {
    let var = |name: &str| options.vars.get(name).filter(|value| !value.trim().is_empty()).cloned();
    if var("SANDY_BASE_URL").is_some() {
        return Ok(None);
    }
    Ok(Some(SandboxSettings::from_vars(&options.data_dir, options.sandbox_helper.clone(), var)?))
}

/// Fails before anything is queued if a benchmark needs a judge and none is usable.
pub(super) fn check_judge(
    plan: &Plan,
    key: Option<&Secret>,
    judge_key: Option<&Secret>,
) -> anyhow::Result<()> {
    let Some((benchmark, judge)) = plan.judged() else {
        if plan.judge.is_given {
            output::note("--judge-model is not used: none of the benchmarks needs a judge");
        }
        return Ok(());
    };
    if let Some(problem) = &plan.judge.unusable {
        return Err(Problem::usage(problem.clone()).into());
    }
    let Some(named) = &plan.judge.named else {
        if plan.models.iter().all(|model| model.source == Some(ModelSource::Oracle)) {
            return Ok(());
        }
        let message = format!("{benchmark} needs a judge, and none was given");
        return Err(Problem::usage(message)
            .hint(format!(
                "give one with --judge-model PROVIDER/MODEL, or set {MODEL_VARIABLE}; the authors of {benchmark} use {}",
                judge.metadata().official_model
            ))
            .into());
    };
    let base_url = plan.judge_base_url.as_deref();
    let key = judge_key.or(key.filter(|_| shares_provider(plan, named, base_url)));
    check_named_helper(ModelRole::Judge, named, base_url, key)
}

/// Returns true if a judge or user model has the address of all measured models, so that a key for them is for it, too.
fn shares_provider(plan: &Plan, named: &NamedJudge, base_url: Option<&str>) -> bool {
    plan.base_url.as_deref() == base_url && plan.models.iter().all(|model| model.source == named.source)
}

/// Fails before anything is queued if a benchmark simulates users and no model for them is usable.
pub(super) fn check_user_model(
    plan: &Plan,
    key: Option<&Secret>,
    user_key: Option<&Secret>,
) -> anyhow::Result<()> {
    let Some((benchmark, protocol)) = plan.conversation() else {
        if plan.user.is_given {
            output::note("--user-model is not used: none of the benchmarks simulates users");
        }
        return Ok(());
    };
    if plan.models.iter().any(|model| model.replay.is_some()) {
        let message = format!("{benchmark} has conversations, which stored responses can't answer");
        return Err(Problem::usage(message)
            .hint("`--model oracle` plays the right actions, and asks no model")
            .into());
    }
    let asks =
        plan.models.iter().any(|model| !matches!(model.source, Some(ModelSource::Oracle | ModelSource::Nop)));
    if !asks {
        return Ok(());
    }
    if let Some(named) = &plan.user.named {
        let base_url = plan.user_base_url.as_deref();
        let key = user_key.or(key.filter(|_| shares_provider(plan, named, base_url)));
        return check_named_helper(ModelRole::UserModel, named, base_url, key);
    }
    let message = format!("{benchmark} simulates users by a model of its own, and none was given");
    Err(Problem::usage(message)
        .hint(format!(
            "give one with --user-model PROVIDER/MODEL; the authors of {benchmark} use {}",
            protocol.user().official_model
        ))
        .into())
}

/// Fails before anything is queued if this judge or user model lacks its settings.
pub(crate) fn check_named_helper(
    role: ModelRole,
    named: &NamedJudge,
    base_url: Option<&str>,
    key: Option<&Secret>,
) -> anyhow::Result<()> {
    let Some(provider) = named.source.and_then(ModelSource::provider) else { return Ok(()) };
    let inference = InferenceConfig::from_vars(|name| env::var(name).ok());
    let inference = inference.map_err(|error| Problem::usage(error.to_string()))?;
    let endpoint = match (base_url, key) {
        (Some(base_url), key) => Endpoint::new(provider, base_url, key.cloned()),
        (None, Some(key)) => inference.endpoint_with_key(provider, key.clone()),
        (None, None) => inference.endpoint(provider),
    };
    let Err(error) = endpoint else { return Ok(()) };
    let (flag, variable) = match role {
        ModelRole::UserModel => ("--user-base-url", USER_VARIABLE),
        ModelRole::Judge | ModelRole::Model => ("--judge-base-url", JUDGE_VARIABLE),
    };
    let role = role.label();
    let hint = match error {
        EndpointError::NoBaseUrl { .. } => {
            format!("give it with {flag} URL, or set {}", provider.base_url_variable)
        }
        _ => format!("{variable} is a key for the {role} alone"),
    };
    Err(Problem::usage(format!("could not call the {role} {}: {error}", named.name)).hint(hint).into())
}
