use serde_json::{Value, json};

use crate::support::Place;

/// Returns the lines of a table that contain this text.
fn rows<'a>(out: &'a str, text: &str) -> Vec<&'a str> {
    out.lines().filter(|line| line.contains(text)).collect()
}

#[test]
fn answers_are_judged_and_judged_again_beside_the_old_scores() {
    let place = Place::new();
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
    let value = place.json(&args);
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
    assert_eq!(place.bench(&["verify", zip]).code, 0);

    let done =
        place.bench(&["rejudge", first, "--judge-model", "oracle", "--judge-seed", "-4", "--out", "again"]);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    for part in
        ["version 2", "no model), version 2, seed: -4", "new − old", "version 1", "+0.0 (", "(verified)"]
    {
        assert!(done.out.contains(part), "{part}\n{}", done.out);
    }
    assert!(!done.out.contains("mmlu_pro"), "only what is judged: {}", done.out);
    let runs = place.json(&["runs", "--json"]);
    assert_eq!(runs.as_array().unwrap().len(), 2);
    assert_eq!(runs[0]["rejudges"], json!({ "run": first, "version": 2 }));
    let second = runs[0]["id"].as_str().unwrap();
    let ids = |run: &str| -> Vec<Value> {
        let items = place.json(&["runs", run, "--items", "--benchmark", "hle", "--json"]);
        items
            .as_array()
            .unwrap()
            .iter()
            .map(|item| json!([item["item_id"], item["response"], item["sample"]]))
            .collect()
    };
    assert_eq!(ids(first), ids(second), "the same items, samples and answers");

    let detail = place.bench(&["runs", first]);
    assert_eq!((detail.code, rows(&detail.out, second).len()), (0, 1), "{}", detail.out);
    assert!(
        detail.out.contains("judge oracle (text comparison with the gold answer, no model), version 1"),
        "{}",
        detail.out
    );
    let detail = place.bench(&["runs", second]);
    assert!(detail.out.contains(&format!("answers of run {first}, version 2")), "{}", detail.out);
    let compared = place.json(&["compare", second, first, "--json"]);
    assert_eq!(compared["benchmarks"][0]["same_judge"], false);
    assert_eq!(
        (&compared["a"]["rejudges"]["version"], &compared["only_in_b"]),
        (&json!(2), &json!(["mmlu_pro"]))
    );
    let compared = place.bench(&["compare", second, first]);
    assert!(compared.err.contains("judged differently"), "{}", compared.err);

    // Exports name the version, contain the judge's replies, and verify.
    let exported = place.bench(&["export", second, "--format", "csv", "--out", "again.csv"]);
    assert_eq!(exported.code, 0, "{}", exported.err);
    let table = std::fs::read_to_string(place.path("again.csv")).unwrap();
    let header = table.lines().next().unwrap();
    assert!(header.contains(",judge_prompt,judge_reply,"), "{header}");
    assert!(table.contains(first), "{header}");
    // Without the items, the answers can't be judged again, and an error says so.
    assert_eq!(place.bench(&["datasets", "rm", "hle"]).code, 0);
    let gone = place.bench(&["rejudge", first]);
    assert!(gone.code == 1 && gone.err.contains("not stored any more"), "{}{}", gone.out, gone.err);
    let detached = place.json(&["rejudge", second, "--detach", "--json"]);
    assert_eq!(detached["status"], "queued");
    place.bench(&["rejudge", detached["id"].as_str().unwrap()]).refused(1, "queued");
}

