//! A whole run.

use std::collections::BTreeMap;

use bench_domain::eta::{EtaBenchmark, EtaRun};
use bench_domain::run::RunStatus;
use bench_domain::{
    BenchmarkName, Code, FailureReason, ModelId, RunId, RunSpec, RunTemplate, Subset, Timestamp,
};
use bench_state::{RunWithBenchmarks, ShardCount};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::error::CodeSchema;

use super::{
    BudgetView, CostView, GenerationView, JudgeOrderView, RejudgesView, RunBenchmarkView, SpentView, share,
};

/// A run with its benchmarks.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct RunView {
    /// Its id.
    #[schema(value_type = String, format = "uuid")]
    pub id: RunId,
    /// The model's id in the catalogue.
    #[schema(value_type = String, format = "uuid")]
    pub model_id: ModelId,
    /// The model's name at the provider.
    pub model_slug: String,
    /// Who answers: the name of a provider, `oracle` or `replay`.
    pub provider: String,
    /// Share of the items in percent.
    pub subset_pct: u32,
    /// Number of items; wins over the share.
    pub subset_count: Option<u64>,
    /// What the choice of items depends on; the run's id when null.
    pub subset_seed: Option<String>,
    /// `queued`, `running`, `succeeded`, `failed` or `canceled`.
    #[schema(value_type = String)]
    pub status: RunStatus,
    /// The benchmarks that were asked for; null means all.
    pub selected_benchmarks: Option<Vec<String>>,
    /// Unweighted mean of the benchmarks' scores, once the run succeeded; `overall_score_label` says of what.
    pub overall_score: Option<f64>,
    /// What went wrong.
    pub error_message: Option<String>,
    /// Always null; other providers of the compatible system fill it.
    #[schema(value_type = Option<Object>)]
    pub provider_metadata: Option<Map<String, Value>>,
    /// When work began.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    /// When it was over.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub completed_at: Option<Timestamp>,
    /// When it was ordered.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Its benchmarks, in the order of the run.
    pub benchmarks: Vec<RunBenchmarkView>,

    /// The model's name with its provider, as the command line takes it.
    pub model: String,
    /// Host of the base URL that is asked, with the port unless it is the scheme's default; null for models that are
    /// not asked over the network, and in runs of older versions.
    pub endpoint_host: Option<String>,
    /// What `overall_score` is: `score of mmlu_pro` or `mean of 3 benchmark scores`.
    pub overall_score_label: String,
    /// Whether any of its items came with the program instead of from the real dataset.
    pub demo: bool,
    /// Graded over planned samples of all benchmarks; null until something is planned.
    pub coverage: Option<f64>,
    /// Coverage below which a benchmark has no score.
    pub coverage_min: f64,
    /// Only these items, when the order named them.
    pub items: Option<Vec<String>>,
    /// Samples per item, when the order said so.
    pub samples: Option<u32>,
    /// The order's own settings of answers.
    pub generation: GenerationView,
    /// The protocols that are not the default ones, by benchmark.
    pub protocols: BTreeMap<String, String>,
    /// Settings of benchmarks of their own that are not the default ones, by benchmark.
    pub benchmark_options: BTreeMap<String, BTreeMap<String, String>>,
    /// Who judges, as it was ordered; null where nobody has to.
    pub judge: Option<JudgeOrderView>,
    /// The run whose answers are judged again by this one; null when this one asks the model itself.
    pub rejudges: Option<RejudgesView>,
    /// How often it was queued.
    pub generation_number: u32,
    /// Whether it is open and the process that worked on it has ended: it goes on when it is resumed by
    /// `POST /api/admin/runs/{run_id}/requeue`.
    pub interrupted: bool,
    /// How much is done.
    pub progress: ProgressView,
    /// Place in the queue, from 1; null unless queued.
    pub queue_position: Option<u64>,
    /// Seconds until it is expected to start; null unless queued.
    pub start_delay_seconds: Option<f64>,
    /// Seconds until it is expected to be over; null when that cannot be told.
    pub eta_seconds: Option<f64>,
    /// Tokens of the prompts so far.
    pub input_tokens: u64,
    /// Tokens of the answers so far.
    pub output_tokens: u64,
    /// What the tokens so far cost, when the price is known.
    pub cost: Option<CostView>,
    /// Why it failed, when that is a cause that callers tell apart: `budget` when its budget was reached, `refused` when
    /// the provider refused its first requests with the same sentence. What was answered until then is kept.
    #[schema(value_type = Option<String>)]
    pub failure_reason: Option<FailureReason>,
    /// Code of `error_message`; null where that was stored without code.
    #[schema(value_type = Option<CodeSchema>)]
    pub error_code: Option<Code>,
    /// What it may cost before it is stopped; null without any limit.
    pub budget: Option<BudgetView>,
    /// What it has spent so far, over all times that it was queued.
    pub spent: SpentView,
    /// Version of the program that accepted it.
    pub software: String,
}

