//! Downloads of the archives of tasks and custom agents.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bench_blobs::{agent_key, task_key};
use bench_web::error::ErrorBody;
use bench_web::{ApiError, Identity, Path};
use http::{StatusCode, Uri, header};

use super::agents::{agent_not_found, agents_of};
use super::params::Params;
use crate::Api;
use crate::runs::tasks::{task_not_found, visible_task};

/// Time for which the address of an archive is valid.
const ADDRESS_VALID: Duration = Duration::from_secs(300);

/// Returns the archive of a task, which contains its tests and its solution.
#[utoipa::path(
    get, path = "/api/tasks/{task_id}/archive", tag = "tasks", security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(("task_id" = u64, Path, description = "Id of the task")),
    responses(
        (status = 200, body = Vec<u8>, content_type = "application/zip"),
        (status = 307, description = "The archive is at another address, which is valid for five minutes"),
        (status = 404, body = ErrorBody, description = "There is no such task, or it belongs to another caller"),
        (status = 422, body = ErrorBody),
    ),
)]
pub(crate) async fn get_archive(
    State(api): State<Arc<Api>>,
    Path(task): Path<String>,
    uri: Uri,
    identity: Identity,
) -> Result<Response, ApiError> {
    let mut params = Params::new(&[("task_id", &task)], &uri);
    let task = params.id("task_id");
    params.finish()?;
    let task = visible_task(&api, &identity, task).await?;
    // The uploader's file name is never part of a header.
    let filename = format!("task-{}.zip", task.id);
    let found = archive(&api, &task_key(&task.facts.content_hash), &filename).await?;
    found.ok_or_else(task_not_found)
}

/// Returns the archive of a custom agent.
#[utoipa::path(
    get, path = "/api/agents/custom/{agent_id}/archive", tag = "tasks", security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(("agent_id" = String, Path, description = "Content hash of the agent")),
    responses(
        (status = 200, body = Vec<u8>, content_type = "application/zip"),
        (status = 307, description = "The archive is at another address, which is valid for five minutes"),
        (status = 404, body = ErrorBody, description = "There is no such agent, or it belongs to another caller"),
    ),
)]
pub(crate) async fn get_agent_archive(
    State(api): State<Arc<Api>>,
    Path(agent): Path<String>,
    identity: Identity,
) -> Result<Response, ApiError> {
    agents_of(&api, identity.reader(), &agent).await?;
    let short: String = agent.chars().take(12).collect();
    let found = archive(&api, &agent_key(&agent), &format!("agent-{short}.zip")).await?;
    found.ok_or_else(agent_not_found)
}

/// Returns a stored archive under a file name, or a redirect to it where responses aren't streamed; `None` if there is none
/// to stream.
async fn archive(api: &Api, key: &str, filename: &str) -> Result<Option<Response>, ApiError> {
    if !api.config.streaming {
        let address = api.blobs.presign_get(key, filename, ADDRESS_VALID).await;
        let address = address.map_err(ApiError::internal)?;
        return Ok(Some((StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, address)]).into_response()));
    }
    let found = api.blobs.stream(key).await.map_err(ApiError::internal)?;
    let Some((length, stream)) = found else { return Ok(None) };
    let pieces = futures_util::stream::try_unfold(stream, |mut stream| async move {
        let piece = stream.try_next().await.map_err(std::io::Error::other)?;
        Ok::<_, std::io::Error>(piece.map(|piece| (piece, stream)))
    });
    let headers = [
        (header::CONTENT_TYPE, "application/zip".to_owned()),
        (header::CONTENT_LENGTH, length.to_string()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{filename}\"")),
    ];
    Ok(Some((headers, Body::from_stream(pieces)).into_response()))
}
