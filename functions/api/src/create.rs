//! Ordering a run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bench_domain::run::{DatasetChoice, ItemNaming, JudgeSpec, Owner};
use bench_domain::schedule::RunTemplate;
use bench_domain::{BenchmarkName, Code, RunId, RunSpec, Secret, Timestamp};
use bench_queue::Message;
use bench_state::{Creation, Idempotency, NewEvent, RunWithBenchmarks};
use bench_web::ApiError;
use bench_web::auth::{bearer_key, judge_key, provider_key};
use bench_web::body::read_object;
use bench_web::error::ErrorBody;
use bench_web::views::RunView;
use http::StatusCode;
use http::request::Parts;
use serde::Serialize;
use utoipa::ToSchema;

use crate::admission::Wanted;
use crate::budget::price_for;
use crate::judge::{FoundJudge, JudgedRun, find_judge, has_default_judge, is_judged};
use crate::keys::Keys;
use crate::lookup::{FoundModel, find_model};
use crate::order::{OrderBody, no_effect};
use crate::{Api, Order, Orderer, admission, availability, options, protocols, run_view};

const NO_BENCHMARKS: &str = "No matching benchmarks found for selected_benchmarks";

/// A run that an order led to.
#[derive(Debug, Clone, PartialEq)]
pub struct Created {
    /// The run.
    pub run: RunWithBenchmarks,
    /// Whether this order made it; else an earlier one under the same idempotency key did.
    pub is_new: bool,
    /// Names in the order that are no benchmarks. They were left out.
    pub ignored: Vec<String>,
    /// Fields of the order that were ignored, each in one sentence.
    pub warnings: Vec<String>,
}

/// A run that was just ordered.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CreatedView {
    #[serde(flatten)]
    run: RunView,
    /// Names in the order that are no benchmarks. They were left out.
    ignored_benchmarks: Vec<String>,
    /// Fields of the order that were ignored, each in one sentence: unknown ones, and known ones without effect.
    warnings: Vec<String>,
}

/// Orders a run on the operator's key.
///
/// A server that is bound to loopback asks for no key. On any other its access policy says who may order: holders of
/// an access token and of the admin secret, on the operator's keys, and holders of a provider's key that the provider
/// confirms, on their own. Runs of the oracle and of gated benchmarks are for admins and listed callers.
#[utoipa::path(
    post, path = "/api/runs", tag = "runs", security((), ("key" = []), ("admin" = [])),
    request_body = OrderBody,
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "A repeat under the same key within a day makes no second run"),
        ("X-Judge-Authorization" = Option<String>, Header, description = "`Bearer` and the caller's own key for the judge. Without it the caller's key is used where judge and model have the same provider, else the operator's"),
    ),
    responses(
        (status = 201, body = CreatedView, description = "The run, queued"),
        (status = 200, body = CreatedView, description = "The run that an earlier request under this Idempotency-Key made"),
        (status = 400, body = ErrorBody, description = "Unknown benchmarks or provider, a dataset whose terms were not accepted, a budget in dollars without a known price, or no judge where one is needed"),
        (status = 401, body = ErrorBody, description = "A key is needed"),
        (status = 403, body = ErrorBody, description = "The provider refuses the key, or the caller may not order this"),
        (status = 404, body = ErrorBody, description = "There is no such model"),
        (status = 413, body = ErrorBody, description = "The body has more than 1 MiB"),
        (status = 422, body = ErrorBody, description = "The body is not as it should be, or the order has too many samples"),
        (status = 429, body = ErrorBody, description = "Too many orders, or too many open runs; `Retry-After` says when to try again"),
        (status = 503, body = ErrorBody, description = "Maintenance, or the provider cannot confirm the key now"),
    ),
)]
pub(crate) async fn post_run(State(api): State<Arc<Api>>, request: Request) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let order = Order::read(read_object(&parts.headers, body).await?)?.keyed(&parts.headers)?;
    refuse_in_maintenance(&api)?;
    // Whether there is such a model is told to everybody, whose run it will be is asked after that.
    let orderer = admission::orderer(&api, &parts).await;
    let found = find_model(&api, &order, orderer.as_ref().ok()).await?;
    answer(&api, place(&api, order, orderer?, found, Some(&parts)).await?).await
}

