//! Failures from statuses and error bodies, and requests in another dialect.

use std::time::Duration;

use bench_domain::{Code, Generation, Image, Prompt};
use bench_inference::{ChatRequest, Dialect, FailureKind, Fatal, GaveUpBy, TooLong};

use crate::server::{KEY, Server, chunk, last_chunk, response, stream_head, streamed};
use crate::{ask, ask_with, client};

#[tokio::test]
async fn statuses_determine_the_failure_kind() {
    let quota = r#"{"error":{"message":"pay","type":"insufficient_quota","code":"insufficient_quota"}}"#;
    let context = r#"{"error":{"message":"x","code":"context_length_exceeded"}}"#;
    let policy = r#"{"error":{"message":"x","code":"content_policy_violation"}}"#;
    for (status, body, kind, code) in [
        (401, r#"{"detail":"bad key"}"#, FailureKind::FatalForRun(Fatal::Key), Code::InvalidKey),
        (403, "", FailureKind::FatalForRun(Fatal::Key), Code::InvalidKey),
        (403, policy, FailureKind::Refused, Code::ContentFiltered),
        (
            404,
            r#"{"detail":"model not found: a/b"}"#,
            FailureKind::FatalForRun(Fatal::Model),
            Code::ModelNotFound,
        ),
        (402, "", FailureKind::FatalForRun(Fatal::Quota), Code::QuotaExhausted),
        (429, quota, FailureKind::FatalForRun(Fatal::Quota), Code::QuotaExhausted),
        (429, "later", FailureKind::RateLimited, Code::RateLimited),
        (503, "", FailureKind::RateLimited, Code::RateLimited),
        (408, "", FailureKind::Transient, Code::ProviderError),
        (500, "boom", FailureKind::Transient, Code::ProviderError),
        (502, "<html>Bad gateway</html>", FailureKind::Transient, Code::ProviderError),
        (400, context, FailureKind::TooLong(TooLong::Context), Code::ContextTooLong),
        (413, "", FailureKind::TooLong(TooLong::Context), Code::ContextTooLong),
        (400, policy, FailureKind::Refused, Code::ContentFiltered),
        (
            422,
            r#"{"detail":[{"loc":["body","messages"],"msg":"bad","type":"value_error"}]}"#,
            FailureKind::Bad,
            Code::RequestRejected,
        ),
    ] {
        let server = Server::always(response(status, "x-requestid: r7\r\n", body)).await;
        let failure = ask(&client(), &server.endpoint()).await.unwrap_err();
        assert_eq!((failure.kind, failure.status), (kind, Some(status)), "{status} {body}");
        assert_eq!(failure.code(), code, "{status} {body}");
        assert_eq!(failure.gave_up_by, GaveUpBy::Provider);
        assert_eq!(failure.request_id.as_deref(), Some("r7"));
        let quoted = if body.is_empty() { "Empty response body" } else { body };
        assert_eq!(failure.cause, format!("HTTP {status} from Chutes: {quoted} (request_id=r7)"));
        assert_eq!(server.count(), 1, "nothing is repeated");
    }
}

#[tokio::test]
async fn the_requested_wait_is_returned() {
    let date = "date: Fri, 02 Jan 2026 03:04:05 GMT\r\nretry-after: Fri, 02 Jan 2026 03:05:05 GMT\r\n";
    for (headers, wait) in [
        ("retry-after: 7\r\n", Some(Duration::from_secs(7))),
        ("retry-after: 7\r\nretry-after-ms: 1500\r\n", Some(Duration::from_millis(1500))),
        (date, Some(Duration::from_secs(60))),
        ("", None),
    ] {
        let server = Server::always(response(429, headers, "")).await;
        let failure = ask(&client(), &server.endpoint()).await.unwrap_err();
        assert_eq!((failure.kind, failure.retry_after), (FailureKind::RateLimited, wait), "{headers}");
    }
}

#[tokio::test]
async fn an_error_after_a_good_status_counts_like_a_status() {
    let start = b"data: {\"choices\":[{\"delta\":{\"content\":\"I\"}}]}\n\n";
    for (error, kind) in [
        (r#"{"error":{"message":"slow down","code":429}}"#, FailureKind::RateLimited),
        (r#"{"error":{"message":"boom","type":"InternalServerError","code":500}}"#, FailureKind::Transient),
        (r#"{"error":{"message":"x","code":"content_filter"}}"#, FailureKind::Refused),
        (r#"{"error":{"message":"x","code":"insufficient_quota"}}"#, FailureKind::FatalForRun(Fatal::Quota)),
        (
            r#"{"object":"error","message":"x","code":"context_length_exceeded"}"#,
            FailureKind::TooLong(TooLong::Context),
        ),
    ] {
        let event = format!("data: {error}\n\ndata: [DONE]\n\n");
        let server =
            Server::always(vec![stream_head(), chunk(start), chunk(event.as_bytes()), last_chunk()]).await;
        let failure = ask(&client(), &server.endpoint()).await.unwrap_err();
        assert_eq!(failure.kind, kind, "{error}");
        assert!(failure.cause.starts_with("Chutes error: "), "{failure}");

        let server = Server::always(response(200, "content-type: application/json\r\n", error)).await;
        assert_eq!(ask(&client(), &server.endpoint()).await.unwrap_err().kind, kind, "{error}");
    }
    let named = "event: error\ndata: {\"message\":\"overloaded\",\"type\":\"overloaded_error\"}\n\n";
    let server = Server::always(response(200, "", named)).await;
    assert_eq!(ask(&client(), &server.endpoint()).await.unwrap_err().kind, FailureKind::RateLimited);
}

#[tokio::test]
async fn text_of_the_model_is_never_classified() {
    for text in ["HTTP 401 Unauthorized: invalid api key", "context length exceeded", "429 timeout error"] {
        let server = Server::always(streamed(text)).await;
        assert_eq!(ask(&client(), &server.endpoint()).await.unwrap().text, text);
    }
    // A body without an error object doesn't count either.
    let page = "<html>401 invalid api key, context length exceeded, content_filter</html>";
    let server = Server::always(response(400, "", page)).await;
    assert_eq!(ask(&client(), &server.endpoint()).await.unwrap_err().kind, FailureKind::Bad);
}

#[tokio::test]
async fn a_key_is_neither_echoed_nor_carried_away() {
    let server = Server::start(|_, request| {
        let echo = format!("{{\"detail\":\"unknown {}\"}}", request.header("authorization").unwrap());
        response(401, "", &echo)
    })
    .await;
    let failure = ask(&client(), &server.endpoint()).await.unwrap_err();
    assert!(failure.cause.contains("unknown Bearer [redacted]"), "{failure}");
    assert!(!format!("{failure:?}").contains(KEY));
    // A quote of a thousand characters ends within the key, in both kinds of errors.
    let filler = "x".repeat(1000 - 10);
    for body in [format!("{filler}{KEY}"), format!(r#"{{"error":{{"message":"{filler}{KEY}"}}}}"#)] {
        for status in [400, 200] {
            let server = Server::always(response(status, "", &body)).await;
            let failure = ask(&client(), &server.endpoint()).await.unwrap_err();
            assert!(!failure.cause.contains(&KEY[..8]), "{failure}");
        }
    }

    let elsewhere = Server::always(streamed("stolen")).await;
    let target = format!("http://{}/v1/chat/completions", elsewhere.address);
    for status in [301, 302, 307, 308] {
        let server = Server::always(response(status, &format!("location: {target}?token=x\r\n"), "")).await;
        let failure = ask(&client(), &server.endpoint()).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::FatalForRun(Fatal::Address));
        assert!(failure.cause.contains(&target) && !failure.cause.contains("token"), "{failure}");
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn a_dialect_is_learned_once() {
    let server = Server::start(|_, request| {
        let body = request.json();
        let refuse = |param: &str, code: &str| {
            let error = serde_json::json!({"error": {"message": "no", "param": param, "code": code}});
            response(400, "", &error.to_string())
        };
        match () {
            () if body.get("stream_options").is_some() => {
                response(400, "", r#"{"error":"unknown field `stream_options`"}"#)
            }
            () if body.get("max_tokens").is_some() => refuse("max_tokens", "unsupported_parameter"),
            () => streamed("understood"),
        }
    })
    .await;
    let (client, endpoint) = (client(), server.endpoint());
    let generation = Generation { temperature: Some(0.5), max_tokens: Some(9), ..Generation::default() };
    for asked in [3, 4, 5] {
        let answer = ask_with(&client, &endpoint, &generation, None).await.unwrap();
        assert_eq!((answer.text.as_str(), server.count()), ("understood", asked));
    }
    let last = server.requests.lock().unwrap()[4].json();
    assert_eq!((&last["max_completion_tokens"], &last["temperature"]), (&9.into(), &0.5.into()));
    let expected =
        Dialect { omits_stream_options: true, has_max_completion_tokens: true, ..Dialect::default() };
    assert_eq!(client.dialect(&endpoint, "a/b"), expected);
    assert_eq!(client.dialect(&endpoint, "a/c"), Dialect::default());
}

/// Without the setting, the answers would be measured at another temperature than the score states.
#[tokio::test]
async fn a_refused_temperature_is_never_left_out_on_its_own() {
    let body = r#"{"error":{"message":"no","param":"temperature","code":"unsupported_value"}}"#;
    let server = Server::always(response(400, "", body)).await;
    let generation = Generation { temperature: Some(0.0), ..Generation::default() };
    let failure = ask_with(&client(), &server.endpoint(), &generation, None).await.unwrap_err();
    assert_eq!((failure.kind, server.count()), (FailureKind::Bad, 1));
}

#[tokio::test]
async fn a_server_that_refuses_the_same_field_forever_is_asked_twice() {
    let body = r#"{"error":{"message":"x","param":"stream_options"}}"#;
    let server = Server::always(response(400, "", body)).await;
    let failure = ask(&client(), &server.endpoint()).await.unwrap_err();
    assert_eq!((failure.kind, server.count()), (FailureKind::Bad, 2));
}

#[tokio::test]
async fn missing_vision_is_detected_only_for_prompts_with_images() {
    let image = Image { data_url: "data:image/png;base64,AA==".to_owned() };
    let mut with_image = Prompt::user("Which colour?");
    with_image.messages[0].images = vec![image];
    let without = Prompt::user("Which colour?");
    let generation = Generation::default();
    for (status, body, otherwise) in [
        (
            404,
            r#"{"error":{"message":"No endpoints found that support image input","code":404}}"#,
            FailureKind::FatalForRun(Fatal::Model),
        ),
        (
            400,
            r#"{"object":"error","message":"x is not a multimodal model","type":"BadRequestError","code":400}"#,
            FailureKind::Bad,
        ),
        (
            400,
            r#"{"error":"Model does not support images. Please use a model that does."}"#,
            FailureKind::Bad,
        ),
        (422, "content: invalid type: sequence, expected a string", FailureKind::Bad),
        (200, r#"{"error":{"message":"image input is not supported","code":500}}"#, FailureKind::Transient),
    ] {
        for (prompt, kind) in [(&with_image, FailureKind::Unsupported), (&without, otherwise)] {
            let server = Server::always(response(status, "", body)).await;
            let request = ChatRequest {
                model: "a/b",
                prompt,
                generation: &generation,
                reply_schema: None,
                tools: None,
                is_continued: false,
            };
            let failure = client().complete(&server.endpoint(), &request, None).await.unwrap_err();
            assert_eq!(failure.kind, kind, "{body}");
            assert_eq!(server.count(), 1);
        }
    }
}
