//! Renewal of access tokens by many processes at once.

use std::sync::Arc;
use std::time::Duration;

use bench_domain::SessionId;
use bench_sign_in::{Provider as Client, SessionTokens, SignInConfig, TokenError};
use bench_state::credentials::Grant;
use futures_util::future::join_all;

use super::provider::{Provider, Script};
use super::{Browser, world};
use crate::server::Server;

/// Creates the tokens of another process with the same table.
fn process(server: &Server, provider: &Provider) -> SessionTokens {
    let config = SignInConfig {
        base_url: provider.url().to_owned(),
        client_id: "bench".to_owned(),
        client_secret: bench_domain::Secret::new("client-secret"),
    };
    let client = Arc::new(Client::new(config));
    SessionTokens::new(server.api.state.clone(), server.api.credentials.clone(), Some(client))
}

/// Signs in with an access token that has this many seconds left.
async fn session(server: &Server, provider: &Provider, seconds: i64) -> SessionId {
    provider.change(|script| script.expires_in = seconds);
    let mut browser = Browser::default();
    browser.sign_in(server, provider).await;
    provider.change(|script| script.expires_in = 3_600);
    let session = SessionId::from_cookie(browser.session().unwrap()).unwrap();
    // As if the token had been issued an hour ago.
    let (now, credentials) = (bench_clock::now(), &server.api.credentials);
    let grant = credentials.grant(&session, now).await.unwrap().unwrap();
    let issued_at = bench_domain::Timestamp::from_micros(now.as_micros() - 3_600_000_000);
    let version = grant.version + 1;
    assert!(credentials.store_renewed(&session, &Grant { issued_at, version, ..grant }).await.unwrap());
    session
}

#[tokio::test]
async fn one_of_many_processes_renews_a_token() {
    let (provider, server) = world(Script::default()).await;
    for seconds in [200, 0] {
        let before = provider.renewals();
        let session = session(&server, &provider, seconds).await;
        let processes: Vec<SessionTokens> = (0..8).map(|_| process(&server, &provider)).collect();
        let asked = processes.iter().flat_map(|process| (0..16).map(|_| process.access_token(&session)));
        for token in join_all(asked).await {
            // While one process renews it, the others use the old token if it's valid.
            assert!(token.unwrap().expose().starts_with("access-"));
        }
        assert_eq!(provider.renewals(), before + 1, "{seconds}");
        let later = process(&server, &provider).access_token(&session).await.unwrap();
        assert!(later.expose().starts_with(&format!("access-{}", before + 1)), "the renewed token is stored");
        assert_eq!(provider.renewals(), before + 1);
    }
}

#[tokio::test]
async fn a_session_ends_when_the_provider_refuses_its_refresh_token() {
    let (provider, server) = world(Script::default()).await;
    let session = session(&server, &provider, 0).await;
    provider.change(|script| script.renewal_error = Some((400, "invalid_grant")));
    let refused = process(&server, &provider).access_token(&session).await.unwrap_err();
    assert!(matches!(refused, TokenError::Gone), "{refused}");
    assert_eq!(refused.to_string(), "Chutes session expired or invalid");
    let now = bench_clock::now();
    assert_eq!(server.api.state.session(&session, now).await.unwrap(), None);
    assert_eq!(server.api.credentials.grant(&session, now).await.unwrap(), None);
}

#[tokio::test]
async fn trouble_at_the_provider_ends_no_session() {
    let (provider, server) = world(Script::default()).await;
    let (expired, valid) = (session(&server, &provider, 0).await, session(&server, &provider, 200).await);
    for error in [(503, "temporarily_unavailable"), (400, "invalid_client"), (429, "slow_down")] {
        provider.change(|script| script.renewal_error = Some(error));
        let refused = process(&server, &provider).access_token(&expired).await.unwrap_err();
        assert!(matches!(refused, TokenError::Later(_)), "{refused}");
        assert!(process(&server, &provider).access_token(&valid).await.is_ok());
    }
    provider.change(|script| script.renewal_error = None);
    assert!(process(&server, &provider).access_token(&valid).await.is_ok());
}

#[tokio::test]
async fn a_claim_of_a_process_that_ended_lapses() {
    let (provider, server) = world(Script::default()).await;
    let session = session(&server, &provider, 200).await;
    let (now, credentials) = (bench_clock::now(), &server.api.credentials);
    let grant = credentials.grant(&session, now).await.unwrap().unwrap();
    let claim = async |seconds: u64| {
        let at = now.plus(std::time::Duration::from_secs(seconds));
        credentials.claim_renewal(&session, &grant, at).await.unwrap()
    };
    assert!(claim(0).await);
    // The process ends here. The others use the old token, and one of them renews it a minute later.
    assert!(!claim(59).await && process(&server, &provider).access_token(&session).await.is_ok());
    assert_eq!(provider.renewals(), 0);
    assert!(claim(60).await);
    let renewed = Grant { version: grant.version + 1, ..grant.clone() };
    assert!(credentials.store_renewed(&session, &renewed).await.unwrap());
    // A process that comes late with a claim that lapsed changes nothing.
    assert!(!claim(200).await && !credentials.store_renewed(&session, &renewed).await.unwrap());
}

