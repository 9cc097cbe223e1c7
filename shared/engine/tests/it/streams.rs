//! Connections: routes, encodings, hijacked streams, and limits.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::fake::{World, exchange};

#[tokio::test]
async fn requests_outside_the_list_never_reach_the_engine() {
    let world = World::start().await;
    for (method, address) in [
        ("POST", "/session"),
        ("POST", "/v1.41/grpc"),
        ("POST", "/auth"),
        ("POST", "/commit?container=own"),
        ("GET", "/plugins"),
        ("POST", "/swarm/init"),
        ("GET", "/containers/own/attach/ws?stream=1"),
        ("GET", "/containers/own/export"),
        ("POST", "/containers/prune"),
        ("GET", "/v4.0.0/libpod/containers/json"),
        ("POST", "/v4.0.0/libpod/play/kube"),
        ("GET", "/_ping/../containers/foreign/json"),
        ("GET", "/_ping/..%2fcontainers/foreign/json"),
        ("GET", "//containers/foreign/json"),
        ("GET", "/containers/%62bbb/json"),
        ("GET", "/Containers/own/json"),
        ("GET", "http://engine/containers/foreign/json"),
        ("OPTIONS", "*"),
        ("CONNECT", "engine:80"),
        ("TRACE", "/info"),
        ("POST", "/containers/own/start?checkpoint=x"),
        ("DELETE", "/containers/own?link=1"),
        ("GET", "/events?filters=x"),
        ("GET", "/containers/own/json?size=1&size=0"),
    ] {
        let (status, answer) = world.send(method, address, &json!(null)).await;
        assert!(matches!(status, 400 | 403), "{method} {address}: {status} {answer}");
        let received = world.received();
        assert!(
            received.iter().all(|request| request.address.starts_with("/containers/own/json")),
            "{received:?}"
        );
    }
}

#[tokio::test]
async fn smuggled_requests_are_refused_or_sent_apart() {
    let world = World::start().await;
    let socket = world.proxy.as_ref().unwrap().socket();
    let inner = "POST /session HTTP/1.1\r\nHost: x\r\n\r\n";
    for head in
        ["Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "Content-Length: 3\r\nContent-Length: 5\r\n"]
    {
        let request = format!("POST /containers/own/start HTTP/1.1\r\nHost: x\r\n{head}\r\n0\r\n\r\n{inner}");
        let mut stream = UnixStream::connect(socket).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let received = world.received();
        assert!(received.iter().all(|request| !request.address.contains("session")), "{received:?}");
    }
    // Chunked bodies reach the engine with a length of their own.
    let body = "POST /containers/create HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n\
                12\r\n{\"Image\":\"debian\"}\r\n0\r\n\r\n";
    assert!(exchange(socket, body.as_bytes()).await.starts_with("HTTP/1.1 201"));
    let create = world.changes().pop().unwrap();
    assert!(create.head.to_ascii_lowercase().contains("content-length:"), "{}", create.head);
}

#[tokio::test]
async fn attached_connections_pass_in_both_directions() {
    let world = World::start().await;
    let socket = world.proxy.as_ref().unwrap().socket();
    let body = r#"{"Detach":false,"Tty":false}"#;
    let request = format!(
        "POST /v1.41/exec/own/start HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = UnixStream::connect(socket).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let mut buffer = [0; 1024];
    while !answer.ends_with("ready\n") {
        let read = stream.read(&mut buffer).await.unwrap();
        assert_ne!(read, 0, "{answer}");
        answer += std::str::from_utf8(&buffer[..read]).unwrap();
    }
    assert!(answer.starts_with("HTTP/1.1 101"), "{answer}");
    stream.write_all(b"hello").await.unwrap();
    // The end of the input passes, and the output after it comes back.
    stream.shutdown().await.unwrap();
    let mut echo = String::new();
    stream.read_to_string(&mut echo).await.unwrap();
    assert_eq!(echo, "hello");
}

#[tokio::test]
async fn streams_end_at_their_limits() {
    let world = World::with(|rules| {
        rules.limits.stream_bytes_max = 1000;
        rules.limits.stream_time_max = Duration::from_secs(200);
    })
    .await;
    let (_, answer) = world.send("GET", "/containers/own/logs?stdout=1", &json!(null)).await;
    assert!(answer.len() < 100_000, "{}", answer.len());
    // Events of another sandbox are dropped.
    assert_eq!(world.send("GET", "/events", &json!(null)).await.1.matches("s2").count(), 0);
}

#[tokio::test]
async fn ping_announces_the_classic_builder() {
    let world = World::start().await;
    let request = b"HEAD /_ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let answer = exchange(world.proxy.as_ref().unwrap().socket(), request).await;
    assert!(answer.to_ascii_lowercase().contains("builder-version: 1\r\n"), "{answer}");
}

#[tokio::test]
async fn buildkit_is_refused_with_what_to_do() {
    let world = World::start().await;
    for address in ["/session", "/v1.41/grpc"] {
        let (status, answer) = world.send("POST", address, &json!(null)).await;
        assert_eq!(status, 403);
        assert!(answer.contains("DOCKER_BUILDKIT=0"), "{answer}");
    }
}

#[tokio::test]
async fn the_number_of_containers_is_limited() {
    let world = World::with(|rules| rules.limits.containers_max = 1).await;
    let (status, answer) = world.send("POST", "/containers/create", &json!({ "Image": "debian" })).await;
    assert_eq!(
        (status, answer.as_str()),
        (
            403,
            r#"{"message":"refused by the sandbox host: `containers` is above this sandbox's limit of 1"}"#
        )
    );
}
