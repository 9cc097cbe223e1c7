//! Runs with a budget: they stop, keep their answers, and exceed the budget at most by the requests in flight.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bench_domain::{BenchmarkStatus, Budget, FailureReason, Price, RunId, RunStatus};
use bench_embedded::{Recorder, Service};
use bench_exports::ExportFormat;
use bench_state::{EventKind, ShardCount, Shards};
use bench_tests::model_server::Reply;

use crate::support::world::Shutdown;
use crate::support::{Expected, Order, Settings, World, check, data, runtime};

/// Tokens that the model server reports for an answer: 100 for the prompt, 20 for the answer.
const TOKENS: u64 = 120;
const CONCURRENCY: usize = 8;

fn slow_settings() -> Settings {
    Settings { concurrency: CONCURRENCY, latency: Duration::from_millis(30), ..Settings::default() }
}

async fn run_count(world: &World, run: RunId) -> ShardCount {
    let found = world.stored_run(run).await;
    let shards: Vec<Shards> = found.benchmarks.iter().filter_map(Shards::from_benchmark).collect();
    world.stack.state.run_count(run, &shards).await.unwrap()
}

/// Checks that the run failed because of its budget, and spent at least the budget but less than that plus all
/// samples in flight.
async fn check_stopped(world: &World, run: RunId, budget: u64, generation: u32) -> ShardCount {
    check_stopped_after(world, run, budget, generation, 0).await
}

/// Does the same for a run whose process was killed: each kill may leave answers that were stored but not counted.
/// The next process counts them when their samples are delivered again, which may be after it has reached the budget.
async fn check_stopped_after(
    world: &World,
    run: RunId,
    budget: u64,
    generation: u32,
    kills: u64,
) -> ShardCount {
    assert_eq!(world.wait_for_end(run).await, RunStatus::Failed);
    check(world, run, Expected::FAILED.generation(generation)).await;
    let state = world.stored_run(run).await.run.state;
    assert_eq!(state.failure_reason(), Some(FailureReason::Budget), "{state:?}");
    let count = run_count(world, run).await;
    let (spent, most) = (count.spent().total(), budget + (1 + kills) * CONCURRENCY as u64 * TOKENS);
    println!("{spent} of {budget} tokens spent, bound {most}");
    assert!(budget <= spent && spent < most, "{spent} spent of {budget}");
    count
}

#[test]
fn a_run_stops_at_its_budget_and_keeps_what_was_answered() {
    const BUDGET: u64 = 50 * TOKENS;
    runtime().block_on(async {
        let settings = Settings { groups_commits: false, ..slow_settings() };
        let world = World::start(settings, |request| Reply::Text(data::right_answer(&request.item))).await;
        let run = Order::mmlu_pro(300).with_aime(10).with_budget_tokens(BUDGET).place(&world).await;
        let count = check_stopped(&world, run, BUDGET, 1).await;
        // Every question asked was paid for: all of them were answered, counted and graded.
        assert_eq!(world.model.total(), count.done);
        assert_eq!(count.spent().total(), count.done * TOKENS);
        assert_eq!(count.graded, count.done);

        let found = world.stored_run(run).await;
        let error = found.run.state.error().unwrap();
        assert!(error.starts_with("stopped: budget of 6,000 tokens reached (6,"), "{error}");
        assert!(error.ends_with("of 340 samples done"), "{error}");
        let mut graded = 0;
        for benchmark in &found.benchmarks {
            assert_eq!(benchmark.state.status(), BenchmarkStatus::Failed);
            assert!(benchmark.state.error().unwrap().contains("budget"));
            let report = benchmark.state.report().unwrap();
            // Below the minimum coverage there is no score, but the report has the score of the graded samples.
            assert_eq!((report.score, report.score_of_graded.is_some()), (None, report.graded > 0));
            graded += report.graded;
        }
        assert_eq!(graded, count.done);
        assert_eq!(found.benchmarks.iter().filter(|b| b.plan.is_some()).count(), 2);
        let events = world.stack.state.events(run, 0, 1_000).await.unwrap();
        let failed = events.iter().find(|event| event.event_type == EventKind::RunFailed).unwrap();
        assert!(failed.message.contains("budget of 6,000 tokens"), "{}", failed.message);
    });
}

