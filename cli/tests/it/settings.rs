//! Checks that documentation, code and template agree on variables and flags.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{CommandOutput, TestDir};

/// Names in the sources that aren't settings of this program.
const NOT_SETTINGS: [&str; 52] = [
    // Variables of the Lambda runtime, cargo and build scripts, Go, Python, the allocator, container engines, terminals, desktops, and the base
    // directories.
    "AWS_LAMBDA_FUNCTION_NAME",
    "AWS_LAMBDA_LOG_STREAM_NAME",
    "BENCH_VERSION",
    "CARGO_MANIFEST_DIR",
    "CARGO_PKG_VERSION",
    "CGO_ENABLED",
    "CONTAINERS_CONF",
    "CONTAINERS_STORAGE_CONF",
    "CONTAINER_HOST",
    "DEBIAN_FRONTEND",
    "DOCKER_CONFIG",
    "DOCKER_HOST",
    "MIMALLOC_DISALLOW_ARENA_ALLOC",
    "OUT_DIR",
    "VIRTUAL_ENV",
    "WAYLAND_DISPLAY",
    "WSL_DISTRO_NAME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XTERM_VERSION",
    // Variables of terminal tasks' containers and compose files, and parts of such names.
    "AGENT_INSTRUCTION_FILE",
    "AGENT_LOGS",
    "CONTEXT_DIR",
    "MAIN_IMAGE_NAME",
    "PREBUILT_IMAGE_NAME",
    "TEST_DIR",
    "VERIFIER_LOGS",
    "T_BENCH_CONTAINER_AGENT_LOGS_PATH",
    "T_BENCH_CONTAINER_LOGS_PATH",
    "T_BENCH_TASK_AGENT_LOGS_PATH",
    "T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME",
    "T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME",
    "T_BENCH_TASK_DOCKER_NAME_PREFIX",
    "T_BENCH_TASK_LOGS_PATH",
    "T_BENCH_TEST_DIR",
    // Environment variables of programs in sandboxes.
    "DOCKER_BUILDKIT",
    "SANDY_ALLOW_LANDLOCK",
    "SANDY_FILES",
    "SANDY_ISOLATION",
    "SANDY_PACKAGES",
    "SANDY_TAU2",
    // Of package managers.
    "CARGO_TERM_COLOR",
    "EAI_AGAIN",
    "NODE_ENV",
    // Parts of names, and names in other programs.
    "BENCH_LIMIT",
    "JUDGE_PROMPT",
    "OMNISCIENCE_ANSWER_PROMPT",
    "OMNISCIENCE_GRADER_TEMPLATE",
    "QUERY_TEMPLATE_MULTICHOICE",
    "RESOURCE_EXHAUSTED",
    "SYMMETRIC_DEFAULT",
    "SYSTEM_PROMPT",
];
/// Settings that a library reads.
const OF_LIBRARIES: [&str; 1] = ["AWS_ENDPOINT_URL"];
/// Settings whose names are composed: `BENCH_QUEUE_…_URL` in `shared/queue`.
const PUT_TOGETHER: [&str; 4] =
    ["BENCH_QUEUE_PLANS_URL", "BENCH_QUEUE_ITEMS_URL", "BENCH_QUEUE_TURNS_URL", "BENCH_QUEUE_FINISHES_URL"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn text(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

/// Returns true if the text could be a variable: `TWO_WORDS` or more.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.contains('_')
        && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Returns the names among the parts of a text between these quotes.
fn names(text: &str, quote: char) -> impl Iterator<Item = String> {
    text.split(quote).filter(|part| is_name(part)).map(str::to_owned)
}

/// Returns names in the program's own sources, without tests and comments.
fn names_in_sources() -> BTreeSet<String> {
    let mut folders = ["cli/src", "functions", "shared", "infra"].map(|name| root().join(name)).to_vec();
    let mut found = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if !["tests", "testing", "benches", "target"].contains(&name.as_str()) {
                    folders.push(path);
                }
            } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
                let source = fs::read_to_string(&path).unwrap();
                let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
                let lines = source.lines().filter(|line| !line.trim_start().starts_with("//"));
                lines.for_each(|line| found.extend(names(line, '"')));
            }
        }
    }
    assert!(found.contains("BENCH_HOME") && found.len() > 80, "{found:?}");
    found
}

