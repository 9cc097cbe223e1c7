//! Complete answers, in all forms that servers send.

use std::time::Duration;

use bench_domain::{Finish, Generation, TextRepairs, Usage};
use bench_inference::providers::LMSTUDIO;
use bench_inference::{ChatClient, Endpoint, HttpOptions};
use tokio::time::Instant;

use crate::server::{KEY, Request, Server, Step, chunk, events, last_chunk, response, stream_head, streamed};
use crate::{ask, ask_with, client};

#[tokio::test]
async fn a_streamed_answer_arrives_whole() {
    let server = Server::always(streamed("The answer is 42.")).await;
    let generation = Generation { temperature: Some(0.0), max_tokens: Some(64), ..Generation::default() };
    let answer = ask_with(&client(), &server.endpoint(), &generation, None).await.unwrap();
    assert_eq!(answer.text, "The answer is 42.");
    assert_eq!((answer.finish, answer.reasoning), (Finish::Stop, None));
    assert_eq!(answer.usage, Some(Usage::counted(11, 5, 0)));
    assert_eq!(answer.usage_raw.as_deref(), Some(r#"{"prompt_tokens":11,"completion_tokens":5}"#));
    assert_eq!(answer.model.as_deref(), Some("served/model"));
    assert_eq!(answer.request_id.as_deref(), Some("rid-1"));
    assert!(answer.first_token_ms.is_some_and(|first| first <= answer.latency_ms));

    let requests = server.requests.lock().unwrap();
    assert_eq!(requests[0].line, "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(requests[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(requests[0].header("content-type"), Some("application/json"));
    let expected = serde_json::json!({
        "model": "a/b", "messages": [{"role": "user", "content": "What is 6 × 7?"}],
        "temperature": 0.0, "max_tokens": 64, "stream": true, "stream_options": {"include_usage": true},
    });
    assert_eq!(requests[0].json(), expected);
}

#[tokio::test]
async fn a_request_is_the_same_to_the_byte() {
    let server = Server::always(streamed("ok")).await;
    let generation = Generation {
        temperature: Some(0.0),
        top_p: Some(0.95),
        max_tokens: Some(64),
        stop: vec!["END".to_owned()],
        seed: Some(7),
        ..Generation::default()
    };
    ask_with(&client(), &server.endpoint(), &generation, None).await.unwrap();
    client().list_gateway_models(&server.endpoint()).await.unwrap_err();
    let requests = server.requests.lock().unwrap();
    let shown = |number: usize| {
        let Request { line, headers, body } = &requests[number];
        let headers = headers.iter().map(|(name, value)| format!("{name}: {value}\n"));
        format!("{line}\n{}\n{}", headers.collect::<String>(), String::from_utf8_lossy(body))
    };
    let agent = concat!("bench-runner/", env!("CARGO_PKG_VERSION"));
    let (key, host) = (KEY, server.address);
    let body = r#"{"model":"a/b","messages":[{"role":"user","content":"What is 6 × 7?"}],"temperature":0.0,"top_p":0.95,"max_tokens":64,"stop":["END"],"seed":7,"stream":true,"stream_options":{"include_usage":true}}"#;
    let length = body.len();
    assert_eq!(
        shown(0),
        format!(
            "POST /v1/chat/completions HTTP/1.1\ncontent-type: application/json\n\
             accept: text/event-stream, application/json\nauthorization: Bearer {key}\nuser-agent: {agent}\n\
             host: {host}\ncontent-length: {length}\n\n{body}"
        )
    );
    assert_eq!(
        shown(1),
        format!(
            "GET /v1/models HTTP/1.1\naccept: application/json\nauthorization: Bearer {key}\n\
             user-agent: {agent}\nhost: {host}\n\n"
        )
    );
}

#[tokio::test]
async fn no_key_sends_no_header() {
    let server = Server::always(streamed("ok")).await;
    let base = format!("http://{}/v1", server.address);
    let endpoint = Endpoint::new(&LMSTUDIO, &base, None).unwrap();
    ask(&client(), &endpoint).await.unwrap();
    assert_eq!(server.requests.lock().unwrap()[0].header("authorization"), None);
}

#[tokio::test]
async fn bytes_may_be_cut_anywhere() {
    let text = "Grüße, 漢字 and 😀 — done.";
    for (line_end, comment) in [("\n", ""), ("\r\n", ": still working\r\n\r\n")] {
        let body = format!("{comment}{}", events(text).replace('\n', line_end));
        let mut steps = vec![stream_head()];
        steps.extend(body.as_bytes().chunks(1).map(chunk));
        steps.push(last_chunk());
        let server = Server::always(steps).await;
        let answer = ask(&client(), &server.endpoint()).await.unwrap();
        assert_eq!((answer.text.as_str(), answer.finish), (text, Finish::Stop));
    }
}

#[tokio::test]
async fn one_object_instead_of_a_stream_is_an_answer() {
    let body = r#"{"id":"c","model":"m","choices":[{"message":{"role":"assistant","content":"42",
        "reasoning_content":"6 × 7"},"finish_reason":"length"}],"usage":{"prompt_tokens":1,"completion_tokens":2,
        "completion_tokens_details":{"reasoning_tokens":1}}}"#;
    for content_type in ["content-type: application/json\r\n", ""] {
        let server = Server::always(response(200, content_type, body)).await;
        let answer = ask(&client(), &server.endpoint()).await.unwrap();
        assert_eq!((answer.text.as_str(), answer.reasoning.as_deref()), ("42", Some("6 × 7")));
        assert_eq!(answer.finish, Finish::Length);
        assert_eq!(answer.usage, Some(Usage::counted(1, 2, 1)));
        assert_eq!(answer.request_id.as_deref(), Some("c"));
    }
}

