//! Keys and secrets of the server: none of them enters a container.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::PoisonError;
use std::time::Duration;

use bench_tests::model_server::{ModelRequest, ModelServer, Reply};
use serde_json::Value;

use super::episodes::{ENGINE, Place, objects};
use super::repositories;

/// Every secret that the command reads, and some that other programs leave in its environment.
const NAMES: [&str; 20] = [
    "CHUTES_API_KEY",
    "OPENROUTER_API_KEY",
    "OPENAI_COMPATIBLE_API_KEY",
    "LMSTUDIO_API_KEY",
    "BENCH_API_KEY",
    "BENCH_JUDGE_API_KEY",
    "BENCH_USER_API_KEY",
    "BENCH_OWNER_KEY",
    "BENCH_MASTER_KEY",
    "BENCH_SIGNING_PRIVATE_KEY",
    "BENCH_ADMIN_SECRET",
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

/// Files of the data directory with keys.
const KEY_FILES: [&str; 3] = ["master.key", "credentials.json", "keys/signing-key.pem"];
/// Shortest line of such a file that is a key or a part of one.
const KEY_CHARS_MIN: usize = 40;

/// Plants a secret in every variable.
fn secrets() -> BTreeMap<String, String> {
    let hex = || uuid::Uuid::new_v4().simple().to_string();
    let secret = |name| match name {
        // It has to be a key.
        "BENCH_SIGNING_PRIVATE_KEY" => format!("{}{}", hex(), hex()),
        _ => format!("sk-planted-{}{}", hex(), hex()),
    };
    NAMES.into_iter().map(|name| (name.to_owned(), secret(name))).collect()
}

/// Returns the keys in the data directory of a place, where a run has made them.
fn stored_keys(place: &Place) -> BTreeMap<String, String> {
    let made = place.bench(&[
        "run",
        "--demo",
        "--benchmark",
        "mmlu_pro",
        "--model",
        "oracle",
        "--subset-count",
        "1",
    ]);
    assert_eq!(made.code, 0, "{}{}", made.stdout, made.stderr);
    let mut keys = BTreeMap::new();
    for file in KEY_FILES {
        let bytes = std::fs::read(place.data_path(file)).unwrap();
        // A key of bytes would be in a variable or an argument by its digits only.
        let text = String::from_utf8(bytes).unwrap_or_else(|error| hex::encode(error.into_bytes()));
        let known = keys.len();
        for line in
            text.split(|c: char| c.is_whitespace() || c == '"').filter(|line| line.len() >= KEY_CHARS_MIN)
        {
            keys.insert(format!("{file} {}", keys.len()), line.to_owned());
        }
        assert!(keys.len() > known, "{file} has no key: {text}");
    }
    keys
}

/// Returns a script that lists the files, environments and command lines in a container that have a secret. The file
/// `/tmp/control`, which it writes itself, proves that it finds them. The script contains only halves of secrets.
fn search(secrets: &BTreeMap<String, String>, result: &str) -> String {
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

/// Starts a model that searches its container for the secrets once, and is done. It must be asked with its key.
async fn searching_model(
    planted: &BTreeMap<String, String>,
    secrets: &BTreeMap<String, String>,
) -> ModelServer {
    let action = format!("I look.\n```bash\n{}```\n", search(secrets, "/app/found"));
    let model_key = planted["OPENAI_COMPATIBLE_API_KEY"].clone();
    let rule = move |request: &ModelRequest| {
        assert_eq!(request.key.as_ref(), Some(&model_key), "the model is asked with the key");
        match request.total_before {
            0 => Reply::Text(action.clone()),
            _ => Reply::Text("```done\n```\n".to_owned()),
        }
    };
    ModelServer::start(Duration::ZERO, Arc::new(rule)).await.unwrap()
}

#[test]
fn no_secret_of_the_server_enters_a_container() {
    let _engine = ENGINE.lock().unwrap_or_else(PoisonError::into_inner);
    let (before, place, planted) = (objects(), Place::new(), secrets());
    let secrets = planted.clone().into_iter().chain(stored_keys(&place)).collect();
    let solution = format!("#!/bin/sh\n{}", search(&secrets, "/app/found"));
    // The agent's search, and one beside the verifier's own files and processes.
    let test = format!(
        "#!/bin/sh\n{}if [ \"$(cat /app/found)\" = {NOTHING_FOUND} ] && [ \"$(cat /tmp/found)\" = {NOTHING_FOUND} ]; then echo 1; \
         else echo 0; fi > /logs/verifier/reward.txt\n",
        search(&secrets, "/tmp/found")
    );
    let task = place.task("searcher", &solution, &test);
    // The task asks for keys, too.
    let asked =
        "services:\n  main:\n    environment: ['A=${OPENROUTER_API_KEY:-none}', 'B=${HF_TOKEN-none}']\n";
    std::fs::write(task.join("environment/docker-compose.yaml"), asked).unwrap();
    let config = std::fs::read_to_string(task.join("task.toml")).unwrap();
    let asked = "[environment.env]\nC = \"${BENCH_API_KEY:-none}\"\n[verifier.env]\nD = \"${AWS_SECRET_ACCESS_KEY:-none}\"\n";
    std::fs::write(task.join("task.toml"), format!("{config}{asked}")).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(searching_model(&planted, &secrets));
    let custom = place.path("searching-agent");
    std::fs::create_dir_all(&custom).unwrap();
    let asked = "name = \"searcher\"\ninstall = \"install.sh\"\nrun = \"sh search.sh\"\n[env]\nE = \"${OPENROUTER_API_KEY:-none}\"\n"
        .replace("search.sh", "/installed-agent/search.sh");
    std::fs::write(custom.join("agent.toml"), asked).unwrap();
    std::fs::write(custom.join("search.sh"), search(&secrets, "/app/found")).unwrap();
    // What the install script sees, too, stays for the search of the agent.
    std::fs::write(custom.join("install.sh"), "env > /tmp/install-env\n").unwrap();
    let folder = custom.to_str().unwrap();
    for agent in [
        &["--agent", "oracle"][..],
        &["--agent", "bash", "--model", "openai-compatible/m"],
        &["--agent", "custom", "--agent-folder", folder],
    ] {
        let order = [&["run", "--json", "--task", task.to_str().unwrap()][..], agent].concat();
        let output = place
            .command(&order)
            .envs(&planted)
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

/// An agent searches the container of its repository, and the official script that of the verification.
#[test]
fn no_secret_of_the_server_enters_a_container_of_a_repository() {
    let _engine = ENGINE.lock().unwrap_or_else(PoisonError::into_inner);
    repositories::make_base();
    let (before, place, planted) = (objects(), Place::new(), secrets());
    let secrets = planted.clone().into_iter().chain(stored_keys(&place)).collect();
    let row = repositories::rows().remove(0);
    let id = row["instance_id"].as_str().unwrap();
    let dataset = place.path("dataset");
    let parser = "import json, sys\njson.dump({'tests': []}, open(sys.argv[3], 'w'))\n";
    for (path, text) in [
        ("rows.jsonl".to_owned(), format!("{row}\n")),
        (format!("run_scripts/{id}/run_script.sh"), search(&secrets, "/tmp/found")),
        (format!("run_scripts/{id}/parser.py"), parser.to_owned()),
        (
            format!("dockerfiles/base_dockerfile/{id}/Dockerfile"),
            "ENV A=${OPENROUTER_API_KEY:-none}\n".to_owned(),
        ),
        (format!("dockerfiles/instance_dockerfile/{id}/Dockerfile"), "ENV B=${HF_TOKEN-none}\n".to_owned()),
    ] {
        let path = dataset.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(searching_model(&planted, &secrets));
    let dataset = format!("swe_bench_pro={}", dataset.display());
    let order = ["run", "--json", "--dataset", &dataset, "--model", "openai-compatible/m"];
    let order = [&order[..], &["--benchmark", "swe_bench_pro"]].concat();
    let output = place
        .command(&order)
        .envs(&planted)
        .env("OPENAI_COMPATIBLE_BASE_URL", server.base_url())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let runs: Value = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr)));
    let items = repositories::items_of(&place, runs[0]["id"].as_str().unwrap());
    let item = &items[0];
    let change = item["response"].as_str().unwrap();
    assert!(
        change.ends_with(&format!("+++ b/found\n@@ -0,0 +1 @@\n+{NOTHING_FOUND}\n")),
        "{change}\n{item:#}"
    );
    let logs = item["judge_output"]["verification"]["logs"].as_array().unwrap();
    let found = logs.iter().find(|log| log["name"] == "verification/stdout.log").unwrap();
    assert_eq!(found["end"], format!("{NOTHING_FOUND}\n"), "{item:#}");
    for secret in planted.values() {
        assert!(!item.to_string().contains(secret), "{item:#}");
    }
    assert_eq!(objects(), before);
}
