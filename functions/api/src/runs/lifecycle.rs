//! Cancel, delete and requeue.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use bench_domain::run::{AuthMode, Owner};
use bench_domain::{Budget, Code, ModelRole, RunId, RunSpec, RunState, Secret, SessionId};
use bench_queue::{FINISH_DELAY, Message};
use bench_runs::CallerKeys;
use bench_state::{EventKind, NewEvent, Renewal, Resumption, RunRecord, RunWithBenchmarks, Transition};
use bench_web::auth::{judge_key, missing_admin_secret, provider_key, user_key};
use bench_web::error::ErrorBody;
use bench_web::{ApiError, Caller, Identity, Path};
use serde::Serialize;
use utoipa::ToSchema;

use crate::Api;
use crate::refusal::refusal;
use crate::runs::admission;
use crate::runs::budget::{spec_with_budget, total_spending};
use crate::runs::requests::{run_id, run_not_found, visible_run};
use crate::runs::requeue::{Requeue, RequeueBody, chosen_sample, read_requeue};

/// Maximum number of attempts at a write that conflicts with other writes.
pub(super) const WRITE_ATTEMPTS_MAX: u32 = 20;

/// Confirmation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DoneView {
    /// Always true: failures are errors.
    success: bool,
    message: String,
}

fn done(message: &str) -> Json<DoneView> {
    Json(DoneView { success: true, message: message.to_owned() })
}

fn not_cancelable() -> ApiError {
    ApiError::new(Code::RunNotCancelable, "Run cannot be canceled (may already be completed or not found)")
}

fn not_requeueable() -> ApiError {
    ApiError::new(Code::RunNotRequeueable, "Run cannot be requeued (must be failed or canceled)")
}

fn no_errors() -> ApiError {
    ApiError::new(Code::NothingToRequeue, "the run has no infrastructure-errors to repeat")
}

fn concurrent_change() -> ApiError {
    ApiError::new(Code::ConcurrentChange, "other requests kept changing the run; try again")
}

/// Cancels a queued or running run. Its answers are kept.
#[utoipa::path(
    post, path = "/api/runs/{run_id}/cancel", tag = "runs", security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(("run_id" = String, Path, description = "Id of the run")),
    responses(
        (status = 200, body = DoneView),
        (status = 400, body = ErrorBody, description = "The run doesn't exist or is over"),
        (status = 401, body = ErrorBody, description = "No key, access token or admin secret was sent, or an invalid one"),
        (status = 403, body = ErrorBody, description = "The run belongs to another caller"),
    ),
)]
pub(crate) async fn post_cancel(
    State(api): State<Arc<Api>>,
    Path(run): Path<String>,
    identity: Identity,
) -> Result<Json<DoneView>, ApiError> {
    let run = run_id(&run).map_err(|_| not_cancelable())?;
    let record = visible_run(&api, run, identity.reader()).await.map_err(|error| match error.code() {
        Code::RunNotFound => not_cancelable(),
        _ => error,
    })?;
    identity.caller()?.must_own(&record.spec.owner)?;
    cancel_run(&api, run).await?;
    Ok(done("Run canceled"))
}

/// Cancels a run that is queued or running. Doesn't check the caller.
///
/// # Errors
/// 400 when the run doesn't exist or is over.
pub async fn cancel_run(api: &Api, run: RunId) -> Result<(), ApiError> {
    for _ in 0..WRITE_ATTEMPTS_MAX {
        let record = api.state.run(run).await?.ok_or_else(not_cancelable)?;
        let now = bench_clock::now();
        let next = record.state.cancel(now).map_err(|_| not_cancelable())?;
        let event = NewEvent::new(EventKind::RunCanceled, "Run canceled by user");
        if api.state.change_run(&record, &next, record.generation, &event, now).await? == Transition::Raced {
            continue;
        }
        api.clear_queue_positions();
        // Cleans up an interrupted run at once.
        (api.on_resume)(run).await;
        // The run is canceled now. The finisher closes its benchmarks with reports, once every process has seen the end.
        let delay = if record.state == RunState::Queued { Duration::ZERO } else { FINISH_DELAY };
        send_finish(api, &record, delay).await;
        if let Err(error) = api.credentials.delete_up_to_generation(run, record.generation).await {
            tracing::warn!(run.id = %run, %error, "The finisher removes the key of run {run}: {error}");
        }
        tracing::info!(run.id = %run, "Canceled run {run}");
        return Ok(());
    }
    Err(concurrent_change())
}

