//! Access tokens of sessions, renewed by one process at a time.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
/// Time after a failed renewal for which no process tries again. Tokens that are still valid are used meanwhile.
const FAILED_FOR: Duration = Duration::from_secs(5);
/// Time after which a caller should try again if a token can't be renewed at present.
const RETRY_AFTER: Duration = Duration::from_secs(15);
/// Waits before further attempts to store renewed tokens.
const STORE_WAITS: [Duration; 4] = [
    Duration::from_millis(100),
    Duration::from_millis(400),
    Duration::from_millis(1_500),
    Duration::from_secs(3),
];
/// Time limit for revoking all tokens of a session. A user waits for it at a sign-out.
const REVOCATION_MAX: Duration = Duration::from_secs(5);

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

/// This process's knowledge of a session's token.
#[derive(Default)]
struct Known {
    /// The token, and the end of its use without a look at the table.
    token: Option<(Secret, Instant)>,
    /// Time until which a failed renewal isn't repeated.
    failed_until: Option<Instant>,
}

/// A session's token in this process.
#[derive(Default)]
struct Slot {
    known: Mutex<Known>,
    /// Held while the token is read and renewed, so that the tasks of a process read it once.
    reading: tokio::sync::Mutex<()>,
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the cached token, unless it's the refused one.
    fn token(&self, refused: Option<&Secret>) -> Option<Secret> {
        let known = self.lock();
        let (token, _) = known.token.as_ref().filter(|(_, until)| Instant::now() < *until)?;
        (refused != Some(token)).then(|| token.clone())
    }

    fn cache(&self, grant: &Grant, time: Duration) -> Secret {
        // Never beyond the token's end.
        let left = grant.expires_at.map_or(time, |end: Timestamp| end.since(bench_clock::now()));
        self.lock().token = Some((grant.access.clone(), Instant::now() + time.min(left)));
        grant.access.clone()
    }

    /// Returns how long a failed renewal still isn't repeated.
    fn failed_for(&self) -> Option<Duration> {
        self.lock()
            .failed_until
            .map(|until| until.saturating_duration_since(Instant::now()))
            .filter(|left| !left.is_zero())
    }

    fn is_used(&self) -> bool {
        self.token(None).is_some() || self.failed_for().is_some()
    }
}

/// Access tokens of sessions.
#[derive(Clone)]
pub struct SessionTokens {
    inner: Arc<Inner>,
}

struct Inner {
    state: State,
    credentials: Credentials,
    provider: Option<Arc<Provider>>,
    slots: Mutex<HashMap<SessionId, Arc<Slot>>>,
}

impl fmt::Debug for SessionTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionTokens").finish_non_exhaustive()
    }
}

impl SessionTokens {
    /// Creates an empty cache. Without a provider, tokens can be read but not renewed.
    pub fn new(state: State, credentials: Credentials, provider: Option<Arc<Provider>>) -> Self {
        Self { inner: Arc::new(Inner { state, credentials, provider, slots: Mutex::default() }) }
    }

    /// Returns an access token of a session that is valid for some minutes, and renews it before if necessary. A renewal goes on if
    /// the caller stops waiting.
    ///
    /// # Errors
    /// Returns why there is none.
    pub async fn access_token(&self, session: &SessionId) -> Result<Secret, TokenError> {
        self.token(session, None).await
    }

    /// Returns another access token than one that the gateway refused: the current one, if another process renewed it, or else a
    /// renewed one.
    ///
    /// # Errors
    /// Returns why there is none.
    pub async fn replace_refused(&self, session: &SessionId, refused: &Secret) -> Result<Secret, TokenError> {
        self.token(session, Some(refused)).await
    }

