//! Messages that arrive in a queue of samples but belong in another one.

use bench_lambda::Deadline;
use bench_queue::{Message, QueueName};
use serde_json::json;

use crate::log;
use crate::provider::Reply;
use crate::run::{Run, model};
use crate::world::{INVOCATION, World, handle_from};

async fn world() -> World {
    log::watch();
    World::new(&[Reply::Text("")]).await
}

#[tokio::test]
async fn they_are_forwarded_to_the_queue_of_their_kind() {
    let world = world().await;
    let pipeline = world.pipeline();
    let (run, generation) = (bench_domain::RunId::random(), 1);
    for (from, message, to) in [
        (QueueName::Items, Message::Plan { run, generation }, QueueName::Plans),
        (QueueName::Turns, Message::Finish { run, generation }, QueueName::Finishes),
    ] {
        assert!(handle_from(&pipeline, from, &message, Deadline::after(INVOCATION)).await, "{message:?}");
        assert_eq!(
            (world.queue_depth(to).await, world.queue_depth(from).await),
            ((1, 0), (0, 0)),
            "{message:?}"
        );
    }
    assert_eq!(log::lines_with(&run.to_string(), "is forwarded").len(), 2);
}

#[tokio::test]
async fn they_are_put_back_by_a_function_that_may_not_send_there() {
    let world = world().await;
    let pipeline = world.pipeline_with_queues(&[QueueName::Items, QueueName::Turns, QueueName::Finishes]);
    let run = bench_domain::RunId::random();
    let message = Message::Plan { run, generation: 1 };
    assert!(handle_from(&pipeline, QueueName::Items, &message, Deadline::after(INVOCATION)).await);
    assert_eq!(
        (world.queue_depth(QueueName::Plans).await, world.queue_depth(QueueName::Items).await),
        ((0, 0), (0, 1))
    );
    assert_eq!(log::lines_with(&run.to_string(), "is put back into queue items").len(), 1);

    // A message that can't be sent to its queue is delivered again.
    let pipeline = world.pipeline_with_queues(&[]);
    assert!(!handle_from(&pipeline, QueueName::Items, &message, Deadline::after(INVOCATION)).await);
}

#[tokio::test]
async fn samples_are_forwarded_to_the_queue_of_their_stage() {
    let world = world().await;
    let run = Run::judged(&world, model(&world), json!({})).await;
    let pipeline = world.pipeline();
    for (from, message) in
        [(QueueName::Turns, run.answer_message(0)), (QueueName::Items, run.turn_message(0))]
    {
        assert!(handle_from(&pipeline, from, &message, Deadline::after(INVOCATION)).await, "{message:?}");
        assert_eq!(world.queue_depth(message.queue()).await, (1, 0), "{message:?}");
    }
    assert!(run.is_open(&world, 0).await);
    assert_eq!(world.provider.request_count(), 0);
}
