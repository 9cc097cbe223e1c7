//! Creation of runs.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bench_domain::Code;
use bench_domain::run::Owner;
use bench_runs::{CreatedRun, FoundModel, Order, OrderLookup, Orderer, TERMINAL_TASKS};
use bench_web::auth::{bearer_key, judge_key, provider_key, user_key};
use bench_web::body::read_object;
use bench_web::error::ErrorBody;
use bench_web::views::RunView;
use bench_web::{ApiError, Identity};
use http::StatusCode;
use http::request::Parts;
use serde::Serialize;
use utoipa::ToSchema;

use crate::refusal::refusal;
use crate::runs::admission;
use crate::runs::admission::OrderScope;
use crate::runs::order::{OrderBody, idempotency_key, read_task_order};
use crate::runs::tasks::{OrderedTasks, select_tasks, task_benchmarks};
use crate::runs::viewer::Viewer;
use crate::{Api, run_view};

/// A run that was just ordered.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CreatedView {
    #[serde(flatten)]
    run: RunView,
    /// Ordered names that aren't benchmarks. The run leaves them out.
    ignored_benchmarks: Vec<String>,
    /// Fields of the order that were ignored, one sentence each: unknown fields, and known ones without effect.
    warnings: Vec<String>,
}

/// Orders a run.
///
/// A server on loopback needs no key. On other servers, the access policy decides who may order: holders of an access
/// token or of the admin secret, on the operator's keys, and holders of a provider key that the provider confirms, on
/// their own key. Runs of the oracle and of gated benchmarks are for admins and listed callers.
#[utoipa::path(
    post, path = "/api/runs", tag = "runs", security((), ("key" = []), ("admin" = []), ("session" = [])),
    request_body = OrderBody,
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "Key of 1 to 255 visible ASCII characters. Repeating a request with the same key within a day creates no second run"),
        ("X-Judge-Authorization" = Option<String>, Header, description = "`Bearer` and the caller's own key for the judge. Without it, the judge uses the caller's key if it has the model's provider, otherwise the operator's key"),
        ("X-User-Authorization" = Option<String>, Header, description = "`Bearer` and the caller's own key for the user model. Without it, the user model uses the others in the same way"),
    ),
    responses(
        (status = 201, body = CreatedView, description = "The queued run"),
        (status = 200, body = CreatedView, description = "The run of an earlier request with this `Idempotency-Key`"),
        (status = 400, body = ErrorBody, description = "The benchmarks or the provider are unknown, the terms of a dataset aren't accepted, a budget in dollars needs a price that isn't known, or a judge is needed"),
        (status = 401, body = ErrorBody, description = "No key, access token or admin secret was sent, or an invalid one"),
        (status = 403, body = ErrorBody, description = "The provider refuses the key, or the caller may not order this run"),
        (status = 404, body = ErrorBody, description = "The model doesn't exist"),
        (status = 413, body = ErrorBody, description = "The body is larger than 1 MiB"),
        (status = 422, body = ErrorBody, description = "A field is invalid, or the order has too many samples"),
        (status = 429, body = ErrorBody, description = "Too many orders or open runs; `Retry-After` has the seconds to wait"),
        (status = 503, body = ErrorBody, description = "The server is under maintenance, or the provider can't confirm the key now"),
    ),
)]
pub(crate) async fn post_run(State(api): State<Arc<Api>>, request: Request) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let (mut order, tasks) = read_task_order(read_object(&parts.headers, body).await?)?;
    order.idempotency_key = idempotency_key(&parts.headers)?;
    refuse_in_maintenance(&api)?;
    if let Some(tasks) = tasks {
        let orderer = admission::orderer(&api, &parts).await?;
        return order_tasks(&api, &parts, order, orderer, &tasks).await;
    }
    // Any caller may learn that a model doesn't exist; the caller's right to order is checked after that.
    let orderer = admission::orderer(&api, &parts).await;
    let found = api.orders.find_model(&order, orderer.as_ref().ok()).await;
    // What this server lacks for asking the model is for callers who may order.
    if let (Err(error), Err(missing)) = (&found, &orderer)
        && error.code() == Code::ProviderNotConfigured
    {
        return Err(missing.clone());
    }
    let found = found.map_err(refusal)?;
    answer(&api, &parts, create(&api, &parts, order, orderer?, found).await?).await
}

