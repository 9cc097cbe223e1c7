//! The provider's endpoints: sign-ins, and renewals and revocations of tokens.

mod answers;
mod calls;
mod description;

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use bench_domain::Secret;
use reqwest::Url;
use tokio::sync::Mutex;

pub use self::answers::TokenSet;
use self::answers::{UserInfo, read_tokens, token_set};
use self::calls::CALL_MAX;
use self::description::{KEYS_VALID, KEYS_VALID_MIN, KnownEndpoints};
use crate::id_token::{Expected, IdTokenError, PublicKeys, verify};
use crate::{Attempt, SignInConfig, SignInError};

/// Permissions that a sign-in asks for.
pub const SCOPES: &str = "openid profile chutes:invoke account:read";
/// Permission to call models on the user's account.
const INVOKE_SCOPE: &str = "chutes:invoke";
/// Time limit of a call that revokes a token. Short, since users who sign out wait for it.
const REVOCATION_MAX: Duration = Duration::from_secs(3);
/// Maximum length of a code in bytes.
const CODE_BYTES_MAX: usize = 4_096;

/// Client of an OpenID provider.
#[derive(Debug)]
pub struct Provider {
    config: SignInConfig,
    http: OnceLock<Result<reqwest::Client, String>>,
    endpoints: std::sync::Mutex<Option<KnownEndpoints>>,
    /// Held while the description is read, with the time and the error of the last failure.
    reading: Mutex<Option<(Instant, SignInError)>>,
    keys: Mutex<Option<(Instant, PublicKeys)>>,
}

/// Result of a sign-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedIn {
    /// The provider's name for the user, which never changes.
    pub subject: String,
    /// Name to show to the user.
    pub name: String,
    /// True if the tokens may call models on the user's account.
    pub has_invoke_scope: bool,
    /// Tokens of the session.
    pub tokens: TokenSet,
}

/// Reason why tokens weren't renewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RenewalError {
    /// The provider no longer accepts the refresh token.
    Refused,
    /// Anything that may pass.
    Failed(SignInError),
}

impl Provider {
    /// Creates a client. Calls nothing.
    pub fn new(config: SignInConfig) -> Self {
        Self {
            config,
            http: OnceLock::new(),
            endpoints: std::sync::Mutex::default(),
            reading: Mutex::default(),
            keys: Mutex::default(),
        }
    }

    /// Returns the settings.
    pub const fn config(&self) -> &SignInConfig {
        &self.config
    }

    /// Returns the address to which the browser is sent, with its parameters in the order of the compatible system.
    ///
    /// # Errors
    /// If the provider's description can't be read.
    pub async fn authorization_url(
        &self,
        attempt: &Attempt,
        redirect_uri: &str,
    ) -> Result<String, SignInError> {
        let endpoints = self.endpoints().await?;
        let parameters = [
            ("response_type", "code"),
            ("client_id", &self.config.client_id),
            ("redirect_uri", redirect_uri),
            ("scope", SCOPES),
            ("state", attempt.state()),
            ("code_challenge", &attempt.challenge()),
            ("code_challenge_method", "S256"),
            ("nonce", &attempt.nonce()),
        ];
        let encode = |text: &str| {
            form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20")
        };
        let query: Vec<String> =
            parameters.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
        let joint = if endpoints.authorization.query().is_some() { '&' } else { '?' };
        Ok(format!("{}{joint}{}", endpoints.authorization, query.join("&")))
    }

    /// Checks the issuer that a callback names, if it does.
    ///
    /// # Errors
    /// [`SignInError::WrongIssuer`] for another one.
    pub fn check_issuer(&self, issuer: Option<&str>) -> Result<(), SignInError> {
        match issuer {
            Some(issuer) if issuer.trim_end_matches('/') != self.config.base_url => {
                Err(SignInError::WrongIssuer)
            }
            _ => Ok(()),
        }
    }