/// Waits until the provider has received a renewal.
async fn renewed_once(provider: &Provider) {
    let renewed = async {
        while provider.renewals() == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), renewed).await.unwrap();
}

#[tokio::test]
async fn a_caller_that_goes_away_interrupts_no_renewal() {
    let (provider, server) = world(Script::default()).await;
    let session = session(&server, &provider, 0).await;
    provider.change(|script| script.holds_renewals = true);
    let tokens = process(&server, &provider);
    tokio::select! {
        token = tokens.access_token(&session) => panic!("{token:?} before the provider's answer"),
        () = renewed_once(&provider) => {}
    }
    provider.change(|script| script.holds_renewals = false);
    // The provider no longer accepts the old refresh token, so another renewal would end the session.
    for tokens in [tokens, process(&server, &provider)] {
        assert!(tokens.access_token(&session).await.unwrap().expose().starts_with("access-1"));
    }
    assert_eq!(provider.renewals(), 1);
}

#[tokio::test]
async fn a_slow_provider_delays_no_other_session() {
    let (provider, server) = world(Script::default()).await;
    let (expired, valid) = (session(&server, &provider, 0).await, session(&server, &provider, 3_600).await);
    provider.change(|script| script.holds_renewals = true);
    let tokens = process(&server, &provider);
    let slow = tokio::spawn({
        let tokens = tokens.clone();
        async move { tokens.access_token(&expired).await }
    });
    renewed_once(&provider).await;
    assert!(tokens.access_token(&valid).await.is_ok() && !slow.is_finished());
    provider.change(|script| script.holds_renewals = false);
    assert!(slow.await.unwrap().is_ok());
}

#[tokio::test]
async fn a_failed_renewal_is_not_repeated_at_once() {
    let (provider, server) = world(Script::default()).await;
    let session = session(&server, &provider, 200).await;
    provider.change(|script| script.renewal_error = Some((503, "temporarily_unavailable")));
    let processes = [process(&server, &provider), process(&server, &provider)];
    for tokens in processes.iter().chain(&processes) {
        assert!(tokens.access_token(&session).await.unwrap().expose().starts_with("access-0"));
    }
    assert_eq!(provider.renewals(), 1);
}

#[tokio::test]
async fn a_refused_token_is_replaced_once() {
    let (provider, server) = world(Script::default()).await;
    let session = session(&server, &provider, 3_600).await;
    let processes: Vec<SessionTokens> = (0..4).map(|_| process(&server, &provider)).collect();
    let old = processes[0].access_token(&session).await.unwrap();
    for tokens in &processes {
        assert_eq!(tokens.access_token(&session).await.unwrap(), old);
    }
    // All of them have the old token cached.
    let replaced = join_all(processes.iter().map(|tokens| tokens.replace_refused(&session, &old))).await;
    for (token, tokens) in replaced.into_iter().zip(&processes) {
        let token = token.unwrap();
        assert!(token.expose().starts_with("access-1"));
        assert_eq!(tokens.access_token(&session).await.unwrap(), token);
    }
    assert_eq!(provider.renewals(), 1);
}

#[tokio::test]
async fn a_late_renewal_uses_the_tokens_of_another_process() {
    let (provider, server) = world(Script::default()).await;
    let session = session(&server, &provider, 0).await;
    provider.change(|script| script.holds_renewals = true);
    let tokens = process(&server, &provider);
    let late = tokio::spawn({
        let (tokens, session) = (tokens.clone(), session.clone());
        async move { tokens.access_token(&session).await }
    });
    renewed_once(&provider).await;
    let (now, credentials) = (bench_clock::now(), &server.api.credentials);
    let grant = credentials.grant(&session, now).await.unwrap().unwrap();
    let expires_at = Some(now.plus(Duration::from_secs(3_600)));
    let access = bench_domain::Secret::new("access-of-another").unwrap();
    let renewed = Grant { access, expires_at, issued_at: now, version: grant.version + 1, ..grant };
    assert!(credentials.store_renewed(&session, &renewed).await.unwrap());
    provider.change(|script| script.holds_renewals = false);
    assert_eq!(late.await.unwrap().unwrap(), renewed.access);
    assert_eq!(provider.revoked(), 0);
}