/// Sends the remaining work to the finisher, which begins after `delay`.
async fn send_finish(api: &Api, record: &RunRecord, delay: Duration) {
    let run = record.spec.id;
    let message = Message::Finish { run, generation: record.generation };
    if let Err(error) = api.queues.send(&message, delay).await {
        tracing::error!(run.id = %run, %error, "Run {run} waits for reconciliation: {error}");
    }
}

/// Deletes a run that is over, with all its stored data.
#[utoipa::path(
    delete, path = "/api/runs/{run_id}", tag = "runs", security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(("run_id" = String, Path, description = "Id of the run")),
    responses(
        (status = 200, body = DoneView),
        (status = 400, body = ErrorBody, description = "The run isn't over"),
        (status = 401, body = ErrorBody, description = "No key, access token or admin secret was sent, or an invalid one"),
        (status = 403, body = ErrorBody, description = "The run belongs to another caller"),
        (status = 404, body = ErrorBody, description = "The run doesn't exist"),
    ),
)]
pub(crate) async fn delete(
    State(api): State<Arc<Api>>,
    Path(run): Path<String>,
    identity: Identity,
) -> Result<Json<DoneView>, ApiError> {
    let run = run_id(&run)?;
    let record = visible_run(&api, run, identity.reader()).await?;
    identity.caller()?.must_own(&record.spec.owner)?;
    delete_run(&api, run).await?;
    Ok(done("Run deleted"))
}

/// Deletes a run that is over. Doesn't check the caller. The run disappears at once; the finisher removes its stored data.
///
/// # Errors
/// 404 when the run doesn't exist, 400 when it is not over.
pub async fn delete_run(api: &Api, run: RunId) -> Result<(), ApiError> {
    for _ in 0..WRITE_ATTEMPTS_MAX {
        let record = api.state.run(run).await?.ok_or_else(run_not_found)?;
        if record.state.status().is_open() {
            return Err(ApiError::new(Code::RunNotOver, "the run is not over; cancel it first"));
        }
        if api.state.mark_deleted(&record).await? == Transition::Done {
            send_finish(api, &record, Duration::ZERO).await;
            if let Err(error) = api.credentials.delete(run).await {
                tracing::warn!(run.id = %run, %error, "The finisher removes the key of run {run}: {error}");
            }
            tracing::info!(run.id = %run, "Deleted run {run}");
            return Ok(());
        }
    }
    Err(concurrent_change())
}

/// Requeues a run that failed or was canceled, or resumes an interrupted one.
///
/// Only samples without a grade are repeated. With `errors`, only samples that ended with an infrastructure-error are
/// repeated, also for a run that succeeded. With `position`, only that sample is repeated, unless it was graded; samples that
/// never ended go on, too. A run whose process ended continues on this server.
///
/// For a run that was ordered with the caller's own key, send the key again as a bearer token, and the keys of judge and
/// user model likewise. A run that its budget stopped needs a larger budget, which counts everything that the run ever spent.
#[utoipa::path(
    post, path = "/api/admin/runs/{run_id}/requeue", tag = "runs", security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(
        ("run_id" = String, Path, description = "Id of the run"),
        ("X-Judge-Authorization" = Option<String>, Header, description = "`Bearer` and the caller's own key for the judge, if the run was ordered with one. Without it, the key of `Authorization` is used if judge and model have the same provider"),
        ("X-User-Authorization" = Option<String>, Header, description = "`Bearer` and the caller's own key for the user model, in the same way"),
    ),
    request_body(content = Option<RequeueBody>, description = "Samples to repeat, and a new budget"),
    responses(
        (status = 200, body = DoneView),
        (status = 400, body = ErrorBody, description = "The run is neither failed, canceled nor interrupted, has no infrastructure-errors to repeat, lacks its key, or has spent its budget"),
        (status = 401, body = ErrorBody, description = "No key, access token or admin secret was sent, or an invalid one"),
        (status = 403, body = ErrorBody, description = "The run belongs to another caller, or the caller may not order it"),
        (status = 422, body = ErrorBody, description = "A field is invalid"),
        (status = 429, body = ErrorBody, description = "Too many orders or open runs; `Retry-After` has the seconds to wait"),
    ),
)]
pub(crate) async fn post_requeue(
    State(api): State<Arc<Api>>,
    Path(run): Path<String>,
    request: Request,
) -> Result<Json<DoneView>, ApiError> {
    let (parts, body) = request.into_parts();
    let headers = &parts.headers;
    let identity = Identity::of(&parts);
    let caller = identity.caller()?;
    if *caller == Caller::Anonymous {
        return Err(missing_admin_secret());
    }
    let run = run_id(&run).map_err(|_| not_requeueable())?;
    let record = api.state.run(run).await?.filter(|record| caller.sees_run(&record.spec));
    let record = record.ok_or_else(not_requeueable)?;
    let key = provider_key(headers)?;
    // The key is missing, rather than another caller's: the error asks the person at this machine to send it.
    let lacks_key = *caller == Caller::Local && record.spec.auth == AuthMode::ApiKey;
    if !lacks_key {
        caller.must_own(&record.spec.owner)?;
    }
    let (judge, user) = (judge_key(headers)?, user_key(headers)?);
    let what = read_requeue(headers, body).await?;
    let orderer = admission::admit_stored_run(&api, &parts, &record.spec).await?;
    let keys = CallerKeys { own: key, judge, user };
    let session = orderer.session_for(&record.spec.owner);
    requeue_run_keyed(&api, run, keys, session, what, Some(&orderer.owner)).await?;
    Ok(done("Run requeued"))
}

