//! Orders of episodes of one task.

use bench_domain::RunLabels;
use bench_runs::{CreatedRun, Order, Orderer, TERMINAL_TASKS, TrustedSettings};
use bench_state::TaskRecord;
use bench_web::ApiError;
use http::request::Parts;

use crate::Api;
use crate::refusal::refusal;
use crate::runs::create;
use crate::runs::tasks::{find_agent, import, model_of};

/// Orders episodes of one task as a run. The same `key` orders one run only.
///
/// # Errors
/// Those of an order of a run, and 400 for an agent that this version doesn't have.
pub(crate) async fn order_episodes(
    api: &Api,
    parts: &Parts,
    orderer: Orderer,
    task: &TaskRecord,
    samples: u32,
    key: String,
) -> Result<CreatedRun, ApiError> {
    let agent = find_agent(&task.facts.agent)?;
    create::refuse_in_maintenance(api)?;
    let name = TERMINAL_TASKS.parse().map_err(ApiError::internal)?;
    let dataset = import(api, std::slice::from_ref(task)).await?;
    let order = Order {
        model: model_of(agent).to_owned(),
        benchmarks: Some(vec![TERMINAL_TASKS.to_owned()]),
        samples: Some(samples),
        labels: RunLabels { tags: vec![format!("task-{}", task.id)], ..RunLabels::default() },
        idempotency_key: Some(key),
        trusted: TrustedSettings { datasets: [(name, dataset)].into(), ..TrustedSettings::default() },
        ..Order::default()
    };
    let found = api.orders.find_model(&order, Some(&orderer)).await.map_err(refusal)?;
    // A key that no provider gets isn't stored.
    let orderer = match found.source.is_remote() {
        true => orderer,
        false => Orderer { api_key: None, ..orderer },
    };
    let created = create::create(api, parts, order, orderer, found).await?;
    if created.is_new {
        api.clear_queue_positions();
    }
    Ok(created)
}
