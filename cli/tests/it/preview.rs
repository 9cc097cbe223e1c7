//! Estimates before a run is ordered, and the question whether to go on.

use std::sync::Mutex;

use serde_json::{Value, json};

use crate::provider::{RecordedRequest, model_server};
use crate::support::{CommandOutput, TestDir, mmlu_pro_rows};

/// Runs a command in a terminal, and types a text when it asks. Prints what the terminal shows.
const TERMINAL: &str = r#"
import os, pty, sys
answer, command = sys.argv[1], sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    os.execv(command[0], command)
shown, asked = b"", False
while True:
    try:
        data = os.read(terminal, 4096)
    except OSError:
        break
    if not data:
        break
    shown += data
    if b"[y/N]" in shown and not asked:
        asked = True
        os.write(terminal, answer.encode())
sys.stdout.buffer.write(shown)
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) % 256)
"#;
/// Byte that a terminal sends for Ctrl-C.
const CTRL_C: &str = "\u{3}";

const MODEL: [&str; 6] = [
    "--model",
    "openai-compatible/test-model",
    "--benchmark",
    "mmlu_pro",
    "--dataset",
    "mmlu_pro=items.jsonl",
];
/// Five answers of typical length cost more than three dollars.
const PRICE: [&str; 2] = ["--price", "1000,1000"];

fn questions(requests: &Mutex<Vec<RecordedRequest>>) -> usize {
    requests.lock().unwrap().iter().filter(|request| request.path == "/v1/chat/completions").count()
}

fn args<'a>(address: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["run", "--base-url", address], &MODEL[..], more].concat()
}

/// Runs the command in a terminal that answers its question.
fn in_terminal(dir: &TestDir, answer: &str, args: &[&str]) -> CommandOutput {
    in_terminal_with(dir, answer, args, &[])
}

/// Like [`in_terminal`], with further variables.
pub(crate) fn in_terminal_with(
    dir: &TestDir,
    answer: &str,
    args: &[&str],
    variables: &[(&str, &str)],
) -> CommandOutput {
    let mut bench = dir.command(args);
    bench.envs(variables.iter().copied());
    let mut python = std::process::Command::new("python3");
    python.args(["-c", TERMINAL, answer]).arg(bench.get_program()).args(bench.get_args());
    python.current_dir(bench.get_current_dir().unwrap()).env_clear();
    for (name, value) in bench.get_envs() {
        value.map(|value| python.env(name, value));
    }
    // Otherwise Python sets a locale with UTF-8 for its children.
    python.env("PYTHONCOERCECLOCALE", "0");
    CommandOutput::new(&python.env("TERM", "xterm").output().unwrap())
}

fn no_run_was_ordered(dir: &TestDir) {
    assert_eq!(dir.json(&["runs", "--json"]), json!([]));
}

#[test]
fn a_run_above_the_limit_is_refused_without_a_terminal() {
    let dir = TestDir::new();
    dir.write("items.jsonl", mmlu_pro_rows(5));
    let (address, requests) = model_server(200);
    let limit = |usd| [&PRICE[..], &["--confirm-above", usd]].concat();
    let refused = dir.bench(&args(&address, &limit("1")));
    refused.assert_refused(2, "nothing was ordered: the estimated cost of $3.");
    assert!(refused.stderr.contains("`--yes`"), "{}", refused.stderr);
    let estimate = refused.stderr.lines().find(|line| line.starts_with("  mmlu_pro: ")).unwrap();
    assert!(estimate.starts_with("  mmlu_pro: 5 items, 5 samples, ~"), "{estimate}");
    assert!(estimate.contains(" ~3.0k out, ~$3."), "{estimate}");
    // A cost that can't be estimated is above every limit that was set.
    let by_variable = dir.command(&args(&address, &PRICE)).env("BENCH_CONFIRM_ABOVE", "1").output().unwrap();
    CommandOutput::new(&by_variable).assert_refused(2, "is above $1.00");
    no_run_was_ordered(&dir);
    assert_eq!(questions(&requests), 0);

    for more in [limit("100"), [&PRICE[..], &["--confirm-above", "1", "--yes"]].concat(), PRICE.to_vec()] {
        let output = dir.bench(&args(&address, &more));
        assert_eq!(output.code, 0, "{more:?}: {}", output.stderr);
        assert!(output.stderr.contains("Estimate for openai-compatible/test-model"), "{}", output.stderr);
        assert!(!output.stderr.contains("[y/N]"), "{}", output.stderr);
    }
    // The answers of these runs have five tokens each.
    let again = dir.bench(&args(&address, &limit("1")));
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(
        again.stderr.contains("\n  assumes answers as in earlier runs of this model\n"),
        "{}",
        again.stderr
    );
    assert!(again.stderr.contains(" in, ~25 out, ~$"), "{}", again.stderr);
}

#[test]
fn a_terminal_asks() {
    let dir = TestDir::new();
    dir.write("items.jsonl", mmlu_pro_rows(5));
    let (address, requests) = model_server(200);
    let above = [&PRICE[..], &["--confirm-above", "1"]].concat();
    let args = args(&address, &above);
    for (answer, code) in [("n\n", 1), ("\n", 1), (CTRL_C, 130)] {
        let output = in_terminal(&dir, answer, &args);
        assert_eq!(output.code, code, "{answer:?}: {}{}", output.stdout, output.stderr);
        assert!(output.stdout.contains("Continue? [y/N] "), "{}", output.stdout);
        assert!(output.stdout.contains("nothing was ordered"), "{}", output.stdout);
    }
    no_run_was_ordered(&dir);
    assert_eq!(questions(&requests), 0);
    let output = in_terminal(&dir, "y\n", &args);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    assert_eq!(questions(&requests), 5);
}

