//! Several commands that use one data directory at once.

use std::io::Read as _;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bench_tests::model_server::{ModelRequest, ModelServer, Reply};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::interrupted::items;
use crate::provider::model_server;
use crate::serve::Server;
use crate::support::{CommandOutput, TestDir};

/// Long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Model server that doesn't answer items `a…` until `answers_a` is set and items `c…` until `answers_c` is, and a folder with files of 2 items
/// `a…`, 4 items `b…` and 5 items `c…`.
struct Terminals {
    /// Drives the server.
    _runtime: Runtime,
    server: ModelServer,
    answers_a: watch::Sender<bool>,
    answers_c: watch::Sender<bool>,
    dir: TestDir,
}

/// A command in the background, which is killed when this is dropped.
struct Background(Child);

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Background {
    /// Ends the command at once, as a crash does.
    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Presses Ctrl-C.
    fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.0.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits until the command has written `text` to standard error. What was read until then isn't in its output.
    fn until_said(&mut self, text: &str) {
        let (mut said, mut byte) = (Vec::new(), [0]);
        while !String::from_utf8_lossy(&said).contains(text) {
            let read = self.0.stderr.as_mut().unwrap().read(&mut byte).unwrap();
            assert_eq!(read, 1, "`{text}` is not in: {}", String::from_utf8_lossy(&said));
            said.push(byte[0]);
        }
    }

    /// Waits for the end of the command, and returns its output.
    fn output(mut self) -> CommandOutput {
        let started = Instant::now();
        while self.0.try_wait().unwrap().is_none() {
            assert!(started.elapsed() < TIMEOUT, "the command does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.0.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        self.0.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        CommandOutput { code: self.0.wait().unwrap().code().unwrap_or(-1), stdout, stderr }
    }
}

impl Terminals {
    fn new() -> Self {
        let runtime = Runtime::new().unwrap();
        let (answers_a, is_answering_a) = watch::channel(false);
        let (answers_c, is_answering_c) = watch::channel(false);
        let rule = move |request: &ModelRequest| {
            let answer = "The answer is (B).".to_owned();
            match request.item.chars().next() {
                Some('a') => Reply::once(is_answering_a.clone(), answer),
                Some('c') => Reply::once(is_answering_c.clone(), answer),
                _ => Reply::Text(answer),
            }
        };
        let server = runtime.block_on(ModelServer::start(Duration::ZERO, Arc::new(rule))).unwrap();
        let dir = TestDir::new();
        for (name, count) in [("a", 2), ("b", 4), ("c", 5)] {
            dir.write(&format!("{name}.jsonl"), items(name, count));
        }
        Self { _runtime: runtime, server, answers_a, answers_c, dir }
    }

    /// Returns the arguments that order a run of the items in a file.
    fn order(&self, name: &str) -> Vec<String> {
        let base_url = self.server.base_url();
        let args =
            ["run", "--json", "--durability", "normal", "--concurrency", "2", "--benchmark", "mmlu_pro"];
        let model = ["--model", "openai-compatible/m", "--base-url", &base_url, "--dataset"];
        let dataset = format!("mmlu_pro={name}.jsonl");
        args.iter().chain(&model).map(|arg| (*arg).to_owned()).chain([dataset]).collect()
    }

    fn run(&self, args: &[String]) -> CommandOutput {
        self.dir.bench(&args.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn start(&self, args: &[String]) -> Background {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut command = self.dir.command(&args);
        Background(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    /// Returns the number of questions about items that start with `name`.
    fn asked(&self, name: &str) -> u64 {
        let counts = self.server.question_counts();
        counts.iter().filter(|(item, _)| item.starts_with(name)).map(|(_, times)| times).sum()
    }

    fn until_asked(&self, name: &str, times: u64) {
        let what = format!("the model is not asked about {name}");
        until(&what, || self.asked(name) >= times);
    }

    /// Starts a run, and returns it with its id once the model has been asked `times` times.
    fn started(&self, name: &str, times: u64) -> (Background, String) {
        let known = self.ids();
        let command = self.start(&self.order(name));
        self.until_asked(name, times);
        let id = self.ids().into_iter().find(|id| !known.contains(id)).unwrap();
        (command, id)
    }

    fn ids(&self) -> Vec<String> {
        let runs = self.dir.json(&["runs", "--json"]);
        runs.as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect()
    }

    fn is_interrupted(&self, run: &str) -> bool {
        self.dir.json(&["runs", run, "--json"])["interrupted"] == true
    }

    fn answer_all(&self) {
        self.answers_a.send(true).unwrap();
        self.answers_c.send(true).unwrap();
    }
}

fn until(what: &str, is_true: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_true() {
        assert!(started.elapsed() < TIMEOUT, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[track_caller]
fn assert_succeeded(output: &CommandOutput) {
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
}

fn resume(run: &str) -> Vec<String> {
    ["run", "--resume", run, "--json", "--durability", "normal", "--concurrency", "2"]
        .map(str::to_owned)
        .to_vec()
}

#[test]
fn every_command_works_while_another_one_runs() {
    let terminals = Terminals::new();
    let earlier = terminals.run(&terminals.order("b"));
    assert_succeeded(&earlier);
    let done = terminals.ids()[0].clone();
    let (first, run) = terminals.started("a", 2);

    let socket = std::fs::metadata(terminals.dir.path("data/socket")).unwrap();
    assert!(socket.file_type().is_socket());
    assert_eq!(socket.permissions().mode() & 0o777, 0o600);

    for args in [
        &["runs"][..],
        &["runs", &run],
        &["runs", &done, "--items"],
        &["runs", &done, "--events"],
        &["ops"],
        &["export", &done, "--out", "done.zip"],
        &["export", &done, "--format", "csv", "--out", "done.csv"],
        &["compare", &done, &done],
        &["models"],
        &["benchmarks"],
        &["datasets"],
        &["schedules"],
        &["run", "--dry-run", "--benchmark", "mmlu_pro", "--dataset", "mmlu_pro=b.jsonl"],
        &["run", "--model", "oracle", "--demo", "--benchmark", "mmlu_pro", "--subset-count", "3"],
    ] {
        let output = terminals.dir.bench(args);
        assert_eq!(output.code, 0, "{args:?}: {}{}", output.stdout, output.stderr);
    }
    assert_succeeded(&terminals.dir.bench(&["verify", "done.zip"]));
    let listed = terminals.dir.bench(&["runs", &run]);
    assert!(!listed.stdout.contains("interrupted"), "{}", listed.stdout);

    // A second run of the same model: relative paths are those of the second terminal.
    let second = terminals.run(&terminals.order("b"));
    assert_succeeded(&second);
    assert!(second.stderr.contains("(`bench run`) does the work; this command watches"), "{}", second.stderr);
    let output = terminals.dir.bench(&["cancel", &run]);
    assert_succeeded(&output);
    let steps = format!(
        "hint: `bench run --resume {run}` runs the missing samples, `bench runs delete {run}` removes"
    );
    assert!(output.stderr.contains(&steps), "{}", output.stderr);
    let again = terminals.dir.bench(&["cancel", &run]);
    assert_succeeded(&again);
    assert!(
        again.stdout.contains("was already canceled") && again.stderr.contains(&steps),
        "{}",
        again.stdout
    );
    let canceled = first.output();
    assert!(canceled.stderr.contains(&steps), "{}", canceled.stderr);
    let shown = terminals.dir.bench(&["runs", &run]).stdout;
    assert!(shown.contains("canceled 0/2"), "the benchmark, too: {shown}");
    assert_eq!(canceled.code, 1, "{}{}", canceled.stdout, canceled.stderr);
    assert!(canceled.stdout.contains("canceled"), "{}", canceled.stdout);
    assert!(!terminals.dir.path("data/socket").exists());
}

#[test]
fn a_waiting_command_takes_over_from_a_killed_one() {
    let terminals = Terminals::new();
    let (first, a) = terminals.started("a", 2);
    let (second, c) = terminals.started("c", 2);
    let (third, other) = terminals.started("c", 4);
    first.kill();
    // The questions in progress are asked again, by a process that heard of the end.
    terminals.until_asked("c", 8);
    assert!(terminals.is_interrupted(&a));
    assert!(!terminals.is_interrupted(&c) && !terminals.is_interrupted(&other));
    let shown = terminals.dir.bench(&["runs", &a]).stdout;
    assert!(shown.contains("interrupted") && shown.contains("--resume"), "{shown}");
    terminals.answer_all();
    let (second, third) = (second.output(), third.output());
    assert_succeeded(&second);
    assert_succeeded(&third);
    let took_over = [&second, &third].map(|output| output.stderr.contains("this one continues it"));
    assert!(took_over.contains(&true), "{}{}", second.stderr, third.stderr);
    assert_eq!(terminals.asked("a"), 2, "nobody works on the run of the killed command");
    assert_eq!(terminals.asked("c"), 10 + 4, "only what was in progress is asked again");
    assert_succeeded(&terminals.run(&resume(&a)));
}

#[test]
fn a_command_that_is_done_finishes_the_answers_for_others() {
    let terminals = Terminals::new();
    let (mut first, a) = terminals.started("a", 2);
    let (second, _) = terminals.started("c", 2);
    terminals.answers_a.send(true).unwrap();
    until("the first run does not end", || {
        terminals.dir.json(&["runs", &a, "--json"])["status"] == "succeeded"
    });
    first.until_said("Finishing 2 answers for runs of other terminals");
    assert!(first.0.try_wait().unwrap().is_none(), "it doesn't wait for the answers of the second");
    terminals.answers_c.send(true).unwrap();
    let first = first.output();
    assert_succeeded(&first);
    assert_succeeded(&second.output());
    let counts = terminals.server.question_counts();
    assert!(counts.values().all(|times| *times == 1), "{counts:?}");
}

#[test]
fn a_run_stops_with_its_command() {
    let kill = |command: Background| command.kill();
    let interrupt = |command: Background| {
        command.interrupt();
        let output = command.output();
        assert_eq!(output.code, 130, "{}", output.stderr);
        assert!(output.stderr.contains("Continue with: bench run --resume"), "{}", output.stderr);
    };
    for end in [kill, interrupt] {
        let terminals = Terminals::new();
        let (first, a) = terminals.started("a", 2);
        let (second, c) = terminals.started("c", 2);
        end(second);
        until("the run is not interrupted", || terminals.is_interrupted(&c));
        assert!(!terminals.is_interrupted(&a));
        let events = terminals.dir.bench(&["runs", &c, "--events"]).stdout;
        assert!(events.contains("run_interrupted"), "{events}");
        // Answers in progress arrive, and nothing else is asked.
        terminals.answer_all();
        assert_succeeded(&first.output());
        assert_eq!(terminals.asked("c"), 2);
        assert_succeeded(&terminals.run(&resume(&c)));
        assert_eq!(terminals.asked("c"), 5);
    }
}

#[test]
fn a_command_that_stops_watching_names_the_process_that_continues() {
    let terminals = Terminals::new();
    let (first, a) = terminals.started("a", 2);
    let mut second = terminals.start(&resume(&a));
    second.until_said("does the work; this command watches");
    second.interrupt();
    let output = second.output();
    assert_eq!(output.code, 130, "{}", output.stderr);
    let continues =
        format!("Process {} (`bench run`) continues the run. Watch it with: bench run", first.0.id());
    assert!(output.stderr.contains(&continues), "{}", output.stderr);
    assert!(!terminals.is_interrupted(&a));
    terminals.answer_all();
    assert_succeeded(&first.output());
    assert_eq!(terminals.asked("a"), 2);
}

#[test]
fn a_run_is_resumed_at_the_process_that_interrupted_it() {
    let terminals = Terminals::new();
    let (first, _) = terminals.started("a", 2);
    let (second, c) = terminals.started("c", 2);
    second.kill();
    let third = terminals.start(&resume(&c));
    until("the run is not resumed", || !terminals.is_interrupted(&c));
    terminals.answer_all();
    assert_succeeded(&third.output());
    assert_succeeded(&first.output());
    assert_eq!(terminals.asked("c"), 5);
}

#[test]
fn each_command_keeps_its_own_limit() {
    let terminals = Terminals::new();
    let alone = |name: &str, concurrency: &str| {
        let mut order = terminals.order(name);
        let at = order.iter().position(|arg| arg == "--concurrency").unwrap();
        order[at + 1] = concurrency.to_owned();
        terminals.start(&order)
    };
    let first = alone("a", "1");
    terminals.until_asked("a", 1);
    let second = alone("c", "4");
    terminals.until_asked("c", 4);
    let third = alone("c", "1");
    terminals.until_asked("c", 5);
    assert_eq!((terminals.asked("a"), terminals.asked("c")), (1, 5));
    terminals.answer_all();
    for command in [first, second, third] {
        assert_succeeded(&command.output());
    }
}

#[test]
fn a_run_for_a_server_waits_for_one() {
    let terminals = Terminals::new();
    let (command, c) = terminals.started("c", 2);
    command.kill();
    let (first, _) = terminals.started("a", 2);
    assert_succeeded(&terminals.dir.bench(&["requeue", &c, "--detach"]));
    terminals.answer_all();
    assert_succeeded(&first.output());
    assert_eq!(terminals.asked("c"), 2, "a command in the foreground worked on it");
    let _server = Server::start(&terminals.dir, &[]);
    terminals.until_asked("c", 7);
}

#[test]
fn a_stopped_owner_is_named() {
    let terminals = Terminals::new();
    let (first, _) = terminals.started("a", 2);
    let (second, _) = terminals.started("c", 2);
    first.signal(Signal::STOP);
    terminals
        .dir
        .bench(&["runs"])
        .assert_refused(1, &format!("process {}, which does not answer", first.0.id()));
    first.signal(Signal::CONT);
    terminals.answer_all();
    assert_succeeded(&first.output());
    let output = second.output();
    assert_succeeded(&output);
    assert!(output.stderr.contains("does not answer; continue it with `fg`"), "{}", output.stderr);
}

#[test]
fn commands_that_start_at_once_share_the_directory() {
    let terminals = Terminals::new();
    let commands: Vec<Background> = (0..5).map(|_| terminals.start(&terminals.order("b"))).collect();
    for command in commands {
        assert_succeeded(&command.output());
    }
    assert_eq!(terminals.ids().len(), 5);
    assert_eq!(terminals.asked("b"), 5 * 4, "nothing is asked twice");
}

#[test]
fn variables_are_those_of_the_terminal_that_orders() {
    let terminals = Terminals::new();
    let (first, _) = terminals.started("a", 2);
    let (base_url, requests) = model_server(200);
    let order =
        ["run", "--model", "openai-compatible/m", "--benchmark", "mmlu_pro", "--dataset", "mmlu_pro=b.jsonl"];
    let mut command = terminals.dir.command(&order);
    command.env("OPENAI_COMPATIBLE_BASE_URL", &base_url).env("OPENAI_COMPATIBLE_API_KEY", "sk-second");
    let output = CommandOutput::new(&command.output().unwrap());
    assert_succeeded(&output);
    let requests = requests.lock().unwrap();
    assert_eq!(requests.len(), 4);
    assert!(requests.iter().all(|request| request.authorization.as_deref() == Some("Bearer sk-second")));
    drop(first);
}

#[test]
fn a_run_that_failed_is_repeated_with_the_key_of_the_same_variables() {
    let terminals = Terminals::new();
    let (first, _) = terminals.started("a", 2);
    let (refusing, _) = model_server(401);
    let (other, requests) = model_server(200);
    let bench = |args: &[&str], base_url: &str| {
        let mut command = terminals.dir.command(args);
        command.env("OPENAI_COMPATIBLE_BASE_URL", base_url).env("OPENAI_COMPATIBLE_API_KEY", "sk-second");
        CommandOutput::new(&command.output().unwrap())
    };
    let order =
        ["run", "--model", "openai-compatible/m", "--benchmark", "mmlu_pro", "--dataset", "mmlu_pro=b.jsonl"];
    assert_eq!(bench(&order, &refusing).code, 1);
    drop(first);
    let id = terminals.ids()[0].clone();
    // The run asks the same address again, and no other address gets the key.
    let output = bench(&["run", "--resume", &id], &refusing);
    assert!(output.stderr.contains("Repeating the missing samples"), "{}", output.stderr);
    let output = bench(&["run", "--resume", &id], &other);
    output.assert_refused(1, "own key");
    assert!(requests.lock().unwrap().is_empty());
}

#[test]
fn a_server_works_on_runs_of_commands_and_leaves_them_when_it_ends() {
    let terminals = Terminals::new();
    let server = Server::start(&terminals.dir, &["--concurrency", "1"]);
    let (command, c) = terminals.started("c", 2);
    let shown = terminals.dir.json(&["runs", &c, "--json", "--server", &server.address]);
    assert_eq!(shown["interrupted"], false);
    drop(server);
    terminals.until_asked("c", 4);
    // Another server waits for the end of the command.
    let mut waiting = terminals.dir.command(&["serve", "--port", "0"]);
    let waiting = Background(waiting.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    terminals.answer_all();
    assert_succeeded(&command.output());
    until("the server does not start", || {
        let owner = terminals.dir.bench(&["ops"]);
        owner.code == 0 && terminals.dir.path("data/socket").exists()
    });
    waiting.interrupt();
    let output = waiting.output();
    assert!(
        output.stderr.contains("Waiting for process") || output.stdout.contains("Serving"),
        "{}",
        output.stderr
    );
}

#[test]
fn a_long_path_and_a_socket_left_behind_do_no_harm() {
    let terminals = Terminals::new();
    let deep = terminals.dir.path(&"d".repeat(120));
    let deep = deep.to_str().unwrap();
    let with_dir = |args: Vec<String>| [args, vec!["--data-dir".to_owned(), deep.to_owned()]].concat();
    let first = terminals.start(&with_dir(terminals.order("a")));
    terminals.until_asked("a", 2);
    assert_succeeded(&terminals.run(&with_dir(terminals.order("b"))));
    first.kill();
    assert!(std::path::Path::new(deep).join("socket").exists());
    assert_succeeded(&terminals.run(&with_dir(terminals.order("b"))));
    assert_eq!(terminals.asked("b"), 8);
}

#[test]
fn without_sockets_a_directory_is_used_by_one_command_at_a_time() {
    let terminals = Terminals::new();
    // As on a file system that has no sockets.
    std::fs::create_dir_all(terminals.dir.path("data/socket/full")).unwrap();
    let own = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(terminals.dir.path("data"), own).unwrap();
    let mut first = terminals.start(&terminals.order("a"));
    terminals.until_asked("a", 2);
    terminals.dir.bench(&["runs"]).assert_refused(1, "is in use by another process");
    terminals.answer_all();
    let started = Instant::now();
    while first.0.try_wait().unwrap().is_none() {
        assert!(started.elapsed() < TIMEOUT, "the command does not end");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(terminals.dir.json(&["runs", "--json"])[0]["status"], json!("succeeded"));
}
