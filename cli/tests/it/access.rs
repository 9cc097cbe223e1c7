//! `bench access`, and servers that listen on other addresses than the default one.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use serde_json::json;

use crate::serve::Server;
use crate::support::{Done, Place};

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
    let place = Place::new();
    let list = |json: bool| place.bench(if json { &["access", "list", "--json"] } else { &["access"] });
    assert!(list(false).err.contains("No caller is listed"));
    let made = place.bench(&["access", "create", "ci", "--oracle", "--expires", "30d"]);
    assert_eq!(made.code, 0, "{}", made.err);
    let token = made.out.trim().to_owned();
    assert!(token.starts_with("bra_") && made.err.contains("not shown again"), "{} {}", made.out, made.err);
    place.bench(&["access", "create", "ci"]).refused(1, "listed already");
    let plain = place.json(&["access", "create", "plain", "--json"]);
    let keyed = |args: &[&str]| Done::of(&place.command(args).env("CALLER", "sk-ann-key").output().unwrap());
    assert_eq!(
        keyed(&["access", "create", "ann", "--key-env", "CALLER", "--gated"]).out.trim(),
        "Listed the key of ann"
    );
    place.bench(&["access", "create", "bob", "--key-env", "NOT_SET"]).refused(2, "--key-env");
    let shown = list(false).out;
    assert!(
        ["ci", "plain", "ann", "oracle", "gated", "never"].iter().all(|part| shown.contains(part)),
        "{shown}"
    );
    assert!(!shown.contains(&token) && !shown.contains("sk-ann-key"));
    let entries: serde_json::Value = serde_json::from_str(&list(true).out).unwrap();
    assert_eq!((&entries[0]["kind"], &entries[2]["kind"]), (&json!("token"), &json!("key")));

    let server = Server::start_with(&place, &["--host", "0.0.0.0"], &[("ADMIN_SECRET", "hush")]);
    let address = server.address.replace("0.0.0.0", "127.0.0.1");
    let elsewhere = Place::new();
    let with = |args: &[&str], vars: &[(&str, &str)]| {
        let mut command: Command = elsewhere.command(&[args, &["--server", &address]].concat());
        command.envs(vars.iter().copied());
        Done::of(&command.output().unwrap())
    };
    let made = with(&ORDER, &[("BENCH_API_KEY", &token)]);
    assert_eq!(made.code, 0, "{}{}", made.out, made.err);
    with(&ORDER, &[("BENCH_API_KEY", plain["token"].as_str().unwrap())])
        .refused(1, "admins and listed callers");
    with(&ORDER, &[("BENCH_API_KEY", "made-up")]).refused(1, "admins and listed callers");
    let admin = [("BENCH_ADMIN_SECRET", "hush"), ("BENCH_API_KEY", token.as_str())];
    let revoked = with(&["access", "revoke", "ci"], &admin);
    assert_eq!((revoked.code, revoked.out.trim()), (0, "Revoked ci"), "{}", revoked.err);
    with(&ORDER, &[("BENCH_API_KEY", &token)]).refused(1, "revoked");
    with(&["access", "revoke", "ci"], &admin).refused(1, "not found");
    with(&["access", "list"], &[("BENCH_ADMIN_SECRET", "guess")]).refused(1, "Invalid admin secret");
    let done = with(&["access", "list"], &[]);
    assert!(done.err.contains("\nhint: ") && done.err.contains("BENCH_ADMIN_SECRET"), "{}", done.err);
}

#[test]
fn a_server_at_another_loopback_address_answers() {
    let place = Place::new();
    let server = Server::start(&place, &["--host", "127.0.0.2"]);
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
    let runs = place.bench(&["runs", "--server", &server.address, "--json"]);
    assert!(runs.code == 0 && runs.out.contains("mmlu_pro"), "{}{}", runs.out, runs.err);
}
