//! The provider's endpoints.

use std::sync::{OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bench_domain::{Secret, Timestamp};
use bench_inference::{error_chain, http_client};
use http::{HeaderMap, header};
use reqwest::{RequestBuilder, Url};
use serde::Deserialize;
use tokio::sync::Mutex;

use crate::discovery::Endpoints;
use crate::id_token::{Expected, IdTokenError, PublicKeys, verify};
use crate::{Attempt, SignInConfig, SignInError};

/// Permissions that a sign-in asks for.
pub const SCOPES: &str = "openid profile chutes:invoke account:read";
/// Permission to call models on the user's account.
const INVOKE_SCOPE: &str = "chutes:invoke";
/// Time limit of a call.
const CALL_MAX: Duration = Duration::from_secs(10);
/// Time limit of a call that revokes a token. Short, since users who sign out wait for it.
const REVOCATION_MAX: Duration = Duration::from_secs(3);
/// Time for which the provider's description is valid.
const DESCRIPTION_VALID: Duration = Duration::from_secs(3_600);
/// Time for which a provider counts as one without a description.
const NO_DESCRIPTION_VALID: Duration = Duration::from_secs(300);
/// Time for which an old description is used after a failed attempt to read it anew.
const DESCRIPTION_RETRY: Duration = Duration::from_secs(30);
/// Time for which the provider's keys are valid.
const KEYS_VALID: Duration = Duration::from_secs(3_600);
/// Minimum time between two readings of the provider's keys.
const KEYS_VALID_MIN: Duration = Duration::from_secs(10);
/// Maximum length of a response in bytes.
const RESPONSE_BYTES_MAX: usize = 256 * 1024;
/// Maximum length of a code in bytes.
const CODE_BYTES_MAX: usize = 4_096;
/// Maximum length of a token in bytes. Two of them and the key that seals them must fit into a record.
const TOKEN_BYTES_MAX: usize = 16 * 1024;
/// Maximum length of a subject in bytes.
const SUBJECT_BYTES_MAX: usize = 255;
/// Maximum length of a name in characters.
const NAME_CHARS_MAX: usize = 80;

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

/// Endpoints, and the time until which they are used without another look at the description.
#[derive(Debug, Clone)]
struct KnownEndpoints {
    endpoints: Endpoints,
    until: Instant,
}

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

#[derive(Deserialize)]
struct TokenResponse {
    access_token: String,
    #[serde(default)]
    refresh_token: Option<String>,
    #[serde(default)]
    id_token: Option<String>,
    #[serde(default)]
    expires_in: Option<f64>,
    #[serde(default)]
    scope: Option<String>,
}

#[derive(Deserialize)]
struct UserInfo {
    sub: String,
    #[serde(default)]
    username: Option<String>,
    #[serde(default)]
    preferred_username: Option<String>,
}

#[derive(Deserialize)]
struct OAuthError {
    error: String,
}

struct Response {
    status: u16,
    body: Vec<u8>,
}

impl Response {
    const fn is_success(&self) -> bool {
        matches!(self.status, 200..=299)
    }

    /// Returns the provider's code of an error, if it's one that OAuth 2 defines.
    fn error(&self) -> Option<String> {
        let found: OAuthError = serde_json::from_slice(&self.body).ok()?;
        let is_code = found.error.len() <= 40
            && found.error.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        is_code.then_some(found.error)
    }
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
        let name = user.username.or(user.preferred_username);
        let name = name.map(|name| printable(&name)).filter(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| printable(&user.sub));
        Ok(SignedIn { subject: user.sub, name, has_invoke_scope, tokens })
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

    /// Returns the provider's keys, read at most this long ago.
    async fn public_keys(&self, url: &Url, age_max: Duration) -> Result<PublicKeys, SignInError> {
        let mut known = self.keys.lock().await;
        if let Some((read_at, keys)) = known.as_ref()
            && read_at.elapsed() < age_max
        {
            return Ok(keys.clone());
        }
        let response = self.call(url, CALL_MAX, |request| request).await?;
        if !response.is_success() {
            tracing::warn!(http.status = response.status, "The provider's keys can't be read");
            return Err(SignInError::Unreachable);
        }
        let keys = PublicKeys::read(&response.body).map_err(|error| {
            tracing::warn!(%error, "The provider's keys can't be read: {error}");
            SignInError::BadProvider
        })?;
        *known = Some((Instant::now(), keys.clone()));
        Ok(keys)
    }

    async fn user_info(&self, url: &Url, access: &Secret) -> Result<UserInfo, SignInError> {
        let response = self.call(url, CALL_MAX, |request| request.bearer_auth(access.expose())).await?;
        if !response.is_success() {
            tracing::warn!(http.status = response.status, "The provider gave no facts about a user");
            return Err(SignInError::UserInfo);
        }
        let user: UserInfo = serde_json::from_slice(&response.body).map_err(|_| SignInError::UserInfo)?;
        let is_plausible = !user.sub.is_empty()
            && user.sub.len() <= SUBJECT_BYTES_MAX
            && !user.sub.chars().any(char::is_control);
        if is_plausible { Ok(user) } else { Err(SignInError::UserInfo) }
    }

    /// Returns the provider's addresses, from its description if it has one.
    async fn endpoints(&self) -> Result<Endpoints, SignInError> {
        let asked_at = Instant::now();
        let known = match self.known_endpoints() {
            Some(known) if asked_at < known.until => return Ok(known.endpoints),
            known => known,
        };
        // One caller reads the description. The others use an old one, or wait for the result if there is none.
        let mut failed = match (self.reading.try_lock(), known) {
            (Ok(failed), _) => failed,
            (Err(_), Some(old)) => return Ok(old.endpoints),
            (Err(_), None) => self.reading.lock().await,
        };
        let known = self.known_endpoints();
        if let Some(known) = known.as_ref().filter(|known| asked_at < known.until) {
            return Ok(known.endpoints.clone());
        }
        // Callers who waited for an attempt that failed don't each make one of their own.
        if let Some((_, error)) = failed.as_ref().filter(|(at, _)| *at > asked_at) {
            return Err(error.clone());
        }
        let old = known.map(|known| known.endpoints);
        let read = self.read_endpoints(old.as_ref()).await;
        let (endpoints, valid) = match (read, old) {
            (Ok(endpoints), _) if endpoints.keys.is_none() => (endpoints, NO_DESCRIPTION_VALID),
            (Ok(endpoints), _) => (endpoints, DESCRIPTION_VALID),
            (Err(SignInError::Unreachable), Some(old)) => (old, DESCRIPTION_RETRY),
            (Err(error), _) => {
                *failed = Some((Instant::now(), error.clone()));
                return Err(error);
            }
        };
        *self.endpoints.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(KnownEndpoints { endpoints: endpoints.clone(), until: Instant::now() + valid });
        Ok(endpoints)
    }

    fn known_endpoints(&self) -> Option<KnownEndpoints> {
        self.endpoints.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the description. A provider that had one must keep it: without it, ID tokens wouldn't be checked.
    async fn read_endpoints(&self, old: Option<&Endpoints>) -> Result<Endpoints, SignInError> {
        let url =
            Url::parse(&Endpoints::description_url(&self.config)).map_err(|_| SignInError::BadProvider)?;
        let response = self.call(&url, CALL_MAX, |request| request).await?;
        let had_description = old.is_some_and(|old| old.keys.is_some());
        let endpoints = match response.status {
            200 => Endpoints::read(&self.config, &response.body),
            404 if !had_description => Endpoints::fixed(&self.config),
            status => {
                tracing::warn!(http.status = status, "The provider's description of itself can't be read");
                return Err(SignInError::Unreachable);
            }
        };
        endpoints.map_err(|error| {
            tracing::warn!(%error, "The sign-in provider isn't usable: {error}");
            SignInError::BadProvider
        })
    }

    /// Writes a form with the client's secret, if there is one.
    fn form_body(&self, fields: &[(&str, &str)]) -> String {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(fields);
        if let Some(secret) = &self.config.client_secret {
            form.append_pair("client_secret", secret.expose());
        }
        form.finish()
    }

    async fn post_form(
        &self,
        url: &Url,
        fields: &[(&str, &str)],
        time: Duration,
    ) -> Result<Response, SignInError> {
        let body = self.form_body(fields);
        let client = self.client()?;
        let request = client
            .post(url.clone())
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(body);
        self.send(request, time).await
    }

    async fn call(
        &self,
        url: &Url,
        time: Duration,
        change: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Result<Response, SignInError> {
        let client = self.client()?;
        self.send(change(client.get(url.clone())), time).await
    }

    async fn send(&self, request: RequestBuilder, time: Duration) -> Result<Response, SignInError> {
        let unreachable = |error: reqwest::Error| {
            // Its address may contain a secret.
            let error = error_chain(&error.without_url());
            tracing::warn!(%error, "The sign-in provider can't be reached: {error}");
            SignInError::Unreachable
        };
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, http::HeaderValue::from_static("application/json"));
        let response = request.headers(headers).timeout(time).send().await;
        let mut response = response.map_err(unreachable)?;
        let status = response.status().as_u16();
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            body.extend_from_slice(&chunk);
            if body.len() > RESPONSE_BYTES_MAX {
                tracing::warn!("The sign-in provider sent more than {RESPONSE_BYTES_MAX} bytes");
                return Err(SignInError::BadProvider);
            }
        }
        Ok(Response { status, body })
    }

    fn client(&self) -> Result<&reqwest::Client, SignInError> {
        let built = self.http.get_or_init(|| {
            http_client(self.config.is_local(), |builder| {
                // Calls are rare, so a pooled connection would often be closed already.
                builder.connect_timeout(CALL_MAX).pool_max_idle_per_host(0)
            })
        });
        built.as_ref().map_err(|error| {
            tracing::error!(%error, "There is no HTTP client for the sign-in provider: {error}");
            SignInError::Server
        })
    }
}

fn read_tokens(body: &[u8]) -> Result<TokenResponse, SignInError> {
    serde_json::from_slice(body).map_err(|_| {
        // The reason may quote a token.
        tracing::warn!("The provider's tokens can't be read");
        SignInError::BadProvider
    })
}

fn token_set(answer: &TokenResponse, now: Timestamp) -> Result<TokenSet, SignInError> {
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
fn printable(name: &str) -> String {
    let is_hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
            || matches!(c, '\u{2028}' | '\u{2029}')
    };
    let shown: String = name.chars().filter(|c| !is_hidden(*c)).take(NAME_CHARS_MAX).collect();
    shown.trim().to_owned()
}

#[cfg(test)]
mod tests;
