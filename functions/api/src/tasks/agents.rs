//! Agents that this version can order, and uploaded custom agents.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use bench_benchmarks::{Options, custom_content};
use bench_domain::run::Owner;
use bench_domain::{Agent, BenchmarkName, Code, RunStatus};
use bench_state::{AgentRecord, RunFilter, RunRecord, ScheduleRecord};
use bench_tasks::TaskError;
use bench_web::error::ErrorBody;
use bench_web::{ApiError, Caller, Identity, Path};
use http::Uri;
use serde::Serialize;
use utoipa::ToSchema;

use super::params::Params;
use super::receive::{Received, UploadKind, open_form};
use super::views::MessageView;
use crate::Api;
use crate::runs::tasks::{task_error, uploader};

/// An agent that can be ordered.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Agent)]
pub(crate) struct AgentView {
    /// Name in orders.
    id: &'static str,
    /// Display name.
    name: &'static str,
    /// Harness that the agent comes from.
    harness: &'static str,
}

/// File in a form.
#[derive(Debug, ToSchema)]
#[schema(as = AgentForm)]
#[allow(dead_code)] // a description; the form is read part by part
pub(crate) struct AgentForm {
    /// ZIP archive of the agent's folder, at most 4 MiB, and 16 MiB of files in it.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
}

/// An uploaded custom agent.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CustomAgent)]
pub(crate) struct CustomAgentView {
    /// Content hash of its files, 64 hexadecimal digits: the agent option `content_hash` of orders.
    id: String,
    /// Name, as in its `agent.toml`.
    name: String,
    /// Version; null if it states none.
    version: Option<String>,
    /// Name in runs, in the place of a model: `custom/NAME@VERSION`.
    model: String,
    /// Variables of the order that it needs, without a default.
    required_variables: Vec<String>,
    /// Number of files.
    files: u64,
    /// Size of the files in bytes.
    expanded_bytes: u64,
    /// Size of the archive in bytes.
    archive_bytes: u64,
    /// Time of the first upload, in UTC.
    created_at: String,
}

impl CustomAgentView {
    fn new(agent: AgentRecord) -> Self {
        let model = format!("{}/{}", Agent::Custom, agent.title());
        let AgentRecord {
            content_hash,
            name,
            version,
            required_variables,
            files,
            expanded_bytes,
            archive_bytes,
            owner: _,
            created_at,
        } = agent;
        Self {
            id: content_hash,
            name,
            version,
            model,
            required_variables,
            files,
            expanded_bytes,
            archive_bytes,
            created_at: created_at.to_string(),
        }
    }
}

/// Lists the agents of this version.
#[utoipa::path(get, path = "/api/agents", tag = "tasks", responses((status = 200, body = Vec<AgentView>)))]
pub(crate) async fn get_agents() -> Json<Vec<AgentView>> {
    let view = |agent: Agent| AgentView { id: agent.as_str(), name: agent.title(), harness: "harbor" };
    Json(Agent::ALL.into_iter().map(view).collect())
}

/// Uploads a custom agent.
///
/// The archive is checked before it is accepted; `refusal` of an error has file, line and admission code. The same files
/// again are the same agent.
#[utoipa::path(
    post, path = "/api/agents", tag = "tasks", security((), ("key" = []), ("admin" = []), ("session" = [])),
    request_body(content((AgentForm = "multipart/form-data"))),
    responses(
        (status = 200, body = CustomAgentView),
        (status = 400, body = ErrorBody, description = "The archive was refused"),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 422, body = ErrorBody),
    ),
)]
pub(crate) async fn post_agent(
    State(api): State<Arc<Api>>,
    request: Request,
) -> Result<Json<CustomAgentView>, ApiError> {
    let (parts, body) = request.into_parts();
    let orderer = uploader(&api, &parts).await?;
    let form = open_form(Request::from_parts(parts, body), UploadKind::Agent).await?;
    let Received { archive, place, .. } = form.receive(&api.archives, UploadKind::Agent).await?;
    let agent = api.agents.add(archive, orderer.owner).await.map_err(agent_error)?;
    drop(place);
    Ok(Json(CustomAgentView::new(agent)))
}

/// Lists the caller's custom agents, newest first.
#[utoipa::path(
    get, path = "/api/agents/custom", tag = "tasks", security((), ("key" = []), ("admin" = []), ("session" = [])),
    responses((status = 200, body = Vec<CustomAgentView>)),
)]
pub(crate) async fn get_custom_agents(
    State(api): State<Arc<Api>>,
    identity: Identity,
) -> Result<Json<Vec<CustomAgentView>>, ApiError> {
    let caller = identity.reader();
    let mut agents = api.agents.list().await.map_err(agent_error)?;
    agents.retain(|agent| caller.owns(&agent.owner));
    Ok(Json(agents.into_iter().map(CustomAgentView::new).collect()))
}

