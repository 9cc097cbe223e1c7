//! Benchmarks of a run: items, their order and pages, sums, and the contents of views.

use crate::server::Server;
use bench_domain::run::ItemNaming;
use bench_domain::{EpisodeState, Outcome, Position, SampleBody, SampleRef, Stage, TextRepairs, Usage};
use bench_state::{AnswerRecord, BodyRef, Claim, EventKind, NewEvent, Renewal, Transition};
use bench_web::views::item_view;
use serde_json::{Value, json};
use std::time::Duration;

const FIELDS: [&str; 18] = [
    "id",
    "item_id",
    "source_id",
    "item_hash",
    "prompt",
    "response",
    "expected",
    "is_correct",
    "score",
    "judge_output",
    "latency_ms",
    "input_tokens",
    "output_tokens",
    "error",
    "test_code",
    "item_metadata",
    "created_at",
    "outcome",
];

#[tokio::test]
async fn a_run_that_is_over_shows_score_coverage_and_every_outcome() {
    use Outcome::{Correct, Incorrect, NoAnswer, Truncated};
    let server = Server::local().await;
    let run = server.finished_run(&[Correct, Correct, Incorrect, NoAnswer, Truncated]).await;
    let view = server.get(&format!("/api/runs/{run}")).await.json();
    assert_eq!((&view["status"], &view["overall_score"]), (&json!("succeeded"), &json!(0.4)));
    assert_eq!((&view["coverage"], &view["demo"]), (&json!(1.0), &json!(true)));
    assert_eq!(view["progress"], json!({ "completed": 5, "total": 5, "percent": 100.0 }));
    assert_eq!((&view["input_tokens"], &view["cost"]), (&json!(500), &json!(null)));
    let benchmark = &view["benchmarks"][0];
    for (field, value) in [
        ("status", json!("succeeded")),
        ("total_items", json!(1_000)),
        ("sampled_items", json!(5)),
        ("completed_items", json!(5)),
        ("score", json!(0.4)),
        ("accuracy_all", json!(0.4)),
        ("coverage", json!(1.0)),
        ("graded_samples", json!(5)),
        ("samples_per_item", json!(1)),
        ("protocol", json!("protocol 1")),
        ("prompt_source", json!("official")),
    ] {
        assert_eq!(benchmark[field], value, "{field}");
    }
    assert_eq!(benchmark["outcomes"]["truncated"], 1);
    assert_eq!(benchmark["dataset"]["revision"], "r1");
    assert_eq!(benchmark["interval"]["method"], "wilson");
    assert_eq!(benchmark["generation"]["max_tokens"], 2_048);
    let metrics = &benchmark["metrics"];
    for (field, value) in [
        ("accuracy", json!(0.4)),
        ("total_items", json!(1_000)),
        ("sampled_items", json!(5)),
        ("sampled_pct", json!(100)),
        ("subset_count", json!(null)),
        ("subset_seed", json!(null)),
        ("correct", json!(2)),
        ("score", json!(0.4)),
        ("coverage", json!(1.0)),
    ] {
        assert_eq!(metrics.get(field), Some(&value), "{field}");
    }
    let wilson = &metrics["wilson_95"];
    assert!(wilson["low"].as_f64().unwrap() < 0.4 && wilson["high"].as_f64().unwrap() > 0.4);
}

