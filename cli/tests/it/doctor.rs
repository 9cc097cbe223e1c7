//! `bench doctor`, against test servers.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use crate::serve::Server;
use crate::support::{CommandOutput, TestDir};

const KEY: &str = "sk-doctor-4711";
const TOKEN: &str = "hf_doctor_4711";

/// First line and key of a request.
type RecordedRequest = (String, Option<String>);
/// Status, `Date` header and body of a response.
type StubResponse = (u16, String, &'static str);

/// Server that acts as the hub and as every provider.
struct StubServer {
    address: String,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
}

impl StubServer {
    fn start(answer: impl Fn(&RecordedRequest) -> StubResponse + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (recorded, answer) = (Arc::clone(&requests), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (recorded, answer) = (Arc::clone(&recorded), Arc::clone(&answer));
                std::thread::spawn(move || serve(stream, &recorded, answer.as_ref()));
            }
        });
        Self { address, requests }
    }

    /// Runs `bench doctor` with this server as its hub and as two providers with keys.
    fn doctor(&self, dir: &TestDir, args: &[&str]) -> CommandOutput {
        let mut command = dir.command(&[&["doctor"], args].concat());
        let base = format!("{}/v1", self.address);
        command
            .env_remove("HF_HUB_OFFLINE")
            .env("HF_ENDPOINT", &self.address)
            .env("HF_TOKEN", TOKEN)
            .env("CHUTES_API_KEY", KEY)
            .env("CHUTES_API_BASE_URL", &base)
            .env("CHUTES_MODELS_API_URL", &self.address)
            .env("OPENAI_COMPATIBLE_API_KEY", KEY)
            .env("OPENAI_COMPATIBLE_BASE_URL", &base);
        CommandOutput::new(&command.output().unwrap())
    }
}

fn serve(
    mut stream: TcpStream,
    recorded: &Mutex<Vec<RecordedRequest>>,
    answer: &impl Fn(&RecordedRequest) -> StubResponse,
) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    let Some(first) = lines.next() else { return };
    let headers: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let key = headers.iter().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("authorization").then(|| value.to_owned())
    });
    let request = (first, key);
    let (status, date, body) = answer(&request);
    recorded.lock().unwrap().push(request.clone());
    let head = format!(
        "HTTP/1.1 {status} X\r\ndate: {date}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let body = if request.0.starts_with("HEAD ") { "" } else { body };
    let _ = stream.write_all(format!("{head}{body}").as_bytes());
}

