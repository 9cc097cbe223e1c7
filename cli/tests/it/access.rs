//! `bench access`, and servers that listen on other addresses than the default one.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use serde_json::json;

use crate::serve::Server;
use crate::support::{CommandOutput, TestDir};

const ORDER: [&str; 10] = [
    "run",
    "--model",
    "oracle",
    "--benchmark",
    "mmlu_pro",
    "--demo",
    "--subset-count",
    "2",
    "--samples",
    "1",
];

/// Sends a request over a plain connection, and returns status and body of the response.
fn ask(server: &Server, method: &str, path: &str, host: &str, headers: &str, body: &str) -> (u16, String) {
    let at = server.address.strip_prefix("http://").unwrap().replace("0.0.0.0", "127.0.0.1");
    let mut stream = TcpStream::connect(at).unwrap();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/json\r\n{headers}\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
}

#[test]
fn tokens_of_this_machine_order_at_its_exposed_server_until_they_are_revoked() {
    let dir = TestDir::new();
    let list = |json: bool| dir.bench(if json { &["access", "list", "--json"] } else { &["access"] });
    assert!(list(false).stderr.contains("There are no entries"));
    let made = dir.bench(&["access", "create", "ci", "--oracle", "--expires", "30d"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let token = made.stdout.trim().to_owned();
    assert!(
        token.starts_with("bra_") && made.stderr.contains("not shown again"),
        "{} {}",
        made.stdout,
        made.stderr
    );
    dir.bench(&["access", "create", "ci"]).assert_refused(1, "an entry named `ci` exists");
    let plain = dir.json(&["access", "create", "plain", "--json"]);
    let keyed =
        |args: &[&str]| CommandOutput::new(&dir.command(args).env("CALLER", "sk-ann-key").output().unwrap());
    assert_eq!(
        keyed(&["access", "create", "ann", "--key-env", "CALLER", "--gated"]).stdout.trim(),
        "Added the key of ann"
    );
    dir.bench(&["access", "create", "bob", "--key-env", "NOT_SET"]).assert_refused(2, "--key-env");
    let shown = list(false).stdout;
    assert!(
        ["ci", "plain", "ann", "oracle", "gated", "never"].iter().all(|part| shown.contains(part)),
        "{shown}"
    );
    assert!(!shown.contains(&token) && !shown.contains("sk-ann-key"));
    let entries: serde_json::Value = serde_json::from_str(&list(true).stdout).unwrap();
    assert_eq!((&entries[0]["kind"], &entries[2]["kind"]), (&json!("token"), &json!("key")));

    let server = Server::start_with(&dir, &["--host", "0.0.0.0"], &[("ADMIN_SECRET", "hush")]);
    let address = server.address.replace("0.0.0.0", "127.0.0.1");
    let elsewhere = TestDir::new();
    let with = |args: &[&str], vars: &[(&str, &str)]| {
        let mut command: Command = elsewhere.command(&[args, &["--server", &address]].concat());
        command.envs(vars.iter().copied());
        CommandOutput::new(&command.output().unwrap())
    };
    let made = with(&ORDER, &[("BENCH_API_KEY", &token)]);
    assert_eq!(made.code, 0, "{}{}", made.stdout, made.stderr);
    with(&ORDER, &[("BENCH_API_KEY", plain["token"].as_str().unwrap())])
        .assert_refused(1, "admins and listed callers");
    with(&ORDER, &[("BENCH_API_KEY", "made-up")]).assert_refused(1, "admins and listed callers");
    let admin = [("BENCH_ADMIN_SECRET", "hush"), ("BENCH_API_KEY", token.as_str())];
    let revoked = with(&["access", "revoke", "ci"], &admin);
    assert_eq!((revoked.code, revoked.stdout.trim()), (0, "Revoked ci"), "{}", revoked.stderr);
    with(&ORDER, &[("BENCH_API_KEY", &token)]).assert_refused(1, "revoked");
    with(&["access", "revoke", "ci"], &admin).assert_refused(1, "not found");
    // Beside the server, its data directory's user needs no secret.
    let beside = dir.bench(&["access", "create", "beside", "--oracle"]);
    let token = [("BENCH_API_KEY", beside.stdout.trim())];
    assert_eq!(with(&ORDER, &token).code, 0, "{}", beside.stderr);
    assert_eq!(dir.bench(&["access", "revoke", "beside"]).code, 0);
    with(&ORDER, &token).assert_refused(1, "revoked");
    with(&["access", "list"], &[("BENCH_ADMIN_SECRET", "guess")]).assert_refused(1, "invalid admin secret");
    let output = with(&["access", "list"], &[]);
    assert!(
        output.stderr.contains("\nhint: ") && output.stderr.contains("BENCH_ADMIN_SECRET"),
        "{}",
        output.stderr
    );
}

#[test]
fn a_server_at_another_loopback_address_answers() {
    let dir = TestDir::new();
    let server = Server::start(&dir, &["--host", "127.0.0.2"]);
    let host = server.address.strip_prefix("http://").unwrap().to_owned();
    assert!(host.starts_with("127.0.0.2:"), "{host}");
    assert_eq!(ask(&server, "GET", "/api/health", &host, "", "").0, 200);
    let origin = format!("origin: http://{host}\r\n");
    let order =
        json!({ "model_id": "oracle", "selected_benchmarks": ["mmlu_pro"], "demo": true, "subset_count": 1 });
    let (status, body) = ask(&server, "POST", "/api/runs", &host, &origin, &order.to_string());
    assert_eq!(status, 201, "{body}");
    assert_eq!(ask(&server, "GET", "/api/health", "localhost", "", "").0, 200);
    for (host, headers) in [("evil.example", ""), (host.as_str(), "origin: http://evil.example\r\n")] {
        assert_eq!(ask(&server, "GET", "/api/health", host, headers, "").0, 403, "{host} {headers}");
    }
    let runs = dir.bench(&["runs", "--server", &server.address, "--json"]);
    assert!(runs.code == 0 && runs.stdout.contains("mmlu_pro"), "{}{}", runs.stdout, runs.stderr);
}
