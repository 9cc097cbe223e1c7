//! Judges: scores, failures, and repeated judging.

use serde_json::{Value, json};

use crate::support::TestDir;

/// Returns the lines of a table that contain this text.
fn rows<'a>(out: &'a str, text: &str) -> Vec<&'a str> {
    out.lines().filter(|line| line.contains(text)).collect()
}

#[test]
fn answers_are_judged_and_judged_again_beside_the_old_scores() {
    let dir = TestDir::new();
    let args = [
        "run",
        "--model",
        "oracle",
        "--benchmark",
        "hle,mmlu_pro",
        "--demo",
        "--subset-count",
        "5",
        "--json",
    ];
    let value = dir.json(&args);
    let (run, results) = (&value[0], &value[0]["results"]);
    assert_eq!((&run["status"], &run["score"]), (&json!("succeeded"), &json!(1.0)));
    assert_eq!(
        (&results[0]["judge"]["model"], &results[0]["judge"]["version"]),
        (&json!("oracle"), &json!(1))
    );
    assert!(results[0]["judge"]["prompt_digest"].as_str().unwrap().len() == 64);
    assert_eq!(
        (&results[1]["judge"], &results[1]["protocol_name"]),
        (&json!(null), &json!(protocol("mmlu_pro")))
    );
    let first = run["id"].as_str().unwrap();
    let zip = run["files"]["zip"].as_str().unwrap();
    assert_eq!(dir.bench(&["verify", zip]).code, 0);

    let output =
        dir.bench(&["rejudge", first, "--judge-model", "oracle", "--judge-seed", "-4", "--out", "again"]);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    for part in
        ["version 2", "no model), version 2, seed: -4", "new − old", "version 1", "+0.0 pp", "(verified)"]
    {
        assert!(output.stdout.contains(part), "{part}\n{}", output.stdout);
    }
    assert!(!output.stdout.contains("mmlu_pro"), "only what is judged: {}", output.stdout);
    let runs = dir.json(&["runs", "--json"]);
    assert_eq!(runs.as_array().unwrap().len(), 2);
    assert_eq!(runs[0]["rejudges"], json!({ "run": first, "version": 2 }));
    let second = runs[0]["id"].as_str().unwrap();
    let ids = |run: &str| -> Vec<Value> {
        let items = dir.json(&["runs", run, "--items", "--benchmark", "hle", "--json"]);
        items
            .as_array()
            .unwrap()
            .iter()
            .map(|item| json!([item["item_id"], item["response"], item["sample"]]))
            .collect()
    };
    assert_eq!(ids(first), ids(second), "the same items, samples and answers");

    let detail = dir.bench(&["runs", first]);
    assert_eq!((detail.code, rows(&detail.stdout, &second[..8]).len()), (0, 1), "{}", detail.stdout);
    assert!(
        detail.stdout.contains("judge oracle (text comparison with the gold answer, no model), version 1"),
        "{}",
        detail.stdout
    );
    let detail = dir.bench(&["runs", second]);
    assert!(detail.stdout.contains(&format!("answers of run {first}, version 2")), "{}", detail.stdout);
    let compared = dir.json(&["compare", second, first, "--json"]);
    assert_eq!(compared["benchmarks"][0]["same_judge"], false);
    assert_eq!(
        (&compared["a"]["rejudges"]["version"], &compared["only_in_b"]),
        (&json!(2), &json!(["mmlu_pro"]))
    );
    let compared = dir.bench(&["compare", second, first]);
    assert!(compared.stderr.contains("judged differently"), "{}", compared.stderr);

    // Exports name the version, contain the judge's replies, and verify.
    let exported = dir.bench(&["export", second, "--format", "csv", "--out", "again.csv"]);
    assert_eq!(exported.code, 0, "{}", exported.stderr);
    let table = std::fs::read_to_string(dir.path("again.csv")).unwrap();
    let header = table.lines().next().unwrap();
    assert!(header.contains(",judge_prompt,judge_reply,"), "{header}");
    assert!(table.contains(first), "{header}");
    // Without the items, the answers can't be judged again, and an error says so.
    assert_eq!(dir.bench(&["datasets", "rm", "hle"]).code, 0);
    let gone = dir.bench(&["rejudge", first]);
    assert!(gone.code == 1 && gone.stderr.contains("not stored any more"), "{}{}", gone.stdout, gone.stderr);
    let detached = dir.json(&["rejudge", second, "--detach", "--json"]);
    assert_eq!(detached["status"], "queued");
    dir.bench(&["rejudge", detached["id"].as_str().unwrap()]).assert_refused(1, "queued");
}

