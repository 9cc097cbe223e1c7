//! Download of a task's archive.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bench_blobs::task_key;
use bench_web::error::ErrorBody;
use bench_web::{ApiError, Path};
use http::{HeaderMap, StatusCode, Uri, header};

use super::params::Params;
use crate::Api;
use crate::runs::tasks::{task_not_found, visible_task};

/// Time for which the address of an archive is valid.
const ADDRESS_VALID: Duration = Duration::from_secs(300);

/// Returns the archive of a task, which contains its tests and its solution.
#[utoipa::path(
    get, path = "/api/tasks/{task_id}/archive", tag = "tasks", security((), ("key" = []), ("admin" = [])),
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
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let mut params = Params::new(&[("task_id", &task)], &uri);
    let task = params.id("task_id");
    params.finish()?;
    let task = visible_task(&api, &headers, task).await?;
    let key = task_key(&task.facts.content_hash);
    // The uploader's file name is never part of a header.
    let filename = format!("task-{}.zip", task.id);
    if !api.config.streaming {
        let address = api.blobs.presign_get(&key, &filename, ADDRESS_VALID).await;
        let address = address.map_err(ApiError::internal)?;
        return Ok((StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, address)]).into_response());
    }
    let found = api.blobs.stream(&key).await.map_err(ApiError::internal)?;
    let (length, stream) = found.ok_or_else(task_not_found)?;
    let pieces = futures_util::stream::try_unfold(stream, |mut stream| async move {
        let piece = stream.try_next().await.map_err(std::io::Error::other)?;
        Ok::<_, std::io::Error>(piece.map(|piece| (piece, stream)))
    });
    let headers = [
        (header::CONTENT_TYPE, "application/zip".to_owned()),
        (header::CONTENT_LENGTH, length.to_string()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{filename}\"")),
    ];
    Ok((headers, Body::from_stream(pieces)).into_response())
}
