//! Messages of a conversation, in the form of the official package.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

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
    /// Returns the arguments for views, with their names in alphabetical order; as text if they are nested too deeply.
    pub fn arguments_json(&self) -> Value {
        serde_json::from_str(&self.arguments).unwrap_or_else(|_| Value::String(self.arguments.clone()))
    }

    /// Returns the call in the official package's own form. Order and digits of the arguments stay, since tools may quote them.
    pub fn as_package(&self) -> PackageCall<'_> {
        PackageCall {
            id: &self.id,
            name: &self.name,
            // Damaged arguments become null, which steps refuse.
            arguments: serde_json::from_str(&self.arguments).ok(),
            requestor: self.requestor,
        }
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

/// Call in the official package's own form.
#[derive(Debug, Serialize)]
pub struct PackageCall<'a> {
    id: &'a str,
    name: &'a str,
    arguments: Option<&'a RawValue>,
    requestor: Party,
}

/// Message in the official package's own form.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum PackageMessage<'a> {
    /// Message of a party.
    Spoken {
        /// Author.
        role: Speaker,
        /// Text.
        content: Option<&'a str>,
        /// Calls; `None` if the message is only a text.
        tool_calls: Option<Vec<PackageCall<'a>>>,
    },
    /// Result of a call.
    Result {
        /// Always [`Speaker::Tool`].
        role: Speaker,
        /// Id of the call.
        id: Option<&'a str>,
        /// Result as text.
        content: Option<&'a str>,
        /// Party that called.
        requestor: Option<Party>,
        /// True if the tool failed.
        error: bool,
    },
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

    /// Returns the message in the official package's own form, for steps.
    pub fn as_package(&self) -> PackageMessage<'_> {
        let (role, content) = (self.role, self.content.as_deref());
        match role {
            Speaker::Tool => PackageMessage::Result {
                role,
                id: self.id.as_deref(),
                content,
                requestor: self.requestor,
                error: self.error,
            },
            Speaker::Assistant | Speaker::User => {
                let calls = || self.tool_calls.iter().map(DialogueCall::as_package).collect();
                PackageMessage::Spoken { role, content, tool_calls: self.is_tool_call().then(calls) }
            }
        }
    }

    /// Returns the message in the official package's own form, for views.
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

/// Returns a JSON object as `json.dumps(json.loads(text))` writes it; `None` if the text isn't a JSON object. Python also reads and
/// writes NaN and infinities, which no other program can read.
pub(super) fn dumps(text: &str) -> Option<String> {
    let value = parse_json(text).ok()?;
    let dumped = matches!(value, PythonValue::Object(_)).then(|| value.dumps())?;
    serde_json::from_str::<&RawValue>(&dumped).is_ok().then_some(dumped)
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
        for text in [
            "",
            "[]",
            "1",
            "{",
            "{'a': 1}",
            "null",
            "\"{}\"",
            r#"{"a":NaN}"#,
            r#"{"a":[-Infinity]}"#,
            r#"{"a":1e999}"#,
        ] {
            assert_eq!(dumps(text), None, "{text}");
        }
    }

    #[test]
    fn steps_get_arguments_word_for_word() {
        let deep = format!(r#"{{"x": {}1{}}}"#, "[".repeat(300), "]".repeat(300));
        for arguments in [r#"{"z": 1, "a": 2.0, "n": 123456789012345678901234567890}"#, &deep] {
            let mut calling = DialogueMessage::text(Party::User, "Now:");
            calling.tool_calls = vec![DialogueCall {
                id: "c".into(),
                name: "look".into(),
                arguments: dumps(arguments).unwrap(),
                requestor: Party::User,
            }];
            let call = format!(r#"{{"id":"c","name":"look","arguments":{arguments},"requestor":"user"}}"#);
            let expected = format!(r#"{{"role":"user","content":"Now:","tool_calls":[{call}]}}"#);
            assert_eq!(serde_json::to_string(&calling.as_package()).unwrap(), expected);
            let result = DialogueMessage::result(&calling.tool_calls[0], "no", true);
            assert_eq!(serde_json::to_value(result.as_package()).unwrap(), result.to_package());
        }
        let text = DialogueMessage::text(Party::Agent, "Hi");
        assert_eq!(serde_json::to_value(text.as_package()).unwrap(), text.to_package());
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