/// Orders a run on the caller's own key.
///
/// The key is stored encrypted until the run is over, and used for the model's provider only.
#[utoipa::path(
    post, path = "/api/runs/api", tag = "runs", security(("key" = [])),
    request_body = OrderBody,
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "A repeat under the same key within a day makes no second run"),
        ("X-Judge-Authorization" = Option<String>, Header, description = "`Bearer` and the caller's own key for the judge. Without it the caller's key is used where judge and model have the same provider, else the operator's"),
    ),
    responses(
        (status = 201, body = CreatedView, description = "The run, queued"),
        (status = 200, body = CreatedView, description = "The run that an earlier request under this Idempotency-Key made"),
        (status = 400, body = ErrorBody, description = "Unknown benchmarks or provider, a dataset whose terms were not accepted, a budget in dollars without a known price, or no judge where one is needed"),
        (status = 401, body = ErrorBody, description = "The key is missing or cannot be one"),
        (status = 403, body = ErrorBody, description = "The provider refuses the key, or the caller may not order this"),
        (status = 404, body = ErrorBody, description = "There is no such model"),
        (status = 413, body = ErrorBody, description = "The body has more than 1 MiB"),
        (status = 422, body = ErrorBody, description = "The body is not as it should be, or the order has too many samples"),
        (status = 429, body = ErrorBody, description = "Too many orders, or too many open runs; `Retry-After` says when to try again"),
        (status = 503, body = ErrorBody, description = "Maintenance, or the provider cannot confirm the key now"),
    ),
)]
pub(crate) async fn post_run_with_key(
    State(api): State<Arc<Api>>,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let fields = read_object(&parts.headers, body).await?;
    let key = bearer_key(&parts.headers)?;
    let order = Order::read(fields)?.keyed(&parts.headers)?;
    refuse_in_maintenance(&api)?;
    let Owner::Key(owner) = api.access.owner_of(&key) else {
        return Err(ApiError::internal("a key has no owner"));
    };
    let standing = admission::standing_of(&api, &parts, &owner).await?;
    let orderer = Orderer {
        owner: Owner::Key(owner),
        api_key: provider_key(&parts.headers)?,
        judge_key: judge_key(&parts.headers)?,
        standing,
    };
    let found = find_model(&api, &order, Some(&orderer)).await?;
    answer(&api, place(&api, order, orderer, found, Some(&parts)).await?).await
}

pub(crate) async fn answer(api: &Api, created: Created) -> Result<Response, ApiError> {
    let status = if created.is_new { StatusCode::CREATED } else { StatusCode::OK };
    let run = run_view(api, &created.run).await?;
    Ok((status, Json(CreatedView { run, ignored_benchmarks: created.ignored, warnings: created.warnings }))
        .into_response())
}

pub(crate) fn refuse_in_maintenance(api: &Api) -> Result<(), ApiError> {
    if api.config.maintenance_mode {
        return Err(ApiError::new(Code::Maintenance, api.config.maintenance_message.clone()));
    }
    Ok(())
}

/// Makes a run and queues it.
///
/// The caller's key is stored before the run, so that there is no run without its key. When the message
/// cannot be sent the run stays queued; reconciliation sends it.
///
/// # Errors
/// As the answers of `POST /api/runs` say; nothing was made then.
pub async fn create_run(api: &Api, order: Order, orderer: Orderer) -> Result<Created, ApiError> {
    let found = find_model(api, &order, Some(&orderer)).await?;
    place(api, order, orderer, found, None).await
}

/// A new run's generation.
pub(crate) const FIRST_GENERATION: u32 = 1;

