//! Limits of orders that only the planner and the end of a run can enforce.

use std::time::Duration;

use bench_domain::run::{BenchmarkState, Owner};
use bench_domain::{RunId, RunStatus};
use bench_runs::{Order as ApiOrder, Orderer, TrustedSettings};
use bench_tests::model_server::Reply;

use crate::support::{Order, Settings, World, runtime};

/// Orders a run of the world's files through the API, which doesn't know their size.
async fn order_run(world: &World, order: &Order) -> RunId {
    let template = order.template(world).await;
    let order = ApiOrder {
        model: "openai-compatible/m".to_owned(),
        benchmarks: Some(template.benchmarks.iter().map(ToString::to_string).collect()),
        samples: Some(1),
        trusted: TrustedSettings {
            base_url: Some(world.model.base_url()),
            datasets: template.datasets,
            ..TrustedSettings::default()
        },
        ..ApiOrder::default()
    };
    world.stack.orders.create(order, Orderer::local()).await.unwrap().run.run.spec.id
}

#[test]
fn the_planner_keeps_the_limit_of_samples_where_an_order_does_not_know_its_datasets() {
    runtime().block_on(async {
        let settings = Settings { vars: &[("BENCH_LIMIT_SAMPLES_PER_ORDER", "15")], ..Settings::default() };
        let world = World::start(settings, |_| Reply::Text("The answer is (A).".to_owned())).await;
        let small = order_run(&world, &Order::mmlu_pro(15)).await;
        assert_eq!(world.wait_for_end(small).await, RunStatus::Succeeded);
        // Together the benchmarks exceed the limit of one order: the first is planned, the second isn't.
        let large = order_run(&world, &Order::mmlu_pro(10).with_aime(6)).await;
        assert_eq!(world.wait_for_end(large).await, RunStatus::Failed);
        let found = world.stored_run(large).await;
        let refused = found.benchmark("aime_2025").unwrap();
        let BenchmarkState::Failed { error, .. } = &refused.state else { panic!("{:?}", refused.state) };
        assert!(
            error.contains("6 samples") && error.contains("10 are planned") && error.contains("15"),
            "{error}"
        );
        assert!(refused.plan.is_none(), "nothing of it was planned");
        assert_eq!(world.model.total(), 25);
    });
}

/// Runs count as open until they are over, however they end.
#[test]
fn runs_that_end_are_open_no_longer() {
    runtime().block_on(async {
        let settings = Settings { faults: "", ..Settings::default() };
        let world = World::start(settings, |_| Reply::Text("The answer is (A).".to_owned())).await;
        let state = &world.stack.state;
        let done = Order::mmlu_pro(3).place(&world).await;
        let keyed = Order::mmlu_pro(3).with_key("sk-x").place(&world).await;
        for run in [done, keyed] {
            assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        }
        assert_eq!(state.open_runs(&Owner::Local).await.unwrap(), (0, 0));
        let waiting = Order::mmlu_pro(3).create(&world).await;
        assert_eq!(state.open_runs(&Owner::Local).await.unwrap(), (1, 1));
        world.cancel(waiting).await;
        assert_eq!(state.open_runs(&Owner::Local).await.unwrap(), (0, 0));
        world.requeue(waiting, None).await;
        assert_eq!(world.wait_for_end_reconciled(waiting, Duration::ZERO).await, RunStatus::Succeeded);
        assert_eq!(state.open_runs(&Owner::Local).await.unwrap(), (0, 0));
    });
}
