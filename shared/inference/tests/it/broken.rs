//! Responses that end too early, never arrive or are invalid.

use std::time::Duration;

use bench_inference::{FailureKind, GaveUpBy, TooLong};
use tokio::time::Instant;

use crate::server::{Server, Step, chunk, last_chunk, response, stream_head};
use crate::{ask, ask_with, client};

const DELTA: &[u8] = b"data: {\"choices\":[{\"delta\":{\"content\":\"half an\"}}]}\n\n";

#[tokio::test]
async fn an_incomplete_stream_is_an_error() {
    let bad_length =
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n".to_vec();
    for (name, steps) in [
        ("ordinary end", vec![stream_head(), chunk(DELTA), last_chunk()]),
        ("cut event", vec![stream_head(), chunk(DELTA), chunk(b"data: {\"cho"), last_chunk()]),
        ("closed", vec![stream_head(), chunk(DELTA), Step::Close]),
        ("reset", vec![stream_head(), chunk(DELTA), Step::Reset]),
        ("wrong length", vec![Step::Send(bad_length), Step::Send(DELTA.to_vec()), Step::Close]),
    ] {
        let server = Server::always(steps).await;
        let failure = ask(&client(), &server.endpoint()).await.unwrap_err();
        assert_eq!(
            (failure.kind, failure.gave_up_by),
            (FailureKind::Transient, GaveUpBy::Provider),
            "{name}"
        );
        assert_eq!(failure.status, Some(200), "{name}");
        if name != "reset" {
            // A reset may overtake data sent before it.
            assert!(failure.cause.contains("7 bytes of text"), "{name}: {failure}");
            // The tokens were generated, and will be billed.
            assert_eq!(failure.usage.map(|usage| (usage.input_tokens, usage.output_tokens)), Some((0, 1)));
        }
        assert_eq!(server.count(), 1, "{name}");
    }
}

