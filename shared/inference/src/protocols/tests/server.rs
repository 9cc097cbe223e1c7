//! A server that answers each request through a callback, one connection each.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A received request.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) line: String,
    /// Headers by lowercase name.
    pub(super) headers: HashMap<String, String>,
    pub(super) body: String,
}

pub(super) struct Server {
    pub(super) address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Starts a server that runs until the test's process ends. `answer` gets the number of the request, from 0, and
    /// the request.
    pub(super) fn start(answer: impl Fn(usize, &Request) -> Vec<u8> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self { address: listener.local_addr().unwrap(), requests: Arc::default() };
        let requests = server.requests.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let Some(request) = read_request(&mut stream) else { continue };
                let number = requests.lock().unwrap().len();
                let response = answer(number, &request);
                requests.lock().unwrap().push(request);
                // A client closes the connection once it has read enough.
                let _ = stream.write_all(&response);
            }
        });
        server
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

fn read_request(stream: &mut TcpStream) -> Option<Request> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut piece).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&piece[..count]);
        let text = std::str::from_utf8(&bytes).unwrap();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let (line, headers) = head.split_once("\r\n").unwrap();
        let headers: HashMap<_, _> = headers
            .lines()
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            .collect();
        let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
        if body.len() >= length {
            return Some(Request { line: line.to_owned(), headers, body: body.to_owned() });
        }
    }
}

/// Returns a response with the protocol's header for ids.
pub(super) fn response(status: u16, body: &str) -> Vec<u8> {
    with_type(status, "application/json", body)
}

/// Returns a stream of lines.
pub(super) fn stream(lines: &str) -> Vec<u8> {
    with_type(200, "application/x-ndjson", lines)
}

fn with_type(status: u16, content_type: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} S\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n\
         x-relay-trace: trace-1\r\nconnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}
