use crate::support::Place;

#[test]
fn wrong_usage_is_exit_code_2_in_one_sentence_and_makes_nothing() {
    let place = Place::new();
    place.write("items.jsonl", crate::support::mmlu_items(3));
    let long_seed = "x".repeat(129);
    let oracle = ["run", "--model", "oracle"];
    let cases: &[(&[&str], &str)] = &[
        (&["run"], "no model was given"),
        (&["run", "--model", "gpt-5"], "starts with no known provider"),
        (&["run", "--model", "chutes/a/b"], "CHUTES_API_KEY"),
        (&["run", "--model", "openai-compatible/m"], "cannot be asked"),
        (&["run", "--model", "openai-compatible/m", "--base-url", "nowhere"], "cannot be asked"),
        (&[&oracle[..], &["--benchmark", "nope"]].concat(), "there is no benchmark `nope`"),
        (&[&oracle[..], &["--dataset", "mmlu_pro"]].concat(), "is not NAME=FILE"),
        (&[&oracle[..], &["--dataset", "nope=x"]].concat(), "there is no benchmark `nope`"),
        (
            &[&oracle[..], &["--benchmark", "aime_2025", "--dataset", "mmlu_pro=items.jsonl"]].concat(),
            "not among the benchmarks",
        ),
        (&[&oracle[..], &["--demo", "--dataset", "mmlu_pro=items.jsonl"]].concat(), "exclude each other"),
        (&[&oracle[..], &["--subset-pct", "5", "--subset-count", "5"]].concat(), "exclude each other"),
        (&[&oracle[..], &["--item", "1", "--subset-count", "5"]].concat(), "exclude each other"),
        (&[&oracle[..], &["--seed", &long_seed]].concat(), "seed"),
        (&[&oracle[..], &["--api-key-env", "NOT_SET_ANYWHERE"]].concat(), "is not set"),
        (&[&oracle[..], &["--resume", "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90"]].concat(), "--resume"),
        (&[&oracle[..], &["--server", "ftp://x"]].concat(), "--server"),
        (&["score", "nope", "--responses", "x"], "there is no benchmark"),
        (&["benchmarks", "nope"], "there is no benchmark"),
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
        place.bench(args).refused(2, part);
    }
    assert!(!place.path("data").exists());
}

#[test]
fn clap_refuses_with_2_as_well() {
    let place = Place::new();
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
        let done = place.bench(args);
        assert_eq!(done.code, 2, "{args:?} {}", done.err);
        assert!(done.err.starts_with("error: "), "{}", done.err);
    }
    assert_eq!(place.bench(&["--help"]).code, 0);
    assert_eq!(place.bench(&["run", "--help"]).code, 0);
    assert_eq!(place.bench(&["--version"]).code, 0);
}

#[test]
fn trouble_is_exit_code_1() {
    let place = Place::new();
    place.write("broken.jsonl", "{\"question\": 1}\n");
    place.write("replies.jsonl", "{\"item_id\": \"1\"}\n");
    let missing = "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90";
    let cases: &[(&[&str], &str)] = &[
        (
            &["run", "--model", "oracle", "--benchmark", "mmlu_pro", "--dataset", "mmlu_pro=broken.jsonl"],
            "row 1",
        ),
        (&["run", "--model", "replay:replies.jsonl", "--demo"], "replies.jsonl, line 1"),
        (&["run", "--resume", missing], "Run not found"),
        (&["runs", missing], "Run not found"),
        (&["export", missing], "Run not found"),
        (&["compare", missing, missing], "Run not found"),
        (&["cancel", missing], "cannot be canceled"),
        (&["datasets", "pull", "aime_2025"], "aime_2025: the hub at"),
        (&["datasets", "rm", "aime_2025", "--revision", "0123"], "nothing of aime_2025"),
        (&["runs", "--server", "http://127.0.0.1:1"], "the server at http://127.0.0.1:1 cannot be used"),
    ];
    for (args, part) in cases {
        place.bench(args).refused(1, part);
    }
}

#[test]
fn a_named_file_that_is_not_there_is_wrong_usage() {
    let place = Place::new();
    for args in [
        &["run", "--model", "oracle", "--benchmark", "mmlu_pro", "--dataset", "mmlu_pro=none.jsonl"][..],
        &["run", "--model", "replay:none.jsonl", "--demo"],
        &["score", "mmlu_pro", "--responses", "none.jsonl"],
    ] {
        place.bench(args).refused(2, "could not read none.jsonl");
    }
    let pull = ["datasets", "pull", "mmlu_pro", "--file", "none.jsonl"];
    place.bench(&pull).refused(2, "could not read none.jsonl, which --file names: there is no such file");
}

