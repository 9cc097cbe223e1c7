//! Interrupted runs: the processes that work on them, listing and resuming.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bench_tests::model_server::{ModelServer, Reply};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::serve::Server;
use crate::support::{CommandOutput, TestDir};

/// Long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Longer than any test.
const FOREVER: Duration = Duration::from_secs(3_600);

/// MMLU-Pro rows with a marker that identifies items for the model server.
pub(crate) fn items(prefix: &str, count: usize) -> String {
    let row = |id: String, cot: &str| {
        let row = json!({
            "question": format!("[item {id}] Which is the second letter?"), "options": ["A", "B", "C"],
            "answer": "B", "answer_index": 1, "category": "math", "cot_content": cot, "question_id": id, "src": "own",
        });
        format!("{row}\n")
    };
    let shot = row("shot".into(), "A: Let's think step by step. The answer is (B).");
    (0..count).map(|n| row(format!("{prefix}{n}"), "")).fold(shot, |all, row| all + &row)
}

/// Model server that doesn't answer items `a…` until `answers_all` is set, and a folder with both kinds of items.
struct HangingModelTest {
    /// Drives the server.
    _runtime: Runtime,
    server: ModelServer,
    answers_all: Arc<AtomicBool>,
    dir: TestDir,
}

impl HangingModelTest {
    fn new() -> Self {
        let runtime = Runtime::new().unwrap();
        let answers_all = Arc::new(AtomicBool::new(false));
        let is_answering = Arc::clone(&answers_all);
        let rule =
            move |request: &bench_tests::model_server::ModelRequest| match request.item.starts_with('a') {
                true if !is_answering.load(Ordering::SeqCst) => Reply::Hang(FOREVER),
                _ => Reply::Text("The answer is (B).".to_owned()),
            };
        let server = runtime.block_on(ModelServer::start(Duration::ZERO, Arc::new(rule))).unwrap();
        let dir = TestDir::new();
        dir.write("a.jsonl", items("a", 3));
        dir.write("b.jsonl", items("b", 4));
        Self { _runtime: runtime, server, answers_all, dir }
    }

    fn order(&self, file: &str) -> Vec<String> {
        let base_url = self.server.base_url();
        let args =
            ["run", "--json", "--durability", "normal", "--concurrency", "1", "--benchmark", "mmlu_pro"];
        let model = ["--model", "openai-compatible/m", "--base-url", base_url.as_str(), "--dataset"];
        args.iter().chain(&model).map(|arg| (*arg).to_owned()).chain([format!("mmlu_pro={file}")]).collect()
    }