    async fn token(&self, session: &SessionId, refused: Option<&Secret>) -> Result<Secret, TokenError> {
        let slot = self.inner.slot(session);
        if let Some(token) = slot.token(refused) {
            return Ok(token);
        }
        let (inner, session, refused) = (Arc::clone(&self.inner), session.clone(), refused.cloned());
        // A task of its own: a caller that goes away between the provider's answer and its storing would lose the session.
        let read = tokio::spawn(async move {
            let _one = slot.reading.lock().await;
            match slot.token(refused.as_ref()) {
                Some(token) => Ok(token),
                None => inner.read(&slot, &session, refused.as_ref()).await,
            }
        });
        read.await.unwrap_or_else(|error| {
            tracing::error!(%error, "The renewal of an access token was interrupted: {error}");
            Err(TokenError::Later(RETRY_AFTER))
        })
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
        self.inner.end(session).await
    }

    /// Ends a session that a newer one of the same user replaces, and forgets its tokens. They aren't revoked: at some providers,
    /// the tokens of both sessions belong to one grant.
    ///
    /// # Errors
    /// If the table can't be written.
    pub async fn replace(&self, session: &SessionId) -> Result<(), StateError> {
        self.inner.forget(session);
        // Before the session, which is how a repeat after a crash finds the tokens.
        self.inner.credentials.delete_grant(session).await?;
        self.inner.state.end_session(session).await.map(drop)
    }
}

