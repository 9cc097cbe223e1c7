//! Names, tags and notes of runs, and their deletion.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use bench_blobs::Blobs;
use bench_embedded::{Embedded, EmbeddedError, EmbeddedOptions};
use serde_json::{Value, json};

use crate::serve::Server;
use crate::support::{CommandOutput, TestDir};

/// Runs a command in a terminal of its own, which merges its outputs.
const IN_TERMINAL: &str = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";

/// Runs a `bench` command in a terminal, where a person types `input`.
fn in_terminal(dir: &TestDir, args: &[&str], input: &str) -> CommandOutput {
    let bench = dir.command(args);
    let mut command = Command::new("python3");
    command.args(["-c", IN_TERMINAL]).arg(bench.get_program()).args(bench.get_args());
    command.env_clear().env("TERM", "xterm").current_dir(bench.get_current_dir().unwrap());
    command.envs(bench.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    CommandOutput::new(&child.wait_with_output().unwrap())
}

/// Runs two demo items, and returns the run's id.
fn order(dir: &TestDir, more: &[&str]) -> String {
    let args =
        ["run", "--model", "oracle", "--benchmark", "mmlu_pro", "--demo", "--subset-count", "2", "--json"];
    dir.json(&[&args[..], more].concat())[0]["id"].as_str().unwrap().to_owned()
}

/// Returns the ids of the runs that `bench runs` lists.
fn list(dir: &TestDir, more: &[&str]) -> Vec<String> {
    let runs = dir.json(&[&["runs", "--json"], more].concat());
    runs.as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect()
}

/// Opens the data directory in this process. Retries, because a command that another test has just forked holds the lock of an
/// earlier opening until it executes its program.
async fn open(dir: &TestDir) -> Embedded {
    for _ in 0..2_400 {
        match Embedded::open(EmbeddedOptions::new(dir.path("data"))) {
            Err(EmbeddedError::InUse { .. }) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            opened => return opened.unwrap(),
        }
    }
    panic!("the data directory stays locked");
}

/// Returns the keys of all stored objects.
fn stored(dir: &TestDir) -> Vec<String> {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let embedded = open(dir).await;
        let blobs = Blobs::new(&embedded.sdk_config(), "bench-runner");
        let (objects, next) = blobs.list("", None).await.unwrap();
        assert!(next.is_none());
        embedded.close();
        objects.into_iter().map(|object| object.key).collect()
    })
}

#[test]
fn runs_are_named_tagged_found_and_edited() {
    let dir = TestDir::new();
    let named = order(&dir, &["--name", "Baseline, 5 shots", "--tag", "exp-7,law", "--note", "one\ntwo"]);
    let plain = order(&dir, &[]);
    let labels = |run: &str| {
        let found = dir.json(&["runs", run, "--json"]);
        json!([found["name"], found["tags"], found["notes"]])
    };
    assert_eq!(labels(&named), json!(["Baseline, 5 shots", ["exp-7", "law"], "one\ntwo"]));
    assert_eq!(labels(&plain), json!([null, [], null]));
    assert_eq!(list(&dir, &[]), [plain.clone(), named.clone()]);
    assert_eq!(list(&dir, &["--tag", "law"]), [named.as_str()]);
    assert_eq!(list(&dir, &["--name", "BASELINE"]), [named.as_str()]);
    assert!(list(&dir, &["--tag", "la"]).is_empty());
    assert_eq!(list(&dir, &["--tag", "law", "--tag", "exp-7"]), [named.as_str()]);
    assert!(list(&dir, &["--tag", "law", "--tag", "other"]).is_empty());
    assert!(dir.bench(&["runs"]).stdout.contains("Baseline, 5 shots"));
    let detail = dir.bench(&["runs", "show", &named]).stdout;
    for part in
        ["name:       Baseline, 5 shots\n", "tags:       exp-7, law\n", "notes:      one\n            two\n"]
    {
        assert!(detail.contains(part), "{part}\n{detail}");
    }

    let edited =
        dir.json(&["runs", "edit", &named, &plain, "--name", "", "--tag", "x", "--untag", "law", "--json"]);
    let edit = |id: &str, tags: &[&str], notes: Option<&str>| json!({ "id": id, "name": null, "tags": tags, "notes": notes, "visibility": "public" });
    assert_eq!(edited[0], edit(&named, &["exp-7", "x"], Some("one\ntwo")));
    assert_eq!(edited[1], edit(&plain, &["x"], None));
    assert_eq!(list(&dir, &["--tag", "x"]), [plain.clone(), named.clone()]);
    let shown = dir.bench(&["runs", "edit", &plain, "--note", "see\nthis"]);
    assert_eq!(shown.stdout, format!("Changed run {plain}\n  tags:  x\n  notes: see\n         this\n"));

    dir.bench(&["runs", "edit", &plain]).assert_refused(2, "no change was given");
    let many: Vec<String> = (0..16).map(|n| n.to_string()).collect();
    dir.bench(&["runs", "edit", &plain, "--tag", &many.join(",")]).assert_refused(2, "16 tags at most");
    dir.bench(&["run", "--resume", &plain, "--name", "late"]).assert_refused(2, "--name can't be given");
    assert_eq!(labels(&plain), json!([null, ["x"], "see\nthis"]));
}

