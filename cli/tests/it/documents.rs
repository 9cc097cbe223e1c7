//! Tests that commands in the documentation work as described.
//!
//! These tests run each block of commands that begins with ```` ```sh ````, unchanged. Blocks that begin with
//! ```` ```sh account ```` need an account (of a provider, of AWS, of a server) or a container engine, and blocks that begin with
//! ```` ```sh build ```` build or test this program: of these, `settings.rs` checks the flags.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::settings::documents;
use crate::support::TestDir;

/// Returns the blocks of a document that begin with this line, each with the number of its first line.
fn blocks(text: &str, start: &str) -> Vec<(usize, String)> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        if line.trim() == start {
            let block = lines.by_ref().map(|(_, line)| line).take_while(|line| line.trim() != "```");
            blocks.push((number + 2, block.collect::<Vec<_>>().join("\n")));
        }
    }
    blocks
}

/// Makes a successful run of the demo items, and returns its id.
fn finished_run(dir: &TestDir) -> String {
    let args = ["run", "--model", "oracle", "--demo", "--benchmark", "mmlu_pro", "--json"];
    let result = dir.json(&args);
    result[0]["id"].as_str().unwrap().to_owned()
}

/// Runs a block in a folder of its own, where `RUN` and `BASELINE` are finished runs.
fn run_block(name: &str, block: &str) {
    let dir = TestDir::new();
    let mut script = block.to_owned();
    for placeholder in ["BASELINE", "RUN"] {
        let is_named = script.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == placeholder);
        if is_named {
            script = script.replace(placeholder, &finished_run(&dir));
        }
    }
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let script = script.replace(":3000", &format!(":{port}"));
    // Servers that the block starts in the background end with it.
    let script =
        format!("set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n{script}\n");
    let programs = Path::new(env!("CARGO_BIN_EXE_bench")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("bash")
        .args(["-c", &script])
        .current_dir(dir.path("."))
        .env_clear()
        .env("PATH", path)
        .env("HOME", dir.path("home"))
        .env("BENCH_HOME", dir.path("data"))
        .env("BENCH_PORT", port.to_string())
        .env("HF_HUB_OFFLINE", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{name}: {}\n{}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn commands_in_documents_work() {
    let mut count = 0;
    for path in documents() {
        let text = fs::read_to_string(&path).unwrap();
        for (line, block) in blocks(&text, "```sh") {
            run_block(&format!("{}:{line}", path.display()), &block);
            count += 1;
        }
    }
    assert!(count >= 8, "only {count} blocks of commands were found");
}

#[test]
fn every_block_of_commands_is_run_or_says_what_it_needs() {
    for path in documents() {
        let text = fs::read_to_string(&path).unwrap();
        for (number, line) in text.lines().enumerate() {
            let Some(kind) = line.trim().strip_prefix("```") else { continue };
            let first = kind.split_whitespace().next().unwrap_or_default();
            let is_shell = matches!(first, "sh" | "bash" | "shell" | "console");
            assert!(
                !is_shell || matches!(kind, "sh" | "sh account" | "sh build"),
                "{}:{}: mark the block `sh`, `sh account` or `sh build`, not `{kind}`",
                path.display(),
                number + 1
            );
        }
    }
}
