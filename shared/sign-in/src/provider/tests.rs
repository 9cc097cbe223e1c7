use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use bench_domain::Timestamp;

use super::answers::{NAME_CHARS_MAX, printable};
use super::description::NO_DESCRIPTION_VALID;
use super::*;

#[test]
fn names_keep_their_letters_and_lose_what_is_hidden() {
    for (name, shown) in
        [("نورة", "نورة"), ("สมชาย 🧪", "สมชาย 🧪"), (" a\u{202e}b\n\0", "ab"), ("\u{2066}", "")]
    {
        assert_eq!(printable(name), shown);
    }
    assert_eq!(printable(&"x".repeat(10_000)).len(), NAME_CHARS_MAX);
}

#[test]
fn lifetimes_are_bounded() {
    let now = Timestamp::from_micros(0);
    let read = |json: &str| token_set(&read_tokens(json.as_bytes()).unwrap(), now);
    let tokens = read(r#"{"access_token":"a","expires_in":60}"#).unwrap();
    assert_eq!((tokens.expires_at, tokens.refresh), (Some(Timestamp::from_micros(60_000_000)), None));
    assert_eq!(read(r#"{"access_token":"a"}"#).unwrap().expires_at, None);
    assert!(read(r#"{"access_token":"a","expires_in":1e300}"#).unwrap().expires_at.is_some());
    assert_eq!(read(r#"{"access_token":"a","expires_in":-5}"#).unwrap().expires_at, Some(now));
    for bad in [r#"{"access_token":""}"#, r#"{"access_token":"a b"}"#] {
        assert_eq!(read(bad).unwrap_err(), SignInError::BadProvider);
    }
}

/// A provider whose description has this status, if it answers at all.
async fn provider(status: Arc<AtomicU16>, reads: Arc<AtomicU16>) -> Provider {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let description = format!(
        r#"{{"issuer":"{url}","authorization_endpoint":"{url}/a","token_endpoint":"{url}/t",
            "userinfo_endpoint":"{url}/u","jwks_uri":"{url}/k"}}"#
    );
    let answer = async move || {
        reads.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(200)).await;
        (http::StatusCode::from_u16(status.load(Ordering::SeqCst)).unwrap(), description)
    };
    let router = axum::Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, router).await });
    Provider::new(SignInConfig { base_url: url, client_id: "bench".to_owned(), client_secret: None })
}

fn let_expire(provider: &Provider) {
    provider.endpoints.lock().unwrap().as_mut().unwrap().until = Instant::now();
}

#[tokio::test]
async fn a_provider_that_described_itself_keeps_its_id_tokens() {
    let (status, reads) = (Arc::new(AtomicU16::new(404)), Arc::new(AtomicU16::new(0)));
    let provider = provider(Arc::clone(&status), Arc::clone(&reads)).await;
    assert!(provider.endpoints().await.unwrap().keys.is_none());
    let until = provider.endpoints.lock().unwrap().as_ref().unwrap().until;
    assert!(until <= Instant::now() + NO_DESCRIPTION_VALID, "looked for again after minutes");
    let_expire(&provider);
    status.store(200, Ordering::SeqCst);
    let described = provider.endpoints().await.unwrap();
    assert!(described.keys.is_some());
    for later in [404, 500] {
        status.store(later, Ordering::SeqCst);
        let_expire(&provider);
        let before = reads.load(Ordering::SeqCst);
        assert_eq!(provider.endpoints().await.unwrap(), described);
        assert_eq!(provider.endpoints().await.unwrap(), described);
        assert_eq!(reads.load(Ordering::SeqCst), before + 1, "not read anew at once");
    }
}

#[tokio::test]
async fn callers_share_a_failed_attempt_to_read_the_description() {
    let (status, reads) = (Arc::new(AtomicU16::new(503)), Arc::new(AtomicU16::new(0)));
    let provider = provider(Arc::clone(&status), Arc::clone(&reads)).await;
    let (one, two, three) = tokio::join!(provider.endpoints(), provider.endpoints(), provider.endpoints());
    assert!([one, two, three].iter().all(|read| *read == Err(SignInError::Unreachable)));
    assert_eq!(reads.load(Ordering::SeqCst), 1);
    status.store(200, Ordering::SeqCst);
    assert!(provider.endpoints().await.is_ok(), "the next caller reads it");
}