/// Requeues a run that failed or was canceled. Doesn't check the caller. `key` is the caller's own key, for a
/// run that was made with one; other runs ignore it.
///
/// # Errors
/// 400 when the run doesn't exist, is neither failed nor canceled, lacks its key, or has spent its budget.
pub async fn requeue_run(api: &Api, run: RunId, key: Option<Secret>) -> Result<(), ApiError> {
    requeue_run_with(api, run, key, Requeue::default()).await
}

/// Like [`requeue_run`], with a new budget or for infrastructure-errors only.
///
/// # Errors
/// The same; 400 also for a limit in dollars when the run's price isn't known, and for a run without
/// infrastructure-errors when only those are to be repeated.
pub async fn requeue_run_with(
    api: &Api,
    run: RunId,
    key: Option<Secret>,
    what: impl Into<Requeue>,
) -> Result<(), ApiError> {
    requeue_run_keyed(api, run, CallerKeys { own: key, ..CallerKeys::default() }, None, what.into(), None)
        .await
}

/// Returns the keys that a run needs again to be requeued.
fn keys_for_requeue(spec: &RunSpec, given: &CallerKeys) -> Result<CallerKeys, ApiError> {
    let needed = |role, own: &Option<Secret>| {
        if !spec.uses_callers_key(role) {
            return Ok(None);
        }
        let shared = || given.own.as_ref().filter(|_| spec.shares_provider(role));
        own.as_ref().or_else(shared).cloned().map(Some).ok_or_else(|| key_missing(role))
    };
    Ok(CallerKeys {
        own: needed(ModelRole::Model, &given.own)?,
        judge: needed(ModelRole::Judge, &given.judge)?,
        user: needed(ModelRole::UserModel, &given.user)?,
    })
}

/// Returns the error for a key that has to be sent again.
fn key_missing(role: ModelRole) -> ApiError {
    let code = role.code(Code::KeyRequired);
    let (header, variable) = match role {
        ModelRole::Model => {
            return ApiError::new(
                code,
                "the run was ordered with the caller's own key, which was deleted when it ended; send it again as \
                 `Authorization: Bearer KEY` (on the command line, name its variable with `--api-key-env`)",
            );
        }
        ModelRole::Judge => ("X-Judge-Authorization", "BENCH_JUDGE_API_KEY"),
        ModelRole::UserModel => ("X-User-Authorization", "BENCH_USER_API_KEY"),
    };
    let role = role.label();
    ApiError::new(
        code,
        format!(
            "the run's {role} used the caller's own key, which was deleted when the run ended; send it again as \
             `{header}: Bearer KEY` (on the command line, set `{variable}`)"
        ),
    )
}

/// Returns true if a requeue of the errors has anything to do: an infrastructure-error or a benchmark that did not end.
pub(crate) fn has_errors(found: &RunWithBenchmarks) -> bool {
    found.benchmarks.iter().any(|benchmark| match benchmark.state.report() {
        Some(report) => report.infrastructure_errors() > 0 || !report.is_complete(),
        None => true,
    })
}

/// Changes the settings of a run that a signed-in user pays for to the session of the requeue.
fn with_session(changed: Option<RunSpec>, old: &RunSpec, session: Option<&SessionId>) -> Option<RunSpec> {
    let is_other = old.uses_session() && session.is_some() && session != old.session.as_ref();
    if !is_other {
        return changed;
    }
    Some(RunSpec { session: session.cloned(), ..changed.unwrap_or_else(|| old.clone()) })
}