#[test]
fn answers_that_were_not_judged_are_kept_and_shown() {
    let place = Place::new();
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
    let done = place.bench(&args);
    assert_eq!(done.code, 1, "{}{}", done.out, done.err);
    let value: Value = serde_json::from_str(&done.out).unwrap();
    let (run, result) = (&value[0], &value[0]["results"][0]);
    assert_eq!((&run["status"], &run["files"]["verified"]), (&json!("failed"), &json!(true)));
    assert!(run["error"].as_str().unwrap().contains("401"), "{run}");
    // The status is not `running`, which it is for a moment after the failure.
    assert_eq!(result["status"], "skipped");
    let table = std::fs::read_to_string(place.path(run["files"]["csv"].as_str().unwrap())).unwrap();
    assert!(table.contains(",skipped,") && !table.contains(",running,"), "{table}");
    let items = place.json(&["runs", run["id"].as_str().unwrap(), "--items", "--json"]);
    let items = items.as_array().unwrap();
    let unjudged: Vec<&Value> = items.iter().filter(|item| item["error"] == "answered, not judged").collect();
    assert!(!unjudged.is_empty(), "{items:?}");
    for item in &unjudged {
        assert!(item["response"].as_str().is_some_and(|response| !response.is_empty()), "{item}");
        assert_eq!((&item["outcome"], &item["score"]), (&json!(null), &json!(null)));
    }
    assert_eq!(table.matches(",\"answered, not judged\",").count(), unjudged.len(), "{table}");
    let told = format!("hle: {} answered and not judged", unjudged.len());
    assert!(done.err.contains(&told), "{told}\n{}", done.err);
}

