//! Keys and secrets of the server: none of them enters a container.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::PoisonError;
use std::time::Duration;

use bench_tests::model_server::{ModelRequest, ModelServer, Reply};
use serde_json::Value;

use crate::episodes::{ENGINE, Place, objects};

/// Every secret that the command reads, and some that other programs leave in its environment.
const NAMES: [&str; 16] = [
    "CHUTES_API_KEY",
    "OPENROUTER_API_KEY",
    "OPENAI_COMPATIBLE_API_KEY",
    "LMSTUDIO_API_KEY",
    "BENCH_API_KEY",
    "BENCH_JUDGE_API_KEY",
    "BENCH_OWNER_KEY",
    "ADMIN_SECRET",
    "HF_TOKEN",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GITHUB_TOKEN",
    "SANDY_API_KEY",
];
const NOTHING_FOUND: &str = "/tmp/control";

/// Plants a secret in every variable.
fn secrets() -> BTreeMap<&'static str, String> {
    let hex = || uuid::Uuid::new_v4().simple().to_string();
    NAMES.into_iter().map(|name| (name, format!("sk-planted-{}{}", hex(), hex()))).collect()
}

/// Returns a script that lists the files, environments and command lines in a container that have a secret. The file
/// `/tmp/control`, which it writes itself, proves that it finds them. The script contains only halves of secrets.
fn search(secrets: &BTreeMap<&str, String>, result: &str) -> String {
    let mut lines = String::new();
    for secret in secrets.values() {
        let (first, second) = secret.split_at(20);
        writeln!(lines, "  printf '%s%s\\n' {first} {second}").unwrap();
    }
    format!(
        "secrets() {{\n{lines}}}\nsecrets | head -n 1 > /tmp/control\n{{\n\
         for place in /*; do case $place in /proc|/sys|/dev) ;; *) secrets | grep -rlF -f - $place ;; esac; done\n\
         for process in /proc/[0-9]*; do secrets | grep -lF -f - $process/environ $process/cmdline; done\n\
         secrets | grep -lF -f - /proc/mounts /proc/cmdline\n\
         }} 2>/dev/null | sort -u > {result}\ncat {result}\n"
    )
}

#[test]
fn no_secret_of_the_server_enters_a_container() {
    let _engine = ENGINE.lock().unwrap_or_else(PoisonError::into_inner);
    let (before, place, secrets) = (objects(), Place::new(), secrets());
    let solution = format!("#!/bin/sh\n{}", search(&secrets, "/app/found"));
    // The agent's search, and one beside the verifier's own files and processes.
    let test = format!(
        "#!/bin/sh\n{}if [ \"$(cat /app/found)\" = {NOTHING_FOUND} ] && [ \"$(cat /tmp/found)\" = {NOTHING_FOUND} ]; then echo 1; \
         else echo 0; fi > /logs/verifier/reward.txt\n",
        search(&secrets, "/tmp/found")
    );
    let task = place.task("searcher", &solution, &test);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let action = format!("I look.\n```bash\n{}```\n", search(&secrets, "/app/found"));
    let model_key = secrets["OPENAI_COMPATIBLE_API_KEY"].clone();
    let rule = move |request: &ModelRequest| {
        assert_eq!(request.key.as_ref(), Some(&model_key), "the model is asked with the key");
        match request.total_before {
            0 => Reply::Text(action.clone()),
            _ => Reply::Text("```done\n```\n".to_owned()),
        }
    };
    let server = runtime.block_on(ModelServer::start(Duration::ZERO, Arc::new(rule))).unwrap();
    for agent in [&["--agent", "oracle"][..], &["--agent", "bash", "--model", "openai-compatible/m"]] {
        let order = [&["run", "--json", "--task", task.to_str().unwrap()][..], agent].concat();
        let output = place
            .command(&order)
            .envs(&secrets)
            .env("OPENAI_COMPATIBLE_BASE_URL", server.base_url())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        let runs: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(runs[0]["results"][0]["correct"], 1, "a secret was found: {runs:#}");
    }
    assert_eq!(objects(), before);
}
