//! Agents of the user's own, in a data directory and at a server.

use serde_json::{Value, json};

use crate::serve::Server;
use crate::support::{CommandOutput, TestDir};

/// Writes an agent's folder, and returns its path.
fn agent(dir: &TestDir, folder: &str, config: &str) -> String {
    let path = dir.path(folder);
    std::fs::create_dir_all(&path).unwrap();
    std::fs::write(path.join("agent.toml"), config).unwrap();
    std::fs::write(path.join("go.sh"), "touch done\n").unwrap();
    path.to_str().unwrap().to_owned()
}

fn task(dir: &TestDir) -> String {
    for (path, content) in [
        ("fix-it/task.toml", ""),
        ("fix-it/instruction.md", "Fix it."),
        ("fix-it/environment/Dockerfile", "FROM debian:12\n"),
        ("fix-it/tests/test.sh", "echo 1 > /logs/verifier/reward.txt\n"),
    ] {
        std::fs::create_dir_all(dir.path(path).parent().unwrap()).unwrap();
        dir.write(path, content);
    }
    dir.path("fix-it").to_str().unwrap().to_owned()
}

/// Tests the whole life of an agent. `at` has the options for the place.
fn test_lifecycle(dir: &TestDir, at: &[&str]) {
    let bench = |args: &[&str]| -> CommandOutput { dir.bench(&[args, at].concat()) };
    let json = |args: &[&str]| -> Value { dir.json(&[args, at, &["--json"]].concat()) };
    let one = agent(dir, "one", "name = \"tiny\"\nversion = \"1\"\nrun = \"sh /installed-agent/go.sh\"\n");
    let two = agent(dir, "two", "name = \"tiny\"\nversion = \"2\"\nrun = \"true\"\n[env]\nA = \"${WHO}\"\n");

    let checked = dir.json(&["agents", "check", &one, "--json"]);
    assert_eq!(json(&["agents"])["custom"], json!([]), "a check stores nothing");
    let uploaded = json(&["agents", "upload", &one]);
    for field in ["id", "name", "version", "model", "required_variables", "files", "expanded_bytes"] {
        assert_eq!(checked[field], uploaded[field], "{field}");
    }
    let id = uploaded["id"].as_str().unwrap();
    let output = bench(&["agents", "upload", &two]);
    assert!(output.stdout.starts_with("Uploaded custom/tiny@2: "), "{}{}", output.stdout, output.stderr);
    let again = bench(&["agents", "upload", &two]);
    assert!(
        again.stdout.starts_with("Known already, with the same files: custom/tiny@2: "),
        "{}",
        again.stdout
    );
    assert!(output.stderr.contains("--option env.WHO=VALUE"), "{}", output.stderr);

    let listed = json(&["agents", "list"]);
    assert_eq!(listed["agents"].as_array().unwrap().len(), 5);
    assert_eq!(listed["custom"].as_array().unwrap().len(), 2);
    let table = bench(&["agents"]).stdout;
    for part in ["terminus-2", "custom/tiny@1", "custom/tiny@2", &id[..12], "env.WHO"] {
        assert!(table.contains(part), "{part}\n{table}");
    }
    for name in ["tiny@1", &id[..6], id] {
        assert_eq!(json(&["agents", "show", name]), uploaded, "{name}");
    }
    bench(&["agents", "show", "tiny"]).assert_refused(2, "`tiny` means 2 uploaded agents");
    std::os::unix::fs::symlink("nowhere", dir.path("dangling")).unwrap();
    bench(&["agents", "download", "tiny@1", "--out", "dangling"])
        .assert_refused(2, "a link, a pipe or a device");
    bench(&["agents", "download", "other"]).assert_refused(1, "no uploaded agent has the name");

    // The download is the same agent.
    let written = json(&["agents", "download", "tiny@1"]);
    let name = format!("agent-{}.zip", &id[..12]);
    assert_eq!(written["file"], name);
    assert_eq!(dir.json(&["agents", "check", &name, "--json"])["id"], id);
    bench(&["agents", "download", "tiny@1", "--out", &name]).assert_refused(2, "exists already");
    let again = bench(&["agents", "download", &id[..8], "--out", &name, "--force"]);
    assert_eq!((again.code, again.stdout.trim()), (0, name.as_str()), "{}", again.stderr);

    // A schedule names the agent by its files.
    let task = task(dir);
    let schedule = ["schedules", "add", "--name", "nightly", "--cron", "0 0 * * *", "--task", &task];
    let lacks = bench(&[&schedule[..], &["--agent-folder", &two]].concat());
    lacks.assert_refused(2, "the agent `tiny@2` needs the variable `WHO`");
    let three = agent(dir, "three", "name = \"new\"\nrun = \"true\"\n[env]\nA = \"${WHO}\"\n");
    let made = json(&[&schedule[..], &["--agent-folder", &three, "--option", "env.WHO=me"]].concat());
    let options = &made["benchmark_options"]["terminal_tasks"];
    assert_eq!((&made["model"], &options["env.WHO"]), (&json!("custom/new"), &json!("me")));
    assert_eq!(options["agent.content_hash"], json(&["agents", "show", "new"])["id"]);
    bench(&["agents", "remove", "new"]).assert_refused(1, "the schedule `nightly` runs this agent");
    let edited = json(&["schedules", "edit", "nightly", "--agent-folder", &one]);
    assert_eq!(edited["model"], "custom/tiny@1", "{edited}");
    assert_eq!(edited["benchmark_options"]["terminal_tasks"]["agent.content_hash"], id);
    let named = ["--agent", "custom", "--agent-option", &format!("content_hash={id}")].map(str::to_owned);
    let named: Vec<&str> = named.iter().map(String::as_str).collect();
    let other =
        [&["schedules", "add", "--name", "other", "--cron", "0 0 * * *", "--task", &task], &named[..]];
    assert_eq!(json(&other.concat())["model"], "custom/tiny@1");
    for (more, part) in [
        (&["--agent", "bash"][..], "--agent-folder has the files of the agent `custom`, not of `bash`"),
        (&["--model", "openrouter/a/b"], "takes no model"),
        (&["--agent-option", &format!("content_hash={id}")], "name two agents"),
    ] {
        let args = [&["schedules", "edit", "other", "--agent-folder", &one], more].concat();
        bench(&args).assert_refused(2, part);
    }
    for name in ["nightly", "other"] {
        assert_eq!(bench(&["schedules", "remove", name]).code, 0);
    }

    bench(&["agents", "remove", "tiny@1", "none"]).assert_refused(1, "no uploaded agent has the name");
    assert_eq!(
        json(&["agents"])["custom"].as_array().unwrap().len(),
        3,
        "all are found before any is removed"
    );
    let removed = bench(&["agents", "remove", "tiny@1", id, "tiny@2"]);
    assert_eq!(removed.stdout.lines().count(), 2, "{}{}", removed.stdout, removed.stderr);
    assert!(
        removed.stdout.starts_with(&format!("Removed custom/tiny@1 ({})", &id[..12])),
        "{}",
        removed.stdout
    );
    assert_eq!(json(&["agents", "remove", "new"])[0]["status"], "removed");
    assert_eq!(json(&["agents"])["custom"], json!([]));
}

#[test]
fn an_agent_lives_in_a_data_directory() {
    test_lifecycle(&TestDir::new(), &[]);
}

#[test]
fn an_agent_lives_at_a_server() {
    let home = TestDir::new();
    let server = Server::start(&home, &[]);
    let dir = TestDir::new();
    test_lifecycle(&dir, &["--server", &server.address]);
    assert!(!dir.path("data").exists());
}

#[test]
fn a_refused_agent_is_explained_with_its_line() {
    let dir = TestDir::new();
    let path = agent(&dir, "bad", "name = \"tiny\"\nrun = \"true\"\nmodel = \"m\"\n");
    for command in ["check", "upload"] {
        dir.bench(&["agents", command, &path]).assert_refused(1, "`agent.toml` line 3: the key `model`");
    }
    assert!(!dir.path("data").exists(), "a refused agent opens nothing");
}