/// A row of a table of variables.
#[derive(Debug)]
struct Row {
    names: Vec<String>,
    /// Variables that the template sets.
    by_template: Vec<String>,
    read_by: Vec<String>,
}

/// Returns the rows of `docs/configuration.md` under these headings.
fn rows(wanted: impl Fn(&str) -> bool) -> Vec<Row> {
    let (mut rows, mut heading) = (Vec::new(), String::new());
    for line in text("docs/configuration.md").lines() {
        if let Some(title) = line.strip_prefix("## ") {
            title.clone_into(&mut heading);
        } else if line.starts_with("These are not read:") {
            heading.push_str(": not read");
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if !wanted(&heading) || cells.len() < 4 || names(cells[1], '`').next().is_none() {
            continue;
        }
        let marked = cells[1].split(", ").filter(|part| part.ends_with("**T**"));
        rows.push(Row {
            names: names(cells[1], '`').collect(),
            by_template: marked.flat_map(|part| names(part, '`').collect::<Vec<_>>()).collect(),
            read_by: cells[2].split(", ").map(str::to_owned).collect(),
        });
    }
    assert!(!rows.is_empty());
    rows
}

fn names_of(rows: &[Row]) -> BTreeSet<String> {
    rows.iter().flat_map(|row| row.names.clone()).collect()
}

#[test]
fn what_is_documented_is_read_and_what_is_read_is_documented() {
    let sources = names_in_sources();
    let mut documented = names_of(&rows(|heading| !heading.ends_with("not read")));
    documented.insert("BENCH_GIT_SHA".to_owned());
    let is_documented = |name: &str| {
        documented.contains(name)
            || name.ends_with('_') && documented.iter().any(|other| other.starts_with(name))
    };
    let unknown: Vec<_> = sources
        .iter()
        .filter(|name| !NOT_SETTINGS.contains(&name.as_str()) && !is_documented(name))
        .collect();
    assert!(unknown.is_empty(), "read, but not in docs/configuration.md: {unknown:?}");

    let is_read = |name: &str| {
        let prefix = |other: &String| other.ends_with('_') && name.starts_with(other.as_str());
        sources.contains(name)
            || sources.iter().any(prefix)
            || OF_LIBRARIES.contains(&name)
            || PUT_TOGETHER.contains(&name)
    };
    let unread: Vec<_> = documented.iter().filter(|name| !is_read(name)).collect();
    assert!(unread.is_empty(), "documented, but not read: {unread:?}");

    let not_read = names_of(&rows(|heading| heading.ends_with("not read")));
    let read: Vec<_> = not_read.iter().filter(|name| is_read(name)).collect();
    assert!(read.is_empty(), "documented as not read: {read:?}");
}

/// Returns the variables that the template sets for each function, by its name in the documents. `all` has the
/// variables of every function.
fn set_by_template() -> BTreeMap<String, BTreeSet<String>> {
    let mut set: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let (mut function, mut within) = (String::new(), false);
    for line in text("template.yaml").lines() {
        let (depth, line) = (line.len() - line.trim_start().len(), line.trim());
        match depth {
            0 => function = if line == "Globals:" { "all".to_owned() } else { String::new() },
            2 if line.ends_with("Function:") && function != "all" => {
                function = match line.trim_end_matches("Function:") {
                    "DeadLetters" => "dead-letters".to_owned(),
                    other => other.trim_end_matches("Stream").to_lowercase(),
                };
            }
            2 if function != "all" => function.clear(),
            _ => {}
        }
        if line == "Variables:" {
            within = true;
        } else if within {
            match line.split_once(':') {
                Some((name, _)) if is_name(name) => {
                    set.entry(function.clone()).or_default().insert(name.to_owned());
                }
                _ => within = depth > 10,
            }
        }
    }
    set
}

#[test]
fn the_template_sets_what_its_functions_read() {
    let rows = rows(|heading| {
        ["Where", "Secrets", "Providers", "Runs"].iter().any(|start| heading.starts_with(start))
    });
    let set = set_by_template();
    assert_eq!(set.len(), 9, "eight functions and what all have: {:?}", set.keys());
    for (function, variables) in &set {
        for variable in variables {
            let row = rows.iter().find(|row| row.by_template.contains(variable));
            let row = row.unwrap_or_else(|| {
                panic!("{variable} is set by the template, and its row is not marked **T**")
            });
            let reads = row.read_by.iter().any(|reader| reader == "all" || reader == function);
            assert!(reads, "{variable} is set for {function}, and read by {:?}", row.read_by);
        }
    }
    for row in &rows {
        for (variable, reader) in
            row.by_template.iter().flat_map(|name| row.read_by.iter().map(move |by| (name, by)))
        {
            let is_set = set.get(reader).is_some_and(|variables| variables.contains(variable));
            assert!(is_set, "{variable} is marked **T**, and the template does not set it for {reader}");
        }
    }
}

/// Extracts commands and flags from a line of a document: `bench runs --status` is `runs` and `--status`.
fn flags(line: &str) -> Vec<(Vec<String>, String)> {
    let mut found = Vec::new();
    for (at, name) in line.match_indices("bench ") {
        let before = line.get(..at).unwrap_or_default();
        if before.ends_with("cargo ") || before.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '-') {
            continue;
        }
        let call = line.get(at + name.len()..).unwrap_or_default();
        let call = call.split(['`', '|', '#', ';', ')']).next().unwrap_or_default();
        let call = call.split("&&").next().unwrap_or_default();
        let words: Vec<&str> = call.split_whitespace().collect();
        let is_command = |word: &&&str| word.bytes().all(|byte| byte.is_ascii_lowercase());
        let command: Vec<String> =
            words.iter().take_while(is_command).take(2).map(|word| (*word).to_owned()).collect();
        for word in words.iter().filter(|word| word.starts_with("--")) {
            let flag = word.split('=').next().unwrap_or_default().trim_end_matches([',', '.', ':']);
            found.push((command.clone(), flag.to_owned()));
        }
    }
    found
}

