//! Access tokens of sessions, renewed by one process at a time.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bench_domain::{Secret, SessionId, Timestamp};
use bench_state::credentials::{Credentials, Grant};
use bench_state::{State, StateError};

use crate::provider::RenewalError;
use crate::{Provider, TokenSet};

/// Remaining lifetime below which an access token is renewed, or half of its life if that is shorter.
pub const RENEW_BELOW: Duration = Duration::from_secs(300);
/// Time for which a process uses a token without a look at the table, where another may have renewed or removed it.
const CACHED_FOR: Duration = Duration::from_secs(30);
/// Time for which a token is used that another process is renewing.
const CACHED_FOR_RENEWAL: Duration = Duration::from_secs(2);
/// Maximum number of cached tokens.
const CACHED_MAX: usize = 1_000;
/// Number of times that a process without a valid token looks for the result of another's renewal.
const LOOKS_MAX: u32 = 20;
/// Time between two such looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Time after which a caller should try again if a token can't be renewed at present.
const RETRY_AFTER: Duration = Duration::from_secs(15);

/// Reason why there is no access token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The session was ended, is over, or the provider no longer accepts its tokens.
    #[error("Chutes session expired or invalid")]
    Gone,
    /// The server has no sign-in.
    #[error("this server has no sign-in, so it can't renew the session's token")]
    NotConfigured,
    /// The token can't be renewed at present.
    #[error("the sign-in provider doesn't renew the session's token at present")]
    Later(Duration),
    /// The table can't be read or written.
    #[error(transparent)]
    State(#[from] StateError),
}

struct CachedToken {
    token: Secret,
    until: Instant,
}

/// Access tokens of sessions.
pub struct SessionTokens {
    state: State,
    credentials: Credentials,
    provider: Option<Arc<Provider>>,
    cached: Mutex<HashMap<SessionId, CachedToken>>,
    /// Held while a token is read and renewed, so that the tasks of a process read it once.
    reading: tokio::sync::Mutex<()>,
}

impl fmt::Debug for SessionTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionTokens").finish_non_exhaustive()
    }
}

impl SessionTokens {
    /// Creates an empty cache. Without a provider, tokens can be read but not renewed.
    pub fn new(state: State, credentials: Credentials, provider: Option<Arc<Provider>>) -> Self {
        Self { state, credentials, provider, cached: Mutex::default(), reading: tokio::sync::Mutex::new(()) }
    }

