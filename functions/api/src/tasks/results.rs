//! Results of a task over all of its orders: those of its own routes, and those of runs that name it.

use bench_domain::{Outcome, RunId};
use bench_runs::TERMINAL_TASKS;
use bench_state::{BenchmarkRecord, RunRecord, RunWithBenchmarks, SampleRecord, TaskOrder, TaskRecord};
use bench_tasks::item_id;
use bench_web::ApiError;
use bench_web::views::benchmark_counts;
use futures_util::{StreamExt, TryStreamExt, stream};

use super::progress::is_over;
use crate::Api;
use crate::cache::tasks::TaskResultsView;
use crate::context::lock;

/// Number of runs of a task to read at once.
const RUNS_AT_ONCE: usize = 8;
/// Maximum number of runs of tasks whose results are cached.
const CACHED_MAX: usize = 20_000;

/// Counts the episodes of a task over all of its runs.
///
/// Costs two queries for the task and a batch read for 100 of its runs. Runs that are over are read once by a process, and
/// of runs with several tasks only this task's samples.
pub(crate) async fn results(api: &Api, task: &TaskRecord) -> Result<TaskResultsView, ApiError> {
    let orders = api.state.runs_with_task(task.id).await?;
    let runs: Vec<RunId> = orders.iter().map(|order| order.run).collect();
    let records = api.state.runs(&runs).await?;
    // The futures are collected first: a borrowing closure would make this future not `Send`.
    let reads: Vec<_> = records
        .into_iter()
        .filter_map(|run| {
            let order = orders.iter().find(|order| order.run == run.spec.id)?;
            Some(results_of_run(api, task, *order, run))
        })
        .collect();
    let all: Vec<TaskResultsView> = stream::iter(reads).buffered(RUNS_AT_ONCE).try_collect().await?;
    Ok(all.into_iter().fold(TaskResultsView::default(), TaskResultsView::plus))
}

/// Counts the episodes of a task in a run.
async fn results_of_run(
    api: &Api,
    task: &TaskRecord,
    order: TaskOrder,
    run: RunRecord,
) -> Result<TaskResultsView, ApiError> {
    let key = (task.id, order.run);
    if !run.state.status().is_open()
        && let Some((generation, results)) = lock(&api.task_results).get(&key)
        && *generation == run.generation
    {
        return Ok(*results);
    }
    let Some(found) = api.state.run_with_benchmarks(order.run).await? else {
        return Ok(TaskResultsView::default());
    };
    let counts = counts(api, task, order, &found).await?;
    let is_over = is_over(&found);
    let results = counts.results(is_over);
    if is_over {
        let mut cached = lock(&api.task_results);
        if cached.len() >= CACHED_MAX {
            cached.clear();
        }
        cached.insert(key, (found.run.generation, results));
    }
    Ok(results)
}

/// Episodes of a task in a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    planned: u64,
    over: u64,
    graded: u64,
    passed: u64,
    /// Episodes with a reward between 0 and 1; `None` while they aren't counted.
    partial: Option<u64>,
}

impl Counts {
    fn results(self, is_over: bool) -> TaskResultsView {
        let passed = self.passed.min(self.planned);
        let failed = self.graded.min(self.planned).saturating_sub(passed);
        // What a run that is over left undone will never be done.
        let ended = if is_over { self.planned } else { self.over.min(self.planned) };
        TaskResultsView {
            runs: 1,
            open_runs: u64::from(!is_over),
            episodes: self.planned,
            passed,
            failed,
            partial: self.partial,
            errors: ended.saturating_sub(passed + failed),
            ..TaskResultsView::default()
        }
        .with_status()
    }

    fn of_samples(samples: &[SampleRecord]) -> Self {
        let outcomes = || samples.iter().filter_map(|sample| Some(sample.finished.as_ref()?.verdict.outcome));
        let count = |is: &dyn Fn(Outcome) -> bool| outcomes().filter(|outcome| is(*outcome)).count() as u64;
        Self {
            planned: samples.len() as u64,
            over: count(&|_| true),
            graded: count(&Outcome::is_graded),
            passed: count(&|outcome| outcome == Outcome::Correct),
            partial: Some(count(&|outcome| outcome == Outcome::Partial)),
        }
    }
}

async fn counts(
    api: &Api,
    task: &TaskRecord,
    order: TaskOrder,
    found: &RunWithBenchmarks,
) -> Result<Counts, ApiError> {
    let run = found.run.spec.id;
    let planned = found.run.spec.samples.unwrap_or(1).into();
    let unplanned = Counts { planned, partial: Some(0), ..Counts::default() };
    let Some((benchmark, plan)) =
        found.benchmark(TERMINAL_TASKS).and_then(|benchmark| Some((benchmark, benchmark.plan.as_ref()?)))
    else {
        return Ok(unplanned);
    };
    if order.tasks == 1 {
        let counts = benchmark_counts(&api.state, run, benchmark).await?;
        let report = benchmark.state.report();
        return Ok(Counts {
            planned: plan.samples(),
            over: counts.done,
            graded: counts.graded,
            passed: counts.correct,
            partial: report.map(|report| report.outcomes.get(Outcome::Partial)),
        });
    }
    let samples = match position(api, task, run, benchmark).await? {
        Some(item) => {
            let per_item = u64::from(plan.samples_per_item.max(1));
            api.state.samples_page(run, benchmark, u64::from(item).saturating_mul(per_item), per_item).await?
        }
        // The order took a part of its tasks only.
        None => Vec::new(),
    };
    Ok(Counts::of_samples(&samples))
}

/// Returns the position of a task among the items of a run.
async fn position(
    api: &Api,
    task: &TaskRecord,
    run: RunId,
    benchmark: &BenchmarkRecord,
) -> Result<Option<u32>, ApiError> {
    let id = item_id(task);
    let first = api.state.first_samples(run, benchmark, u64::MAX).await?;
    let sample = first.iter().find(|sample| sample.source_id.as_ref() == Some(&id));
    Ok(sample.map(|sample| sample.position.item))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_run_left_undone_has_no_grade() {
        let counts = Counts { planned: 10, over: 6, graded: 5, passed: 2, partial: Some(1) };
        let open = counts.results(false);
        assert_eq!((open.open_runs, open.passed, open.failed, open.errors), (1, 2, 3, 1));
        assert_eq!((open.episodes, open.status), (10, "running"));
        let over = counts.results(true);
        assert_eq!((over.open_runs, over.passed, over.failed, over.errors), (0, 2, 3, 5));
        assert_eq!(over.status, "completed");
        let sum = open.plus(over);
        assert_eq!((sum.runs, sum.open_runs, sum.episodes, sum.partial), (2, 1, 20, Some(2)));
        assert_eq!(sum.status, "running");
        let uncounted = Counts { partial: None, ..counts }.results(false);
        assert_eq!(over.plus(uncounted).partial, None);
        assert_eq!(TaskResultsView::default().plus(TaskResultsView::default()).status, "pending");
    }
}
