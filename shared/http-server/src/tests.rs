//! Tests with real connections over loopback. Timeouts are short where a test waits for them, and long elsewhere.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use http::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::connections::Connections;
use crate::serve::serve_counted;
use crate::{Limits, raise_open_files_limit};

const LONG: Duration = Duration::from_secs(120);
const SHORT: Duration = Duration::from_millis(200);

/// Returns limits that no test reaches by accident.
fn generous(connections: usize) -> Limits {
    Limits {
        header_timeout: LONG,
        body_stall_timeout: LONG,
        body_timeout: LONG,
        response_stall_timeout: LONG,
        ..Limits::within_this_machine(connections)
    }
}

struct Server {
    address: SocketAddr,
    connections: Arc<Connections>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Server {
    async fn start(limits: Limits, router: Router) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Connections::new(limits);
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(serve_counted(listener, router, Arc::clone(&connections), async {
            let _ = stopped.await;
        }));
        Self { address, connections, stop: Some(stop), task }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends bytes over a new connection.
    async fn send(&self, bytes: &str) -> TcpStream {
        let mut stream = self.connect().await;
        stream.write_all(bytes.as_bytes()).await.unwrap();
        stream
    }

    async fn get(&self, path: &str) -> String {
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        read_rest(self.send(&request).await).await
    }

    async fn until_open(&self, count: usize) {
        let reached = async {
            while self.connections.count() != count {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(LONG, reached).await.unwrap();
    }
}

/// Reads until the server closes the connection.
async fn read_rest(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    // A connection that was cut ends with an error; the bytes before it count.
    let _ = timeout(LONG, stream.read_to_end(&mut bytes)).await.expect("the server closes the connection");
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hello() -> Router {
    Router::new().route("/", get(|| async { "hello" }))
}

/// Returns a router with a handler at `/held` that reports its start and responds once released.
fn holding() -> (Router, Arc<Notify>, Arc<Semaphore>) {
    let (begun, release) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
    let (began, released) = (Arc::clone(&begun), Arc::clone(&release));
    let held = move || {
        let (began, released) = (Arc::clone(&began), Arc::clone(&released));
        async move {
            began.notify_one();
            let _ = released.acquire().await;
            "held"
        }
    };
    (hello().route("/held", get(held)), begun, release)
}

const HELD: &str = "GET /held HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn four_hundred_idle_connections_leave_the_server_reachable() {
    assert!(raise_open_files_limit() >= 1_000, "this test needs open files");
    let server = Server::start(generous(40), hello()).await;
    let mut idle = Vec::new();
    for number in 0..400 {
        // Half of them begin a header that never ends.
        idle.push(server.send(if number % 2 == 0 { "" } else { "GET / HTTP/1.1\r\nhost:" }).await);
    }
    for _ in 0..50 {
        assert!(server.get("/").await.ends_with("hello"));
    }
    assert!(server.connections.count() <= 40);
    drop(idle);
    server.until_open(0).await;
}

#[tokio::test]
async fn a_header_that_does_not_come_ends_the_connection() {
    let server = Server::start(Limits { header_timeout: SHORT, ..generous(10) }, hello()).await;
    for begun in ["", "GET / HT", "GET / HTTP/1.1\r\nhost: x\r\n"] {
        assert_eq!(read_rest(server.send(begun).await).await, "", "{begun}");
    }
    // A client that sends one line at a time is disconnected, too.
    let mut trickling = server.send("GET / HTTP/1.1\r\n").await;
    let lines = async {
        while trickling.write_all(b"x: y\r\n").await.is_ok() {
            sleep(SHORT / 10).await;
        }
    };
    timeout(LONG, lines).await.unwrap();
    // A kept-alive connection is closed after its response.
    let kept = read_rest(server.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n").await).await;
    assert!(kept.starts_with("HTTP/1.1 200") && kept.ends_with("hello"), "{kept}");
}

#[tokio::test]
async fn a_header_that_is_too_large_is_answered_431_with_a_code() {
    let server = Server::start(generous(10), hello()).await;
    let asked = |fields: &[String]| format!("GET / HTTP/1.1\r\nhost: x\r\n{}\r\n", fields.concat());
    let many = |count: usize| (0..count).map(|n| format!("x-{n}: y\r\n")).collect::<Vec<_>>();
    let long = |bytes: usize| vec![format!("x: {}\r\n", "y".repeat(bytes))];
    for fields in [many(100), many(399), long(64 * 1024), long(100 * 1024)] {
        let refused = read_rest(server.send(&asked(&fields)).await).await;
        assert!(refused.starts_with("HTTP/1.1 431 ") && refused.contains("connection: close"), "{refused}");
        let body: serde_json::Value =
            serde_json::from_str(refused.split_once("\r\n\r\n").unwrap().1).unwrap();
        assert_eq!(body["code"], bench_domain::Code::HeadersTooLarge.as_str());
    }
    // Requests at the limits, including `host` and `connection`, and with the longest path.
    let last = |fields: Vec<String>| [fields, vec!["connection: close\r\n".to_owned()]].concat();
    let path = "p".repeat(65_000);
    for ask in [
        asked(&last(many(98))),
        asked(&last(long(64 * 1024 - 100))),
        asked(&last(long(60_000))).replacen("GET /", &format!("GET /?{path}"), 1),
    ] {
        let taken = read_rest(server.send(&ask).await).await;
        assert!(taken.starts_with("HTTP/1.1 200"), "{taken}");
    }
}

#[tokio::test]
async fn a_request_with_two_host_headers_is_answered_400() {
    let server = Server::start(generous(10), hello()).await;
    for hosts in ["host: x\r\nhost: y\r\n", "host: x\r\nHost: x\r\n"] {
        let refused = read_rest(server.send(&format!("GET / HTTP/1.1\r\n{hosts}\r\n")).await).await;
        assert!(refused.starts_with("HTTP/1.1 400 ") && refused.contains("connection: close"), "{refused}");
        let body: serde_json::Value =
            serde_json::from_str(refused.split_once("\r\n\r\n").unwrap().1).unwrap();
        assert_eq!(body["code"], bench_domain::Code::InvalidRequest.as_str());
    }
}

async fn take_permit(State(permits): State<Arc<Semaphore>>, request: Request) -> axum::response::Response {
    let _permit = permits.acquire().await.unwrap();
    match to_bytes(request.into_body(), usize::MAX).await {
        Ok(bytes) => bytes.len().to_string().into_response(),
        Err(_) => StatusCode::BAD_REQUEST.into_response(),
    }
}

const UPLOAD: &str = "POST /take HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\nabc";

#[tokio::test]
async fn a_body_that_stalls_is_answered_408_and_its_permit_is_free() {
    let permits = Arc::new(Semaphore::new(1));
    let router = Router::new().route("/take", post(take_permit)).with_state(Arc::clone(&permits));
    let limits = Limits { body_stall_timeout: SHORT, ..generous(10) };
    let server = Server::start(limits, router).await;
    let stalled = server.send(UPLOAD).await;
    let after =
        server.send("POST /take HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 3\r\n\r\nabc");
    let (first, second) = tokio::join!(read_rest(stalled), async { read_rest(after.await).await });
    assert!(first.starts_with("HTTP/1.1 408 ") && first.contains("connection: close"), "{first}");
    let body: serde_json::Value = serde_json::from_str(first.split_once("\r\n\r\n").unwrap().1).unwrap();
    let expected = serde_json::json!({
        "detail": "the request body did not arrive in time", "code": bench_domain::Code::BodyTimeout,
    });
    assert_eq!(body, expected);
    assert!(second.ends_with("\r\n\r\n3"), "{second}");
    assert_eq!(permits.available_permits(), 1);
}

#[tokio::test]
async fn a_body_that_trickles_is_answered_408() {
    let router = Router::new().route("/take", post(take_permit)).with_state(Arc::new(Semaphore::new(9)));
    for limits in [
        Limits { body_stall_timeout: SHORT, body_bytes_per_second_min: 1 << 20, ..generous(10) },
        Limits { body_timeout: SHORT, ..generous(10) },
    ] {
        let server = Server::start(limits, router.clone()).await;
        let (read, mut write) = server.send(UPLOAD).await.into_split();
        let trickle = tokio::spawn(async move {
            while write.write_all(b"x").await.is_ok() {
                sleep(SHORT / 20).await;
            }
        });
        let mut answer = vec![0; 12];
        let mut read = read;
        timeout(LONG, read.read_exact(&mut answer)).await.unwrap().unwrap();
        assert_eq!(answer, b"HTTP/1.1 408");
        trickle.abort();
    }
}

#[tokio::test]
async fn the_time_of_a_slow_handler_is_not_the_bodys() {
    let reads_late = |request: Request| async move {
        sleep(3 * SHORT).await;
        to_bytes(request.into_body(), usize::MAX).await.unwrap().len().to_string()
    };
    let limits = Limits { body_stall_timeout: SHORT, body_timeout: SHORT, ..generous(10) };
    let server = Server::start(limits, Router::new().route("/take", post(reads_late))).await;
    let whole = "POST /take HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 3\r\n\r\nabc";
    let answer = read_rest(server.send(whole).await).await;
    assert!(answer.ends_with("\r\n\r\n3"), "{answer}");
}

#[tokio::test]
async fn busy_connections_stay_and_a_further_one_is_refused_at_once() {
    let (router, begun, release) = holding();
    let server = Server::start(generous(2), router).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        held.push(server.send(HELD).await);
        begun.notified().await;
    }
    let refused = server.get("/").await;
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("retry-after: 1"), "{refused}");
    let (head, body) = refused.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("content-length: {}", body.len())), "{refused}");
    let code = serde_json::from_str::<serde_json::Value>(body).unwrap()["code"].clone();
    assert_eq!(code, bench_domain::Code::ServerBusy.as_str());
    release.add_permits(2);
    for held in held {
        assert!(read_rest(held).await.ends_with("held"));
    }
    assert!(server.get("/").await.ends_with("hello"));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn one_address_does_not_take_all_connections() {
    let (router, begun, release) = holding();
    let limits = Limits { connections_from_loopback_max: 2, ..generous(10) };
    let server = Server::start(
        limits,
        router.route(
            "/me",
            get(|ConnectInfo(peer): ConnectInfo<SocketAddr>| async move { peer.ip().to_string() }),
        ),
    )
    .await;
    let mut held = Vec::new();
    for _ in 0..2 {
        held.push(server.send(HELD).await);
        begun.notified().await;
    }
    assert!(server.get("/").await.starts_with("HTTP/1.1 503 "));
    let other = TcpSocket::new_v4().unwrap();
    other.bind((Ipv4Addr::new(127, 0, 0, 2), 0).into()).unwrap();
    let mut other = other.connect(server.address).await.unwrap();
    other.write_all(b"GET /me HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    assert!(read_rest(other).await.ends_with("127.0.0.2"));
    release.add_permits(2);
}

#[tokio::test]
async fn a_response_that_is_not_read_ends_and_one_that_takes_long_does_not() {
    let asked = Arc::new(Notify::new());
    let begun = Arc::clone(&asked);
    let endless = move || async move {
        begun.notify_one();
        let chunk = Bytes::from(vec![b'x'; 1 << 20]);
        Body::from_stream(futures(chunk))
    };
    let slow = || async {
        sleep(4 * SHORT).await;
        "slow"
    };
    let router = Router::new().route("/endless", get(endless)).route("/slow", get(slow));
    let limits = Limits {
        header_timeout: SHORT,
        body_stall_timeout: SHORT,
        response_stall_timeout: SHORT,
        ..generous(10)
    };
    let server = Server::start(limits, router).await;
    let unread = server.send("GET /endless HTTP/1.1\r\nhost: x\r\n\r\n").await;
    tokio::time::timeout(Duration::from_secs(120), asked.notified()).await.expect("it isn't asked");
    server.until_open(0).await;
    drop(unread);
    assert!(server.get("/slow").await.ends_with("slow"));
}

/// Repeats the same chunk forever.
fn futures(chunk: Bytes) -> impl futures_util::Stream<Item = Result<Bytes, std::io::Error>> {
    futures_util::stream::repeat_with(move || Ok(chunk.clone()))
}

#[tokio::test]
async fn stopping_closes_idle_connections_and_lets_requests_end() {
    let (router, begun, release) = holding();
    let mut server = Server::start(generous(10), router).await;
    let idle = server.connect().await;
    let kept = server.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let held = server.send(HELD).await;
    begun.notified().await;
    server.until_open(3).await;
    server.stop.take().unwrap().send(()).unwrap();
    assert_eq!(read_rest(idle).await, "");
    assert!(read_rest(kept).await.ends_with("hello"));
    assert!(!server.task.is_finished());
    release.add_permits(1);
    assert!(read_rest(held).await.ends_with("held"));
    timeout(LONG, &mut server.task).await.unwrap().unwrap();
    TcpStream::connect(server.address).await.unwrap_err();
}

#[test]
fn connections_leave_open_files_to_the_rest() {
    for (asked, open_files, others, expected) in [
        (None, 65_536, 16, 1_024),
        (Some(5_000), 65_536, 16, 5_000),
        (None, 1_024, 16, 376),
        (Some(5_000), 1_024, 16, 376),
        (None, 65_536, 2_000, 1_024),
        (None, 256, 16, 16),
    ] {
        let limits = Limits::for_open_files(asked, open_files, others);
        assert_eq!(limits.connections_max, expected, "{asked:?} {open_files}");
        assert!(limits.connections_per_address_max >= 1);
        assert!(limits.connections_from_loopback_max <= limits.connections_max);
    }
    // Seventy-five people watch a run, each in a browser tab.
    assert!(Limits::default().connections_per_address_max > 75);
}
