//! Models ranked within one benchmark.

use crate::server::Server;
use bench_domain::run::{AuthMode, ModelRef, Owner, Plan};
use bench_domain::{Code, ModelId, Outcome, Position, ReasoningEffort, RunId, RunSpec, Subset};
use bench_state::{EventKind, NewEvent};
use serde_json::{Value, json};

use Outcome::{Correct, Incorrect, InfrastructureError};

/// Creates a finished run of a model over the whole dataset with these outcomes.
async fn run(
    server: &Server,
    model: ModelRef,
    subset: Subset,
    outcomes: &[Outcome],
    change: impl FnOnce(&mut Plan),
) -> RunId {
    let id = RunId::random();
    let fields = json!({
        "id": id, "benchmarks": ["mmlu_pro"], "selected_benchmarks": null, "model": model, "subset": subset,
        "item_naming": "source-id", "owner": Owner::Local, "auth": AuthMode::System, "coverage_min": 0.5,
        "software": "test", "created_at": bench_clock::now(),
    });
    let spec: RunSpec = serde_json::from_value(fields).unwrap();
    let event = NewEvent::new(EventKind::RunCreated, "created");
    assert!(server.api.state.create_run(&spec, &event, None, bench_clock::now()).await.unwrap());
    server
        .plan_as(id, "mmlu_pro", outcomes.len() as u64, 1, |plan| {
            plan.dataset.source = "hub".into();
            plan.dataset_items = plan.items;
            change(plan);
        })
        .await;
    for (item, outcome) in outcomes.iter().enumerate() {
        let position = Position { item: u32::try_from(item).unwrap(), sample: 0 };
        server.commit(id, "mmlu_pro", position, *outcome).await;
    }
    server.close(id).await;
    id
}

fn model(slug: &str) -> ModelRef {
    ModelRef {
        id: ModelId::from_name("openrouter", slug),
        provider: "openrouter".into(),
        slug: slug.into(),
        base_url: None,
        replay_key: None,
        endpoint_host: Some("openrouter.ai".into()),
    }
}

fn outcomes(right: usize, wrong: usize) -> Vec<Outcome> {
    [vec![Correct; right], vec![Incorrect; wrong]].concat()
}

async fn board(server: &Server) -> Value {
    let reply = server.get("/api/leaderboard?benchmark=mmlu_pro").await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply.json()
}

#[tokio::test]
async fn the_latest_full_run_ranks_and_the_best_is_shown() {
    let server = Server::deployed().await;
    let all = Subset::default;
    let best = run(&server, model("a"), all(), &outcomes(10, 0), |_| {}).await;
    let latest = run(&server, model("a"), all(), &outcomes(8, 2), |_| {}).await;
    run(&server, model("a"), all(), &[outcomes(9, 0), vec![InfrastructureError]].concat(), |_| {}).await;
    run(&server, model("b"), all(), &outcomes(7, 3), |_| {}).await;
    run(&server, model("c"), all(), &outcomes(0, 10), |_| {}).await;
    let found = board(&server).await;
    assert_eq!(found["benchmarks"], json!([{ "benchmark_name": "mmlu_pro", "runs": 5 }]));
    let [only] = found["boards"].as_array().unwrap().as_slice() else { panic!("{found}") };
    let entries = only["entries"].as_array().unwrap();
    let ranks: Vec<Value> = entries
        .iter()
        .map(|entry| json!([entry["model"], entry["rank_low"], entry["rank_high"], entry["score"]]))
        .collect();
    assert_eq!(
        ranks,
        [
            json!(["openrouter/a", 1, 2, 0.8]),
            json!(["openrouter/b", 1, 2, 0.7]),
            json!(["openrouter/c", 3, 3, 0.0])
        ]
    );
    let first = &entries[0];
    assert_eq!((&first["run_id"], &first["best"]["run_id"]), (&json!(latest), &json!(best)));
    assert_eq!(
        (&first["best"]["score"], &first["runs"], &first["partial_runs"]),
        (&json!(1.0), &json!(2), &json!(1))
    );
    assert_eq!(first["interval"]["method"], "wilson");
    assert_eq!((&found["excluded"]["partial"], &found["runs_read"]), (&json!(1), &json!(5)));
    assert_eq!((&found["is_complete"], &found["runs_max"]), (&json!(true), &json!(500)));
}

