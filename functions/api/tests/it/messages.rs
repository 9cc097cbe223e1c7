//! Every refusal of the API as its callers read it, compared with `messages.txt`.
//!
//! `BENCH_WRITE_MESSAGES=1` rewrites the file: read the difference as a user would before you commit it. Problems of
//! fields follow the wording of the compatible system ("Input should be …"), as do the sentences that its clients know
//! ("Run not found"). All others are lower case, without a final period, and say what to do.

mod fields;
mod operators;
mod orders;
mod requests;
mod runs;
mod sign_in;
mod tasks;

use std::collections::BTreeSet;

use axum::body::Body;
use bench_domain::Code;
use serde_json::{Value, json};

use crate::server::{Reply, Server};

const JSON: (&str, &str) = ("content-type", "application/json");
const ADMIN: (&str, &str) = ("x-admin-secret", "hush");
const KEY: (&str, &str) = ("authorization", "Bearer sk-caller");
/// Maximum length of a value that a line shows, in characters.
const SHOWN_CHARS_MAX: usize = 60;

/// Codes of refusals that this router doesn't give, or not when a test asks for it.
const ELSEWHERE: [(Code, &str); 14] = [
    (Code::BodyTimeout, "the listener"),
    (Code::HeadersTooLarge, "the listener"),
    (Code::ServerBusy, "the listener, and exports"),
    (Code::SigningKeyInvalid, "exports"),
    (Code::UploadsNotOffered, "exports"),
    (Code::UploadNotFound, "exports"),
    (Code::UploadRateLimit, "exports"),
    (Code::NotSupported, "the sandbox host"),
    (Code::SandboxNotFound, "the sandbox host"),
    (Code::SandboxOverLimit, "the sandbox host"),
    (Code::FileConflict, "the sandbox host"),
    (Code::ConcurrentChange, "twenty lost races in a row"),
    (Code::InternalError, "a failure of a service"),
    (Code::ComparisonTooLarge, "runs of 300,000 samples"),
];

/// Refusals in the order in which they were recorded.
#[derive(Default)]
struct Recorder {
    text: String,
    codes: BTreeSet<Code>,
    /// Refused fields: path, then the field's location in the request.
    fields: BTreeSet<(String, String)>,
    /// Texts that differ between runs of this test, and the names that replace them.
    names: Vec<(String, &'static str)>,
}

impl Recorder {
    fn heading(&mut self, title: &str) {
        self.text.push_str(&format!("\n{title}\n"));
    }

    /// Replaces a text that differs between runs of this test.
    fn name(&mut self, text: impl ToString, name: &'static str) {
        self.names.push((text.to_string(), name));
    }

    fn normalize(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (found, name)| text.replace(found, name))
    }

    /// Sends a request without a body that must be refused.
    async fn send(&mut self, server: &Server, method: &str, path: &str, headers: &[(&str, &str)]) {
        let reply = server.ask(method, path, headers, Body::empty()).await;
        self.record(method, path, headers, "", &reply);
    }

    /// Sends a JSON body that must be refused. `shown` describes it.
    async fn post(
        &mut self,
        server: &Server,
        path: &str,
        headers: &[(&str, &str)],
        shown: &str,
        body: &Value,
    ) {
        let reply = server.order(path, headers, body).await;
        self.record("POST", path, headers, shown, &reply);
    }

    /// Sends a change that must be refused.
    async fn patch(&mut self, server: &Server, path: &str, headers: &[(&str, &str)], change: &Value) {
        let all: Vec<_> = headers.iter().copied().chain([JSON]).collect();
        let reply = server.ask("PATCH", path, &all, change.to_string()).await;
        self.record("PATCH", path, headers, &cut(&change.to_string()), &reply);
    }

