//! Provenance in results: the host that answered, the meaning of the score, and the direction of differences.

use serde_json::{Value, json};

use crate::provider::model_server;
use crate::support::{CommandOutput, TestDir, mmlu_pro_rows};

/// Rows of a category. If `worked` is true, the first one is a worked example.
fn rows(category: &str, worked: bool, count: usize) -> String {
    let row = |number: usize, cot: &str| {
        json!({
            "question": format!("{category} {number}?"), "options": ["x", "y", "z"], "answer": "C", "answer_index": 2,
            "category": category, "cot_content": cot, "question_id": format!("{category}-{number}"), "src": "own",
        })
    };
    let example = worked.then(|| row(0, "A: Let's think step by step. The answer is (C)."));
    example
        .into_iter()
        .chain((1..=count).map(|number| row(number, "")))
        .map(|row| format!("{row}\n"))
        .collect()
}

fn run(dir: &TestDir, more: &[&str]) -> CommandOutput {
    let base = ["run", "--benchmark", "mmlu_pro", "--dataset", "mmlu_pro=items.jsonl", "--json"];
    dir.bench(&[&base[..], more].concat())
}

fn made(output: &CommandOutput) -> Value {
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    let value: Value = serde_json::from_str(&output.stdout).unwrap();
    value[0].clone()
}

#[test]
fn the_same_model_name_at_two_hosts_is_distinguished() {
    let dir = TestDir::new();
    dir.write("items.jsonl", mmlu_pro_rows(3));
    let runs = [model_server(200).0, model_server(200).0].map(|address| {
        let host = address.strip_prefix("http://").unwrap().strip_suffix("/v1").unwrap().to_owned();
        let output = run(&dir, &["--model", "openai-compatible/m", "--base-url", &address]);
        (made(&output), host)
    });
    for (run, host) in &runs {
        assert_eq!(run["endpoint_host"], json!(host));
        assert_eq!(run["score_label"], "score of mmlu_pro");
        let zip = run["files"]["zip"].as_str().unwrap();
        let verdict = dir.json(&["verify", zip, "--json"]);
        assert_eq!(
            (&verdict["run"]["provider"], &verdict["run"]["endpoint_host"]),
            (&json!("openai-compatible"), &json!(host))
        );
        let shown = dir.bench(&["verify", zip]);
        assert!(shown.stdout.contains(&format!("openai-compatible at {host}")), "{}", shown.stdout);
        let table = std::fs::read_to_string(dir.path(run["files"]["csv"].as_str().unwrap())).unwrap();
        let header = ",provider,endpoint_host,judge_endpoint_host,overall_score_label";
        assert!(table.lines().next().unwrap().contains(header), "{table}");
        assert!(table.contains(&format!(",openai-compatible,{host},,score of mmlu_pro")), "{table}");
        let detail = dir.bench(&["runs", run["id"].as_str().unwrap()]);
        assert!(detail.stdout.contains(&format!("openai-compatible/m at {host}")), "{}", detail.stdout);
    }
    let ids = runs.each_ref().map(|(run, _)| run["id"].as_str().unwrap());
    let compared = dir.bench(&["compare", ids[0], ids[1]]);
    for (_, host) in &runs {
        assert!(compared.stdout.contains(&format!("m at {host} ")), "{}", compared.stdout);
    }
}

#[test]
fn differences_are_the_second_run_less_the_first() {
    let dir = TestDir::new();
    dir.write("items.jsonl", mmlu_pro_rows(4));
    let reply = |right: usize| -> String {
        let of = |n: usize| if n <= right { "The answer is (C)." } else { "The answer is (A)." };
        (1..=4).map(|n| format!("{}\n", json!({ "item_id": n.to_string(), "response": of(n) }))).collect()
    };
    let [worse, better] = [("worse.jsonl", 1), ("better.jsonl", 4)].map(|(name, right)| {
        dir.write(name, reply(right));
        made(&run(&dir, &["--model", &format!("replay:{name}")]))["id"].as_str().unwrap().to_owned()
    });
    let compared = dir.json(&["compare", &worse, &better, "--json"]);
    assert!((compared["benchmarks"][0]["difference"].as_f64().unwrap() - 0.75).abs() < 1e-12, "{compared}");
    let shown = dir.bench(&["compare", &worse, &better]);
    assert!(shown.stdout.contains("B − A") && shown.stdout.contains("+75.0"), "{}", shown.stdout);
}

#[test]
fn runs_without_common_items_are_not_compared() {
    let dir = TestDir::new();
    let [one, other] = ["math", "law"].map(|category| {
        dir.write("items.jsonl", rows(category, true, 3));
        made(&run(&dir, &["--model", "oracle"]))["id"].as_str().unwrap().to_owned()
    });
    let same = dir.json(&["compare", &one, &one, "--json"]);
    assert_eq!(same["benchmarks"][0]["items"], 3);
    // Items of two datasets are matched by their own ids, since rows with the same index are different questions.
    dir.bench(&["compare", &one, &other]).assert_refused(1, "have no graded item in common");
    dir.write("items.jsonl", rows("law", true, 4));
    let last = made(&run(&dir, &["--model", "oracle", "--item", "law-4"]));
    let output = dir.bench(&["compare", &other, last["id"].as_str().unwrap()]);
    output.assert_refused(1, "have no graded item in common");
    assert!(output.stderr.contains("hint: compare runs of the same dataset"), "{}", output.stderr);
}