#[tokio::test]
async fn items_come_in_the_order_of_the_plan_with_their_texts() {
    use Outcome::{Correct, Incorrect, InfrastructureError, NoAnswer, Truncated};
    let server = Server::local().await;
    let run = server.finished_run(&[Correct, Incorrect, NoAnswer, Truncated, InfrastructureError]).await;
    let path = format!("/api/runs/{run}/benchmarks/mmlu_pro");
    let details = server.get(&path).await.json();
    assert_eq!(details["items"]["total"], 5);
    assert_eq!((&details["items"]["limit"], &details["items"]["offset"]), (&json!(100), &json!(0)));
    let items = details["items"]["items"].as_array().unwrap();
    let ids: Vec<&str> = items.iter().map(|item| item["item_id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["q0", "q1", "q2", "q3", "q4"]);
    for item in items {
        for field in FIELDS {
            assert!(item.get(field).is_some(), "{field}");
        }
    }
    let own: Vec<&serde_json::Value> = items.iter().map(|item| &item["source_id"]).collect();
    assert_eq!(json!(own), json!([null, "own-1", "own-2", "own-3", "own-4"]));
    assert_eq!(items[0]["prompt"], "What is q0?");
    assert_eq!(items[0]["response"], "The answer is (A).", "without NUL");
    assert_eq!((&items[0]["expected"], &items[0]["reasoning"]), (&json!("A"), &json!("Hmm.")));
    assert_eq!(
        (&items[0]["is_correct"], &items[0]["score"], &items[0]["error"]),
        (&json!(true), &json!(1.0), &json!(null))
    );
    let metadata = &items[0]["item_metadata"];
    assert_eq!(metadata["usage"], json!({ "prompt_tokens": 100, "completion_tokens": 10, "x": 1.0 }));
    assert_eq!((&metadata["worker_attempt"], &metadata["worker_attempts"]), (&json!(1), &json!(1)));
    assert_eq!(
        (&metadata["finish_reason"], &metadata["response_source"]),
        (&json!("stop"), &json!("content"))
    );
    assert_eq!((&metadata["model"], &metadata["max_tokens"]), (&json!("oracle-1"), &json!(2_048)));
    assert_eq!(
        (&items[1]["reason"], &items[1]["extracted"], &items[1]["error"]),
        (&json!("B is not A"), &json!("B"), &json!(null))
    );
    assert_eq!(items[2]["error"], "Model produced empty response");
    assert_eq!(
        (&items[2]["is_correct"], &items[2]["item_metadata"]["response_source"]),
        (&json!(false), &json!("reasoning"))
    );
    assert_eq!(items[3]["error"], "Response truncated (finish_reason=length)");
    assert_eq!(
        (&items[4]["error"], &items[4]["is_correct"]),
        (&json!("HTTP 500 from Chutes: no"), &json!(null))
    );
    assert_eq!((&items[4]["prompt"], &items[4]["outcome"]), (&json!(null), &json!("infrastructure-error")));
    let summary = &details["summary"];
    for (field, value) in [
        ("total_items", json!(5)),
        ("correct", json!(1)),
        ("incorrect", json!(3)),
        ("errors", json!(3)),
        ("avg_latency_ms", json!(200.0)),
        ("input_tokens", json!(400)),
        ("output_tokens", json!(40)),
        ("total_tokens", json!(440)),
        ("total_cost_usd", json!(null)),
        ("pricing_input_per_million_usd", json!(null)),
    ] {
        assert_eq!(summary.get(field), Some(&value), "{field}");
    }
    assert_eq!(summary["error_breakdown"].as_array().unwrap().len(), 3);
    assert_eq!(summary["outcomes"]["no-answer"], 1);
    assert_eq!(
        details["benchmark"]["started_at"],
        server.get(&format!("/api/runs/{run}")).await.json()["benchmarks"][0]["started_at"]
    );
    // The second response takes the sums from the cache.
    assert_eq!(server.get(&path).await.json(), details);
    let light = server.get(&format!("{path}?texts=false")).await.json();
    let light = &light["items"]["items"][0];
    assert_eq!(
        (&light["prompt"], &light["response"], &light["reasoning"]),
        (&json!(null), &json!(null), &json!(null))
    );
    assert_eq!((&light["outcome"], &light["score"]), (&json!("correct"), &json!(1.0)));
}

#[tokio::test]
async fn pages_by_offset_and_by_cursor_show_every_sample_once() {
    let server = Server::local().await;
    let run = server.run_of(&["mmlu_pro"]).await;
    server.plan(run, "mmlu_pro", 250, 2).await;
    server.commit(run, "mmlu_pro", Position { item: 3, sample: 1 }, Outcome::Correct).await;
    let path = format!("/api/runs/{run}/benchmarks/mmlu_pro");
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = server.get(&format!("{path}?limit=97&cursor={cursor}")).await.json()["items"].clone();
        assert_eq!(page["total"], 500);
        for item in page["items"].as_array().unwrap() {
            seen.push((
                item["position"].as_u64().unwrap(),
                item["sample"].as_u64().unwrap(),
                item["id"].clone(),
            ));
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(seen.len(), 500);
    assert!(
        seen.iter().map(|(item, sample, _)| (*item, *sample)).eq((0..250).flat_map(|i| [(i, 0), (i, 1)]))
    );
    let page = server.get(&format!("{path}?limit=2&offset=6")).await.json();
    let items = page["items"]["items"].as_array().unwrap();
    assert_eq!((&items[0]["outcome"], &items[1]["outcome"]), (&json!(null), &json!("correct")));
    assert_eq!((&items[0]["created_at"], &items[1]["id"]), (&page["benchmark"]["started_at"], &seen[7].2));
    assert_eq!((&page["summary"]["total_items"], &page["summary"]["correct"]), (&json!(1), &json!(1)));
    assert_eq!(page["benchmark"]["completed_samples"], 1);
    let beyond = server.get(&format!("{path}?offset=500")).await.json();
    assert_eq!((&beyond["items"]["items"], &beyond["items"]["next_cursor"]), (&json!([]), &json!(null)));
    assert_eq!(server.get(&format!("{path}?limit=0")).await.json()["items"]["total"], 500);
}

#[tokio::test]
async fn a_filter_fills_the_page_with_samples_that_match() {
    use Outcome::{Correct, Incorrect, Unparsed};
    let server = Server::local().await;
    let outcomes = [Correct, Incorrect, Correct, Unparsed, Incorrect, Correct];
    let run = server.finished_run(&outcomes).await;
    let path = format!("/api/runs/{run}/benchmarks/mmlu_pro");
    let page = async |query: &str| {
        let details = server.get(&format!("{path}?{query}")).await.json();
        let items = details["items"]["items"].as_array().unwrap();
        let positions: Vec<u64> = items.iter().map(|item| item["position"].as_u64().unwrap()).collect();
        // The benchmark and its sums are not filtered.
        assert_eq!(details["summary"]["total_items"], 6);
        (positions, details["items"]["total"].clone(), details["items"]["next_cursor"].clone())
    };
    assert_eq!(page("outcome=incorrect,unparsed").await, (vec![1, 3, 4], json!(3), json!(null)));
    assert_eq!(page("outcome=incorrect,unparsed&limit=2").await, (vec![1, 3], json!(3), json!("2")));
    assert_eq!(page("outcome=incorrect,unparsed&limit=2&cursor=2").await, (vec![4], json!(3), json!(null)));
    assert_eq!(page("outcome=correct&offset=1").await, (vec![2, 5], json!(3), json!(null)));
    assert_eq!(page("outcome=truncated").await, (vec![], json!(0), json!(null)));
    assert_eq!(page("outcome=").await.1, json!(6), "an empty value counts as not given");
    assert_eq!(page("sample=1").await.1, json!(0));
    assert_eq!(page("group=no%20such%20group").await.1, json!(0));
    let item = server.get(&format!("{path}?offset=3&limit=1")).await.json()["items"]["items"][0].clone();
    let index = item["item_id"].as_str().unwrap();
    let own = item["source_id"].as_str().unwrap_or(index);
    for name in [format!("%23{index}"), own.to_owned()] {
        assert_eq!(page(&format!("item={name}&sample=0")).await, (vec![3], json!(1), json!(null)), "{name}");
    }
    let group = item["group"].as_str().map(str::to_owned);
    if let Some(group) = group {
        assert!(page(&format!("group={group}&outcome=unparsed")).await.0.contains(&3));
    }
}

#[tokio::test]
async fn samples_are_sorted_by_their_rows_on_request() {
    let server = Server::local().await;
    let run = server.run_of(&["mmlu_pro"]).await;
    server.plan(run, "mmlu_pro", 12, 1).await;
    let page = async |query: &str| {
        let path = format!("/api/runs/{run}/benchmarks/mmlu_pro?{query}");
        let page = server.get(&path).await.json()["items"].clone();
        let items = page["items"].as_array().unwrap().iter();
        let ids: Vec<String> = items.map(|item| item["item_id"].as_str().unwrap().to_owned()).collect();
        (ids.join(" "), page["total"].clone(), page["next_cursor"].clone())
    };
    assert_eq!(page("limit=3").await, ("q0 q1 q2".to_owned(), json!(12), json!("3")));
    assert_eq!(page("limit=3&order=plan").await.0, "q0 q1 q2");
    // These ids aren't numbers.
    assert_eq!(page("limit=3&order=dataset").await, ("q0 q1 q10".to_owned(), json!(12), json!("3")));
    assert_eq!(page("limit=3&order=dataset&cursor=3").await.0, "q11 q2 q3");
    let refused = server.get(&format!("/api/runs/{run}/benchmarks/mmlu_pro?order=x")).await;
    assert_eq!(refused.status, 422);
}

#[tokio::test]
async fn runs_are_found_by_the_first_digits_of_their_ids() {
    let server = Server::local().await;
    let runs = [server.run_of(&["mmlu_pro"]).await, server.run_of(&["mmlu_pro"]).await];
    let id = runs[0].to_string();
    for prefix in [&id[..8], &id[..13], &id, &id.replace('-', "").to_uppercase()[..12]] {
        let page = server.get(&format!("/api/runs?id_prefix={prefix}")).await.json();
        assert_eq!((&page["total"], &page["runs"][0]["id"]), (&json!(1), &json!(id)), "{prefix}");
    }
    let digits = if id.starts_with('0') { "1111" } else { "0000" };
    let none = server.get(&format!("/api/runs?id_prefix={digits}0000000000000000")).await.json();
    assert_eq!((&none["total"], &none["runs"]), (&json!(0), &json!([])));
    let beyond = server.get(&format!("/api/runs?id_prefix={}&offset=1", &id[..8])).await.json();
    assert_eq!((&beyond["total"], &beyond["runs"]), (&json!(1), &json!([])));
}

#[tokio::test]
async fn a_lost_answer_is_reported_in_place_of_the_answer() {
    let server = Server::local().await;
    let run = server.finished_run(&[Outcome::Correct, Outcome::Correct]).await;
    let (bodies, _) = server.api.blobs.list(&format!("bodies/{run}/"), None).await.unwrap();
    server.api.blobs.delete(&bodies[0].key).await.unwrap();
    server.api.blobs.put(&bodies[1].key, "garbage".into(), "application/zstd").await.unwrap();
    let items =
        server.get(&format!("/api/runs/{run}/benchmarks/mmlu_pro")).await.json()["items"]["items"].clone();
    assert_eq!(
        (&items[0]["error"], &items[0]["is_correct"]),
        (&json!("the stored answer is missing"), &json!(true))
    );
    assert_eq!(items[1]["error"], "the stored answer is damaged");
}

#[tokio::test]
async fn a_long_page_is_cut_where_answers_are_bounded() {
    let text = "x".repeat(2 << 20);
    for (streaming, shown) in [(true, 3), (false, 1)] {
        let server = Server::with(true, &[], |config| config.streaming = streaming).await;
        let run = server.run_of(&["mmlu_pro"]).await;
        server.plan(run, "mmlu_pro", 3, 1).await;
        for item in 0..3 {
            let position = Position { item, sample: 0 };
            server.commit_text(run, "mmlu_pro", position, Outcome::Correct, &text).await;
        }
        let mut path = format!("/api/runs/{run}/benchmarks/mmlu_pro");
        let page = server.get(&path).await.json()["items"].clone();
        assert_eq!(page["items"].as_array().unwrap().len(), shown);
        assert_eq!(page["total"], 3);
        if streaming {
            assert_eq!((&page["limit"], &page["next_cursor"]), (&json!(100), &json!(null)));
        } else {
            assert_eq!((&page["limit"], &page["next_cursor"]), (&json!(1), &json!("1")));
            path.push_str("?cursor=1");
            let next = server.get(&path).await.json()["items"].clone();
            assert_eq!((&next["items"][0]["item_id"], &next["offset"]), (&json!("q1"), &json!(1)));
        }
    }
}

#[tokio::test]
async fn a_gated_dataset_shows_strangers_ids_digests_and_verdicts_only() {
    let server = Server::local().await;
    let run =
        server.finished_run(&[Outcome::Correct, Outcome::Incorrect, Outcome::InfrastructureError]).await;
    let found = server.api.state.run_with_benchmarks(run).await.unwrap().unwrap();
    let record = found.benchmark("mmlu_pro").unwrap();
    for sample in server.api.state.samples_page(run, record, 0, 3).await.unwrap() {
        let view = item_view(&found.run, record, &sample, None).hide();
        let shown = serde_json::to_value(&view).unwrap();
        for private in ["prompt", "response", "expected", "reasoning", "extracted", "detail", "reason"] {
            assert_eq!(shown[private], json!(null), "{private}");
        }
        assert_eq!(shown["hidden"], true);
        assert!(shown["outcome"].is_string() && shown["item_id"].is_string());
        // A provider's message may quote the item.
        let error = shown["is_correct"].is_null().then_some("infrastructure-error");
        assert_eq!(shown["error"].as_str(), error);
    }
}

#[tokio::test]
async fn changes_to_a_stored_answer_are_reported() {
    let server = Server::new(true, &[("OPENROUTER_API_KEY", "k")]).await;
    // A run that asks no model counts no answers without tokens.
    let run = server.run_of_model("openrouter/a/b", &["mmlu_pro"]).await;
    server.plan(run, "mmlu_pro", 2, 1).await;
    for item in 0..2 {
        let position = Position { item, sample: 0 };
        let change = |body: &mut SampleBody| {
            if item == 0 {
                body.answer.repairs = TextRepairs { joined: 1, replaced: 2 };
                body.answer.keys_redacted = 3;
                body.answer.usage_rejected = true;
                body.answer.usage = None;
            }
        };
        server.commit_body(run, "mmlu_pro", position, Outcome::Correct, "The answer is (A).", change).await;
    }
    let details = server.get(&format!("/api/runs/{run}/benchmarks/mmlu_pro")).await.json();
    let metadata = |item: usize| &details["items"]["items"][item]["item_metadata"];
    assert_eq!(metadata(0)["text_repairs"], json!({ "joined": 1, "replaced": 2 }));
    assert_eq!((&metadata(0)["keys_redacted"], &metadata(0)["usage_rejected"]), (&json!(3), &json!(true)));
    for field in ["text_repairs", "keys_redacted", "usage_rejected"] {
        assert!(metadata(1).get(field).is_none(), "{field}");
    }
    assert_eq!(details["summary"]["without_usage"], 1);
    assert_eq!(details["summary"]["input_tokens"], 100, "what was not counted is in no sum");
}

#[tokio::test]
async fn items_that_an_older_run_names_by_row_are_shown_as_orders_name_them() {
    let server = Server::local().await;
    let run = server.run_of(&["mmlu_pro"]).await;
    let state = &server.api.state;
    let record = state.run(run).await.unwrap().unwrap();
    let mut spec = record.spec.clone();
    spec.items = vec!["12".into(), "3".into()];
    spec.item_naming = ItemNaming::RowIndex;
    let event = NewEvent::new(EventKind::RunResumed, "Run resumed");
    let renewal = Renewal { spec: Some(&spec), ..Renewal::default() };
    let (generation, now) = (record.generation, bench_clock::now());
    let changed = state.change_run_with(&record, &record.state, generation, &event, now, renewal).await;
    assert_eq!(changed.unwrap(), Transition::Done);
    let shown = server.get(&format!("/api/runs/{run}")).await.json();
    assert_eq!(shown["items"], json!(["#12", "#3"]));
}

/// Claims an episode for a stage.
async fn claim_episode(server: &Server, stage: Stage, sample: &SampleRef) -> u32 {
    let now = bench_clock::now();
    let until = now.plus(Duration::from_secs(60));
    let claimed = server.api.state.claim(stage, sample, now, until).await.unwrap();
    let Claim::Claimed(claimed) = claimed else { panic!("{claimed:?}") };
    claimed.attempt
}

#[tokio::test]
async fn an_episode_has_started_once_it_has_a_sandbox() {
    let server = Server::local().await;
    let task = server.task("a", 2).await;
    server.post(&format!("/api/tasks/{task}/execute-async"), &[]).await;
    let run = server.last_run(task).await;
    server.plan_episodes(run, 2).await;
    let state = &server.api.state;
    let found = state.run_with_benchmarks(run).await.unwrap().unwrap();
    let record = found.benchmark("terminal_tasks").unwrap();
    let plan = record.plan.as_ref().unwrap();
    let position = Position { item: 0, sample: 1 };
    let (benchmark, shards) = (record.name.clone(), plan.shards);
    let sample = SampleRef { run, benchmark, plan: plan.attempt, shards, position };
    let started = async || {
        let path = format!("/api/runs/{run}/benchmarks/terminal_tasks?texts=false");
        let details = server.get(&path).await.json();
        let items = details["items"]["items"].as_array().unwrap().clone();
        items.iter().map(|item| item["item_metadata"]["episode_started"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(started().await, [Value::Null, Value::Null]);

    let attempt = claim_episode(&server, Stage::Answer, &sample).await;
    let body = BodyRef { attempt, sha256: "0".repeat(64) };
    let answer =
        AnswerRecord { body, item_hash: None, truncated: false, latency_ms: None, usage: None, model: None };
    let now = bench_clock::now();
    state.hand_over(&sample, attempt, Stage::Episode, &answer, Usage::default(), now).await.unwrap();
    let attempt = claim_episode(&server, Stage::Episode, &sample).await;
    assert_eq!(started().await, [Value::Null, json!(false)], "it waits for a sandbox");
    let mut checkpoint = EpisodeState::new(1, "nonce");
    checkpoint.sandbox = Some("s".to_owned());
    assert!(state.save_checkpoint(&sample, attempt, Stage::Episode, &checkpoint, false).await.unwrap());
    assert_eq!(started().await, [Value::Null, json!(true)]);
    // Archives of runs that are over keep their bytes.
    server.post(&format!("/api/runs/{run}/cancel"), &[]).await;
    assert_eq!(started().await, [Value::Null, Value::Null]);
}
