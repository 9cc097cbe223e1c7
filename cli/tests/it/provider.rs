//! Requests to a model server: keys, settings, and refusals.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::support::{CommandOutput, TestDir, mmlu_pro_rows};

const KEY: &str = "sk-test-4711";

/// Request that the model server received.
pub(crate) struct RecordedRequest {
    pub(crate) path: String,
    pub(crate) authorization: Option<String>,
    pub(crate) body: Value,
}

/// Starts a model server that answers every question with C, or rejects every key.
pub(crate) fn model_server(status: u16) -> (String, Arc<Mutex<Vec<RecordedRequest>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&requests);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let recorded = Arc::clone(&recorded);
            std::thread::spawn(move || answer(stream, status, &recorded));
        }
    });
    (address, requests)
}

fn answer(stream: TcpStream, status: u16, recorded: &Mutex<Vec<RecordedRequest>>) {
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
    recorded.lock().unwrap().push(RecordedRequest { path, authorization, body });
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

fn run(dir: &TestDir, address: &str) -> CommandOutput {
    dir.write("items.jsonl", mmlu_pro_rows(5));
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
    CommandOutput::new(&dir.command(&args).env("TEST_KEY", KEY).output().unwrap())
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
    let dir = TestDir::new();
    let (address, requests) = model_server(200);
    let output = run(&dir, &address);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let value: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(
        (&value[0]["score"], &value[0]["model"]),
        (&1.0.into(), &"openai-compatible/test-model".into())
    );
    let result = &value[0]["results"][0];
    assert_eq!((&result["input_tokens"], &result["output_tokens"]), (&35.into(), &25.into()));
    let requests = requests.lock().unwrap();
    let asked: Vec<&RecordedRequest> =
        requests.iter().filter(|request| request.path == "/v1/chat/completions").collect();
    assert_eq!(asked.len(), 5);
    for request in asked {
        assert_eq!(request.authorization.as_deref(), Some("Bearer sk-test-4711"));
        assert_eq!(
            (&request.body["model"], &request.body["temperature"]),
            (&"test-model".into(), &0.5.into())
        );
    }
    // The key is neither in the output, nor in the results, nor in the data directory.
    assert!(!output.stdout.contains(KEY) && !output.stderr.contains(KEY));
    assert!(
        !occurs(&dir.path("data"), KEY.as_bytes()) && !occurs(&dir.path("bench-results"), KEY.as_bytes())
    );
}

#[test]
fn a_refused_key_fails_the_run_with_its_cause() {
    let dir = TestDir::new();
    let (address, requests) = model_server(401);
    let output = run(&dir, &address);
    assert_eq!(output.code, 1, "{}{}", output.stdout, output.stderr);
    let value: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(value[0]["status"], "failed");
    assert!(output.stderr.contains("401"), "{}", output.stderr);
    assert!(!output.stderr.contains(KEY) && !output.stdout.contains(KEY));
    assert!(!requests.lock().unwrap().is_empty());
    // The key isn't kept: users who requeue the run must give it again.
    let id = value[0]["id"].as_str().unwrap();
    let again = dir.bench(&["requeue", id]);
    assert_eq!(again.code, 1, "{}", again.stderr);
    assert!(again.stderr.to_lowercase().contains("key"), "{}", again.stderr);
}