/// Lists the documentation: Markdown files of the root folder, except the changelog, and of `docs`.
pub(crate) fn documents() -> Vec<PathBuf> {
    let files =
        [root().to_owned(), root().join("docs")].into_iter().flat_map(|folder| fs::read_dir(folder).unwrap());
    let mut files: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "md") && !path.ends_with("CHANGELOG.md"));
    files.sort();
    files
}

#[test]
fn flags_in_documents_exist() {
    let dir = TestDir::new();
    let mut helps: BTreeMap<Vec<String>, String> = BTreeMap::new();
    let mut checked = 0;
    for path in documents() {
        for line in fs::read_to_string(&path).unwrap().replace("\\\n", " ").lines() {
            for (command, flag) in flags(line) {
                let help = helps.entry(command.clone()).or_insert_with(|| {
                    // The second word may be an argument.
                    let all: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
                    let one: Vec<&str> =
                        command.iter().take(1).map(String::as_str).chain(["--help"]).collect();
                    dir.bench(&all).stdout + &dir.bench(&one).stdout
                });
                let exists =
                    help.split(|c: char| !(c == '-' || c.is_ascii_alphanumeric())).any(|word| word == flag);
                assert!(exists, "{}: `bench {}` has no {flag}: {line}", path.display(), command.join(" "));
                checked += 1;
            }
        }
    }
    assert!(checked > 40, "{checked}");
}

