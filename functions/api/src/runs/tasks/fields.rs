//! Fields `tasks`, `agent` and `agent_options` of orders of runs.

use std::collections::BTreeMap;

use bench_benchmarks::CUSTOM_CONTENT;
use bench_domain::Agent;
use bench_runs::{NO_MODEL, TERMINAL_TASKS};
use bench_web::FieldReader;
use serde_json::{Map, Value, json};

use super::agent::{agent_options, find_agent};
use crate::runs::choices::{OPTIONS_FIELD, find_ordered, with_known_names};

/// Maximum number of tasks of an order.
const TASKS_MAX: usize = 1_000;
const REFERENCE_CHARS_MAX: usize = 255;
const AGENT_CHARS_MAX: usize = 50;
/// Maximum number of options of an agent, and length of a value.
const AGENT_OPTIONS_MAX: usize = 50;
const OPTION_CHARS_MAX: usize = 256;

/// Tasks of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OrderedTasks {
    /// Ids, content hashes or ids of items.
    pub(crate) tasks: Vec<String>,
}

/// Reads the tasks of an order, and completes its other fields: the agent decides the model, and the benchmark is known.
pub(crate) fn take_task_fields(fields: &mut FieldReader) -> Option<OrderedTasks> {
    if let Some(sent) = fields.peek_object(OPTIONS_FIELD)
        && let Some(known) = fields.checked(OPTIONS_FIELD, with_known_names(&sent))
    {
        fields.set(OPTIONS_FIELD, Value::Object(known));
    }
    let tasks = fields.maybe_names("tasks", TASKS_MAX, REFERENCE_CHARS_MAX).unwrap_or_default();
    let agent = fields.maybe_text("agent", AGENT_CHARS_MAX);
    let has_options = fields.has("agent_options");
    let own = fields.maybe_settings("agent_options", AGENT_OPTIONS_MAX, OPTION_CHARS_MAX).unwrap_or_default();
    let benchmarks = fields.peek_texts("selected_benchmarks");
    let is_tasks = |name: &String| name.trim().eq_ignore_ascii_case(TERMINAL_TASKS);
    if tasks.is_empty() {
        if benchmarks.iter().any(is_tasks) {
            let msg =
                format!("Field required for `{TERMINAL_TASKS}`: ids of tasks, content hashes or NAME@HASH12");
            fields.note("missing", "tasks", msg);
        } else if agent.is_some() || has_options {
            let only = match benchmarks.as_slice() {
                [one] => benchmark_with_agent(one),
                _ => None,
            };
            match only {
                Some(name) => complete_agent(fields, agent.as_deref(), &own, name),
                None => {
                    let field = if agent.is_some() { "agent" } else { "agent_options" };
                    let problem =
                        "only orders of `tasks`, or of one benchmark with agents and no other, have an agent";
                    fields.note_invalid(field, problem);
                }
            }
        }
        return None;
    }
    if !benchmarks.iter().all(is_tasks) {
        let problem =
            format!("`tasks` are items of `{TERMINAL_TASKS}`, which can't be ordered with other benchmarks");
        fields.note_invalid("selected_benchmarks", problem);
    }
    fields.set("selected_benchmarks", json!([TERMINAL_TASKS]));
    if fields.has("demo") && fields.flag("demo") {
        fields.note_invalid("demo", "there is no demo data of tasks");
    }
    if fields.maybe_texts("items", usize::MAX, usize::MAX).is_some_and(|items| !items.is_empty()) {
        fields.note_invalid("items", "the items are the `tasks`");
    }
    complete_agent(fields, agent.as_deref(), &own, TERMINAL_TASKS);
    Some(OrderedTasks { tasks })
}

/// Returns the name of a benchmark on whose items an agent works.
pub(crate) fn benchmark_with_agent(name: &str) -> Option<&'static str> {
    find_ordered(name).filter(|found| found.has_agent()).map(|found| found.name())
}

