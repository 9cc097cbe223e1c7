//! Episodes of a task: the samples of its runs.

use std::collections::HashMap;
use std::time::Duration;

use bench_domain::{EpisodeReport, EpisodeStart, Outcome, SampleRef, TestCounts, Timestamp};
use bench_runs::TERMINAL_TASKS;
use bench_state::{BodyRef, RunWithBenchmarks, SampleRecord, SampleResult, TaskRecord};
use bench_web::{ApiError, Caller};
use futures_util::{StreamExt, TryStreamExt, stream};

use super::progress::{LoadedRun, Progress};
use super::views::{EpisodeView, naive};
use crate::Api;
use crate::cache::tasks::EpisodeFacts;
use crate::context::lock;
use crate::runs::details;

pub(crate) const PENDING: &str = "pending";
pub(crate) const RUNNING: &str = "running";
pub(crate) const PASSED: &str = "passed";
pub(crate) const FAILED: &str = "failed";
pub(crate) const ERROR: &str = "error";

/// Number of bodies to read at once.
const BODIES_AT_ONCE: usize = 16;
/// Maximum number of episodes whose facts are cached.
const CACHED_MAX: usize = 20_000;

impl From<&EpisodeReport> for EpisodeFacts {
    fn from(report: &EpisodeReport) -> Self {
        let tests = report.steps.iter().filter_map(|step| step.tests);
        let tests = tests.fold(TestCounts::default(), |sum, tests| TestCounts {
            total: sum.total.saturating_add(tests.total),
            passed: sum.passed.saturating_add(tests.passed),
            failed: sum.failed.saturating_add(tests.failed),
        });
        let exception = report.last_exception().map(|exception| match exception.message.is_empty() {
            true => exception.name.clone(),
            false => format!("{}: {}", exception.name, exception.message),
        });
        let totals = || report.steps.iter().filter_map(|step| step.agent.as_ref()).map(|agent| agent.totals);
        Self {
            tests,
            duration_ms: report.duration_ms(),
            exception,
            cached_tokens: totals().map(|totals| totals.cached_tokens).reduce(u64::saturating_add),
            // An unknown cost is stored as 0.
            cost_usd: totals()
                .map(|totals| totals.cost_usd)
                .reduce(|sum, cost| sum + cost)
                .filter(|sum| *sum > 0.0),
        }
    }
}

/// Returns the episodes of a task by number, without those of other callers' private runs, and the counts of all.
pub(crate) async fn task_episodes(
    api: &Api,
    task: &TaskRecord,
    caller: &Caller,
) -> Result<(Progress, Vec<EpisodeView>), ApiError> {
    let (mut progress, mut episodes) = (Progress::default(), Vec::new());
    for entry in api.state.task_runs(task).await? {
        let loaded = LoadedRun::load(api, entry).await?;
        let of_run = run_episodes(api, task, &loaded).await?;
        let count = |statuses: &[&str]| {
            of_run.iter().filter(|episode| statuses.contains(&episode.status)).count() as u64
        };
        let done = count(&[PASSED, FAILED, ERROR]);
        progress.add(&loaded, caller, count(&[PASSED]), count(&[PASSED, FAILED]), done);
        if loaded.is_visible_to(caller) {
            episodes.extend(of_run);
        }
    }
    Ok((progress, episodes))
}

/// Returns the episodes of one run of a task.
pub(crate) async fn run_episodes(
    api: &Api,
    task: &TaskRecord,
    loaded: &LoadedRun,
) -> Result<Vec<EpisodeView>, ApiError> {
    let samples = samples(api, loaded, 0, loaded.entry.samples.into()).await?;
    let mut by_number: HashMap<u32, SampleRecord> =
        samples.into_iter().map(|sample| (sample.position.sample, sample)).collect();
    let all =
        (0..loaded.entry.samples).map(|index| episode(api, task, loaded, index, by_number.remove(&index)));
    // The futures are collected first: a borrowing closure would make this future not `Send`.
    let all: Vec<_> = all.collect();
    stream::iter(all).buffered(BODIES_AT_ONCE).try_collect().await
}

