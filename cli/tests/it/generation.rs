//! Generation settings from the command line to the request, and back to the results.

use serde_json::{Value, json};

use crate::provider::model_server;
use crate::support::{CommandOutput, TestDir, mmlu_pro_rows};

/// Runs two items at a model server, and returns the output and the bodies of the requests.
fn run(dir: &TestDir, more: &[&str]) -> (CommandOutput, Vec<Value>) {
    dir.write("items.jsonl", mmlu_pro_rows(2));
    let (address, requests) = model_server(200);
    let args = [
        "run",
        "--model",
        "openai-compatible/test-model",
        "--base-url",
        &address,
        "--benchmark",
        "mmlu_pro",
        "--dataset",
        "mmlu_pro=items.jsonl",
        "--durability",
        "normal",
    ];
    let output = dir.bench(&[&args, more].concat());
    let requests = requests.lock().unwrap();
    let asked = requests.iter().filter(|request| request.path == "/v1/chat/completions");
    (output, asked.map(|request| request.body.clone()).collect())
}

fn names(body: &Value) -> Vec<&str> {
    body.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn every_setting_reaches_the_provider_and_is_stated_beside_the_score() {
    let dir = TestDir::new();
    dir.write("system.txt", "Be brief.\n");
    let (output, asked) = run(
        &dir,
        &[
            "--omit",
            "temperature",
            "--top-p",
            "0.9",
            "--top-k",
            "20",
            "--stop",
            "END",
            "--stop",
            "\n\n",
            "--sampler-seed",
            "-7",
            "--system-prompt",
            "@system.txt",
            "--reasoning-effort",
            "high",
            "--extra-body",
            r#"{"min_p": 0.05, "chat_template_kwargs": {"enable_thinking": true}}"#,
            "--max-tokens-field",
            "max_completion_tokens",
        ],
    );
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    assert_eq!(asked.len(), 2);
    for body in &asked {
        assert_eq!(body["messages"][0], json!({ "role": "system", "content": "Be brief." }));
        assert_eq!(body["messages"][1]["role"], "user");
        let mut settings = body.clone();
        settings.as_object_mut().unwrap().remove("messages");
        assert_eq!(
            settings,
            json!({
                "model": "test-model", "top_p": 0.9, "max_completion_tokens": 4000, "stop": ["END", "\n\n"],
                "seed": -7, "top_k": 20, "reasoning_effort": "high", "stream": true,
                "stream_options": { "include_usage": true }, "min_p": 0.05,
                "chat_template_kwargs": { "enable_thinking": true },
            })
        );
    }
    let changed = [
        "temperature omitted (benchmark: 0)",
        "top_p 0.9 (benchmark: 1)",
        "top_k 20 (benchmark: none)",
        r#"stop ["END","\n\n"] (benchmark: none)"#,
        "sampler seed -7 (benchmark: none)",
        "system prompt of 9 characters (213c22ed7234) (benchmark: none)",
        "reasoning effort high (benchmark: none)",
        r#"extra body {"chat_template_kwargs":{"enable_thinking":true},"min_p":0.05} (benchmark: none)"#,
    ];
    let stated = |text: &str| changed.iter().all(|part| text.contains(part));
    let line = output.stdout.lines().find(|line| line.starts_with("mmlu_pro: protocol mmlu-pro-api, "));
    assert!(line.is_some_and(stated), "{}", output.stdout);
    let runs = dir.json(&["runs", "--json"]);
    let id = runs["runs"][0]["id"].as_str().or(runs[0]["id"].as_str()).unwrap().to_owned();
    let shown = dir.bench(&["runs", &id]);
    assert!(stated(&shown.stdout), "{}", shown.stdout);
    // In the archive, too: results and manifest.
    let archive = std::fs::read_dir(dir.path("bench-results")).unwrap().map(|entry| entry.unwrap().path());
    let archive = archive.into_iter().find(|path| path.extension().is_some_and(|end| end == "zip")).unwrap();
    let verified = dir.bench(&["verify", archive.to_str().unwrap()]);
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
}

/// Both change scores: a slow model's answers are cut off, and pass@k depends on the number of samples.
#[test]
fn samples_and_timeout_are_stated_beside_the_score() {
    let dir = TestDir::new();
    let (output, asked) = run(&dir, &["--samples", "2", "--timeout", "30"]);
    assert_eq!((output.code, asked.len()), (0, 4), "{}", output.stderr);
    let changed = ["samples 2 (benchmark: 1)", "timeout 30 s (benchmark: 1200 s)"];
    let line = output.stdout.lines().find(|line| line.starts_with("mmlu_pro: protocol mmlu-pro-api, "));
    assert!(line.is_some_and(|line| line.contains(&changed.join(", "))), "{}", output.stdout);
    let exported = dir.bench(&["export", "latest", "--format", "jsonl", "--out", "-"]);
    for line in exported.stdout.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["changed_settings"], json!(changed));
    }
    assert_eq!(exported.stdout.lines().count(), 4);
    let (same, _) = run(&TestDir::new(), &["--samples", "1", "--timeout", "1200"]);
    assert!(!same.stdout.contains("(benchmark: "), "{}", same.stdout);
}

