//! Each endpoint without faults, and invalid arguments.

use std::collections::BTreeMap;
use std::time::Duration;

use bench_sandy::testing::{Options, SandyServer};
use bench_sandy::{ExecRequest, NewSandbox, Sandy, SandyConfig, SandyError, SandyErrorKind};
use serde_json::json;

use crate::support::{World, timing};

#[tokio::test]
async fn a_sandbox_is_created_used_and_ended() {
    let server = SandyServer::start(Options::default()).await.unwrap();
    let sandy = server.sandy(timing()).unwrap();
    let id = sandy.create(&NewSandbox::default()).await.unwrap();
    assert_eq!(server.open().first(), Some(&id));
    sandy.write_file(&id, "a/b.txt", "h\u{e9}llo\n").await.unwrap();
    let exec = ExecRequest {
        cwd: Some("a".to_owned()),
        env: BTreeMap::from([("NAME".to_owned(), "x y".to_owned())]),
        ..ExecRequest::new("cat b.txt; echo \"$NAME\" >&2; exit 3")
    };
    let output = sandy.exec(&id, &exec.within(Duration::from_secs(60))).await.unwrap();
    assert_eq!(
        (output.stdout.as_str(), output.stderr.as_str(), output.exit_code),
        ("h\u{e9}llo\n", "x y\n", 3)
    );
    assert_eq!(sandy.exists(&id).await, Ok(true));
    assert_eq!(sandy.sandboxes(&[]).await.unwrap()[0].sandbox_id, id);
    assert!(sandy.resources().await.unwrap().can_create_sandbox);
    assert_eq!(sandy.metrics(1).await.unwrap().len(), 1);
    sandy.terminate(&id).await.unwrap();
    assert_eq!((sandy.exists(&id).await, server.open()), (Ok(false), Vec::new()));
    // Ending it again succeeds, since it no longer exists.
    sandy.terminate(&id).await.unwrap();
    assert_eq!(sandy.exec(&id, &ExecRequest::new("true")).await, Err(SandyError::Gone));
    assert_eq!(sandy.write_file(&id, "a", "").await, Err(SandyError::Gone));

    let log = server.log();
    let body = |at: usize| log[at].body.clone();
    assert_eq!(body(0), json!({ "priority": 3, "preemptable": true }));
    assert_eq!(body(1), json!({ "path": "a/b.txt", "content": "h\u{e9}llo\n" }));
    let command = "cat b.txt; echo \"$NAME\" >&2; exit 3";
    assert_eq!(
        body(2),
        json!({ "command": command, "cwd": "a", "env": { "NAME": "x y" }, "timeoutMs": 60_000 })
    );
}

#[tokio::test]
async fn a_sandbox_can_be_requested_with_an_engine_and_a_host() {
    let world = World::new().await;
    let new = NewSandbox {
        priority: 1,
        preemptable: false,
        docker_socket: true,
        upstream: Some("host-a".to_owned()),
    };
    // The test server has no engine.
    assert_eq!(world.sandy.create(&new).await.unwrap_err().kind(), SandyErrorKind::Refused);
    let wanted =
        json!({ "priority": 1, "preemptable": false, "enableDockerSocket": true, "upstream": "host-a" });
    assert_eq!(world.server.log()[1].body, wanted);
}

#[tokio::test]
async fn invalid_ids_and_paths_are_not_sent() {
    let server = SandyServer::start(Options::default()).await.unwrap();
    let sandy = server.sandy(timing()).unwrap();
    for id in ["", "..", "a/b", "a?b", &"x".repeat(201)] {
        assert_eq!(sandy.exec(id, &ExecRequest::new("true")).await, Err(SandyError::BadId));
        assert_eq!(sandy.exists(id).await, Err(SandyError::BadId));
        assert_eq!(sandy.terminate(id).await, Err(SandyError::BadId));
        assert_eq!(sandy.write_file(id, "a", "").await, Err(SandyError::BadId));
    }
    for path in ["", "a\0b", "a\nb", &"x".repeat(1_025)] {
        assert_eq!(sandy.write_file("a", path, "").await, Err(SandyError::BadPath));
    }
    assert!(server.log().is_empty());
}

#[tokio::test]
async fn without_a_valid_key_no_sandbox_is_created() {
    let server = SandyServer::start(Options::default()).await.unwrap();
    let config = SandyConfig::from_vars(|name| match name {
        "SANDY_BASE_URL" => Some(server.base_url()),
        _ => Some("another-key".to_owned()),
    });
    let error = Sandy::new(config.unwrap()).create(&NewSandbox::default()).await.unwrap_err();
    assert_eq!((&error, error.kind()), (&SandyError::Status(401), SandyErrorKind::Refused));
    let unset = Sandy::new(SandyConfig::default());
    assert_eq!(unset.ready(), Err(SandyError::NoKey));
    assert_eq!(unset.create(&NewSandbox::default()).await.unwrap_err().kind(), SandyErrorKind::Refused);
}
