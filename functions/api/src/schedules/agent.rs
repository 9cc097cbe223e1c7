//! The agent of a changed schedule. Agents that ask a model, and their options, are options of the schedule's benchmark.

use bench_benchmarks::{CUSTOM_CONTENT, is_agent_option};
use bench_domain::Agent;
use bench_runs::TERMINAL_TASKS;
use serde_json::{Map, Value, json};

use crate::runs::choices::OPTIONS_FIELD;
use crate::runs::tasks::benchmark_with_agent;

/// Field with the agent. It also chooses the model if the agent asks none.
pub(super) const FIELD: &str = "agent";
const OWN_OPTIONS_FIELD: &str = "agent_options";
/// First characters of the agent's options among those of a benchmark.
const PREFIX: &str = "agent.";

/// Removes what a change replaces from a stored order: its agent with the agent's options and, if one of the two agents asks no
/// model, the model; or single options of the agent. Null in the change removes, too, and is removed from the change's options.
pub(super) fn replace(stored: &mut Map<String, Value>, change: &mut Map<String, Value>) {
    let model = change.get("model_id").and_then(Value::as_str);
    match change.get(FIELD) {
        Some(Value::Null) => retain_options(stored, |name| !is_agent_option(name)),
        Some(agent) => {
            retain_options(stored, |name| !is_agent_option(name));
            let model = stored.get("model_id").and_then(Value::as_str).unwrap_or_default();
            if is_agent(model) || agent.as_str().is_some_and(is_agent) {
                stored.remove("model_id");
            }
        }
        // A new model that is an agent itself replaces the agent. `custom` is one with options.
        None if model.is_some_and(|model| is_agent(model) && !is_custom(model)) => {
            retain_options(stored, |name| !is_agent_option(name));
        }
        None => {}
    }
    match change.get_mut(OWN_OPTIONS_FIELD) {
        Some(Value::Null) => {
            retain_options(stored, |name| name.strip_prefix(PREFIX).is_none_or(|own| own == CUSTOM_CONTENT))
        }
        Some(Value::Object(sent)) => {
            let is_sent = |own: &str| sent.keys().any(|name| name.trim() == own);
            retain_options(stored, |name| !name.strip_prefix(PREFIX).is_some_and(is_sent));
            sent.retain(|_, value| !value.is_null());
        }
        _ => {}
    }
}

/// Moves the agent of a stored order to the benchmark that the changed order has instead. `changed` are its fields.
pub(super) fn follow_benchmark(stored: &mut Map<String, Value>, changed: &Map<String, Value>) {
    let texts = |name: &str| -> Vec<&str> {
        changed.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    };
    let has_tasks = changed.get("tasks").and_then(Value::as_array).is_some_and(|tasks| !tasks.is_empty());
    let benchmark = match (has_tasks, texts("selected_benchmarks").as_slice()) {
        (true, _) => TERMINAL_TASKS,
        (false, [one]) => match benchmark_with_agent(one) {
            Some(name) => name,
            None => return,
        },
        (false, _) => return,
    };
    let Some(options) = stored.get_mut(OPTIONS_FIELD).and_then(Value::as_object_mut) else { return };
    if options.contains_key(benchmark) {
        return;
    }
    let is_other = |(_, options): &(&String, &Value)| {
        options.as_object().is_some_and(|options| options.keys().any(|name| is_agent_option(name)))
    };
    let Some(other) = options.iter().find(is_other).map(|(name, _)| name.clone()) else { return };
    if let Some(Value::Object(of_other)) = options.remove(&other) {
        let agent: Map<String, Value> =
            of_other.into_iter().filter(|(name, _)| is_agent_option(name)).collect();
        options.insert(benchmark.to_owned(), Value::Object(agent));
    }
}

/// Returns true for a model that is an agent itself.
fn is_agent(model: &str) -> bool {
    Agent::in_place_of_model(model.trim()).is_some()
}

fn is_custom(model: &str) -> bool {
    Agent::in_place_of_model(model.trim()) == Some(Agent::Custom)
}

/// Keeps only those options of each benchmark whose names are accepted.
pub(super) fn retain_options(fields: &mut Map<String, Value>, is_kept: impl Fn(&str) -> bool) {
    let by_benchmark = fields.get_mut(OPTIONS_FIELD).and_then(Value::as_object_mut).into_iter().flatten();
    for options in by_benchmark.filter_map(|(_, options)| options.as_object_mut()) {
        options.retain(|name, _| is_kept(name));
    }
}

/// Adds the agents of a stored order to the benchmark options of a change, which replace all others. A benchmark
/// whose agent the change names itself loses the stored one.
pub(super) fn with_agents(sent: Value, agents: Value) -> Value {
    let mut sent = match sent {
        Value::Object(sent) => sent,
        Value::Null => Map::new(),
        // Reading the field reports the error.
        other => return other,
    };
    let Value::Object(agents) = agents else { return Value::Object(sent) };
    for (benchmark, agent) in agents {
        let Value::Object(agent) = agent else { continue };
        let of_benchmark = sent.entry(benchmark).or_insert(Value::Null);
        if of_benchmark.is_null() {
            *of_benchmark = json!({});
        }
        let Value::Object(options) = of_benchmark else { continue };
        if !options.contains_key(FIELD) {
            for (name, value) in agent {
                options.entry(name).or_insert(value);
            }
        }
    }
    Value::Object(sent)
}