/// Orders a run on the caller's own key.
///
/// The key is stored encrypted until the run is over, and sent only to the model's provider.
#[utoipa::path(
    post, path = "/api/runs/api", tag = "runs", security(("key" = [])),
    request_body = OrderBody,
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "Key of 1 to 255 visible ASCII characters. Repeating a request with the same key within a day creates no second run"),
        ("X-Judge-Authorization" = Option<String>, Header, description = "`Bearer` and the caller's own key for the judge. Without it, the judge uses the caller's key if it has the model's provider, otherwise the operator's key"),
        ("X-User-Authorization" = Option<String>, Header, description = "`Bearer` and the caller's own key for the user model. Without it, the user model uses the others in the same way"),
    ),
    responses(
        (status = 201, body = CreatedView, description = "The queued run"),
        (status = 200, body = CreatedView, description = "The run of an earlier request with this `Idempotency-Key`"),
        (status = 400, body = ErrorBody, description = "The benchmarks or the provider are unknown, the terms of a dataset aren't accepted, a budget in dollars needs a price that isn't known, or a judge is needed"),
        (status = 401, body = ErrorBody, description = "The key is missing or malformed"),
        (status = 403, body = ErrorBody, description = "The provider refuses the key, or the caller may not order this run"),
        (status = 404, body = ErrorBody, description = "The model doesn't exist"),
        (status = 413, body = ErrorBody, description = "The body is larger than 1 MiB"),
        (status = 422, body = ErrorBody, description = "A field is invalid, or the order has too many samples"),
        (status = 429, body = ErrorBody, description = "Too many orders or open runs; `Retry-After` has the seconds to wait"),
        (status = 503, body = ErrorBody, description = "The server is under maintenance, or the provider can't confirm the key now"),
    ),
)]
pub(crate) async fn post_run_with_key(
    State(api): State<Arc<Api>>,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let fields = read_object(&parts.headers, body).await?;
    let key = bearer_key(&parts.headers)?;
    let (mut order, tasks) = read_task_order(fields)?;
    order.idempotency_key = idempotency_key(&parts.headers)?;
    refuse_in_maintenance(&api)?;
    let Owner::Key(owner) = api.access.owner_of(&key) else {
        return Err(ApiError::internal("a key has no owner"));
    };
    let standing = admission::standing_of(&api, &parts, &owner).await?;
    let orderer = Orderer {
        owner: Owner::Key(owner),
        api_key: provider_key(&parts.headers)?,
        judge_key: judge_key(&parts.headers)?,
        user_key: user_key(&parts.headers)?,
        session: None,
        standing,
    };
    if let Some(tasks) = tasks {
        return order_tasks(&api, &parts, order, orderer, &tasks).await;
    }
    let found = api.orders.find_model(&order, Some(&orderer)).await.map_err(refusal)?;
    answer(&api, &parts, create(&api, &parts, order, orderer, found).await?).await
}

/// Orders a run of terminal tasks.
async fn order_tasks(
    api: &Api,
    parts: &Parts,
    mut order: Order,
    orderer: Orderer,
    tasks: &OrderedTasks,
) -> Result<Response, ApiError> {
    let tasks = select_tasks(api, &Identity::of(parts), &orderer, &mut order, tasks).await?;
    let found = api.orders.find_model(&order, Some(&orderer)).await.map_err(refusal)?;
    // A key that no provider gets isn't stored.
    let orderer = match found.source.is_remote() {
        true => orderer,
        false => Orderer { api_key: None, ..orderer },
    };
    let created = create(api, parts, order, orderer, found).await?;
    if created.is_new {
        let tasks: Vec<u64> = tasks.iter().map(|task| task.id).collect();
        api.state.note_task_order(&tasks, created.run.run.spec.id).await?;
    }
    answer(api, parts, created).await
}

/// Creates the run of an order after the access policy admits it. A repeated order is answered before that check.
pub(crate) async fn create(
    api: &Api,
    parts: &Parts,
    order: Order,
    orderer: Orderer,
    found: FoundModel,
) -> Result<CreatedRun, ApiError> {
    let has_only_tasks = order.benchmarks.as_deref() == Some(&[TERMINAL_TASKS.to_owned()]);
    let benchmarks = if has_only_tasks { task_benchmarks() } else { Vec::new() };
    match api.orders.look_up_order(order, orderer, found).await.map_err(refusal)? {
        OrderLookup::Existing(created) => Ok(*created),
        OrderLookup::New(ready) => {
            let (source, slug) = (ready.found.source, ready.found.model.slug.as_str());
            admission::admit(
                api,
                parts,
                &ready.orderer,
                OrderScope { source, slug, benchmarks: &benchmarks },
            )
            .await?;
            api.orders.create_run(*ready).await.map_err(refusal)
        }
    }
}

pub(crate) async fn answer(api: &Api, parts: &Parts, created: CreatedRun) -> Result<Response, ApiError> {
    let status = if created.is_new { StatusCode::CREATED } else { StatusCode::OK };
    if created.is_new {
        api.clear_queue_positions();
    }
    let run = run_view(api, &created.run, &Viewer::of(api, parts).await?).await?;
    let warnings = created.warnings.iter().map(ToString::to_string).collect();
    let view = CreatedView { run, ignored_benchmarks: created.ignored, warnings };
    Ok((status, Json(view)).into_response())
}

pub(crate) fn refuse_in_maintenance(api: &Api) -> Result<(), ApiError> {
    if api.config.maintenance_mode {
        return Err(ApiError::new(Code::Maintenance, api.config.maintenance_message.clone()));
    }
    Ok(())
}
