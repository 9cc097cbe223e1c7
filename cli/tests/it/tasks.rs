//! Stored tasks.

use crate::support::TestDir;

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
