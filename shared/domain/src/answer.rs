//! Prompts and answers of models.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::Usage;

/// Author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions to the model.
    System,
    /// The question, or feedback from the environment.
    User,
    /// The model.
    Assistant,
    /// A tool that the model has called.
    Tool,
}

impl Role {
    /// Returns the wire value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// Author of the message.
    pub role: Role,
    /// Text of the message.
    pub content: String,
    /// Images shown after the text, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Tools that the model calls with this message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Id of the call whose result this message is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

/// Call of a tool by a model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ToolCall {
    /// Id that the result refers to; empty if the provider sent none.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Arguments as the model wrote them: JSON text, unless the model made a mistake.
    pub arguments: String,
}

impl ChatMessage {
    /// Creates a message that has only text.
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self { role, content: content.into(), images: Vec::new(), tool_calls: Vec::new(), tool_call_id: None }
    }
}

/// An image in a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Data URL: media type and base64 content.
    pub data_url: String,
}

impl Image {
    /// Returns the media type named by the data URL.
    pub fn media_type(&self) -> Option<&str> {
        let (media_type, _) = self.data_url.strip_prefix("data:")?.split_once([';', ','])?;
        Some(media_type).filter(|media_type| !media_type.is_empty())
    }
}

/// All messages shown to a model for one sample.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Prompt {
    /// Messages in order.
    pub messages: Vec<ChatMessage>,
}

impl Prompt {
    /// Creates a prompt of a single user message.
    pub fn user(content: impl Into<String>) -> Self {
        Self { messages: vec![ChatMessage::new(Role::User, content)] }
    }

    /// Puts a text in front of the prompt as its system message. A system message of the prompt's own follows in the same
    /// message, since chat templates of many models take only one.
    pub fn prepend_system(&mut self, text: &str) {
        match self.messages.first_mut() {
            Some(first) if first.role == Role::System => {
                first.content = format!("{text}\n\n{}", first.content);
            }
            _ => self.messages.insert(0, ChatMessage::new(Role::System, text)),
        }
    }

    /// Returns the whole prompt as one text, for lists and exports. If the user's message is the only one, it's
    /// returned alone; otherwise each message follows its role. Images are represented by their media type.
    pub fn as_text(&self) -> String {
        let shown = |message: &ChatMessage| {
            let mut text = message.content.clone();
            for image in &message.images {
                text.push_str("\n[image: ");
                text.push_str(image.media_type().unwrap_or("unknown"));
                text.push(']');
            }
            for call in &message.tool_calls {
                let gap = if text.is_empty() { "" } else { "\n" };
                text.push_str(&format!("{gap}[call: {}({})]", call.name, call.arguments));
            }
            text
        };
        match self.messages.as_slice() {
            [only] => shown(only),
            many => many
                .iter()
                .map(|message| format!("[{}]\n{}", message.role.as_str(), shown(message)))
                .collect::<Vec<_>>()
                .join("\n\n"),
        }
    }
}

/// Minimum number of consecutive letters and digits that count as a quotation of a prompt.
const QUOTED_CHARS_MIN: usize = 24;

impl Prompt {
    /// Returns true if an external text, such as a provider's message, repeats a part of the prompt: 24 consecutive
    /// letters and digits, ignoring all other characters.
    pub fn is_quoted_in(&self, text: &str) -> bool {
        let text = letters_and_digits(text);
        let parts: HashSet<&[char]> = text.windows(QUOTED_CHARS_MIN).collect();
        self.messages.iter().any(|message| {
            let message = letters_and_digits(&message.content);
            message.windows(QUOTED_CHARS_MIN).any(|part| parts.contains(part))
        })
    }
}

fn letters_and_digits(text: &str) -> Vec<char> {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Reason why the model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The model finished its answer (`stop`).
    Stop,
    /// The token limit cut the answer off (`length`).
    Length,
    /// The provider's filter withheld the answer (`content_filter`), or the model refused in a separate field.
    Refused,
    /// Another reason, as named by the provider.
    Other(String),
    /// The provider gave no reason.
    Unknown,
}

impl Finish {
    /// Parses the wire value of `finish_reason`.
    pub fn from_wire(text: Option<&str>) -> Self {
        match text {
            Some("stop" | "end_turn" | "eos" | "stop_sequence") => Self::Stop,
            Some("length" | "max_tokens") => Self::Length,
            Some("content_filter" | "refusal") => Self::Refused,
            Some(other) => Self::Other(other.chars().take(64).collect()),
            None => Self::Unknown,
        }
    }

    /// Returns the wire value; `None` if unknown (`null` in JSON).
    pub fn as_wire(&self) -> Option<&str> {
        match self {
            Self::Stop => Some("stop"),
            Self::Length => Some("length"),
            Self::Refused => Some("content_filter"),
            Self::Other(other) => Some(other),
            Self::Unknown => None,
        }
    }
}