/// Returns one episode of a run, with the sample's record.
pub(crate) async fn one_episode(
    api: &Api,
    task: &TaskRecord,
    loaded: &LoadedRun,
    index: u32,
) -> Result<(EpisodeView, Option<SampleRecord>), ApiError> {
    let sample = samples(api, loaded, index.into(), 1).await?.into_iter().next();
    Ok((episode(api, task, loaded, index, sample.clone()).await?, sample))
}

async fn samples(
    api: &Api,
    loaded: &LoadedRun,
    offset: u64,
    count: u64,
) -> Result<Vec<SampleRecord>, ApiError> {
    match loaded.benchmark() {
        Some(benchmark) => Ok(api.state.samples_page(loaded.entry.run, benchmark, offset, count).await?),
        None => Ok(Vec::new()),
    }
}

async fn episode(
    api: &Api,
    task: &TaskRecord,
    loaded: &LoadedRun,
    index: u32,
    sample: Option<SampleRecord>,
) -> Result<EpisodeView, ApiError> {
    let entry = &loaded.entry;
    let start = sample.as_ref().and_then(SampleRecord::episode_start);
    let mut view = EpisodeView {
        id: entry.first_id.saturating_add(index.into()),
        task_id: task.id,
        run_number: entry.first_number.saturating_add(index),
        status: PENDING,
        started_at: None,
        completed_at: None,
        tests_total: 0,
        tests_passed: 0,
        tests_failed: 0,
        logs: None,
        error_message: None,
        duration_seconds: None,
        reward: None,
        input_tokens: None,
        output_tokens: None,
        cached_tokens: None,
        cost_usd: None,
    };
    let finished = sample.as_ref().and_then(|sample| sample.finished.as_ref());
    let (Some(sample), Some(finished)) = (&sample, finished) else {
        let started_at = start.and_then(|start| start.started_at);
        view.started_at = started_at.map(naive);
        view.status = open_status(loaded, start);
        if view.status == ERROR {
            view.error_message = Some(unfinished(loaded).to_owned());
            view.completed_at = loaded.completed_at().map(naive);
            view.duration_seconds = seconds(started_at, loaded.completed_at());
        }
        return Ok(view);
    };
    let facts = match &finished.body {
        Some(body) => facts(api, loaded, sample, body).await?,
        None => EpisodeFacts::default(),
    };
    view.status = finished_status(finished);
    view.reward = finished.verdict.score;
    view.input_tokens = finished.usage.map(|usage| usage.input_tokens);
    view.output_tokens = finished.usage.map(|usage| usage.output_tokens);
    view.cached_tokens = facts.cached_tokens;
    view.cost_usd = facts.cost_usd;
    view.tests_total = facts.tests.total;
    view.tests_passed = facts.tests.passed;
    view.tests_failed = facts.tests.failed;
    let reason = Some(finished.verdict.reason.clone()).filter(|reason| !reason.is_empty());
    view.error_message = facts.exception.or(reason).filter(|_| view.status != PASSED);
    view.completed_at = Some(naive(finished.at));
    let taken = facts.duration_ms.map(Duration::from_millis);
    // Older versions stored no start.
    let started_at =
        start.and_then(|start| start.started_at).or_else(|| taken.map(|taken| before(finished.at, taken)));
    view.started_at = started_at.map(naive);
    view.duration_seconds =
        taken.map(|taken| taken.as_secs_f64()).or_else(|| seconds(started_at, Some(finished.at)));
    Ok(view)
}

fn before(time: Timestamp, taken: Duration) -> Timestamp {
    Timestamp::from_micros(time.as_micros().saturating_sub(i64::try_from(taken.as_micros()).unwrap_or(0)))
}

/// Returns the time from start to end; `None` unless both are known.
fn seconds(started_at: Option<Timestamp>, completed_at: Option<Timestamp>) -> Option<f64> {
    Some(completed_at?.since(started_at?).as_secs_f64())
}

/// Returns the status of an episode that has no result.
fn open_status(loaded: &LoadedRun, start: Option<EpisodeStart>) -> &'static str {
    if loaded.is_over() {
        return ERROR;
    }
    if start.is_some_and(|start| start.is_made()) { RUNNING } else { PENDING }
}

fn finished_status(finished: &SampleResult) -> &'static str {
    match finished.verdict.outcome {
        Outcome::Correct => PASSED,
        outcome if outcome.is_graded() => FAILED,
        _ => ERROR,
    }
}

