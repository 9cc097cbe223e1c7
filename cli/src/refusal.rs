//! Requests that the API refused.

use std::time::Duration;

use bench_domain::Code;
use http::StatusCode;

/// Request that the API refused.
#[derive(Debug, thiserror::Error)]
#[error("{detail}")]
pub(crate) struct Refusal {
    /// Status of the response.
    status: StatusCode,
    /// Code from the response's body, if this program knows it.
    sent: Option<Code>,
    /// The API's own sentence.
    detail: String,
    /// Time that the server asks to wait before the next request.
    retry_after: Option<Duration>,
}

impl Refusal {
    /// Creates a refusal with this status, and with this code from the response's body.
    pub(crate) fn new(status: StatusCode, sent: Option<Code>, detail: impl Into<String>) -> Self {
        Self { status, sent, detail: detail.into(), retry_after: None }
    }

    /// Adds the time that the server asks to wait.
    #[must_use]
    pub(crate) fn after(mut self, wait: Option<Duration>) -> Self {
        self.retry_after = wait;
        self
    }

    /// Returns the time that the server asks to wait.
    pub(crate) const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Returns the code of the refusal.
    ///
    /// Only this function infers a code from a status: a body without a code that this program knows is from an older
    /// or newer server, from a proxy or gateway in front of it, or from the file store that it redirects to. Returns
    /// `None` if the status doesn't imply a code either.
    pub(crate) fn code(&self) -> Option<Code> {
        self.sent.or_else(|| {
            Some(match self.status {
                StatusCode::UNAUTHORIZED => Code::MissingCredentials,
                StatusCode::NOT_FOUND => Code::RouteNotFound,
                StatusCode::METHOD_NOT_ALLOWED => Code::MethodNotAllowed,
                StatusCode::PAYLOAD_TOO_LARGE => Code::BodyTooLarge,
                StatusCode::UNPROCESSABLE_ENTITY => Code::InvalidRequest,
                StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT => Code::ServerBusy,
                _ => return None,
            })
        })
    }

    /// Returns true if the request lacks a key or secret, or has one that the server doesn't accept.
    pub(crate) fn is_unauthorized(&self) -> bool {
        matches!(
            self.code(),
            Some(
                Code::MissingCredentials
                    | Code::InvalidCredentials
                    | Code::InvalidAdminSecret
                    | Code::InvalidAccessToken
            )
        )
    }

    /// Returns true if the same request may succeed later, because the server is busy or restarting.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(
            self.code(),
            Some(
                Code::ServerBusy
                    | Code::Maintenance
                    | Code::TooManyAttempts
                    | Code::OrderRateLimit
                    | Code::OpenRunsLimit
                    | Code::UploadRateLimit
                    | Code::SigningKeyInvalid
                    | Code::ProviderUnreachable
                    | Code::SandboxUnavailable
                    | Code::SandboxBadResponse
            )
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, code: Option<Code>) -> Refusal {
        Refusal::new(StatusCode::from_u16(status).unwrap(), code, "no")
    }

    #[test]
    fn a_status_decides_only_where_there_is_no_code() {
        assert_eq!(refused(404, Some(Code::UploadsNotOffered)).code(), Some(Code::UploadsNotOffered));
        assert_eq!(refused(404, None).code(), Some(Code::RouteNotFound));
        assert_eq!(refused(500, None).code(), None);
        assert!(
            refused(401, None).is_unauthorized()
                && refused(401, Some(Code::InvalidAccessToken)).is_unauthorized()
        );
        assert!(!refused(401, Some(Code::RunNotFound)).is_unauthorized());
    }

    #[test]
    fn what_passes_is_known_by_its_code_and_without_one_by_its_status() {
        for code in Code::ALL.iter().filter(|code| matches!(code.status(), Some(429 | 502 | 503))) {
            assert!(refused(400, Some(*code)).may_pass(), "{code}");
        }
        for status in [429, 502, 503, 504] {
            assert!(refused(status, None).may_pass(), "{status}");
            assert!(!refused(status, Some(Code::RunNotFound)).may_pass(), "{status}");
        }
        assert!(!refused(404, None).may_pass() && !refused(500, None).may_pass());
    }
}