/// Completes the fields for the model and the options of a benchmark by those for the agent.
fn complete_agent(
    fields: &mut FieldReader,
    agent: Option<&str>,
    own: &BTreeMap<String, String>,
    benchmark: &str,
) {
    let model = fields.maybe_text("model_id", usize::MAX).filter(|model| !model.trim().is_empty());
    // The benchmark's own options name the agent if the fields don't.
    let of_benchmark = fields.peek_object(OPTIONS_FIELD).unwrap_or_default();
    let option = |name: &str| match of_benchmark.get(benchmark)?.get(name)? {
        Value::String(text) => Some(text.clone()),
        value @ (Value::Number(_) | Value::Bool(_)) => Some(value.to_string()),
        _ => None,
    };
    let in_options = option("agent").filter(|name| !name.trim().is_empty());
    if let (Some(agent), Some(other)) = (agent, &in_options)
        && agent.trim() != other.trim()
    {
        let problem =
            format!("`{}` is not the agent that the option `agent` of `{benchmark}` names", agent.trim());
        fields.note_invalid("agent", problem);
    }
    let differs = |(name, value): &(&String, &String)| {
        option(&format!("agent.{name}")).is_some_and(|other| other.trim() != value.trim())
    };
    if let Some((name, _)) = own.iter().find(differs) {
        let problem = format!("`{name}` has another value in the option `agent.{name}` of `{benchmark}`");
        fields.note_invalid("agent_options", problem);
    }
    let agent = match agent.or(in_options.as_deref()) {
        Some(name) => fields.checked("agent", find_agent(name.trim()).map_err(|error| error.message())),
        None => match &model {
            Some(model) => Some(agent_of_model(model.trim()).unwrap_or(Agent::DEFAULT)),
            None => {
                fields.note("missing", "agent", "Field required");
                None
            }
        },
    };
    let Some(agent) = agent else { return };
    match model.as_deref().map(str::trim) {
        None if agent.asks_model() => {
            let problem = format!("Field required: the agent `{agent}` asks a model");
            fields.note("missing", "model_id", problem);
        }
        None => fields.set("model_id", json!(agent.as_str())),
        Some(model) if agent.asks_model() && agent_of_model(model).is_some() => {
            fields
                .note_invalid("model_id", format!("the agent `{agent}` asks a model, and `{model}` is none"));
        }
        Some(model) if agent == Agent::Custom && agent_of_model(model) != Some(agent) => {
            fields.note_invalid("model_id", NO_MODEL);
        }
        // What a schedule or an earlier run names has the agent's name and version, too.
        Some(_) if agent == Agent::Custom => fields.set("model_id", json!(agent.as_str())),
        Some(model) if !agent.asks_model() && model != agent.as_str() => {
            let problem = format!("the agent `{agent}` asks no model; leave `model_id` out");
            fields.note_invalid("model_id", problem);
        }
        Some(_) => {}
    }
    let mut own = own.clone();
    if agent == Agent::Custom
        && !own.contains_key(CUSTOM_CONTENT)
        && let Some(content) = option(&format!("agent.{CUSTOM_CONTENT}"))
    {
        own.insert(CUSTOM_CONTENT.to_owned(), content);
    }
    if let Some(options) = fields.checked("agent_options", agent_options(agent, &own)) {
        add_options(fields, benchmark, options);
    }
}

/// Returns the agent of a source of answers that is one itself.
fn agent_of_model(model: &str) -> Option<Agent> {
    Agent::in_place_of_model(model)
}

