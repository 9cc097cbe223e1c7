//! Messages of a conversation, in the form of the official package.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::python::{Value as PythonValue, parse_json};
use crate::usage::Usage;

/// Party of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Party {
    /// The measured model.
    #[serde(rename = "assistant")]
    Agent,
    /// The simulated user.
    #[serde(rename = "user")]
    User,
}

impl Party {
    /// Returns the name in messages: `assistant` or `user`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "assistant",
            Self::User => "user",
        }
    }
}

/// Author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Speaker {
    /// The measured model.
    Assistant,
    /// The simulated user.
    User,
    /// A tool, with the result of one call.
    Tool,
}

/// Call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DialogueCall {
    /// Id that the result refers to.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Arguments as a JSON object, written as Python's `json.dumps` does.
    pub arguments: String,
    /// Party that calls.
    pub requestor: Party,
}

impl DialogueCall {
    /// Returns the arguments as JSON; an empty object if they are none.
    pub fn arguments_json(&self) -> Value {
        serde_json::from_str(&self.arguments).unwrap_or_else(|_| Value::Object(Map::new()))
    }

    fn to_package(&self) -> Value {
        json!({
            "id": self.id,
            "name": self.name,
            "arguments": self.arguments_json(),
            "requestor": self.requestor.as_str(),
        })
    }
}

/// Message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DialogueMessage {
    /// Author.
    pub role: Speaker,
    /// Text; `None` if the author wrote none.
    #[serde(default)]
    pub content: Option<String>,
    /// Calls of tools; empty if the message is only a text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<DialogueCall>,
    /// Id of the call whose result this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Party whose call this is the result of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requestor: Option<Party>,
    /// True if the tool failed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub error: bool,
    /// Reasoning of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Name of the model that answered, if it differs from the one that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens and cost of the model call; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Milliseconds of the model call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// Time of day as ISO 8601 text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
const fn is_false(value: &bool) -> bool {
    !*value
}

impl DialogueMessage {
    /// Creates a text of a party.
    pub fn text(party: Party, content: impl Into<String>) -> Self {
        let role = match party {
            Party::Agent => Speaker::Assistant,
            Party::User => Speaker::User,
        };
        Self { content: Some(content.into()), ..Self::empty(role) }
    }

    /// Creates the result of a call.
    pub fn result(call: &DialogueCall, content: impl Into<String>, error: bool) -> Self {
        Self {
            content: Some(content.into()),
            id: Some(call.id.clone()),
            requestor: Some(call.requestor),
            error,
            ..Self::empty(Speaker::Tool)
        }
    }

    pub(super) const fn empty(role: Speaker) -> Self {
        Self {
            role,
            content: None,
            tool_calls: Vec::new(),
            id: None,
            requestor: None,
            error: false,
            reasoning: None,
            model: None,
            usage: None,
            latency_ms: None,
            at: None,
        }
    }

    /// Returns the party that wrote the message; `None` for results of tools.
    pub const fn party(&self) -> Option<Party> {
        match self.role {
            Speaker::Assistant => Some(Party::Agent),
            Speaker::User => Some(Party::User),
            Speaker::Tool => None,
        }
    }

    /// Returns true if the message calls tools, with or without a text.
    pub fn is_tool_call(&self) -> bool {
        !self.tool_calls.is_empty()
    }

    /// Returns true if the message has a text that isn't blank.
    pub fn has_text(&self) -> bool {
        self.content.as_deref().is_some_and(|text| !crate::python::strip(text).is_empty())
    }

    /// Returns the message in the official package's own form.
    pub fn to_package(&self) -> Value {
        match self.role {
            Speaker::Tool => json!({
                "role": "tool",
                "id": self.id,
                "content": self.content,
                "requestor": self.requestor.map(Party::as_str),
                "error": self.error,
            }),
            Speaker::Assistant | Speaker::User => {
                let calls: Vec<Value> = self.tool_calls.iter().map(DialogueCall::to_package).collect();
                json!({
                    "role": if self.role == Speaker::User { "user" } else { "assistant" },
                    "content": self.content,
                    "tool_calls": if calls.is_empty() { Value::Null } else { Value::Array(calls) },
                })
            }
        }
    }

    /// Reads a message in the official package's form; `None` if it isn't one.
    pub fn from_package(value: &Value) -> Option<Self> {
        let party = |value: &Value| match value.as_str() {
            Some("assistant") => Some(Party::Agent),
            Some("user") => Some(Party::User),
            _ => None,
        };
        let content = value.get("content").and_then(Value::as_str).map(str::to_owned);
        let role = match value.get("role").and_then(Value::as_str)? {
            "tool" => {
                return Some(Self {
                    content,
                    id: value.get("id").and_then(Value::as_str).map(str::to_owned),
                    requestor: Some(value.get("requestor").and_then(party).unwrap_or(Party::Agent)),
                    error: value.get("error").and_then(Value::as_bool).unwrap_or(false),
                    ..Self::empty(Speaker::Tool)
                });
            }
            "assistant" => Party::Agent,
            "user" => Party::User,
            _ => return None,
        };
        let calls = value.get("tool_calls").and_then(Value::as_array);
        let tool_calls = calls.into_iter().flatten().map(|call| {
            Some(DialogueCall {
                id: call.get("id").and_then(Value::as_str).unwrap_or_default().to_owned(),
                name: call.get("name").and_then(Value::as_str)?.to_owned(),
                arguments: dumps(&call.get("arguments").unwrap_or(&json!({})).to_string())?,
                requestor: call.get("requestor").and_then(party).unwrap_or(role),
            })
        });
        let speaker = if role == Party::Agent { Speaker::Assistant } else { Speaker::User };
        Some(Self { content, tool_calls: tool_calls.collect::<Option<_>>()?, ..Self::empty(speaker) })
    }
}

/// Returns a JSON object as `json.dumps(json.loads(text))` writes it; `None` if the text isn't a JSON object.
pub(super) fn dumps(text: &str) -> Option<String> {
    let value = parse_json(text).ok()?;
    matches!(value, PythonValue::Object(_)).then(|| value.dumps())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_written_as_python_writes_them() {
        for (text, expected) in [
            (
                r#" {"b":1,"a":[1,2.0,true,null],"b":"é\n"} "#,
                r#"{"b": "\u00e9\n", "a": [1, 2.0, true, null]}"#,
            ),
            ("{}", "{}"),
            (
                r#"{"x":1e3,"y":-0.5,"z":1E-7,"w":"😀"}"#,
                r#"{"x": 1000.0, "y": -0.5, "z": 1e-07, "w": "\ud83d\ude00"}"#,
            ),
        ] {
            assert_eq!(dumps(text).as_deref(), Some(expected));
        }
        for text in ["", "[]", "1", "{", "{'a': 1}", "null", "\"{}\""] {
            assert_eq!(dumps(text), None, "{text}");
        }
    }

    #[test]
    fn messages_survive_the_packages_form() {
        let call = DialogueCall {
            id: "c".into(),
            name: "look".into(),
            arguments: r#"{"at": 1}"#.into(),
            requestor: Party::User,
        };
        let mut both = DialogueMessage::text(Party::User, "Look:");
        both.tool_calls = vec![call.clone()];
        for message in
            [DialogueMessage::text(Party::Agent, "Hi"), both, DialogueMessage::result(&call, "no", true)]
        {
            assert_eq!(DialogueMessage::from_package(&message.to_package()), Some(message));
        }
        assert_eq!(DialogueMessage::from_package(&json!({ "role": "system", "content": "x" })), None);
    }
}