    /// Returns an access token of a session that is valid for some minutes, and renews it before if necessary.
    ///
    /// # Errors
    /// Returns why there is none.
    pub async fn access_token(&self, session: &SessionId) -> Result<Secret, TokenError> {
        if let Some(token) = self.cached_token(session) {
            return Ok(token);
        }
        let _one = self.reading.lock().await;
        if let Some(token) = self.cached_token(session) {
            return Ok(token);
        }
        for _ in 0..LOOKS_MAX {
            let now = bench_clock::now();
            let Some(grant) = self.credentials.grant(session, now).await? else {
                return Err(TokenError::Gone);
            };
            let is_valid = grant.expires_at.is_none_or(|end| now < end);
            if grant
                .expires_at
                .is_none_or(|end| now.plus(RENEW_BELOW.min(end.since(grant.issued_at) / 2)) < end)
            {
                return Ok(self.cache(session, &grant, CACHED_FOR));
            }
            let Some(refresh) = grant.refresh.clone() else {
                return if is_valid {
                    Ok(self.cache(session, &grant, CACHED_FOR))
                } else {
                    Err(TokenError::Gone)
                };
            };
            let Some(provider) = &self.provider else {
                return if is_valid {
                    Ok(self.cache(session, &grant, CACHED_FOR))
                } else {
                    Err(TokenError::NotConfigured)
                };
            };
            if self.credentials.claim_renewal(session, &grant, now).await? {
                return self.renew(provider, session, &grant, &refresh).await;
            }
            if is_valid {
                return Ok(self.cache(session, &grant, CACHED_FOR_RENEWAL));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Err(TokenError::Later(RETRY_AFTER))
    }

    /// Returns true if a session has a valid access token, or gets one.
    pub async fn has_valid_token(&self, session: &SessionId) -> bool {
        self.access_token(session).await.is_ok()
    }

    /// Ends a session and forgets its tokens, after an attempt to revoke them at the provider. Safe to repeat.
    ///
    /// # Errors
    /// If the table can't be written.
    pub async fn end(&self, session: &SessionId) -> Result<(), StateError> {
        self.state.end_session(session).await?;
        let grant = self.credentials.grant(session, bench_clock::now()).await;
        self.forget(session);
        self.credentials.delete_grant(session).await?;
        // Its tokens can't be revoked if they can't be opened, but they are gone.
        if let (Ok(Some(grant)), Some(provider)) = (grant, &self.provider) {
            revoke(provider, &grant).await;
        }
        Ok(())
    }

    /// Ends a session that a newer one of the same user replaces, and forgets its tokens. They aren't revoked: at some providers,
    /// the tokens of both sessions belong to one grant.
    ///
    /// # Errors
    /// If the table can't be written.
    pub async fn replace(&self, session: &SessionId) -> Result<(), StateError> {
        self.state.end_session(session).await?;
        self.forget(session);
        self.credentials.delete_grant(session).await
    }

    async fn renew(
        &self,
        provider: &Provider,
        session: &SessionId,
        grant: &Grant,
        refresh: &Secret,
    ) -> Result<Secret, TokenError> {
        match provider.renew(refresh).await {
            Ok(TokenSet { access, refresh, expires_at }) => {
                let renewed = Grant {
                    access,
                    refresh,
                    issued_at: bench_clock::now(),
                    expires_at,
                    version: grant.version + 1,
                    ends_at: grant.ends_at,
                };
                // Stored before it's used: the provider may no longer accept the old refresh token.
                if self.credentials.store_renewed(session, &renewed).await? {
                    tracing::info!(session.id = %short(session), "Renewed the access token of a session");
                    return Ok(self.cache(session, &renewed, CACHED_FOR));
                }
                // The session was ended meanwhile, so nothing may be left of it.
                revoke(provider, &renewed).await;
                Err(TokenError::Gone)
            }
            Err(RenewalError::Refused) => {
                // Another process may have renewed it while this one's claim lapsed.
                let now = bench_clock::now();
                let current = self.credentials.grant(session, now).await?;
                if let Some(current) = current.filter(|current| current.version != grant.version) {
                    return Ok(self.cache(session, &current, CACHED_FOR));
                }
                tracing::info!(session.id = %short(session), "A session ends: the provider no longer accepts its tokens");
                self.end(session).await?;
                Err(TokenError::Gone)
            }
            Err(RenewalError::Failed(error)) => {
                tracing::warn!(session.id = %short(session), %error, "An access token isn't renewed yet: {error}");
                self.credentials.release_renewal(session, grant).await?;
                let is_valid = grant.expires_at.is_none_or(|end| bench_clock::now() < end);
                if is_valid {
                    return Ok(self.cache(session, grant, CACHED_FOR_RENEWAL));
                }
                Err(TokenError::Later(RETRY_AFTER))
            }
        }
    }

    fn cached_token(&self, session: &SessionId) -> Option<Secret> {
        let cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let found = cached.get(session).filter(|found| Instant::now() < found.until);
        found.map(|found| found.token.clone())
    }

    fn cache(&self, session: &SessionId, grant: &Grant, time: Duration) -> Secret {
        // Never beyond the token's end.
        let left = grant.expires_at.map_or(time, |end: Timestamp| end.since(bench_clock::now()));
        let until = Instant::now() + time.min(left);
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.len() >= CACHED_MAX {
            cached.retain(|_, token| Instant::now() < token.until);
        }
        cached.insert(session.clone(), CachedToken { token: grant.access.clone(), until });
        grant.access.clone()
    }

    fn forget(&self, session: &SessionId) {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner).remove(session);
    }
}

/// Revokes the tokens of a grant. The refresh token first: some providers revoke both with it.
async fn revoke(provider: &Provider, grant: &Grant) {
    if let Some(refresh) = &grant.refresh {
        provider.revoke(refresh).await;
    }
    provider.revoke(&grant.access).await;
}

/// Returns the start of a session's id, for the log.
fn short(session: &SessionId) -> &str {
    session.as_str().get(..12).unwrap_or_default()
}