/// Continues an interrupted run in this process or, from now on, at this server.
async fn resume(
    api: &Api,
    found: &RunWithBenchmarks,
    budget: Budget,
    session: Option<&SessionId>,
) -> Result<Transition, ApiError> {
    let record = &found.run;
    let (run, generation) = (record.spec.id, record.generation);
    let spent = total_spending(api, found).await?;
    let spec = with_session(spec_with_budget(found, budget, spent)?, &record.spec, session);
    let event = NewEvent::new(EventKind::RunResumed, "Run resumed");
    let now = bench_clock::now();
    let resumption = Some(Resumption::new(spent, now));
    let renewal = Renewal {
        spec: spec.as_ref(),
        origin: Some(api.state.own_origin()),
        concurrency: api.state.own_concurrency(),
        resumption,
        ..Renewal::default()
    };
    let changed = api.state.change_run_with(record, &record.state, generation, &event, now, renewal).await?;
    if changed != Transition::Done {
        return Ok(changed);
    }
    api.clear_queue_positions();
    (api.on_resume)(run).await;
    // The samples have messages, but the messages of the run itself may have been lost with the process.
    let message = if record.planned_generation < generation {
        Some(Message::Plan { run, generation })
    } else {
        found.is_complete().then_some(Message::Finish { run, generation })
    };
    if let Some(message) = message
        && let Err(error) = api.queues.send(&message, Duration::ZERO).await
    {
        tracing::error!(run.id = %run, %error, "Run {run} waits for reconciliation: {error}");
    }
    tracing::info!(run.id = %run, "Resumed run {run}");
    Ok(changed)
}

/// Requeues a run with all keys of the caller. If the order came with a request, `counted` is the caller that
/// it counts against.
async fn requeue_run_keyed(
    api: &Api,
    run: RunId,
    given: CallerKeys,
    session: Option<SessionId>,
    what: Requeue,
    mut counted: Option<&Owner>,
) -> Result<(), ApiError> {
    for _ in 0..WRITE_ATTEMPTS_MAX {
        let found = api.state.run_with_benchmarks(run).await?.ok_or_else(not_requeueable)?;
        let record = &found.run;
        if record.state.status().is_open() && !api.state.works_on(record) {
            api.orders.check_stored_models(&record.spec).map_err(refusal)?;
            if let Some(orderer) = counted.take() {
                api.orders.runs.count_order(orderer).await.map_err(refusal)?;
            }
            match resume(api, &found, what.budget, session.as_ref()).await? {
                Transition::Done => return Ok(()),
                Transition::Raced => continue,
                Transition::Limited(reached) => {
                    return Err(refusal(api.orders.runs.too_many_open(&record.spec.owner, reached)));
                }
            }
        }
        let errors_only = what.errors || what.only.is_some();
        let next = match errors_only {
            true => record.state.requeue_errors(),
            false => record.state.requeue(),
        };
        let next = next.map_err(|_| not_requeueable())?;
        if what.errors && !has_errors(&found) {
            return Err(no_errors());
        }
        let only = match &what.only {
            Some(chosen) => Some(chosen_sample(api, &found, chosen).await?),
            None => None,
        };
        api.orders.check_stored_models(&record.spec).map_err(refusal)?;
        let generation = record.generation.saturating_add(1);
        let sealed = keys_for_requeue(&record.spec, &given)?.seal(&api.credentials, run, generation).await?;
        let spent = total_spending(api, &found).await?;
        let spec =
            with_session(spec_with_budget(&found, what.budget, spent)?, &record.spec, session.as_ref());
        if let Some(orderer) = counted.take() {
            api.orders.runs.count_order(orderer).await.map_err(refusal)?;
        }
        let event = NewEvent::new(EventKind::RunRequeued, "Run requeued");
        let now = bench_clock::now();
        let limits = api.orders.runs.limits(&record.spec.owner);
        let renewal = Renewal {
            key: sealed.as_ref(),
            spec: spec.as_ref(),
            origin: Some(api.state.own_origin()),
            concurrency: api.state.own_concurrency(),
            errors_only,
            only_sample: only.as_ref(),
            resumption: Some(Resumption::new(spent, now)),
            limits: Some(&limits),
        };
        let changed = api.state.change_run_with(record, &next, generation, &event, now, renewal).await?;
        if let Transition::Limited(reached) = changed {
            return Err(refusal(api.orders.runs.too_many_open(&record.spec.owner, reached)));
        }
        if changed == Transition::Raced {
            continue;
        }
        api.clear_queue_positions();
        let message = Message::Plan { run, generation };
        if let Err(error) = api.queues.send(&message, Duration::ZERO).await {
            tracing::error!(run.id = %run, %error, "Run {run} waits for reconciliation: {error}");
        }
        tracing::info!(run.id = %run, run.generation = generation, "Requeued run {run}");
        return Ok(());
    }
    Err(concurrent_change())
}
