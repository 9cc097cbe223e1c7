//! OpenAI's chat completions: `POST /chat/completions`, server-sent events, `GET /models`.
//!
//! Chutes, OpenRouter, LM Studio, vLLM and others serve it, each with liberties of its own, which are all taken here.

mod classify;
mod collect;
mod error_body;
mod images;
mod listed_model;
mod piece;
mod request_body;
mod unknown_fields;
mod usage_object;

use bench_domain::Secret;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue, InvalidHeaderValue};

use super::{AnswerReader, Asked, Dialect, Protocol, ServerRefusal};
use crate::listed_model::CatalogueModel;
use crate::{ChatRequest, Keys};
use error_body::ErrorBody;

pub use usage_object::{ReportedUsage, parse_usage};

/// The protocol.
#[derive(Debug)]
pub(crate) struct OpenAiChat;

impl Protocol for OpenAiChat {
    fn answer_path(&self) -> &'static str {
        "chat/completions"
    }

    fn models_path(&self) -> &'static str {
        "models"
    }

    fn headers(&self, key: Option<&Secret>) -> Result<HeaderMap, InvalidHeaderValue> {
        let mut headers = HeaderMap::new();
        if let Some(key) = key {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose()))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(headers)
    }

    fn request_body(&self, request: &ChatRequest<'_>, dialect: Dialect) -> serde_json::Result<Vec<u8>> {
        request_body::request_body(request, dialect)
    }

    fn answer_reader(&self, keys: Keys, has_images: bool) -> Box<dyn AnswerReader> {
        Box::new(collect::Collector::new(keys, has_images))
    }

    fn read_error(&self, status: u16, body: &[u8], text: &str, asked: Option<Asked<'_>>) -> ServerRefusal {
        let said = ErrorBody::parse(body);
        let mut kind = classify::classify(status, &said);
        if asked.is_some_and(|asked| asked.has_images()) {
            // A body that is no JSON may still be a sentence.
            let words = if said.is_empty() { text } else { &said.message };
            kind = images::with_images(kind, status, words);
        }
        let next = asked.and_then(|asked| unknown_fields::after_refusal(asked, status, &said));
        ServerRefusal { kind, next }
    }

    fn listed_model(&self, json: &str) -> Option<CatalogueModel> {
        listed_model::listed_model(json)
    }
}