#[tokio::test]
async fn an_answer_that_is_complete_survives_what_follows() {
    let finished = "data: {\"choices\":[{\"delta\":{\"content\":\"42\"},\"finish_reason\":\"stop\"}]}\n\n";
    let after_finish = [
        vec![Step::Close],
        vec![Step::Reset],
        vec![chunk(b"data: {\"choices\":["), Step::Close],
        vec![chunk(b"data: {\"error\":{\"message\":\"late\"}}\n\n"), last_chunk()],
        vec![chunk(b"data: nonsense\n\n"), last_chunk()],
        vec![last_chunk()],
    ];
    for rest in after_finish {
        let steps = [vec![stream_head(), chunk(finished.as_bytes())], rest].concat();
        let server = Server::always(steps).await;
        let answer = ask(&client(), &server.endpoint()).await.unwrap();
        assert_eq!((answer.text.as_str(), answer.finish, answer.usage), ("42", Finish::Stop, None));
    }
    let unmarked = "data: {\"choices\":[{\"delta\":{\"content\":\"42\"}}]}\n\ndata: [DONE]";
    let server = Server::always(vec![stream_head(), chunk(unmarked.as_bytes()), last_chunk()]).await;
    assert_eq!(ask(&client(), &server.endpoint()).await.unwrap().finish, Finish::Unknown);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_hang_up_delays_no_answer() {
    let finished = "data: {\"choices\":[{\"delta\":{\"content\":\"42\"},\"finish_reason\":\"stop\"}]}\n\n";
    for end in ["", "data: [DONE]\n\n"] {
        let body = format!("{finished}{end}");
        let server = Server::always(vec![stream_head(), chunk(body.as_bytes()), Step::Stall]).await;
        let started = Instant::now();
        let answer = ask(&client(), &server.endpoint()).await.unwrap();
        assert_eq!(answer.text, "42");
        // Simulated time: the short limit after the end, not the idle timeout of 300 s.
        assert!(started.elapsed() <= Duration::from_secs(11), "{:?}", started.elapsed());
        assert!(answer.latency_ms <= 11);
    }
}

#[tokio::test]
async fn one_connection_serves_one_answer_after_the_other() {
    let server = Server::always(streamed("again")).await;
    let client = client();
    for _ in 0..20 {
        ask(&client, &server.endpoint()).await.unwrap();
    }
    assert_eq!((server.count(), server.connections()), (20, 1));
}

#[tokio::test]
async fn hundreds_at_once_do_not_mix() {
    let server = Server::start(|_, request| {
        let asked = request.json()["seed"].to_string();
        streamed(&format!("answer {asked}"))
    })
    .await;
    let client: ChatClient = ChatClient::new(HttpOptions::default());
    let endpoint = server.endpoint();
    let calls = (0..300).map(|seed| {
        let (client, endpoint) = (client.clone(), endpoint.clone());
        tokio::spawn(async move {
            let generation = Generation { seed: Some(seed), ..Generation::default() };
            (seed, ask_with(&client, &endpoint, &generation, None).await.unwrap().text)
        })
    });
    for call in calls.collect::<Vec<_>>() {
        let (seed, text) = call.await.unwrap();
        assert_eq!(text, format!("answer {seed}"));
    }
}

#[tokio::test(start_paused = true)]
async fn slow_pieces_are_waited_for() {
    let pause = Step::Wait(Duration::from_secs(200));
    let mut steps = vec![pause.clone(), stream_head(), pause.clone()];
    for piece in events("slow but sure").split_inclusive("\n\n") {
        steps.extend([chunk(piece.as_bytes()), pause.clone()]);
    }
    steps.push(last_chunk());
    let server = Server::always(steps).await;
    let answer = ask(&client(), &server.endpoint()).await.unwrap();
    assert_eq!(answer.text, "slow but sure");
    // Each silence is shorter than the idle timeout of 300 s, but their sum is longer.
    assert!(
        answer.latency_ms > 1_000_000 && answer.first_token_ms.is_some_and(|first| first < answer.latency_ms)
    );
}

#[tokio::test]
async fn broken_characters_are_joined_or_replaced_and_counted() {
    let delta = |content: &[u8]| {
        [b"data: {\"choices\":[{\"delta\":{\"content\":\"", content, b"\",\"reasoning\":\"\\ud83d\"}}]}\n\n"]
            .concat()
    };
    let end = b"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let mut body = Vec::new();
    for content in [br"a\ud83d".as_slice(), br"\ude00 b", b"\xff c \xe6\xbc", b"\xa2"] {
        body.extend(delta(content));
    }
    body.extend_from_slice(end);
    // In one piece, and byte by byte: splits by the network don't count as repairs.
    for size in [body.len(), 1] {
        let mut steps = vec![stream_head()];
        steps.extend(body.chunks(size).map(chunk));
        steps.push(last_chunk());
        let server = Server::always(steps).await;
        let answer = ask(&client(), &server.endpoint()).await.unwrap();
        assert_eq!(answer.text, "a😀 b\u{fffd} c 漢");
        assert_eq!(answer.reasoning.as_deref(), Some("\u{fffd}".repeat(4).as_str()));
        assert_eq!(answer.repairs, TextRepairs { joined: 2, replaced: 5 });
        assert_eq!(server.count(), 1);
    }
    let whole = br#"{"choices":[{"message":{"content":"x \ude00"},"finish_reason":"stop"}]}"#;
    let whole = [whole.as_slice()].concat();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", whole.len());
    let server = Server::always(vec![Step::Send(head.into_bytes()), Step::Send(whole)]).await;
    let answer = ask(&client(), &server.endpoint()).await.unwrap();
    assert_eq!((answer.text.as_str(), answer.repairs.replaced), ("x \u{fffd}", 1));
}

#[tokio::test]
async fn a_key_in_an_answer_is_redacted_with_its_chunks_joined() {
    let (one, two) = KEY.split_at(5);
    let body = format!(
        "data: {{\"id\":\"{KEY}\",\"choices\":[{{\"delta\":{{\"content\":\"Bearer {one}\"}}}}]}}\n\n\
         data: {{\"choices\":[{{\"delta\":{{\"content\":\"{two}!\"}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n"
    );
    let server = Server::always(response(200, "content-type: text/event-stream\r\n", &body)).await;
    let answer = ask(&client(), &server.endpoint()).await.unwrap();
    assert_eq!(answer.text, "Bearer [redacted]!");
    assert_eq!((answer.request_id.as_deref(), answer.keys_redacted), (Some("[redacted]"), 2));
    assert!(!format!("{answer:?}").contains(KEY));
}

/// Names are cut, and a cut within a key would leave its beginning.
#[tokio::test]
async fn names_are_cut_after_a_key_was_removed_from_them() {
    let name = format!("{}{KEY}", "x".repeat(200 - KEY.len() + 2));
    let body = format!(
        r#"{{"id":"{name}","model":"{name}","choices":[{{"message":{{"content":"x"}},"finish_reason":"{name}"}}]}}"#
    );
    let part = &KEY[..KEY.len() - 2];
    for header in ["", "x-request-id"] {
        let header = if header.is_empty() { String::new() } else { format!("{header}: {name}\r\n") };
        let server = Server::always(response(200, &header, &body)).await;
        let answer = ask(&client(), &server.endpoint()).await.unwrap();
        assert!(!format!("{answer:?}").contains(part), "{answer:?}");
        assert!(answer.model.unwrap().ends_with("x[redacted]"));
    }
    let header = format!("x-request-id: {name}\r\nlocation: http://x/{name}\r\n");
    for status in [302, 400] {
        let server = Server::always(response(status, &header, "")).await;
        let failure = ask(&client(), &server.endpoint()).await.unwrap_err();
        assert!(!format!("{failure:?}").contains(part), "{failure:?}");
    }
}

#[tokio::test]
async fn impossible_counts_are_rejected_and_marked() {
    for count in ["-1", "1000000000000000000", "2.5"] {
        let usage = format!(r#"{{"prompt_tokens":{count},"completion_tokens":3}}"#);
        let body = format!(
            r#"{{"choices":[{{"message":{{"content":"x"}},"finish_reason":"stop"}}],"usage":{usage}}}"#
        );
        let server = Server::always(response(200, "", &body)).await;
        let answer = ask(&client(), &server.endpoint()).await.unwrap();
        assert_eq!((answer.usage, answer.usage_rejected), (None, true), "{count}");
        assert_eq!(answer.usage_raw, Some(usage));
    }
}