/// Returns a custom agent.
#[utoipa::path(
    get, path = "/api/agents/custom/{agent_id}", tag = "tasks", security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(("agent_id" = String, Path, description = "Content hash of the agent")),
    responses(
        (status = 200, body = CustomAgentView),
        (status = 404, body = ErrorBody, description = "There is no such agent, or it belongs to another caller"),
    ),
)]
pub(crate) async fn get_custom_agent(
    State(api): State<Arc<Api>>,
    Path(agent): Path<String>,
    identity: Identity,
) -> Result<Json<CustomAgentView>, ApiError> {
    let (mut own, _) = agents_of(&api, identity.reader(), &agent).await?;
    Ok(Json(CustomAgentView::new(own.swap_remove(0))))
}

/// Removes a custom agent.
///
/// Runs that are over stay, with their results. Repeating their samples needs the agent: upload the same files again.
#[utoipa::path(
    delete, path = "/api/agents/custom/{agent_id}", tag = "tasks", security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(("agent_id" = String, Path, description = "Content hash of the agent")),
    responses(
        (status = 200, body = MessageView),
        (status = 401, body = ErrorBody),
        (status = 404, body = ErrorBody, description = "There is no such agent, or it belongs to another caller"),
        (status = 409, body = ErrorBody, description = "An open run or a schedule needs the agent"),
        (status = 422, body = ErrorBody),
    ),
)]
pub(crate) async fn delete_custom_agent(
    State(api): State<Arc<Api>>,
    Path(agent): Path<String>,
    uri: Uri,
    identity: Identity,
) -> Result<Json<MessageView>, ApiError> {
    Params::new(&[], &uri).finish()?;
    let caller = identity.caller()?;
    let (own, others) = agents_of(&api, caller, &agent).await?;
    // Other callers' runs and schedules need the agent only if they have its files from this caller.
    let needs = |owner: &Owner| others.is_empty() || own.iter().any(|record| record.owner == *owner);
    refuse_in_use(&api, caller, &agent, needs).await?;
    for agent in &own {
        api.agents.remove(agent).await.map_err(agent_error)?;
    }
    Ok(Json(MessageView { message: "Agent deleted successfully".to_owned() }))
}

/// Returns the records of a content: the caller's, of which there is at least one, and those of others.
///
/// # Errors
/// 404 if none is the caller's.
pub(super) async fn agents_of(
    api: &Api,
    caller: &Caller,
    hash: &str,
) -> Result<(Vec<AgentRecord>, Vec<AgentRecord>), ApiError> {
    let is_hash = hash.len() == 64 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let all = match is_hash {
        true => api.agents.of_content(hash).await.map_err(agent_error)?,
        false => Vec::new(),
    };
    let (own, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|agent| caller.owns(&agent.owner));
    match own.is_empty() {
        false => Ok((own, others)),
        true => Err(agent_not_found()),
    }
}

/// Returns the error for an agent that doesn't exist, or isn't the caller's.
pub(super) fn agent_not_found() -> ApiError {
    ApiError::new(Code::AgentNotFound, "Agent not found")
        .hint("check the id: `GET /api/agents/custom` lists the agents that this caller may see")
}

/// Refuses the removal of an agent that an open run or a schedule of the owners in `is_asked` needs. The message names only what
/// the caller may see.
async fn refuse_in_use(
    api: &Api,
    caller: &Caller,
    hash: &str,
    is_asked: impl Fn(&Owner) -> bool,
) -> Result<(), ApiError> {
    let has_agent = |options: &BTreeMap<BenchmarkName, Options>| {
        options.values().any(|options| custom_content(options) == Some(hash))
    };
    for status in [RunStatus::Queued, RunStatus::Running] {
        let filter = RunFilter { status: Some(status), ..RunFilter::default() };
        for run in api.state.list_runs(&filter, 0, u64::MAX).await?.runs {
            let Some(RunRecord { spec, state, .. }) = api.state.run(run).await? else { continue };
            if state.status().is_open() && is_asked(&spec.owner) && has_agent(&spec.options) {
                let what = if caller.owns(&spec.owner) {
                    format!("run {run}")
                } else {
                    "a run of another caller".to_owned()
                };
                let why = format!("{what} needs this agent; cancel it, or remove the agent when it is over");
                return Err(ApiError::new(Code::AgentInUse, why));
            }
        }
    }
    for ScheduleRecord { schedule, .. } in api.state.list_schedules().await? {
        if is_asked(&schedule.owner) && has_agent(&schedule.run.options) {
            let why = match caller.owns(&schedule.owner) {
                true => format!(
                    "the schedule `{}` runs this agent; change or delete the schedule before you remove the agent",
                    schedule.name
                ),
                false => "a schedule of another caller runs this agent".to_owned(),
            };
            return Err(ApiError::new(Code::AgentInUse, why));
        }
    }
    Ok(())
}

/// Converts an error of the store of agents.
fn agent_error(error: TaskError) -> ApiError {
    match error {
        TaskError::Refused(refusal) => {
            let place = refusal.place.clone();
            let (file, line) = place.map_or((None, None), |place| (Some(place.file), place.line));
            let problem = bench_web::AdmissionRefusal { code: refusal.code(), file, line };
            ApiError::new(Code::AgentRefused, refusal.to_string()).refused_for(problem)
        }
        other => task_error(other),
    }
}
