//! Snapshots of help texts and messages: `messages/COMMAND.txt` for each command, in the form of a terminal transcript.
//!
//! A test runs the commands of a transcript (lines that start with `$ `) in order and compares their output. To add a
//! case, add its line and run the tests with `BENCH_WRITE_MESSAGES=1`, which writes the output. Comments start with `# `.
//! Ids, times, paths and other varying parts are replaced by words in capitals.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{CommandOutput, TestDir, mmlu_pro_rows, vector_path};

mod filter;

use filter::Filter;

/// Variable that makes the tests write the transcripts instead of comparing them.
const WRITE_VARIABLE: &str = "BENCH_WRITE_MESSAGES";
/// Id of a run that doesn't exist.
const MISSING_RUN: &str = "00000000-0000-4000-8000-000000000000";

/// Files that the commands of a transcript use.
struct Setup {
    dir: TestDir,
    /// Id of a finished run, which the transcript calls `RUN`.
    run: Option<String>,
    /// Keeps the data directory `locked` in use.
    _lock: File,
}

impl Setup {
    fn new() -> Self {
        let dir = TestDir::new();
        dir.write("items.jsonl", mmlu_pro_rows(3));
        dir.write("broken.jsonl", "{\"question\": 1}\n");
        dir.write("not-json.jsonl", "{\"id\": 1,\n");
        dir.write("empty.jsonl", "\n");
        dir.write("note.txt", "a text\n");
        let reply = |item: &str, text: &str| json!({ "id": item, "item_id": item, "response": text });
        let replies: Vec<String> =
            (1..=3).map(|id| reply(&id.to_string(), "The answer is (C).").to_string()).collect();
        dir.write("replies.jsonl", replies.join("\n"));
        let second = json!({ "id": "1", "sample": 1, "response": "The answer is (C)." });
        dir.write("more-replies.jsonl", format!("{}\n{second}\n", replies.join("\n")));
        dir.write("other-replies.jsonl", reply("999", "The answer is (C).").to_string());
        fs::create_dir(dir.path("folder")).unwrap();
        fs::create_dir(dir.path("foreign")).unwrap();
        dir.write("foreign/notes.txt", "mine");
        fs::create_dir_all(dir.path("task/tests")).unwrap();
        fs::create_dir_all(dir.path("task/environment")).unwrap();
        dir.write("task/task.toml", "schema_version = \"1.4\"\n");
        dir.write("task/instruction.md", "Create the file `done`.\n");
        dir.write("task/tests/test.sh", "echo 0 > /logs/verifier/reward.txt\n");
        dir.write("task/environment/Dockerfile", "FROM debian:bookworm\n");
        fs::create_dir(dir.path("bad-task")).unwrap();
        dir.write("bad-task/task.toml", "[environment]\ndocker_image = \"debian:bookworm\"\ngpus = 1\n");
        dir.write("bad-task/instruction.md", "x\n");
        fs::create_dir(dir.path("agent")).unwrap();
        dir.write("agent/agent.toml", "name = \"tiny\"\nrun = \"true\"\n[env]\nA = \"${WHO}\"\n");
        fs::create_dir(dir.path("bad-agent")).unwrap();
        dir.write("bad-agent/agent.toml", "name = \"tiny\"\nrun = \"true\"\nmodel = \"m\"\n");
        fs::create_dir(dir.path("idle-agent")).unwrap();
        dir.write("idle-agent/agent.toml", "name = \"tiny\"\n");
        fs::create_dir(dir.path("broken-agent")).unwrap();
        dir.write("broken-agent/agent.toml", "name = \"tiny\"\nrun = \n");
        set_mode(&dir.path("foreign"), 0o755);
        fs::create_dir(dir.path("locked")).unwrap();
        set_mode(&dir.path("locked"), 0o700);
        let lock = File::create(dir.write("locked/lock", "")).unwrap();
        lock.lock().unwrap();
        let archive = fs::read(vector_path("chutes-signed-export.zip")).unwrap();
        dir.write("theirs.zip", &archive);
        dir.write("cut.zip", &archive[..archive.len() / 2]);
        Self { dir, run: None, _lock: lock }
    }

    /// Adds a finished run of two demo items, and its archive `mine.zip`.
    fn with_run() -> Self {
        let mut setup = Self::new();
        let order = "bench run --model oracle --benchmark mmlu_pro --demo --subset-count 2 --seed s --json";
        let runs: Value = serde_json::from_str(&setup.run(order).stdout).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        fs::copy(setup.dir.path(&text(&runs[0]["files"]["zip"])), setup.dir.path("mine.zip")).unwrap();
        setup.run = Some(text(&runs[0]["id"]));
        setup
    }

