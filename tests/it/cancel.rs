//! A run that is canceled while it runs stays canceled.

use std::time::Duration;

use bench_domain::{BenchmarkStatus, Position, RunStatus};
use bench_queue::Message;
use bench_tests::model_server::Reply;

use crate::support::{Expected, Order, Settings, World, check, data, runtime};

const ITEMS: usize = 40;
const CONCURRENCY: u64 = 8;
/// Number of items that the model answers; it never responds to the others.
const ANSWERED: u64 = 8;

#[test]
fn cancel_during_a_run_stays_canceled() {
    runtime().block_on(async {
        let settings = Settings {
            concurrency: CONCURRENCY as usize,
            vars: &[("CHUTES_INFERENCE_TIMEOUT_SECONDS", "600")],
            ..Settings::default()
        };
        let world = World::start(settings, |request| match request.total_before {
            0..ANSWERED => Reply::Text(data::right_answer(&request.item)),
            _ => Reply::Hang(Duration::from_secs(600)),
        })
        .await;
        let run = Order::mmlu_pro(ITEMS).place(&world).await;
        world.wait_until("calls in flight", || async { world.model.in_flight() == CONCURRENCY }).await;
        world.cancel(run).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Canceled);
        // The calls in flight are aborted, since their answers are no longer needed.
        world.wait_until("aborted calls", || async { world.model.disconnects() == CONCURRENCY }).await;
        let samples = check(&world, run, Expected::CANCELED).await;
        let over = samples["mmlu_pro"].iter().filter(|sample| sample.finished.is_some()).count();
        assert_eq!(over as u64, ANSWERED);
        let found = world.stored_run(run).await;
        assert_eq!(found.benchmarks[0].state.status(), BenchmarkStatus::Skipped);
        assert_eq!(found.benchmarks[0].state.error(), Some("Run canceled"));
        let report = found.benchmarks[0].state.report().unwrap();
        assert_eq!((report.graded, report.planned, report.score), (ANSWERED, ITEMS as u64, None));

        // Late messages of the run change nothing.
        let late = World::sample_ref(&found, "mmlu_pro", Position { item: ITEMS as u32 - 1, sample: 0 });
        let late = [
            Message::Plan { run, generation: 1 },
            Message::Finish { run, generation: 1 },
            Message::Sample { sample: late, generation: 1 },
        ];
        world.stack.queues.send_all(&late, Duration::ZERO).await.unwrap();
        assert_eq!(check(&world, run, Expected::CANCELED).await, samples);
        assert_eq!(world.stored_run(run).await, found);
        assert_eq!(world.model.total(), ANSWERED + CONCURRENCY);
        world.scheduler().reconcile_after(Duration::ZERO).await.unwrap();
        assert_eq!(check(&world, run, Expected::CANCELED).await, samples);
    });
}

#[test]
fn a_run_canceled_before_it_starts_is_never_asked() {
    runtime().block_on(async {
        let mut world =
            World::open(Settings::default(), |request| Reply::Text(data::right_answer(&request.item))).await;
        let run = Order::mmlu_pro(10).with_aime(1).place(&world).await;
        world.cancel(run).await;
        world.stack.start().await.unwrap();
        assert_eq!(world.wait_for_end(run).await, RunStatus::Canceled);
        let samples = check(&world, run, Expected::CANCELED).await;
        assert!(samples.values().all(Vec::is_empty));
        assert_eq!(world.model.total(), 0);
    });
}