impl Inner {
    fn slot(&self, session: &SessionId) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= CACHED_MAX {
            slots.retain(|_, slot| Arc::strong_count(slot) > 1 || slot.is_used());
        }
        Arc::clone(slots.entry(session.clone()).or_default())
    }

    fn forget(&self, session: &SessionId) {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).remove(session);
    }

    /// Reads the grant, and renews it if the token expires soon or was refused.
    async fn read(
        &self,
        slot: &Slot,
        session: &SessionId,
        refused: Option<&Secret>,
    ) -> Result<Secret, TokenError> {
        for _ in 0..LOOKS_MAX {
            let now = bench_clock::now();
            let Some(grant) = self.credentials.grant(session, now).await? else {
                return Err(TokenError::Gone);
            };
            let is_refused = refused == Some(&grant.access);
            let is_valid = !is_refused && grant.expires_at.is_none_or(|end| now < end);
            let is_fresh = grant
                .expires_at
                .is_none_or(|end| now.plus(RENEW_BELOW.min(end.since(grant.issued_at) / 2)) < end);
            if is_valid && is_fresh {
                return Ok(slot.cache(&grant, CACHED_FOR));
            }
            let renewable = match (&grant.refresh, &self.provider) {
                (Some(refresh), Some(provider)) => Ok((refresh, provider)),
                (None, _) => Err(TokenError::Gone),
                (_, None) => Err(TokenError::NotConfigured),
            };
            let (refresh, provider) = match renewable {
                Ok(renewable) => renewable,
                Err(_) if is_valid => return Ok(slot.cache(&grant, CACHED_FOR)),
                Err(error) => return Err(error),
            };
            if let Some(left) = slot.failed_for() {
                return match is_valid {
                    true => Ok(slot.cache(&grant, left)),
                    false => Err(TokenError::Later(left)),
                };
            }
            if self.credentials.claim_renewal(session, &grant, now).await? {
                return self.renew(provider, slot, session, &grant, refresh, refused).await;
            }
            if is_valid {
                return Ok(slot.cache(&grant, CACHED_FOR_RENEWAL));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Err(TokenError::Later(RETRY_AFTER))
    }

    async fn renew(
        &self,
        provider: &Provider,
        slot: &Slot,
        session: &SessionId,
        grant: &Grant,
        refresh: &Secret,
        refused: Option<&Secret>,
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
                if self.store(session, &renewed).await? {
                    tracing::info!(session.id = %short(session), "Renewed the access token of a session");
                    return self.unless_refused(slot, &renewed, refused);
                }
                if let Some(current) = self.newer(session, grant).await? {
                    // This process's claim lapsed and another renewed it, or this is the write whose answer was lost.
                    return self.unless_refused(slot, &current, refused);
                }
                // The session was ended meanwhile, so nothing may be left of it.
                revoke(provider, &renewed).await;
                Err(TokenError::Gone)
            }
            Err(RenewalError::Refused) => {
                // Another process may have renewed it while this one's claim lapsed.
                if let Some(current) = self.newer(session, grant).await? {
                    return self.unless_refused(slot, &current, refused);
                }
                tracing::info!(session.id = %short(session), "A session ends: the provider no longer accepts its tokens");
                self.end(session).await?;
                Err(TokenError::Gone)
            }
            Err(RenewalError::Failed(error)) => {
                tracing::warn!(session.id = %short(session), %error, "An access token isn't renewed yet: {error}");
                slot.lock().failed_until = Some(Instant::now() + FAILED_FOR);
                let now = bench_clock::now();
                // The claim is kept for this time, so that other processes don't try either.
                if let Err(error) = self.credentials.defer_renewal(session, grant, now.plus(FAILED_FOR)).await
                {
                    tracing::warn!(%error, "The claim of a renewal isn't shortened: {error}");
                }
                let is_valid = refused != Some(&grant.access) && grant.expires_at.is_none_or(|end| now < end);
                match is_valid {
                    true => Ok(slot.cache(grant, FAILED_FOR)),
                    false => Err(TokenError::Later(RETRY_AFTER)),
                }
            }
        }
    }

    /// Stores renewed tokens, with further attempts: at a provider that replaces refresh tokens, there are no others.
    async fn store(&self, session: &SessionId, renewed: &Grant) -> Result<bool, StateError> {
        for wait in STORE_WAITS {
            match self.credentials.store_renewed(session, renewed).await {
                Ok(is_stored) => return Ok(is_stored),
                Err(error) => {
                    tracing::warn!(session.id = %short(session), %error, "Renewed tokens aren't stored yet: {error}");
                    tokio::time::sleep(wait).await;
                }
            }
        }
        self.credentials.store_renewed(session, renewed).await
    }

    /// Returns the stored grant if it isn't this version of it.
    async fn newer(&self, session: &SessionId, grant: &Grant) -> Result<Option<Grant>, StateError> {
        let current = self.credentials.grant(session, bench_clock::now()).await?;
        Ok(current.filter(|current| current.version != grant.version))
    }

    /// Caches and returns a grant's token. A provider that issues a refused token again has no other.
    fn unless_refused(
        &self,
        slot: &Slot,
        grant: &Grant,
        refused: Option<&Secret>,
    ) -> Result<Secret, TokenError> {
        slot.lock().failed_until = None;
        match refused == Some(&grant.access) {
            true => Err(TokenError::Gone),
            false => Ok(slot.cache(grant, CACHED_FOR)),
        }
    }

    async fn end(&self, session: &SessionId) -> Result<(), StateError> {
        let grant = self.credentials.grant(session, bench_clock::now()).await;
        self.forget(session);
        // Before the session, which is how a repeat after a crash finds the tokens.
        self.credentials.delete_grant(session).await?;
        self.state.end_session(session).await?;
        // Its tokens can't be revoked if they can't be opened, but they are gone.
        if let (Ok(Some(grant)), Some(provider)) = (grant, &self.provider) {
            revoke(provider, &grant).await;
        }
        Ok(())
    }
}

/// Revokes the tokens of a grant, as far as a short time allows. The refresh token first: some providers revoke both with it.
async fn revoke(provider: &Provider, grant: &Grant) {
    let revoked = async {
        if let Some(refresh) = &grant.refresh {
            provider.revoke(refresh).await;
        }
        provider.revoke(&grant.access).await;
    };
    if tokio::time::timeout(REVOCATION_MAX, revoked).await.is_err() {
        tracing::info!("The provider didn't revoke a session's tokens in time");
    }
}

/// Returns the start of a session's id, for the log.
fn short(session: &SessionId) -> &str {
    session.as_str().get(..12).unwrap_or_default()
}
