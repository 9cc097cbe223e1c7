//! Agents that this version can order.

use axum::Json;
use bench_domain::Agent;
use serde::Serialize;
use utoipa::ToSchema;

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

/// Lists the agents of this version.
#[utoipa::path(get, path = "/api/agents", tag = "tasks", responses((status = 200, body = Vec<AgentView>)))]
pub(crate) async fn get_agents() -> Json<Vec<AgentView>> {
    let view = |agent: Agent| AgentView { id: agent.as_str(), name: agent.title(), harness: "harbor" };
    Json(Agent::ALL.into_iter().map(view).collect())
}
