//! Cost of judges: separate tokens and keys, one common budget.

use std::time::Duration;

use bench_domain::{Budget, FailureReason, Price, RunStatus};
use bench_tests::model_server::Reply;

use super::{NAME, TOKENS, question_counts, run_spending};
use crate::support::{Expected, Order, Settings, World, check, data, runtime};

const CONCURRENCY: usize = 4;
const PRICE: Price = Price { input_per_million_usd: 100.0, output_per_million_usd: 500.0 };
/// 100 × 100 + 20 × 500 dollars per million replies: two cents each.
const EACH: f64 = 0.02;

fn slow_settings() -> Settings {
    Settings { concurrency: CONCURRENCY, latency: Duration::from_millis(20), ..Settings::default() }
}

fn judge_rule(request: &bench_tests::model_server::ModelRequest) -> Reply {
    if request.is_judge { Reply::Text("A".into()) } else { Reply::Text(data::right_answer(&request.item)) }
}

#[test]
fn each_is_asked_with_its_own_key() {
    runtime().block_on(async {
        let world = World::start(slow_settings(), judge_rule).await;
        let order = Order::aa_omniscience(5, &world).with_key("key-of-model").with_judge_key("key-of-judge");
        let run = order.place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        // Both keys are deleted with the run; the check searches for them.
        check(&world, run, Expected::SUCCEEDED).await;
        for request in world.model.log() {
            let key = if request.is_judge { "key-of-judge" } else { "key-of-model" };
            assert_eq!(request.key.as_deref(), Some(key));
        }
    });
}

#[test]
fn a_judge_without_its_key_fails_the_run() {
    runtime().block_on(async {
        let world = World::open(slow_settings(), judge_rule).await;
        let run = Order::aa_omniscience(3, &world).with_judge_key("key-of-judge").create(&world).await;
        world.stack.credentials.delete(run).await.unwrap();
        let mut world = world;
        world.stack.start().await.unwrap();
        world
            .stack
            .queues
            .send(&bench_queue::Message::Plan { run, generation: 1 }, Duration::ZERO)
            .await
            .unwrap();
        assert_eq!(world.wait_for_end(run).await, RunStatus::Failed);
        check(&world, run, Expected::FAILED).await;
        let error = world.stored_run(run).await.run.state.error().unwrap().to_owned();
        assert!(error.contains("missing API key credentials of its judge"), "{error}");
        assert_eq!(question_counts(&world).1, 0);
    });
}

#[test]
fn a_budget_counts_the_judge() {
    const BUDGET: u64 = 40 * TOKENS;
    runtime().block_on(async {
        let world = World::start(slow_settings(), judge_rule).await;
        let run = Order::aa_omniscience(100, &world).with_budget_tokens(BUDGET).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Failed);
        check(&world, run, Expected::FAILED).await;
        let state = world.stored_run(run).await.run.state;
        assert_eq!(state.failure_reason(), Some(FailureReason::Budget), "{state:?}");
        let spending = run_spending(&world.stack.state, &world, run).await;
        let (answers, replies) = question_counts(&world);
        assert_eq!((spending.answers.total(), spending.judge.total()), (answers * TOKENS, replies * TOKENS));
        assert!(spending.judge.total() > 0, "{spending:?}");
        // Answers and replies each have this many requests in flight.
        let most = BUDGET + 2 * CONCURRENCY as u64 * TOKENS;
        assert!((BUDGET..most).contains(&spending.total()), "{spending:?}");

        // With a larger budget the run continues, and neither the model nor the judge is asked twice.
        let more = Budget { usd: None, tokens: Some(1_000 * TOKENS) };
        bench_api::requeue_run_with(&world.stack.api, run, None, more).await.unwrap();
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        check(&world, run, Expected::SUCCEEDED.generation(2)).await;
        assert_eq!(question_counts(&world), (100, 100));
        let report = world.stored_run(run).await.benchmarks[0].state.report().unwrap().clone();
        assert_eq!(report.spent.unwrap().total(), 100 * TOKENS);
        assert_eq!(report.judge_spent.unwrap().total(), 100 * TOKENS);
    });
}