/// Repairs of text with broken Unicode: halves of UTF-16 surrogate pairs, or bytes that aren't UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TextRepairs {
    /// Characters whose halves arrived separately and were joined. Nothing is lost.
    pub joined: u64,
    /// Halves and bytes that don't belong to a character, each replaced with U+FFFD.
    pub replaced: u64,
}

impl TextRepairs {
    /// Returns true if nothing was repaired.
    pub const fn is_none(&self) -> bool {
        self.joined == 0 && self.replaced == 0
    }
}

/// Complete answer of a model to one prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Text of the answer, without reasoning that the provider delivers separately.
    pub text: String,
    /// Reasoning that the provider delivered separately (`reasoning_content` or `reasoning`).
    #[serde(default)]
    pub reasoning: Option<String>,
    /// Reason why the answer ended.
    pub finish: Finish,
    /// Token counts of the provider; `None` if it sent none.
    #[serde(default)]
    pub usage: Option<Usage>,
    /// True if the provider's counts were impossible, such as a negative number of tokens, and are therefore not in
    /// `usage`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub usage_rejected: bool,
    /// The `usage` object as received, as JSON text.
    #[serde(default)]
    pub usage_raw: Option<String>,
    /// Model id reported by the provider.
    #[serde(default)]
    pub model: Option<String>,
    /// The provider's request id, if it sent one.
    #[serde(default)]
    pub request_id: Option<String>,
    /// Milliseconds from sending the request to the end of the answer.
    pub latency_ms: u64,
    /// Milliseconds from sending the request to the first part of the answer.
    #[serde(default)]
    pub first_token_ms: Option<u64>,
    /// Repairs of broken Unicode in the text.
    #[serde(default, skip_serializing_if = "TextRepairs::is_none")]
    pub repairs: TextRepairs,
    /// Number of keys that were found in the answer and redacted.
    #[serde(default, skip_serializing_if = "crate::usage::is_zero")]
    pub keys_redacted: u64,
    /// Tools that the model calls, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
}

impl Answer {
    /// Creates an answer that doesn't come from a provider: the oracle's or a stored one.
    pub fn local(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            reasoning: None,
            finish: Finish::Stop,
            usage: None,
            usage_rejected: false,
            usage_raw: None,
            model: None,
            request_id: None,
            latency_ms: 0,
            first_token_ms: None,
            repairs: TextRepairs::default(),
            keys_redacted: 0,
            tool_calls: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_of_several_messages_names_the_roles() {
        let message = |role, content: &str| ChatMessage::new(role, content);
        let prompt =
            Prompt { messages: vec![message(Role::System, "Be brief."), message(Role::User, "Why?")] };
        assert_eq!(prompt.as_text(), "[system]\nBe brief.\n\n[user]\nWhy?");
        assert_eq!(Prompt::user("Why?").as_text(), "Why?");
        let mut with_images = Prompt::user("Which?");
        let image = |data_url: &str| Image { data_url: data_url.into() };
        with_images.messages[0].images = vec![image("data:image/png;base64,AAAA"), image("?")];
        assert_eq!(with_images.as_text(), "Which?\n[image: image/png]\n[image: unknown]");
        let call = ToolCall { id: "1".into(), name: "look".into(), arguments: "{}".into() };
        let calls = ChatMessage { tool_calls: vec![call], ..ChatMessage::new(Role::Assistant, "") };
        assert_eq!(Prompt { messages: vec![calls] }.as_text(), "[call: look({})]");
    }

    #[test]
    fn a_system_prompt_comes_before_the_prompts_own() {
        let mut prompt = Prompt::user("Why?");
        prompt.prepend_system("Be brief.");
        assert_eq!(prompt.as_text(), "[system]\nBe brief.\n\n[user]\nWhy?");
        prompt.prepend_system("Be kind.");
        assert_eq!(prompt.as_text(), "[system]\nBe kind.\n\nBe brief.\n\n[user]\nWhy?");
    }

    #[test]
    fn a_quoted_prompt_is_recognized_however_it_is_escaped() {
        let prompt = Prompt::user("Which of these\nétudes was written in 1832, and by whom?");
        for quoting in [
            "HTTP 400: Which of these\nétudes was written in 1832, and by whom?",
            r#"HTTP 400: {"input":"Which of these\nétudes was written in 1832, and\u00a0by w..."}"#,
            "REFUSED: WHICH OF THESE ÉTUDES WAS WRITTEN",
        ] {
            assert!(prompt.is_quoted_in(quoting), "{quoting}");
        }
        for other in ["", "HTTP 401: invalid key", "which of these", "written in 1832", &"é".repeat(2_000)] {
            assert!(!prompt.is_quoted_in(other), "{other}");
        }
        assert!(!Prompt::default().is_quoted_in("anything at all that is long enough to be a quotation"));
    }

    #[test]
    fn finish_reasons_keep_their_wire_names() {
        for wire in ["stop", "length", "content_filter", "tool_calls"] {
            assert_eq!(Finish::from_wire(Some(wire)).as_wire(), Some(wire));
        }
        assert_eq!(Finish::from_wire(None).as_wire(), None);
    }
}
