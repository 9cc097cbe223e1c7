//! The JSON body of a request.

use bench_domain::{ChatMessage, Generation, MaxTokensField, ReasoningEffort, Role, ToolCall};
use serde::Serialize;
use serde_json::Value;

use crate::protocols::PreparedRequest;
use crate::settings::{EffortField, ThinkingField};

/// Words in the names of models that cache up to marked messages.
const CACHE_MODELS: [&str; 2] = ["anthropic", "claude"];
/// Maximum number of marks in a request of Anthropic.
const CACHE_MARKS_MAX: usize = 4;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<ReasoningEffort>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_body: Option<GoogleBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: Role,
    /// `null` in a message that only calls tools.
    content: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

/// Call of a tool in an earlier message of the model.
#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: &'a str,
}

impl<'a> From<&'a ToolCall> for Call<'a> {
    fn from(call: &'a ToolCall) -> Self {
        let function = Function { name: &call.name, arguments: &call.arguments };
        Self { id: &call.id, r#type: "function", function }
    }
}

/// Only messages with images or marks are sent as lists, since not every server accepts lists.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ImageUrl {
        image_url: ImageUrl<'a>,
    },
}

/// Mark at the end of what is to be cached.
#[derive(Serialize)]
struct CacheControl {
    r#type: &'static str,
}

#[derive(Serialize)]
struct ImageUrl<'a> {
    url: &'a str,
}

impl<'a> Message<'a> {
    fn from_message(message: &'a ChatMessage) -> Self {
        let text = message.content.as_str();
        let content = if message.images.is_empty() {
            Content::Text(text)
        } else {
            // Some servers refuse a text part without text.
            let text = (!text.is_empty()).then_some(Part::Text { text, cache_control: None });
            let images = message.images.iter();
            let images = images.map(|image| Part::ImageUrl { image_url: ImageUrl { url: &image.data_url } });
            Content::Parts(text.into_iter().chain(images).collect())
        };
        let only_calls = text.is_empty() && message.images.is_empty() && !message.tool_calls.is_empty();
        Self {
            role: message.role,
            content: (!only_calls).then_some(content),
            tool_calls: message.tool_calls.iter().map(Call::from).collect(),
            tool_call_id: message.tool_call_id.as_deref(),
        }
    }

