//! Ends sessions.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bench_domain::run::Owner;
use bench_domain::{Code, RunId, RunStatus, SessionId};
use bench_state::{RunFilter, SessionRecord, StateError};
use bench_web::ApiError;
use bench_web::body::{BODY_BYTES_MAX, read_bytes, read_object};
use bench_web::error::ErrorBody;
use bench_web::identity::refuse_cross_site;
use http::{HeaderMap, header};
use serde::Serialize;
use utoipa::ToSchema;

use super::login::no_store;
use super::status::clear;
use crate::Api;
use crate::runs::lifecycle::cancel_run;

/// Maximum number of open runs in all, which bounds the lists that are read.
const OPEN_RUNS_MAX: u64 = 10_000;

/// Choices of a sign-out.
#[derive(Debug, ToSchema)]
#[allow(dead_code)] // describes what `read_end_runs` reads
pub(crate) struct LogoutBody {
    /// True to cancel the open runs that the session pays for. Otherwise the sign-out is refused while there are any.
    end_runs: Option<bool>,
}

/// Confirmation of a sign-out.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LogoutView {
    /// Always true: failures are errors.
    success: bool,
    message: &'static str,
}

/// Ends the session of the request's cookie, and revokes its tokens at the provider. Succeeds without a session, too.
#[utoipa::path(
    post, path = "/api/auth/logout", tag = "sign-in", security((), ("session" = [])),
    request_body(content = Option<LogoutBody>, description = "May be left out"),
    responses(
        (status = 200, body = LogoutView),
        (status = 403, body = ErrorBody, description = "The request isn't from a page of this server"),
        (status = 409, body = ErrorBody, description = "The session, or an ended one of the same user, pays for open runs, and `end_runs` isn't true"),
        (status = 422, body = ErrorBody, description = "The body isn't an object with `end_runs`"),
    ),
)]
pub(crate) async fn logout(State(api): State<Arc<Api>>, request: Request) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let headers = parts.headers;
    let end_runs = read_end_runs(&headers, body).await?;
    if let Some(session) = api.session_of(&headers).await? {
        // The guard doesn't check it for requests with other credentials, which this route doesn't look at.
        refuse_cross_site(&api.access, &parts.method, &headers)?;
        let Payments { runs, replaced } = payments(&api, &session).await?;
        if !runs.is_empty() && !end_runs {
            return Err(runs_open(runs.len()));
        }
        for run in runs {
            match cancel_run(&api, run).await {
                // It ended meanwhile.
                Err(error) if error.code() == Code::RunNotCancelable => {}
                ended => ended?,
            }
        }
        // The browser's own session last: a repeat needs it.
        for id in replaced.iter().chain([&session.id]) {
            api.tokens.end(id).await?;
        }
    }
    let view = LogoutView { success: true, message: "Logged out successfully" };
    let mut response = ([(header::CACHE_CONTROL, no_store())], Json(view)).into_response();
    clear(&api, &headers, &mut response);
    Ok(response)
}

/// Reads the body. Clients of the compatible system send none.
async fn read_end_runs(headers: &HeaderMap, body: Body) -> Result<bool, ApiError> {
    let bytes = read_bytes(headers, body, BODY_BYTES_MAX).await?;
    if bytes.is_empty() {
        return Ok(false);
    }
    let mut fields = read_object(headers, Body::from(bytes)).await?;
    let end_runs = fields.flag("end_runs");
    fields.finish()?;
    Ok(end_runs)
}

fn runs_open(count: usize) -> ApiError {
    let detail = match count {
        1 => "1 open run is paid by your account: sign out with `end_runs` to end it".to_owned(),
        _ => format!("{count} open runs are paid by your account: sign out with `end_runs` to end them"),
    };
    ApiError::new(Code::RunsOpen, detail)
}

/// Open runs that a sign-out ends.
struct Payments {
    runs: Vec<RunId>,
    /// Sessions of the same user that ended before, and whose tokens were left to some of these runs.
    replaced: BTreeSet<SessionId>,
}

/// Finds the open runs that a session pays for, or that an ended session of the same user does. Runs of the user's sessions in other
/// browsers aren't among them.
async fn payments(api: &Api, session: &SessionRecord) -> Result<Payments, StateError> {
    let (mut runs, mut is_over) = (Vec::new(), HashMap::new());
    for (run, payer) in paid_runs(api, &session.subject).await? {
        if payer == session.id {
            runs.push(run);
            continue;
        }
        if !is_over.contains_key(&payer) {
            let found = api.state.session(&payer, bench_clock::now()).await?;
            is_over.insert(payer.clone(), found.is_none());
        }
        if is_over.get(&payer) == Some(&true) {
            runs.push(run);
        }
    }
    let replaced = is_over.into_iter().filter_map(|(id, is_over)| is_over.then_some(id)).collect();
    Ok(Payments { runs, replaced })
}

/// Returns true if a session pays for open runs.
pub(super) async fn pays_for_open_runs(api: &Api, session: &SessionRecord) -> Result<bool, StateError> {
    Ok(paid_runs(api, &session.subject).await?.iter().any(|(_, payer)| *payer == session.id))
}

/// Returns the open runs that sessions of a user pay for, each with its session. They all belong to the user, since sessions pay
/// for runs of their own user only.
async fn paid_runs(api: &Api, subject: &str) -> Result<Vec<(RunId, SessionId)>, StateError> {
    // A run that starts meanwhile is in both lists.
    let mut open = HashSet::new();
    for status in [RunStatus::Queued, RunStatus::Running] {
        let filter = RunFilter { status: Some(status), ..RunFilter::default() };
        open.extend(api.state.list_runs(&filter, 0, OPEN_RUNS_MAX).await?.runs);
    }
    let own = api.state.runs_of(&[Owner::User(subject.to_owned())]).await?;
    let own: Vec<RunId> = own.into_iter().filter(|run| open.contains(run)).collect();
    let read = api.state.runs(&own).await?.into_iter();
    Ok(read.filter_map(|run| Some((run.spec.id, run.spec.session?))).collect())
}