/// How much of a run is done.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct ProgressView {
    /// Items done.
    pub completed: u64,
    /// Items expected.
    pub total: u64,
    /// Share done in percent, 0 to 100.
    pub percent: f64,
}

/// Queue position of a run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Place {
    /// Position in the queue, from 1.
    pub queue_position: u64,
    /// Seconds until the run is expected to start.
    pub start_delay_seconds: Option<f64>,
    /// Seconds until the run is expected to be over.
    pub eta_seconds: Option<f64>,
}

impl RunView {
    /// Creates the view of a run.
    ///
    /// `counts` are those of its benchmarks, in the same order. `items_before` returns the size of a
    /// benchmark's dataset as far as it is known without a plan.
    pub fn new(
        found: &RunWithBenchmarks,
        counts: &[ShardCount],
        items_before: impl Fn(&RunSpec, &BenchmarkName) -> u64,
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
            config: _,
            coverage_min,
            price,
            budget,
        } = &spec.template;
        let none = ShardCount::default();
        let benchmarks: Vec<RunBenchmarkView> = found
            .benchmarks
            .iter()
            .enumerate()
            .map(|(index, record)| {
                let counts = counts.get(index).unwrap_or(&none);
                RunBenchmarkView::new(run, record, counts, &items_before)
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
            model: model.qualified(),
            endpoint_host: model.endpoint_host.clone(),
            overall_score_label: found.overall_score_label(),
            demo: spec.is_demo() || benchmarks.iter().any(|benchmark| benchmark.demo),
            coverage: share(sum(|benchmark| benchmark.graded_samples), planned),
            coverage_min: *coverage_min,
            items: (!items.is_empty()).then(|| spec.item_names()),
            samples: *samples,
            generation: GenerationView::from(generation),
            protocols: by_name(protocols),
            benchmark_options: by_name(options),
            judge: judge.as_ref().map(JudgeOrderView::from),
            rejudges: spec.rejudges.map(RejudgesView::from),
            generation_number: run.generation,
            interrupted: false,
            progress: ProgressView { completed: 0, total: 0, percent: 0.0 },
            queue_position: None,
            start_delay_seconds: None,
            eta_seconds: None,
            input_tokens,
            output_tokens,
            cost: CostView::new(*price, input_tokens, output_tokens).filter(|_| planned > 0),
            failure_reason: state.failure_reason(),
            error_code: state.error_code(),
            budget: BudgetView::of(*budget),
            spent: SpentView::of(counts, spec.prices()),
            software: spec.software.clone(),
            benchmarks,
        };
        let eta = view.eta();
        let progress = eta.progress();
        let remaining = eta.remaining_seconds(now.as_micros());
        view.progress =
            ProgressView { completed: progress.completed, total: progress.total, percent: progress.percent };
        view.eta_seconds = remaining.filter(|_| view.status == RunStatus::Running);
        view
    }

    /// Adds the position of a queued run.
    #[must_use]
    pub fn placed(mut self, place: Option<Place>) -> Self {
        if let Some(place) = place.filter(|_| self.status == RunStatus::Queued) {
            self.queue_position = Some(place.queue_position);
            self.start_delay_seconds = place.start_delay_seconds;
            self.eta_seconds = place.eta_seconds;
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

/// Returns the same values under the names as texts.
pub fn by_name<T: Clone>(of: &BTreeMap<BenchmarkName, T>) -> BTreeMap<String, T> {
    of.iter().map(|(name, value)| (name.to_string(), value.clone())).collect()
}
