//! Uploads of tasks: in the request, or by an address that was requested before.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use bench_runs::Orderer;
use bench_state::TaskRecord;
use bench_tasks::{CheckedTask, TaskUpload, item_id_of, task_name};
use bench_web::body::read_object;
use bench_web::error::ErrorBody;
use bench_web::{ApiError, FieldReader};
use http::request::Parts;
use serde::Serialize;
use utoipa::ToSchema;

use super::params::Params;
use super::progress::Progress;
use super::receive::{Received, UploadKind, is_json, missing_file, open_form};
use super::uploads::{UPLOAD_CHARS_MAX, receive_upload};
use super::views::{AddedTaskView, TaskView};
use crate::Api;
use crate::cache::tasks::TaskResultsView;
use crate::runs::tasks::{task_error, uploader};

const NAME_CHARS_MAX: usize = 255;
const MODEL_CHARS_MAX: usize = 100;
const AGENT_CHARS_MAX: usize = 50;
const MODEL_DEFAULT: &str = "openai/gpt-5";
const AGENT_DEFAULT: &str = "terminus-2";
const HARNESS_DEFAULT: &str = "harbor";

/// File in a form.
#[derive(Debug, ToSchema)]
#[schema(as = TaskForm)]
#[allow(dead_code)] // a description; the form is read part by part
pub(crate) struct TaskForm {
    /// ZIP archive of the task's folder, at most 100 MiB, and 60 MiB of files in it.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
}

/// Task whose archive was uploaded before.
#[derive(Debug, ToSchema)]
#[schema(as = UploadedTask)]
#[allow(dead_code)] // a description; the body is read field by field
pub(crate) struct UploadedTask {
    /// `key` of `POST /api/tasks/uploads`.
    upload: String,
    /// File name. It is metadata only.
    file_name: Option<String>,
    /// Name of the task. A blank one is replaced by the task's own name.
    #[schema(max_length = 255)]
    name: String,
    #[schema(max_length = 100, default = "openai/gpt-5")]
    model: Option<String>,
    #[schema(max_length = 50, default = "terminus-2")]
    agent: Option<String>,
    #[schema(max_length = 50, default = "harbor")]
    harness: Option<String>,
    #[schema(minimum = 1, maximum = 100, default = 10)]
    num_runs: Option<u32>,
    /// False to leave the task out of lists, because it is stored for a run.
    #[schema(default = true)]
    listed: Option<bool>,
}

/// Facts about an archive that would be accepted.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CheckedTask)]
pub(crate) struct CheckedView {
    /// Name that the task has itself, or the one of its folder; null if it has neither.
    name: Option<String>,
    /// Content hash, equal for equal files.
    content_hash: String,
    /// Id of the item in runs, if the task has a name: `NAME@HASH12`.
    task: Option<String>,
    /// Format: `harbor` or `terminal-bench-1`.
    format: String,
    /// Instructions of all steps, cut to 64 KiB.
    instruction: String,
    /// Number of files.
    files: u64,
    /// Size of the files in bytes.
    expanded_bytes: u64,
    /// Size of the archive in bytes.
    archive_bytes: u64,
    /// Number of steps.
    steps: u64,
    /// True if every step has a solution, which the agent `oracle` runs.
    has_solution: bool,
    /// Keys of the configuration that have no effect because the format doesn't know them, and scripts that can't run because
    /// their lines end as on Windows; one sentence each.
    warnings: Vec<String>,
}

/// What the uploader says about a task.
struct Description {
    name: String,
    model: String,
    agent: String,
    harness: String,
    num_runs: u32,
    listed: bool,
}

impl Description {
    fn read(fields: &mut FieldReader) -> Self {
        if !fields.has("name") {
            // Without the input, which would be all other parameters.
            fields.note("missing", "name", "Field required");
        }
        let mut text = |name: &str, chars_max, default: &str| {
            let text = fields.maybe_text(name, chars_max).unwrap_or_else(|| default.to_owned());
            if text.contains(char::is_control) {
                fields.note_invalid(name, "it must not have control characters");
            }
            text
        };
        let (name, model) = (text("name", NAME_CHARS_MAX, ""), text("model", MODEL_CHARS_MAX, MODEL_DEFAULT));
        let agent = text("agent", AGENT_CHARS_MAX, AGENT_DEFAULT);
        let harness = text("harness", AGENT_CHARS_MAX, HARNESS_DEFAULT);
        let num_runs = u32::try_from(fields.integer("num_runs", 10, 1, 100)).unwrap_or(1);
        let listed = fields.maybe_flag("listed").unwrap_or(true);
        Self { name, model, agent, harness, num_runs, listed }
    }
}

