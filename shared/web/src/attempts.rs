//! Attempts by address within a minute.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::ConnectInfo;
pub use bench_http_server::network_of;
use http::request::Parts;
use http::{Extensions, HeaderMap};

/// Time window for counting attempts.
const WINDOW: Duration = Duration::from_secs(60);
/// Maximum number of addresses to keep.
const ADDRESSES_MAX: usize = 10_000;
const ADDRESS_CHARS_MAX: usize = 64;

/// Counts attempts by the caller's address. Each process counts separately.
#[derive(Debug, Default)]
pub struct Attempts {
    by_address: Mutex<HashMap<String, (Instant, u32)>>,
}

impl Attempts {
    /// Counts an attempt unless this minute already has `max`. Returns the number of attempts, this one included.
    ///
    /// # Errors
    /// The time until this minute's attempts expire, if there were `max`.
    pub fn count(&self, address: &str, max: u32) -> Result<u32, Duration> {
        let now = Instant::now();
        let mut counts = self.lock();
        if counts.len() >= ADDRESSES_MAX {
            counts.retain(|_, (since, _)| now.duration_since(*since) < WINDOW);
            if counts.len() >= ADDRESSES_MAX {
                // All addresses start over: memory stays bounded, however many addresses call.
                counts.clear();
            }
        }
        let (since, count) = counts.entry(address.to_owned()).or_insert((now, 0));
        let elapsed = now.duration_since(*since);
        if elapsed >= WINDOW {
            (*since, *count) = (now, 0);
        } else if *count >= max {
            return Err(WINDOW.saturating_sub(elapsed));
        }
        *count = count.saturating_add(1);
        Ok(*count)
    }

    /// Takes an attempt back. Callers that count failed attempts only do so after a success.
    pub fn uncount(&self, address: &str) {
        if let Some((_, count)) = self.lock().get_mut(address) {
            *count = count.saturating_sub(1);
        }
    }

    /// Returns the time until this minute's attempts expire, if there were `max`.
    pub fn wait(&self, address: &str, max: u32) -> Option<Duration> {
        let found = self.lock().get(address).copied();
        let (since, _) = found.filter(|(_, count)| *count >= max)?;
        Some(WINDOW.saturating_sub(since.elapsed())).filter(|wait| !wait.is_zero())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Instant, u32)>> {
        self.by_address.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the address that a request came from, as far as the server knows it: that of the connection, or
/// the one that API Gateway appended to `X-Forwarded-For`, which is a CloudFront server's for requests through
/// the distribution. An IPv6 address counts as its /64 network. All callers without an address share one.
pub fn caller_address(parts: &Parts) -> String {
    caller_address_in(&parts.extensions, &parts.headers)
}

pub(crate) fn caller_address_in(extensions: &Extensions, headers: &HeaderMap) -> String {
    if let Some(ConnectInfo(address)) = extensions.get::<ConnectInfo<SocketAddr>>() {
        return network_of(address.ip()).to_string();
    }
    let forwarded = headers.get("x-forwarded-for").and_then(|value| value.to_str().ok());
    let last = forwarded.and_then(|list| list.rsplit(',').next()).map(str::trim).unwrap_or_default();
    match last.parse::<IpAddr>() {
        Ok(address) => network_of(address).to_string(),
        Err(_) => last.chars().take(ADDRESS_CHARS_MAX).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_is_counted_for_itself() {
        let attempts = Attempts::default();
        let noted = ["a", "a", "b", "a"].map(|address| attempts.count(address, 2));
        assert!(matches!(noted, [Ok(1), Ok(2), Ok(1), Err(wait)] if wait <= WINDOW), "{noted:?}");
        assert!(attempts.wait("a", 2).is_some() && attempts.wait("b", 2).is_none());
        attempts.uncount("a");
        attempts.uncount("c");
        assert!(attempts.wait("a", 2).is_none());
        assert_eq!(attempts.count("a", 2), Ok(2));
        for n in 0..2 * ADDRESSES_MAX {
            attempts.count(&n.to_string(), 2).unwrap();
        }
        assert!(attempts.by_address.lock().unwrap().len() <= ADDRESSES_MAX);
    }

    #[test]
    fn simultaneous_attempts_stay_within_the_limit() {
        let attempts = Attempts::default();
        let noted = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| (0..50).filter(|_| attempts.count("a", 10).is_ok()).count()))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
        });
        assert_eq!(noted, 10);
    }

    #[test]
    fn callers_cannot_choose_their_address() {
        let of = |connected: bool, forwarded: &str| {
            let (mut parts, ()) = http::Request::new(()).into_parts();
            parts.headers.insert("x-forwarded-for", forwarded.parse().unwrap());
            if connected {
                parts.extensions.insert(ConnectInfo(SocketAddr::from(([10, 0, 0, 7], 4000))));
            }
            caller_address(&parts)
        };
        assert_eq!(of(true, "1.2.3.4"), "10.0.0.7");
        assert_eq!(of(false, "1.2.3.4, 203.0.113.9"), "203.0.113.9");
        // One customer has a whole IPv6 network.
        assert_eq!(of(false, "2001:db8:1:2:3:4:5:6"), of(false, "1.2.3.4, 2001:db8:1:2::9"));
        assert_ne!(of(false, "2001:db8:1:2::9"), of(false, "2001:db8:1:3::9"));
        assert_eq!(of(false, "::ffff:203.0.113.9"), "203.0.113.9");
        assert!(of(false, &"x".repeat(1_000)).len() <= ADDRESS_CHARS_MAX);
    }
}