#[tokio::test]
async fn an_invalid_body_is_an_error() {
    for (name, steps) in [
        ("empty", response(200, "", "")),
        ("empty stream", response(200, "content-type: text/event-stream\r\n", "")),
        ("page", response(200, "content-type: text/html\r\n", "<html>Sign in</html>")),
        ("text", response(200, "", "all good")),
        ("object", response(200, "", r#"{"status":"ok"}"#)),
        ("no choices", response(200, "", r#"{"choices":[]}"#)),
        ("half object", response(200, "", r#"{"choices":[{"message":{"content":"x"#)),
        ("bad event", response(200, "", "data: {nonsense}\n\n")),
        ("only the end", response(200, "", "data: [DONE]\n\n")),
        ("not HTTP", vec![Step::Send(b"SSH-2.0-x\r\n\r\n".to_vec()), Step::Close]),
    ] {
        let server = Server::always(steps).await;
        let failure = ask(&client(), &server.endpoint()).await.unwrap_err();
        assert_eq!(
            (failure.kind, failure.gave_up_by),
            (FailureKind::Transient, GaveUpBy::Provider),
            "{name}"
        );
        assert!(!failure.cause.is_empty());
    }
    let server = Server::always(response(200, "x-request-id: r9\r\n", "<html>Sign in</html>")).await;
    let failure = ask(&client(), &server.endpoint()).await.unwrap_err();
    assert!(failure.cause.starts_with("HTTP 200 from Chutes: Invalid JSON response"), "{failure}");
    assert!(
        failure.cause.contains("<html>Sign in</html>") && failure.cause.ends_with("(request_id=r9)"),
        "{failure}"
    );
}

#[tokio::test]
async fn a_connection_that_fails_says_how() {
    let server = Server::always(vec![Step::Reset]).await;
    let failure = ask(&client(), &server.endpoint()).await.unwrap_err();
    assert_eq!((failure.kind, failure.status), (FailureKind::Transient, None));
    assert_eq!(failure.code(), bench_domain::Code::ProviderUnreachable);
    assert!(failure.cause.starts_with("Network error contacting Chutes ("), "{failure}");

    // A port that was free a moment ago and has no listener.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let endpoint =
        bench_inference::Endpoint::new(&bench_inference::providers::LMSTUDIO, &base, None).unwrap();
    let failure = ask(&client(), &endpoint).await.unwrap_err();
    assert_eq!((failure.kind, failure.gave_up_by), (FailureKind::Transient, GaveUpBy::Provider));
    assert!(failure.cause.contains("LM Studio (ConnectError)"), "{failure}");
    assert!(failure.cause.contains("refused"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn silence_ends_the_attempt() {
    for steps in
        [vec![Step::Stall], vec![stream_head(), Step::Stall], vec![stream_head(), chunk(DELTA), Step::Stall]]
    {
        let server = Server::always(steps).await;
        let failure = ask(&client(), &server.endpoint()).await.unwrap_err();
        assert_eq!((failure.kind, failure.gave_up_by), (FailureKind::Transient, GaveUpBy::Runner));
        assert_eq!(failure.code(), bench_domain::Code::ProviderTimeout);
        assert!(failure.cause.contains("for 300 s"), "{failure}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_ends_the_call() {
    for steps in [vec![Step::Stall], vec![stream_head(), chunk(DELTA), Step::Stall]] {
        let server = Server::always(steps).await;
        let deadline = Instant::now() + Duration::from_secs(20);
        let failure =
            ask_with(&client(), &server.endpoint(), &Default::default(), Some(deadline)).await.unwrap_err();
        assert_eq!(
            (failure.kind, failure.gave_up_by),
            (FailureKind::TooLong(TooLong::Time), GaveUpBy::Runner)
        );
        assert!(failure.cause.contains("20 s"), "{failure}");
    }
}

#[tokio::test]
async fn no_request_is_sent_after_the_deadline() {
    let server = Server::always(vec![Step::Close]).await;
    let over = Some(Instant::now());
    let failure = ask_with(&client(), &server.endpoint(), &Default::default(), over).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::TooLong(TooLong::Time));
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn an_endless_line_is_given_up() {
    let mut steps = vec![stream_head(), chunk(b"data: ")];
    steps.extend(std::iter::repeat_n(chunk(&vec![b'x'; 1024 * 1024]), 9));
    steps.push(Step::Stall);
    let server = Server::always(steps).await;
    let failure = ask(&client(), &server.endpoint()).await.unwrap_err();
    assert_eq!((failure.kind, failure.gave_up_by), (FailureKind::AnswerTooLarge, GaveUpBy::Runner));
    assert!(failure.cause.contains("8 MiB"), "{failure}");
}

#[tokio::test]
async fn an_endless_object_is_given_up() {
    let mut steps = vec![stream_head(), chunk(b"{")];
    steps.extend(std::iter::repeat_n(chunk(&vec![b' '; 1024 * 1024]), 65));
    steps.push(Step::Stall);
    let server = Server::always(steps).await;
    let failure = ask(&client(), &server.endpoint()).await.unwrap_err();
    assert_eq!((failure.kind, failure.gave_up_by), (FailureKind::AnswerTooLarge, GaveUpBy::Runner));
    assert!(failure.cause.contains("64 MiB"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn an_endless_error_delays_nothing() {
    let head = b"HTTP/1.1 500 Error\r\ncontent-length: 99999999\r\n\r\n".to_vec();
    let steps = vec![Step::Send(head), Step::Send(vec![b'x'; 100_000]), Step::Stall];
    let server = Server::always(steps).await;
    let started = Instant::now();
    let failure = ask(&client(), &server.endpoint()).await.unwrap_err();
    assert_eq!((failure.kind, failure.status), (FailureKind::Transient, Some(500)));
    assert!(failure.cause.ends_with("x...(truncated)") && failure.cause.len() < 1100, "{failure}");
    // Simulated time: no timeout elapsed.
    assert!(started.elapsed() < Duration::from_secs(1));
}