#[test]
fn a_stopped_run_is_exported_the_same_whenever_it_is_built() {
    runtime().block_on(async {
        let world =
            World::start(slow_settings(), |request| Reply::Text(data::right_answer(&request.item))).await;
        let run = Order::mmlu_pro(200).with_budget_tokens(20 * TOKENS).place(&world).await;
        // Exports are tried as soon as the run has failed, again and again: a rejected export must not be a partial
        // one.
        world
            .wait_until("the stop", || async {
                world.stored_run(run).await.run.state.status() == RunStatus::Failed
            })
            .await;
        let early = loop {
            match world.stack.exports.build(run, ExportFormat::Zip).await {
                Ok(built) => break built,
                Err(error) => assert!(error.to_string().contains("being closed"), "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        check_stopped(&world, run, 20 * TOKENS, 1).await;
        let blobs = &world.stack.blobs;
        let first = blobs.get(&early.key).await.unwrap().unwrap();
        blobs.delete(&early.key).await.unwrap();
        let late = world.stack.exports.build(run, ExportFormat::Zip).await.unwrap();
        assert_eq!(late.key, early.key);
        assert!(first == blobs.get(&late.key).await.unwrap().unwrap(), "other bytes");
    });
}

#[test]
fn dollars_stop_a_run_at_the_price_that_was_noted() {
    const PRICE: Price = Price { input_per_million_usd: 100.0, output_per_million_usd: 500.0 };
    // 100 × 100 + 20 × 500 dollars per million answers: two cents each.
    const EACH: f64 = 0.02;
    runtime().block_on(async {
        let world =
            World::start(slow_settings(), |request| Reply::Text(data::right_answer(&request.item))).await;
        let run = Order::mmlu_pro(200).with_budget_usd(185.0 * EACH, PRICE).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Failed);
        check(&world, run, Expected::FAILED).await;
        let count = run_count(&world, run).await;
        let spent = PRICE.cost(count.spent()).total_usd();
        #[allow(clippy::cast_precision_loss)]
        let most = (185.0 + CONCURRENCY as f64) * EACH;
        assert!((3.699..most).contains(&spent), "{spent}");
        let found = world.stored_run(run).await;
        let error = found.run.state.error().unwrap();
        assert!(error.starts_with("stopped: budget of 3.70 USD reached (3."), "{error}");
        // Enough was graded for a score; the run failed nevertheless, and can be requeued.
        let state = &found.benchmarks[0].state;
        let report = state.report().unwrap();
        assert_eq!((state.status(), report.score), (BenchmarkStatus::Failed, Some(1.0)));
        assert_eq!(report.spent, Some(count.spent()));
        assert_eq!(found.run.state.overall_score(), None);
    });
}

/// A budget that is reached by the last answer must not stop the run.
#[test]
fn a_run_that_is_complete_is_not_stopped() {
    runtime().block_on(async {
        let settings = Settings { concurrency: 1, ..slow_settings() };
        let world = World::start(settings, |request| Reply::Text(data::right_answer(&request.item))).await;
        let exact = Order::mmlu_pro(10).with_budget_tokens(10 * TOKENS).place(&world).await;
        assert_eq!(world.wait_for_end(exact).await, RunStatus::Succeeded);
        let short = Order::mmlu_pro(10).with_budget_tokens(10 * TOKENS - TOKENS).place(&world).await;
        assert_eq!(world.wait_for_end(short).await, RunStatus::Failed);
        assert_eq!(run_count(&world, short).await.done, 9);
    });
}

#[test]
fn a_provider_that_counts_nothing_does_not_evade_a_budget() {
    runtime().block_on(async {
        let world = World::start(slow_settings(), |_| Reply::Uncounted("x".repeat(4_000))).await;
        let run = Order::mmlu_pro(200).with_budget_tokens(20_000).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Failed);
        check(&world, run, Expected::FAILED).await;
        let count = run_count(&world, run).await;
        assert_eq!((count.input_tokens, count.output_tokens), (0, 0), "nobody counted");
        // A thousand for each answer, plus the tokens of its prompt.
        assert!(count.spent_output == count.done * 1_000 && count.spent_input > count.done * 20);
        let each = count.spent().total().div_ceil(count.done);
        let most = 20_000 + CONCURRENCY as u64 * (each + 50);
        assert!((20_000..most).contains(&count.spent().total()), "{count:?}");
    });
}

/// Interrupted answers are paid for, and each sample is asked again: without counting their tokens, the run would
/// never stop.
#[test]
fn attempts_without_an_answer_count() {
    runtime().block_on(async {
        let world = World::start(slow_settings(), |request| match request.before {
            0 => Reply::NoEnd("x".repeat(4_000)),
            _ => Reply::Text(data::right_answer(&request.item)),
        })
        .await;
        let run = Order::mmlu_pro(100).with_budget_tokens(10_000).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Failed);
        check(&world, run, Expected::FAILED).await;
        let state = world.stored_run(run).await.run.state;
        assert!(state.is_stopped(), "{state:?}");
        let count = run_count(&world, run).await;
        assert!(count.spent().total() >= 10_000);
        assert!(count.spent_output > count.output_tokens, "{count:?}");
        assert!(world.model.total() < 60, "{} questions", world.model.total());
    });
}

#[test]
fn budgets_are_not_shared() {
    runtime().block_on(async {
        let world =
            World::start(slow_settings(), |request| Reply::Text(data::right_answer(&request.item))).await;
        let small = Order::mmlu_pro(100).with_budget_tokens(10 * TOKENS).place(&world).await;
        let large = Order::mmlu_pro(60).with_budget_tokens(1_000 * TOKENS).place(&world).await;
        let none = Order::mmlu_pro(60).place(&world).await;
        for run in [large, none] {
            assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
            check(&world, run, Expected::SUCCEEDED.among_others()).await;
            assert_eq!(run_count(&world, run).await.spent().total(), 60 * TOKENS);
        }
        check_stopped(&world, small, 10 * TOKENS, 1).await;
    });
}