#[test]
fn a_run_without_settings_sends_only_the_benchmarks_own() {
    let dir = TestDir::new();
    let (output, asked) = run(&dir, &[]);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    for body in &asked {
        let expected =
            ["max_tokens", "messages", "model", "stream", "stream_options", "temperature", "top_p"];
        assert_eq!(names(body), expected);
        assert_eq!(body["messages"].as_array().unwrap().len(), 1);
    }
    assert!(!output.stdout.contains("(benchmark: "), "{}", output.stdout);
}

#[test]
fn a_setting_without_a_field_is_refused_before_anything_is_asked() {
    let dir = TestDir::new();
    dir.write("items.jsonl", mmlu_pro_rows(2));
    let refused = |more: &[&str], part: &str| {
        let args = [
            "run",
            "--model",
            "openai-compatible/m",
            "--benchmark",
            "mmlu_pro",
            "--dataset",
            "mmlu_pro=items.jsonl",
        ];
        dir.bench(&[&args, more].concat()).assert_refused(2, part);
    };
    let nowhere = ["--base-url", "http://127.0.0.1:9/v1"];
    refused(
        &[&nowhere[..], &["--thinking-budget", "2048"]].concat(),
        "thinking_budget: the OpenAI-compatible server has no field for it",
    );
    let openai = ["--base-url", "https://api.openai.com/v1"];
    refused(&[&openai[..], &["--top-k", "20"]].concat(), "top_k: OpenAI has no field for it");
    let anthropic = ["--base-url", "https://api.anthropic.com/v1", "--thinking-budget", "2048"];
    refused(&anthropic, "thinking_budget: for `mmlu_pro`, Anthropic takes it only at temperature 1, not 0");
    refused(
        &[&anthropic[..], &["--omit", "temperature", "--max-tokens", "2048"]].concat(),
        "2048 tokens leave no room for the answer",
    );
    refused(
        &[&nowhere[..], &["--extra-body", r#"{"temperature": 1}"#]].concat(),
        "--extra-body: it must not contain `temperature`",
    );
    refused(
        &[&nowhere[..], &["--omit", "temperature", "--temperature", "1"]].concat(),
        "--omit: `temperature` can't be both given and left out",
    );
}

/// A temperature from a variable is a default that `--omit` overrides.
#[test]
fn a_variable_is_no_contradiction() {
    let dir = TestDir::new();
    dir.write("items.jsonl", mmlu_pro_rows(1));
    let (address, requests) = model_server(200);
    let args = [
        "run",
        "--model",
        "openai-compatible/m",
        "--base-url",
        &address,
        "--benchmark",
        "mmlu_pro",
        "--dataset",
        "mmlu_pro=items.jsonl",
        "--omit",
        "temperature",
    ];
    let output = dir.command(&args).env("DEFAULT_TEMPERATURE", "0.7").output().unwrap();
    let output = CommandOutput::new(&output);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let requests = requests.lock().unwrap();
    let asked = requests.iter().find(|request| request.path == "/v1/chat/completions").unwrap();
    assert!(asked.body.get("temperature").is_none(), "{}", asked.body);
}

#[test]
fn settings_without_a_model_are_reported() {
    let dir = TestDir::new();
    let dry = ["run", "--benchmark", "mmlu_pro", "--demo", "--limit", "1", "--seed", "s", "--dry-run"];
    let plain = dir.bench(&dry);
    assert_eq!(plain.code, 0, "{}", plain.stderr);
    assert!(!plain.stdout.contains("[system]"), "{}", plain.stdout);
    let shown = dir.bench(&[&dry[..], &["--system-prompt", "Be brief."]].concat());
    assert!(shown.stdout.contains("[system]\nBe brief.\n"), "{}", shown.stdout);
}

#[test]
fn a_run_is_read_from_a_file_and_ifeval_is_ifbench() {
    let dir = TestDir::new();
    dir.write(
        "run.toml",
        "model = 'oracle'\nbenchmark = ['ifeval']\ndemo = true\nlimit = 3\nseed = 'demo'\ndurability = 'normal'\njson = true\n",
    );
    let run = dir.json(&["run", "--config", "run.toml", "--subset-count", "2"]);
    let result = &run[0]["results"][0];
    assert_eq!((&result["benchmark"], &result["items"]), (&json!("ifbench"), &json!(2)));
    let text = dir.bench(&["run", "--config", "run.toml"]);
    assert_eq!(text.code, 0, "{}", text.stderr);
    let plain = dir.bench(&["run", "--model", "oracle", "-b", "IFEval", "--demo", "--limit", "1"]);
    assert!(plain.stdout.contains("ifbench (IFEval): protocol ifeval"), "{}", plain.stdout);
    dir.bench(&["benchmarks", "ifeval"]);
    let detail = dir.bench(&["benchmarks", "ifeval"]);
    assert!(detail.stdout.contains("AllenAI's IFBench is `ifbench_allenai`"), "{}", detail.stdout);
    dir.write("typo.toml", "temprature = 1\n");
    dir.bench(&["run", "--config", "typo.toml"]).assert_refused(2, "did you mean `temperature`?");
}
