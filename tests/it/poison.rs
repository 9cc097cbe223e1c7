//! Messages that no function can handle.

use bench_domain::{Outcome, RunStatus};
use bench_queue::{Depth, MESSAGE_VERSION, QueueName};
use bench_tests::model_server::Reply;
use bytes::Bytes;

use crate::support::{Expected, Order, Settings, World, check, data, log, runtime};

/// One item's frame is damaged: its sample is delivered until it is a dead letter, and ends as an error with the
/// cause.
#[test]
fn a_sample_whose_handling_always_fails_ends_as_an_error() {
    log::capture();
    runtime().block_on(async {
        let mut world =
            World::open(Settings::default(), |request| Reply::Text(data::right_answer(&request.item))).await;
        let order = Order::mmlu_pro(20);
        let run = order.place(&world).await;
        let spec = world.stored_run(run).await.run.spec;
        let choice = &spec.datasets[&spec.benchmarks[0]];
        let benchmark = bench_benchmarks::find("mmlu_pro").unwrap();
        let library = &world.stack.library;
        let index = library.prepare(benchmark, choice, &bench_datasets::NoProgress).await.unwrap().index;
        let entry = &index.items[7];
        let mut content = world.stack.blobs.get(&index.data_key).await.unwrap().unwrap().to_vec();
        let frame =
            usize::try_from(entry.offset).unwrap()..usize::try_from(entry.offset + entry.length).unwrap();
        content[frame].fill(0xee);
        world.stack.blobs.put(&index.data_key, Bytes::from(content), "application/zstd").await.unwrap();

        world.stack.start().await.unwrap();
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        let samples = check(&world, run, Expected::SUCCEEDED).await;
        for sample in &samples["mmlu_pro"] {
            let verdict = &sample.finished.as_ref().unwrap().verdict;
            if sample.item_id == entry.id {
                assert_eq!(verdict.outcome, Outcome::InfrastructureError);
                assert!(verdict.reason.contains("delivered 5 times"), "{}", verdict.reason);
            } else {
                assert_eq!(verdict.outcome, Outcome::Correct);
            }
        }
        let found = world.stored_run(run).await;
        let report = found.benchmarks[0].state.report().unwrap();
        assert_eq!((report.coverage, report.score), (0.95, Some(1.0)));
        assert!(!world.model.question_counts().contains_key(&entry.id));
    });
}

/// Deliveries that led to no attempt, as in an outage, end no sample: each is asked once.
#[test]
fn dead_letters_of_untried_samples_are_queued_again() {
    log::capture();
    runtime().block_on(async {
        let mut world =
            World::open(Settings::default(), |request| Reply::Text(data::right_answer(&request.item))).await;
        let run = Order::mmlu_pro(8).place(&world).await;
        let driver = crate::support::ManualDriver::new(&world, 0);
        assert!(driver.handle(&bench_queue::Message::Plan { run, generation: 1 }).await);
        let queues = &world.stack.queues;
        let (alive, dead) =
            (queues.url(QueueName::Items).unwrap(), queues.dead_letter_url(QueueName::Items).unwrap());
        let mut moved = 0;
        while moved < 8 {
            let received =
                queues.client().receive_message().queue_url(alive).max_number_of_messages(10).send().await;
            for message in received.unwrap().messages() {
                let body = message.body().unwrap();
                queues.client().send_message().queue_url(&dead).message_body(body).send().await.unwrap();
                let receipt = message.receipt_handle().unwrap();
                queues
                    .client()
                    .delete_message()
                    .queue_url(alive)
                    .receipt_handle(receipt)
                    .send()
                    .await
                    .unwrap();
                moved += 1;
            }
        }
        world.stack.start().await.unwrap();
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        check(&world, run, Expected::SUCCEEDED).await;
        assert_eq!(world.stored_run(run).await.benchmarks[0].state.report().unwrap().graded, 8);
        assert_eq!(world.model.total(), 8);
    });
}

/// The whole dataset is gone: every sample ends, and the run's error says what is missing.
#[test]
fn a_run_whose_dataset_is_gone_fails_with_its_coverage() {
    log::capture();
    runtime().block_on(async {
        let mut world =
            World::open(Settings::default(), |request| Reply::Text(data::right_answer(&request.item))).await;
        let run = Order::mmlu_pro(12).place(&world).await;
        let driver = crate::support::ManualDriver::new(&world, 0);
        assert!(driver.handle(&bench_queue::Message::Plan { run, generation: 1 }).await);
        let plan = world.stored_run(run).await.benchmarks[0].plan.clone().unwrap();
        world.stack.blobs.delete_prefix(&plan.dataset.data_key).await.unwrap();
        world.stack.start().await.unwrap();
        assert_eq!(world.wait_for_end(run).await, RunStatus::Failed);
        check(&world, run, Expected::FAILED).await;
        let found = world.stored_run(run).await;
        let report = found.benchmarks[0].state.report().unwrap();
        assert_eq!((report.coverage, report.score), (0.0, None));
        assert!(found.run.state.error().unwrap().contains("12 infrastructure-error"));
        assert_eq!(world.model.total(), 0);
    });
}

