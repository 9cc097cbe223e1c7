//! Runs that may rank, with what makes them comparable.

use std::collections::BTreeMap;

use bench_domain::run::{BenchmarkState, DatasetUse, Plan, UserSpec};
use bench_domain::{Generation, Timestamp};
use bench_inference::ModelSource;
use bench_state::{BenchmarkRecord, RunWithBenchmarks};
use bench_web::views::IntervalView;

/// Reason why a run doesn't rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exclusion {
    /// The benchmark has no result.
    Failed,
    Oracle,
    Replay,
    /// The model was asked at another address than the provider's own.
    OwnEndpoint,
    Demo,
    /// The items are chosen by the run's id or by name, so that no other run has the same ones; or they come from a file.
    OwnItems,
}

/// Everything that two results must share to be ranked together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BoardKey {
    pub(crate) protocol: String,
    pub(crate) prompt_digest: String,
    dataset_digest: String,
    /// Dataset with its revision.
    dataset: (String, String),
    pub(crate) options: BTreeMap<String, String>,
    templates: BTreeMap<String, String>,
    pub(crate) samples_per_item: u32,
    pub(crate) items: u64,
    pub(crate) dataset_items: u64,
    /// Seed of the subset; `None` for the whole dataset.
    pub(crate) subset_seed: Option<String>,
    pub(crate) judge: Option<String>,
    judge_prompt_digest: Option<String>,
    judge_settings: Option<String>,
    /// Model that simulated users.
    pub(crate) user_model: Option<String>,
    user_settings: Option<String>,
    pub(crate) changed_settings: Vec<String>,
}

/// Result of a run that may rank.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) key: BoardKey,
    pub(crate) protocol_name: String,
    pub(crate) prompt_source: String,
    pub(crate) dataset: DatasetUse,
    pub(crate) model: String,
    /// Effort or budget of the model's thinking; `None` leaves it to the provider.
    pub(crate) thinking_level: Option<String>,
    pub(crate) endpoint_host: Option<String>,
    pub(crate) own_endpoint: bool,
    pub(crate) run_id: bench_domain::RunId,
    pub(crate) run_name: Option<String>,
    pub(crate) completed_at: Timestamp,
    pub(crate) score: f64,
    pub(crate) interval: Option<IntervalView>,
    pub(crate) cost_usd: Option<f64>,
    /// True if every planned sample was graded.
    pub(crate) is_full: bool,
}

impl Candidate {
    /// Creates the candidate of a benchmark of a run. `is_exposed` is true if others than the person at this machine can
    /// see the list.
    pub(crate) fn new(
        run: &RunWithBenchmarks,
        record: &BenchmarkRecord,
        is_exposed: bool,
    ) -> Result<Self, Exclusion> {
        let spec = &run.run.spec;
        let (BenchmarkState::Succeeded { completed_at, report, .. }, Some(plan)) =
            (&record.state, &record.plan)
        else {
            return Err(Exclusion::Failed);
        };
        let score = report.score.ok_or(Exclusion::Failed)?;
        let source = ModelSource::from_name(&spec.model.provider);
        let own_endpoint = is_own_endpoint(run, source);
        let is_demo = plan.dataset.is_demo() || plan.dataset.demo_support;
        if is_exposed {
            match source {
                Some(ModelSource::Provider(_)) => {}
                Some(ModelSource::Oracle | ModelSource::Nop | ModelSource::Custom) => {
                    return Err(Exclusion::Oracle);
                }
                Some(ModelSource::Replay) | None => return Err(Exclusion::Replay),
            }
            if own_endpoint {
                return Err(Exclusion::OwnEndpoint);
            }
            if is_demo {
                return Err(Exclusion::Demo);
            }
            if !matches!(plan.dataset.source.as_str(), "hub" | "bundled") {
                return Err(Exclusion::OwnItems);
            }
        }
        let is_part = plan.items < plan.dataset_items;
        if !spec.items.is_empty() || (is_part && spec.subset.seed.is_none()) {
            return Err(Exclusion::OwnItems);
        }
        // Other benchmarks of the same run have no simulated user.
        let known = bench_benchmarks::find(record.name.as_str());
        let user = spec.user.as_ref().filter(|_| known.is_some_and(|known| known.dialogue().is_some()));
        Ok(Self {
            key: board_key(plan, user, spec.subset.seed.clone().filter(|_| is_part)),
            protocol_name: plan.protocol_name.clone(),
            prompt_source: plan.prompt_source.clone(),
            dataset: plan.dataset.clone(),
            model: spec.model.qualified(),
            thinking_level: plan.generation.thinking_level(),
            endpoint_host: spec.model.endpoint_host.clone(),
            own_endpoint,
            run_id: spec.id,
            run_name: spec.labels.name.clone(),
            completed_at: *completed_at,
            score,
            interval: IntervalView::from_report(report),
            cost_usd: report.cost.map(|cost| {
                let others = [report.judge_cost, report.user_cost].into_iter().flatten();
                cost.total_usd() + others.map(|cost| cost.total_usd()).sum::<f64>()
            }),
            is_full: report.graded == report.planned,
        })
    }
}

/// Returns true if the answers came from another address than the provider's own, or from an unknown one.
fn is_own_endpoint(run: &RunWithBenchmarks, source: Option<ModelSource>) -> bool {
    let model = &run.run.spec.model;
    let Some(ModelSource::Provider(provider)) = source else { return false };
    let default = provider.default_base_url.filter(|_| !provider.is_local());
    // Hosts are recorded with their port, unless it is the scheme's default.
    let default = default.and_then(|url| url.split("://").nth(1)?.split('/').next());
    model.base_url.is_some() || default.is_none() || model.endpoint_host.as_deref() != default
}

/// Returns the generation settings of a run with the benchmark's own thinking level.
fn without_thinking(plan: &Plan) -> Generation {
    let own = plan.protocol_generation.as_ref();
    Generation {
        reasoning_effort: own.and_then(|own| own.reasoning_effort),
        thinking_budget: own.and_then(|own| own.thinking_budget),
        ..plan.generation.clone()
    }
}

fn board_key(plan: &Plan, user: Option<&UserSpec>, subset_seed: Option<String>) -> BoardKey {
    let judge = plan.judge.as_ref();
    BoardKey {
        protocol: plan.protocol.clone(),
        prompt_digest: plan.prompt_digest.clone(),
        dataset_digest: plan.dataset.digest.clone(),
        dataset: (plan.dataset.id.clone(), plan.dataset.revision.clone()),
        options: plan.options.clone(),
        templates: plan.templates.clone(),
        samples_per_item: plan.samples_per_item,
        items: plan.items,
        dataset_items: plan.dataset_items,
        subset_seed,
        judge: judge.map(|judge| judge.model.clone()),
        judge_prompt_digest: judge.map(|judge| judge.prompt_digest.clone()),
        judge_settings: judge.and_then(|judge| serde_json::to_string(&judge.generation).ok()),
        user_model: user.map(|user| user.model.name_with_host()),
        user_settings: user.and_then(|user| serde_json::to_string(&user.generation).ok()),
        // A model at another thinking level is another entry, not another board.
        changed_settings: plan.changes(&without_thinking(plan)),
    }
}
