//! Provenance in results: the host that answered, the meaning of the score, and the direction of differences.

use serde_json::{Value, json};

use crate::provider::model_server;
use crate::support::{Done, Place, mmlu_items};

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

fn run(place: &Place, more: &[&str]) -> Done {
    let base = ["run", "--benchmark", "mmlu_pro", "--dataset", "mmlu_pro=items.jsonl", "--json"];
    place.bench(&[&base[..], more].concat())
}

fn made(done: &Done) -> Value {
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    let value: Value = serde_json::from_str(&done.out).unwrap();
    value[0].clone()
}

#[test]
fn the_same_model_name_at_two_hosts_is_told_apart() {
    let place = Place::new();
    place.write("items.jsonl", mmlu_items(3));
    let runs = [model_server(200).0, model_server(200).0].map(|address| {
        let host = address.strip_prefix("http://").unwrap().strip_suffix("/v1").unwrap().to_owned();
        let done = run(&place, &["--model", "openai-compatible/m", "--base-url", &address]);
        (made(&done), host)
    });
    for (run, host) in &runs {
        assert_eq!(run["endpoint_host"], json!(host));
        assert_eq!(run["score_label"], "score of mmlu_pro");
        let zip = run["files"]["zip"].as_str().unwrap();
        let verdict = place.json(&["verify", zip, "--json"]);
        assert_eq!(
            (&verdict["run"]["provider"], &verdict["run"]["endpoint_host"]),
            (&json!("openai-compatible"), &json!(host))
        );
        let shown = place.bench(&["verify", zip]);
        assert!(shown.out.contains(&format!("openai-compatible at {host}")), "{}", shown.out);
        let table = std::fs::read_to_string(place.path(run["files"]["csv"].as_str().unwrap())).unwrap();
        let header = ",provider,endpoint_host,judge_endpoint_host,overall_score_label";
        assert!(table.lines().next().unwrap().contains(header), "{table}");
        assert!(table.contains(&format!(",openai-compatible,{host},,score of mmlu_pro")), "{table}");
        let detail = place.bench(&["runs", run["id"].as_str().unwrap()]);
        assert!(detail.out.contains(&format!("openai-compatible/m at {host}")), "{}", detail.out);
    }
    let ids = runs.each_ref().map(|(run, _)| run["id"].as_str().unwrap());
    let compared = place.bench(&["compare", ids[0], ids[1]]);
    for (_, host) in &runs {
        assert!(compared.out.contains(&format!("m at {host} ")), "{}", compared.out);
    }
}

#[test]
fn differences_are_the_second_run_less_the_first() {
    let place = Place::new();
    place.write("items.jsonl", mmlu_items(4));
    let reply = |right: usize| -> String {
        let of = |n: usize| if n <= right { "The answer is (C)." } else { "The answer is (A)." };
        (1..=4).map(|n| format!("{}\n", json!({ "item_id": n.to_string(), "response": of(n) }))).collect()
    };
    let [worse, better] = [("worse.jsonl", 1), ("better.jsonl", 4)].map(|(name, right)| {
        place.write(name, reply(right));
        made(&run(&place, &["--model", &format!("replay:{name}")]))["id"].as_str().unwrap().to_owned()
    });
    let compared = place.json(&["compare", &worse, &better, "--json"]);
    assert!((compared["benchmarks"][0]["difference"].as_f64().unwrap() - 0.75).abs() < 1e-12, "{compared}");
    let shown = place.bench(&["compare", &worse, &better]);
    assert!(shown.out.contains("B − A") && shown.out.contains("+75.0"), "{}", shown.out);
}

#[test]
fn runs_without_common_items_are_not_compared() {
    let place = Place::new();
    let [one, other] = ["math", "law"].map(|category| {
        place.write("items.jsonl", rows(category, true, 3));
        made(&run(&place, &["--model", "oracle"]))["id"].as_str().unwrap().to_owned()
    });
    let same = place.json(&["compare", &one, &one, "--json"]);
    assert_eq!(same["benchmarks"][0]["items"], 3);
    // Items of two datasets are matched by their own ids, since rows with the same index are different questions.
    place.bench(&["compare", &one, &other]).refused(1, "have no graded item in common");
    place.write("items.jsonl", rows("law", true, 4));
    let last = made(&run(&place, &["--model", "oracle", "--item", "law-4"]));
    let done = place.bench(&["compare", &other, last["id"].as_str().unwrap()]);
    done.refused(1, "have no graded item in common");
    assert!(done.err.contains("hint: compare runs of the same dataset"), "{}", done.err);
}