#[test]
fn messages_that_cannot_be_read_are_dropped_visibly() {
    log::capture();
    runtime().block_on(async {
        let world =
            World::start(Settings::default(), |request| Reply::Text(data::right_answer(&request.item))).await;
        let mut ids = Vec::new();
        for name in QueueName::ALL {
            for body in ["", "{", "[]", r#"{"v":1,"kind":"dream"}"#, "\u{1F980}"] {
                // SQS doesn't accept empty bodies.
                let body = if body.is_empty() { " " } else { body };
                let queues = &world.stack.queues;
                let send =
                    queues.client().send_message().queue_url(queues.url(name).unwrap()).message_body(body);
                ids.push(send.message_group_id("stray").send().await.unwrap().message_id.unwrap());
            }
        }
        let run = Order::mmlu_pro(20).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        // Also waits until the dead-letter queues are empty.
        check(&world, run, Expected::SUCCEEDED).await;
        for id in ids {
            let errors = log::errors_with(&id);
            assert!(errors > 1, "message {id} was dropped without a word");
        }
    });
}

#[test]
fn a_message_of_a_newer_version_is_put_back() {
    runtime().block_on(async {
        let world =
            World::start(Settings::default(), |request| Reply::Text(data::right_answer(&request.item))).await;
        let body = format!(r#"{{"v":{},"kind":"dream","run":"?"}}"#, MESSAGE_VERSION + 1);
        let queues = &world.stack.queues;
        for name in QueueName::ALL {
            let send =
                queues.client().send_message().queue_url(queues.url(name).unwrap()).message_body(&body);
            send.send().await.unwrap();
        }
        let put_back = Depth { visible: 0, in_flight: 0, delayed: 1 };
        world
            .wait_until("messages put back", || async {
                world
                    .depths()
                    .await
                    .iter()
                    .all(|(_, live, dead)| *live == put_back && *dead == Depth::default())
            })
            .await;
        let run = Order::mmlu_pro(20).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        check(&world, run, Expected::SUCCEEDED.among_others()).await;
        assert!(
            world.depths().await.iter().all(|(_, live, dead)| live.delayed == 1 && *dead == Depth::default())
        );
    });
}

/// The dead letter of a sample that another attempt finished, holds or put off changes nothing.
#[test]
fn a_dead_letter_does_not_overwrite_what_was_finished() {
    runtime().block_on(async {
        let world =
            World::start(Settings::default(), |request| Reply::Text(data::right_answer(&request.item))).await;
        let run = Order::mmlu_pro(5).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        let before = check(&world, run, Expected::SUCCEEDED).await;
        let found = world.stored_run(run).await;
        let driver = crate::support::ManualDriver::new(&world, 0);
        for sample in &before["mmlu_pro"] {
            let sample = World::sample_ref(&found, "mmlu_pro", sample.position);
            assert!(driver.handle_dead_letter(&bench_queue::Message::Sample { sample, generation: 1 }).await);
        }
        assert!(driver.handle_dead_letter(&bench_queue::Message::Finish { run, generation: 1 }).await);
        assert!(driver.handle_dead_letter(&bench_queue::Message::Plan { run, generation: 1 }).await);
        assert_eq!(check(&world, run, Expected::SUCCEEDED).await, before);
        assert_eq!(world.stored_run(run).await, found);
    });
}

/// A run that can't be planned fails with its dead letter.
#[test]
fn a_run_that_cannot_be_planned_fails() {
    runtime().block_on(async {
        let world =
            World::open(Settings::default(), |request| Reply::Text(data::right_answer(&request.item))).await;
        let run = Order::mmlu_pro(5).place(&world).await;
        let driver = crate::support::ManualDriver::new(&world, 0);
        assert!(driver.handle_dead_letter(&bench_queue::Message::Plan { run, generation: 1 }).await);
        driver.drain().await;
        check(&world, run, Expected::FAILED).await;
        let error = world.stored_run(run).await.run.state.error().unwrap().to_owned();
        assert!(error.contains("could not be planned in 5 tries"), "{error}");
    });
}