#[test]
fn a_mean_of_several_benchmarks_is_labeled() {
    let dir = TestDir::new();
    let args = [
        "run",
        "--model",
        "oracle",
        "--demo",
        "--benchmark",
        "mmlu_pro,ifbench",
        "--subset-count",
        "2",
        "--json",
    ];
    let run = made(&dir.bench(&args));
    assert_eq!(run["score_label"], "mean of 2 benchmark scores");
    let id = run["id"].as_str().unwrap();
    for (args, label) in [(&["runs"][..], "(mean of 2)"), (&["runs", id], "(mean of 2 benchmark scores)")] {
        let shown = dir.bench(args);
        assert!(shown.stdout.contains(label), "{}", shown.stdout);
    }
    let zip = run["files"]["zip"].as_str().unwrap();
    let shown = dir.bench(&["verify", zip]);
    assert!(shown.stdout.contains("100.0% (mean of 2 benchmark scores)"), "{}", shown.stdout);
}

#[test]
fn examples_that_came_with_the_program_make_no_official_prompt() {
    let dir = TestDir::new();
    dir.write("items.jsonl", rows("math", false, 2));
    let output = run(&dir, &["--model", "oracle"]);
    let own = made(&output);
    assert_eq!(own["results"][0]["prompt_source"], "own", "{own}");
    assert!(output.stderr.contains("worked examples: demo"), "{}", output.stderr);
    let zip = own["files"]["zip"].as_str().unwrap();
    let shown = dir.bench(&["verify", zip]);
    assert!(shown.stdout.contains("OWN wording"), "{}", shown.stdout);
    dir.write("items.jsonl", rows("math", true, 2));
    let official = made(&run(&dir, &["--model", "oracle"]));
    assert_eq!(official["results"][0]["prompt_source"], "official", "{official}");
    assert_ne!(official["results"][0]["prompt_digest"], own["results"][0]["prompt_digest"]);
}

#[test]
fn a_category_without_examples_is_reported_before_anything_is_asked() {
    let dir = TestDir::new();
    dir.write("items.jsonl", rows("math", true, 2) + &rows("alchemy", false, 3));
    let (address, requests) = model_server(200);
    let output = run(&dir, &["--model", "openai-compatible/m", "--base-url", &address]);
    assert_eq!(output.code, 1, "{}{}", output.stdout, output.stderr);
    assert!(output.stderr.contains("`alchemy` (3 items)"), "{}", output.stderr);
    let requests = requests.lock().unwrap();
    assert!(requests.iter().all(|request| request.path != "/v1/chat/completions"), "nothing was asked");
    drop(requests);
    // Items that have examples can be run.
    let output = run(&dir, &["--model", "oracle", "--item", "math-1", "--item", "math-2"]);
    assert_eq!(made(&output)["coverage"], 1.0);
}

#[test]
fn a_missing_folder_is_refused() {
    let dir = TestDir::new();
    dir.write("items.jsonl", mmlu_pro_rows(2));
    let run = made(&run(&dir, &["--model", "oracle"]));
    let id = run["id"].as_str().unwrap();
    for out in ["missing/", "missing/a.zip", "missing/deeper/"] {
        dir.bench(&["export", id, "--out", out]).assert_refused(2, "--out: there is no folder `missing");
        assert!(!dir.path("missing").exists());
    }
    // A file in place of the results' folder is reported before any model is called.
    dir.write("taken", "");
    let output = dir.bench(&["run", "--model", "oracle", "--demo", "--out", "taken"]);
    output.assert_refused(2, "--out: `taken` is not a folder");
    let resume = ["run", "--resume", id, "--out", "taken/deeper"];
    let rejudge = ["rejudge", id, "--judge-model", "oracle", "--out", "taken"];
    for command in [&resume[..], &rejudge[..]] {
        dir.bench(command).assert_refused(2, "--out: `taken` is not a folder");
    }
    assert_eq!(dir.json(&["runs", "--json"]).as_array().unwrap().len(), 1, "no run was made");
}

#[test]
fn a_list_of_models_that_cannot_be_downloaded_is_an_error() {
    let dir = TestDir::new();
    let mut command = dir.command(&["models", "--sync"]);
    let output =
        CommandOutput::new(&command.env("CHUTES_MODELS_API_URL", "http://127.0.0.1:1").output().unwrap());
    output.assert_refused(1, "Chutes can't be reached at `http://127.0.0.1:1`");
}
