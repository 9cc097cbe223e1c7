//! Trajectories of conversations: the user's messages and calls are steps of the user.

use serde_json::{Map, Value};

use super::{Builder, TrajectoryNames};
use crate::atif::{
    AtifAgent, AtifObservation, AtifResult, AtifSource, AtifStep, Metrics, ToolCall, Trajectory,
};
use crate::dialogue::{DialogueMessage, Party, Speaker};
use crate::usage::Usage;

/// Returns the trajectory of a conversation. The format has calls and figures only in steps of the agent, so those of the user are in
/// the field `extra` of the user's steps, with their results. The same field has the ids of failed calls of both.
pub fn dialogue_trajectory(
    agent: &str,
    user_model: &str,
    messages: &[DialogueMessage],
    names: TrajectoryNames<'_>,
) -> Trajectory {
    let session = names.session.to_owned();
    let model = names.model.to_owned();
    let mut builder = Builder::new(names);
    let mut used = Usage::default();
    for message in messages {
        let text = message.content.clone().unwrap_or_default();
        match (message.role, message.requestor) {
            (Speaker::Assistant, _) => {
                let step = builder.add(AtifSource::Agent, text, message.at.clone());
                step.tool_calls = calls_of(message);
                step.reasoning_content.clone_from(&message.reasoning);
                match message.usage {
                    Some(usage) => {
                        used = used.plus(usage);
                        step.model_name = Some(message.model.clone().unwrap_or_else(|| model.clone()));
                        step.metrics = Some(metrics(message, usage));
                    }
                    None => step.llm_call_count = Some(0),
                }
            }
            (Speaker::User, _) => {
                let step = builder.add(AtifSource::User, text, message.at.clone());
                if !message.tool_calls.is_empty() {
                    let calls = serde_json::to_value(calls_of(message)).unwrap_or_default();
                    step.extra.insert("tool_calls".to_owned(), calls);
                }
                if let Some(usage) = message.usage {
                    let figures = serde_json::to_value(metrics(message, usage)).unwrap_or_default();
                    step.extra.insert("metrics".to_owned(), figures);
                }
            }
            (Speaker::Tool, requestor) => {
                let Some(step) = builder.steps.last_mut() else { continue };
                let id = message.id.clone();
                if message.error {
                    note(step, "failed_calls", id.clone().into());
                }
                match requestor {
                    Some(Party::User) => note_users_result(step, id, text),
                    _ => {
                        let observation = step.observation.get_or_insert_with(AtifObservation::default);
                        observation.results.push(AtifResult {
                            source_call_id: id,
                            content: Some(text),
                            subagent_trajectory_ref: Vec::new(),
                        });
                    }
                }
            }
        }
    }
    let extra = Map::from_iter([("user_model".to_owned(), Value::from(user_model))]);
    let agent = AtifAgent {
        name: agent.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        model_name: Some(model),
        extra,
    };
    builder.finish(agent, session, used)
}

fn calls_of(message: &DialogueMessage) -> Vec<ToolCall> {
    let calls = message.tool_calls.iter().map(|call| ToolCall {
        tool_call_id: call.id.clone(),
        function_name: call.name.clone(),
        arguments: match call.arguments_json() {
            Value::Object(arguments) => arguments,
            _ => Map::new(),
        },
    });
    calls.collect()
}

fn note_users_result(step: &mut AtifStep, id: Option<String>, text: String) {
    let result = serde_json::json!({ "source_call_id": id, "content": text });
    note(step, "results", result);
}

/// Adds a value to a list in the field `extra`.
fn note(step: &mut AtifStep, list: &str, value: Value) {
    let values = step.extra.entry(list).or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(values) = values {
        values.push(value);
    }
}

fn metrics(message: &DialogueMessage, usage: Usage) -> Metrics {
    let latency = message.latency_ms.map(|ms| ("latency_ms".to_owned(), Value::from(ms)));
    Metrics {
        prompt_tokens: usage.input_tokens,
        completion_tokens: usage.output_tokens,
        cached_tokens: (usage.cached_tokens > 0).then_some(usage.cached_tokens),
        cost_usd: (usage.cost_usd > 0.0 && usage.cost_usd.is_finite()).then_some(usage.cost_usd),
        extra: latency.into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialogue::DialogueCall;

    #[test]
    fn calls_of_both_parties_are_in_the_trajectory() {
        let call = |id: &str, requestor| DialogueCall {
            id: id.to_owned(),
            name: "look".to_owned(),
            arguments: r#"{"at": 1}"#.to_owned(),
            requestor,
        };
        let calls = |id: &str, party| DialogueMessage {
            content: None,
            tool_calls: vec![call(id, party)],
            usage: Some(Usage { input_tokens: 5, output_tokens: 2, ..Usage::default() }),
            ..DialogueMessage::text(party, "")
        };
        let messages = [
            DialogueMessage::text(Party::Agent, "Hi"),
            calls("u", Party::User),
            DialogueMessage::result(&call("u", Party::User), "a tree", false),
            calls("a", Party::Agent),
            DialogueMessage::result(&call("a", Party::Agent), "a lake", true),
        ];
        let names = TrajectoryNames { session: "s", model: "m" };
        let built = dialogue_trajectory("tau2", "openrouter/u", &messages, names);
        let json = serde_json::to_value(&built).unwrap();
        assert_eq!(json["steps"].as_array().unwrap().len(), 3);
        assert_eq!(json["steps"][0]["llm_call_count"], 0);
        assert_eq!(json["steps"][1]["extra"]["tool_calls"][0]["tool_call_id"], "u");
        assert_eq!(json["steps"][1]["extra"]["results"][0]["content"], "a tree");
        assert_eq!(json["steps"][2]["tool_calls"][0]["arguments"]["at"], 1);
        assert_eq!(json["steps"][2]["observation"]["results"][0]["content"], "a lake");
        assert_eq!(json["steps"][1]["extra"]["metrics"]["prompt_tokens"], 5);
        assert_eq!(json["steps"][1]["extra"].get("failed_calls"), None);
        assert_eq!(json["steps"][2]["extra"]["failed_calls"], serde_json::json!(["a"]));
        assert_eq!(json["final_metrics"]["total_prompt_tokens"], 5);
        assert_eq!(json["agent"]["extra"]["user_model"], "openrouter/u");
        assert_eq!(serde_json::from_value::<Trajectory>(json).unwrap(), built);
    }
}