#[test]
fn dollars_for_the_judge_stop_a_run() {
    runtime().block_on(async {
        let world = World::start(slow_settings(), judge_rule).await;
        // The model is free.
        let free = Price { input_per_million_usd: 0.0, output_per_million_usd: 0.0 };
        let order =
            Order::aa_omniscience(100, &world).with_budget_usd(20.0 * EACH, free).with_judge_price(PRICE);
        let run = order.place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Failed);
        check(&world, run, Expected::FAILED).await;
        let found = world.stored_run(run).await;
        let error = found.run.state.error().unwrap();
        assert!(error.starts_with("stopped: budget of 0.40 USD reached (0.4"), "{error}");
        let replies = question_counts(&world).1;
        assert!((20..20 + CONCURRENCY as u64).contains(&replies), "{replies}");
        let report = found.benchmarks[0].state.report().unwrap();
        assert_eq!(report.cost.unwrap().total_usd(), 0.0);
        assert!((report.judge_cost.unwrap().total_usd() - replies as f64 * EACH).abs() < 1e-9);
    });
}

/// Another judge grades the same answers, which are asked and paid for once.
#[test]
fn answers_of_another_run_are_judged_again() {
    runtime().block_on(async {
        let world =
            World::start(slow_settings(), |request| match (request.is_judge, data::number(&request.item)) {
                // An answer without text needs no judge, and a refused answer never gets one.
                (false, 0) => Reply::Text(String::new()),
                (false, 1) => Reply::Status(403, r#"{"error":{"code":"content_filter"}}"#.into(), vec![]),
                (false, _) => Reply::Text(data::right_answer(&request.item)),
                (true, 2) => Reply::Text("B".into()),
                _ => Reply::Text("A".into()),
            })
            .await;
        let first = Order::aa_omniscience(6, &world).place(&world).await;
        assert_eq!(world.wait_for_end(first).await, RunStatus::Succeeded);
        let before = check(&world, first, Expected::SUCCEEDED).await;
        assert_eq!(question_counts(&world), (6, 4));
        let order = Order::aa_omniscience(6, &world).with_oracle_judge().rejudging(first);
        let second = order.place(&world).await;
        assert_eq!(world.wait_for_end(second).await, RunStatus::Succeeded);
        let after = check(&world, second, Expected::SUCCEEDED).await;
        assert_eq!(question_counts(&world), (6, 4), "neither is asked again");
        for (old, new) in before[NAME].iter().zip(&after[NAME]) {
            let (old, new) = (old.finished.as_ref().unwrap(), new.finished.as_ref().unwrap());
            assert_eq!(
                (old.item_hash.as_ref(), old.body.is_some()),
                (new.item_hash.as_ref(), new.body.is_some())
            );
        }
        let outcome = |item: usize| after[NAME][item].finished.as_ref().unwrap().verdict.outcome;
        assert_eq!(before[NAME][1].finished.as_ref().unwrap().verdict.outcome, outcome(1));
        assert_eq!(outcome(2), bench_domain::Outcome::Correct, "the oracle finds the gold answer");
        let report =
            |found: bench_state::RunWithBenchmarks| found.benchmarks[0].state.report().unwrap().clone();
        let (old, new) = (report(world.stored_run(first).await), report(world.stored_run(second).await));
        assert_eq!((old.usage.total(), new.usage.total()), (5 * TOKENS, 0), "answers are paid for once");
        let version = world.stored_run(second).await.benchmarks[0]
            .plan
            .as_ref()
            .unwrap()
            .judge
            .clone()
            .unwrap()
            .version;
        assert_eq!(version, 2);

        // Without the run that asked the model, there are no answers to judge.
        let third = order.create(&world).await;
        bench_api::delete_run(&world.stack.api, first).await.unwrap();
        world
            .stack
            .queues
            .send(&bench_queue::Message::Plan { run: third, generation: 1 }, Duration::ZERO)
            .await
            .unwrap();
        assert_eq!(world.wait_for_end(third).await, RunStatus::Failed);
    });
}
