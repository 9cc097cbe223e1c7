//! A run with episodes as the folder of a Harbor job, which Harbor's viewer opens.
//!
//! Layout and fields are those of Harbor 0.25. A trial's phases have their measured times; they are placed one after the
//! other before its end, since an episode waits between its turns.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use bench_domain::statistics::pass_at_k;
use bench_domain::{Agent, RunId, Timestamp};
use serde_json::{Map, Value, json};

use crate::client::Client;
use crate::episodes::{Episode, episodes, for_each, safe_path};
use crate::exit::Problem;

/// Maximum length of the task's name in the name of a trial, in characters.
const TASK_CHARS_MAX: usize = 32;
/// Number of characters that make the name of a trial unique.
const SUFFIX_CHARS: usize = 7;
/// Values of k for which pass@k is reported besides powers of two: multiples of this.
const PASS_AT_STEP: u64 = 5;

/// The agent of a run, with its model.
#[derive(Debug, Clone)]
struct AgentInfo {
    name: String,
    version: String,
    /// Provider and name.
    model: Option<(String, String)>,
}

/// A trial, as it counts for the whole job.
#[derive(Debug, Clone)]
struct Trial {
    name: String,
    task: String,
    agent: AgentInfo,
    rewards: Option<Map<String, Value>>,
    exception: Option<String>,
    usage: Usage,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Usage {
    input: Option<u64>,
    cached: Option<u64>,
    output: Option<u64>,
    cost_usd: Option<f64>,
}

/// Writes the job's folder into `out`, and returns its path. An existing one is only replaced if `force` is true, and only
/// when the new one is complete.
pub(super) async fn write(client: &Client, run: RunId, out: &Path, force: bool) -> anyhow::Result<PathBuf> {
    let view: Value = client.get(&format!("/api/runs/{run}")).await?;
    let found = episodes(client, run).await?;
    let job = out.join(job_name(&view, run));
    match job.symlink_metadata() {
        Ok(there) if !there.is_dir() => {
            return Err(Problem::usage(format!("--out: `{}` is not a folder", job.display()))
                .hint("remove it, or give another folder")
                .into());
        }
        Ok(_) if !force => {
            return Err(Problem::usage(format!("--out: `{}` exists already", job.display()))
                .hint("give another folder, or --force to replace it")
                .into());
        }
        Ok(_) | Err(_) => {}
    }
    let unwritable = || format!("could not write into `{}`", out.display());
    std::fs::create_dir_all(out).with_context(unwritable)?;
    // Another export of the same run has a folder of its own.
    let own = tempfile::Builder::new().prefix(".partial-").tempdir_in(out).with_context(unwritable)?;
    let partial = own.path().join("job");
    std::fs::create_dir(&partial).with_context(unwritable)?;
    let trials = for_each(&found, "Writing", |at| {
        let (view, partial, episode) = (&view, &partial, &found[at]);
        async move { write_trial(client, run, view, episode, partial).await }
    })
    .await?;
    write_json(&partial.join("config.json"), &job_config(&view, &job, &found, &trials))?;
    write_json(&partial.join("result.json"), &job_result(&view, run, &trials))?;
    if job.is_dir() {
        std::fs::remove_dir_all(&job).with_context(|| format!("could not replace `{}`", job.display()))?;
    }
    std::fs::rename(&partial, &job).with_context(|| format!("could not write `{}`", job.display()))?;
    Ok(job)
}

/// Returns a name such as Harbor's, with the run's first digits.
fn job_name(view: &Value, run: RunId) -> String {
    let created: Option<Timestamp> = serde_json::from_value(view["created_at"].clone()).ok();
    // `2026-11-26T02:24:07.310185Z`
    let time = created.map(|time| time.to_string()).unwrap_or_default();
    let time: String = time.chars().take(19).map(|c| if c == ':' { '-' } else { c }).collect();
    let digits: String = run.to_string().chars().take(8).collect();
    format!("{}__{digits}", time.replace('T', "__"))
}

async fn write_trial(
    client: &Client,
    run: RunId,
    view: &Value,
    episode: &Episode,
    job: &Path,
) -> anyhow::Result<Trial> {
    let name = trial_name(episode);
    let folder = job.join(&name);
    std::fs::create_dir_all(&folder).with_context(|| format!("could not create `{}`", folder.display()))?;
    episode.write(client, run, &folder).await?;
    let trajectory = std::fs::read(folder.join("agent/trajectory.json")).ok();
    let trajectory: Value =
        trajectory.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    let trial = trial(view, episode, name, &trajectory);
    if let Some(exception) = exception_of(&episode.report) {
        let text = format!("{}: {}\n", exception["name"].as_str().unwrap_or_default(), message_of(exception));
        std::fs::write(folder.join("exception.txt"), text)?;
    }
    write_json(&folder.join("config.json"), &trial_config(run, &trial))?;
    write_json(&folder.join("result.json"), &trial_result(run, episode, &trial))?;
    Ok(trial)
}

fn write_json(path: &Path, value: &Value) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(value)?;
    std::fs::write(path, text).with_context(|| format!("could not write `{}`", path.display()))
}

