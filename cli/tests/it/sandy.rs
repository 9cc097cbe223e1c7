//! `bench sandy`, and the sandbox host of the stack.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bench_sandy::{Sandy, SandyError};
use bench_stack::{Stack, StackOptions};
use serde_json::{Value, json};

use crate::serve::Server;
use crate::support::{CommandOutput, TestDir};

/// Sandbox host that is killed at the end of the test.
struct SandyProcess {
    child: Child,
    address: String,
    key: Option<&'static str>,
    http: reqwest::Client,
}

impl SandyProcess {
    fn start(dir: &TestDir, key: Option<&'static str>, more: &[&str]) -> Self {
        Self::run(dir.command(&[&["sandy", "--port", "0"], more].concat()), key)
    }

    fn run(mut command: Command, key: Option<&'static str>) -> Self {
        if let Some(key) = key {
            command.env("SANDY_API_KEY", key);
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("Serving ").unwrap_or_else(|| {
            let mut message = String::new();
            child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
            panic!("{line:?} {message}")
        });
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
        Self { child, address: address.to_owned(), key, http }
    }

    async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let mut request = self.http.post(format!("{}{path}", self.address)).json(body);
        if let Some(key) = self.key {
            request = request.bearer_auth(key);
        }
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    async fn sandbox(&self) -> String {
        let (status, made) =
            self.post("/api/sandboxes", &json!({ "priority": 3, "preemptable": true })).await;
        assert_eq!(status, 200, "{made}");
        format!("/api/sandboxes/{}", made["sandboxId"].as_str().unwrap())
    }

    async fn exec(&self, path: &str, command: &str) -> Value {
        let (status, output) = self.post(&format!("{path}/exec"), &json!({ "command": command })).await;
        assert_eq!(status, 200, "{output}");
        output
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }
}

impl Drop for SandyProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns true if a process of this machine has this text in its command line.
fn is_running(mark: &str) -> bool {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let mut lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.any(|line| String::from_utf8_lossy(&line).contains(mark))
}

async fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..6_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never: {what}");
}

#[test]
fn a_host_without_a_key_is_refused_unless_it_is_for_this_machine_alone() {
    let dir = TestDir::new();
    dir.bench(&["sandy", "--port", "0"]).assert_refused(2, "SANDY_API_KEY is not set");
    dir.bench(&["sandy", "--no-key", "--bind", "0.0.0.0", "--port", "0"]).assert_refused(2, "loopback");
    dir.bench(&["sandy", "--no-key", "--bind", "no.such.host.invalid"]).assert_refused(2, "--bind");
    dir.bench(&["sandy", "--no-key", "--port", "0", "--python", "/etc"]).assert_refused(2, "no pyvenv.cfg");
    dir.bench(&["sandy", "--no-key", "--slots", "0"]).assert_refused(2, "--slots");
    assert!(!dir.path("data/sandboxes").join("x").exists());
}

/// Sockets at which engines of the whole machine listen.
const ENGINE_SOCKETS: [&str; 2] = ["/var/run/docker.sock", "/run/podman/podman.sock"];

#[tokio::test]
async fn without_an_engine_the_refusal_says_what_to_install() {
    if let Some(socket) = ENGINE_SOCKETS.into_iter().find(|socket| Path::new(socket).exists()) {
        println!("left out, since this machine has the socket {socket}");
        return;
    }
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("empty")).unwrap();
    let mut command = dir.command(&["sandy", "--no-key", "--port", "0"]);
    command.env("PATH", dir.path("empty")).env("XDG_RUNTIME_DIR", dir.path("empty"));
    let host = SandyProcess::run(command, None);
    let (status, refused) =
        host.post("/api/sandboxes", &json!({ "priority": 3, "enableDockerSocket": true })).await;
    let why = "container engine was found: install podman (Debian, Ubuntu: `apt-get install podman runc netavark \
               aardvark-dns`; Fedora: `dnf install podman`), or start dockerd (Debian, Ubuntu: `apt-get install docker.io`; Fedora: `dnf install \
               moby-engine`)";
    assert!(status == 501 && refused.to_string().contains(why), "{status} {refused}");
    let resources = host.http.get(format!("{}/api/resources", host.address)).send().await.unwrap();
    assert!(resources.text().await.unwrap().contains(why));

    // The command refuses an order before it is made.
    let task = concat!(env!("CARGO_MANIFEST_DIR"), "/../sample-tasks/fix-csv");
    let mut order = dir.command(&["run", "--task", task, "--agent", "oracle"]);
    order.env("PATH", dir.path("empty")).env("XDG_RUNTIME_DIR", dir.path("empty"));
    let refused = CommandOutput::new(&order.output().unwrap());
    refused.assert_refused(1, "terminal_tasks needs a container engine: no container engine was found");
    assert_eq!(dir.json(&["runs", "--json"]), json!([]));
}

