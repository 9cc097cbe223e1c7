//! Ends sessions.

use std::collections::HashSet;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bench_domain::run::Owner;
use bench_domain::{Code, RunId, RunStatus};
use bench_state::{RunFilter, SessionRecord, StateError};
use bench_web::ApiError;
use bench_web::body::{BODY_BYTES_MAX, read_bytes, read_object};
use bench_web::error::ErrorBody;
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
    post, path = "/api/auth/logout", tag = "sign-in",
    request_body(content = Option<LogoutBody>, description = "May be left out"),
    responses(
        (status = 200, body = LogoutView),
        (status = 403, body = ErrorBody, description = "The request isn't from a page of this server"),
        (status = 409, body = ErrorBody, description = "The session pays for open runs, and `end_runs` isn't true"),
        (status = 422, body = ErrorBody, description = "The body isn't an object with `end_runs`"),
    ),
)]
pub(crate) async fn logout(State(api): State<Arc<Api>>, request: Request) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let headers = parts.headers;
    let end_runs = read_end_runs(&headers, body).await?;
    if let Some(session) = api.session_of(&headers).await? {
        let open = open_runs(&api, &session).await?;
        if !open.is_empty() && !end_runs {
            return Err(runs_open(open.len()));
        }
        for run in open {
            match cancel_run(&api, run).await {
                // It ended meanwhile.
                Err(error) if error.code() == Code::RunNotCancelable => {}
                ended => ended?,
            }
        }
        api.tokens.end(&session.id).await?;
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

/// Returns the open runs that a session pays for.
pub(super) async fn open_runs(api: &Api, session: &SessionRecord) -> Result<Vec<RunId>, StateError> {
    let owner = Owner::User(session.subject.clone());
    let mut open = Vec::new();
    for status in [RunStatus::Queued, RunStatus::Running] {
        let filter = RunFilter { status: Some(status), ..RunFilter::default() };
        open.extend(api.state.list_runs(&filter, 0, OPEN_RUNS_MAX).await?.runs);
    }
    if open.is_empty() {
        return Ok(open);
    }
    let own: HashSet<RunId> = api.state.runs_of(&[owner]).await?.into_iter().collect();
    let mut paid = Vec::new();
    for run in open.into_iter().filter(|run| own.contains(run)) {
        let found = api.state.run(run).await?;
        if found.is_some_and(|found| found.spec.session.as_ref() == Some(&session.id)) {
            paid.push(run);
        }
    }
    Ok(paid)
}
