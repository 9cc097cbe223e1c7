//! Chat completion providers, and what their failures mean.
//!
//! One [`ChatClient`] serves a whole process. It asks an OpenAI-compatible [`Endpoint`] once per
//! [`ChatClient::complete`] and says how that ended: an [`Answer`](bench_domain::Answer) or a
//! [`Failure`], whose [`FailureKind`] tells the caller what to do next. It repeats nothing by itself,
//! except a request that was refused for a field which the server does not know.
//!
//! The wire format is the public chat completions API (`POST /chat/completions`, server-sent events),
//! as Chutes, OpenRouter, LM Studio, vLLM and others serve it.

mod call;
pub mod catalogue;
mod classify;
mod client;
mod collect;
mod config;
mod confirm;
mod dialect;
mod endpoint;
mod error_body;
mod failure;
mod http;
mod images;
mod model_name;
mod piece;
mod redact;
mod request_body;
mod retry_after;
mod sse;
pub mod tokens;
mod unicode;
mod usage_object;
mod watch;

pub use client::{ChatClient, ChatRequest};
pub use config::{ConfigError, InferenceConfig, ProviderConfig};
pub use confirm::KeyCheck;
pub use dialect::Dialect;
pub use endpoint::{Endpoint, EndpointError};
pub use failure::{Failure, FailureKind, Fatal, GaveUpBy, TooLong};
pub use http::HttpOptions;
pub use model_name::{ModelName, ModelNameError, ProviderKind};
pub use redact::{Keys, REDACTED};
pub use retry_after::retry_after;
pub use usage_object::{Said, parse_usage};
