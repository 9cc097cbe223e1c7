//! A whole run.

use std::collections::BTreeMap;

use bench_domain::eta::{EtaBenchmark, EtaRun};
use bench_domain::run::RunStatus;
use bench_domain::{
    BenchmarkName, Code, FailureReason, ModelId, RunId, RunLabels, RunSpec, RunTemplate, Subset, Timestamp,
    Visibility,
};
use bench_state::{RunWithBenchmarks, ShardCount};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::error::CodeSchema;

use super::waiting::is_stalled;
use super::{
    BudgetView, CostView, GenerationView, JudgeOrderView, LimitsView, RejudgesView, RunBenchmarkView,
    SpentView, WaitingView, share,
};

/// A run with its benchmarks.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct RunView {
    /// Id of the run.
    #[schema(value_type = String, format = "uuid")]
    pub id: RunId,
    /// Id of the model in the catalog.
    #[schema(value_type = String, format = "uuid")]
    pub model_id: ModelId,
    /// Name of the model at its provider.
    pub model_slug: String,
    /// Source of the answers: the name of a provider, `oracle`, `nop`, `custom` (an uploaded agent) or `replay`.
    pub provider: String,
    /// Share of the items, in percent.
    pub subset_pct: u32,
    /// Number of items; takes precedence over `subset_pct`.
    pub subset_count: Option<u64>,
    /// Seed that selects the items; null uses the run's id.
    pub subset_seed: Option<String>,
    /// Status: `queued`, `running`, `succeeded`, `failed` or `canceled`.
    #[schema(value_type = String)]
    pub status: RunStatus,
    /// Benchmarks as ordered; null means all.
    pub selected_benchmarks: Option<Vec<String>>,
    /// Unweighted mean of the benchmarks' scores; null unless the run succeeded. `overall_score_label` describes it.
    pub overall_score: Option<f64>,
    /// Reason why the run failed.
    pub error_message: Option<String>,
    /// Always null; kept for clients of the compatible system.
    #[schema(value_type = Option<Object>)]
    pub provider_metadata: Option<Map<String, Value>>,
    /// Time at which work began.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    /// Time at which the run ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub completed_at: Option<Timestamp>,
    /// Time of the order.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Benchmarks of the run, in its order.
    pub benchmarks: Vec<RunBenchmarkView>,

    /// Name that its owner gave the run; null for none.
    pub name: Option<String>,
    /// Tags that its owner gave the run.
    pub tags: Vec<String>,
    /// Notes of its owner, one or more lines; null for none.
    pub notes: Option<String>,
    /// Visibility to callers other than the owner: `public`, `unlisted` (in no list, readable by its id) or `private`.
    #[schema(value_type = String)]
    pub visibility: Visibility,
    /// True if the run belongs to the caller.
    pub is_mine: bool,

    /// Name of the model with its provider, as in orders.
    pub model: String,
    /// Host of the provider's base URL, with the port unless it is the scheme's default; null for models that aren't
    /// called over the network, and in runs of older versions.
    pub endpoint_host: Option<String>,
    /// Description of `overall_score`: `score of mmlu_pro` or `mean of 3 benchmark scores`.
    pub overall_score_label: String,
    /// True if any items are demo data bundled with the program, which say nothing about the real benchmark.
    pub demo: bool,
    /// Graded / planned samples of all benchmarks; null until one is planned.
    pub coverage: Option<f64>,
    /// Coverage below which a benchmark has no score.
    pub coverage_min: f64,
    /// Items that the order names, instead of a subset: the dataset's own ids, or `#` and the index of the row. Null
    /// otherwise.
    pub items: Option<Vec<String>>,
    /// Samples per item, if ordered.
    pub samples: Option<u32>,
    /// The first tasks of a run of uploaded terminal tasks, at most 5, each as `NAME@HASH12`; `sampled_items` of the
    /// benchmark counts all. Null for other runs, and until the run is planned.
    pub tasks: Option<Vec<String>>,
    /// Generation settings of the order. Null uses the protocol's.
    pub generation: GenerationView,
    /// Limits on requests, answers and failures; null if none is ordered.
    pub limits: Option<LimitsView>,
    /// Protocols that differ from the default, by benchmark.
    pub protocols: BTreeMap<String, String>,
    /// Options that differ from the defaults, by benchmark.
    pub benchmark_options: BTreeMap<String, BTreeMap<String, String>>,
    /// Judge as ordered; null if no benchmark needs one.
    pub judge: Option<JudgeOrderView>,
    /// Model that simulates users, as ordered; null if no benchmark needs one. It is part of what a score means.
    pub user_model: Option<JudgeOrderView>,
    /// Run whose answers this run judges again; null if this run asks the model itself.
    pub rejudges: Option<RejudgesView>,
    /// Number of times that the run was queued, from 1.
    pub generation_number: u32,
    /// True if the run is open but its process has ended. `POST /api/admin/runs/{run_id}/requeue` resumes it.
    pub interrupted: bool,
    /// Number of samples that the command which ordered the run, or resumed it last, had in progress at once; null for runs
    /// of servers.
    pub concurrency: Option<u32>,
    /// Wait for a provider that limits the rate of requests or isn't available; null if the run doesn't wait.
    pub waiting: Option<WaitingView>,
    /// Progress of the run.
    pub progress: ProgressView,
    /// Position in the queue, from 1; null unless queued.
    pub queue_position: Option<u64>,
    /// Estimated seconds until the run starts; null unless queued.
    pub start_delay_seconds: Option<f64>,
    /// Estimated seconds until the run is over; null if there is no estimate, as while the run waits for its provider or
    /// no sample has finished for a while.
    pub eta_seconds: Option<f64>,
    /// Tokens of the prompts so far.
    pub input_tokens: u64,
    /// Tokens of the answers so far.
    pub output_tokens: u64,
    /// Cost of these tokens so far; null if the price isn't known.
    pub cost: Option<CostView>,
    /// Cause of a failure that programs can act on: `budget` if the run reached its budget, `refused` if the provider
    /// refused the first requests with the same message, `failures` if as many samples failed as the order allows. Answers until then are kept. Null otherwise.
    #[schema(value_type = Option<String>)]
    pub failure_reason: Option<FailureReason>,
    /// Code of `error_message`; null if it was stored without a code.
    #[schema(value_type = Option<CodeSchema>)]
    pub error_code: Option<Code>,
    /// Budget of the run; null if it has none.
    pub budget: Option<BudgetView>,
    /// Spending so far, since the run was first queued.
    pub spent: SpentView,
    /// Version of the program that accepted the run.
    pub software: String,
    /// Actions that the caller of this request may do now.
    pub can: CanView,
}