#[tokio::test]
async fn only_like_is_ranked_with_like() {
    let server = Server::deployed().await;
    let seeded = |seed: &str| Subset::new(100, Some(2), Some(seed)).unwrap();
    let half = |plan: &mut Plan| plan.dataset_items = 4;
    let results = outcomes(1, 1);
    run(&server, model("a"), Subset::default(), &results, |_| {}).await;
    run(&server, model("b"), Subset::default(), &results, |plan| plan.protocol = "protocol 2".into()).await;
    run(&server, model("c"), Subset::default(), &results, |plan| plan.dataset.revision = "r2".into()).await;
    run(&server, model("d"), Subset::default(), &results, |plan| plan.samples_per_item = 1).await;
    run(&server, model("e"), seeded("s"), &results, half).await;
    run(&server, model("f"), seeded("s"), &results, half).await;
    run(&server, model("g"), seeded("t"), &results, half).await;
    run(&server, model("h"), Subset::new(100, Some(2), None).unwrap(), &results, half).await;
    let found = board(&server).await;
    let boards = found["boards"].as_array().unwrap().iter();
    let mut models: Vec<String> = boards
        .map(|board| {
            let entries = board["entries"].as_array().unwrap().iter();
            entries.map(|entry| entry["model"].as_str().unwrap().rsplit('/').next().unwrap()).collect()
        })
        .collect();
    models.sort();
    assert_eq!(models, ["ad", "b", "c", "ef", "g"]);
    assert_eq!(found["excluded"]["own_items"], 1, "the run's id chose its items");
}

#[tokio::test]
async fn an_exposed_server_ranks_only_what_others_can_check() {
    let own = |base_url: Option<&str>, host: &str| ModelRef {
        base_url: base_url.map(str::to_owned),
        endpoint_host: Some(host.to_owned()),
        ..model("own")
    };
    let oracle =
        ModelRef { provider: "oracle".into(), slug: "oracle".into(), endpoint_host: None, ..model("x") };
    let replay =
        ModelRef { provider: "replay".into(), slug: "file".into(), endpoint_host: None, ..model("x") };
    let demo = |plan: &mut Plan| plan.dataset.source = "demo".into();
    let file = |plan: &mut Plan| plan.dataset.source = "local".into();
    for (local, ranked) in [(false, 1), (true, 7)] {
        let server = Server::new(local, &[]).await;
        let results = outcomes(1, 1);
        run(&server, model("a"), Subset::default(), &results, |_| {}).await;
        run(&server, oracle.clone(), Subset::default(), &results, |_| {}).await;
        run(&server, replay.clone(), Subset::default(), &results, |_| {}).await;
        run(
            &server,
            own(Some("https://openrouter.ai/api/v1"), "openrouter.ai"),
            Subset::default(),
            &results,
            |_| {},
        )
        .await;
        run(&server, own(None, "10.0.0.1:8000"), Subset::default(), &results, |_| {}).await;
        run(&server, model("demo"), Subset::default(), &results, demo).await;
        run(&server, model("file"), Subset::default(), &results, file).await;
        let found = board(&server).await;
        let boards = found["boards"].as_array().unwrap().iter();
        let entries: usize = boards.map(|board| board["entries"].as_array().unwrap().len()).sum();
        assert_eq!(entries, ranked, "{found}");
        if !local {
            let excluded = json!({
                "failed": 0, "oracle": 1, "replay": 1, "own_endpoint": 2, "demo": 1, "own_items": 1, "partial": 0,
            });
            assert_eq!(found["excluded"], excluded);
        }
    }
}

#[tokio::test]
async fn without_a_benchmark_there_is_only_a_list() {
    let server = Server::local().await;
    let empty = server.get("/api/leaderboard").await.json();
    assert_eq!(
        (&empty["benchmarks"], &empty["boards"], &empty["benchmark"]),
        (&json!([]), &json!([]), &json!(null))
    );
    assert_eq!(server.get("/api/leaderboard?benchmark=nope").await.code(), Some(Code::BenchmarkNotFound));
}

#[tokio::test]
async fn a_model_has_an_entry_for_each_thinking_level() {
    let server = Server::deployed().await;
    let at = |effort: Option<ReasoningEffort>| {
        move |plan: &mut Plan| {
            plan.dataset.source = "bundled".into();
            plan.protocol_generation = Some(plan.generation.clone());
            plan.generation.reasoning_effort = effort;
        }
    };
    let all = Subset::default;
    run(&server, model("a"), all(), &outcomes(1, 1), at(None)).await;
    run(&server, model("a"), all(), &outcomes(2, 0), at(Some(ReasoningEffort::High))).await;
    run(&server, model("b"), all(), &outcomes(0, 2), at(Some(ReasoningEffort::High))).await;
    let found = board(&server).await;
    let [only] = found["boards"].as_array().unwrap().as_slice() else { panic!("{found}") };
    let entries: Vec<Value> = only["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| json!([entry["model"], entry["thinking_level"], entry["score"]]))
        .collect();
    assert_eq!(
        entries,
        [
            json!(["openrouter/a", "high", 1.0]),
            json!(["openrouter/a", null, 0.5]),
            json!(["openrouter/b", "high", 0.0])
        ]
    );
    assert_eq!(only["changed_settings"], json!([]));
}
