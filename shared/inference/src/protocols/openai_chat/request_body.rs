//! The JSON body of a request.

use bench_domain::{ChatMessage, Generation, Role};
use serde::Serialize;
use serde_json::Value;

use crate::{ChatRequest, Dialect};

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
    response_format: Option<ResponseFormat<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: Role,
    content: Content<'a>,
}

/// Only messages with images are sent as lists, since not every server accepts lists.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl<'a> },
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
            let text = (!text.is_empty()).then_some(Part::Text { text });
            let images = message.images.iter();
            let images = images.map(|image| Part::ImageUrl { image_url: ImageUrl { url: &image.data_url } });
            Content::Parts(text.into_iter().chain(images).collect())
        };
        Self { role: message.role, content }
    }
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
pub(super) fn request_body(
    request: &ChatRequest<'_>,
    dialect: Dialect,
) -> Result<Vec<u8>, serde_json::Error> {
    let Generation { temperature, top_p, max_tokens, stop, seed } = request.generation;
    let body = Body {
        model: request.model,
        messages: request.prompt.messages.iter().map(Message::from_message).collect(),
        temperature: temperature.filter(|number| number.is_finite() && !dialect.omits_temperature),
        top_p: top_p.filter(|number| number.is_finite() && !dialect.omits_top_p),
        max_tokens: max_tokens.filter(|_| !dialect.has_max_completion_tokens),
        max_completion_tokens: max_tokens.filter(|_| dialect.has_max_completion_tokens),
        stop,
        seed: seed.filter(|_| !dialect.omits_seed),
        response_format: request
            .reply_schema
            .filter(|_| !dialect.omits_reply_schema)
            .map(ResponseFormat::strict),
        stream: true,
        stream_options: (!dialect.omits_stream_options).then_some(StreamOptions { include_usage: true }),
    };
    let messages = request.prompt.messages.iter();
    let text_bytes: usize = messages.clone().map(|message| message.content.len() + 48).sum();
    let images = messages.flat_map(|message| &message.images);
    let image_bytes: usize = images.map(|image| image.data_url.len() + 64).sum();
    let mut json = Vec::with_capacity(text_bytes + text_bytes / 16 + image_bytes + 256);
    serde_json::to_writer(&mut json, &body)?;
    Ok(json)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench_domain::{Image, Prompt};

    fn body(generation: &Generation, dialect: Dialect) -> String {
        let prompt = Prompt::user("Hi \"you\"");
        let request = ChatRequest { model: "a/b", prompt: &prompt, generation, reply_schema: None };
        String::from_utf8(request_body(&request, dialect).unwrap()).unwrap()
    }

    #[test]
    fn only_what_is_set_is_sent() {
        assert_eq!(
            body(&Generation::default(), Dialect::default()),
            r#"{"model":"a/b","messages":[{"role":"user","content":"Hi \"you\""}],"stream":true,"stream_options":{"include_usage":true}}"#
        );
        let all = Generation {
            temperature: Some(0.0),
            top_p: Some(0.9),
            max_tokens: Some(10),
            stop: vec!["END".into()],
            seed: Some(-1),
        };
        assert!(body(&all, Dialect::default()).contains(
            r#""temperature":0.0,"top_p":0.9,"max_tokens":10,"stop":["END"],"seed":-1,"stream":true"#
        ));
        let dialect = Dialect {
            omits_stream_options: true,
            has_max_completion_tokens: true,
            omits_temperature: true,
            omits_top_p: true,
            omits_seed: true,
            omits_reply_schema: false,
        };
        assert!(
            body(&all, dialect).ends_with(r#"],"max_completion_tokens":10,"stop":["END"],"stream":true}"#)
        );
    }

    #[test]
    fn a_schema_is_sent_to_servers_that_know_one() {
        let schema = serde_json::json!({"type": "object"});
        let (prompt, generation) = (Prompt::user("Hi"), Generation::default());
        let request = ChatRequest {
            model: "a/b",
            prompt: &prompt,
            generation: &generation,
            reply_schema: Some(&schema),
        };
        let body = |dialect| String::from_utf8(request_body(&request, dialect).unwrap()).unwrap();
        assert!(body(Dialect::default()).contains(
            r#""response_format":{"type":"json_schema","json_schema":{"name":"reply","strict":true,"schema":{"type":"object"}}},"stream":true"#
        ));
        let dialect = Dialect { omits_reply_schema: true, ..Dialect::default() };
        assert!(!body(dialect).contains("response_format"));
    }

    #[test]
    fn images_follow_the_text_of_their_message() {
        let image = |data_url: &str| Image { data_url: data_url.to_owned() };
        let mut question = ChatMessage::new(Role::User, "Which?");
        question.images = vec![image("data:image/png;base64,AA=="), image("data:image/gif;base64,BB==")];
        let mut wordless = ChatMessage::new(Role::User, "");
        wordless.images = vec![image("data:image/png;base64,CC==")];
        let prompt =
            Prompt { messages: vec![ChatMessage::new(Role::System, "Be brief."), question, wordless] };
        let generation = Generation::default();
        let request =
            ChatRequest { model: "a/b", prompt: &prompt, generation: &generation, reply_schema: None };
        let body: Value =
            serde_json::from_slice(&request_body(&request, Dialect::default()).unwrap()).unwrap();
        let url = |url: &str| serde_json::json!({"type": "image_url", "image_url": {"url": url}});
        assert_eq!(
            body["messages"],
            serde_json::json!([
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": [
                    {"type": "text", "text": "Which?"},
                    url("data:image/png;base64,AA=="), url("data:image/gif;base64,BB=="),
                ]},
                {"role": "user", "content": [url("data:image/png;base64,CC==")]},
            ])
        );
    }
}
