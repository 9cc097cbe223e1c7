//! Failed attempts by address, counted for a minute.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::ConnectInfo;
use http::request::Parts;
use http::{Extensions, HeaderMap};

/// Length of the window in which attempts are counted.
const WINDOW: Duration = Duration::from_secs(60);
/// Maximum number of addresses that are kept.
const ADDRESSES_MAX: usize = 10_000;
const ADDRESS_CHARS_MAX: usize = 64;

/// Counts failed attempts by the caller's address. Each process counts for itself.
#[derive(Debug, Default)]
pub struct Attempts {
    by_address: Mutex<HashMap<String, (Instant, u32)>>,
}

impl Attempts {
    /// Counts an attempt; returns how many there were in this minute, this one included.
    pub fn note(&self, address: &str) -> u32 {
        let now = Instant::now();
        let mut counts = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() >= ADDRESSES_MAX {
            counts.retain(|_, (since, _)| now.duration_since(*since) < WINDOW);
            if counts.len() >= ADDRESSES_MAX {
                // More addresses than are kept share one count.
                counts.clear();
            }
        }
        let (since, count) = counts.entry(address.to_owned()).or_insert((now, 0));
        if now.duration_since(*since) >= WINDOW {
            (*since, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        *count
    }

    /// Attempts of an address in this minute, and the time until they are forgotten.
    pub fn of(&self, address: &str) -> (u32, Duration) {
        let counts = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        let found = counts.get(address).map(|(since, count)| (since.elapsed(), *count));
        match found {
            Some((elapsed, count)) if elapsed < WINDOW => (count, WINDOW.saturating_sub(elapsed)),
            _ => (0, Duration::ZERO),
        }
    }
}

/// The address that a request came from, as far as the server knows it: that of the connection, else the one that
/// API Gateway appended to `X-Forwarded-For`. Callers without an address count as one.
pub fn address_of(parts: &Parts) -> String {
    address_in(&parts.extensions, &parts.headers)
}

pub(crate) fn address_in(extensions: &Extensions, headers: &HeaderMap) -> String {
    if let Some(ConnectInfo(address)) = extensions.get::<ConnectInfo<SocketAddr>>() {
        return address.ip().to_string();
    }
    let forwarded = headers.get("x-forwarded-for").and_then(|value| value.to_str().ok());
    let last = forwarded.and_then(|list| list.rsplit(',').next()).map(str::trim).unwrap_or_default();
    last.chars().take(ADDRESS_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_is_counted_for_itself() {
        let attempts = Attempts::default();
        assert_eq!((attempts.note("a"), attempts.note("a"), attempts.note("b")), (1, 2, 1));
        assert_eq!((attempts.of("a").0, attempts.of("c").0), (2, 0));
        assert!(attempts.of("a").1 <= WINDOW);
        for n in 0..2 * ADDRESSES_MAX {
            attempts.note(&n.to_string());
        }
        assert!(attempts.by_address.lock().unwrap().len() <= ADDRESSES_MAX);
    }

    #[test]
    fn callers_cannot_choose_their_address() {
        let of = |connected: bool, forwarded: &str| {
            let (mut parts, ()) = http::Request::new(()).into_parts();
            parts.headers.insert("x-forwarded-for", forwarded.parse().unwrap());
            if connected {
                parts.extensions.insert(ConnectInfo(SocketAddr::from(([10, 0, 0, 7], 4000))));
            }
            address_of(&parts)
        };
        assert_eq!(of(true, "1.2.3.4"), "10.0.0.7");
        assert_eq!(of(false, "1.2.3.4, 203.0.113.9"), "203.0.113.9");
    }
}