    /// Marks the message as the end of what is to be cached. Returns false for one without text, which can't have a mark.
    fn mark(&mut self) -> bool {
        let ephemeral = || Some(CacheControl { r#type: "ephemeral" });
        match &mut self.content {
            Some(Content::Text(text)) if !text.is_empty() => {
                self.content = Some(Content::Parts(vec![Part::Text { text, cache_control: ephemeral() }]));
                true
            }
            Some(Content::Parts(parts)) => match parts.first_mut() {
                Some(Part::Text { cache_control, .. }) => {
                    *cache_control = ephemeral();
                    true
                }
                _ => false,
            },
            Some(Content::Text(_)) | None => false,
        }
    }
}

/// Marks the newest messages of a conversation with a model of Anthropic, which reads the beginning that it knows from the
/// last request from its cache, at a tenth of the price. <https://openrouter.ai/docs/features/prompt-caching>
fn mark_newest(messages: &mut [Message<'_>], model: &str) {
    let model = model.to_lowercase();
    if CACHE_MODELS.iter().any(|name| model.contains(name)) {
        messages
            .iter_mut()
            .rev()
            .filter_map(|message| message.mark().then_some(()))
            .take(CACHE_MARKS_MAX)
            .for_each(drop);
    }
}

/// OpenRouter's settings of reasoning; one of them is set.
#[derive(Serialize)]
struct Reasoning {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<ReasoningEffort>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
}

/// Anthropic's extended thinking.
#[derive(Serialize)]
struct Thinking {
    r#type: &'static str,
    budget_tokens: u32,
}

/// Google's settings in requests of OpenAI's form.
#[derive(Serialize)]
struct GoogleBody {
    google: GoogleSettings,
}

#[derive(Serialize)]
struct GoogleSettings {
    thinking_config: ThinkingConfig,
}

#[derive(Serialize)]
struct ThinkingConfig {
    thinking_budget: u32,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// Requires the answer to follow a schema.
#[derive(Serialize)]
struct ResponseFormat<'a> {
    r#type: &'static str,
    json_schema: JsonSchema<'a>,
}

#[derive(Serialize)]
struct JsonSchema<'a> {
    name: &'static str,
    strict: bool,
    schema: &'a Value,
}

impl<'a> ResponseFormat<'a> {
    const fn strict(schema: &'a Value) -> Self {
        Self { r#type: "json_schema", json_schema: JsonSchema { name: "reply", strict: true, schema } }
    }
}

/// Builds the body of a streaming request in the server's dialect. Unset settings are left out.
///
/// A setting for which the API has no field is left out, too; orders with such a setting are refused.
pub(super) fn request_body(prepared: PreparedRequest<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let PreparedRequest { request, fields, dialect } = prepared;
    // All fields are named, so that each new setting is sent or left out on purpose.
    let Generation {
        temperature,
        top_p,
        max_tokens,
        stop,
        seed,
        top_k,
        // It is part of the prompt by now.
        system_prompt: _,
        reasoning_effort,
        thinking_budget,
        extra_body,
        // The settings to omit have no value by now.
        omit: _,
        max_tokens_field,
    } = request.generation;
    let usual_field = if dialect.has_max_completion_tokens {
        MaxTokensField::MaxCompletionTokens
    } else {
        fields.max_tokens
    };
    let field = max_tokens_field.unwrap_or(usual_field);
    let effort = |field| reasoning_effort.filter(|_| fields.effort.is_some_and(|(own, _)| own == field));
    let thinking = |field| thinking_budget.filter(|_| fields.thinking.is_some_and(|(own, _)| own == field));
    let (effort_object, thinking_object) =
        (effort(EffortField::Reasoning), thinking(ThinkingField::Reasoning));
    let mut messages: Vec<Message<'_>> = request.prompt.messages.iter().map(Message::from_message).collect();
    if request.is_continued && fields.has_cache_marks {
        mark_newest(&mut messages, request.model);
    }
    let tools = request.tools.filter(|tools| tools.as_array().is_some_and(|list| !list.is_empty()));
    let body = Body {
        model: request.model,
        messages,
        temperature: temperature.filter(|number| number.is_finite()),
        top_p: top_p.filter(|number| number.is_finite()),
        max_tokens: max_tokens.filter(|_| field == MaxTokensField::MaxTokens),
        max_completion_tokens: max_tokens.filter(|_| field == MaxTokensField::MaxCompletionTokens),
        stop,
        seed: *seed,
        top_k: *top_k,
        reasoning_effort: effort(EffortField::ReasoningEffort),
        reasoning: (effort_object.is_some() || thinking_object.is_some())
            .then_some(Reasoning { effort: effort_object, max_tokens: thinking_object }),
        thinking: thinking(ThinkingField::Thinking)
            .map(|budget_tokens| Thinking { r#type: "enabled", budget_tokens }),
        extra_body: thinking(ThinkingField::ThinkingConfig).map(|thinking_budget| GoogleBody {
            google: GoogleSettings { thinking_config: ThinkingConfig { thinking_budget } },
        }),
        response_format: request
            .reply_schema
            .filter(|_| !dialect.omits_reply_schema)
            .map(ResponseFormat::strict),
        tools,
        tool_choice: tools.map(|_| "auto"),
        stream: true,
        stream_options: (!dialect.omits_stream_options).then_some(StreamOptions { include_usage: true }),
    };
    let messages = request.prompt.messages.iter();
    let bytes = |message: &ChatMessage| {
        let calls = message.tool_calls.iter().map(|call| call.arguments.len() + 96);
        message.content.len() + 48 + calls.sum::<usize>()
    };
    let text_bytes: usize = messages.clone().map(bytes).sum();
    let images = messages.flat_map(|message| &message.images);
    let image_bytes: usize = images.map(|image| image.data_url.len() + 64).sum();
    let mut json = Vec::with_capacity(text_bytes + text_bytes / 16 + image_bytes + 256);
    serde_json::to_writer(&mut json, &body)?;
    if let Some(extra) = extra_body {
        add_fields(&mut json, extra);
    }
    Ok(json)
}

/// Adds the fields of an object, as they are written, to the end of another one. The order has checked that none of them
/// is in both.
fn add_fields(body: &mut Vec<u8>, object: &str) {
    let fields = object.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).map(str::trim);
    if let Some(fields) = fields.filter(|fields| !fields.is_empty())
        && body.pop() == Some(b'}')
    {
        body.push(b',');
        body.extend_from_slice(fields.as_bytes());
        body.push(b'}');
    }
}

#[cfg(test)]
mod tests;
