//! `bench serve`, and commands against a server.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::json;

use crate::support::{TestDir, vector_path};

/// Server that ends with the test.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    _out: BufReader<ChildStdout>,
}

impl Server {
    pub(crate) fn start(dir: &TestDir, more: &[&str]) -> Self {
        Self::start_with(dir, more, &[])
    }

    pub(crate) fn start_with(dir: &TestDir, more: &[&str], vars: &[(&str, &str)]) -> Self {
        let args = [&["serve", "--port", "0"], more].concat();
        let mut command = dir.command(&args);
        command.envs(vars.iter().copied());
        Self::spawn(command)
    }

    /// Starts a server with a command.
    fn spawn(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("Serving ").unwrap_or_else(|| panic!("{line:?}")).to_owned();
        Self { child, address, _out: out }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn every_command_works_against_a_server() {
    let server_dir = TestDir::new();
    let server = Server::start(&server_dir, &[]);
    let dir = TestDir::new();
    let at = ["--server", server.address.as_str()];
    let with = |args: &[&str]| [args, &at].concat().into_iter().map(str::to_owned).collect::<Vec<_>>();
    let json = |args: &[&str]| {
        let args = with(args);
        dir.json(&args.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let runs = json(&[
        "run",
        "--model",
        "oracle",
        "--benchmark",
        "mmlu_pro",
        "--demo",
        "--subset-count",
        "3",
        "--json",
    ]);
    assert_eq!((&runs[0]["status"], &runs[0]["files"]["verified"]), (&json!("succeeded"), &json!(true)));
    // Warnings are only about options that the user gave, not about those that the command adds.
    let one = ["run", "--model", "oracle", "--benchmark", "mmlu_pro", "--demo", "--item", "#0"];
    for more in [&[][..], &["--benchmark", "nope"]] {
        let args = with(&[&one[..], more].concat());
        let output = dir.bench(&args.iter().map(String::as_str).collect::<Vec<_>>());
        let left_out = "warning: unknown benchmarks are left out: nope";
        let warnings = if more.is_empty() { vec![] } else { vec![left_out] };
        assert_eq!(
            output.stderr.lines().filter(|line| line.starts_with("warning")).collect::<Vec<_>>(),
            warnings
        );
        assert!(output.code == 0 && output.stderr.contains(": oracle on mmlu_pro\n"), "{}", output.stderr);
    }
    let id = runs[0]["id"].as_str().unwrap();
    assert_eq!(json(&["runs", "--json"])[2]["id"], id);
    assert_eq!(json(&["runs", id, "--items", "--json"]).as_array().unwrap().len(), 3);
    assert_eq!(json(&["compare", id, id, "--json"])["benchmarks"][0]["items"], 3);
    assert!(json(&["benchmarks", "--json"]).as_array().unwrap().len() > 1);
    assert!(!json(&["models", "--json"]).as_array().unwrap().is_empty());
    assert_eq!(json(&["keys", "--json"])["keys"][0]["status"], "current");
    let overview = json(&["ops", "--json"]);
    assert_eq!(
        overview["queue_counts"],
        serde_json::json!({
            "queued": 0, "running": 0, "succeeded": 3, "failed": 0, "canceled": 0
        })
    );
    assert_eq!(overview["completed_runs"][2]["id"], id);
    assert!(overview["workers"].as_array().unwrap().len() <= 1, "{overview}");
    let shown = dir.bench(&with(&["ops"]).iter().map(String::as_str).collect::<Vec<_>>());
    assert!(
        shown.code == 0 && shown.stdout.contains("3 succeeded") && shown.stdout.contains(&id[..8]),
        "{}",
        shown.stderr
    );
    let zip = json(&["export", id, "--json"])["file"].as_str().unwrap().to_owned();
    assert_eq!(json(&["verify", &zip, "--json"])["valid"], true);
    assert_eq!(json(&["verify", &zip, "--here", "--json"])["valid"], true);
    // An archive that is too large for a request is uploaded to the server's bucket. The padding makes it invalid.
    let mut large = std::fs::read(dir.path(&zip)).unwrap();
    large.resize(5 * 1024 * 1024, 7);
    dir.write("large.zip", &large);
    let args = with(&["verify", "large.zip", "--json"]);
    let output = dir.bench(&args.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(output.code, 1, "{}", output.stderr);
    let verdict: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&verdict["valid"], &verdict["file"]), (&json!(false), &json!("large.zip")), "{verdict}");
    assert!(output.stderr.contains("Uploading large.zip"), "{}", output.stderr);
    // Another signer's archive: only the key is wrong.
    let theirs = vector_path("chutes-signed-export.zip");
    let args = with(&["verify", theirs.to_str().unwrap(), "--json"]);
    let output = dir.bench(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let verdict: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    let error = "intact, signed by a key `56475aa75463` that the server does not know";
    assert_eq!(verdict["errors"], json!([error]));
    // This machine doesn't know the server's key.
    let output = dir.bench(&["verify", &zip]);
    assert!(
        output.code == 1 && output.stdout.contains("intact, signed by an unknown key"),
        "{}",
        output.stdout
    );
    let args = with(&["cancel", id]);
    dir.bench(&args.iter().map(String::as_str).collect::<Vec<_>>())
        .assert_refused(1, "is over already: it succeeded");
    let args = with(&["run", "--model", "replay:x.jsonl"]);
    dir.bench(&args.iter().map(String::as_str).collect::<Vec<_>>())
        .assert_refused(2, "stored responses can't be used with --server");
    assert!(!dir.path("data").exists());
}

#[test]
fn a_port_in_use_is_one_sentence() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let dir = TestDir::new();
    dir.bench(&["serve", "--port", &port]).assert_refused(1, &format!("port {port} is in use"));
    assert!(!dir.path("data").exists());
}

#[test]
fn a_request_to_end_is_heard() {
    let dir = TestDir::new();
    let mut server = Server::start(&dir, &[]);
    let killed =
        std::process::Command::new("kill").args(["-TERM", &server.child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

/// Starts a server, and returns the first line of its output and all messages until its end.
#[cfg(unix)]
fn messages_of(more: &[&str], vars: &[(&str, &str)]) -> (String, String) {
    let dir = TestDir::new();
    let mut command = dir.command(&[&["serve", "--port", "0"], more].concat());
    let mut child =
        command.envs(vars.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let ended = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(ended.success() && line.starts_with("Serving"), "{line}");
    (line, String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap())
}

/// On loopback, all callers count as the user of this machine. A policy that has no effect there causes a warning.
#[test]
#[cfg(unix)]
fn a_policy_that_does_not_apply_is_warned_about() {
    let is_warned = |vars: &[(&str, &str)]| messages_of(&[], vars).1.contains("BENCH_ACCESS has no effect");
    assert!(is_warned(&[("BENCH_ACCESS", "token")]));
    assert!(!is_warned(&[]));
}

#[test]
#[cfg(unix)]
fn the_sign_in_is_described_at_the_start() {
    let (_, messages) = messages_of(&[], &[]);
    assert!(messages.contains("\nSign-in: none (CHUTES_CLIENT_ID is not set)\n"), "{messages}");
    let client = [("CHUTES_CLIENT_ID", "cid"), ("CHUTES_CLIENT_SECRET", "client-hush")];
    let (line, messages) = messages_of(&[], &client);
    let address = line.trim().strip_prefix("Serving ").unwrap();
    let described = format!(
        "\nSign-in: https://idp.chutes.ai as client `cid`, which must have the redirect address {address}/api/auth/callback\n"
    );
    assert!(messages.contains(&described) && !messages.contains("client-hush"), "{messages}");
    let page = [("FRONTEND_URL", "https://bench.example/"), ("CHUTES_IDP_URL", "https://idp.example")];
    let (_, messages) = messages_of(&[], &[&client[..], &page].concat());
    let described = "https://idp.example as client `cid`, which must have the redirect address https://bench.example/api/auth/callback";
    assert!(messages.contains(described), "{messages}");
}

#[test]
#[cfg(unix)]
fn a_server_for_others_without_an_admin_says_how_to_give_access() {
    let exposed = ["--host", "0.0.0.0"];
    let (_, messages) = messages_of(&exposed, &[]);
    assert!(
        messages.contains("only `bench access --data-dir ") && messages.contains("no admin"),
        "{messages}"
    );
    for admin in [("ADMIN_SECRET", "hush"), ("ADMIN_SUBJECTS", "s|1")] {
        let (_, messages) = messages_of(&exposed, &[admin]);
        assert!(
            messages.contains("the access policy for orders is") && !messages.contains("no admin"),
            "{messages}"
        );
    }
}

/// Without a key, a server on another machine knows nothing of the caller's. Only then is the empty list a surprise.
#[test]
fn an_empty_list_of_ones_own_advises_on_the_key() {
    let server_dir = TestDir::new();
    let server = Server::start_with(&server_dir, &["--host", "0.0.0.0"], &[("ADMIN_SECRET", "hush")]);
    // Its address from other machines isn't loopback.
    let exposed = server.address.replace("127.0.0.1", "0.0.0.0");
    let local_dir = TestDir::new();
    let local = Server::start(&local_dir, &[]);
    let dir = TestDir::new();
    let hint = "hint: without a key, the server doesn't know what is yours: set BENCH_API_KEY to your key or access token, or name its \
                variable with --api-key-env\n";
    for command in [&["runs"][..], &["schedules", "list"], &["tasks", "list"]] {
        for (more, vars, is_hinted) in [
            (&["--mine"][..], &[][..], true),
            (&["--mine", "--json"], &[], true),
            (&["--mine"], &[("BENCH_API_KEY", "sk-mine")], false),
            (&["--mine"], &[("BENCH_ADMIN_SECRET", "hush")], false),
            (&[], &[], false),
        ] {
            let args = [command, more, &["--server", &exposed]].concat();
            let output = dir.command(&args).envs(vars.iter().copied()).output().unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert!(output.status.success(), "{args:?}: {stderr}");
            assert_eq!(stderr.contains(hint), is_hinted, "{args:?} {vars:?}: {stderr}");
        }
        // A server on this machine and the data directory's own API serve its user.
        for at in [&["--server", &local.address][..], &[]] {
            let output = dir.bench(&[command, &["--mine"], at].concat());
            assert!(output.code == 0 && !output.stderr.contains("hint:"), "{at:?}: {}", output.stderr);
        }
    }
}

/// A server that may open only a few files accepts few connections, and closes idle ones to make room for others.
#[test]
fn idle_connections_do_not_make_a_server_unreachable() {
    let dir = TestDir::new();
    let bench = dir.command(&["serve", "--port", "0"]);
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -n 256 && exec \"$0\" \"$@\""])
        .arg(bench.get_program())
        .args(bench.get_args());
    command.env_clear().envs(bench.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(bench.get_current_dir().unwrap());
    let server = Server::spawn(command);
    let host = server.address.strip_prefix("http://").unwrap();
    let mut idle = Vec::new();
    for _ in 0..358 {
        idle.push(std::net::TcpStream::connect(host).unwrap());
    }
    for _ in 0..20 {
        assert_eq!(get(&format!("{}/api/health", server.address)).0, 200);
    }
}

/// Sends a GET request over a plain connection, and returns status and body of the response.
fn get(address: &str) -> (u16, String) {
    use std::io::{Read, Write};
    let rest = address.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
}

#[test]
fn a_presigned_address_works_on_this_machine_until_it_is_changed() {
    let dir = TestDir::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (stack, address) = runtime.block_on(async {
        let mut options = bench_stack::StackOptions::new(dir.path("data"));
        options.s3_listener = true;
        let stack = bench_stack::Stack::open(options).await.unwrap();
        stack.blobs.put("exports/x.txt", "signed for you".into(), "text/plain").await.unwrap();
        let valid = std::time::Duration::from_secs(60);
        let address = stack.blobs.presign_get("exports/x.txt", "x.txt", valid).await.unwrap();
        (stack, address)
    });
    assert!(address.starts_with(&format!("http://{}/", stack.s3_address.unwrap())), "{address}");
    let (status, body) = get(&address);
    assert_eq!(status, 200);
    assert!(body.contains("signed for you"), "{body}");
    assert_eq!(get(&address.replace("x.txt?", "y.txt?")).0, 403);
    runtime.block_on(stack.stop(std::time::Duration::ZERO));
}