    fn record(&mut self, method: &str, path: &str, headers: &[(&str, &str)], shown: &str, reply: &Reply) {
        assert!(reply.status.as_u16() >= 400, "{method} {path} {shown}: {}", reply.text);
        let code = reply.code().unwrap();
        self.codes.insert(code);
        let sent = headers.iter().filter(|header| **header != JSON);
        let sent: String = sent.map(|(name, value)| format!(" [{name}: {value}]")).collect();
        let shown = if shown.is_empty() { String::new() } else { format!(" {shown}") };
        let (route, query) = path.split_once('?').unwrap_or((path, ""));
        let query = if query.is_empty() { String::new() } else { format!("?{}", cut(query)) };
        let request = format!("{method} {route}{query}{sent}{shown} → {} {code}", reply.status.as_u16());
        let detail = reply.json()["detail"].clone();
        let lines = match &detail {
            Value::Array(problems) => problems.iter().map(|problem| self.problem(route, problem)).collect(),
            sentence => vec![match reply.json()["hint"].as_str() {
                Some(hint) => format!(": {} (hint: {hint})", sentence.as_str().unwrap()),
                None => format!(": {}", sentence.as_str().unwrap()),
            }],
        };
        for line in lines {
            let line = self.normalize(&format!("{request}{line}\n"));
            self.text.push_str(&line);
        }
    }

    /// Renders a problem of a field, with the cause of a JSON error.
    fn problem(&mut self, route: &str, problem: &Value) -> String {
        let location = problem["loc"].as_array().unwrap().iter().skip(1);
        let location = location.map(|part| part.as_str().map_or_else(|| part.to_string(), str::to_owned));
        let field = location.collect::<Vec<_>>().join(".");
        self.fields.insert((self.normalize(route), field.clone()));
        let message = problem["msg"].as_str().unwrap();
        let cause = match (&problem["type"], &problem["ctx"]["error"]) {
            (kind, Value::String(cause)) if kind == "json_invalid" => format!(" ({cause})"),
            _ => String::new(),
        };
        if field.is_empty() { format!(": {message}{cause}") } else { format!(" {field}: {message}{cause}") }
    }

    fn refuses(&self, route: &str, field: &str) -> bool {
        let is_field = |found: &str| found == field || found.starts_with(&format!("{field}."));
        self.fields.iter().any(|(path, found)| path == route && is_field(found))
    }
}

/// Cuts a text that is too long for a line.
fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}… ({} characters)", &text[..end], text.chars().count()),
        None => text.to_owned(),
    }
}

fn id(reply: &Reply) -> String {
    reply.json()["id"].as_str().unwrap_or_else(|| panic!("{}", reply.text)).to_owned()
}

/// Returns an order of the oracle for one benchmark with demo data, with these fields changed.
fn order(change: Value) -> Value {
    with(json!({ "model_id": "oracle", "selected_benchmarks": ["mmlu_pro"], "demo": true }), &change)
}

fn with(mut body: Value, change: &Value) -> Value {
    body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn every_refusal_is_as_written_down() {
    let mut recorder = Recorder::default();
    requests::record(&mut recorder).await;
    fields::record(&mut recorder).await;
    orders::record(&mut recorder).await;
    runs::record(&mut recorder).await;
    operators::record(&mut recorder).await;
    tasks::record(&mut recorder).await;
    sign_in::record(&mut recorder).await;

    let has_status = |code: &&Code| code.status().is_some();
    let missing: Vec<Code> = Code::ALL
        .iter()
        .filter(has_status)
        .filter(|code| !recorder.codes.contains(code) && ELSEWHERE.iter().all(|(other, _)| other != *code))
        .copied()
        .collect();
    assert_eq!(missing, [], "codes without a refusal here");
    let document = Server::local().await.get("/openapi.json").await.json();
    assert_eq!(fields::unrefused(&recorder, &document), [""; 0], "documented fields without a refusal here");

    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/messages.txt");
    let text = format!(
        "Refusals of the API: request → status code field: detail. Written by messages.rs, see there.\n\
         {}\n{}",
        fields::BODIES,
        recorder.text
    );
    if std::env::var_os("BENCH_WRITE_MESSAGES").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap();
    let (before, after): (Vec<&str>, Vec<&str>) = (written.lines().collect(), text.lines().collect());
    let gone = before.iter().filter(|line| !after.contains(line)).map(|line| format!("- {line}"));
    let new = after.iter().filter(|line| !before.contains(line)).map(|line| format!("+ {line}"));
    let difference = gone.chain(new).collect::<Vec<_>>().join("\n");
    assert!(written == text, "write messages.txt anew with BENCH_WRITE_MESSAGES=1:\n{difference}");
}
