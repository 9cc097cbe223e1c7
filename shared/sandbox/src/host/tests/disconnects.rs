//! Callers that go away, over a real connection.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::fake::{Counts, Fakes};
use crate::host::{HostConfig, NewSandbox, SandboxHost, router};

async fn serve(host: &Arc<SandboxHost>) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let routes = router(Arc::clone(host));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    address
}

async fn ask(address: SocketAddr, path: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let request = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// Waits until it is so; a test that hangs has failed.
async fn until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn made(counts: &Counts) -> usize {
    counts.made.load(Ordering::SeqCst)
}

#[tokio::test]
async fn who_hangs_up_while_waiting_gives_its_place_to_the_next() {
    let (host, counts) = Fakes::default().host(HostConfig::with_slots(1));
    let address = serve(&host).await;
    let first = host.create(&NewSandbox::default()).await.unwrap().sandbox_id;
    let hangs_up = ask(address, "/api/sandboxes", "{}").await;
    until(|| host.resources().waiting == 1).await;
    drop(hangs_up);
    until(|| host.resources().waiting == 0).await;
    let mut next = ask(address, "/api/sandboxes", "{}").await;
    until(|| host.resources().waiting == 1).await;
    host.terminate(&first).await.unwrap();
    let mut answer = [0; 12];
    next.read_exact(&mut answer).await.unwrap();
    assert_eq!((&answer, made(&counts), counts.alive()), (b"HTTP/1.1 200", 2, 1));
}

#[tokio::test]
async fn what_is_made_for_who_hung_up_is_ended() {
    let fakes = Fakes { making: Duration::from_millis(200), ..Fakes::default() };
    let (host, counts) = fakes.host(HostConfig::with_slots(1));
    let address = serve(&host).await;
    let hangs_up = ask(address, "/api/sandboxes", "{}").await;
    until(|| host.resources().slots_used == 1).await;
    drop(hangs_up);
    until(|| made(&counts) == 1 && counts.alive() == 0).await;
    until(|| host.resources().slots_used == 0).await;
}

#[tokio::test]
async fn who_hangs_up_while_its_sandbox_is_ended_does_not_stop_that() {
    let fakes = Fakes { ending: Duration::from_millis(200), ..Fakes::default() };
    let (host, counts) = fakes.host(HostConfig::with_slots(1));
    let address = serve(&host).await;
    let id = host.create(&NewSandbox::default()).await.unwrap().sandbox_id;
    let hangs_up = ask(address, &format!("/api/sandboxes/{id}/terminate"), "").await;
    while host.get(&id).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    drop(hangs_up);
    until(|| counts.alive() == 0 && host.resources().slots_used == 0).await;
}
