//! Reasons why a sign-in failed.

/// Reason why a sign-in failed. Its text is shown to the user, so it quotes nothing from the provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignInError {
    /// The provider refused the sign-in, or the user did.
    #[error("{}", refusal(.0))]
    Refused(&'static str),
    /// The callback has no code or no state.
    #[error("the sign-in came back without its code or state; sign in again")]
    MissingParameters,
    /// The state is unknown: it was used before, is too old, or another browser began the sign-in.
    #[error(
        "this sign-in was already used, took longer than 10 minutes, or was begun in another browser; sign in again"
    )]
    InvalidState,
    /// The provider's name in the callback isn't that of the configured one.
    #[error("the sign-in came back from another provider than the one that it was sent to; sign in again")]
    WrongIssuer,
    /// The address began as many sign-ins as it may.
    #[error("too many sign-ins from this address; try again later")]
    TooMany,
    /// The provider can't be reached, or takes too long.
    #[error("the sign-in provider can't be reached or takes too long; try again in a few minutes")]
    Unreachable,
    /// The provider's description of itself, or an answer, breaks the protocol.
    #[error(
        "the sign-in provider answered with something that this server doesn't accept; tell the operator"
    )]
    BadProvider,
    /// The provider gave no tokens for the code.
    #[error("the sign-in provider didn't accept the code of this sign-in; sign in again")]
    ExchangeRefused,
    /// The ID token is missing, or a check of it failed.
    #[error(
        "the sign-in provider's statement about the user doesn't hold; sign in again, or tell the operator"
    )]
    BadIdToken,
    /// The provider gave no usable facts about the user.
    #[error("the sign-in provider didn't say who the user is; sign in again")]
    UserInfo,
    /// The server failed.
    #[error("the server couldn't finish the sign-in; try again in a few minutes")]
    Server,
}

/// Errors of a callback that OAuth 2 and OpenID Connect define.
const KNOWN: [&str; 10] = [
    "access_denied",
    "invalid_request",
    "invalid_scope",
    "unauthorized_client",
    "unsupported_response_type",
    "temporarily_unavailable",
    "login_required",
    "consent_required",
    "interaction_required",
    "account_selection_required",
];

fn refusal(code: &str) -> &'static str {
    match code {
        "access_denied" => "the sign-in was canceled or not allowed",
        "temporarily_unavailable" => "the sign-in provider is busy; try again in a few minutes",
        "invalid_request" | "invalid_scope" | "unauthorized_client" | "unsupported_response_type" => {
            "the sign-in provider doesn't accept this server's request; tell the operator"
        }
        _ => "the sign-in provider didn't finish the sign-in; try again",
    }
}

impl SignInError {
    /// Returns the error that a callback names. Unknown names aren't repeated.
    pub fn refused(code: &str) -> Self {
        Self::Refused(KNOWN.into_iter().find(|known| *known == code).unwrap_or("provider_error"))
    }

    /// Returns the stable code, for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Refused(code) => code,
            Self::MissingParameters => "missing_params",
            Self::InvalidState => "invalid_state",
            Self::WrongIssuer => "wrong_issuer",
            Self::TooMany => "too_many_attempts",
            Self::Unreachable => "provider_unreachable",
            Self::BadProvider => "provider_invalid",
            Self::ExchangeRefused => "token_exchange_failed",
            Self::BadIdToken => "invalid_id_token",
            Self::UserInfo => "user_info_failed",
            Self::Server => "server_error",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_the_provider_are_not_repeated() {
        assert_eq!(SignInError::refused("access_denied").code(), "access_denied");
        let unknown = SignInError::refused("<script>");
        assert_eq!(unknown.code(), "provider_error");
        assert!(!unknown.to_string().contains("script"));
    }
}