fn unfinished(loaded: &LoadedRun) -> &'static str {
    match loaded.found {
        None => "the run with this episode was deleted",
        Some(_) => "the run ended before this episode was over",
    }
}

async fn facts(
    api: &Api,
    loaded: &LoadedRun,
    sample: &SampleRecord,
    body: &BodyRef,
) -> Result<EpisodeFacts, ApiError> {
    let key = (loaded.entry.run, sample.position, body.attempt);
    if let Some(facts) = lock(&api.episodes).get(&key) {
        return Ok(facts.clone());
    }
    let facts =
        report(api, loaded, sample, body).await?.map_or_else(EpisodeFacts::default, |it| (&it).into());
    let mut cached = lock(&api.episodes);
    if cached.len() >= CACHED_MAX {
        cached.clear();
    }
    cached.insert(key, facts.clone());
    Ok(facts)
}

/// Reads the report of an episode; `None` if its body is missing or damaged.
pub(crate) async fn report(
    api: &Api,
    loaded: &LoadedRun,
    sample: &SampleRecord,
    body: &BodyRef,
) -> Result<Option<EpisodeReport>, ApiError> {
    let Some(address) = loaded.found.as_ref().and_then(|found| address(found, sample)) else {
        return Ok(None);
    };
    match api.blobs.get_body(&address, body.attempt, Some(&body.sha256)).await {
        Ok(found) => Ok(found.and_then(|(body, _)| body.episode)),
        Err(error @ (bench_blobs::BlobError::Damaged { .. } | bench_blobs::BlobError::TooLarge { .. })) => {
            tracing::error!(run.id = %loaded.entry.run, %error, "An episode cannot be read: {error}");
            Ok(None)
        }
        Err(error) => Err(ApiError::internal(error)),
    }
}

fn address(found: &RunWithBenchmarks, sample: &SampleRecord) -> Option<SampleRef> {
    details::address(&found.run, found.benchmark(TERMINAL_TASKS)?, sample)
}

#[cfg(test)]
mod tests {
    use bench_domain::{AgentOutcome, AgentTotals, EpisodeException, EpisodeStep};

    use super::*;

    #[test]
    fn facts_are_sums_over_the_steps() {
        let tests = |passed, failed| Some(TestCounts { total: passed + failed, passed, failed });
        let exception = EpisodeException { name: "AgentTimeoutError".into(), message: "after 5 s".into() };
        let report = EpisodeReport {
            steps: vec![
                EpisodeStep {
                    agent_ms: Some(1_000),
                    verifier_ms: Some(2_000),
                    tests: tests(2, 1),
                    ..EpisodeStep::default()
                },
                EpisodeStep { exception: Some(exception), tests: tests(1, 0), ..EpisodeStep::default() },
            ],
            setup_ms: Some(500),
            ..EpisodeReport::default()
        };
        let facts = EpisodeFacts::from(&report);
        assert_eq!(facts.tests, TestCounts { total: 4, passed: 3, failed: 1 });
        assert_eq!(facts.duration_ms, Some(3_500));
        assert_eq!(facts.exception.as_deref(), Some("AgentTimeoutError: after 5 s"));
        assert_eq!((facts.cached_tokens, facts.cost_usd), (None, None));
        assert_eq!(EpisodeFacts::from(&EpisodeReport::default()), EpisodeFacts::default());
    }

    #[test]
    fn an_unknown_cost_is_not_zero() {
        let step = |cached_tokens, cost_usd| {
            let totals = AgentTotals { cached_tokens, cost_usd, ..AgentTotals::default() };
            let agent = AgentOutcome {
                end: "completed".into(),
                exception: None,
                prompt: "own".into(),
                elapsed_ms: 1,
                totals,
                records: 1,
            };
            EpisodeStep { agent: Some(agent), ..EpisodeStep::default() }
        };
        for (steps, cached_tokens, cost_usd) in [
            (vec![step(10, 0.25), EpisodeStep::default(), step(20, 0.5)], Some(30), Some(0.75)),
            (vec![step(0, 0.0)], Some(0), None),
        ] {
            let facts = EpisodeFacts::from(&EpisodeReport { steps, ..EpisodeReport::default() });
            assert_eq!((facts.cached_tokens, facts.cost_usd), (cached_tokens, cost_usd));
        }
    }
}