/// Actions that the caller may do now with a run, by the same checks as the actions themselves. Limits on orders and budgets
/// are checked by the action only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
pub struct CanView {
    /// `POST /api/runs/{run_id}/cancel`.
    pub cancel: bool,
    /// `POST /api/admin/runs/{run_id}/requeue` continues the run, whose process has ended.
    pub resume: bool,
    /// `POST /api/admin/runs/{run_id}/requeue` repeats the samples without a grade.
    pub requeue: bool,
    /// The same with `errors`: repeats only samples that ended with an infrastructure-error.
    pub requeue_errors: bool,
    /// `POST /api/runs/{run_id}/rejudge`.
    pub rejudge: bool,
    /// `DELETE /api/runs/{run_id}`.
    pub delete: bool,
    /// `PATCH /api/runs/{run_id}`: name, tags and notes.
    pub edit: bool,
    /// `GET /api/runs/{run_id}/export`.
    pub export: bool,
    /// True if a requeue needs the caller's key for the model again, in `Authorization`.
    pub needs_key: bool,
    /// True if a requeue needs the caller's key for the judge again, in `X-Judge-Authorization`.
    pub needs_judge_key: bool,
    /// True if a requeue needs the caller's key for the user model again, in `X-User-Authorization`.
    pub needs_user_key: bool,
}

/// Progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct ProgressView {
    /// Items that are done.
    pub completed: u64,
    /// Items that are expected.
    pub total: u64,
    /// Share that is done, in percent, 0 to 100.
    pub percent: f64,
}

/// Queue position of a run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct QueuePosition {
    /// Position in the queue, from 1.
    pub queue_position: u64,
    /// Seconds until the run is expected to start.
    pub start_delay_seconds: Option<f64>,
    /// Seconds until the run is expected to be over.
    pub eta_seconds: Option<f64>,
}

impl RunView {
    /// Sets the names of the first tasks.
    #[must_use]
    pub fn with_tasks(self, tasks: Option<Vec<String>>) -> Self {
        Self { tasks, ..self }
    }

    /// Creates the view of a run.
    ///
    /// `counts` are those of its benchmarks, in the same order. `known_items` returns the size of a
    /// benchmark's dataset as far as it is known without a plan.
    pub fn new(
        found: &RunWithBenchmarks,
        counts: &[ShardCount],
        known_items: impl Fn(&RunSpec, &BenchmarkName) -> u64,
        now: Timestamp,
    ) -> Self {
        let run = &found.run;
        let (spec, state) = (&run.spec, &run.state);
        // Every field is listed: a new field of orders must be shown or left out on purpose.
        let RunTemplate {
            model,
            benchmarks: _,
            selected_benchmarks,
            subset: Subset { pct, count, seed },
            items,
            item_naming: _,
            samples,
            generation,
            datasets: _,
            protocols,
            options,
            judge,
            user,
            config: _,
            coverage_min,
            price,
            budget,
            labels: RunLabels { name, tags, notes, visibility },
            limits,
        } = &spec.template;
        let none = ShardCount::default();
        let benchmarks: Vec<RunBenchmarkView> = found
            .benchmarks
            .iter()
            .enumerate()
            .map(|(index, record)| {
                let counts = counts.get(index).unwrap_or(&none);
                RunBenchmarkView::new(run, record, counts, &known_items)
            })
            .collect();
        let sum =
            |part: fn(&RunBenchmarkView) -> u64| benchmarks.iter().map(part).fold(0, u64::saturating_add);
        let planned = sum(|benchmark| benchmark.planned_samples);
        let (input_tokens, output_tokens) = (sum(|b| b.input_tokens), sum(|b| b.output_tokens));
        let mut view = Self {
            id: spec.id,
            model_id: model.id,
            model_slug: model.slug.clone(),
            provider: model.provider.clone(),
            subset_pct: *pct,
            subset_count: *count,
            subset_seed: seed.clone(),
            status: state.status(),
            selected_benchmarks: selected_benchmarks.clone(),
            overall_score: state.overall_score(),
            error_message: state.error().map(str::to_owned),
            provider_metadata: None,
            started_at: state.started_at(),
            completed_at: state.completed_at(),
            created_at: spec.created_at,
            name: name.clone(),
            tags: tags.clone(),
            notes: notes.clone(),
            visibility: *visibility,
            is_mine: false,
            model: model.qualified(),
            endpoint_host: model.endpoint_host.clone(),
            overall_score_label: found.overall_score_label(),
            demo: spec.is_demo() || benchmarks.iter().any(|benchmark| benchmark.demo),
            coverage: share(sum(|benchmark| benchmark.graded_samples), planned),
            coverage_min: *coverage_min,
            items: (!items.is_empty()).then(|| spec.item_names()),
            samples: *samples,
            tasks: None,
            generation: GenerationView::from(generation),
            limits: limits.is_set().then(|| LimitsView::from(*limits)),
            protocols: by_benchmark_name(protocols),
            benchmark_options: by_benchmark_name(options),
            judge: judge.as_ref().map(JudgeOrderView::from),
            user_model: user.as_ref().map(JudgeOrderView::from),
            rejudges: spec.rejudges.map(RejudgesView::from),
            generation_number: run.generation,
            interrupted: false,
            concurrency: run.concurrency,
            waiting: None,
            progress: ProgressView { completed: 0, total: 0, percent: 0.0 },
            queue_position: None,
            start_delay_seconds: None,
            eta_seconds: None,
            input_tokens,
            output_tokens,
            cost: CostView::new(*price, input_tokens, output_tokens).filter(|_| planned > 0),
            failure_reason: state.failure_reason(),
            error_code: state.error_code(),
            budget: BudgetView::from_budget(*budget),
            spent: SpentView::from_counts(counts, spec.prices()),
            software: spec.software.clone(),
            can: CanView::default(),
            benchmarks,
        };
        let eta = view.eta();
        let progress = eta.progress();
        let remaining = eta.remaining_seconds(now.as_micros());
        view.progress =
            ProgressView { completed: progress.completed, total: progress.total, percent: progress.percent };
        let wait = run.provider_wait.as_ref().filter(|_| view.status.is_open());
        view.waiting = wait.and_then(|wait| WaitingView::new(wait, &view.benchmarks, now));
        let moves =
            view.status == RunStatus::Running && view.waiting.is_none() && !is_stalled_run(found, &view, now);
        view.eta_seconds = remaining.filter(|_| moves);
        view
    }