#[test]
fn a_terminal_asks_if_a_price_is_unknown() {
    let dir = TestDir::new();
    dir.write("items.jsonl", mmlu_pro_rows(5));
    // Addresses of documentation, where nobody answers.
    let elsewhere = args("http://192.0.2.1/v1", &[]);
    let output = in_terminal(&dir, "n\n", &elsewhere);
    assert_eq!(output.code, 1, "{}", output.stdout);
    for part in
        ["cost unknown, ~", "since a price or a number of samples is unknown", "`--price IN,OUT`", "--yes"]
    {
        assert!(output.stdout.contains(part), "{part}: {}", output.stdout);
    }
    no_run_was_ordered(&dir);
    // Without a terminal, nobody can answer.
    let limited = args("http://192.0.2.1/v1", &["--confirm-above", "1"]);
    let refused = dir.bench(&limited);
    refused.assert_refused(2, "nothing was ordered: the cost can't be estimated");
    assert!(!refused.stderr.contains("[y/N]"), "{}", refused.stderr);
    no_run_was_ordered(&dir);
}

#[test]
fn what_costs_nothing_has_an_estimate_and_no_question() {
    let dir = TestDir::new();
    dir.write("items.jsonl", mmlu_pro_rows(5));
    let (address, _) = model_server(200);
    let here = args(&address, &["--confirm-above", "0", "--requests-per-minute", "6000"]);
    let output = dir.bench(&here);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let [title, estimate, assumption] = output.stderr.lines().take(3).collect::<Vec<_>>().try_into().unwrap();
    assert_eq!(title, "Estimate for openai-compatible/test-model on this machine:");
    assert!(estimate.starts_with("  mmlu_pro: 5 items, 5 samples, ~"), "{estimate}");
    assert!(estimate.ends_with(" tokens in, ~3.0k out, free, ~13 s"), "{estimate}");
    assert_eq!(assumption, "  assumes typical answers without reasoning, at 50 tokens per second");
    let oracle = dir.bench(&["run", "--model", "oracle", "--demo", "--benchmark", "mmlu_pro"]);
    assert_eq!(oracle.code, 0, "{}", oracle.stderr);
    assert!(oracle.stderr.starts_with("oracle costs nothing: no model is asked\n"), "{}", oracle.stderr);
    assert!(!oracle.stderr.contains("Estimate"), "{}", oracle.stderr);
}

#[test]
fn a_limited_rate_is_part_of_the_time() {
    let dir = TestDir::new();
    dir.write("items.jsonl", mmlu_pro_rows(5));
    let slow = [&PRICE[..], &["--confirm-above", "1", "--requests-per-minute", "1"]].concat();
    let refused = dir.bench(&args("http://192.0.2.1/v1", &slow));
    refused.assert_refused(2, "nothing was ordered");
    assert!(refused.stderr.contains(", ~4 m 0 s\n"), "{}", refused.stderr);
}

#[test]
fn a_requeue_estimates_what_is_left() {
    let dir = TestDir::new();
    dir.write("items.jsonl", mmlu_pro_rows(5));
    let (address, requests) = model_server(200);
    let budget = [&PRICE[..], &["--concurrency", "1", "--budget-tokens", "30", "--json"]].concat();
    let stopped = dir.bench(&args(&address, &budget));
    assert_eq!(stopped.code, 1, "{}", stopped.stderr);
    let found: Value = serde_json::from_str(&stopped.stdout).unwrap();
    let id = found[0]["id"].as_str().unwrap();
    // Each answer has 12 tokens.
    let more = ["--budget-tokens", "1000", "--confirm-above", "0.01"];
    let refused = dir.bench(&[&["requeue", id], &more[..]].concat());
    refused.assert_refused(2, "nothing was ordered: the estimated cost of $0.0240 is above $0.0100");
    let line = "  mmlu_pro: 2 samples, ~14 tokens in, ~10 out, ~$0.0240, ~1 s\n";
    for text in [&format!("Estimate for the rest of run {}, openai-compatible/test-model", &id[..8]), line] {
        assert!(refused.stderr.contains(text), "{text}: {}", refused.stderr);
    }
    assert!(refused.stderr.contains("\n  assumes answers as in this run so far\n"), "{}", refused.stderr);
    let kept = format!("Run {} continues with `--concurrency 1`, as before\n", &id[..8]);
    assert!(refused.stderr.contains(&kept), "{}", refused.stderr);
    dir.bench(&[&["requeue", id, "--detach"], &more[..]].concat()).assert_refused(2, "nothing was ordered");
    assert_eq!(questions(&requests), 3);
    let again = dir.bench(&[&["run", "--resume", id, "--yes", "-c", "2"], &more[..]].concat());
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(!again.stderr.contains("as before"), "{}", again.stderr);
    assert_eq!(questions(&requests), 5);
    // The last concurrency counts, also before that of a variable.
    let third = dir.command(&["run", "--resume", id]).env("BENCH_CONCURRENCY", "8").output().unwrap();
    let third = CommandOutput::new(&third);
    assert_eq!(third.code, 0, "{}", third.stderr);
    assert!(third.stderr.contains("continues with `--concurrency 2`, as before"), "{}", third.stderr);
    assert!(!third.stderr.contains("Estimate"), "nothing is left: {}", third.stderr);
}
