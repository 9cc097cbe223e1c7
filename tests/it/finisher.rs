//! A finisher that is killed halfway, and one that is called repeatedly.

use std::time::Duration;

use bench_domain::report::ReportBuilder;
use bench_domain::{ReportedModels, RunId, RunStatus};
use bench_queue::Message;
use bench_state::{EventKind, NewEvent, SampleRecord, Transition};
use bench_tests::model_server::Reply;
use futures_util::future::join_all;

use crate::support::{Expected, ManualDriver, Order, Settings, World, check, data, runtime};

/// Creates a run of two benchmarks whose samples have all ended, but which hasn't been closed.
async fn completed_run() -> (World, ManualDriver, RunId) {
    let world =
        World::open(Settings::default(), |request| Reply::Text(data::mostly_right_answer(request))).await;
    let driver = ManualDriver::new(&world, 0);
    let run = Order::mmlu_pro(9).with_aime(2).place(&world).await;
    assert!(driver.handle(&Message::Plan { run, generation: 1 }).await);
    let found = world.stored_run(run).await;
    for benchmark in &found.benchmarks {
        for sample in world.samples(&found, benchmark.name.as_str()).await {
            let sample = World::sample_ref(&found, benchmark.name.as_str(), sample.position);
            assert!(driver.handle(&Message::Sample { sample, generation: 1 }).await);
        }
    }
    assert!(world.stored_run(run).await.is_complete());
    (world, driver, run)
}

#[test]
fn killed_after_closing_one_of_two_benchmarks() {
    runtime().block_on(async {
        let (world, driver, run) = completed_run().await;
        let found = world.stored_run(run).await;
        let (first, now) = (&found.benchmarks[0], bench_clock::now());
        let plan = first.plan.as_ref().unwrap();
        let mut builder = ReportBuilder::default();
        let samples = world.samples(&found, first.name.as_str()).await;
        samples.iter().filter_map(SampleRecord::summary).for_each(|summary| builder.add(&summary));
        let mut models = ReportedModels::default();
        samples.iter().filter_map(SampleRecord::reported_model).for_each(|model| models.add(model));
        let report = builder.finish(plan.items, plan.samples_per_item, 0.9, None).with_clamped_interval();
        let report = report.with_reported_models(models);
        let closed = first.state.close(now, report).unwrap();
        let event = NewEvent::new(EventKind::BenchmarkCompleted, "Completed").for_benchmark(&first.name);
        let changed =
            driver.state.change_benchmark(run, first, &closed, None, Some(&event), now).await.unwrap();
        assert_eq!(changed, Transition::Done);

        assert!(driver.handle(&Message::Finish { run, generation: 1 }).await);
        driver.drain().await;
        check(&world, run, Expected::SUCCEEDED).await;
    });
}

#[test]
fn called_many_times_at_once_it_closes_the_run_once() {
    runtime().block_on(async {
        let (world, driver, run) = completed_run().await;
        let finish = Message::Finish { run, generation: 1 };
        let handled = join_all((0..12).map(|_| driver.handle(&finish))).await;
        assert!(handled.into_iter().all(|handled| handled));
        driver.drain().await;
        check(&world, run, Expected::SUCCEEDED).await;
        let report = world.stored_run(run).await;
        assert!(driver.handle(&finish).await);
        assert_eq!(world.stored_run(run).await, report);
    });
}

/// The message of the last sample was lost with its worker: the next start closes the run immediately.
#[test]
fn a_run_that_lost_its_last_message_is_closed_at_the_next_start() {
    runtime().block_on(async {
        let (world, driver, run) = completed_run().await;
        for queue in bench_queue::QueueName::ALL {
            let url = driver.queues.url(queue).unwrap();
            driver.queues.client().purge_queue().queue_url(url).send().await.unwrap();
        }
        let driver = ManualDriver::new(&world, 1);
        driver.scheduler.resume().await.unwrap();
        driver.drain().await;
        check(&world, run, Expected::SUCCEEDED).await;
    });
}

/// The message that a run is over is lost: reconciliation finds the remaining work.
#[test]
fn a_canceled_run_whose_message_was_lost_is_cleared_up() {
    runtime().block_on(async {
        let (world, driver, run) = completed_run().await;
        let found = world.stored_run(run).await;
        let now = bench_clock::now();
        let canceled = found.run.state.cancel(now).unwrap();
        let event = NewEvent::new(EventKind::RunCanceled, "Run canceled by user");
        driver.state.change_run(&found.run, &canceled, 1, &event, now).await.unwrap();
        for queue in bench_queue::QueueName::ALL {
            let url = driver.queues.url(queue).unwrap();
            driver.queues.client().purge_queue().queue_url(url).send().await.unwrap();
        }
        assert_eq!(driver.scheduler.reconcile_after(Duration::from_secs(600)).await.unwrap().finishes, 0);
        assert_eq!(driver.scheduler.reconcile_after(Duration::ZERO).await.unwrap().finishes, 1);
        driver.drain().await;
        check(&world, run, Expected::CANCELED).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Canceled);
        assert_eq!(driver.scheduler.reconcile_after(Duration::ZERO).await.unwrap().finishes, 0);
    });
}
