//! Messages that can't be handled end as errors that users see.

use bench_datasets::{Library, LibraryConfig, NoProgress};
use bench_domain::run::DatasetChoice;
use bench_queue::{Message, QueueName};
use bytes::Bytes;
use serde_json::json;

use crate::call::{Caller, demo_order, list};
use crate::log;
use crate::target::{HANGS, RawStorage, Target};

/// Waits until the dead-letter queues are empty.
async fn no_dead_letters(target: &Target) {
    for queue in QueueName::ALL {
        let empty = || async {
            let depth = target.aws.queues.dead_depth(queue).await.unwrap();
            (depth.visible + depth.in_flight + depth.delayed == 0).then_some(())
        };
        target.wait_until(&format!("no dead letters of {}", queue.as_str()), empty).await;
    }
}

pub(super) async fn unreadable_messages_become_errors(target: &Target) {
    let queues = &target.aws.queues;
    let mut ids = Vec::new();
    for queue in QueueName::ALL {
        for body in ["{", r#"{"v":1,"kind":"dream"}"#] {
            let send =
                queues.client().send_message().queue_url(queues.url(queue).unwrap()).message_body(body);
            ids.push(send.message_group_id("stray").send().await.unwrap().message_id.unwrap());
        }
    }
    target.note(&json!({ "errors": ids }));
    if matches!(target.aws.stored, RawStorage::Files(_)) {
        // One error when it could not be parsed, and one when it was given up.
        let all_logged = || async { ids.iter().all(|id| log::errors_with(id) > 1).then_some(()) };
        target.wait_until("an error for each message", all_logged).await;
    } else {
        // Deliveries of one message are minutes apart, so the script that reads the logs looks for the errors.
        let moved = || async {
            let mut left = 0;
            for queue in QueueName::ALL {
                let depth = queues.depth(queue).await.unwrap();
                left += depth.visible + depth.in_flight;
            }
            (left == 0).then_some(())
        };
        target.wait_until("the unreadable messages to be given up", moved).await;
    }
    no_dead_letters(target).await;
}

/// One item's data is damaged: its sample is delivered until it is a dead letter, and ends as an error with the
/// cause.
pub(super) async fn sample_that_no_worker_can_handle_becomes_an_error(target: &Target) {
    let benchmark = bench_benchmarks::find("aime_2022_2024").unwrap();
    let (blobs, downloads) = (&target.aws.blobs, tempfile::tempdir().unwrap());
    let library = Library::new(blobs.clone(), LibraryConfig::new(downloads.path()));
    let index = library.prepare(benchmark, &DatasetChoice::Demo, &NoProgress).await.unwrap().index;
    let items: Vec<&str> = index.items.iter().take(12).map(|item| item.id.as_str()).collect();
    let entry = &index.items[7];
    let whole = blobs.get(&index.data_key).await.unwrap().unwrap();
    let mut damaged = whole.to_vec();
    let from = usize::try_from(entry.offset).unwrap();
    damaged[from..from + usize::try_from(entry.length).unwrap()].fill(0xee);
    blobs.put(&index.data_key, Bytes::from(damaged), "application/zstd").await.unwrap();

    let mut body = demo_order("oracle", "aime_2022_2024");
    body["items"] = json!(items);
    let run = target.order(Caller::Admin, body).await;
    let found = target.wait_for_end(&run, "succeeded").await;
    blobs.put(&index.data_key, whole, "application/zstd").await.unwrap();
    assert_eq!(found["benchmarks"][0]["coverage"], json!(11.0 / 12.0), "{found:#}");
    let details = target.get(&format!("{run}/benchmarks/aime_2022_2024")).await.expect(200);
    for item in list(&details["items"], "items") {
        if item["item_id"] == json!(entry.id) {
            assert_eq!(item["outcome"], "infrastructure-error");
            assert!(item["reason"].as_str().unwrap().contains("delivered 5 times"), "{item:#}");
        } else {
            assert_eq!(item["outcome"], "correct", "{item:#}");
        }
    }
    no_dead_letters(target).await;
}

/// The dead letter of a run's plan fails the run with an error that says so.
pub(super) async fn run_that_no_planner_can_plan_fails(target: &Target) {
    let mut body = demo_order(HANGS, "mmlu_pro");
    body["subset_count"] = json!(1);
    let run = target.order(Caller::Key("sk-e2e-dead-71"), body).await;
    let id = run.rsplit('/').next().unwrap().parse().unwrap();
    let message = Message::Plan { run: id, generation: 1 }.to_body();
    let queues = &target.aws.queues;
    let dead = queues.dead_letter_url(QueueName::Plans).unwrap();
    queues.client().send_message().queue_url(dead).message_body(message).send().await.unwrap();
    let found = target.wait_for_end(&run, "failed").await;
    let error = found["error_message"].as_str().unwrap();
    assert!(error.contains("could not be planned in 5 tries"), "{error}");
    let events = target.get(&format!("{run}/events?cursor=&limit=1000")).await.expect(200);
    assert!(list(&events, "events").iter().any(|event| event["event_type"] == "run_failed"));
}
