//! Requests that the API refused.

use std::time::Duration;

use bench_domain::Code;
use http::StatusCode;

/// A request that the API refused.
#[derive(Debug, thiserror::Error)]
#[error("{detail}")]
pub(crate) struct Refused {
    /// Status of the answer.
    pub(crate) status: StatusCode,
    /// The API's code; `None` from a server that knows none.
    pub(crate) code: Option<Code>,
    /// The API's own sentence.
    pub(crate) detail: String,
    /// When the server asks to be asked again.
    pub(crate) retry_after: Option<Duration>,
}

impl Refused {
    /// Whether the same request may be answered later: the server is busy or being restarted.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self.status.as_u16(), 429 | 502 | 503 | 504)
    }
}