/// Returns the name of a trial: that of its task, and characters of the sample's id.
fn trial_name(episode: &Episode) -> String {
    let digits: String = episode.id.chars().filter(char::is_ascii_alphanumeric).take(SUFFIX_CHARS).collect();
    let short = short_task(episode.task()).replace('/', "_");
    let task: String = short.chars().take(TASK_CHARS_MAX).collect();
    safe_path(&format!("{task}__{digits}")).to_string_lossy().into_owned()
}

/// Returns a task's name without the hash of its content, and without its organization.
fn short_task(task: &str) -> &str {
    let name = task.split_once('@').map_or(task, |(name, _)| name);
    name.rsplit_once('/').map_or(name, |(_, name)| name)
}

fn trial(view: &Value, episode: &Episode, name: String, trajectory: &Value) -> Trial {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let agent = text(&episode.report["agent"]).unwrap_or_default();
    let named = Agent::in_place_of_model(&agent);
    let model = match (text(&view["provider"]), text(&view["model_slug"])) {
        (Some(provider), Some(slug)) if named.is_none() => Some((provider, slug)),
        _ => None,
    };
    // A trajectory of an agent that asks no model is a file that the agent wrote itself.
    let trajectory = if model.is_some() { trajectory } else { &Value::Null };
    let (agent, own_version) = match agent.strip_prefix("custom/") {
        Some(title) => match title.split_once('@') {
            Some((name, version)) => (name.to_owned(), Some(version.to_owned())),
            None => (title.to_owned(), None),
        },
        None => (agent, None),
    };
    let version = own_version.or_else(|| text(&trajectory["agent"]["version"]));
    let version = version.unwrap_or_else(|| "1.0.0".to_owned());
    let totals = &trajectory["final_metrics"];
    let usage = match model {
        None => Usage::default(),
        Some(_) => Usage {
            input: totals["total_prompt_tokens"].as_u64().or(episode.input_tokens),
            cached: totals["total_cached_tokens"].as_u64(),
            output: totals["total_completion_tokens"].as_u64().or(episode.output_tokens),
            cost_usd: totals["total_cost_usd"].as_f64(),
        },
    };
    let finished_at = episode.created_at;
    let started_at = finished_at.map(|end| before(end, episode.latency_ms.unwrap_or(0)));
    Trial {
        name,
        task: short_task(episode.task()).to_owned(),
        agent: AgentInfo { name: agent, version, model },
        rewards: episode.report["rewards"].as_object().cloned(),
        exception: exception_of(&episode.report).and_then(|exception| text(&exception["name"])),
        usage,
        started_at,
        finished_at,
    }
}

/// Returns the exception that ended an episode, or the last one of its steps.
fn exception_of(report: &Value) -> Option<&Value> {
    let of_steps = report["episode_steps"].as_array().into_iter().flatten().rev();
    let all = std::iter::once(&report["exception"]).chain(of_steps.map(|step| &step["exception"]));
    all.into_iter().find(|exception| exception.is_object())
}