/// Formats the time in this number of seconds from now as a `Date` header.
fn date(seconds: i64) -> String {
    let time = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(seconds);
    time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// Responds like a hub and providers that accept the keys.
fn accept_keys((first, key): &RecordedRequest) -> StubResponse {
    let is_right = [KEY, TOKEN].iter().any(|right| key.as_deref() == Some(&format!("Bearer {right}")));
    match first.split(' ').nth(1).unwrap_or_default() {
        "/v1/models" if is_right => (200, date(0), r#"{"data":[{"id":"a"},{"id":"b"}]}"#),
        _ if is_right || first.starts_with("HEAD ") => (200, date(0), "{}"),
        _ => (401, date(0), "{}"),
    }
}

/// Checks the exit code and that problems have fixes, and returns a lookup of checks by name.
fn checks(output: &CommandOutput) -> impl Fn(&str) -> Value + use<> {
    let report: Value = serde_json::from_str(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", output.stdout, output.stderr));
    let all = report["checks"].as_array().unwrap().clone();
    let has_problem = all.iter().any(|check| check["status"] == "problem");
    assert_eq!(output.code, i32::from(has_problem), "{}", output.stdout);
    for check in &all {
        let needs_fix = !["ok", "skipped"].contains(&check["status"].as_str().unwrap());
        assert_eq!(check["fix"].is_string(), needs_fix, "{check}");
    }
    move |name| all.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no {name}")).clone()
}

#[track_caller]
fn expect(check: &Value, status: &str, part: &str) {
    let fact = check["fact"].as_str().unwrap();
    assert!(check["status"] == status && fact.contains(part), "{status}, {part}: {check}");
}

#[test]
fn nothing_needs_to_be_set_and_nothing_is_made() {
    let dir = TestDir::new();
    let output = dir.bench(&["doctor", "--offline", "--json"]);
    let check = checks(&output);
    expect(&check("data-directory"), "ok", "(the first run creates it)");
    expect(&check("hub"), "skipped", "huggingface.co");
    expect(&check("hub-token"), "not-set-up", "HF_TOKEN is not set");
    expect(&check("provider-chutes"), "not-set-up", "CHUTES_API_KEY is not set");
    expect(&check("provider-openai-compatible"), "not-set-up", "OPENAI_COMPATIBLE_BASE_URL is not set");
    expect(&check("provider-lmstudio"), "skipped", "127.0.0.1:1234");
    expect(&check("clock"), "skipped", "no server was asked");
    for name in
        ["disk", "sandboxes", "python", "languages", "tau2", "memory", "open-files", "container-engine"]
    {
        check(name);
    }
    assert!(!dir.path("data").exists() && !dir.path("home").exists());

    let output = dir.bench(&["doctor", "--offline"]);
    let version = dir.bench(&["--version"]).stdout;
    assert!(output.stdout.starts_with(&version), "{}", output.stdout);
    assert!(
        output.stdout.contains("\ndata directory ") && output.stdout.contains("not set up: hub token: "),
        "{}",
        output.stdout
    );
}

#[test]
fn hub_and_providers_that_accept_their_keys_are_ok() {
    let (dir, server) = (TestDir::new(), StubServer::start(accept_keys));
    let output = server.doctor(&dir, &["--json"]);
    let check = checks(&output);
    let host = server.address.trim_start_matches("http://");
    expect(&check("hub"), "ok", host);
    expect(&check("hub-token"), "ok", "HF_TOKEN is accepted");
    expect(&check("provider-chutes"), "ok", "accepts the key; models: 2");
    expect(&check("provider-openai-compatible"), "ok", "accepts the key; models: 2");
    expect(&check("clock"), "ok", host);
    let requests = server.requests.lock().unwrap();
    assert!(
        requests.iter().all(|(line, _)| line.starts_with("GET ") || line.starts_with("HEAD ")),
        "{requests:?}"
    );
    // Both providers list their models once with the key.
    let is_list = |line: &str| line.starts_with("GET /v1/models ");
    let right = Some(format!("Bearer {KEY}"));
    assert_eq!(
        requests.iter().filter(|(line, key)| is_list(line) && *key == right).count(),
        2,
        "{requests:?}"
    );
    let to_hub = requests.iter().filter(|(line, _)| line.contains("/api/datasets/"));
    assert!(
        to_hub.clone().count() == 1
            && to_hub.clone().all(|(_, key)| key.as_deref() == Some(&format!("Bearer {TOKEN}")))
    );
    assert!(requests.iter().filter(|(line, _)| line.starts_with("HEAD ")).all(|(_, key)| key.is_none()));
    assert!(!(output.stdout.clone() + &output.stderr).contains("4711"));
}

#[test]
fn refused_keys_are_problems_and_are_not_shown() {
    let dir = TestDir::new();
    let server = StubServer::start(|_| {
        (401, date(0), r#"{"error":{"message":"bad key sk-doctor-4711 hf_doctor_4711"}}"#)
    });
    let output = server.doctor(&dir, &["--json"]);
    assert_eq!(output.code, 1, "{}", output.stdout);
    let check = checks(&output);
    expect(&check("hub"), "ok", "127.0.0.1");
    expect(&check("hub-token"), "problem", "HF_TOKEN is refused");
    expect(&check("provider-chutes"), "problem", "refuses the key in CHUTES_API_KEY");
    expect(&check("provider-openai-compatible"), "problem", "OPENAI_COMPATIBLE_API_KEY");
    assert!(!(output.stdout.clone() + &output.stderr).contains("4711"), "{}", output.stdout);
}

#[test]
fn a_server_that_hands_its_list_to_everyone_confirms_no_key() {
    let dir = TestDir::new();
    let server = StubServer::start(|_| (200, date(0), r#"{"data":[]}"#));
    let output = server.doctor(&dir, &["--json"]);
    let check = checks(&output);
    expect(&check("provider-openai-compatible"), "ok", "accepts any key; models: 0");
}

#[test]
fn a_server_without_a_list_of_models_is_a_warning() {
    let dir = TestDir::new();
    for status in [404, 405] {
        let server = StubServer::start(move |(line, _)| match line.contains("/v1/models") {
            true => (status, date(0), "{}"),
            false => (200, date(0), "{}"),
        });
        let check = checks(&server.doctor(&dir, &["--json"]));
        for name in ["provider-chutes", "provider-openai-compatible"] {
            expect(&check(name), "warning", "lists no models; requests may still work");
        }
    }
}

#[test]
fn advice_depends_on_what_a_server_answers() {
    let dir = TestDir::new();
    for (status, body, hub_status, fix) in [
        (302, "", "problem", "to the address that it redirects to"),
        (500, "oops", "problem", "try again later"),
        (200, "<html>", "warning", "is the address of the API"),
    ] {
        let server = StubServer::start(move |_| (status, date(0), body));
        let output = server.doctor(&dir, &["--json"]);
        let check = checks(&output);
        let found = check("provider-openai-compatible");
        assert_eq!(found["status"], "problem", "{found}");
        assert!(found["fix"].as_str().unwrap().contains(fix), "{fix}: {found}");
        let hub = check("hub");
        assert_eq!(hub["status"], hub_status, "{hub}");
        assert!(hub["fact"].as_str().unwrap().matches(&status.to_string()).count() <= 1, "{hub}");

        let mut command = dir.command(&["doctor", "--json"]);
        let output =
            command.env("SANDY_BASE_URL", &server.address).env("SANDY_API_KEY", "k").output().unwrap();
        let found = checks(&CommandOutput::new(&output))("sandboxes");
        let fix = match status {
            200 => "is the address of a sandbox service",
            _ => fix,
        };
        assert!(
            found["status"] == "problem" && found["fix"].as_str().unwrap().contains(fix),
            "{fix}: {found}"
        );
    }
    let mut command = dir.command(&["doctor", "--json"]);
    let output = command.env("SANDY_BASE_URL", "http://127.0.0.1:9").output().unwrap();
    expect(&checks(&CommandOutput::new(&output))("sandboxes"), "problem", "SANDY_API_KEY is not set");
}

#[test]
fn a_clock_that_is_minutes_off_is_a_problem() {
    let dir = TestDir::new();
    for (seconds, status, fact) in
        [(-600, "problem", "ahead of"), (600, "problem", "behind"), (-60, "warning", "ahead of")]
    {
        let server =
            StubServer::start(move |request| (accept_keys(request).0, date(seconds), accept_keys(request).2));
        let output = server.doctor(&dir, &["--json"]);
        expect(&checks(&output)("clock"), status, fact);
    }
    let server = StubServer::start(|request| (accept_keys(request).0, date(-600), accept_keys(request).2));
    let output = server.doctor(&dir, &[]);
    assert_eq!(output.code, 1, "{}", output.stdout);
    assert!(output.stdout.contains("\nproblem: clock: set it by NTP"), "{}", output.stdout);
}

#[test]
fn servers_that_keep_silent_end_as_problems() {
    let dir = TestDir::new();
    // A check without a time limit would find a server that answers.
    let server = StubServer::start(|request| {
        std::thread::sleep(Duration::from_secs(600));
        accept_keys(request)
    });
    let output = server.doctor(&dir, &["--json"]);
    let check = checks(&output);
    for name in ["hub", "provider-chutes", "provider-openai-compatible"] {
        assert_eq!(check(name)["status"], "problem", "{}", check(name));
    }
    expect(&check("clock"), "skipped", "could be reached");
    expect(&check("hub-token"), "skipped", "HF_TOKEN is set");
}

#[test]
fn settings_that_cannot_be_used_are_findings() {
    let dir = TestDir::new();
    let doctor = |name: &str, value: &str| {
        let mut command = dir.command(&["doctor", "--json", "--offline"]);
        CommandOutput::new(&command.env(name, value).output().unwrap())
    };
    for (variable, value, name) in [
        ("HF_ENDPOINT", "nonsense", "hub"),
        ("CHUTES_API_BASE_URL", "nonsense", "providers"),
        ("BENCH_SANDBOX_SLOTS", "0", "sandboxes"),
        ("SANDY_BASE_URL", "nonsense", "sandboxes"),
        ("BENCH_SANDBOX_PYTHON", "/etc", "python"),
    ] {
        let output = doctor(variable, value);
        let found = checks(&output)(name);
        assert_eq!(found["status"], "problem", "{variable}: {found}");
        if variable != "BENCH_SANDBOX_PYTHON" {
            expect(&found, "problem", variable);
        }
    }
    let check = checks(&doctor("SANDY_BASE_URL", "http://sandy.example"));
    expect(&check("sandboxes"), "skipped", "sandy.example");
    expect(&check("python"), "skipped", "the sandbox service has its own");
    expect(&check("languages"), "skipped", "the sandbox service has its own");
    expect(&check("tau2"), "skipped", "the sandbox service has its own");
}

#[test]
fn a_data_directory_that_cannot_be_used_is_a_problem() {
    let dir = TestDir::new();
    dir.write("data", "a file");
    let output = dir.bench(&["doctor", "--offline", "--json"]);
    assert_eq!(output.code, 1, "{}", output.stdout);
    expect(&checks(&output)("data-directory"), "problem", "not a directory");
    let mut command = dir.command(&["doctor", "--offline", "--json"]);
    let output = CommandOutput::new(&command.env_remove("HOME").env_remove("BENCH_HOME").output().unwrap());
    expect(&checks(&output)("data-directory"), "problem", "no home directory");
}

#[test]
fn a_server_that_uses_the_data_directory_is_named_and_keeps_running() {
    let dir = TestDir::new();
    let _server = Server::start(&dir, &[]);
    let output = dir.bench(&["doctor", "--offline", "--json"]);
    expect(&checks(&output)("data-directory"), "ok", "(in use by process ");
    assert_eq!(dir.bench(&["runs"]).code, 0);
}
