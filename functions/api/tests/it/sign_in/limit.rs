//! Limit on sign-ins that are begun.

use axum::body::Body;
use bench_domain::Code;

use super::provider::{Provider, Script};
use super::{Browser, location, world};
use crate::server::Server;

/// Maximum number of sign-ins that an address begins per minute.
const MAX: usize = 30;
const LOGIN: &str = "/api/auth/login?return_to=/runs";

#[tokio::test]
async fn an_address_begins_a_bounded_number_of_sign_ins() {
    let (provider, server) = world(Script::default()).await;
    let from = |address: &'static str| [("x-forwarded-for", address)];
    let mut callback = String::new();
    let mut browser = Browser::default();
    for _ in 0..MAX {
        let reply = server.ask("GET", LOGIN, &from("192.0.2.1"), Body::empty()).await;
        assert_eq!(reply.status, 307, "{}", reply.text);
        browser.keep(&reply);
        callback = provider.authorize(location(&reply));
    }
    // Callers can't choose the address that the gateway appends.
    for address in ["192.0.2.1", "198.51.100.7, 192.0.2.1"] {
        let refused = server.ask("GET", LOGIN, &from(address), Body::empty()).await;
        assert_eq!((refused.status.as_u16(), refused.code()), (429, Some(Code::TooManyAttempts)));
        assert_eq!(refused.detail(), "too many sign-ins from this address; try again later");
        let wait: u64 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
        assert!((1..=60).contains(&wait), "{wait}");
        assert!(!refused.headers.contains_key("set-cookie"));
    }
    // Readers get the page that explains it.
    let browser_headers =
        [("x-forwarded-for", "192.0.2.1"), ("accept", "text/html,application/xhtml+xml,*/*;q=0.8")];
    let shown = server.ask("GET", LOGIN, &browser_headers, Body::empty()).await;
    assert_eq!(shown.status, 307, "{}", shown.text);
    assert_eq!(
        location(&shown),
        "/auth/error?error=too_many_attempts&description=too+many+sign-ins+from+this+address%3B+try+again+later"
    );
    assert!(!shown.headers.contains_key("set-cookie"));
    let other = server.ask("GET", LOGIN, &from("192.0.2.2"), Body::empty()).await;
    assert_eq!(other.status, 307, "another address isn't limited");

    // A sign-in that was begun can be finished.
    let headers = [("cookie", browser.header()), ("x-forwarded-for", "192.0.2.1".to_owned())];
    let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
    let reply = server.ask("GET", &callback, &headers, Body::empty()).await;
    assert_eq!(location(&reply), "/runs");
}

#[tokio::test]
async fn a_server_on_this_machine_has_no_limit() {
    let provider = Provider::start(Script::default()).await;
    let vars = [("CHUTES_CLIENT_ID", "bench"), ("CHUTES_IDP_URL", provider.url())];
    let server = Server::new(true, &vars).await;
    server.api.set_own_address("http://127.0.0.1:8000");
    for _ in 0..=MAX {
        let reply = server.ask("GET", LOGIN, &[("host", "127.0.0.1:8000")], Body::empty()).await;
        assert_eq!(reply.status, 307, "{}", reply.text);
        assert!(location(&reply).starts_with(provider.url()));
    }
}