fn message_of(exception: &Value) -> &str {
    exception["message"].as_str().unwrap_or_default()
}

fn before(end: Timestamp, ms: u64) -> Timestamp {
    Timestamp::from_micros(end.as_micros().saturating_sub(i64::try_from(ms * 1_000).unwrap_or(i64::MAX)))
}

fn agent_config(agent: &AgentInfo) -> Value {
    let model = agent.model.as_ref().map(|(provider, name)| format!("{provider}/{name}"));
    json!({ "name": agent.name, "model_name": model })
}

fn trial_config(run: RunId, trial: &Trial) -> Value {
    json!({
        "task": { "path": trial.task },
        "trial_name": trial.name,
        "trials_dir": "trials",
        "agent": agent_config(&trial.agent),
        "job_id": run.to_string(),
    })
}

fn trial_result(run: RunId, episode: &Episode, trial: &Trial) -> Value {
    let report = &episode.report;
    let steps = report["episode_steps"].as_array().map(Vec::as_slice).unwrap_or_default();
    let sum = |field: &str| -> Option<u64> {
        steps.iter().filter_map(|step| step[field].as_u64()).reduce(u64::saturating_add)
    };
    let mut clock = Clock { now: trial.started_at };
    let setup = clock.phase(report["setup_ms"].as_u64());
    let agent = clock.phase(sum("agent_ms"));
    let verifier = clock.phase(sum("verifier_ms"));
    let checksum = episode.task().split_once('@').map_or("", |(_, hash)| hash);
    let model = trial.agent.model.as_ref();
    // A task without steps has one without a name.
    let named = steps.iter().filter(|step| step["name"].is_string());
    let step_results: Vec<Value> = named
        .map(|step| {
            json!({
                "step_name": step["name"],
                "verifier_result": rewards(step["rewards"].as_object()),
                "exception_info": exception_info(Some(&step["exception"]), trial.finished_at),
            })
        })
        .collect();
    json!({
        "id": episode.id,
        "task_name": trial.task,
        "trial_name": trial.name,
        "trial_uri": format!("bench-runner:{run}/{}", trial.name),
        "task_id": { "path": trial.task },
        "source": Value::Null,
        "task_checksum": checksum,
        "config": trial_config(run, trial),
        "agent_info": {
            "name": trial.agent.name,
            "version": trial.agent.version,
            "model_info": model.map(|(provider, name)| json!({ "name": name, "provider": provider })),
        },
        "agent_result": usage(trial.usage),
        "verifier_result": rewards(trial.rewards.as_ref()),
        "verifier_environment_mode": Value::Null,
        "exception_info": exception_info(exception_of(report), trial.finished_at),
        "started_at": trial.started_at,
        "finished_at": trial.finished_at,
        "environment_setup": setup,
        "agent_setup": Value::Null,
        "agent_execution": agent,
        "verifier": verifier,
        "step_results": if step_results.is_empty() { Value::Null } else { step_results.into() },
    })
}

/// Places phases one after the other.
struct Clock {
    now: Option<Timestamp>,
}

impl Clock {
    fn phase(&mut self, ms: Option<u64>) -> Value {
        let (Some(began), Some(ms)) = (self.now, ms) else { return Value::Null };
        let ended = began.plus(Duration::from_millis(ms));
        self.now = Some(ended);
        json!({ "started_at": began, "finished_at": ended })
    }
}

fn rewards(rewards: Option<&Map<String, Value>>) -> Value {
    rewards.map_or(Value::Null, |rewards| json!({ "rewards": rewards }))
}

fn usage(usage: Usage) -> Value {
    match usage.input.or(usage.output) {
        None => Value::Null,
        Some(_) => json!({
            "n_input_tokens": usage.input,
            "n_cache_tokens": usage.cached,
            "n_output_tokens": usage.output,
            "cost_usd": usage.cost_usd,
        }),
    }
}

fn exception_info(exception: Option<&Value>, at: Option<Timestamp>) -> Value {
    match exception.filter(|exception| exception.is_object()) {
        None => Value::Null,
        Some(exception) => json!({
            "exception_type": exception["name"],
            "exception_message": message_of(exception),
            "exception_traceback": "",
            "occurred_at": at.unwrap_or_default(),
        }),
    }
}

