//! Judging the answers of a run again: a new run with the same items and samples, whose answers are not asked for but
//! taken from the first one.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use bench_domain::run::{AuthMode, Owner, Plan};
use bench_domain::{BenchmarkName, Budget, Code, RunId, RunSpec, Secret, Timestamp};
use bench_state::{BenchmarkRecord, Idempotency, Rejudged, RunWithBenchmarks};
use bench_web::auth::{judge_key, provider_key};
use bench_web::body::read_object_or_nothing;
use bench_web::error::ErrorBody;
use bench_web::{ApiError, FieldReader};
use http::StatusCode;
use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use crate::budget::read_budget;
use crate::create::{
    Created, CreatedView, FIRST_GENERATION, announce, answer, earlier_run, refuse_in_maintenance,
};
use crate::judge::{JudgeBody, JudgeOrder, JudgedRun, find_judge, read_judge};
use crate::keys::Keys;
use crate::order::{idempotency_key, unknown_fields};
use crate::requests::{run_id, run_not_found};
use crate::{Api, Orderer, Standing, admission};

/// An order to judge a run's answers again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RejudgeOrder {
    /// Who judges; what is not set is as it was.
    pub judge: JudgeOrder,
    /// What the judge's replies may cost before the run is stopped.
    pub budget: Budget,
    /// Where the judge answers. Only the command line may set it.
    pub base_url: Option<String>,
    /// The caller's own keys: for the model's provider, and for the judge.
    pub api_key: Option<Secret>,
    /// See above.
    pub judge_key: Option<Secret>,
    /// The caller's key for this order: a repeat makes no second run.
    pub idempotency_key: Option<String>,
    /// Fields of the request that were ignored, each in one sentence.
    pub warnings: Vec<String>,
}

/// The body of an order to judge again.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RejudgeOrder, example = json!({ "judge": { "model_id": "openrouter/MODEL", "seed": 1 } }))]
#[allow(dead_code)] // describes what `RejudgeOrder::read` reads
pub(crate) struct RejudgeBody {
    /// Who judges. Without a `model_id` the judge of the run itself, with these settings.
    judge: Option<JudgeBody>,
    /// US dollars, above 0, at which the judging is stopped. Needs a judge whose price is known.
    #[schema(exclusive_minimum = 0, maximum = 1_000_000)]
    budget_usd: Option<f64>,
    /// The same in tokens of the judge's prompts and replies together.
    #[schema(minimum = 1)]
    budget_tokens: Option<u64>,
}

impl RejudgeOrder {
    fn read(mut fields: FieldReader) -> Result<Self, ApiError> {
        let judge = read_judge(&mut fields).unwrap_or_default();
        let budget = read_budget(&mut fields);
        let warnings = unknown_fields(&fields);
        fields.finish()?;
        Ok(Self { judge, budget, warnings, ..Self::default() })
    }

    /// Digest of what is ordered: equal for equal orders.
    fn digest(&self, run: RunId) -> String {
        let parts = json!(["rejudge", run, self.judge, self.budget, self.base_url]);
        hex::encode(Sha256::digest(parts.to_string().as_bytes()))
    }
}

/// Judges the answers of a run again, by another judge or by the same one with other settings.
///
/// The model is not asked again. What comes out is a run of its own with the next version of the judging, beside the
/// one that was: it has the judged benchmarks only, the same items and samples, and names the run and the version.
/// Judging a rejudged run again refers to the run that asked the model.
#[utoipa::path(
    post, path = "/api/runs/{run_id}/rejudge", tag = "runs", security((), ("key" = []), ("admin" = [])),
    params(
        ("run_id" = String, Path, description = "The run"),
        ("Idempotency-Key" = Option<String>, Header, description = "A repeat under the same key within a day makes no second run"),
        ("X-Judge-Authorization" = Option<String>, Header, description = "`Bearer` and the caller's own key for the judge"),
    ),
    request_body = Option<RejudgeBody>,
    responses(
        (status = 201, body = CreatedView, description = "The new run, queued"),
        (status = 200, body = CreatedView, description = "The run that an earlier request under this Idempotency-Key made"),
        (status = 400, body = ErrorBody, description = "No answer of it can be judged, the run that asked the model was deleted, or the judge cannot be asked"),
        (status = 401, body = ErrorBody, description = "A key is needed"),
        (status = 403, body = ErrorBody, description = "The run belongs to somebody else, or the provider refuses the key"),
        (status = 404, body = ErrorBody, description = "There is no such run, or no such judge"),
        (status = 409, body = ErrorBody, description = "The run is not over"),
        (status = 422, body = ErrorBody, description = "The body is not as it should be, or the run has too many samples"),
        (status = 429, body = ErrorBody, description = "Too many orders, or too many open runs; `Retry-After` says when to try again"),
        (status = 503, body = ErrorBody, description = "Maintenance"),
    ),
)]
pub(crate) async fn post_rejudge(
    State(api): State<Arc<Api>>,
    Path(run): Path<String>,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let headers = &parts.headers;
    let mut order = RejudgeOrder::read(read_object_or_nothing(headers, body).await?)?;
    order.idempotency_key = idempotency_key(headers)?;
    order.judge_key = judge_key(headers)?;
    order.api_key = provider_key(headers)?;
    refuse_in_maintenance(&api)?;
    let run = run_id(&run)?;
    let record = api.state.run(run).await?.ok_or_else(run_not_found)?;
    api.access.caller(headers)?.must_own(&record.spec.owner)?;
    let (model, benchmarks) = (&record.spec.model, &record.spec.benchmarks);
    let orderer = admission::admit_again(&api, &parts, model, benchmarks).await?;
    answer(&api, rejudge(&api, run, order, orderer.standing, Some(&orderer.owner)).await?).await
}