#[test]
fn settings_that_cannot_be_used_are_named() {
    let dir = TestDir::new();
    let run = ["run", "--model", "oracle", "--benchmark", "mmlu_pro", "--demo", "--subset-count", "1"];
    for (name, value) in [
        ("BENCH_COVERAGE_MIN", "90"),
        ("BENCH_DATASET_REVISION_MMLU", "main"),
        ("BENCH_LIMIT_OPEN_RUNS", "0"),
        ("BENCH_SANDBOX_MEMORY_MIB", "15"),
        ("BENCH_SIGNING_PUBLIC_KEY", "x"),
        ("CHUTES_INFERENCE_TIMEOUT_SECONDS", "0"),
        ("CHUTES_RATE_LIMIT_SLEEP_SECONDS", "3601"),
        ("HF_ENDPOINT", "hub"),
        ("HF_HUB_OFFLINE", "maybe"),
        ("HF_TOKEN", "two words"),
        ("MAINTENANCE_MODE", "maybe"),
        ("SANDY_BASE_URL", "sandy"),
        ("SKIP_MODEL_SYNC", "maybe"),
        ("WORKER_ITEM_ATTEMPTS", "0"),
        ("WORKER_ITEM_TIMEOUT_SECONDS", "soon"),
    ] {
        CommandOutput::new(&dir.command(&run).env(name, value).output().unwrap()).assert_refused(2, name);
    }
    let output =
        CommandOutput::new(&dir.command(&["keys"]).env("BENCH_SIGNING_PRIVATE_KEY", "x").output().unwrap());
    output.assert_refused(2, "BENCH_SIGNING_PRIVATE_KEY");
    // Clap's own sentence names the flag, and the tip names the variable.
    for (name, value) in [("BENCH_CONCURRENCY", "0"), ("BENCH_DEMO", "maybe"), ("BENCH_TEMPERATURE", "3")] {
        let args = ["run", "--model", "oracle", "--benchmark", "mmlu_pro"];
        let output = CommandOutput::new(&dir.command(&args).env(name, value).output().unwrap());
        output.assert_refused(2, "invalid value");
        assert!(output.stderr.contains(&format!("variable `{name}`")), "{}", output.stderr);
    }
    let given = ["run", "-c", "0"];
    let output = CommandOutput::new(&dir.command(&given).env("BENCH_CONCURRENCY", "4").output().unwrap());
    assert!(output.code == 2 && !output.stderr.contains("BENCH_CONCURRENCY"), "{}", output.stderr);
}

#[test]
fn a_data_directory_opens_under_other_settings() {
    let dir = TestDir::new();
    let run = ["run", "--model", "oracle", "--benchmark", "mmlu_pro", "--demo", "--subset-count", "1"];
    // This setting determines the visibility timeout of messages.
    for seconds in ["", "840", "2"] {
        let mut command = dir.command(&run);
        let output = command.env("WORKER_ITEM_TIMEOUT_SECONDS", seconds).output().unwrap();
        let output = CommandOutput::new(&output);
        assert_eq!(output.code, 0, "{seconds}: {}", output.stderr);
    }
}

#[test]
fn an_edit_of_a_schedule_takes_nothing_from_variables() {
    let dir = TestDir::new();
    let (first, second) = ("https://first.example/x", "https://second.example/x");
    let webhook = |args: &[&str]| {
        let mut command = dir.command(&[&["schedules"], args, &["--json"]].concat());
        let output = CommandOutput::new(&command.env("BENCH_WEBHOOK_URL", second).output().unwrap());
        assert_eq!(output.code, 0, "{}", output.stderr);
        serde_json::from_str::<serde_json::Value>(&output.stdout).unwrap()["webhook_url"].clone()
    };
    let add = |name, more: &[&'static str]| {
        let args = ["add", "--name", name, "--cron", "0 1 * * *", "--model", "oracle", "--demo"];
        webhook(&[&args[..], more].concat())
    };
    assert_eq!(add("a", &["--webhook-url", first]), first);
    assert_eq!(add("b", &[]), second);
    assert_eq!(webhook(&["edit", "a", "--cron", "0 2 * * *"]), first);
    assert_eq!(webhook(&["edit", "a", "--no-webhook"]), serde_json::Value::Null);
}
