//! Wiring that differs in deployed functions: KMS, and one function for all dead-letter queues.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bench_domain::{ModelRole, RunId, RunStatus};
use bench_embedded::{KMS_KEY_ID, Recorder, Service};
use bench_queue::{Depth, MESSAGE_VERSION, Message, QueueName};
use bench_state::UNREADABLE_TEXT_BYTES_MAX;
use bench_tests::model_server::Reply;

use crate::support::{Expected, Order, Settings, World, check, data, runtime};

const KEY: &str = "sk-caller-77aa10c2be5d4f39";

#[test]
fn a_callers_key_is_protected_by_kms() {
    runtime().block_on(async {
        let calls = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&calls);
        let recorder = Recorder::new(move |call| {
            if call.service == Service::Kms {
                log.lock().unwrap().push((call.action.to_owned(), call.resource.map(str::to_owned)));
            }
        });
        let settings = Settings { kms: true, recorder: Some(recorder), ..Settings::default() };
        let world = World::start(settings, |request| Reply::Text(data::right_answer(&request.item))).await;
        let run = Order::mmlu_pro(20).with_key(KEY).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        check(&world, run, Expected::SUCCEEDED).await;
        assert!(world.model.log().iter().all(|request| request.key.as_deref() == Some(KEY)));
        assert!(
            world.stack.credentials.get(run, ModelRole::Model).await.unwrap().is_none(),
            "gone with its run"
        );
        let of = |action: &str| (action.to_owned(), Some(KMS_KEY_ID.to_owned()));
        // Encrypted once with the order, decrypted once for all samples.
        assert_eq!(*calls.lock().unwrap(), [of("Encrypt"), of("Decrypt")]);
    });
}

/// Unreadable messages leave the queue and are stored for operators: whole or cut, with the run that they seem to
/// name.
#[test]
fn messages_that_cannot_be_read_are_kept_for_people() {
    runtime().block_on(async {
        let world =
            World::start(Settings::default(), |request| Reply::Text(data::right_answer(&request.item))).await;
        let run = RunId::random();
        let damaged = Message::Plan { run, generation: 1 }.to_body().replace('}', "");
        let long = "ä".repeat(UNREADABLE_TEXT_BYTES_MAX);
        let queues = &world.stack.queues;
        let mut sent = BTreeSet::new();
        for name in QueueName::ALL {
            for body in [&damaged, &long] {
                let send =
                    queues.client().send_message().queue_url(queues.url(name).unwrap()).message_body(body);
                let id = send.message_group_id("stray").send().await.unwrap().message_id.unwrap();
                sent.insert((id, name.as_str().to_owned()));
            }
        }
        let kept = || async { world.stack.state.unreadable(100).await.unwrap() };
        world.wait_until("messages kept", || async { kept().await.len() == sent.len() }).await;
        let empty = || async {
            world.depths().await.iter().all(|(_, live, dead)| [*live, *dead] == [Depth::default(); 2])
        };
        world.wait_until("empty queues", empty).await;
        let kept = kept().await;
        let reported: BTreeSet<_> =
            kept.iter().map(|message| (message.message_id.clone(), message.queue.clone())).collect();
        assert_eq!(reported, sent, "each once");
        assert!(kept.windows(2).all(|pair| pair[0].sent_at >= pair[1].sent_at), "newest first");
        for message in &kept {
            assert!(message.text.len() <= UNREADABLE_TEXT_BYTES_MAX && !message.problem.is_empty());
            let is_damaged = message.text == damaged;
            assert!(is_damaged || long.starts_with(&message.text) && message.text.len() > 2_000);
            assert_eq!(message.run, is_damaged.then_some(run));
        }
        // A second delivery, as after a crash between writing and deleting, must not write it again.
        let state = &world.stack.state;
        assert!(!state.note_unreadable(&kept[0], bench_clock::now()).await.unwrap());
    });
}

/// Only programs that know its version may handle it.
#[test]
fn a_newer_message_stays_in_its_dead_letter_queue() {
    runtime().block_on(async {
        let world =
            World::start(Settings::default(), |request| Reply::Text(data::right_answer(&request.item))).await;
        let body = format!(r#"{{"v":{},"kind":"dream"}}"#, MESSAGE_VERSION + 1);
        let queues = &world.stack.queues;
        for name in QueueName::ALL {
            let url = queues.dead_letter_url(name).unwrap();
            queues.client().send_message().queue_url(url).message_body(&body).send().await.unwrap();
        }
        let put_back = Depth { visible: 0, in_flight: 1, delayed: 0 };
        let is_put_back = || async {
            let depths = world.depths().await;
            depths.iter().all(|(_, live, dead)| *live == Depth::default() && *dead == put_back)
        };
        world.wait_until("messages looked at", is_put_back).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(is_put_back().await, "{:?}", world.depths().await);
        assert!(world.stack.state.unreadable(10).await.unwrap().is_empty());
    });
}