fn job_config(view: &Value, job: &Path, found: &[Episode], trials: &[Trial]) -> Value {
    let mut agents: Vec<Value> = Vec::new();
    for trial in trials {
        let config = agent_config(&trial.agent);
        if !agents.contains(&config) {
            agents.push(config);
        }
    }
    let mut tasks: Vec<Value> = Vec::new();
    for trial in trials {
        let task = json!({ "path": trial.task });
        if !tasks.contains(&task) {
            tasks.push(task);
        }
    }
    let attempts = found.iter().map(|episode| episode.sample + 1).max().unwrap_or(1);
    let name = job.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    json!({
        "job_name": name,
        "jobs_dir": "jobs",
        "n_attempts": view["samples"].as_u64().unwrap_or(attempts.into()).max(1),
        "agents": agents,
        "tasks": tasks,
    })
}

fn job_result(view: &Value, run: RunId, trials: &[Trial]) -> Value {
    let mut by_agent: BTreeMap<String, Vec<&Trial>> = BTreeMap::new();
    for trial in trials {
        let model = trial.agent.model.as_ref().map(|(_, name)| format!("__{name}")).unwrap_or_default();
        by_agent.entry(format!("{}{model}__adhoc", trial.agent.name)).or_default().push(trial);
    }
    let evals: Map<String, Value> =
        by_agent.into_iter().map(|(key, trials)| (key, evaluation(&trials))).collect();
    let sum = |of: fn(&Usage) -> Option<u64>| -> Option<u64> {
        trials.iter().filter_map(|trial| of(&trial.usage)).reduce(u64::saturating_add)
    };
    let cost: Option<f64> = trials.iter().filter_map(|trial| trial.usage.cost_usd).reduce(|a, b| a + b);
    let planned = view["benchmarks"].as_array().into_iter().flatten();
    let planned: u64 = planned.filter_map(|benchmark| benchmark["planned_samples"].as_u64()).sum();
    let total = planned.max(trials.len() as u64);
    json!({
        "id": run.to_string(),
        "started_at": view["started_at"].as_str().or(view["created_at"].as_str()),
        "updated_at": view["completed_at"],
        "finished_at": view["completed_at"],
        "n_total_trials": total,
        "stats": {
            "n_completed_trials": trials.len(),
            "n_errored_trials": trials.iter().filter(|trial| trial.exception.is_some()).count(),
            "n_running_trials": 0,
            "n_pending_trials": total - trials.len() as u64,
            "n_cancelled_trials": 0,
            "n_retries": 0,
            "evals": evals,
            "n_input_tokens": sum(|usage| usage.input),
            "n_cache_tokens": sum(|usage| usage.cached),
            "n_output_tokens": sum(|usage| usage.output),
            "cost_usd": cost,
        },
    })
}

/// Returns the statistics of an agent's trials.
#[allow(clippy::cast_precision_loss)] // trials are few
fn evaluation(trials: &[&Trial]) -> Value {
    let graded: Vec<&&Trial> = trials.iter().filter(|trial| trial.rewards.is_some()).collect();
    let mut reward_stats: BTreeMap<&str, BTreeMap<String, Vec<&str>>> = BTreeMap::new();
    let mut exception_stats: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for trial in trials {
        for (key, value) in trial.rewards.iter().flatten() {
            reward_stats.entry(key).or_default().entry(value.to_string()).or_default().push(&trial.name);
        }
        if let Some(exception) = &trial.exception {
            exception_stats.entry(exception).or_default().push(&trial.name);
        }
    }
    let rewards: Vec<Option<f64>> = trials.iter().map(|trial| only_reward(trial)).collect();
    let mean = rewards.iter().map(|reward| reward.unwrap_or(0.0)).sum::<f64>() / trials.len() as f64;
    json!({
        "n_trials": graded.len(),
        "n_errors": trials.iter().filter(|trial| trial.exception.is_some()).count(),
        "metrics": [{ "mean": mean }],
        "pass_at_k": pass_at(trials),
        "reward_stats": reward_stats,
        "exception_stats": exception_stats,
    })
}

