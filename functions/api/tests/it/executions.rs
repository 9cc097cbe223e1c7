//! Items with several questions, answers that ran in a sandbox, and benchmark options.

use std::collections::BTreeMap;

use bench_domain::{
    Answer, Execution, HarvestedFile, JobEnd, JobReport, Outcome, Position, Prompt, RunId, SampleBody, Step,
};
use serde_json::{Value, json};

use crate::server::Server;

const OWNER: (&str, &str) = ("authorization", "Bearer key-a");
const STRANGER: (&str, &str) = ("authorization", "Bearer key-b");

/// Texts of jobs and steps that are private for a gated dataset.
const SECRETS: [&str; 5] =
    ["first question", "first answer", "said while running", "trace of it", "left behind"];

fn run_in_a_sandbox(body: &mut SampleBody) {
    let first = Step {
        name: "76.1".into(),
        prompt: Prompt::user("The first question?"),
        answer: Answer::local("The first answer.\0"),
    };
    let last = Step { name: "76.2".into(), prompt: body.prompt.clone(), answer: body.answer.clone() };
    body.steps = vec![first, last];
    body.execution = Some(Execution {
        round: 1,
        report: JobReport {
            end: JobEnd::Exited(1),
            files: BTreeMap::from([
                (
                    "results.json".to_owned(),
                    HarvestedFile::Text("{\"76.1\":\"pass\",\"note\":\"left behind\"}".into()),
                ),
                ("core".to_owned(), HarvestedFile::TooLong(1 << 33)),
            ]),
            stdout_tail: "said while running\0".into(),
            stderr_tail: "trace of it".into(),
            elapsed_ms: Some(1_500),
            isolation: Some("namespaces".into()),
        },
    });
}

async fn run_of(server: &Server, name: &str, source: &str) -> RunId {
    let order = json!({ "model_id": "oracle", "selected_benchmarks": [name], "demo": true });
    let made = server.order("/api/runs", &[OWNER], &order).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let run = made.json()["id"].as_str().unwrap().parse().unwrap();
    server.plan_from(source, run, name, 2, 1).await;
    let at = |item| Position { item, sample: 0 };
    server.commit_body(run, name, at(0), Outcome::Correct, "```python\nx = 1\n```", run_in_a_sandbox).await;
    server.commit_body(run, name, at(1), Outcome::Incorrect, "B", |_| {}).await;
    server.close(run).await;
    run
}

async fn items(server: &Server, run: RunId, name: &str, who: (&str, &str)) -> (String, Vec<Value>) {
    let reply = server.ask("GET", &format!("/api/runs/{run}/benchmarks/{name}"), &[who], "").await;
    let items = reply.json()["items"]["items"].as_array().unwrap().clone();
    (reply.text, items)
}

