use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::support::{Done, Place, mmlu_items};

const KEY: &str = "sk-test-4711";

/// Contents of a request.
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) authorization: Option<String>,
    pub(crate) body: Value,
}

/// Starts a model server that answers every question with C, or rejects every key.
pub(crate) fn model_server(status: u16) -> (String, Arc<Mutex<Vec<Seen>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let noted = Arc::clone(&noted);
            std::thread::spawn(move || answer(stream, status, &noted));
        }
    });
    (address, seen)
}

fn answer(stream: TcpStream, status: u16, noted: &Mutex<Vec<Seen>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    let (mut path, mut authorization, mut length) = (String::new(), None, 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        match line.split_once(": ") {
            None => path = line.split(' ').nth(1).unwrap_or_default().to_owned(),
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.parse().unwrap()
            }
            Some((name, value)) if name.eq_ignore_ascii_case("authorization") => {
                authorization = Some(value.to_owned())
            }
            Some(_) => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let body = serde_json::from_slice(&body).unwrap_or_default();
    noted.lock().unwrap().push(Seen { path, authorization, body });
    let (kind, text) = match status {
        200 => (
            "text/event-stream",
            concat!(
                "data: {\"id\":\"r1\",\"model\":\"served\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"The answer is (C).\"},\"finish_reason\":\"stop\"}],",
                "\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":5}}\n\ndata: [DONE]\n\n"
            ),
        ),
        _ => ("application/json", "{\"error\":{\"message\":\"invalid api key\"}}"),
    };
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        text.len()
    );
    let _ = stream.write_all(format!("{head}{text}").as_bytes());
}

fn run(place: &Place, address: &str) -> Done {
    place.write("items.jsonl", mmlu_items(5));
    let args = [
        "run",
        "--model",
        "openai-compatible/test-model",
        "--base-url",
        address,
        "--benchmark",
        "mmlu_pro",
        "--dataset",
        "mmlu_pro=items.jsonl",
        "--api-key-env",
        "TEST_KEY",
        "--temperature",
        "0.5",
        "--max-tokens",
        "99",
        "--json",
    ];
    Done::of(&place.command(&args).env("TEST_KEY", KEY).output().unwrap())
}

/// Returns true if a text occurs anywhere below a folder.
fn occurs(folder: &std::path::Path, text: &[u8]) -> bool {
    std::fs::read_dir(folder).unwrap().map(Result::unwrap).any(|entry| {
        match entry.file_type().unwrap().is_dir() {
            true => occurs(&entry.path(), text),
            false => std::fs::read(entry.path()).unwrap().windows(text.len()).any(|window| window == text),
        }
    })
}

#[test]
fn a_model_server_is_asked_with_the_named_key_and_settings() {
    let place = Place::new();
    let (address, seen) = model_server(200);
    let done = run(&place, &address);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    let value: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(
        (&value[0]["score"], &value[0]["model"]),
        (&1.0.into(), &"openai-compatible/test-model".into())
    );
    let result = &value[0]["results"][0];
    assert_eq!((&result["input_tokens"], &result["output_tokens"]), (&35.into(), &25.into()));
    let seen = seen.lock().unwrap();
    let asked: Vec<&Seen> = seen.iter().filter(|seen| seen.path == "/v1/chat/completions").collect();
    assert_eq!(asked.len(), 5);
    for request in asked {
        assert_eq!(request.authorization.as_deref(), Some("Bearer sk-test-4711"));
        assert_eq!(
            (&request.body["model"], &request.body["temperature"]),
            (&"test-model".into(), &0.5.into())
        );
    }
    // The key is neither in the output, nor in the results, nor in the data directory.
    assert!(!done.out.contains(KEY) && !done.err.contains(KEY));
    assert!(
        !occurs(&place.path("data"), KEY.as_bytes()) && !occurs(&place.path("bench-results"), KEY.as_bytes())
    );
}

#[test]
fn a_refused_key_fails_the_run_with_its_cause() {
    let place = Place::new();
    let (address, seen) = model_server(401);
    let done = run(&place, &address);
    assert_eq!(done.code, 1, "{}{}", done.out, done.err);
    let value: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(value[0]["status"], "failed");
    assert!(done.err.contains("401"), "{}", done.err);
    assert!(!done.err.contains(KEY) && !done.out.contains(KEY));
    assert!(!seen.lock().unwrap().is_empty());
    // The key isn't kept: users who requeue the run must give it again.
    let id = value[0]["id"].as_str().unwrap();
    let again = place.bench(&["requeue", id]);
    assert_eq!(again.code, 1, "{}", again.err);
    assert!(again.err.to_lowercase().contains("key"), "{}", again.err);
}