#[test]
fn answers_that_were_not_judged_are_kept_and_shown() {
    let dir = TestDir::new();
    let (address, _) = crate::provider::model_server(401);
    let args = [
        "run",
        "--model",
        "oracle",
        "--benchmark",
        "hle",
        "--demo",
        "--subset-count",
        "5",
        "--judge-model",
        "openai-compatible/judge",
        "--judge-base-url",
        &address,
        "--concurrency",
        "1",
        "--json",
    ];
    let output = dir.bench(&args);
    assert_eq!(output.code, 1, "{}{}", output.stdout, output.stderr);
    let value: Value = serde_json::from_str(&output.stdout).unwrap();
    let (run, result) = (&value[0], &value[0]["results"][0]);
    assert_eq!((&run["status"], &run["files"]["verified"]), (&json!("failed"), &json!(true)));
    assert!(run["error"].as_str().unwrap().contains("401"), "{run}");
    // The status is not `running`, which it is for a moment after the failure.
    assert_eq!(result["status"], "skipped");
    let table = std::fs::read_to_string(dir.path(run["files"]["csv"].as_str().unwrap())).unwrap();
    assert!(table.contains(",skipped,") && !table.contains(",running,"), "{table}");
    let items = dir.json(&["runs", run["id"].as_str().unwrap(), "--items", "--json"]);
    let items = items.as_array().unwrap();
    let unjudged: Vec<&Value> = items.iter().filter(|item| item["error"] == "answered, not judged").collect();
    assert!(!unjudged.is_empty(), "{items:?}");
    for item in &unjudged {
        assert!(item["response"].as_str().is_some_and(|response| !response.is_empty()), "{item}");
        assert_eq!((&item["outcome"], &item["score"]), (&json!(null), &json!(null)));
    }
    assert_eq!(table.matches(",\"answered, not judged\",").count(), unjudged.len(), "{table}");
    let message = format!("hle: {} answered, but not judged", unjudged.len());
    assert!(output.stderr.contains(&message), "{message}\n{}", output.stderr);
}