    /// Changes the view to that of a run whose process has ended: nothing of it moves.
    #[must_use]
    pub fn into_interrupted(self) -> Self {
        Self { interrupted: true, waiting: None, eta_seconds: None, ..self }
    }

    /// Sets what the caller may do, and whether the run is the caller's.
    #[must_use]
    pub fn with_can(self, can: CanView, is_mine: bool) -> Self {
        Self { can, is_mine, ..self }
    }

    /// Adds the position of a queued run.
    #[must_use]
    pub fn with_queue_position(mut self, position: Option<QueuePosition>) -> Self {
        if let Some(position) = position.filter(|_| self.status == RunStatus::Queued) {
            self.queue_position = Some(position.queue_position);
            self.start_delay_seconds = position.start_delay_seconds;
            self.eta_seconds = position.eta_seconds;
        }
        self
    }

    /// Returns the data for estimates. The id is left empty.
    pub fn eta(&self) -> EtaRun<'static> {
        EtaRun {
            id: "",
            status: self.status.as_str(),
            created_at_us: self.created_at.as_micros(),
            subset_pct: self.subset_pct,
            subset_count: self.subset_count,
            benchmarks: self
                .benchmarks
                .iter()
                .map(|benchmark| EtaBenchmark {
                    status: benchmark.status.as_str(),
                    total_items: benchmark.total_items,
                    sampled_items: benchmark.sampled_items,
                    completed_items: benchmark.completed_items,
                    started_at_us: benchmark.started_at.map(Timestamp::as_micros),
                    completed_at_us: benchmark.completed_at.map(Timestamp::as_micros),
                })
                .collect(),
        }
    }
}

/// Returns true if none of the run's benchmarks has made progress for a while.
fn is_stalled_run(found: &RunWithBenchmarks, view: &RunView, now: Timestamp) -> bool {
    let progress_at = found.benchmarks.iter().filter_map(|record| record.progress_at).max();
    let started_at = view.benchmarks.iter().filter_map(|benchmark| benchmark.started_at).min();
    let completed = view.benchmarks.iter().map(|benchmark| benchmark.completed_samples).sum();
    match (started_at, progress_at) {
        (Some(started_at), Some(progress_at)) => is_stalled(started_at, progress_at, completed, now),
        // No sample has finished yet, so there is no pace.
        _ => false,
    }
}

/// Returns the same values under the names as texts.
pub fn by_benchmark_name<T: Clone>(values: &BTreeMap<BenchmarkName, T>) -> BTreeMap<String, T> {
    values.iter().map(|(name, value)| (name.to_string(), value.clone())).collect()
}