#[test]
fn an_item_that_is_not_there_is_told_before_a_run_is_made() {
    let place = Place::new();
    place.write("items.jsonl", crate::support::mmlu_items(3));
    let order = ["run", "--model", "oracle", "--benchmark", "mmlu_pro", "--item", "999"];
    for source in [&["--demo"][..], &["--dataset", "mmlu_pro=items.jsonl"]] {
        place.bench(&[&order[..], source].concat()).refused(2, "mmlu_pro has no item 999");
    }
    assert_eq!(place.json(&["runs", "--json"]), serde_json::json!([]));
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
    let done = place.bench(&there);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
}

#[test]
fn the_data_directory_is_taken_before_and_after_a_command() {
    let place = Place::new();
    place.write("items.jsonl", crate::support::mmlu_items(3));
    let file = ["pull", "mmlu_pro", "--file", "items.jsonl"];
    let elsewhere = ["--data-dir", "elsewhere"];
    let done = place.bench(&[&["datasets"][..], &file, &elsewhere].concat());
    assert!(place.path("elsewhere").exists() && !place.path("data").exists(), "{}{}", done.out, done.err);
    for args in [
        [&["datasets"][..], &elsewhere, &["list", "--json"]],
        [&["datasets", "list"][..], &elsewhere, &["--json"]],
    ] {
        let all = place.json(&args.concat());
        assert_eq!(all[0]["benchmark"], "mmlu_pro", "{all}");
    }
    assert_eq!(place.json(&["datasets", "list", "--json"]), serde_json::json!([]));
}

#[test]
fn an_env_file_stands_in_for_flags_and_never_overrides() {
    let place = Place::new();
    place.write(".env", "BENCH_BENCHMARK=nope\nDEFAULT_MODEL=oracle\n");
    place.bench(&["run"]).refused(2, "there is no benchmark `nope`");
    let output = place.command(&["run"]).env("BENCH_BENCHMARK", "other").output().unwrap();
    crate::support::Done::of(&output).refused(2, "there is no benchmark `other`");
    place.write(".env", "BENCH_SUBSET_PCT=\nBENCH_BENCHMARK=nope\nBENCH_SERVER=\nDEFAULT_MODEL=oracle\n");
    place.bench(&["run"]).refused(2, "there is no benchmark `nope`");
    place.write(".env", "BENCH_SUBSET_PCT=many\nDEFAULT_MODEL=oracle\n");
    assert_eq!(place.bench(&["run"]).code, 2);
    place.write(".env", "DEFAULT_TEMPERATURE=hot\nDEFAULT_MODEL=oracle\n");
    place.bench(&["run"]).refused(2, "DEFAULT_TEMPERATURE");
    place.write(".env", "SECRET_KEY='sk-unfinished\n");
    let done = place.bench(&["run"]);
    done.refused(2, "the file `.env` cannot be used");
    assert!(!done.err.contains("sk-unfinished"), "{}", done.err);
}

#[test]
fn the_catalogue_needs_nothing() {
    let place = Place::new();
    let all = place.json(&["benchmarks", "--json"]);
    let names: Vec<&str> = all.as_array().unwrap().iter().map(|b| b["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"mmlu_pro") && names.contains(&"aime_2025"));
    let one = place.json(&["benchmarks", "mmlu_pro", "--json"]);
    assert!(!one["deviations"].as_array().unwrap().is_empty());
    assert_eq!(one["protocols"][0]["is_default"], true);
    let name = one["protocols"][0]["name"].as_str().unwrap();
    let protocol = place.json(&["benchmarks", "mmlu_pro", "--protocol", name, "--json"]);
    assert_eq!(protocol, one["protocols"][0]);
    place.bench(&["benchmarks", "mmlu_pro", "--protocol", "other"]).refused(2, "has no protocol `other`");
    let text = place.bench(&["benchmarks", "mmlu_pro"]).out;
    for part in ["TIGER-Lab/MMLU-Pro (default/test)", "Protocol ", "Deviations from the official program"] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(place.json(&["runs", "--json"]), serde_json::json!([]));
    assert_eq!(place.json(&["datasets", "--json"]), serde_json::json!([]));
    assert!(!place.path("data").exists());
}