#[test]
fn a_mean_of_several_benchmarks_is_labeled() {
    let place = Place::new();
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
    let run = made(&place.bench(&args));
    assert_eq!(run["score_label"], "mean of 2 benchmark scores");
    let id = run["id"].as_str().unwrap();
    for shown in [place.bench(&["runs"]), place.bench(&["runs", id])] {
        assert!(shown.out.contains("(mean of 2 benchmark scores)"), "{}", shown.out);
    }
    let zip = run["files"]["zip"].as_str().unwrap();
    let shown = place.bench(&["verify", zip]);
    assert!(shown.out.contains("100.0 % (mean of 2 benchmark scores)"), "{}", shown.out);
}

#[test]
fn examples_that_came_with_the_program_make_no_official_prompt() {
    let place = Place::new();
    place.write("items.jsonl", rows("math", false, 2));
    let done = run(&place, &["--model", "oracle"]);
    let own = made(&done);
    assert_eq!(own["results"][0]["prompt_source"], "own", "{own}");
    assert!(done.err.contains("worked examples: demo"), "{}", done.err);
    let zip = own["files"]["zip"].as_str().unwrap();
    let shown = place.bench(&["verify", zip]);
    assert!(shown.out.contains("OWN wording"), "{}", shown.out);
    place.write("items.jsonl", rows("math", true, 2));
    let official = made(&run(&place, &["--model", "oracle"]));
    assert_eq!(official["results"][0]["prompt_source"], "official", "{official}");
    assert_ne!(official["results"][0]["prompt_digest"], own["results"][0]["prompt_digest"]);
}

#[test]
fn a_category_without_examples_is_reported_before_anything_is_asked() {
    let place = Place::new();
    place.write("items.jsonl", rows("math", true, 2) + &rows("alchemy", false, 3));
    let (address, seen) = model_server(200);
    let done = run(&place, &["--model", "openai-compatible/m", "--base-url", &address]);
    assert_eq!(done.code, 1, "{}{}", done.out, done.err);
    assert!(done.err.contains("`alchemy` (3 items)"), "{}", done.err);
    let seen = seen.lock().unwrap();
    assert!(seen.iter().all(|seen| seen.path != "/v1/chat/completions"), "nothing was asked");
    drop(seen);
    // Items that have examples can be run.
    let done = run(&place, &["--model", "oracle", "--item", "math-1", "--item", "math-2"]);
    assert_eq!(made(&done)["coverage"], 1.0);
}

#[test]
fn a_folder_that_is_not_there_is_refused() {
    let place = Place::new();
    place.write("items.jsonl", mmlu_items(2));
    let run = made(&run(&place, &["--model", "oracle"]));
    let id = run["id"].as_str().unwrap();
    for out in ["missing/", "missing/a.zip", "missing/deeper/"] {
        place.bench(&["export", id, "--out", out]).refused(2, "--out: there is no folder `missing");
        assert!(!place.path("missing").exists());
    }
    // A file in place of the results' folder is reported before any model is called.
    place.write("taken", "");
    let done = place.bench(&["run", "--model", "oracle", "--demo", "--out", "taken"]);
    done.refused(2, "--out: `taken` is not a folder");
    let resume = ["run", "--resume", id, "--out", "taken/deeper"];
    let rejudge = ["rejudge", id, "--judge-model", "oracle", "--out", "taken"];
    for command in [&resume[..], &rejudge[..]] {
        place.bench(command).refused(2, "--out: `taken` is not a folder");
    }
    assert_eq!(place.json(&["runs", "--json"]).as_array().unwrap().len(), 1, "no run was made");
}

#[test]
fn a_list_of_models_that_cannot_be_had_is_told_as_such() {
    let place = Place::new();
    let mut command = place.command(&["models", "--sync"]);
    let done = Done::of(&command.env("CHUTES_MODELS_API_URL", "http://127.0.0.1:1").output().unwrap());
    done.refused(1, "Chutes can't be reached at http://127.0.0.1:1");
}
