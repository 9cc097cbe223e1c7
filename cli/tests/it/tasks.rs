//! Stored tasks.

use bench_tests::scripted_host::ScriptedHost;

use crate::support::{CommandOutput, TestDir};

/// Runs commands with a scripted sandbox host, one after the other.
fn with_host(dir: &TestDir, commands: &[&[&str]]) -> Vec<CommandOutput> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let host = runtime.block_on(ScriptedHost::start(0)).unwrap();
    let run = |arguments: &&[&str]| {
        let mut command = dir.command(arguments);
        command.env("SANDY_BASE_URL", host.base_url()).env("SANDY_API_KEY", "sandy-test-key");
        CommandOutput::new(&command.output().unwrap())
    };
    commands.iter().map(run).collect()
}

/// Writes a task with this configuration, and returns its path.
fn task(dir: &TestDir, name: &str, config: &str) -> String {
    let folder = dir.path(name);
    for (path, content) in [
        ("task.toml", config),
        ("instruction.md", "Fix it."),
        ("environment/Dockerfile", "FROM debian:12\n"),
        ("tests/test.sh", "echo 1 > /logs/verifier/reward.txt\n"),
        ("solution/solve.sh", "true\n"),
    ] {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    folder.to_str().unwrap().to_owned()
}

#[test]
fn a_task_that_was_there_is_named() {
    let dir = TestDir::new();
    let path = task(&dir, "fix-it", "");
    let first = dir.bench(&["tasks", "add", &path]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    assert!(first.stdout.starts_with("Stored task 1: fix-it@"), "{}", first.stdout);
    assert!(!first.stdout.contains("the same files"), "{}", first.stdout);
    let again = dir.bench(&["tasks", "add", &path, "--name", "other"]);
    assert!(
        again.stdout.trim_end().ends_with("task 1 has the same files, and its stored archive is used again"),
        "{}",
        again.stdout
    );
    let added = dir.json(&["tasks", "add", &path, "--json"]);
    assert_eq!(added[0]["same_files_as"], 1, "{added}");
    let listed = dir.json(&["tasks", "list", "--all", "--json"]);
    assert_eq!(listed.as_array().unwrap().len(), 3);
}

#[test]
fn keys_without_effect_are_warned_of() {
    let dir = TestDir::new();
    let path = task(&dir, "typo", "[agent]\ntimout_sec = 5\n");
    let warning = "warning: typo: `task.toml` line 2: `agent.timout_sec` has no effect";
    for command in [vec!["tasks", "check", "--no-episodes", &path], vec!["tasks", "add", &path]] {
        let output = dir.bench(&command);
        assert_eq!(output.code, 0, "{}", output.stderr);
        let stderr = output.stderr.replace('\n', " ");
        assert!(stderr.contains(warning) && stderr.contains("did you mean `timeout_sec`?"), "{stderr}");
    }
    let checked = dir.json(&["tasks", "check", "--no-episodes", &path, "--json"]);
    assert_eq!(checked[0]["warnings"].as_array().unwrap().len(), 1, "{checked}");
    let plain = task(&dir, "plain", "[metadata]\nanything = 1\n");
    let output = dir.bench(&["tasks", "add", &plain]);
    assert!(!output.stderr.contains("warning"), "{}", output.stderr);
}

#[test]
fn an_unknown_task_is_explained() {
    let dir = TestDir::new();
    let output = dir.bench(&["tasks", "remove", "7"]);
    assert!(output.stderr.contains("bench tasks list --all"), "{}", output.stderr);
}

#[cfg(unix)]
#[test]
fn a_broken_task_does_not_keep_others_from_being_checked() {
    let dir = TestDir::new();
    let folder = |name: &str| format!("tasks/{name}");
    task(&dir, &folder("good"), "");
    task(&dir, &folder("linked"), "");
    std::os::unix::fs::symlink("/etc/hostname", dir.path("tasks/linked/name")).unwrap();
    task(&dir, &folder("wrong"), "[agent]\ntimeout_sec = 'x'\n");
    let path = dir.path("tasks").to_str().unwrap().to_owned();

    let files = dir.bench(&["tasks", "check", &path, "--no-episodes"]);
    assert_eq!(files.code, 1, "{}", files.stdout);
    assert!(files.stdout.contains("good: its files are accepted\nlinked: refused; `"), "{}", files.stdout);
    assert!(files.stdout.contains("/linked/name` is a link; a task has no links"), "{}", files.stdout);
    assert!(files.stdout.contains("wrong: refused; `task.toml` line 2"), "{}", files.stdout);
    assert!(files.stderr.contains("2 tasks refused"), "{}", files.stderr);

    let check = ["tasks", "check", &path];
    let json = ["tasks", "check", &path, "--json"];
    let outputs = with_host(&dir, &[&check, &json]);
    let [proof, json] = outputs.as_slice() else { panic!() };
    assert_eq!((proof.code, json.code), (1, 1), "{}", proof.stderr);
    assert!(proof.stdout.contains("linked: NOT proven; `"), "{}", proof.stdout);
    assert!(
        proof.stdout.contains("wrong: NOT proven; the task `wrong` was not accepted"),
        "{}",
        proof.stdout
    );
    assert!(proof.stdout.contains("\ngood@"), "its episodes ran: {}", proof.stdout);
    let shown: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    let tasks: Vec<&str> =
        shown.as_array().unwrap().iter().map(|task| task["task"].as_str().unwrap()).collect();
    assert_eq!(&tasks[..2], ["linked", "wrong"]);
    assert!(tasks[2].starts_with("good@"), "{tasks:?}");

    // Neither does a path without a task.
    let good = dir.path("tasks/good").to_str().unwrap().to_owned();
    let gone = dir.path("gone").to_str().unwrap().to_owned();
    let files = dir.bench(&["tasks", "check", &good, &gone, "--no-episodes"]);
    assert_eq!(files.code, 1, "{}", files.stdout);
    assert!(files.stdout.contains("good: its files are accepted\ngone: refused; "), "{}", files.stdout);
    dir.bench(&["tasks", "check", &gone]).assert_refused(2, "could not read the task");

    // The error of a single task stays that of the command.
    let linked = dir.path("tasks/linked").to_str().unwrap().to_owned();
    dir.bench(&["tasks", "check", &linked]).assert_refused(2, "is a link");
}

#[test]
fn orders_name_their_tasks_and_count_in_their_results() {
    let dir = TestDir::new();
    let one = task(&dir, "one", "[environment.env]\nA = \"${NEEDED:-1}\"\n");
    let same = task(&dir, "same", "[environment.env]\nA = \"${NEEDED:-1}\"\n");
    assert_eq!(dir.bench(&["tasks", "add", &one]).code, 0);
    let run = ["run", "--agent", "oracle", "--samples", "2"];
    let twice = [&run[..], &["--task", &one, "--task", &same, "--option", "env.NEEDED=2"]].concat();
    let unknown = [&run[..], &["--task", "one", "--option", "env.NEDED=2"]].concat();
    let outputs = with_host(&dir, &[&twice, &unknown]);
    let [twice, unknown] = outputs.as_slice() else { panic!() };
    assert_eq!(twice.code, 0, "{}", twice.stderr);
    let note = "The tasks `one` and `same` have the same files, so they are one task, which counts once";
    assert!(twice.stderr.replace('\n', " ").contains(note), "{}", twice.stderr);
    unknown.assert_refused(
        2,
        "unknown option `env.NEDED`: none of the tasks asks for this variable; did you mean `env.NEEDED`?",
    );

    let runs = dir.bench(&["runs"]);
    assert!(runs.stdout.contains("terminal_tasks: one"), "{}", runs.stdout);
    let detail = dir.json(&["runs", "latest", "--json"]);
    assert!(detail["tasks"][0].as_str().unwrap().starts_with("one@"), "{detail}");
    // The task was stored before, so its list has the episodes of this order.
    let listed = dir.json(&["tasks", "list", "--json"]);
    assert_eq!(
        (&listed[0]["results"]["episodes"], &listed[0]["results"]["status"]),
        (&2.into(), &"completed".into())
    );
    let table = dir.bench(&["tasks", "list"]);
    assert!(table.stdout.contains("completed"), "{}", table.stdout);
}
