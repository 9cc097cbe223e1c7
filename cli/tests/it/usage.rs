//! Exit codes of wrong usage and of failures.

use crate::support::TestDir;

#[test]
fn wrong_usage_is_exit_code_2_in_one_sentence_and_makes_nothing() {
    let dir = TestDir::new();
    dir.write("items.jsonl", crate::support::mmlu_pro_rows(3));
    let long_seed = "x".repeat(129);
    let oracle = ["run", "--model", "oracle"];
    let cases: &[(&[&str], &str)] = &[
        (&["run"], "no model was given"),
        (&["run", "--model", "gpt-5"], "starts with no known provider"),
        (&["run", "--model", "chutes/a/b"], "CHUTES_API_KEY"),
        (&["run", "--model", "openai-compatible/m"], "could not call"),
        (&["run", "--model", "openai-compatible/m", "--base-url", "nowhere"], "could not call"),
        (&[&oracle[..], &["--benchmark", "nope"]].concat(), "unknown benchmark `nope`"),
        (&[&oracle[..], &["--dataset", "mmlu_pro"]].concat(), "is not NAME=FILE"),
        (&[&oracle[..], &["--dataset", "nope=x"]].concat(), "unknown benchmark `nope`"),
        (
            &[&oracle[..], &["--benchmark", "aime_2025", "--dataset", "mmlu_pro=items.jsonl"]].concat(),
            "not among the benchmarks",
        ),
        (
            &[&oracle[..], &["--demo", "--dataset", "mmlu_pro=items.jsonl"]].concat(),
            "can't be given together",
        ),
        (&[&oracle[..], &["--subset-pct", "5", "--subset-count", "5"]].concat(), "can't be given together"),
        (&[&oracle[..], &["--item", "1", "--subset-count", "5"]].concat(), "can't be given together"),
        (&[&oracle[..], &["--seed", &long_seed]].concat(), "seed"),
        (
            &[&oracle[..], &["--benchmark", "terminal_tasks"]].concat(),
            "runs tasks of yours, and none was given",
        ),
        (&["run", "--agent", "nop", "--task", ".", "--item", "#3"], "the tasks are the items"),
        (&[&oracle[..], &["--api-key-env", "NOT_SET_ANYWHERE"]].concat(), "is not set"),
        (&[&oracle[..], &["--resume", "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90"]].concat(), "--resume"),
        (&[&oracle[..], &["--server", "ftp://x"]].concat(), "--server"),
        (&["score", "nope", "--responses", "x"], "unknown benchmark"),
        (&["benchmarks", "nope"], "unknown benchmark"),
        (&["datasets", "pull", "mmlu_pro", "--protocol", "nope"], "has no protocol `nope`"),
        (&["serve", "--host", "not a host"], "--host"),
        (&["run", "--model", "replay:.", "--demo"], "--model: `.` is a folder"),
        (
            &["score", "mmlu_pro", "--responses", "items.jsonl", "--out", "none/out.jsonl"],
            "--out: there is no folder `none`",
        ),
        (&["score", "mmlu_pro", "--responses", "items.jsonl", "--out", "."], "--out: `.` is a folder"),
    ];
    for (args, part) in cases {
        dir.bench(args).assert_refused(2, part);
    }
    assert!(!dir.path("data").exists());
    let schedule = ["schedules", "add", "--name", "n", "--cron", "0 0 * * *", "--model", "m"];
    let schedule = [&schedule[..], &["--benchmark", "terminal_tasks"]].concat();
    dir.bench(&schedule).assert_refused(2, "runs tasks of yours, and none was given");
}

#[test]
fn clap_refuses_with_2_as_well() {
    let dir = TestDir::new();
    for args in [
        &["nope"][..],
        &["run", "--subset-pct", "0"],
        &["run", "--subset-count", "0"],
        &["run", "--temperature", "3"],
        &["run", "--samples", "0"],
        &["run", "--concurrency", "0"],
        &["run", "--resume", "not-a-uuid"],
        // An unset shell variable must not order a run of everything.
        &["run", "--model", "oracle", "--demo", "--item", ""],
        &["run", "--model", "oracle", "--demo", "--benchmark", " "],
        &["run", "--model", "oracle", "--demo", "--seed", ""],
        &["runs", "--status", "done"],
        &["verify"],
        &["score", "mmlu_pro"],
    ] {
        let output = dir.bench(args);
        assert_eq!(output.code, 2, "{args:?} {}", output.stderr);
        assert!(output.stderr.starts_with("error: "), "{}", output.stderr);
    }
    assert_eq!(dir.bench(&["--help"]).code, 0);
    assert_eq!(dir.bench(&["run", "--help"]).code, 0);
    assert_eq!(dir.bench(&["--version"]).code, 0);
}

#[test]
fn failures_are_exit_code_1() {
    let dir = TestDir::new();
    dir.write("broken.jsonl", "{\"question\": 1}\n");
    dir.write("replies.jsonl", "{\"item_id\": \"1\"}\n");
    let missing = "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90";
    let cases: &[(&[&str], &str)] = &[
        (
            &["run", "--model", "oracle", "--benchmark", "mmlu_pro", "--dataset", "mmlu_pro=broken.jsonl"],
            "row 1",
        ),
        (&["run", "--model", "replay:replies.jsonl", "--demo"], "replies.jsonl, line 1"),
        (&["run", "--resume", missing], "run not found"),
        (&["runs", missing], "run not found"),
        (&["export", missing], "run not found"),
        (&["compare", missing, missing], "run not found"),
        (&["cancel", missing], "run not found"),
        (&["datasets", "pull", "aime_2025"], "aime_2025: the hub at"),
        (&["datasets", "rm", "aime_2025", "--revision", "0123"], "no dataset of `aime_2025`"),
        (
            &["runs", "--server", "http://127.0.0.1:1"],
            "could not use the server at http://127.0.0.1:1: no connection",
        ),
    ];
    for (args, part) in cases {
        dir.bench(args).assert_refused(1, part);
    }
}

