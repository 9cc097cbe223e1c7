//! Exchanges with providers over HTTP: connections, time limits, sizes and the resulting failures.

mod call;
mod failures;
mod http;
mod reading;
mod watch;

pub(crate) use call::Call;
pub(crate) use failures::{Refusal, expired, network, no_client, read_refusal, unbuilt};
pub use http::HttpOptions;
pub(crate) use http::{Http, chain};
pub(crate) use watch::Watch;