/// Returns the reward of a trial with exactly one.
fn only_reward(trial: &Trial) -> Option<f64> {
    let rewards = trial.rewards.as_ref()?;
    rewards.values().next().filter(|_| rewards.len() == 1)?.as_f64()
}

/// Returns the mean of the tasks' pass@k, where every trial has one reward of 0 or 1, or none.
#[allow(clippy::cast_precision_loss)] // trials are few
fn pass_at(trials: &[&Trial]) -> BTreeMap<u64, f64> {
    let is_binary = |trial: &&&Trial| match (&trial.rewards, only_reward(trial)) {
        (None, _) => true,
        (Some(_), Some(reward)) => reward.abs() < f64::EPSILON || (reward - 1.0).abs() < f64::EPSILON,
        (Some(_), None) => false,
    };
    if !trials.iter().all(|trial| is_binary(&trial)) {
        return BTreeMap::new();
    }
    let mut by_task: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for trial in trials {
        let (n, c) = by_task.entry(&trial.task).or_default();
        *n += 1;
        *c += u64::from(only_reward(trial).is_some_and(|reward| reward > 0.5));
    }
    let fewest = by_task.values().map(|(n, _)| *n).min().unwrap_or(0);
    let is_reported = |k: &u64| k.is_power_of_two() || k.is_multiple_of(PASS_AT_STEP);
    (2..=fewest)
        .filter(is_reported)
        .map(|k| {
            let of_tasks = by_task.values().filter_map(|(n, c)| pass_at_k(*n, *c, k));
            (k, of_tasks.sum::<f64>() / by_task.len() as f64)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(name: &str, task: &str, reward: Option<f64>, exception: Option<&str>) -> Trial {
        Trial {
            name: name.to_owned(),
            task: task.to_owned(),
            agent: AgentInfo { name: "bash".to_owned(), version: "1".to_owned(), model: None },
            rewards: reward.map(|reward| Map::from_iter([("reward".to_owned(), reward.into())])),
            exception: exception.map(str::to_owned),
            usage: Usage::default(),
            started_at: None,
            finished_at: None,
        }
    }

    #[test]
    fn a_missing_reward_counts_as_none_earned() {
        let trials = [
            trial("a1", "a", Some(1.0), None),
            trial("a2", "a", None, Some("VerifierTimeoutError")),
            trial("b1", "b", Some(0.0), None),
            trial("b2", "b", Some(0.0), None),
        ];
        let found = evaluation(&trials.iter().collect::<Vec<_>>());
        assert_eq!((&found["n_trials"], &found["n_errors"]), (&3.into(), &1.into()));
        assert_eq!(found["metrics"][0]["mean"], 0.25);
        assert_eq!(found["pass_at_k"], json!({ "2": 0.5 }));
        assert_eq!(found["exception_stats"], json!({ "VerifierTimeoutError": ["a2"] }));
        assert_eq!(found["reward_stats"], json!({ "reward": { "0.0": ["b1", "b2"], "1.0": ["a1"] } }));
    }

    #[test]
    fn pass_at_k_is_the_usual_estimate() {
        let trials: Vec<Trial> =
            (0..6).map(|n| trial("x", "a", Some(f64::from(u8::from(n < 2))), None)).collect();
        let found = pass_at(&trials.iter().collect::<Vec<_>>());
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), [2, 4, 5]);
        // 1 - C(4,2)/C(6,2) = 1 - 6/15.
        assert!((found[&2] - 0.6).abs() < 1e-12 && (found[&5] - 1.0).abs() < 1e-12, "{found:?}");
        let partial = [trial("x", "a", Some(0.5), None), trial("y", "a", Some(1.0), None)];
        assert!(pass_at(&partial.iter().collect::<Vec<_>>()).is_empty());
    }

    #[test]
    fn trials_are_named_after_their_task() {
        assert_eq!(short_task("bench-runner/fix-csv@2d34b5572394"), "fix-csv");
        assert_eq!(short_task("plain"), "plain");
    }
}
