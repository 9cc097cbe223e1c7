//! Fields `tasks` and `agent` of orders of runs.

use bench_runs::TERMINAL_TASKS;
use bench_web::FieldReader;
use serde_json::json;

use super::agent::{find_agent, model_of};

/// Maximum number of tasks of an order.
const TASKS_MAX: usize = 1_000;
const REFERENCE_CHARS_MAX: usize = 255;
const AGENT_CHARS_MAX: usize = 50;

/// Tasks of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OrderedTasks {
    /// Ids, content hashes or ids of items.
    pub(crate) tasks: Vec<String>,
}

/// Reads the tasks of an order, and completes its other fields: the agent decides the model, and the benchmark is known.
pub(crate) fn take_task_fields(fields: &mut FieldReader) -> Option<OrderedTasks> {
    let tasks = fields.maybe_names("tasks", TASKS_MAX, REFERENCE_CHARS_MAX).unwrap_or_default();
    let agent = fields.maybe_text("agent", AGENT_CHARS_MAX);
    let benchmarks = fields.peek_texts("selected_benchmarks");
    let is_tasks = |name: &String| name.trim().eq_ignore_ascii_case(TERMINAL_TASKS);
    if tasks.is_empty() {
        if benchmarks.iter().any(is_tasks) {
            let msg =
                format!("Field required for `{TERMINAL_TASKS}`: ids of tasks, content hashes or NAME@HASH12");
            fields.note("missing", "tasks", msg);
        } else if agent.is_some() {
            fields.note_invalid("agent", "only orders of `tasks` have an agent");
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
    let model = fields.maybe_text("model_id", usize::MAX).filter(|model| !model.trim().is_empty());
    // A model that is an agent's own source of answers names the agent.
    let Some(agent) = agent.or_else(|| model.clone()) else {
        fields.note("missing", "agent", "Field required");
        return None;
    };
    match (fields.checked("agent", find_agent(agent.trim()).map_err(|error| error.message())), model) {
        (Some(agent), None) => fields.set("model_id", json!(model_of(agent))),
        (Some(found), Some(model)) if model.trim() != model_of(found) => {
            let problem = format!("the agent `{}` asks no model; leave `model_id` out", found.as_str());
            fields.note_invalid("model_id", problem);
        }
        _ => {}
    }
    Some(OrderedTasks { tasks })
}

/// Refuses tasks in an order that is stored for later: a task may be removed before.
pub(crate) fn refuse_task_fields(fields: &mut FieldReader) {
    for name in ["tasks", "agent"] {
        fields.refuse(name, "Schedules of terminal tasks are not supported; order a run of them");
    }
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
    fn contradictions_are_reported() {
        for (body, field) in [
            (json!({ "tasks": [1] }), "agent"),
            (json!({ "tasks": [1], "agent": "terminus-2" }), "agent"),
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
