//! Tests the protocol interface with a protocol that shares nothing with chat completions, through the public client.

mod relay;
mod server;

use bench_domain::{Finish, Generation, Prompt, Secret, TextRepairs, Usage};

use crate::catalog::CatalogError;
use crate::{
    ChatClient, ChatRequest, Dialect, Endpoint, Failure, FailureKind, Fatal, GaveUpBy, HttpOptions, KeyCheck,
    TooLong,
};
use relay::{KEY, RELAY, signature};
use server::{Request, Server, response, stream};

fn client() -> ChatClient {
    ChatClient::new(HttpOptions::default())
}

fn endpoint(server: &Server, key: &str) -> Endpoint {
    Endpoint::new(&RELAY, &format!("http://{}/v9", server.address), Secret::new(key)).unwrap()
}

async fn ask(client: &ChatClient, endpoint: &Endpoint) -> Result<bench_domain::Answer, Failure> {
    let prompt = Prompt::user("Hi");
    let generation = Generation { max_tokens: Some(9), ..Generation::default() };
    let request = ChatRequest {
        model: "a/b",
        prompt: &prompt,
        generation: &generation,
        reply_schema: None,
        tools: None,
        is_continued: false,
    };
    client.complete(endpoint, &request, None).await
}

/// Asks a server that gives this response to every request.
async fn ask_for(response: Vec<u8>) -> Result<bench_domain::Answer, Failure> {
    let server = Server::start(move |_, _| response.clone());
    ask(&client(), &endpoint(&server, KEY)).await
}

