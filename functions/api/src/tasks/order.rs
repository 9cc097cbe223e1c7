//! Orders of episodes of one task.

use std::collections::BTreeMap;

use bench_domain::{Code, RunLabels};
use bench_runs::{CreatedRun, Order, Orderer, TERMINAL_TASKS, TrustedSettings};
use bench_state::TaskRecord;
use bench_web::ApiError;
use http::request::Parts;

use crate::Api;
use crate::refusal::refusal;
use crate::runs::create;
use crate::runs::tasks::{agent_options, find_agent, import, model_of};

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
    let options = agent_options(agent, &BTreeMap::new());
    let options = options.map_err(|problem| ApiError::new(Code::InvalidRequest, problem))?;
    let order = Order {
        model: model_of(agent, &task.facts.model),
        options: [(TERMINAL_TASKS.to_owned(), options)].into(),
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
