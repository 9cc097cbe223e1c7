//! A sandbox sees and changes only its own objects.

use std::collections::BTreeSet;

use bench_engine::{NetworkPolicy, reap};
use serde_json::{Value, json};

use crate::fake::{FOREIGN, OWN, World};

#[tokio::test]
async fn calls_go_on_with_the_full_id() {
    let world = World::start().await;
    for (method, address, expected) in [
        ("POST", "/v1.41/containers/own/start", format!("/v1.41/containers/{OWN}/start")),
        ("POST", "/containers/aaaa/stop?t=1", format!("/containers/{OWN}/stop?t=1")),
        ("DELETE", "/containers/own?force=1&v=0", format!("/containers/{OWN}?force=1&v=1")),
        ("DELETE", "/networks/own", format!("/networks/{OWN}")),
        ("DELETE", "/volumes/own", "/volumes/own".to_owned()),
        ("PUT", "/containers/own/archive?path=%2Ftmp", format!("/containers/{OWN}/archive?path=%2Ftmp")),
        ("HEAD", "/containers/own/archive?path=/", format!("/containers/{OWN}/archive?path=%2F")),
    ] {
        let status = world.send(method, address, &json!(null)).await.0;
        assert!(matches!(status, 200 | 204), "{address}: {status}");
        let changes = world.changes();
        assert_eq!(changes.len(), 1, "{changes:?}");
        assert_eq!(changes[0].address, expected);
    }
    let body = json!({ "Container": "own", "EndpointConfig": { "Aliases": ["x"] } });
    assert_eq!(world.send("POST", "/networks/own/connect", &body).await.0, 200);
    let sent: Value = serde_json::from_slice(&world.changes()[0].body).unwrap();
    assert_eq!(sent["Container"], OWN);
}

#[tokio::test]
async fn others_objects_look_like_absent_ones() {
    let world = World::start().await;
    for name in ["foreign", "bbbb", FOREIGN, "host", "instance2", "absent"] {
        let calls = [
            ("GET", format!("/containers/{name}/json")),
            ("GET", format!("/containers/{name}/logs?stdout=1")),
            ("GET", format!("/containers/{name}/archive?path=/")),
            ("PUT", format!("/containers/{name}/archive?path=/")),
            ("POST", format!("/containers/{name}/start")),
            ("POST", format!("/containers/{name}/exec")),
            ("POST", format!("/containers/{name}/attach?stream=1")),
            ("POST", format!("/containers/{name}/update")),
            ("DELETE", format!("/containers/{name}?force=1")),
            ("POST", format!("/exec/{name}/start")),
            ("GET", format!("/exec/{name}/json")),
            ("GET", format!("/networks/{name}")),
            ("DELETE", format!("/networks/{name}")),
            ("GET", format!("/volumes/{name}")),
            ("DELETE", format!("/volumes/{name}")),
        ];
        for (method, address) in calls {
            let (status, answer) = world.send(method, &address, &json!({})).await;
            assert_eq!(status, 404, "{method} {address}: {answer}");
            assert!(world.changes().is_empty(), "{method} {address}");
        }
    }
}

#[tokio::test]
async fn lists_have_own_objects_only() {
    let world = World::start().await;
    let filters = "?filters=%7B%22label%22%3A%5B%22a%22%5D%7D";
    for list in ["/containers/json", "/networks"] {
        let (_, answer) = world.send("GET", &format!("{list}{filters}"), &json!(null)).await;
        let found: Vec<Value> = serde_json::from_str(&answer).unwrap();
        assert_eq!(found.len(), 1, "{answer}");
        assert_eq!(found[0]["Id"], OWN);
        let address = world.received().pop().unwrap().address;
        assert!(address.contains("bench-runner.sandbox%3Ds1"), "{address}");
    }
    let (_, answer) = world.send("GET", "/volumes", &json!(null)).await;
    assert!(answer.contains("\"own\"") && !answer.contains("foreign"), "{answer}");
    let (_, answer) = world.send("GET", "/images/json", &json!(null)).await;
    let found: Vec<Value> = serde_json::from_str(&answer).unwrap();
    let ids: Vec<_> = found.iter().map(|image| image["Id"].as_str().unwrap()).collect();
    // The first one has a name that the sandbox may give, but the sandbox didn't make it.
    assert_eq!(ids, ["3", "4"]);
    assert!(!answer.contains("s2"), "{answer}");
    let (_, answer) = world.send("GET", "/info", &json!(null)).await;
    assert!(answer.contains("overlay2") && !answer.contains("secret"), "{answer}");
    assert!(!answer.contains("network=none"), "{answer}");
    let closed = World::with(|rules| rules.network = NetworkPolicy::None).await;
    let (_, answer) = closed.send("GET", "/info", &json!(null)).await;
    assert!(answer.contains("bench-runner.network=none"), "{answer}");
    assert_eq!(world.send("GET", "/containers/json?filters=%5B%5D", &json!(null)).await.0, 403);
}

#[tokio::test]
async fn images_of_others_are_hidden() {
    let world = World::start().await;
    for (method, address, expected) in [
        ("GET", "/images/debian:bookworm/json", 200),
        ("GET", "/images/own-image/json", 200),
        ("GET", "/images/localhost/bench/s2/x:1/json", 404),
        ("GET", "/images/localhost/bench/s2/x:1/history", 404),
        ("DELETE", "/images/localhost/bench/s2/x:1", 404),
        ("DELETE", "/images/debian:bookworm", 403),
        ("DELETE", "/images/localhost/bench/s1/x:1", 200),
        ("DELETE", "/images/localhost/bench/s1/x:1?force=1", 403),
    ] {
        let (status, answer) = world.send(method, address, &json!(null)).await;
        assert_eq!(status, expected, "{method} {address}: {answer}");
        assert!(!answer.contains("bench/s2/x:1\"]"), "{answer}");
    }
}

#[tokio::test]
async fn cleaning_up_removes_own_objects_only() {
    let mut world = World::start().await;
    // The scripted engine's lists never become empty.
    let error = world.proxy.take().unwrap().stop().await.unwrap_err().to_string();
    assert!(error.starts_with("can't remove container aaaa"), "{error}");
    let removed: BTreeSet<_> = world.changes().into_iter().map(|request| request.address).collect();
    let expected = [
        format!("/containers/{OWN}/kill"),
        format!("/containers/{OWN}?force=1&v=1"),
        "/images/4?force=1".to_owned(),
        format!("/networks/{OWN}"),
        "/volumes/own?force=1".to_owned(),
    ];
    assert_eq!(removed, BTreeSet::from(expected));

    let running = BTreeSet::from(["s1".to_owned()]);
    assert!(reap(world.engine.client(), "i1", &running, true).await.is_err());
    let removed: BTreeSet<_> = world.changes().into_iter().map(|request| request.address).collect();
    let expected = [
        format!("/containers/{FOREIGN}/kill"),
        format!("/containers/{FOREIGN}?force=1&v=1"),
        format!("/networks/{FOREIGN}"),
        "/volumes/foreign?force=1".into(),
    ];
    assert_eq!(removed, BTreeSet::from(expected));
    reap(world.engine.client(), "i2", &BTreeSet::new(), false).await.unwrap();
    assert!(world.changes().is_empty());
    assert!(reap(world.engine.client(), "I1", &running, true).await.is_err());
}