/// The archive that a run wrote and the one that is exported after its labels changed have the same bytes.
#[test]
fn labels_are_not_part_of_archives() {
    let dir = TestDir::new();
    let run = order(&dir, &["--name", "first"]);
    let export = |file: &str| {
        let output = dir.bench(&["export", &run, "--out", file]);
        assert_eq!(output.code, 0, "{}", output.stderr);
        std::fs::read(dir.path(file)).unwrap()
    };
    let before = export("before.zip");
    dir.json(&["runs", "edit", &run, "--name", "second", "--tag", "t", "--json"]);
    assert_eq!(export("after.zip"), before);
    assert_eq!(dir.bench(&["verify", "after.zip"]).code, 0);
}

#[test]
fn a_deleted_run_leaves_nothing_in_the_data_directory() {
    let dir = TestDir::new();
    dir.write("replies.jsonl", "{\"item_id\": \"#0\", \"response\": \"The answer is (C).\"}\n");
    let replay =
        ["run", "--model", "replay:replies.jsonl", "--benchmark", "mmlu_pro", "--demo", "--item", "#0"];
    let replayed = dir.json(&[&replay[..], &["--json"]].concat())[0]["id"].as_str().unwrap().to_owned();
    let (deleted, kept) = (order(&dir, &["--tag", "t"]), order(&dir, &["--tag", "t"]));
    let count = |part: &str| stored(&dir).iter().filter(|key| key.contains(part)).count();
    let prefixes = ["bodies/", "exports/"].map(|prefix| format!("{prefix}{deleted}"));
    assert!(prefixes.iter().all(|prefix| count(prefix) > 0) && count("uploads/") > 0, "{:?}", stored(&dir));

    dir.bench(&["runs", "delete", &deleted]).assert_refused(2, "no terminal to ask at");
    let missing = "00000000-0000-4000-8000-000000000000";
    dir.bench(&["runs", "delete", &deleted, missing, "--yes"]).assert_refused(1, "run not found");
    assert_eq!(list(&dir, &["--tag", "t"]), [kept.clone(), deleted.clone()], "all are checked first");

    let output = dir.json(&["runs", "delete", &deleted, &replayed, &deleted, "--yes", "--json"]);
    let expected = [&deleted, &replayed].map(|run| json!({ "id": run, "status": "deleted" }));
    assert_eq!(output, Value::from(expected.to_vec()));
    assert_eq!((count(&deleted), count(&replayed), count("uploads/")), (0, 0, 0), "{:?}", stored(&dir));
    assert_eq!(list(&dir, &[]), [kept.as_str()]);
    assert!(count(&kept) > 0);
    dir.bench(&["runs", &deleted]).assert_refused(1, "run not found");
    dir.bench(&["runs", "delete", &deleted, "--yes"]).assert_refused(1, "run not found");
    // Files outside the data directory are the user's.
    let results = std::fs::read_dir(dir.path("bench-results")).unwrap();
    let names = results.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(names.filter(|name| name.contains(&deleted)).count() > 0);
}

/// A server works in the data directory; the commands use the same one.
#[test]
fn runs_are_edited_and_deleted_beside_a_server() {
    let dir = TestDir::new();
    let run = order(&dir, &["--tag", "t"]);
    let server = Server::start(&dir, &[]);
    dir.json(&["runs", "edit", &run, "--name", "beside", "--json"]);
    assert_eq!(list(&dir, &["--name", "beside", "--server", &server.address]), [run.as_str()]);
    dir.json(&["runs", "delete", &run, "--yes", "--json"]);
    assert!(list(&dir, &["--server", &server.address]).is_empty());
    drop(server);
    let left: Vec<String> = stored(&dir).into_iter().filter(|key| key.contains(&run)).collect();
    assert_eq!(left, [""; 0]);
}

#[test]
fn a_person_is_asked_before_runs_are_deleted() {
    let dir = TestDir::new();
    let run = order(&dir, &["--name", "to delete"]);
    for answer in ["n\n", "\n", "\u{4}"] {
        let output = in_terminal(&dir, &["runs", "delete", &run], answer);
        assert_eq!(output.code, 1, "{answer:?}: {}{}", output.stdout, output.stderr);
        for part in [
            &run,
            "oracle on mmlu_pro, succeeded",
            "to delete",
            "Delete 1 run with all",
            "Nothing was deleted",
        ] {
            assert!(output.stdout.contains(part), "{part}: {}", output.stdout);
        }
    }
    assert_eq!(list(&dir, &[]), [run.as_str()]);
    let output = in_terminal(&dir, &["runs", "delete", &run], "y\n");
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    assert!(output.stdout.contains(&format!("Deleted run {run}")), "{}", output.stdout);
    assert!(list(&dir, &[]).is_empty());
}