    /// Runs the command of a transcript's line: `NAME=VALUE… bench ARGUMENTS… < FILE`.
    fn run(&self, line: &str) -> CommandOutput {
        let mut words = split(line).into_iter().peekable();
        let mut variables = Vec::new();
        while let Some((name, value)) = words.peek().and_then(|word| word.split_once('=')) {
            variables.push((name.to_owned(), value.to_owned()));
            words.next();
        }
        assert_eq!(words.next().as_deref(), Some("bench"), "{line}");
        let mut args: Vec<String> = words.collect();
        let stdin = args.iter().position(|word| word == "<").map(|at| args.split_off(at));
        for arg in &mut args {
            match arg.as_str() {
                "RUN" => *arg = self.run.clone().unwrap(),
                "MISSING" => *arg = MISSING_RUN.to_owned(),
                _ => {}
            }
        }
        let mut command = self.dir.command(&args.iter().map(String::as_str).collect::<Vec<_>>());
        // Usage lines would contain the option of the variable.
        command.env_remove("BENCH_HOME").env("XDG_DATA_HOME", self.dir.path("share"));
        command.envs(variables).env("COLUMNS", "100").env("TZ", "UTC");
        if let Some([_, file]) = stdin.as_deref() {
            command.stdin(Stdio::from(File::open(self.dir.path(file)).unwrap()));
        }
        CommandOutput::new(&command.output().unwrap())
    }
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Splits a line into words as a shell does. Single quotes are the only quotes.
fn split(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), None::<String>, false);
    for c in line.chars() {
        match c {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

fn transcript(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/messages").join(format!("{name}.txt"))
}

/// Runs the commands of a transcript, and compares or writes it.
fn check(name: &str, setup: &Setup) {
    let path = transcript(name);
    let stored = fs::read_to_string(&path).unwrap();
    let mut found = String::new();
    for line in stored.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            let output = setup.run(command);
            let filter = Filter::new(&setup.dir, setup.run.as_deref(), command);
            found.push_str(&format!("$ {command}\n{}\n", shown(&output, &filter)));
        } else if line.starts_with("# ") {
            found.push_str(&format!("{line}\n\n"));
        }
    }
    if std::env::var_os(WRITE_VARIABLE).is_some() {
        fs::write(&path, found).unwrap();
        return;
    }
    let differs = stored.lines().zip(found.lines()).position(|(old, new)| old != new);
    if let Some(at) = differs.or((stored != found).then_some(0)) {
        let around =
            |text: &str| text.lines().skip(at.saturating_sub(5)).take(12).collect::<Vec<_>>().join("\n");
        panic!(
            "{} differs at line {} (after a wanted change, run the tests with {WRITE_VARIABLE}=1):\n{}\n--- is now\n{}",
            path.display(),
            at + 1,
            around(&stored),
            around(&found),
        );
    }
}

/// Formats the output of a command: standard output, standard error, and the exit code.
fn shown(output: &CommandOutput, filter: &Filter<'_>) -> String {
    assert!(!output.stderr.contains("panicked"), "{}", output.stderr);
    let (stdout, stderr) =
        (filter.apply(&output.stdout), filter.apply(&filter::without_progress(&output.stderr)));
    let is_input = |line: &str| line.starts_with("$ ") || line.starts_with("# ");
    assert!(!stdout.lines().chain(stderr.lines()).any(is_input), "{stdout}{stderr}");
    let between = if stdout.is_empty() || stderr.is_empty() { "" } else { "(standard error)\n" };
    format!("{stdout}{between}{stderr}exit {}\n", output.code)
}

macro_rules! transcripts {
    ($($name:ident: $setup:expr;)*) => {
        /// Names of the transcripts.
        const NAMES: &[&str] = &[$(stringify!($name)),*];

        $(
            #[test]
            fn $name() {
                check(stringify!($name), &$setup);
            }
        )*
    };
}

transcripts! {
    bench: Setup::new();
    run: Setup::new();
    serve: Setup::new();
    view: Setup::with_run();
    score: Setup::new();
    verify: Setup::with_run();
    export: Setup::with_run();
    artifacts: Setup::with_run();
    turns: Setup::with_run();
    compare: Setup::with_run();
    leaderboard: Setup::with_run();
    runs: Setup::with_run();
    tasks: Setup::new();
    agents: Setup::new();
    schedules: Setup::new();
    cancel: Setup::with_run();
    requeue: Setup::with_run();
    rejudge: Setup::with_run();
    benchmarks: Setup::new();
    models: Setup::new();
    completions: Setup::new();
    datasets: Setup::new();
    keys: Setup::new();
    access: Setup::new();
    doctor: Setup::new();
    sandy: Setup::new();
    ops: Setup::new();
}

/// Returns the names below `Commands:` in a help text.
fn subcommands(help: &str) -> Vec<&str> {
    let names =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = names.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").collect()
}

#[test]
fn every_command_and_its_help_is_in_a_transcript() {
    let dir = TestDir::new();
    let help = dir.bench(&["--help"]).stdout;
    for command in subcommands(&help) {
        assert!(NAMES.contains(&command), "add `{command}` to the transcripts");
        let text = fs::read_to_string(transcript(command)).unwrap();
        let help = dir.bench(&[command, "--help"]).stdout;
        let all = subcommands(&help)
            .into_iter()
            .map(|name| format!("{command} {name}"))
            .chain([command.to_owned()]);
        for command in all {
            assert!(text.contains(&format!("$ bench {command} --help\n")), "add `bench {command} --help`");
        }
    }
}