/// Adds options to those of the benchmark that were sent.
fn add_options(fields: &mut FieldReader, benchmark: &str, options: bench_benchmarks::Options) {
    if options.is_empty() {
        return;
    }
    // What isn't an object is reported when the field is read.
    let Some(mut sent) = fields.peek_object(OPTIONS_FIELD) else { return };
    let of_tasks = sent.entry(benchmark).or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(of_tasks) = of_tasks {
        of_tasks.extend(options.into_iter().map(|(name, value)| (name, Value::from(value))));
    }
    fields.set(OPTIONS_FIELD, Value::Object(sent));
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn read(body: Value) -> (Option<OrderedTasks>, FieldReader) {
        let mut fields = FieldReader::from_body(body.as_object().unwrap().clone());
        let tasks = take_task_fields(&mut fields);
        (tasks, fields)
    }

    #[test]
    fn the_agent_decides_model_and_benchmark() {
        let (tasks, mut fields) = read(json!({ "tasks": [1, "name@0123456789ab"], "agent": "oracle" }));
        assert_eq!(tasks.unwrap().tasks, ["1", "name@0123456789ab"]);
        assert_eq!(fields.text("model_id", 100), "oracle");
        assert_eq!(fields.peek_texts("selected_benchmarks"), [TERMINAL_TASKS]);
        assert!(fields.finish().is_ok());
        let (tasks, fields) = read(json!({ "tasks": ["1"], "model_id": "oracle" }));
        assert!(tasks.is_some() && fields.finish().is_ok());
    }

    #[test]
    fn agents_that_ask_a_model_are_options_of_the_benchmark() {
        let sent = json!({
            "tasks": [1], "agent": "bash", "model_id": "a/b", "agent_options": { "max_turns": 3 },
            "benchmark_options": { "terminal_tasks": { "env.A": "1" } },
        });
        let (_, mut fields) = read(sent);
        let options = fields.maybe_object(OPTIONS_FIELD).unwrap();
        let expected = json!({ "terminal_tasks": { "agent": "bash", "agent.max_turns": "3", "env.A": "1" } });
        assert_eq!(Value::Object(options), expected);
        let (_, mut fields) = read(json!({ "tasks": [1], "model_id": "a/b" }));
        let options = fields.maybe_object(OPTIONS_FIELD).unwrap();
        assert_eq!(Value::Object(options), json!({ "terminal_tasks": { "agent": "terminus-2" } }));
    }

    #[test]
    fn a_benchmark_with_agents_has_an_agent() {
        let (tasks, mut fields) = read(json!({
            "selected_benchmarks": ["Terminal_Bench_Hard"], "agent": "bash", "model_id": "a/b",
            "agent_options": { "max_turns": 3 },
        }));
        assert_eq!(tasks, None);
        let options = fields.maybe_object(OPTIONS_FIELD).unwrap();
        let expected = json!({ "terminal_bench_hard": { "agent": "bash", "agent.max_turns": "3" } });
        assert_eq!(Value::Object(options), expected);
        let (_, mut fields) =
            read(json!({ "selected_benchmarks": ["terminal_bench_hard"], "agent": "oracle" }));
        assert_eq!(fields.text("model_id", 100), "oracle");
        for benchmarks in [json!([]), json!(["mmlu_pro"]), json!(["terminal_bench_hard", "mmlu_pro"])] {
            let sent = json!({ "selected_benchmarks": benchmarks, "agent": "bash", "model_id": "a/b" });
            let message = read(sent).1.finish().unwrap_err().message();
            assert!(message.contains("benchmark with agents"), "{message}");
        }
    }

    #[test]
    fn a_custom_agent_is_named_by_its_content() {
        let hash = "0a".repeat(32);
        let options = json!({ "terminal_tasks": { "agent": "custom", "agent.content_hash": hash } });
        for sent in [
            json!({ "tasks": [1], "agent": "custom", "agent_options": { "content_hash": hash } }),
            json!({ "tasks": [1], "agent": "custom", "model_id": "custom/mine@1", "benchmark_options": options }),
            json!({ "tasks": [1], "model_id": "custom", "benchmark_options": options }),
        ] {
            let (_, mut fields) = read(sent.clone());
            assert_eq!(Value::Object(fields.maybe_object(OPTIONS_FIELD).unwrap()), options, "{sent}");
            assert_eq!(fields.text("model_id", 100), "custom");
            assert!(fields.finish().is_ok(), "{sent}");
        }
    }

    #[test]
    fn contradictions_are_reported() {
        for (body, field) in [
            (json!({ "tasks": [1] }), "agent"),
            (json!({ "tasks": [1], "agent": "claude" }), "agent"),
            (json!({ "tasks": [1], "agent": "terminus-2" }), "model_id"),
            (json!({ "tasks": [1], "agent": "bash", "model_id": "nop" }), "model_id"),
            (
                json!({ "tasks": [1], "agent": "bash", "model_id": "a/b", "agent_options": { "parser_name": "xml" } }),
                "agent_options",
            ),
            (json!({ "tasks": [1], "agent": "nop", "agent_options": { "max_turns": 1 } }), "agent_options"),
            (json!({ "tasks": [1], "agent": "custom" }), "content_hash"),
            (
                json!({ "tasks": [1], "agent": "custom", "agent_options": { "content_hash": "x" } }),
                "agent_options",
            ),
            (json!({ "tasks": [1], "agent": "custom", "model_id": "a/b" }), "until there is a gateway"),
            (json!({ "agent_options": { "max_turns": 1 } }), "agent_options"),
            (json!({ "agent": "oracle" }), "agent"),
            (json!({ "tasks": [1], "agent": "oracle", "model_id": "openai/gpt-5" }), "model_id"),
            (
                json!({ "tasks": [1], "agent": "oracle", "selected_benchmarks": ["mmlu_pro"] }),
                "selected_benchmarks",
            ),
            (json!({ "selected_benchmarks": ["terminal_tasks"] }), "tasks"),
            (json!({ "tasks": [1], "agent": "oracle", "demo": true }), "demo"),
            (json!({ "tasks": [1], "agent": "oracle", "items": ["x"] }), "items"),
            (json!({ "tasks": [1.5], "agent": "oracle" }), "tasks"),
            (json!({ "tasks": "1", "agent": "oracle" }), "tasks"),
        ] {
            let message = read(body.clone()).1.finish().unwrap_err().message();
            assert!(message.contains(field), "{body}: {message}");
        }
        assert!(read(json!({ "model_id": "a/b", "tasks": null })).1.finish().is_ok());
    }
}