/// Uploads a task.
///
/// The archive is checked before it is accepted; `refusal` of an error has file, line and admission code. Send archives
/// above the server's limit for requests to the address of `POST /api/tasks/uploads` first, and name them in a JSON body.
#[utoipa::path(
    post, path = "/api/tasks", tag = "tasks", security((), ("key" = []), ("admin" = []), ("session" = [])),
    request_body(content((TaskForm = "multipart/form-data"), (UploadedTask = "application/json"))),
    params(
        ("name" = Option<String>, Query, description = "Name of the task, at most 255 characters; required with a form. A blank one is replaced by the task's own name"),
        ("model" = Option<String>, Query, description = "Model, default `openai/gpt-5`. It goes to OpenRouter"),
        ("agent" = Option<String>, Query, description = "Agent, default `terminus-2`"),
        ("harness" = Option<String>, Query, description = "Harness, default `harbor`. It has no effect"),
        ("num_runs" = Option<u64>, Query, description = "Number of episodes of an execution, 1 to 100, default 10"),
        ("listed" = Option<bool>, Query, description = "False to leave the task out of lists, because it is stored for a run; default true"),
    ),
    responses(
        (status = 200, body = AddedTaskView),
        (status = 400, body = ErrorBody, description = "The archive was refused"),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody, description = "There is no such upload"),
        (status = 409, body = ErrorBody), (status = 413, body = ErrorBody),
        (status = 422, body = ErrorBody),
    ),
)]
pub(crate) async fn post_task(
    State(api): State<Arc<Api>>,
    request: Request,
) -> Result<Json<AddedTaskView>, ApiError> {
    let (description, orderer, received) = if is_json(request.headers()) {
        let (parts, body) = request.into_parts();
        let mut fields = read_object(&parts.headers, body).await?;
        let upload = fields.text("upload", UPLOAD_CHARS_MAX);
        let file_name = fields.maybe_text("file_name", NAME_CHARS_MAX).unwrap_or_default();
        let description = Description::read(&mut fields);
        fields.refuse_unknown(&[
            "upload",
            "file_name",
            "name",
            "model",
            "agent",
            "harness",
            "num_runs",
            "listed",
        ]);
        fields.finish()?;
        let orderer = uploader(&api, &parts).await?;
        let received = receive_upload(&api, &orderer, &upload, file_name).await?;
        (description, orderer, received)
    } else {
        let mut params = Params::new(&[], request.uri());
        let description = Description::read(&mut params.query);
        let (orderer, received) = receive_form(&api, params, request).await?;
        (description, orderer, received)
    };
    let Received { archive, file_name, place } = received;
    let Description { name, model, agent, harness, num_runs, listed } = description;
    let unlisted = !listed;
    let upload =
        TaskUpload { name, file_name, model, agent, harness, num_runs, unlisted, owner: orderer.owner };
    let (task, checked) = api.tasks.add(archive, upload).await.map_err(task_error)?;
    drop(place);
    let same_files_as = same_files_as(&api, &task).await?;
    let view = TaskView::new(&task, &Progress::default(), TaskResultsView::default());
    Ok(Json(AddedTaskView { task: view, same_files_as, warnings: checked.warnings }))
}

/// Returns the oldest other task of the same owner with the same files.
async fn same_files_as(api: &Api, task: &TaskRecord) -> Result<Option<u64>, ApiError> {
    let all = api.tasks.list().await.map_err(task_error)?;
    let is_same = |other: &&TaskRecord| {
        other.id < task.id
            && other.facts.content_hash == task.facts.content_hash
            && other.facts.owner == task.facts.owner
    };
    Ok(all.iter().filter(is_same).map(|other| other.id).min())
}

/// Checks an archive without storing it.
#[utoipa::path(
    post, path = "/api/tasks/check", tag = "tasks", security((), ("key" = []), ("admin" = []), ("session" = [])),
    request_body(content((TaskForm = "multipart/form-data"))),
    responses(
        (status = 200, body = CheckedView),
        (status = 400, body = ErrorBody, description = "The archive would be refused"),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 422, body = ErrorBody),
    ),
)]
pub(crate) async fn post_check(
    State(api): State<Arc<Api>>,
    request: Request,
) -> Result<Json<CheckedView>, ApiError> {
    let params = Params::new(&[], request.uri());
    let (_, received) = receive_form(&api, params, request).await?;
    let (checked, archive) = api.tasks.check(received.archive).await.map_err(task_error)?;
    Ok(Json(CheckedView::new(checked, archive.bytes())))
}

/// Receives the file of a form, once the caller and all parameters are known to be right.
async fn receive_form(api: &Api, params: Params, request: Request) -> Result<(Orderer, Received), ApiError> {
    let (parts, body) = request.into_parts();
    let orderer = uploader(api, &parts).await;
    let form = open_form(Request::from_parts(copy(&parts), body), UploadKind::Task).await?;
    let mut problems = params.into_problems();
    if !problems.is_empty() {
        if !form.has_file().await {
            problems.push(missing_file());
        }
        return Err(ApiError::validation(problems));
    }
    Ok((orderer?, form.receive(&api.archives, UploadKind::Task).await?))
}

/// Copies what the form of a request needs of its head.
fn copy(parts: &Parts) -> Parts {
    let mut head = http::Request::new(()).into_parts().0;
    head.headers = parts.headers.clone();
    head.method = parts.method.clone();
    // Among them is that the routes have no limit of their own.
    head.extensions = parts.extensions.clone();
    head
}

impl CheckedView {
    fn new(checked: CheckedTask, archive_bytes: u64) -> Self {
        let CheckedTask {
            name,
            content_hash,
            format,
            instruction,
            files,
            expanded_bytes,
            steps,
            has_solution,
            warnings,
            variables: _,
        } = checked;
        let task = name.as_deref().map(|name| item_id_of(&task_name(Some(name), ""), &content_hash));
        Self {
            name,
            content_hash,
            task,
            format,
            instruction,
            files,
            expanded_bytes,
            archive_bytes,
            steps,
            has_solution,
            warnings,
        }
    }
}