#[test]
fn judges_and_protocols_are_checked_before_anything_is_made() {
    let place = Place::new();
    let run = |more: &[&str]| {
        let mut args = vec!["run", "--demo"];
        args.extend_from_slice(more);
        place.bench(&args)
    };
    let model = ["--model", "lmstudio/m"];
    let nobody = run(&[&model[..], &["--benchmark", "hle"]].concat());
    nobody.refused(2, "none was named");
    assert!(nobody.err.contains("hint: ") && nobody.err.contains("--judge-model"), "{}", nobody.err);
    for (more, part) in [
        (vec!["--benchmark", "hle", "--judge-model", "openrouter/j"], "OPENROUTER_API_KEY"),
        (vec!["--benchmark", "hle", "--judge-model", "j"], "--judge-model"),
        (vec!["--benchmark", "hle", "--judge-model", "replay:x.jsonl"], "cannot judge"),
        (vec!["--benchmark", "hle", "--protocol", "nope"], "no protocol `nope`"),
        (vec!["--benchmark", "hle,mmlu_pro", "--protocol", "nope"], "of which benchmark"),
        (vec!["--benchmark", "mmlu_pro", "--protocol", "hle=x"], "no protocol `x`"),
    ] {
        run(&[&model[..], &more].concat()).refused(2, part);
    }
    place
        .bench(&["run", "--resume", "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90", "--judge-seed", "1"])
        .refused(2, "--judge-seed");
    let missing = "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90";
    let address = ["--judge-base-url", "http://127.0.0.1:9/v1"];
    let resumed = place.bench(&[&["run", "--resume", missing][..], &address].concat());
    resumed.refused(2, "--judge-base-url");
    assert!(resumed.err.contains(&format!("bench rejudge {missing} --judge-model")), "{}", resumed.err);
    place.bench(&["rejudge", missing]).refused(1, &format!("there is no run {missing}; `bench runs`"));
    for command in [&["run", "--model", "oracle", "--benchmark", "hle", "--demo"][..], &["rejudge", missing]]
    {
        let nowhere = place.bench(&[command, &["--judge-model", "openai-compatible/j"]].concat());
        nowhere.refused(2, "cannot be asked");
        assert!(nowhere.err.contains("--judge-base-url URL"), "{}", nowhere.err);
        let seed = place.bench(&[command, &["--judge-seed", "x"]].concat());
        assert!(seed.code == 2 && seed.err.contains("must be a whole number"), "{}", seed.err);
    }
    let server = ["--server", "http://127.0.0.1:1"];
    place
        .bench(&[&["rejudge", missing][..], &address, &server].concat())
        .refused(2, "cannot be sent to a server");
    assert!(!place.path("data").exists(), "nothing was made");
    // If no benchmark needs a judge, the given judge isn't used, and a message says so.
    let done = place.bench(&[
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
    assert!(done.code == 0 && done.err.contains("--judge-model is not used"), "{}", done.err);
}

#[test]
fn a_variable_that_names_no_judge_fails_only_what_needs_one() {
    let place = Place::new();
    let bench = |args: &[&str]| {
        let output = place.command(args).env("BENCH_JUDGE_MODEL", "bogus/x").output().unwrap();
        crate::support::Done::of(&output)
    };
    let run = |benchmark| bench(&["run", "--model", "oracle", "--benchmark", benchmark, "--demo"]);
    let judged = run("hle");
    judged.refused(2, "BENCH_JUDGE_MODEL: `bogus/x`");
    assert!(!judged.err.contains("replay:FILE"), "{}", judged.err);
    assert!(!place.path("data").exists(), "nothing was made");
    let plain = run("mmlu_pro");
    assert_eq!(plain.code, 0, "{}{}", plain.out, plain.err);
    bench(&["serve", "--port", "0"]).refused(2, "BENCH_JUDGE_MODEL: `bogus/x`");
}

#[test]
fn answers_are_judged_again_where_the_command_line_says() {
    let place = Place::new();
    let (address, seen) = crate::provider::model_server(401);
    let order = ["run", "--model", "oracle", "--benchmark", "hle", "--demo", "--subset-count", "2", "--json"];
    let first = place.json(&order)[0]["id"].as_str().unwrap().to_owned();
    let args = ["rejudge", &first, "--judge-model", "openai-compatible/j", "--judge-base-url", &address];
    let output = place.command(&args).env("BENCH_JUDGE_API_KEY", "sk-judge").output().unwrap();
    let done = crate::support::Done::of(&output);
    assert_eq!(done.code, 1, "{}{}", done.out, done.err);
    let seen = seen.lock().unwrap();
    assert_eq!(seen[0].path, "/v1/chat/completions");
    assert_eq!(seen[0].authorization.as_deref(), Some("Bearer sk-judge"));
    assert_eq!(seen[0].body["model"], "j");
    // A failed judge leaves the answers: the message says how to continue, and repeats no reason.
    for part in
        ["version 2", "the judge could not be asked", "bench rejudge", "BENCH_JUDGE_API_KEY", "--resume"]
    {
        assert!(done.err.contains(part), "{part}: {}", done.err);
    }
    let told = rows(&done.err, "the judge could not be asked").into_iter();
    assert_eq!(told.filter(|line| !line.contains(" ERROR ")).count(), 1, "besides the log: {}", done.err);
}

#[test]
fn a_protocol_is_chosen_by_name() {
    let place = Place::new();
    let hle = bench_benchmarks::find("hle").unwrap();
    let other = hle.other_protocols().first().unwrap().metadata().protocol_name;
    let value = place.json(&[
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
    let done = place.bench(&args);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    assert!(done.out.contains(&format!("hle: protocol {other}, prompt: ")), "{}", done.out);
    assert!(done.out.contains(&format!("mmlu_pro: protocol {}", protocol("mmlu_pro"))), "{}", done.out);
}

fn protocol(name: &str) -> &'static str {
    bench_benchmarks::find(name).unwrap().metadata().protocol_name
}

#[test]
fn several_samples_of_an_item_are_all_kept_and_summed_up() {
    let place = Place::new();
    let lines = (0..4).flat_map(|item| (0..4).map(move |sample| (item, sample))).map(|(item, sample)| {
        // Item n has n correct answers out of four.
        let response = if sample < item { "The answer is (C)." } else { "The answer is (A)." };
        format!("{}\n", json!({ "item_id": format!("#{item}"), "sample": sample, "response": response }))
    });
    place.write("replies.jsonl", lines.collect::<String>());
    place.write("items.jsonl", crate::support::mmlu_items(4));
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
    let done = place.bench(&args);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    let runs = place.json(&["runs", "--json"]);
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
        "mean of the items' means 37.5 % ± 16.1",
        "pass@1 37.5 %",
        "pass@2 58.3 %",
        "pass@4 75.0 %",
        "pass^2 16.7 %",
        "pass^4 0.0 %",
    ] {
        assert!(done.out.contains(part), "{part}\n{}", done.out);
    }
    let items = place.json(&["runs", runs[0]["id"].as_str().unwrap(), "--items", "--json"]);
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
