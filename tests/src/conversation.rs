//! Scripted models of conversations in the demo domain of `tau_bench_telecom`.

use serde_json::{Value, json};

use crate::model_server::{ModelRequest, Reply};

/// Task of the demo data that [`right_reply`] solves.
pub const TASK: &str = "lock_half_closed";
/// Model calls of the user simulator in a conversation of [`right_reply`].
pub const USER_CALLS: u64 = 5;
/// Model calls of the agent, which greets without one.
pub const AGENT_CALLS: u64 = 3;

/// Returns the number of messages that the asked party wrote before. The greeting counts for the agent.
pub fn own_messages(request: &ModelRequest) -> usize {
    let messages = request.body["messages"].as_array();
    messages.into_iter().flatten().filter(|message| message["role"] == "assistant").count()
}

/// Returns a message of a party that calls tools, with a text or without. Arguments that are a string are sent as they are.
pub fn calls(text: Option<&str>, calls: &[(&str, Value)]) -> Reply {
    let calls: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(at, (name, arguments))| {
            let arguments = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
            json!({ "index": at, "id": format!("c{at}"), "type": "function",
                    "function": { "name": name, "arguments": arguments } })
        })
        .collect();
    let delta = json!({ "role": "assistant", "content": text, "tool_calls": calls });
    let chunk = json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": "tool_calls" }] });
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 100, "completion_tokens": 20 } });
    Reply::Events(vec![format!("data: {chunk}\n\ndata: {usage}\n\ndata: [DONE]\n\n").into_bytes()])
}

/// Returns a party's next message in a conversation that solves [`TASK`].
pub fn right_reply(request: &ModelRequest, is_user: bool) -> Reply {
    let text = |text: &str| Reply::Text(text.to_owned());
    match (is_user, own_messages(request)) {
        (true, 0) => text("My ride doesn't end."),
        (true, 1) => calls(None, &[("look_at_bicycle", json!({}))]),
        (true, 2) => calls(None, &[("press_lock", json!({}))]),
        (true, 3) => text("I pressed it."),
        (true, _) => text("Thanks. ###STOP###"),
        (false, 1) => text("Please press the lock."),
        (false, 2) => calls(None, &[("end_ride", json!({ "ride_id": "T501" }))]),
        (false, _) => text("The ride has ended."),
    }
}