#[test]
fn a_missing_file_is_wrong_usage() {
    let dir = TestDir::new();
    for args in [
        &["run", "--model", "oracle", "--benchmark", "mmlu_pro", "--dataset", "mmlu_pro=none.jsonl"][..],
        &["run", "--model", "replay:none.jsonl", "--demo"],
        &["score", "mmlu_pro", "--responses", "none.jsonl"],
    ] {
        dir.bench(args).assert_refused(2, "there is no file `none.jsonl`");
    }
    let pull = ["datasets", "pull", "mmlu_pro", "--file", "none.jsonl"];
    dir.bench(&pull).assert_refused(2, "--file: there is no file `none.jsonl`");
}

#[test]
fn a_missing_item_is_reported_before_a_run_is_made() {
    let dir = TestDir::new();
    dir.write("items.jsonl", crate::support::mmlu_pro_rows(3));
    let order = ["run", "--model", "oracle", "--benchmark", "mmlu_pro", "--item", "999"];
    for source in [&["--demo"][..], &["--dataset", "mmlu_pro=items.jsonl"]] {
        dir.bench(&[&order[..], source].concat()).assert_refused(2, "mmlu_pro has no item 999");
    }
    assert_eq!(dir.json(&["runs", "--json"]), serde_json::json!([]));
    let there = [
        "run",
        "--model",
        "oracle",
        "--benchmark",
        "mmlu_pro",
        "--item",
        "2",
        "--dataset",
        "mmlu_pro=items.jsonl",
    ];
    let output = dir.bench(&there);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
}

#[test]
fn the_data_directory_is_taken_before_and_after_a_command() {
    let dir = TestDir::new();
    dir.write("items.jsonl", crate::support::mmlu_pro_rows(3));
    let file = ["pull", "mmlu_pro", "--file", "items.jsonl"];
    let elsewhere = ["--data-dir", "elsewhere"];
    let output = dir.bench(&[&["datasets"][..], &file, &elsewhere].concat());
    assert!(
        dir.path("elsewhere").exists() && !dir.path("data").exists(),
        "{}{}",
        output.stdout,
        output.stderr
    );
    for args in [
        [&["datasets"][..], &elsewhere, &["list", "--json"]],
        [&["datasets", "list"][..], &elsewhere, &["--json"]],
    ] {
        let all = dir.json(&args.concat());
        assert_eq!(all[0]["benchmark"], "mmlu_pro", "{all}");
    }
    assert_eq!(dir.json(&["datasets", "list", "--json"]), serde_json::json!([]));
}

#[test]
fn an_env_file_stands_in_for_flags_and_never_overrides() {
    let dir = TestDir::new();
    dir.write(".env", "BENCH_BENCHMARK=nope\nDEFAULT_MODEL=oracle\n");
    dir.bench(&["run"]).assert_refused(2, "unknown benchmark `nope`");
    let output = dir.command(&["run"]).env("BENCH_BENCHMARK", "other").output().unwrap();
    crate::support::CommandOutput::new(&output).assert_refused(2, "unknown benchmark `other`");
    dir.write(".env", "BENCH_SUBSET_PCT=\nBENCH_BENCHMARK=nope\nBENCH_SERVER=\nDEFAULT_MODEL=oracle\n");
    dir.bench(&["run"]).assert_refused(2, "unknown benchmark `nope`");
    dir.write(".env", "BENCH_SUBSET_PCT=many\nDEFAULT_MODEL=oracle\n");
    assert_eq!(dir.bench(&["run"]).code, 2);
    dir.write(".env", "DEFAULT_TEMPERATURE=hot\nDEFAULT_MODEL=oracle\n");
    dir.bench(&["run"]).assert_refused(2, "DEFAULT_TEMPERATURE");
    dir.write(".env", "SECRET_KEY='sk-unfinished\n");
    let output = dir.bench(&["run"]);
    output.assert_refused(2, "could not read `.env`");
    assert!(!output.stderr.contains("sk-unfinished"), "{}", output.stderr);
}

#[test]
fn the_catalog_needs_no_data_directory() {
    let dir = TestDir::new();
    let all = dir.json(&["benchmarks", "--json"]);
    let names: Vec<&str> = all.as_array().unwrap().iter().map(|b| b["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"mmlu_pro") && names.contains(&"aime_2025"));
    let one = dir.json(&["benchmarks", "mmlu_pro", "--json"]);
    assert!(!one["deviations"].as_array().unwrap().is_empty());
    assert_eq!(one["protocols"][0]["is_default"], true);
    let name = one["protocols"][0]["name"].as_str().unwrap();
    let protocol = dir.json(&["benchmarks", "mmlu_pro", "--protocol", name, "--json"]);
    assert_eq!(protocol, one["protocols"][0]);
    dir.bench(&["benchmarks", "mmlu_pro", "--protocol", "other"])
        .assert_refused(2, "has no protocol `other`");
    let text = dir.bench(&["benchmarks", "mmlu_pro"]).stdout;
    for part in ["TIGER-Lab/MMLU-Pro (default/test)", "Protocol ", "Deviations from the official program"] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(dir.json(&["runs", "--json"]), serde_json::json!([]));
    assert_eq!(dir.json(&["datasets", "--json"]), serde_json::json!([]));
    assert!(!dir.path("data").exists());
}