/// Judges the answers of a run again, whoever asks.
///
/// # Errors
/// As the answers of `POST /api/runs/{id}/rejudge` say; nothing was made then.
pub async fn rejudge_run(api: &Api, run: RunId, order: RejudgeOrder) -> Result<Created, ApiError> {
    rejudge(api, run, order, Standing::Local, None).await
}

/// `counted` is the caller whose order it is, if it came with a request.
async fn rejudge(
    api: &Api,
    run: RunId,
    mut order: RejudgeOrder,
    standing: Standing,
    counted: Option<&Owner>,
) -> Result<Created, ApiError> {
    let warnings = std::mem::take(&mut order.warnings);
    let asked = api.state.run(run).await?.ok_or_else(run_not_found)?;
    let first = asked.spec.rejudges.map_or(run, |rejudges| rejudges.run);
    let idempotency = order.idempotency_key.as_ref().map(|key| Idempotency {
        owner: Orderer { owner: asked.spec.owner.clone(), ..Orderer::local() }.name(),
        key: key.clone(),
        digest: order.digest(run),
    });
    if let Some(idempotency) = &idempotency
        && let Some(earlier) = earlier_run(api, idempotency).await?
    {
        return Ok(Created { warnings, ..earlier });
    }
    let found = api.state.run_with_benchmarks(first).await?.ok_or_else(answers_gone)?;
    for record in [&asked, &found.run] {
        if record.state.status().is_open() {
            return Err(ApiError::new(
                Code::RunNotOver,
                format!(
                    "Run {} is {}: its answers can be judged again when it is over",
                    record.spec.id,
                    record.state.status()
                ),
            )
            .with_status(StatusCode::CONFLICT));
        }
    }
    let benchmarks = judged(&found)?;
    let wanted = wanted(&order.judge, &asked.spec);
    // Without a new judge the address stays that of the old one, too.
    let kept = asked.spec.judge.as_ref().filter(|_| order.judge.model.is_none());
    let base_url = order.base_url.clone().or_else(|| kept.and_then(|judge| judge.model.base_url.clone()));
    let original = &found.run.spec;
    let orderer = Orderer {
        owner: original.owner.clone(),
        // It is for the model's provider only if the run itself was made with one.
        api_key: order.api_key.clone().filter(|_| original.auth == AuthMode::ApiKey),
        judge_key: order.judge_key.clone(),
        standing,
    };
    let limits = admission::limits(api, &original.owner);
    let planned = found.benchmarks.iter().filter(|record| benchmarks.contains(&record.name));
    let planned = planned.filter_map(|record| record.plan.as_ref()).map(Plan::samples).sum();
    admission::refuse_samples(planned, limits.samples_per_order)?;
    let judged_run = JudgedRun {
        model: &original.model,
        benchmark: benchmarks.first().ok_or_else(nothing_judged)?,
        budget: order.budget,
        base_url: base_url.as_deref(),
    };
    let judge = find_judge(api, Some(&wanted), judged_run, &orderer).await?;
    if let Some(orderer) = counted {
        admission::count_order(api, orderer).await?;
    }
    let mut spec = RunSpec {
        id: RunId::random(),
        selected_benchmarks: Some(benchmarks.iter().map(ToString::to_string).collect()),
        judge: Some(judge.spec),
        rejudges: None,
        // The model is not asked: nobody's key is needed for it, and nothing is paid for its answers again.
        auth: AuthMode::System,
        price: None,
        budget: order.budget,
        schedule: None,
        software: api.config.software.clone(),
        created_at: Timestamp::now(),
        datasets: of(&benchmarks, &original.datasets),
        protocols: of(&benchmarks, &original.protocols),
        options: of(&benchmarks, &original.options),
        benchmarks,
        ..original.clone()
    };
    let keys = Keys { own: None, judge: judge.key };
    let sealed = keys.seal(api, spec.id, FIRST_GENERATION).await?;
    let made = api.state.create_rejudging(first, &mut spec, idempotency.as_ref(), sealed, Some(&limits));
    match made.await? {
        Rejudged::Made(_) => Ok(Created { warnings, ..announce(api, &spec, Vec::new()).await? }),
        Rejudged::Limited(reached) => Err(admission::too_many_open(api, &spec.owner, reached)),
        Rejudged::Gone => Err(answers_gone()),
        Rejudged::KeyTaken => {
            let earlier = match &idempotency {
                Some(idempotency) => earlier_run(api, idempotency).await?,
                None => None,
            };
            earlier.ok_or_else(|| {
                ApiError::new(Code::ConcurrentChange, "The run was not created; send the order again.")
            })
        }
    }
}