/// What an order comes to.
pub(crate) struct Ordered {
    /// Everything of its run that does not depend on when it is made.
    pub(crate) template: RunTemplate,
    /// The names in the order that are no benchmarks.
    pub(crate) ignored: Vec<String>,
    /// The caller's own key for the judge, if that is to be used.
    pub(crate) judge_key: Option<Secret>,
}

/// `parts` are those of the request, if there is one: what orders in this process may do so.
async fn place(
    api: &Api,
    mut order: Order,
    orderer: Orderer,
    found: FoundModel,
    parts: Option<&Parts>,
) -> Result<Created, ApiError> {
    let idempotency = order.idempotency_key.as_ref().map(|key| Idempotency {
        owner: orderer.name(),
        key: key.clone(),
        digest: order.digest(),
    });
    if let Some(idempotency) = &idempotency
        && let Some(earlier) = earlier_run(api, idempotency).await?
    {
        return Ok(Created { warnings: order.warnings, ..earlier });
    }
    if let Some(parts) = parts {
        let wanted = Wanted { kind: found.kind, slug: &found.model.slug, benchmarks: &[] };
        admission::admit(api, parts, &orderer, wanted).await?;
    }
    let mut warnings = std::mem::take(&mut order.warnings);
    let (generation, wants_judge, is_asked) =
        (order.generation.clone(), order.judge.is_some(), found.kind.is_remote());
    let Ordered { template, ignored, judge_key } = template(api, order, &orderer, found, None).await?;
    for (field, is_set) in
        [("temperature", generation.temperature.is_some()), ("max_tokens", generation.max_tokens.is_some())]
    {
        if is_set && !is_asked {
            warnings.push(no_effect(field, "no model is asked"));
        }
    }
    if wants_judge && template.judge.is_none() {
        warnings.push(no_effect("judge", "none of the benchmarks is judged by a model"));
    }
    admission::check_samples(api, &orderer.owner, &template)?;
    admission::count_order(api, &orderer.owner).await?;
    let spec = RunSpec {
        id: RunId::random(),
        model: template.model,
        selected_benchmarks: template.selected_benchmarks,
        benchmarks: template.benchmarks,
        subset: template.subset,
        items: template.items,
        item_naming: template.item_naming,
        samples: template.samples,
        generation: template.generation,
        datasets: template.datasets,
        protocols: template.protocols,
        options: template.options,
        judge: template.judge,
        rejudges: None,
        owner: orderer.owner.clone(),
        auth: orderer.auth(),
        config: template.config,
        coverage_min: template.coverage_min,
        price: template.price,
        budget: template.budget,
        schedule: None,
        software: api.config.software.clone(),
        created_at: Timestamp::now(),
    };
    let keys = Keys { own: orderer.api_key, judge: judge_key };
    let sealed = keys.seal(api, spec.id, FIRST_GENERATION).await?;
    let event = NewEvent::run_created(&spec, &ignored);
    let limits = admission::limits(api, &spec.owner);
    let made = api.state.create_run_within(
        &spec,
        &event,
        idempotency.as_ref(),
        spec.created_at,
        sealed,
        Some(&limits),
    );
    let made = made.await?;
    if let Creation::Limited(reached) = made {
        return Err(admission::too_many_open(api, &spec.owner, reached));
    }
    if made == Creation::KeyTaken {
        // The same order came twice at the same time, and the other one was faster.
        let earlier = match &idempotency {
            Some(idempotency) => earlier_run(api, idempotency).await?,
            None => None,
        };
        return earlier.ok_or_else(|| {
            ApiError::new(Code::ConcurrentChange, "The run was not created; send the order again.")
        });
    }
    Ok(Created { warnings, ..announce(api, &spec, ignored).await? })
}

