//! The provider's endpoints and keys, each read again after a time.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use reqwest::Url;

use super::Provider;
use super::calls::CALL_MAX;
use crate::SignInError;
use crate::discovery::Endpoints;
use crate::id_token::PublicKeys;

/// Time for which the provider's description is valid.
const DESCRIPTION_VALID: Duration = Duration::from_secs(3_600);
/// Time for which a provider counts as one without a description.
pub(super) const NO_DESCRIPTION_VALID: Duration = Duration::from_secs(300);
/// Time for which an old description is used after a failed attempt to read it anew.
const DESCRIPTION_RETRY: Duration = Duration::from_secs(30);
/// Time for which the provider's keys are valid.
pub(super) const KEYS_VALID: Duration = Duration::from_secs(3_600);
/// Minimum time between two readings of the provider's keys.
pub(super) const KEYS_VALID_MIN: Duration = Duration::from_secs(10);

/// Endpoints, and the time until which they are used without another look at the description.
#[derive(Debug, Clone)]
pub(super) struct KnownEndpoints {
    pub(super) endpoints: Endpoints,
    pub(super) until: Instant,
}

impl Provider {
    /// Returns the provider's keys, read at most this long ago.
    pub(super) async fn public_keys(&self, url: &Url, age_max: Duration) -> Result<PublicKeys, SignInError> {
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

    /// Returns the provider's addresses, from its description if it has one.
    pub(super) async fn endpoints(&self) -> Result<Endpoints, SignInError> {
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
}