#[tokio::test]
async fn steps_and_test_results_are_shown() {
    let server = Server::deployed().await;
    let run = run_of(&server, "mmlu_pro", "hub").await;
    let (_, items) = items(&server, run, "mmlu_pro", STRANGER).await;
    let item = &items[0];
    let steps = item["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 2);
    assert_eq!((&steps[0]["name"], &steps[0]["prompt"]), (&json!("76.1"), &json!("The first question?")));
    assert_eq!((&steps[0]["response"], &steps[0]["cut"]), (&json!("The first answer."), &json!(false)));
    assert_eq!((&steps[1]["response"], &steps[1]["prompt"]), (&item["response"], &item["prompt"]));
    let ran = &item["judge_output"];
    for (field, value) in [
        ("end", json!("exited")),
        ("exit_code", json!(1)),
        ("round", json!(1)),
        ("isolation", json!("namespaces")),
        ("elapsed_ms", json!(1_500)),
        ("stdout", json!("said while running")),
        ("stderr", json!("trace of it")),
        (
            "files",
            json!({
                "core": { "bytes": 1_u64 << 33 },
                "results.json": { "json": { "76.1": "pass", "note": "left behind" } },
            }),
        ),
    ] {
        assert_eq!(ran[field], value, "{field}");
    }
    assert_eq!(item["test_code"], "A", "what was extracted, as the benchmark does not say better");
    for field in ["steps", "judge_output", "test_code"] {
        assert_eq!(items[1][field], Value::Null, "{field}: it was one question, and nothing was run");
    }
}

#[tokio::test]
async fn of_a_gated_dataset_only_owners_read_them() {
    let server = Server::deployed().await;
    let run = run_of(&server, "gpqa_diamond", "hub").await;
    let (text, shown) = items(&server, run, "gpqa_diamond", OWNER).await;
    assert!(SECRETS.iter().all(|secret| text.contains(secret)), "{text}");
    assert!(shown[0]["steps"].is_array());
    let (text, hidden) = items(&server, run, "gpqa_diamond", STRANGER).await;
    for secret in SECRETS {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    for field in ["steps", "judge_output", "test_code"] {
        assert_eq!(hidden[0][field], Value::Null, "{field}");
    }
}

#[tokio::test]
async fn options_are_checked_and_kept() {
    let server = Server::local().await;
    let order = |options: Value| json!({ "model_id": "oracle", "selected_benchmarks": ["mmlu_pro"], "demo": true, "benchmark_options": options });
    let view = server.order("/api/runs", &[], &order(json!({ "mmlu_pro": {} }))).await.json();
    assert_eq!(view["benchmark_options"], json!({}));
    for (options, parts) in [
        (json!({ "mmlu_pro": { "release": "v1" } }), ["mmlu_pro", "unknown option `release`"]),
        (json!({ "aime_2025": {} }), ["aime_2025", "isn't ordered"]),
        (json!({ "nope": {} }), ["nope", "unknown benchmark"]),
        (json!(7), ["benchmark_options", "dictionary"]),
    ] {
        for path in ["/api/runs", "/api/schedules"] {
            let mut body = order(options.clone());
            body["name"] = "x".into();
            body["cron"] = "30 2 * * *".into();
            let reply = server.order(path, &[], &body).await;
            assert_eq!(reply.status, 422, "{path} {options}: {}", reply.text);
            for part in parts {
                assert!(reply.text.contains(part), "{part}: {}", reply.text);
            }
        }
    }
}

/// For every benchmark with options: a run stores and shows options that aren't the default, and counts as another order.
#[tokio::test]
async fn every_benchmark_says_its_options_and_takes_them() {
    let server = Server::local().await;
    for benchmark in bench_benchmarks::all() {
        let name = benchmark.name();
        let shown = server.get(&format!("/api/benchmarks/{name}")).await.json();
        let protocol = &shown["protocols"][0];
        let listed = protocol["options"].as_array().unwrap();
        assert_eq!(listed.len(), benchmark.options().len(), "{name}");
        for (listed, option) in listed.iter().zip(benchmark.options()) {
            assert_eq!(
                (&listed["name"], &listed["description"]),
                (&json!(option.name), &json!(option.description))
            );
            assert!(!option.description.is_empty(), "{name}.{}", option.name);
            let default = Some(option.default).filter(|default| !default.is_empty());
            assert_eq!(listed["default"], json!(default));
        }
        assert_eq!(protocol["sandbox"].is_object(), benchmark.sandbox().is_some(), "{name}");
        assert_eq!(protocol["stepwise"], benchmark.steps().is_some(), "{name}");
        let unknown = json!({
            "model_id": "oracle", "selected_benchmarks": [name], "demo": true,
            "benchmark_options": { name: { "no_such": "x" } },
        });
        let reply = server.order("/api/runs", &[], &unknown).await;
        assert_eq!(reply.status, 422, "{name}: {}", reply.text);
        for option in benchmark.options() {
            assert!(reply.text.contains(option.name), "{name}: {}", reply.text);
        }
    }
}

#[tokio::test]
async fn a_comparison_tells_that_options_differ() {
    let server = Server::local().await;
    let mut runs = Vec::new();
    for release in ["v5", "v6", "v6"] {
        let order = json!({ "model_id": "oracle", "selected_benchmarks": ["mmlu_pro"], "demo": true });
        let run: RunId =
            server.order("/api/runs", &[], &order).await.json()["id"].as_str().unwrap().parse().unwrap();
        server
            .plan_as(run, "mmlu_pro", 1, 1, |plan| {
                plan.options = BTreeMap::from([("release".to_owned(), release.to_owned())]);
            })
            .await;
        server.commit(run, "mmlu_pro", Position { item: 0, sample: 0 }, Outcome::Correct).await;
        server.close(run).await;
        let view = server.get(&format!("/api/runs/{run}")).await.json();
        assert_eq!(view["benchmarks"][0]["options"], json!({ "release": release }));
        runs.push(run);
    }
    let compare = async |a: RunId, b: RunId| {
        let view = server.get(&format!("/api/runs/{a}/compare/{b}")).await.json();
        let benchmark = &view["benchmarks"][0];
        (benchmark["same_protocol"] == true, benchmark["warnings"].to_string())
    };
    let (same, warnings) = compare(runs[0], runs[1]).await;
    assert!(!same && warnings.contains("different options: release=v5 and release=v6"), "{warnings}");
    assert!(!warnings.contains("prompt template"), "{warnings}");
    let (same, warnings) = compare(runs[1], runs[2]).await;
    assert!(same && !warnings.contains("options"), "{warnings}");
}

#[tokio::test]
async fn a_run_keeps_the_options_that_it_was_given() {
    let server = Server::local().await;
    let order = |options: Value| {
        json!({
            "model_id": "oracle", "selected_benchmarks": ["LiveCodeBench"], "demo": true,
            "benchmark_options": { "LiveCodeBench": options },
        })
    };
    let chosen = json!({ "release": "release_v5", "start_date": "2024-08-01" });
    let kept = json!({ "livecodebench": chosen });
    for path in ["/api/runs", "/api/runs/api"] {
        let reply = server.order(path, &[OWNER], &order(chosen.clone())).await;
        assert_eq!(reply.status, 201, "{path}: {}", reply.text);
        let view = reply.json();
        assert_eq!(view["benchmark_options"], kept, "{path}");
        assert_eq!(view["benchmarks"][0]["options"], chosen, "until it is planned those that were given");
        let run: RunId = view["id"].as_str().unwrap().parse().unwrap();
        let spec = server.api.state.run(run).await.unwrap().unwrap().spec;
        assert_eq!(json!(spec.options), kept);
        let events = server.get(&format!("/api/runs/{run}/events?cursor=0")).await.text;
        assert!(events.contains("benchmark_options") && events.contains("2024-08-01"), "{events}");
    }
    let default =
        server.order("/api/runs", &[], &order(json!({ "release": " release_latest " }))).await.json();
    assert_eq!(default["benchmark_options"], json!({}), "the default is no choice");
    for (options, part) in [
        (json!({ "release": "release_v9" }), "release_v9"),
        (json!({ "start_date": "soon" }), "start_date"),
        (json!({ "start_date": 20_240_801 }), "start_date"),
        (json!({ "relase": "release_v5" }), "unknown option `relase`; this benchmark has release"),
    ] {
        let reply = server.order("/api/runs", &[], &order(options)).await;
        assert_eq!(reply.status, 422, "{}", reply.text);
        assert!(reply.text.contains(part), "{part}: {}", reply.text);
        assert_eq!(reply.json()["detail"][0]["loc"][1], "benchmark_options");
    }
    // Another option under the same idempotency key is another order.
    let keyed =
        async |options: Value| server.order("/api/runs", &[("idempotency-key", "k1")], &order(options)).await;
    let first = keyed(chosen.clone()).await;
    let again = keyed(chosen).await;
    assert!(first.status == 201 && again.status == 200, "{}{}", first.text, again.text);
    assert_eq!(first.json()["id"], again.json()["id"]);
    assert_eq!(keyed(json!({ "release": "release_v4" })).await.status, 422);
}

#[tokio::test]
async fn schedules_have_options() {
    let server = Server::local().await;
    let body = json!({
        "name": "nightly", "cron": "30 2 * * *", "model_id": "oracle", "demo": true,
        "selected_benchmarks": ["livecodebench", "mmlu_pro"],
        "benchmark_options": { "livecodebench": { "release": "v6" } },
    });
    let reply = server.order("/api/schedules", &[], &body).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    let made = reply.json();
    assert_eq!(made["benchmark_options"], json!({ "livecodebench": { "release": "v6" } }));
    let path = format!("/api/schedules/{}", made["id"].as_str().unwrap());
    let patch = async |change: Value| {
        let headers = [("content-type", "application/json")];
        server.ask("PATCH", &path, &headers, change.to_string()).await
    };
    let changed = patch(json!({ "subset_count": 3 })).await.json();
    assert_eq!(changed["benchmark_options"], made["benchmark_options"], "what is not touched stays");
    let reply = server.order(&format!("{path}/run-now"), &[], &json!({})).await;
    assert!(reply.status.is_success(), "{}", reply.text);
    let bad = patch(json!({ "benchmark_options": { "livecodebench": { "release": "v7" } } })).await;
    assert_eq!(bad.status, 422, "{}", bad.text);
    let changed =
        patch(json!({ "benchmark_options": { "livecodebench": { "end_date": "2024-12-31" } } })).await.json();
    assert_eq!(changed["benchmark_options"], json!({ "livecodebench": { "end_date": "2024-12-31" } }));
    let changed = patch(json!({ "selected_benchmarks": ["mmlu_pro"] })).await.json();
    assert_eq!(changed["benchmark_options"], json!({}), "they go with their benchmark");
}