#[test]
fn judges_and_protocols_are_checked_before_anything_is_made() {
    let dir = TestDir::new();
    let run = |more: &[&str]| {
        let mut args = vec!["run", "--demo"];
        args.extend_from_slice(more);
        dir.bench(&args)
    };
    let model = ["--model", "lmstudio/m"];
    let nobody = run(&[&model[..], &["--benchmark", "hle"]].concat());
    nobody.assert_refused(2, "none was given");
    assert!(nobody.stderr.contains("hint: ") && nobody.stderr.contains("--judge-model"), "{}", nobody.stderr);
    for (more, part) in [
        (vec!["--benchmark", "hle", "--judge-model", "openrouter/j"], "OPENROUTER_API_KEY"),
        (vec!["--benchmark", "hle", "--judge-model", "j"], "--judge-model"),
        (vec!["--benchmark", "hle", "--judge-model", "replay:x.jsonl"], "cannot judge"),
        (vec!["--benchmark", "hle", "--protocol", "nope"], "no protocol `nope`"),
        (vec!["--benchmark", "hle,mmlu_pro", "--protocol", "nope"], "names no benchmark"),
        (vec!["--benchmark", "mmlu_pro", "--protocol", "hle=x"], "no protocol `x`"),
    ] {
        run(&[&model[..], &more].concat()).assert_refused(2, part);
    }
    dir.bench(&["run", "--resume", "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90", "--judge-seed", "1"])
        .assert_refused(2, "--judge-seed");
    let missing = "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90";
    let address = ["--judge-base-url", "http://127.0.0.1:9/v1"];
    let resumed = dir.bench(&[&["run", "--resume", missing][..], &address].concat());
    resumed.assert_refused(2, "--judge-base-url");
    assert!(resumed.stderr.contains(&format!("bench rejudge {missing} --judge-model")), "{}", resumed.stderr);
    dir.bench(&["rejudge", missing]).assert_refused(1, &format!("there is no run `{missing}`"));
    for command in [&["run", "--model", "oracle", "--benchmark", "hle", "--demo"][..], &["rejudge", missing]]
    {
        let nowhere = dir.bench(&[command, &["--judge-model", "openai-compatible/j"]].concat());
        nowhere.assert_refused(2, "could not call");
        assert!(nowhere.stderr.contains("--judge-base-url URL"), "{}", nowhere.stderr);
        let seed = dir.bench(&[command, &["--judge-seed", "x"]].concat());
        assert!(seed.code == 2 && seed.stderr.contains("must be a whole number"), "{}", seed.stderr);
    }
    let server = ["--server", "http://127.0.0.1:1"];
    dir.bench(&[&["rejudge", missing][..], &address, &server].concat())
        .assert_refused(2, "can't be used with --server");
    assert!(!dir.path("data").exists(), "nothing was made");
    // If no benchmark needs a judge, the given judge isn't used, and a message says so.
    let output = dir.bench(&[
        "run",
        "--model",
        "oracle",
        "--benchmark",
        "mmlu_pro",
        "--demo",
        "--subset-count",
        "2",
        "--judge-model",
        "oracle",
    ]);
    assert!(output.code == 0 && output.stderr.contains("--judge-model is not used"), "{}", output.stderr);
}

#[test]
fn a_variable_that_names_no_judge_fails_only_what_needs_one() {
    let dir = TestDir::new();
    let bench = |args: &[&str]| {
        let output = dir.command(args).env("BENCH_JUDGE_MODEL", "bogus/x").output().unwrap();
        crate::support::CommandOutput::new(&output)
    };
    let run = |benchmark| bench(&["run", "--model", "oracle", "--benchmark", benchmark, "--demo"]);
    let judged = run("hle");
    judged.assert_refused(2, "BENCH_JUDGE_MODEL: `bogus/x`");
    assert!(!judged.stderr.contains("replay:FILE"), "{}", judged.stderr);
    assert!(!dir.path("data").exists(), "nothing was made");
    let plain = run("mmlu_pro");
    assert_eq!(plain.code, 0, "{}{}", plain.stdout, plain.stderr);
    bench(&["serve", "--port", "0"]).assert_refused(2, "BENCH_JUDGE_MODEL: `bogus/x`");
}

#[test]
fn answers_are_judged_again_where_the_command_line_says() {
    let dir = TestDir::new();
    let (address, requests) = crate::provider::model_server(401);
    let order = ["run", "--model", "oracle", "--benchmark", "hle", "--demo", "--subset-count", "2", "--json"];
    let first = dir.json(&order)[0]["id"].as_str().unwrap().to_owned();
    let args = ["rejudge", &first, "--judge-model", "openai-compatible/j", "--judge-base-url", &address];
    let output = dir.command(&args).env("BENCH_JUDGE_API_KEY", "sk-judge").output().unwrap();
    let output = crate::support::CommandOutput::new(&output);
    assert_eq!(output.code, 1, "{}{}", output.stdout, output.stderr);
    let requests = requests.lock().unwrap();
    assert_eq!(requests[0].path, "/v1/chat/completions");
    assert_eq!(requests[0].authorization.as_deref(), Some("Bearer sk-judge"));
    assert_eq!(requests[0].body["model"], "j");
    // A failed judge leaves the answers: the message says how to continue, and repeats no reason.
    for part in
        ["version 2", "the judge could not be asked", "bench rejudge", "BENCH_JUDGE_API_KEY", "--resume"]
    {
        assert!(output.stderr.contains(part), "{part}: {}", output.stderr);
    }
    let message = rows(&output.stderr, "the judge could not be asked").into_iter();
    assert_eq!(
        message.filter(|line| !line.contains(" ERROR ")).count(),
        1,
        "besides the log: {}",
        output.stderr
    );
}

