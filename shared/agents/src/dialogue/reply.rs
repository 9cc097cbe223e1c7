//! Replies of models as messages.

use serde::{Deserialize, Serialize};

use super::message::{DialogueCall, DialogueMessage, Party, dumps};
use crate::usage::Usage;

/// Maximum number of calls in a message, and of bytes in its text or in the arguments of a call. The official program has no such
/// limits; a message beyond them can't be replayed in a sandbox.
const CALLS_MAX: usize = 10_000;
const TEXT_BYTES_MAX: usize = 1 << 20;

/// Reply of a model to a party's prompt.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DialogueReply {
    /// Text; empty if the model wrote none.
    pub text: String,
    /// Called tools as id, name and arguments, all as the model wrote them.
    pub calls: Vec<(String, String, String)>,
    /// Reasoning.
    pub reasoning: Option<String>,
    /// Name of the model that answered, if it differs from the one that was asked.
    pub model: Option<String>,
    /// Tokens and cost; `None` if no model was asked.
    pub usage: Option<Usage>,
    /// Milliseconds of the call.
    pub latency_ms: u64,
}

/// Reply that isn't a message of the conversation. The official program starts the conversation over then, up to three times, and
/// reports an error of the infrastructure afterwards.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnusableReply {
    /// It has neither a text nor calls.
    #[error("the reply has neither a text nor a tool call")]
    Empty,
    /// The arguments of a call aren't a JSON object.
    #[error("the arguments of the tool call `{0}` are not a JSON object")]
    Arguments(String),
    /// It is larger than a conversation can hold.
    #[error("the reply is too large: {0}")]
    TooLarge(&'static str),
}

impl DialogueReply {
    /// Makes a message of the reply. `number` is that of the message, for ids of calls that have none.
    ///
    /// # Errors
    /// If the reply can't be a message.
    pub fn into_message(
        self,
        party: Party,
        number: usize,
        at: Option<String>,
    ) -> Result<DialogueMessage, UnusableReply> {
        if self.calls.len() > CALLS_MAX {
            return Err(UnusableReply::TooLarge("it has more than 10,000 tool calls"));
        }
        let arguments = self.calls.iter().map(|(_, _, arguments)| arguments.len()).sum::<usize>();
        if self.text.len() + arguments > TEXT_BYTES_MAX {
            return Err(UnusableReply::TooLarge("its text and arguments have more than 1 MiB"));
        }
        let calls = self.calls.into_iter().enumerate().map(|(at, (id, name, arguments))| {
            // Tools without parameters are often called with an empty text.
            let dumped = if arguments.trim().is_empty() { Some("{}".to_owned()) } else { dumps(&arguments) };
            let arguments = dumped.ok_or_else(|| UnusableReply::Arguments(shown(&name)))?;
            let id = if id.is_empty() { format!("call_{number}_{at}") } else { id };
            Ok(DialogueCall { id, name, arguments, requestor: party })
        });
        let message = DialogueMessage {
            content: (!self.text.is_empty()).then_some(self.text),
            tool_calls: calls.collect::<Result<_, _>>()?,
            reasoning: self.reasoning,
            model: self.model,
            usage: self.usage,
            latency_ms: self.usage.map(|_| self.latency_ms),
            at,
            ..DialogueMessage::text(party, "")
        };
        match message.has_text() || message.is_tool_call() {
            true => Ok(message),
            false => Err(UnusableReply::Empty),
        }
    }
}

fn shown(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calling(arguments: &str) -> DialogueReply {
        let calls = vec![(String::new(), "look".to_owned(), arguments.to_owned())];
        DialogueReply { calls, ..DialogueReply::default() }
    }

    #[test]
    fn replies_become_messages() {
        let message = calling(" ").into_message(Party::User, 4, None).unwrap();
        assert_eq!((message.content, message.tool_calls[0].id.as_str()), (None, "call_4_0"));
        assert_eq!((message.tool_calls[0].arguments.as_str(), message.latency_ms), ("{}", None));
        let both = DialogueReply { text: "Now:".to_owned(), ..calling(r#"{"a":1}"#) };
        let message = both.into_message(Party::Agent, 0, None).unwrap();
        assert!(message.has_text() && message.is_tool_call());
        assert_eq!(message.tool_calls[0].arguments, r#"{"a": 1}"#);
    }

    #[test]
    fn replies_that_are_no_messages_are_named() {
        let of = |reply: DialogueReply| reply.into_message(Party::Agent, 0, None).unwrap_err().to_string();
        let text = |text: &str| DialogueReply { text: text.to_owned(), ..DialogueReply::default() };
        assert_eq!(of(text("")), "the reply has neither a text nor a tool call");
        assert_eq!(of(text(" \n\u{1c}")), "the reply has neither a text nor a tool call");
        assert_eq!(of(calling("[1]")), "the arguments of the tool call `look` are not a JSON object");
        let many = DialogueReply {
            calls: vec![(String::new(), "look".to_owned(), "{}".to_owned()); CALLS_MAX + 1],
            ..DialogueReply::default()
        };
        assert!(of(many).contains("10,000"));
        assert!(of(text(&"x".repeat(TEXT_BYTES_MAX + 1))).contains("1 MiB"));
    }
}