/// Sends a new run on its way.
pub(crate) async fn announce(api: &Api, spec: &RunSpec, ignored: Vec<String>) -> Result<Created, ApiError> {
    let run = api.state.run_with_benchmarks(spec.id).await?;
    let run = run.ok_or_else(|| ApiError::internal(format!("run {} is gone", spec.id)))?;
    let message = Message::Plan { run: spec.id, generation: run.run.generation };
    if let Err(error) = api.queues.send(&message, Duration::ZERO).await {
        tracing::error!(run.id = %spec.id, %error, "Run {} waits for reconciliation: {error}", spec.id);
    }
    *crate::context::held(&api.schedule) = None;
    tracing::info!(run.id = %spec.id, model = %spec.model.qualified(), "Created run {}", spec.id);
    Ok(Created { run, is_new: true, ignored, warnings: Vec::new() })
}

/// What an order comes to. A judge that was found before is kept, where one is needed.
pub(crate) async fn template(
    api: &Api,
    order: Order,
    orderer: &Orderer,
    found: FoundModel,
    kept: Option<JudgeSpec>,
) -> Result<Ordered, ApiError> {
    availability::check(api, &found, orderer).await?;
    let (mut benchmarks, ignored) = select(order.benchmarks.as_deref())?;
    if selected(order.benchmarks.as_deref(), &benchmarks).is_none() {
        // Nobody asked for a dataset whose terms the operator has not accepted.
        benchmarks
            .retain(|name| can_be_had(api, &order, name).is_ok() && admission::may_order(orderer, name));
        let names_judge = order.judge.as_ref().is_some_and(|judge| judge.model.is_some());
        if !(names_judge || kept.is_some() || has_default_judge(api, &found.model)) {
            // Nor for what only a judge could grade.
            let protocol = |name: &BenchmarkName| order.protocols.get(name.as_str()).map(|name| name.trim());
            benchmarks.retain(|name| !is_judged(name, protocol(name)));
        }
    }
    admission::refuse_gated(orderer, &benchmarks)?;
    let protocols = protocols::chosen(&order.protocols, &benchmarks)?;
    let options = options::chosen(&order.options, &order.protocols, &benchmarks)?;
    let datasets = datasets(api, &order, &benchmarks)?;
    let price = price_for(api, &order, &found, orderer).await?;
    let judged = benchmarks.iter().find(|name| is_judged(name, protocols.get(*name).map(String::as_str)));
    let judge = match (judged, kept) {
        (None, _) => None,
        (Some(_), Some(spec)) => Some(FoundJudge { spec, key: None }),
        (Some(benchmark), None) => {
            let base_url = order.trusted.judge_base_url.as_deref();
            let run = JudgedRun { model: &found.model, benchmark, budget: order.budget, base_url };
            Some(find_judge(api, order.judge.as_ref(), run, orderer).await?)
        }
    };
    let (judge, judge_key) = judge.map(|judge| (judge.spec, judge.key)).unzip();
    let template = RunTemplate {
        model: found.model,
        selected_benchmarks: selected(order.benchmarks.as_deref(), &benchmarks),
        benchmarks,
        subset: order.subset,
        items: order.items,
        item_naming: ItemNaming::SourceId,
        samples: order.samples,
        generation: order.generation,
        datasets,
        protocols,
        options,
        judge,
        config: order.config,
        coverage_min: order.trusted.coverage_min.unwrap_or(api.config.coverage_min),
        price,
        budget: order.budget,
    };
    Ok(Ordered { template, ignored, judge_key: judge_key.flatten() })
}

/// The run that was made under this key, if there is one.
pub(crate) async fn earlier_run(api: &Api, idempotency: &Idempotency) -> Result<Option<Created>, ApiError> {
    let Some((run, digest)) = api.state.run_of_key(idempotency).await? else { return Ok(None) };
    if digest != idempotency.digest {
        return Err(ApiError::new(
            Code::IdempotencyKeyReused,
            "This Idempotency-Key was used for another order.",
        ));
    }
    let run = api.state.run_with_benchmarks(run).await?;
    let run = run.ok_or_else(|| {
        ApiError::new(Code::RunDeleted, "The run made under this Idempotency-Key was deleted.")
    })?;
    Ok(Some(Created { run, is_new: false, ignored: Vec::new(), warnings: Vec::new() }))
}