    fn run(&self, args: &[String]) -> CommandOutput {
        self.dir.bench(&args.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Returns the number of questions about items `a…` so far.
    fn asked_of_a(&self) -> u64 {
        self.server
            .question_counts()
            .iter()
            .filter(|(item, _)| item.starts_with('a'))
            .map(|(_, times)| times)
            .sum()
    }

    /// Starts a command, waits for the next question about an item `a…`, and kills the command.
    fn killed_while_asking(&self, args: &[String]) {
        let before = self.asked_of_a();
        let mut child = self.start(args);
        self.until_asked(before + 1, &mut child);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    fn start(&self, args: &[String]) -> Child {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        self.dir.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn until_asked(&self, times: u64, child: &mut Child) {
        let started = Instant::now();
        while self.asked_of_a() < times {
            assert!(started.elapsed() < TIMEOUT, "the model is not asked");
            assert!(child.try_wait().unwrap().is_none(), "the command ended before it asked");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Returns the id of the only run.
    fn first(&self) -> String {
        self.dir.json(&["runs", "--json"])[0]["id"].as_str().unwrap().to_owned()
    }
}

fn resume(run: &str) -> Vec<String> {
    ["run", "--resume", run, "--json", "--durability", "normal", "--concurrency", "1"]
        .map(str::to_owned)
        .to_vec()
}

/// Without `--concurrency`, the command first reads the run's own.
#[test]
fn a_resumed_run_is_continued_with_the_same_folder_for_results() {
    let test = HangingModelTest::new();
    test.killed_while_asking(&test.order("a.jsonl"));
    let run = test.first();
    let mut command = test.dir.command(&["run", "--resume", &run, "--out", "my results"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    test.until_asked(2, &mut child);
    // The second one doesn't wait for the answer.
    for _ in 0..2 {
        let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(sent.unwrap().success());
        std::thread::sleep(Duration::from_millis(500));
    }
    let output = CommandOutput::new(&child.wait_with_output().unwrap());
    let command = format!("continue with: bench run --resume {run} --out 'my results'");
    assert!(output.stderr.contains(&command), "{}", output.stderr);
}

#[test]
fn a_new_run_leaves_an_interrupted_one_alone_until_it_is_resumed() {
    let test = HangingModelTest::new();
    test.killed_while_asking(&test.order("a.jsonl"));
    assert_eq!(test.asked_of_a(), 1);
    let a = test.first();

    // One sample at a time: any question about the interrupted run would block this one.
    let output = test.run(&test.order("b.jsonl"));
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    assert!(output.stderr.contains(&format!("bench run --resume {a}")), "{}", output.stderr);
    assert_eq!(test.asked_of_a(), 1, "the interrupted run was asked");

    let listed = test.dir.bench(&["runs"]);
    assert!(listed.stdout.contains("interrupted 0/3"), "{}", listed.stdout);
    assert!(listed.stderr.contains(&format!("bench run --resume {a}")), "{}", listed.stderr);
    let shown = test.dir.json(&["runs", &a, "--json"]);
    assert_eq!((&shown["status"], &shown["interrupted"]), (&json!("running"), &json!(true)));
    let shown = test.dir.bench(&["runs", &a]).stdout;
    assert_eq!(shown.matches("interrupted 0/3").count(), 2, "the run and its benchmark: {shown}");
    let ids = |status: &str| {
        let runs = test.dir.json(&["runs", "--status", status, "--json"]);
        runs.as_array().unwrap().iter().map(|run| run["id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids("interrupted"), [json!(a)]);
    assert_eq!(ids("running"), [json!(a)]);
    let operated = test.dir.bench(&["ops"]).stdout;
    assert!(operated.contains("1 running (1 of these interrupted)"), "{operated}");
    let deleted = test.dir.bench(&["runs", "delete", &a, "--yes"]);
    deleted.assert_refused(1, "is interrupted: only runs that are over can be deleted");
    assert!(deleted.stderr.contains(&format!("`bench cancel {a}` stops it")), "{}", deleted.stderr);

    // Resumed and killed again: each attempt counts.
    test.killed_while_asking(&resume(&a));
    test.killed_while_asking(&resume(&a));
    test.answers_all.store(true, Ordering::SeqCst);
    let output = test.run(&resume(&a));
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    assert!(!output.stderr.contains("interrupted run"), "{}", output.stderr);
    let items = test.dir.json(&["runs", &a, "--items", "--json"]);
    let attempts = |item: &serde_json::Value| {
        let metadata = &item["item_metadata"];
        (metadata["worker_attempts"].as_u64(), metadata["lost_attempts"].as_u64())
    };
    let items = items.as_array().unwrap();
    assert_eq!(items.len(), 3);
    assert!(items.iter().any(|item| attempts(item) == (Some(4), Some(3))), "{items:?}");
    assert!(items.iter().filter(|item| attempts(item) == (Some(1), None)).count() == 2, "{items:?}");
    assert_eq!(test.asked_of_a(), 3 + 3);
}

#[test]
fn a_server_continues_what_was_ordered_or_resumed_at_a_server() {
    let test = HangingModelTest::new();
    test.killed_while_asking(&test.order("a.jsonl"));
    let a = test.first();

    // The server doesn't work on a run of the command line. Another run, ordered at the same server, ends.
    let server = Server::start(&test.dir, &["--concurrency", "1"]);
    let address = server.address.clone();
    let demo =
        ["run", "--model", "oracle", "--benchmark", "mmlu_pro", "--demo", "--subset-count", "3", "--json"];
    let output = test.dir.bench(&[&demo[..], &["--server", &address]].concat());
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    assert_eq!(test.asked_of_a(), 1, "the server took up a run of the command line");
    let listed = test.dir.bench(&["runs", "--server", &address]);
    assert!(
        listed.stderr.contains(&format!("bench run --resume {a} --server {address}")),
        "{}",
        listed.stderr
    );

    // A run that is resumed at the server belongs to this server and to later ones.
    let at_server = [resume(&a), vec!["--server".into(), address]].concat();
    let mut watching = test.start(&at_server);
    test.until_asked(2, &mut watching);
    watching.kill().unwrap();
    watching.wait().unwrap();
    drop(server);
    let server = Server::start(&test.dir, &[]);
    let started = Instant::now();
    while test.asked_of_a() < 3 {
        assert!(started.elapsed() < TIMEOUT, "the next server does not continue the run");
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(server);

    // A command in the foreground leaves the run alone, and works on it only to resume it.
    let asked = test.asked_of_a();
    let output = test.run(&test.order("b.jsonl"));
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    assert!(output.stderr.contains(&format!("bench run --resume {a}")), "{}", output.stderr);
    assert_eq!(test.asked_of_a(), asked);
    test.answers_all.store(true, Ordering::SeqCst);
    let output = test.run(&resume(&a));
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let shown = test.dir.json(&["runs", &a, "--json"]);
    assert_eq!((&shown["status"], &shown["coverage"]), (&json!("succeeded"), &json!(1.0)));
}

#[test]
fn a_run_that_succeeded_with_errors_is_completed() {
    let dir = TestDir::new();
    let runtime = Runtime::new().unwrap();
    let answers_all = Arc::new(AtomicBool::new(false));
    let is_answering = Arc::clone(&answers_all);
    let rule = move |request: &bench_tests::model_server::ModelRequest| match request.item.as_str() {
        "c7" if !is_answering.load(Ordering::SeqCst) => {
            Reply::Status(500, r#"{"error":{"message":"the gpu melted"}}"#.into(), vec![])
        }
        _ => Reply::Text("The answer is (B).".to_owned()),
    };
    let server = runtime.block_on(ModelServer::start(Duration::ZERO, Arc::new(rule))).unwrap();
    dir.write("c.jsonl", items("c", 20));
    let base_url = server.base_url();
    let bench = |args: &[&str]| {
        CommandOutput::new(&dir.command(args).env("WORKER_ITEM_ATTEMPTS", "1").output().unwrap())
    };
    let order = ["run", "--model", "openai-compatible/m", "--base-url", &base_url, "--benchmark", "mmlu_pro"];
    let output = bench(&[&order[..], &["--dataset", "mmlu_pro=c.jsonl"]].concat());
    assert_eq!(output.code, 0, "95% are enough: {}{}", output.stdout, output.stderr);
    let run = dir.json(&["runs", "--json"])[0]["id"].as_str().unwrap().to_owned();
    let resume = format!("bench run --resume {run}");
    for part in ["1 infrastructure-error, without a score", "1 × ", "the gpu melted", &resume] {
        assert!(output.stderr.contains(part), "{part}: {}", output.stderr);
    }
    let detail = bench(&["runs", &run]);
    for part in ["the gpu melted", &resume] {
        assert!(detail.stdout.contains(part), "{part}: {}", detail.stdout);
    }
    let shown = dir.json(&["runs", &run, "--json"]);
    assert_eq!((&shown["status"], &shown["coverage"]), (&json!("succeeded"), &json!(0.95)));
    let causes = &shown["results"][0]["error_causes"];
    assert_eq!(causes[0]["count"], 1);
    assert!(causes[0]["message"].as_str().unwrap().contains("the gpu melted"), "{causes}");

    // The sample may fail again and be repeated again.
    let before = server.question_counts();
    let again = bench(&["requeue", &run, "--errors", "--json"]);
    assert_eq!(again.code, 0, "{}{}", again.stdout, again.stderr);
    answers_all.store(true, Ordering::SeqCst);
    let output = bench(&["run", "--resume", &run]);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    assert!(!output.stderr.contains("the gpu melted"), "{}", output.stderr);
    for (item, times) in server.question_counts() {
        assert_eq!(times - before[&item], if item == "c7" { 2 } else { 0 }, "item {item}");
    }
    let shown = dir.json(&["runs", &run, "--json"]);
    assert_eq!(
        (&shown["status"], &shown["coverage"], &shown["score"]),
        (&json!("succeeded"), &json!(1.0), &json!(1.0))
    );
    assert_eq!(shown["results"][0]["error_causes"], json!([]));

    let total = server.total();
    let output = bench(&["run", "--resume", &run]);
    assert!(output.code == 0 && output.stderr.contains("is complete"), "{}{}", output.stdout, output.stderr);
    bench(&["requeue", &run, "--errors", "--detach"]).assert_refused(1, "no infrastructure-errors");
    bench(&["requeue", &run, "--detach"]).assert_refused(1, "cannot be requeued");
    assert_eq!(server.total(), total);
}

#[test]
fn a_run_continues_only_at_the_host_that_it_was_ordered_with() {
    let dir = TestDir::new();
    let runtime = Runtime::new().unwrap();
    let answers = Arc::new(AtomicBool::new(false));
    let is_answering = Arc::clone(&answers);
    let rule = move |_: &bench_tests::model_server::ModelRequest| match is_answering.load(Ordering::SeqCst) {
        true => Reply::Text("The answer is (B).".to_owned()),
        false => Reply::Status(401, r#"{"error":{"message":"who are you"}}"#.into(), vec![]),
    };
    let server = runtime.block_on(ModelServer::start(Duration::ZERO, Arc::new(rule))).unwrap();
    let other = runtime
        .block_on(ModelServer::start(
            Duration::ZERO,
            Arc::new(|_: &_| Reply::Text("The answer is (A).".into())),
        ))
        .unwrap();
    dir.write("c.jsonl", items("c", 3));
    let bench = |base_url: &str, args: &[&str]| {
        let mut command = dir.command(args);
        CommandOutput::new(&command.env("OPENAI_COMPATIBLE_BASE_URL", base_url).output().unwrap())
    };
    let order =
        ["run", "--model", "openai-compatible/m", "--benchmark", "mmlu_pro", "--dataset", "mmlu_pro=c.jsonl"];
    assert_eq!(bench(&server.base_url(), &order).code, 1);
    let run = dir.json(&["runs", "--json"])[0]["id"].as_str().unwrap().to_owned();
    let resume = ["run", "--resume", &run];
    let stored = dir.json(&["runs", &run, "--json"]);
    let elsewhere = bench(&other.base_url(), &resume);
    elsewhere.assert_refused(2, "set OPENAI_COMPATIBLE_BASE_URL to the run's address");
    bench(&other.base_url(), &["requeue", &run]).assert_refused(2, "never made of the answers of two hosts");
    dir.bench(&resume).assert_refused(2, "needs a base URL: set OPENAI_COMPATIBLE_BASE_URL");
    assert_eq!(dir.json(&["runs", &run, "--json"]), stored, "refusals change nothing");
    answers.store(true, Ordering::SeqCst);
    let output = bench(&server.base_url(), &resume);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    assert!(other.question_counts().is_empty());
}