/// The judge that was asked for. Where none was named it is the run's own, with its settings unless others are given.
fn wanted(order: &JudgeOrder, asked: &RunSpec) -> JudgeOrder {
    let Some(judge) = asked.judge.as_ref().filter(|_| order.model.is_none()) else { return order.clone() };
    let (old, new) = (&judge.generation, &order.generation);
    let mut generation = old.clone();
    generation.temperature = new.temperature.or(old.temperature);
    generation.seed = new.seed.or(old.seed);
    generation.max_tokens = new.max_tokens.or(old.max_tokens);
    JudgeOrder { model: Some(judge.model.qualified()), provider: None, generation }
}

/// The entries of these benchmarks.
fn of<T: Clone>(
    benchmarks: &[BenchmarkName],
    all: &std::collections::BTreeMap<BenchmarkName, T>,
) -> std::collections::BTreeMap<BenchmarkName, T> {
    let chosen = all.iter().filter(|(name, _)| benchmarks.contains(name));
    chosen.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The benchmarks whose answers can be judged.
fn judged(found: &RunWithBenchmarks) -> Result<Vec<BenchmarkName>, ApiError> {
    let spec = &found.run.spec;
    let is_judged = |record: &&BenchmarkRecord| {
        bench_benchmarks::of_run(spec, &record.name).is_some_and(|benchmark| benchmark.judge().is_some())
    };
    let judged: Vec<&BenchmarkRecord> = found.benchmarks.iter().filter(is_judged).collect();
    if judged.is_empty() {
        return Err(nothing_judged());
    }
    let planned: Vec<BenchmarkName> =
        judged.into_iter().filter(|record| record.plan.is_some()).map(|record| record.name.clone()).collect();
    if planned.is_empty() {
        return Err(ApiError::new(
            Code::NothingToJudge,
            "The run ended before it had any answer that could be judged",
        ));
    }
    Ok(planned)
}

fn nothing_judged() -> ApiError {
    ApiError::new(
        Code::NothingToJudge,
        "None of the run's benchmarks is judged by a model: there is nothing to judge again",
    )
}

fn answers_gone() -> ApiError {
    ApiError::new(Code::RunDeleted, "The run that asked the model was deleted, and its answers with it")
        .with_status(StatusCode::BAD_REQUEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: serde_json::Value) -> Result<RejudgeOrder, ApiError> {
        RejudgeOrder::read(FieldReader::of_body(body.as_object().unwrap().clone()))
    }

    #[test]
    fn orders_are_read_and_told_apart() {
        let run = RunId::random();
        let plain = read(json!({})).unwrap();
        assert_eq!(plain, RejudgeOrder::default());
        let other =
            read(json!({ "judge": { "model_id": "oracle", "seed": 3 }, "budget_tokens": 5 })).unwrap();
        assert_eq!((other.judge.model.as_deref(), other.judge.generation.seed), (Some("oracle"), Some(3)));
        assert_eq!(other.budget.tokens, Some(5));
        assert_ne!(plain.digest(run), other.digest(run));
        assert_ne!(plain.digest(run), plain.digest(RunId::random()));
        for bad in [
            json!({ "judge": 1 }),
            json!({ "judge": { "seed": 0.5 } }),
            json!({ "budget_usd": 0 }),
            json!({ "judge": { "modell": "oracle" } }),
            json!({ "judge_model": "oracle" }),
        ] {
            assert_eq!(read(bad).unwrap_err().status(), 422);
        }
    }
}