/// The benchmarks of an order, in its order and without duplicates, and the names that are none.
fn select(names: Option<&[String]>) -> Result<(Vec<BenchmarkName>, Vec<String>), ApiError> {
    let named: Vec<&str> =
        names.unwrap_or_default().iter().map(|name| name.trim()).filter(|name| !name.is_empty()).collect();
    let (mut known, mut ignored) = (Vec::new(), Vec::new());
    let all = || bench_benchmarks::all().iter().map(|benchmark| benchmark.name());
    let wanted: Vec<&str> = if named.is_empty() { all().collect() } else { named };
    for text in wanted {
        let name = text.parse::<BenchmarkName>().ok();
        match name.filter(|name| bench_benchmarks::find(name.as_str()).is_some()) {
            Some(name) if known.contains(&name) => {}
            Some(name) => known.push(name),
            None => ignored.push(text.chars().take(80).collect()),
        }
    }
    if known.is_empty() {
        return Err(ApiError::new(Code::NoBenchmarks, NO_BENCHMARKS));
    }
    Ok((known, ignored))
}

/// What is kept of the request's list: its known names, or nothing when it named none.
fn selected(names: Option<&[String]>, known: &[BenchmarkName]) -> Option<Vec<String>> {
    let named = names.unwrap_or_default().iter().any(|name| !name.trim().is_empty());
    named.then(|| known.iter().map(ToString::to_string).collect())
}

/// Where the items come from, as far as the order says; refuses what cannot be had.
fn datasets(
    api: &Api,
    order: &Order,
    benchmarks: &[BenchmarkName],
) -> Result<BTreeMap<BenchmarkName, DatasetChoice>, ApiError> {
    let given = &order.trusted.datasets;
    if let Some(other) = given.keys().find(|name| !benchmarks.contains(name)) {
        return Err(ApiError::new(
            Code::BenchmarkNotOrdered,
            format!("A dataset was given for {other}, which is not to be run."),
        )
        .with_status(StatusCode::BAD_REQUEST));
    }
    let mut datasets = BTreeMap::new();
    for name in benchmarks {
        let choice = can_be_had(api, order, name)?;
        if choice != DatasetChoice::Hub {
            datasets.insert(name.clone(), choice);
        }
    }
    Ok(datasets)
}

/// Where the items of a benchmark come from; refuses what cannot be had.
fn can_be_had(api: &Api, order: &Order, name: &BenchmarkName) -> Result<DatasetChoice, ApiError> {
    let choice = match order.trusted.datasets.get(name) {
        Some(choice) => choice.clone(),
        None if order.demo => DatasetChoice::Demo,
        None => DatasetChoice::Hub,
    };
    if let Some(benchmark) = bench_benchmarks::find(name.as_str()) {
        let check = api.library.check(benchmark, &choice);
        check.map_err(|error| ApiError::new(Code::DatasetUnavailable, error.to_string()))?;
    }
    Ok(choice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn unknown_benchmarks_are_left_out_and_told() {
        let list = names(&[" MMLU_Pro ", "nope", "mmlu_pro", "", "a/b", "aime_2025"]);
        let (known, ignored) = select(Some(&list)).unwrap();
        assert_eq!(known.iter().map(BenchmarkName::as_str).collect::<Vec<_>>(), ["mmlu_pro", "aime_2025"]);
        assert_eq!(ignored, ["nope", "a/b"]);
        assert_eq!(selected(Some(&list), &known), Some(names(&["mmlu_pro", "aime_2025"])));
        assert_eq!(select(Some(&names(&["nope"]))).unwrap_err().message(), NO_BENCHMARKS);
    }

    #[test]
    fn no_choice_is_all() {
        for list in [None, Some(names(&[])), Some(names(&["", "  "]))] {
            let (known, ignored) = select(list.as_deref()).unwrap();
            assert_eq!((known.len(), ignored.len()), (bench_benchmarks::all().len(), 0));
            assert_eq!(selected(list.as_deref(), &known), None);
        }
    }
}