#[test]
fn conversations_need_no_container_engine_and_take_no_stored_responses() {
    let dir = TestDir::new();
    let order = [
        "run",
        "--benchmark",
        "tau_bench_telecom",
        "--demo",
        "--samples",
        "1",
        "--subset-count",
        "1",
        "--model",
    ];
    std::fs::write(dir.path("replies.jsonl"), r#"{"id": "0", "response": "Hello"}"#).unwrap();
    let user = ["replay:replies.jsonl", "--user-model", "lmstudio/u"];
    dir.bench(&[&order[..], &user].concat()).assert_refused(2, "which stored responses can't answer");
    assert_eq!(dir.json(&["runs", "--json"]), json!([]));

    let mut command = dir.command(&[&order[..], &["oracle"]].concat());
    let done = CommandOutput::new(&command.env("BENCH_SANDBOX_ENGINE", "none").output().unwrap());
    assert_eq!(done.code, 0, "{}{}", done.stdout, done.stderr);
}

#[test]
fn an_environment_that_cannot_be_made_is_not_left_behind() {
    let dir = TestDir::new();
    dir.bench(&["sandy", "setup", "--program", "/bin/true"])
        .assert_refused(2, "`/bin/true` is not a usable Python");
    // No server listens at this address, so no package can be downloaded, if setup gets that far on this machine.
    let mut command = dir.command(&["sandy", "setup"]);
    command
        .env("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
        .env("PIP_RETRIES", "0")
        .env("PIP_NO_CACHE_DIR", "1");
    CommandOutput::new(&command.output().unwrap()).assert_refused(1, "could not install the packages");
    let left = std::fs::read_dir(dir.path("data/python")).unwrap().flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["lock"]);
}

#[tokio::test]
async fn sandboxes_end_with_their_host() {
    for (number, name) in ["INT", "TERM", "KILL"].into_iter().enumerate() {
        let dir = TestDir::new();
        let mut host = SandyProcess::start(&dir, Some("the-key"), &["--slots", "2"]);
        let wrong = host.http.get(format!("{}/api/resources", host.address)).bearer_auth("another");
        assert_eq!(wrong.send().await.unwrap().status(), 401);
        let path = host.sandbox().await;
        let output = host.exec(&path, "env; ls -a").await;
        assert!(!output["stdout"].as_str().unwrap().contains("the-key"), "{output}");
        // Duration that no other process sleeps for.
        let mark = format!("{}.0{number}", 100_000_000 + u64::from(std::process::id()));
        host.exec(&path, &format!("setsid sleep {mark} >/dev/null 2>&1 &")).await;
        wait_until("it began", || is_running(&mark)).await;
        host.signal(name);
        let status = host.child.wait().unwrap();
        assert_eq!(status.code(), (name != "KILL").then_some(0), "{name}");
        wait_until(&format!("it ended with {name}"), || !is_running(&mark)).await;
        if name == "INT" {
            let mut message = String::new();
            host.child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
            assert!(message.contains("Isolation: ") && message.contains("Slots: 2"), "{message}");
            assert!(!message.contains("the-key") && !message.contains("sleep"), "{message}");
        }
    }
}

/// Returns the stages below a process: their command lines and address spaces in KiB.
fn stages_below(host: u32) -> Vec<(String, u64)> {
    let status = |pid: u32, name: &str| -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok())
    };
    let all = std::fs::read_dir("/proc").unwrap();
    let all = all.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse::<u32>().ok());
    let parents: BTreeMap<u32, u32> =
        all.filter_map(|pid| Some((pid, u32::try_from(status(pid, "PPid:")?).ok()?))).collect();
    let is_below = |pid: &u32| {
        std::iter::successors(parents.get(pid), |pid| parents.get(pid)).any(|parent| *parent == host)
    };
    let stage = |pid: u32| {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?.replace('\0', " ");
        Some((line.contains("__sandbox").then_some(line)?, status(pid, "VmSize:")?))
    };
    parents.keys().copied().filter(is_below).filter_map(stage).collect()
}

