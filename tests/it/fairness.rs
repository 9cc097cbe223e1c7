//! Two runs at the same time.

use std::time::Duration;

use bench_domain::RunStatus;
use bench_tests::model_server::Reply;

use crate::support::{Expected, Order, Settings, World, check, data, runtime};

const LARGE: usize = 500;
const SMALL: usize = 10;
const CONCURRENCY: usize = 4;

/// Samples of both runs alternate: the small run waits for about as many samples of the large one as it has itself.
#[test]
fn a_run_of_10_is_not_starved_by_one_of_500() {
    runtime().block_on(async {
        let settings =
            Settings { concurrency: CONCURRENCY, latency: Duration::from_millis(10), ..Settings::default() };
        let world = World::start(settings, |request| Reply::Text(data::right_answer(&request.item))).await;
        let large = Order::mmlu_pro(LARGE).with_key("key-of-large").place(&world).await;
        world.wait_until("the large run at work", || async { world.model.total() > 20 }).await;
        let small = Order::mmlu_pro(SMALL).with_key("key-of-small").place(&world).await;
        assert_eq!(world.wait_for_end(small).await, RunStatus::Succeeded);
        assert!(
            world.stored_run(large).await.run.state.status().is_open(),
            "the large run is far from its end"
        );
        check(&world, small, Expected::SUCCEEDED.among_others()).await;
        assert_eq!(world.wait_for_end(large).await, RunStatus::Succeeded);
        check(&world, large, Expected::SUCCEEDED).await;

        let log = world.model.log();
        let of_small: Vec<usize> = log
            .iter()
            .enumerate()
            .filter(|(_, request)| request.key.as_deref() == Some("key-of-small"))
            .map(|(place, _)| place)
            .collect();
        assert_eq!(of_small.len(), SMALL);
        let span = of_small[SMALL - 1] - of_small[0] + 1;
        // Strict alternation would give 2 × 10; the samples in progress on both sides come on top.
        assert!(span <= 2 * SMALL + 4 * CONCURRENCY, "the small run's questions spread over {span}");
        assert_eq!(log.len(), LARGE + SMALL);
    });
}