    /// Exchanges a code for tokens, and finds out who the user is.
    ///
    /// # Errors
    /// Returns the step that failed.
    pub async fn finish(
        &self,
        attempt: &Attempt,
        code: &str,
        redirect_uri: &str,
    ) -> Result<SignedIn, SignInError> {
        if code.len() > CODE_BYTES_MAX {
            return Err(SignInError::ExchangeRefused);
        }
        let endpoints = self.endpoints().await?;
        let now = bench_clock::now();
        let verifier = attempt.verifier();
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect_uri),
            ("client_id", &self.config.client_id),
            ("code_verifier", verifier.expose()),
        ];
        let response = self.post_form(&endpoints.token, &form, CALL_MAX).await?;
        if !response.is_success() {
            let error = response.error().unwrap_or_default();
            tracing::warn!(http.status = response.status, oauth.error = %error, "The provider refused a code");
            return Err(if response.status >= 500 {
                SignInError::Unreachable
            } else {
                SignInError::ExchangeRefused
            });
        }
        let answer = read_tokens(&response.body)?;
        let scopes = answer.scope.as_deref().unwrap_or_default();
        let has_invoke_scope = scopes.split_ascii_whitespace().any(|scope| scope == INVOKE_SCOPE);
        let tokens = token_set(&answer, now)?;
        let subject = match &endpoints.keys {
            Some(keys) => Some(self.check_id_token(keys, answer.id_token.as_deref(), attempt).await?),
            None => None,
        };
        let user = self.user_info(&endpoints.user_info, &tokens.access).await?;
        if subject.is_some_and(|subject| subject != user.sub) {
            tracing::warn!("The provider's facts about a user are of another user than its ID token");
            return Err(SignInError::UserInfo);
        }
        Ok(SignedIn { name: user.name(), subject: user.sub, has_invoke_scope, tokens })
    }

    /// Renews an access token.
    ///
    /// # Errors
    /// Tells a refresh token that is no longer accepted from trouble that may pass.
    pub async fn renew(&self, refresh: &Secret) -> Result<TokenSet, RenewalError> {
        let endpoints = self.endpoints().await.map_err(RenewalError::Failed)?;
        let now = bench_clock::now();
        let form = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh.expose()),
            ("client_id", &self.config.client_id),
        ];
        let response =
            self.post_form(&endpoints.token, &form, CALL_MAX).await.map_err(RenewalError::Failed)?;
        if response.is_success() {
            let answer = read_tokens(&response.body).map_err(RenewalError::Failed)?;
            let tokens = token_set(&answer, now).map_err(RenewalError::Failed)?;
            return Ok(TokenSet { refresh: tokens.refresh.or_else(|| Some(refresh.clone())), ..tokens });
        }
        let error = response.error().unwrap_or_default();
        tracing::warn!(http.status = response.status, oauth.error = %error, "The provider renewed no token");
        if response.status < 500 && error == "invalid_grant" {
            return Err(RenewalError::Refused);
        }
        Err(RenewalError::Failed(SignInError::Unreachable))
    }

    /// Revokes a token, as far as the provider can be reached in a short time.
    pub async fn revoke(&self, token: &Secret) {
        let Ok(endpoints) = self.endpoints().await else { return };
        let Some(url) = &endpoints.revocation else { return };
        let form = [("token", token.expose()), ("client_id", self.config.client_id.as_str())];
        match self.post_form(url, &form, REVOCATION_MAX).await {
            Ok(response) if response.is_success() => {}
            Ok(response) => {
                tracing::info!(http.status = response.status, "The provider didn't revoke a token");
            }
            Err(error) => tracing::info!(%error, "A token wasn't revoked: {error}"),
        }
    }

    async fn check_id_token(
        &self,
        keys: &Url,
        token: Option<&str>,
        attempt: &Attempt,
    ) -> Result<String, SignInError> {
        let token = token.ok_or_else(|| {
            tracing::warn!("The provider sent no ID token");
            SignInError::BadIdToken
        })?;
        let nonce = attempt.nonce();
        let expected = Expected {
            issuer: &self.config.base_url,
            client_id: &self.config.client_id,
            nonce: &nonce,
            now: bench_clock::now(),
        };
        let known = self.public_keys(keys, KEYS_VALID).await?;
        let checked = match verify(token, &known, expected) {
            // The provider may have new keys: they are read once more.
            Err(IdTokenError::UnknownKey) => {
                verify(token, &self.public_keys(keys, KEYS_VALID_MIN).await?, expected)
            }
            checked => checked,
        };
        checked.map_err(|error| {
            tracing::warn!(%error, "An ID token isn't accepted: {error}");
            SignInError::BadIdToken
        })
    }

    async fn user_info(&self, url: &Url, access: &Secret) -> Result<UserInfo, SignInError> {
        let response = self.call(url, CALL_MAX, |request| request.bearer_auth(access.expose())).await?;
        if !response.is_success() {
            tracing::warn!(http.status = response.status, "The provider gave no facts about a user");
            return Err(SignInError::UserInfo);
        }
        UserInfo::read(&response.body).ok_or(SignInError::UserInfo)
    }
}

#[cfg(test)]
mod tests;
