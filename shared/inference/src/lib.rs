//! Clients for chat completion providers, and the meaning of their failures.
//!
//! One [`ChatClient`] serves a whole process. It asks an [`Endpoint`] once per [`ChatClient::complete`] and returns
//! an [`Answer`](bench_domain::Answer) or a [`Failure`], whose [`FailureKind`] tells the caller what to do next. It
//! never retries, except a request that was refused for a field that the server doesn't know.
//!
//! [`providers`] is the table of providers, with one file each; each names its wire protocol. Modules use only those
//! after them: `client`, `catalog`, `confirm` → `transport` → `endpoint` → `providers` → `protocols` → `response`;
//! `settings` uses none of them.

mod address;
pub mod catalog;
mod client;
mod config;
mod confirm;
mod dialects;
mod endpoint;
mod failure;
mod listed_model;
mod model_name;
mod protocols;
pub mod providers;
mod redact;
mod request;
mod response;
mod retry_after;
pub mod settings;
mod source;
pub mod tokens;
mod transport;

pub use client::ChatClient;
pub use config::{ConfigError, InferenceConfig, ProviderConfig};
pub use confirm::{EndpointCheck, KeyCheck};
pub use endpoint::{Endpoint, EndpointError};
pub use failure::{Failure, FailureKind, Fatal, GaveUpBy, TooLong};
pub use model_name::{ModelName, ModelNameError};
pub use protocols::Dialect;
pub use protocols::openai_chat::parse_usage;
pub use providers::{PROVIDERS, Provider};
pub use redact::{Keys, REDACTED};
pub use request::ChatRequest;
pub use response::{ReportedUsage, error_message};
pub use retry_after::retry_after;
pub use source::ModelSource;
pub use transport::{HttpOptions, error_chain, http_client, http_client_for, is_loopback};
