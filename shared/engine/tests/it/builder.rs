//! One sandbox of a host builds at a time.

use std::time::Duration;

use bench_engine::{NetworkPolicy, Owner, Proxy, SandboxRules};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::fake::World;

const HOLD: &[u8] =
    b"POST /bench/builder HTTP/1.1\r\nHost: engine\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n";
/// Time after which a test gives up.
const PATIENCE: Duration = Duration::from_secs(120);
/// Time after which a request that is still unanswered waits for the builder.
const WAITING: Duration = Duration::from_millis(300);

/// Asks for the builder.
async fn ask(proxy: &Proxy) -> UnixStream {
    let mut stream = UnixStream::connect(proxy.socket()).await.unwrap();
    stream.write_all(HOLD).await.unwrap();
    stream
}

/// Waits until the builder is handed out.
async fn is_held(stream: &mut UnixStream, wait: Duration) -> bool {
    let mut status = [0; 12];
    match timeout(wait, stream.read_exact(&mut status)).await {
        Ok(read) => {
            read.unwrap();
            assert_eq!(&status, b"HTTP/1.1 101");
            true
        }
        Err(_) => false,
    }
}

#[tokio::test]
async fn the_builder_belongs_to_one_sandbox_while_its_connection_is_open() {
    let world = World::start().await;
    let folder = tempfile::tempdir().unwrap();
    let rules = SandboxRules {
        network: NetworkPolicy::Unfiltered,
        ..SandboxRules::new(Owner::new("i1", "s2").unwrap())
    };
    let other = Proxy::start(&world.engine, &folder.path().join("other.sock"), rules).unwrap();
    let one = world.proxy.as_ref().unwrap();
    let mut held = ask(one).await;
    assert!(is_held(&mut held, PATIENCE).await);
    let mut waiting = ask(&other).await;
    assert!(!is_held(&mut waiting, WAITING).await);
    // A client that stops waiting doesn't keep others waiting.
    let gone = ask(one).await;
    tokio::time::sleep(WAITING).await;
    drop(gone);
    drop(held);
    assert!(is_held(&mut waiting, PATIENCE).await);
    // The other sandbox's proxy stops while it holds the builder.
    let mut next = ask(one).await;
    assert!(!is_held(&mut next, WAITING).await);
    // The scripted engine removes nothing.
    assert!(other.stop().await.is_err());
    assert!(is_held(&mut next, PATIENCE).await);
}

#[tokio::test]
async fn the_builder_is_held_by_connections_only() {
    let world = World::start().await;
    let (status, answer) = world.send("POST", "/bench/builder", &json!(null)).await;
    assert_eq!(status, 400, "{answer}");
    assert!(world.received().is_empty());
}

#[tokio::test]
async fn a_builder_that_is_held_too_long_is_free_again() {
    let world = World::with(|rules| rules.limits.builder_time_max = Duration::from_millis(100)).await;
    let proxy = world.proxy.as_ref().unwrap();
    let mut held = ask(proxy).await;
    assert!(is_held(&mut held, PATIENCE).await);
    let mut next = ask(proxy).await;
    assert!(is_held(&mut next, PATIENCE).await);
}
