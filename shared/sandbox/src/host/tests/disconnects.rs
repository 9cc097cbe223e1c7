//! Callers that disconnect, over real connections.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::fake_isolation::{Counts, FakeIsolation};
use crate::host::{HostConfig, NewSandbox, SandboxHost, router};

async fn serve(host: &Arc<SandboxHost>) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let routes = router(Arc::clone(host));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    address
}

async fn send(address: SocketAddr, path: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let request = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// Waits until the condition is true; a test that hangs has failed.
async fn wait_until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn created_count(counts: &Counts) -> usize {
    counts.created.load(Ordering::SeqCst)
}

#[tokio::test]
async fn the_next_request_is_served_if_the_first_caller_disconnects() {
    let (host, counts) = FakeIsolation::default().host(HostConfig::with_slots(1));
    let address = serve(&host).await;
    let first = host.create(&NewSandbox::default()).await.unwrap().sandbox_id;
    let disconnecting = send(address, "/api/sandboxes", "{}").await;
    wait_until(|| host.resources().waiting == 1).await;
    drop(disconnecting);
    wait_until(|| host.resources().waiting == 0).await;
    let mut next = send(address, "/api/sandboxes", "{}").await;
    wait_until(|| host.resources().waiting == 1).await;
    host.terminate(&first).await.unwrap();
    let mut answer = [0; 12];
    next.read_exact(&mut answer).await.unwrap();
    assert_eq!((&answer, created_count(&counts), counts.alive()), (b"HTTP/1.1 200", 2, 1));
}

#[tokio::test]
async fn a_sandbox_for_a_disconnected_caller_is_ended() {
    let isolation = FakeIsolation { creation_time: Duration::from_millis(200), ..FakeIsolation::default() };
    let (host, counts) = isolation.host(HostConfig::with_slots(1));
    let address = serve(&host).await;
    let disconnecting = send(address, "/api/sandboxes", "{}").await;
    wait_until(|| host.resources().slots_used == 1).await;
    drop(disconnecting);
    wait_until(|| created_count(&counts) == 1 && counts.alive() == 0).await;
    wait_until(|| host.resources().slots_used == 0).await;
}

#[tokio::test]
async fn termination_continues_if_the_caller_disconnects() {
    let isolation = FakeIsolation { end_time: Duration::from_millis(200), ..FakeIsolation::default() };
    let (host, counts) = isolation.host(HostConfig::with_slots(1));
    let address = serve(&host).await;
    let id = host.create(&NewSandbox::default()).await.unwrap().sandbox_id;
    let disconnecting = send(address, &format!("/api/sandboxes/{id}/terminate"), "").await;
    while host.get(&id).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    drop(disconnecting);
    wait_until(|| counts.alive() == 0 && host.resources().slots_used == 0).await;
}