#[tokio::test]
async fn the_model_is_in_the_address_and_the_request_is_signed() {
    let server = Server::start(|_, _| stream("{\"say\":\"ok\"}\n{\"end\":\"done\"}\n"));
    ask(&client(), &endpoint(&server, KEY)).await.unwrap();
    let requests = server.requests();
    let Request { line, headers, body } = &requests[0];
    assert_eq!(line, "POST /v9/models/a%2Fb/answer HTTP/1.1");
    assert_eq!(body, r#"{"turns":["Hi"],"limit":9}"#);
    let expected = signature("POST", "/v9/models/a%2Fb/answer", body);
    assert_eq!(headers["x-relay-signature"], expected);
    assert!(!headers.contains_key("authorization") && !format!("{headers:?}").contains(KEY), "{headers:?}");
}

#[tokio::test]
async fn lines_become_an_answer_with_its_characters_joined() {
    let lines = r#"{"think":"hm"}
{"say":"a\ud83d"}
{"say":"\ude00 \udfff"}
{"end":"done","model":"m-1","tokens":{"in":3,"out":5.0}}"#;
    let answer = ask_for(stream(lines)).await.unwrap();
    assert_eq!((answer.text.as_str(), answer.reasoning.as_deref()), ("a😀 \u{fffd}", Some("hm")));
    assert_eq!(answer.repairs, TextRepairs { joined: 1, replaced: 1 });
    assert_eq!((answer.finish, answer.model.as_deref()), (Finish::Stop, Some("m-1")));
    assert_eq!(answer.usage, Some(Usage::counted(3, 5, 0)));
    assert_eq!(answer.usage_raw.as_deref(), Some(r#"{"in":3,"out":5.0}"#));
    assert_eq!(answer.request_id.as_deref(), Some("trace-1"));
    let whole = ask_for(response(200, r#"{"say":"b","end":"room"}"#)).await.unwrap();
    assert_eq!((whole.text.as_str(), whole.finish), ("b", Finish::Length));
}

#[tokio::test]
async fn limits_counts_and_keys_are_checked_for_every_protocol() {
    let mebibyte = format!("{{\"say\":\"{}\"}}\n", "x".repeat(1024 * 1024));
    let failure = ask_for(stream(&mebibyte.repeat(17))).await.unwrap_err();
    assert_eq!((failure.kind, failure.gave_up_by), (FailureKind::AnswerTooLarge, GaveUpBy::Runner));
    assert!(failure.cause.contains("16 MiB"), "{failure}");
    let failure = ask_for(stream(&format!("\"{}", "x".repeat(9 * 1024 * 1024)))).await.unwrap_err();
    assert!(failure.cause.contains("8 MiB"), "{failure}");

    let answer =
        ask_for(stream("{\"say\":\"x\"}\n{\"end\":\"done\",\"tokens\":{\"in\":-1}}\n")).await.unwrap();
    assert_eq!((answer.usage, answer.usage_rejected), (None, true));

    let (one, two) = KEY.split_at(9);
    let lines =
        format!("{{\"say\":\"{one}\"}}\n{{\"say\":\"{two}!\"}}\n{{\"end\":\"done\",\"model\":\"{KEY}\"}}\n");
    let answer = ask_for(stream(&lines)).await.unwrap();
    assert_eq!((answer.text.as_str(), answer.keys_redacted), ("[redacted]!", 2));
    // A quote of a thousand characters ends within the key.
    let garbage = format!("{}{KEY}", "x".repeat(1000 - 10));
    let failure = ask_for(stream(&format!("{garbage}\n"))).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Transient);
    assert!(failure.cause.contains("no line of this protocol: xxx"), "{failure}");
    assert!(!failure.cause.contains(&KEY[..8]), "{failure}");
}

#[tokio::test]
async fn a_truncated_stream_is_an_error() {
    let failure = ask_for(stream("{\"say\":\"Hello\"}\n")).await.unwrap_err();
    assert_eq!((failure.kind, failure.request_id.as_deref()), (FailureKind::Transient, Some("trace-1")));
    assert!(failure.cause.contains("5 bytes of text"), "{failure}");
    assert_eq!(failure.usage.map(|usage| usage.output_tokens), Some(1));
}

#[tokio::test]
async fn errors_are_read_in_the_protocols_own_form() {
    for (status, name, kind) in [
        (429, "Throttled", FailureKind::RateLimited),
        (400, "Throttled", FailureKind::RateLimited),
        (400, "OutOfRoom", FailureKind::TooLong(TooLong::Context)),
        (400, "WrongKey", FailureKind::FatalForRun(Fatal::Key)),
        (418, "Odd", FailureKind::Bad),
        (500, "Odd", FailureKind::Transient),
    ] {
        let body = format!(r#"{{"fault":{{"name":"{name}","text":"no"}}}}"#);
        let failure = ask_for(response(status, &body)).await.unwrap_err();
        assert_eq!((failure.kind, failure.status), (kind, Some(status)), "{name}");
        assert_eq!(failure.cause, format!("HTTP {status} from Relay: {body} (request_id=trace-1)"));
    }
    let failure = ask_for(stream(
        "{\"say\":\"Hel\"}\n{\"fault\":{\"name\":\"Throttled\",\"text\":\"out of words\"}}\n",
    ));
    let failure = failure.await.unwrap_err();
    assert_eq!((failure.kind, failure.gave_up_by), (FailureKind::RateLimited, GaveUpBy::Provider));
    assert_eq!(failure.cause, "Relay error: out of words (request_id=trace-1)");
}

#[tokio::test]
async fn a_part_of_the_request_that_is_unknown_stays_out() {
    let server = Server::start(|_, request| match request.body.contains("limit") {
        true => response(400, r#"{"fault":{"name":"UnknownField","text":"limit"}}"#),
        false => stream("{\"say\":\"understood\"}\n{\"end\":\"done\"}\n"),
    });
    let (client, endpoint) = (client(), endpoint(&server, KEY));
    for prepared in [2, 3] {
        assert_eq!(ask(&client, &endpoint).await.unwrap().text, "understood");
        assert_eq!(server.requests().len(), prepared);
    }
    assert_eq!(server.requests()[2].body, r#"{"turns":["Hi"],"cap":9}"#);
    let expected = Dialect { has_max_completion_tokens: true, ..Dialect::default() };
    assert_eq!(client.dialect(&endpoint, "a/b"), expected);
}

#[tokio::test]
async fn models_are_listed_page_by_page() {
    let server = Server::start(|number, _| match number {
        0 => response(200, r#"{"known":[["a/b",4096],["c",null]],"after":"p 2"}"#),
        _ => response(200, &format!(r#"{{"known":[["c",1],["of-{KEY}",1]]}}"#)),
    });
    let models = client().list_gateway_models(&endpoint(&server, KEY)).await.unwrap();
    let listed: Vec<_> = models.iter().map(|model| (model.slug.as_str(), model.context_length)).collect();
    assert_eq!(listed, [("a/b", Some(4096)), ("c", None), ("of-[redacted]", Some(1))]);
    let requests = server.requests();
    assert_eq!(requests[0].line, "GET /v9/known HTTP/1.1");
    assert_eq!(requests[1].line, "GET /v9/known?after=p+2 HTTP/1.1");
    assert_eq!(requests[1].headers["x-relay-signature"], signature("GET", "/v9/known?after=p+2", ""));

    let endless = Server::start(|_, _| response(200, r#"{"known":[],"after":"next"}"#));
    let error = client().list_gateway_models(&endpoint(&endless, KEY)).await.unwrap_err();
    assert_eq!(error, CatalogError::TooLarge { provider: &RELAY });
    assert_eq!(endless.requests().len(), 200);
    let broken = Server::start(|_, _| response(200, r#"{"data":[]}"#));
    let error = client().list_gateway_models(&endpoint(&broken, KEY)).await.unwrap_err().to_string();
    assert_eq!(error, r#"Relay sent no list of models: no `known`: {"data":[]}"#);
}

#[tokio::test]
async fn keys_have_the_protocols_form() {
    let server = Server::start(|_, request| {
        let known = request.headers["x-relay-signature"] == signature("GET", "/v9/known", "");
        response(if known { 200 } else { 401 }, r#"{"known":[]}"#)
    });
    let (client, endpoint) = (client(), endpoint(&server, KEY));
    assert_eq!(client.confirm_key(&endpoint, None, "a/b").await.unwrap(), KeyCheck::Confirmed);
    let other = endpoint.with_key(Secret::new("relay:another-secret").unwrap());
    assert_eq!(client.confirm_key(&other, None, "a/b").await.unwrap(), KeyCheck::Refused);
    assert_eq!(server.requests().len(), 3);

    let shapeless = endpoint.with_key(Secret::new("shapeless").unwrap());
    let failure = ask(&client, &shapeless).await.unwrap_err();
    assert_eq!((failure.kind, failure.gave_up_by), (FailureKind::FatalForRun(Fatal::Key), GaveUpBy::Runner));
    assert_eq!(server.requests().len(), 3);
}