/// The counters contain the spending, so the next process knows it. A kill loses the answers in flight, which no
/// process can count.
#[test]
fn a_budget_survives_kills() {
    const BUDGET: u64 = 100 * TOKENS;
    const KILLS: u64 = 3;
    runtime().block_on(async {
        let settings = Settings { groups_commits: false, ..slow_settings() };
        let mut world =
            World::start(settings, |request| Reply::Text(data::right_answer(&request.item))).await;
        let run = Order::mmlu_pro(300).with_budget_tokens(BUDGET).place(&world).await;
        for nth in 1..=KILLS {
            world.wait_until("some progress", || async { world.model.total() >= nth * 25 }).await;
            world = world.reopen(Shutdown::Killed).await;
        }
        let count = check_stopped_after(&world, run, BUDGET, 1, KILLS).await;
        let asked = world.model.total();
        assert!(asked <= count.done + KILLS * CONCURRENCY as u64, "{asked} asked, {} done", count.done);
    });
}

#[test]
fn a_stopped_run_resumes_with_a_larger_budget() {
    runtime().block_on(async {
        let world =
            World::start(slow_settings(), |request| Reply::Text(data::mostly_right_answer(request))).await;
        let run = Order::mmlu_pro(100).with_budget_tokens(20 * TOKENS).place(&world).await;
        let first = check_stopped(&world, run, 20 * TOKENS, 1).await;

        let api = &world.stack.api;
        let tokens = |tokens| Budget { usd: None, tokens: Some(tokens) };
        for budget in [Budget::default(), tokens(20 * TOKENS), tokens(first.spent().total())] {
            let refused = bench_api::requeue_run_with(api, run, None, budget).await.unwrap_err();
            assert_eq!(refused.status().as_u16(), 400);
            assert!(refused.message().contains("would stop at once"), "{}", refused.message());
        }
        let dollars = Budget { usd: Some(1.0), tokens: Some(1_000_000) };
        let refused = bench_api::requeue_run_with(api, run, None, dollars).await.unwrap_err();
        assert!(refused.message().contains("price"), "{}", refused.message());
        assert!(!world.stored_run(run).await.run.state.status().is_open());

        // The new budget includes the earlier spending.
        bench_api::requeue_run_with(api, run, None, tokens(50 * TOKENS)).await.unwrap();
        let second = check_stopped(&world, run, 50 * TOKENS, 2).await;
        assert!(second.done > first.done && world.model.total() == second.done, "{second:?}");

        bench_api::requeue_run_with(api, run, None, tokens(1_000 * TOKENS)).await.unwrap();
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        check(&world, run, Expected::SUCCEEDED.generation(3)).await;
        assert_eq!(run_count(&world, run).await.spent().total(), 100 * TOKENS);
        assert!(
            world.model.question_counts().values().all(|times| *times == 1),
            "nothing is asked or paid for twice"
        );
    });
}

/// Returns the DynamoDB calls of a run by action, the number of its progress events, and its duration.
async fn count_calls(order: Order) -> (BTreeMap<String, u64>, u64, Duration) {
    let calls: Arc<Mutex<BTreeMap<String, u64>>> = Arc::default();
    let noted = Arc::clone(&calls);
    let recorder = Recorder::new(move |call| {
        if call.service == Service::DynamoDb {
            *noted.lock().unwrap().entry(call.action.to_owned()).or_default() += 1;
        }
    });
    let settings = Settings { recorder: Some(recorder), ..slow_settings() };
    let world = World::start(settings, |request| Reply::Text(data::right_answer(&request.item))).await;
    let start = Instant::now();
    let run = order.place(&world).await;
    assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
    let (elapsed, calls) = (start.elapsed(), calls.lock().unwrap().clone());
    let events = world.stack.state.events(run, 0, 1_000).await.unwrap();
    let progress = events.iter().filter(|event| event.event_type == EventKind::BenchmarkProgress).count();
    (calls, progress as u64, elapsed)
}

/// Counters are read once per progress event and the finisher reads all samples in one page. There are no other batch
/// reads.
#[test]
fn a_run_without_a_budget_reads_nothing_for_it() {
    runtime().block_on(async {
        let (without, progress, _) = count_calls(Order::mmlu_pro(80)).await;
        // The last event is the finisher's. It reads one page and no counters.
        assert_eq!(without.get("BatchGetItem").copied().unwrap_or(0), progress, "{without:?}");

        let (with, progress, elapsed) = count_calls(Order::mmlu_pro(80).with_budget_tokens(1_000_000)).await;
        let extra = with["BatchGetItem"] - progress;
        // At most one read per second, and the finisher's.
        assert!((2..=elapsed.as_secs() + 3).contains(&extra), "{extra} in {elapsed:?}");
    });
}
