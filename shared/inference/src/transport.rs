//! Exchanges with providers over HTTP: connections, time limits, sizes and the resulting failures.

mod call;
mod failures;
mod http;
mod reading;
mod watch;

pub(crate) use call::Call;
pub(crate) use failures::{
    Refusal, invalid_request_failure, missing_client_failure, network_failure, read_refusal, timeout_failure,
};
pub(crate) use http::Http;
pub use http::{HttpOptions, error_chain, http_client, http_client_for, is_loopback};
pub(crate) use watch::Watch;