#[test]
fn a_protocol_is_chosen_by_name() {
    let dir = TestDir::new();
    let hle = bench_benchmarks::find("hle").unwrap();
    let other = hle.other_protocols().first().unwrap().metadata().protocol_name;
    let value = dir.json(&[
        "run",
        "--model",
        "oracle",
        "--benchmark",
        "hle",
        "--protocol",
        other,
        "--demo",
        "--json",
    ]);
    let result = &value[0]["results"][0];
    assert_eq!((&result["protocol_name"], &result["score"]), (&json!(other), &json!(1.0)));
    let named = format!("hle={other}");
    let args = ["run", "--model", "oracle", "--benchmark", "hle,mmlu_pro", "--protocol", &named, "--demo"];
    let output = dir.bench(&args);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    assert!(output.stdout.contains(&format!("hle: protocol {other}, prompt: ")), "{}", output.stdout);
    assert!(
        output.stdout.contains(&format!("mmlu_pro: protocol {}", protocol("mmlu_pro"))),
        "{}",
        output.stdout
    );
}

fn protocol(name: &str) -> &'static str {
    bench_benchmarks::find(name).unwrap().metadata().protocol_name
}

#[test]
fn several_samples_of_an_item_are_all_kept_and_summed_up() {
    let dir = TestDir::new();
    let lines = (0..4).flat_map(|item| (0..4).map(move |sample| (item, sample))).map(|(item, sample)| {
        // Item n has n correct answers out of four.
        let response = if sample < item { "The answer is (C)." } else { "The answer is (A)." };
        format!("{}\n", json!({ "item_id": format!("#{item}"), "sample": sample, "response": response }))
    });
    dir.write("replies.jsonl", lines.collect::<String>());
    dir.write("items.jsonl", crate::support::mmlu_pro_rows(4));
    let args = [
        "run",
        "--model",
        "replay:replies.jsonl",
        "--benchmark",
        "mmlu_pro",
        "--dataset",
        "mmlu_pro=items.jsonl",
        "--samples",
        "4",
    ];
    let output = dir.bench(&args);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let runs = dir.json(&["runs", "--json"]);
    let result = &runs[0]["results"][0];
    let metrics = &result["metrics"];
    assert_eq!((&result["samples_per_item"], &result["planned"]), (&json!(4), &json!(16)));
    assert_eq!((&result["score"], &metrics["mean_of_items"]), (&json!(6.0 / 16.0), &json!(6.0 / 16.0)));
    // pass@k over items with 0, 1, 2 and 3 correct answers out of four.
    for (k, value) in [("1", 6.0 / 16.0), ("2", (0.5 + 5.0 / 6.0 + 1.0) / 4.0), ("4", 3.0 / 4.0)] {
        let found = metrics["pass_at"][k]["value"].as_f64().unwrap();
        assert!((found - value).abs() < 1e-12, "pass@{k}: {found}");
    }
    assert!(
        (metrics["clustered"]["standard_error"].as_f64().unwrap() - 0.161_374_306_091_975_7).abs() < 1e-9
    );
    for part in [
        "4 × 4",
        "mean of the items' means 37.5% ± 16.1",
        "pass@1 37.5%",
        "pass@2 58.3%",
        "pass@4 75.0%",
        "pass^2 16.7%",
        "pass^4 0.0%",
    ] {
        assert!(output.stdout.contains(part), "{part}\n{}", output.stdout);
    }
    let items = dir.json(&["runs", runs[0]["id"].as_str().unwrap(), "--items", "--json"]);
    let mut samples: Vec<(String, u64)> = items
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (item["item_id"].as_str().unwrap().to_owned(), item["sample"].as_u64().unwrap()))
        .collect();
    samples.sort();
    let all: Vec<(String, u64)> =
        (0..4).flat_map(|item| (0..4).map(move |n| (item.to_string(), n))).collect();
    assert_eq!(samples, all, "every sample is kept and shown");
}
