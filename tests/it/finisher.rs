//! A finisher that is killed halfway, and one that is called repeatedly.

use std::time::Duration;

use bench_domain::report::ReportBuilder;
use bench_domain::{RunId, RunStatus};
use bench_queue::Message;
use bench_state::{EventKind, NewEvent, SampleRecord, Transition};
use bench_tests::model_server::Reply;
use futures_util::future::join_all;

use crate::support::{Expected, Hands, Order, Settings, World, check, data, runtime};

/// Creates a run of two benchmarks whose samples have all ended, but which hasn't been closed.
async fn complete() -> (World, Hands, RunId) {
    let world = World::open(Settings::default(), |ask| Reply::Text(data::mostly_right(ask))).await;
    let hands = Hands::of(&world, 0);
    let run = Order::mmlu_pro(9).and_aime(2).place(&world).await;
    assert!(hands.handle(&Message::Plan { run, generation: 1 }).await);
    let found = world.found(run).await;
    for benchmark in &found.benchmarks {
        for sample in world.samples(&found, benchmark.name.as_str()).await {
            let sample = World::sample_ref(&found, benchmark.name.as_str(), sample.position);
            assert!(hands.handle(&Message::Sample { sample, generation: 1 }).await);
        }
    }
    assert!(world.found(run).await.is_complete());
    (world, hands, run)
}

#[test]
fn killed_after_closing_one_of_two_benchmarks() {
    runtime().block_on(async {
        let (world, hands, run) = complete().await;
        let found = world.found(run).await;
        let (first, now) = (&found.benchmarks[0], bench_clock::now());
        let plan = first.plan.as_ref().unwrap();
        let mut builder = ReportBuilder::default();
        let samples = world.samples(&found, first.name.as_str()).await;
        samples.iter().filter_map(SampleRecord::summary).for_each(|summary| builder.add(&summary));
        let report = builder.finish(plan.items, plan.samples_per_item, 0.9, None).with_clamped_interval();
        let closed = first.state.close(now, report).unwrap();
        let event = NewEvent::new(EventKind::BenchmarkCompleted, "Completed").for_benchmark(&first.name);
        let changed =
            hands.state.change_benchmark(run, first, &closed, None, Some(&event), now).await.unwrap();
        assert_eq!(changed, Transition::Done);

        assert!(hands.handle(&Message::Finish { run, generation: 1 }).await);
        hands.drain().await;
        check(&world, run, Expected::SUCCEEDED).await;
    });
}

#[test]
fn called_many_times_at_once_it_closes_the_run_once() {
    runtime().block_on(async {
        let (world, hands, run) = complete().await;
        let finish = Message::Finish { run, generation: 1 };
        let handled = join_all((0..12).map(|_| hands.handle(&finish))).await;
        assert!(handled.into_iter().all(|handled| handled));
        hands.drain().await;
        check(&world, run, Expected::SUCCEEDED).await;
        let report = world.found(run).await;
        assert!(hands.handle(&finish).await);
        assert_eq!(world.found(run).await, report);
    });
}

/// The message of the last sample was lost with its worker: the next start closes the run immediately.
#[test]
fn a_run_that_lost_its_last_message_is_closed_at_the_next_start() {
    runtime().block_on(async {
        let (world, hands, run) = complete().await;
        for queue in bench_queue::QueueName::ALL {
            let url = hands.queues.url(queue).unwrap();
            hands.queues.client().purge_queue().queue_url(url).send().await.unwrap();
        }
        let hands = Hands::of(&world, 1);
        hands.scheduler.resume().await.unwrap();
        hands.drain().await;
        check(&world, run, Expected::SUCCEEDED).await;
    });
}

/// The message that a run is over is lost: reconciliation finds the remaining work.
#[test]
fn a_canceled_run_whose_message_was_lost_is_cleared_up() {
    runtime().block_on(async {
        let (world, hands, run) = complete().await;
        let found = world.found(run).await;
        let now = bench_clock::now();
        let canceled = found.run.state.cancel(now).unwrap();
        let event = NewEvent::new(EventKind::RunCanceled, "Run canceled by user");
        hands.state.change_run(&found.run, &canceled, 1, &event, now).await.unwrap();
        for queue in bench_queue::QueueName::ALL {
            let url = hands.queues.url(queue).unwrap();
            hands.queues.client().purge_queue().queue_url(url).send().await.unwrap();
        }
        assert_eq!(hands.scheduler.reconcile_after(Duration::from_secs(600)).await.unwrap().finishes, 0);
        assert_eq!(hands.scheduler.reconcile_after(Duration::ZERO).await.unwrap().finishes, 1);
        hands.drain().await;
        check(&world, run, Expected::CANCELED).await;
        assert_eq!(world.end_of(run).await, RunStatus::Canceled);
        assert_eq!(hands.scheduler.reconcile_after(Duration::ZERO).await.unwrap().finishes, 0);
    });
}
