//! Tokens and facts about users in the provider's responses, checked.

use std::time::Duration;

use bench_domain::{Secret, Timestamp, is_layout_control};
use serde::Deserialize;

use crate::SignInError;

/// Maximum length of a token in bytes. Two of them and the key that seals them must fit into a record.
const TOKEN_BYTES_MAX: usize = 16 * 1024;
/// Maximum length of a subject in bytes.
const SUBJECT_BYTES_MAX: usize = 255;
/// Maximum length of a name in characters.
pub(super) const NAME_CHARS_MAX: usize = 80;

/// Tokens that the provider issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenSet {
    /// Token that pays for calls of models.
    pub access: Secret,
    /// Token that renews the other.
    pub refresh: Option<Secret>,
    /// Time at which the access token expires; `None` if the provider doesn't say.
    pub expires_at: Option<Timestamp>,
}

/// Response to a request for tokens.
#[derive(Deserialize)]
pub(super) struct TokenResponse {
    access_token: String,
    #[serde(default)]
    refresh_token: Option<String>,
    #[serde(default)]
    pub(super) id_token: Option<String>,
    #[serde(default)]
    expires_in: Option<f64>,
    #[serde(default)]
    pub(super) scope: Option<String>,
}

/// Facts about a user.
#[derive(Deserialize)]
pub(super) struct UserInfo {
    pub(super) sub: String,
    #[serde(default)]
    username: Option<String>,
    #[serde(default)]
    preferred_username: Option<String>,
}

impl UserInfo {
    /// Reads the facts; `None` unless they have a plausible subject.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        let user: Self = serde_json::from_slice(body).ok()?;
        let is_plausible = !user.sub.is_empty()
            && user.sub.len() <= SUBJECT_BYTES_MAX
            && !user.sub.chars().any(char::is_control);
        is_plausible.then_some(user)
    }

    /// Returns the name to show.
    pub(super) fn name(&self) -> String {
        let name = self.username.as_deref().or(self.preferred_username.as_deref());
        let name = name.map(printable).filter(|name| !name.is_empty());
        name.unwrap_or_else(|| printable(&self.sub))
    }
}

pub(super) fn read_tokens(body: &[u8]) -> Result<TokenResponse, SignInError> {
    serde_json::from_slice(body).map_err(|_| {
        // The reason may quote a token.
        tracing::warn!("The provider's tokens can't be read");
        SignInError::BadProvider
    })
}

pub(super) fn token_set(answer: &TokenResponse, now: Timestamp) -> Result<TokenSet, SignInError> {
    let token = |text: &str| {
        let is_plausible = text.len() <= TOKEN_BYTES_MAX && text.bytes().all(|byte| byte.is_ascii_graphic());
        Secret::new(text).filter(|_| is_plausible).ok_or(SignInError::BadProvider)
    };
    let lifetime = answer.expires_in.filter(|seconds| seconds.is_finite()).map(|seconds| {
        // A century is as good as forever.
        Duration::try_from_secs_f64(seconds.clamp(0.0, 3_155_760_000.0)).unwrap_or_default()
    });
    Ok(TokenSet {
        access: token(&answer.access_token)?,
        refresh: answer.refresh_token.as_deref().filter(|text| !text.is_empty()).map(token).transpose()?,
        expires_at: lifetime.map(|lifetime| now.plus(lifetime)),
    })
}

/// Returns a name without characters that would change the text around it.
pub(super) fn printable(name: &str) -> String {
    let shown: String = name.chars().filter(|c| !is_layout_control(*c)).take(NAME_CHARS_MAX).collect();
    shown.trim().to_owned()
}
