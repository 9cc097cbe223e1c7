//! Checks secrets of requests before their handlers run: counts and delays wrong admin secrets, looks up access tokens and
//! sessions, and tells handlers who sent the request ([`Identity`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State as Shared};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use bench_domain::{Code, Secret};
use bench_state::State;
use bench_state::access::{AccessEntry, AccessKind, is_access_token};
use http::{HeaderMap, Method, header};
use tokio::sync::Semaphore;

use crate::attempts::{Attempts, caller_address_in};
use crate::auth::{ADMIN_HEADER, bearer_key};
use crate::identity::{self, Identity};
use crate::{Access, ApiError, Caller};

/// Maximum number of requests that are delayed at the same time; further ones are refused at once.
const DELAYED_MAX: usize = 16;
/// Maximum number of times that the delay is doubled.
const DOUBLINGS_MAX: u32 = 3;

/// Delays and limits for wrong admin secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecretLimits {
    /// Delay of an address's first wrong secret in a minute. Doubles with each of the next three.
    pub delay: Duration,
    /// Maximum number of wrong secrets of an address per minute. Further wrong ones get 429, and every secret is delayed.
    pub per_minute: u32,
}

impl Default for SecretLimits {
    fn default() -> Self {
        Self { delay: Duration::from_millis(250), per_minute: 10 }
    }
}

/// Checks the secrets of requests.
pub struct Guard {
    access: Access,
    state: State,
    limits: SecretLimits,
    /// Counts a wrong secret as a metric.
    count: fn(),
    /// True if this function may write the count that operators see.
    writes: bool,
    attempts: Attempts,
    delayed: Semaphore,
    /// Number of wrong secrets that aren't in that count yet.
    uncounted: AtomicU64,
}

impl Guard {
    /// Creates a guard for a server's routes. `count` counts a wrong secret as a metric.
    pub fn new(access: Access, state: State, limits: SecretLimits, count: fn()) -> Self {
        Self {
            access,
            state,
            limits,
            count,
            writes: false,
            attempts: Attempts::default(),
            delayed: Semaphore::new(DELAYED_MAX),
            uncounted: AtomicU64::new(0),
        }
    }

    /// Makes the guard also write the count that operators see.
    #[must_use]
    pub fn writing(mut self) -> Self {
        self.writes = true;
        self
    }

    /// Guards the routes of this router.
    pub fn around<S: Clone + Send + Sync + 'static>(self, routes: Router<S>) -> Router<S> {
        routes.route_layer(from_fn_with_state(Arc::new(self), check))
    }

    /// Lets the right admin secret pass. Counts and delays a wrong one, which the handler refuses.
    ///
    /// After too many wrong ones, every secret from that address is delayed before it passes or is refused, even
    /// the right one. So guessing can't be faster than the delay and the maximum number of delayed requests allow.
    async fn check_secret(&self, address: &str, is_right: bool) -> Result<(), ApiError> {
        let max = self.limits.per_minute;
        let attempt = match (self.attempts.wait(address, max), is_right) {
            (None, true) => return Ok(()),
            (None, false) => self.attempts.count(address, max),
            (Some(wait), _) => Err(wait),
        };
        if !is_right {
            (self.count)();
            self.uncounted.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(
                client.address = address,
                is_over_limit = attempt.is_err(),
                "A request came with a wrong admin secret"
            );
        }
        let too_many = |wait| {
            ApiError::new(Code::TooManyAttempts, "too many wrong admin secrets; try again later").after(wait)
        };
        // Limits the number of delayed connections, from however many addresses.
        let Ok(_permit) = self.delayed.try_acquire() else { return Err(too_many(self.longest_delay())) };
        if self.writes {
            // The request that takes the count writes it, so no two requests write the same.
            let uncounted = self.uncounted.swap(0, Ordering::Relaxed);
            if uncounted > 0
                && let Err(error) = self.state.note_wrong_secret(bench_clock::now(), uncounted).await
            {
                self.uncounted.fetch_add(uncounted, Ordering::Relaxed);
                tracing::debug!(%error, "A wrong admin secret is counted later: {error}");
            }
        }
        match attempt {
            Ok(count) => {
                let doublings = count.saturating_sub(1).min(DOUBLINGS_MAX);
                tokio::time::sleep(self.limits.delay * 2_u32.pow(doublings)).await;
                Ok(())
            }
            Err(wait) => {
                tokio::time::sleep(self.longest_delay()).await;
                if is_right { Ok(()) } else { Err(too_many(wait)) }
            }
        }
    }

    fn longest_delay(&self) -> Duration {
        self.limits.delay * 2_u32.pow(DOUBLINGS_MAX)
    }

    /// Returns the entry of an access token; `None` if the token isn't valid.
    async fn entry(&self, token: &Secret) -> Result<Option<AccessEntry>, ApiError> {
        let entry = self.state.access(&self.access.owner_key.owner_of(token)).await?;
        Ok(entry.filter(|entry| entry.kind == AccessKind::Token && entry.is_valid(bench_clock::now())))
    }

    /// Returns the user whose session the request's cookie names; `None` without a valid session.
    async fn user(&self, method: &Method, headers: &HeaderMap) -> Result<Option<Caller>, ApiError> {
        let Some(id) = identity::session_in(headers) else { return Ok(None) };
        let Some(session) = self.state.session(&id, bench_clock::now()).await? else { return Ok(None) };
        identity::refuse_cross_site(&self.access, method, headers)?;
        Ok(Some(identity::user(&self.access, session)))
    }
}

async fn check(Shared(guard): Shared<Arc<Guard>>, mut request: Request, next: Next) -> Response {
    if request.headers().contains_key(ADMIN_HEADER) {
        let is_right = guard.access.is_admin(request.headers());
        let address = caller_address_in(request.extensions(), request.headers());
        if let Err(refusal) = guard.check_secret(&address, is_right).await {
            return refusal.into_response();
        }
    }
    let has_credentials = [ADMIN_HEADER, header::AUTHORIZATION.as_str()]
        .into_iter()
        .any(|name| request.headers().contains_key(name));
    let mut token_entry = None;
    let token = bearer_key(request.headers()).ok().filter(is_access_token);
    if let Some(token) = token {
        match guard.entry(&token).await {
            Ok(Some(entry)) => token_entry = Some(entry),
            // Anyone may read, so an invalid token doesn't prevent it.
            Ok(None) if matches!(*request.method(), Method::GET | Method::HEAD) => {
                request.headers_mut().remove(header::AUTHORIZATION);
            }
            Ok(None) => {
                return ApiError::new(
                    Code::InvalidAccessToken,
                    "the access token is unknown, was revoked or has expired; ask the operator for a new one",
                )
                .into_response();
            }
            Err(error) => return error.into_response(),
        }
    }
    let caller = match has_credentials {
        true => guard.access.caller(request.headers()),
        false => match guard.user(&request.method().clone(), request.headers()).await {
            Ok(Some(user)) => Ok(user),
            Ok(None) => guard.access.caller(request.headers()),
            Err(error) => return error.into_response(),
        },
    };
    request.extensions_mut().insert(Identity::new(caller, token_entry));
    next.run(request).await
}
