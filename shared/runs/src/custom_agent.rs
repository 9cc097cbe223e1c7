//! Custom agents of orders. They stand in the place of a model: nothing on this side is asked for one.

use bench_benchmarks::{Options, custom_content, task_variables};
use bench_domain::run::ModelRef;
use bench_domain::{Agent, ModelId};
use bench_inference::ModelSource;
use bench_state::AgentRecord;

use crate::agent_problem::CustomAgentProblem;
use crate::{FoundModel, Order, Orderer, Orders, RunError, Standing};

impl Orders {
    /// Returns what stands in the place of the model of an order with a custom agent; `None` for other orders. `orderer` is
    /// `None` while the caller is unknown.
    pub(crate) async fn find_custom_agent(
        &self,
        order: &Order,
        orderer: Option<&Orderer>,
    ) -> Result<Option<FoundModel>, RunError> {
        let options = order.options.values().map(trimmed).find(is_custom);
        let is_model = Agent::in_place_of_model(&order.model) == Some(Agent::Custom);
        let (options, hash) = match (options, is_model) {
            (None, false) => return Ok(None),
            (Some(_), false) => return Err(CustomAgentProblem::HasModel.into()),
            (None, true) => return Err(CustomAgentProblem::NoContent.into()),
            (Some(options), true) => match custom_content(&options).map(str::to_owned) {
                Some(hash) if has_one_benchmark(order) => (options, hash),
                _ => return Err(CustomAgentProblem::NoContent.into()),
            },
        };
        let records = self.runs.state.agents_of_content(&hash).await?;
        let record =
            records.into_iter().find(|record| orderer.is_none_or(|orderer| is_visible(record, orderer)));
        let shown = || hash.chars().filter(|c| !c.is_control()).take(64).collect();
        let record = record.ok_or_else(|| CustomAgentProblem::NotFound(shown()))?;
        let given = task_variables(Some(&options));
        if let Some(variable) = record.required_variables.iter().find(|name| !given.contains_key(*name)) {
            let (agent, variable) = (record.title(), variable.clone());
            return Err(CustomAgentProblem::NoVariable { agent, variable }.into());
        }
        let (provider, slug) = (ModelSource::Custom.as_str(), record.title());
        let model = ModelRef {
            id: ModelId::from_name(provider, &slug),
            provider: provider.to_owned(),
            slug,
            base_url: None,
            replay_key: None,
            endpoint_host: None,
        };
        Ok(Some(FoundModel { model, source: ModelSource::Custom, chute_id: None, price: None }))
    }
}

/// Returns options as they are checked and stored, without spaces around names and values.
fn trimmed(options: &Options) -> Options {
    options.iter().map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect()
}

fn is_custom(options: &Options) -> bool {
    options.get("agent").is_some_and(|agent| agent == Agent::Custom.as_str())
}

/// Returns true if the order has one benchmark, and the agent is that benchmark's.
fn has_one_benchmark(order: &Order) -> bool {
    let Some([name]) = order.benchmarks.as_deref() else { return false };
    let of_it = order.options.iter().filter(|(other, _)| other.trim().eq_ignore_ascii_case(name.trim()));
    of_it.into_iter().any(|(_, options)| is_custom(&trimmed(options)))
}

/// Returns true if a caller may order an agent.
fn is_visible(agent: &AgentRecord, orderer: &Orderer) -> bool {
    matches!(orderer.standing, Standing::Local | Standing::Admin) || agent.owner == orderer.owner
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_belongs_to_the_only_benchmark() {
        let custom: Options = [(" agent ".to_owned(), " custom ".to_owned())].into();
        let order = |benchmarks: Option<&[&str]>| Order {
            benchmarks: benchmarks.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
            options: [("Terminal_Tasks".to_owned(), custom.clone())].into(),
            ..Order::default()
        };
        assert!(has_one_benchmark(&order(Some(&["terminal_tasks "]))));
        for benchmarks in
            [None, Some(["mmlu_pro"].as_slice()), Some(&["terminal_tasks", "mmlu_pro"]), Some(&[])]
        {
            assert!(!has_one_benchmark(&order(benchmarks)), "{benchmarks:?}");
        }
    }
}
