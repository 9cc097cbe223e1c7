//! OpenAI's chat completions: `POST /chat/completions`, server-sent events, `GET /models`.
//!
//! Implemented by Chutes, OpenRouter, LM Studio, vLLM and others. Each deviates in some way; this module accepts all
//! their forms.

mod answer_reader;
mod calls;
mod listed_model;
mod piece;
mod request_body;
mod unknown_fields;
mod usage_object;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use reqwest::{Method, Request, Url};

use super::{AnswerReader, Dialect, PreparedRequest, Protocol, RequestError, Target};
use crate::listed_model::{CatalogModel, ListPage, split_list};
use crate::response::ErrorBody;

pub use usage_object::parse_usage;

/// The protocol.
#[derive(Debug)]
pub(crate) struct OpenAiChat;

impl Protocol for OpenAiChat {
    fn answer_request(
        &self,
        target: &Target,
        prepared: PreparedRequest<'_>,
    ) -> Result<Request, RequestError> {
        let mut request = Request::new(Method::POST, target.url(["chat", "completions"])?);
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
        insert_key(headers, target)?;
        *request.body_mut() = Some(request_body::request_body(prepared)?.into());
        Ok(request)
    }

    fn models_request(&self, target: &Target, _page: Option<&str>) -> Result<Request, RequestError> {
        self.get_request(target, target.url(["models"])?)
    }

    fn get_request(&self, target: &Target, url: Url) -> Result<Request, RequestError> {
        let mut request = Request::new(Method::GET, url);
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
        insert_key(request.headers_mut(), target)?;
        Ok(request)
    }

    /// Servers that don't stream send one object instead of events. The first byte decides, since not all of them
    /// send a content type.
    fn is_stream(&self, headers: &HeaderMap, start: &[u8]) -> bool {
        match start.trim_ascii_start().first() {
            Some(b'{' | b'[' | b'<') => false,
            // `data`, `event`, `id`, `retry`, a comment, a byte order mark.
            Some(b'd' | b'e' | b'i' | b'r' | b':' | 0xef) => true,
            _ => headers
                .get(CONTENT_TYPE)
                .and_then(|value| value.to_str().ok())
                .is_some_and(|value| value.starts_with("text/event-stream")),
        }
    }

    fn answer_reader(&self) -> Box<dyn AnswerReader> {
        Box::new(answer_reader::Reader::default())
    }

    fn request_id_headers(&self) -> &'static [&'static str] {
        &["x-request-id", "x-requestid"]
    }

    fn next_dialect(&self, prepared: PreparedRequest<'_>, status: u16, error: &ErrorBody) -> Option<Dialect> {
        unknown_fields::after_refusal(prepared, status, error)
    }

    fn split_models<'a>(&self, body: &'a [u8]) -> Result<ListPage<'a>, String> {
        split_list(body)
    }

    fn listed_model(&self, entry: &str) -> Option<CatalogModel> {
        listed_model::listed_model(entry)
    }
}

fn insert_key(headers: &mut HeaderMap, target: &Target) -> Result<(), RequestError> {
    if let Some(key) = target.key() {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose()))?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    if let Some(host) = target.host() {
        headers.insert(HOST, host.clone());
    }
    Ok(())
}