#[tokio::test]
async fn the_stages_of_a_sandbox_reserve_little_address_space() {
    let dir = TestDir::new();
    let host = SandyProcess::start(&dir, Some("the-key"), &["--slots", "1"]);
    let path = host.sandbox().await;
    let output = host.exec(&path, "env").await;
    assert!(!output["stdout"].as_str().unwrap().to_lowercase().contains("malloc"), "{output}");
    // Where no cgroup counts memory, the limit on address space counts for the stages, too.
    let stages = stages_below(host.child.id());
    assert!(stages.len() >= 2, "{stages:?}");
    assert!(stages.iter().all(|(_, kib)| *kib < 512 << 10), "{stages:?}");
}

#[tokio::test]
async fn pages_of_other_sites_cannot_use_a_host_of_this_machine() {
    let dir = TestDir::new();
    let host = SandyProcess::start(&dir, None, &["--no-key", "--memory-mib", "256", "--disk-mib", "8"]);
    for (name, value) in [("origin", "http://evil.example"), ("host", "evil.example")] {
        let request =
            host.http.post(format!("{}/api/sandboxes", host.address)).header(name, value).body("{}");
        assert_eq!(request.send().await.unwrap().status(), 403, "{name}");
    }
    let path = host.sandbox().await;
    let output = host.exec(&path, "head -c 20000000 /dev/zero >x; stat -c %s x").await;
    let written: u64 = output["stdout"].as_str().unwrap().trim().parse().unwrap();
    assert!(written <= 9 << 20, "{output}");
}

#[tokio::test]
async fn a_server_brings_a_host_of_its_own() {
    let dir = TestDir::new();
    let server = Server::start(&dir, &[]);
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
    let get = async |path: &str| {
        let answer = http.get(format!("{}/api/ops/sandy/{path}", server.address)).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        answer.json::<Value>().await.unwrap()
    };
    let resources = get("resources").await;
    assert_eq!((&resources["canCreateSandbox"], &resources["rejectReason"]), (&json!(true), &Value::Null));
    assert_eq!(get("sandboxes").await, json!([]));
    assert_eq!(get("metrics?hours=1").await.as_array().unwrap().len(), 1);
}

async fn stack(folder: &Path, helper: &str, vars: &[(&str, &str)]) -> anyhow::Result<Stack> {
    let vars: BTreeMap<_, _> =
        vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Stack::open(StackOptions { sandbox_helper: Some(helper.into()), vars, ..StackOptions::new(folder) }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_host_of_a_stack_starts_when_it_is_asked_and_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let opened = stack(folder.path(), env!("CARGO_BIN_EXE_bench"), &[("BENCH_SANDBOX_SLOTS", "3")]).await;
    let opened = opened.unwrap();
    let state = folder.path().join("sandboxes");
    assert!(!state.exists(), "it was started before anybody asked");
    let sandy = Sandy::new(opened.sandy_config());
    let resources = sandy.resources().await.unwrap();
    assert!(resources.can_create_sandbox && resources.limits["slots"] == Some(3.0), "{resources:?}");
    assert!(state.exists() && folder.path().join("sandbox-files").exists());
    opened.stop(Duration::ZERO).await;
    assert!(matches!(sandy.resources().await, Err(SandyError::Unreachable(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_on_a_machine_that_allows_nothing_opens_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let opened = stack(folder.path(), "/bin/false", &[]).await.unwrap();
    let resources = Sandy::new(opened.sandy_config()).resources().await.unwrap();
    assert!(!resources.can_create_sandbox);
    let reason = resources.reject_reason.unwrap();
    assert!(reason.contains("cannot keep programs apart"), "{reason}");
    opened.stop(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_named_is_used_instead() {
    let folder = tempfile::tempdir().unwrap();
    let vars = [("SANDY_BASE_URL", "http://127.0.0.1:9"), ("SANDY_API_KEY", "k")];
    let opened = stack(folder.path(), "/bin/false", &vars).await.unwrap();
    let resources = Sandy::new(opened.sandy_config()).resources().await;
    assert!(matches!(resources, Err(SandyError::Unreachable(_))), "{resources:?}");
    opened.stop(Duration::ZERO).await;
    let without_key = stack(folder.path(), "/bin/false", &vars[..1]).await.unwrap();
    assert_eq!(Sandy::new(without_key.sandy_config()).resources().await, Err(SandyError::NoKey));
    without_key.stop(Duration::ZERO).await;
    for bad in [("SANDY_BASE_URL", "not an address"), ("BENCH_SANDBOX_SLOTS", "none")] {
        let error = stack(folder.path(), "/bin/false", &[bad]).await.err().unwrap();
        assert!(error.to_string().contains(bad.0), "{error}");
    }
}
