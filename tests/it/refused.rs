//! Requests that a provider refuses for a reason they all share: each is sent once, and the run stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use bench_domain::{BenchmarkStatus, FailureReason, Outcome, RunStatus};
use bench_queue::Message;
use bench_state::SampleRecord;
use bench_tests::model_server::{ModelRequest, Reply};

use crate::support::{Expected, ManualDriver, Order, Settings, World, check, data, runtime};

const CONCURRENCY: usize = 8;
/// Number of samples that must be refused alike.
const REFUSED: u64 = bench_pipeline::REFUSED_SAMPLES;

fn refusal_reply(sentence: &str) -> Reply {
    let body = serde_json::json!({ "error": { "message": sentence, "type": "invalid_request_error" } });
    Reply::Status(400, body.to_string(), vec![])
}

fn right_reply(request: &ModelRequest) -> Reply {
    Reply::Text(data::right_answer(&request.item))
}

fn refused_settings() -> Settings {
    Settings { concurrency: CONCURRENCY, latency: Duration::from_millis(5), ..Settings::default() }
}

fn outcome_and_reason(sample: &SampleRecord) -> Option<(Outcome, &str)> {
    let finished = sample.finished.as_ref()?;
    Some((finished.verdict.outcome, finished.verdict.reason.as_str()))
}

/// Regression test: a thousand items were asked five times each before this check existed.
#[test]
fn a_setting_that_the_model_does_not_take_stops_the_run_at_once() {
    const SENTENCE: &str = "temperature is not supported with this model";
    runtime().block_on(async {
        let well = Arc::new(AtomicBool::new(false));
        let is_well = Arc::clone(&well);
        let world = World::start(refused_settings(), move |request| match is_well.load(Ordering::SeqCst) {
            true => right_reply(request),
            // Ids and numbers differ between the errors.
            false => refusal_reply(&format!(
                "{SENTENCE} (id 8f{}, {} tokens)",
                request.total_before, request.total_before
            )),
        })
        .await;
        let run = Order::mmlu_pro(200).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Failed);
        let samples = check(&world, run, Expected::FAILED).await;
        let asked = world.model.total();
        assert!((REFUSED..=CONCURRENCY as u64 + REFUSED).contains(&asked), "{asked} requests");
        assert!(
            world.model.question_counts().values().all(|times| *times == 1),
            "a refused request is not repeated"
        );

        let found = world.stored_run(run).await;
        let state = &found.run.state;
        assert_eq!(state.failure_reason(), Some(FailureReason::Refused));
        let error = state.error().unwrap();
        for part in ["HTTP 400", SENTENCE, "refused the first", "`--omit temperature`", "`--temperature 1`"] {
            assert!(error.contains(part), "{error}");
        }
        // Refused samples give the reason, and don't count as incorrect.
        let ends: Vec<_> = samples["mmlu_pro"].iter().filter_map(outcome_and_reason).collect();
        assert_eq!(ends.len() as u64, asked);
        assert!(
            ends.iter()
                .all(|(outcome, why)| *outcome == Outcome::InfrastructureError && why.contains(SENTENCE))
        );
        let benchmark = &found.benchmarks[0].state;
        assert_eq!((benchmark.status(), benchmark.report().unwrap().graded), (BenchmarkStatus::Failed, 0));

        // The provider accepts the setting now, and the run continues.
        well.store(true, Ordering::SeqCst);
        world.requeue(run, None).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        check(&world, run, Expected::SUCCEEDED.generation(2)).await;
        assert_eq!(world.model.total(), 200 + asked);
    });
}

/// Answers before a run is requeued say nothing about what the provider accepts now.
#[test]
fn a_requeued_run_stops_when_its_first_samples_are_refused() {
    const ITEMS: usize = 60;
    runtime().block_on(async {
        let mood = Arc::new(AtomicU8::new(0));
        let now = Arc::clone(&mood);
        let world = World::start(refused_settings(), move |request| {
            let number = data::number(&request.item);
            match now.load(Ordering::SeqCst) {
                0 if number >= ITEMS / 3 => refusal_reply(&format!("cannot read {}", letters_for(number))),
                1 => refusal_reply("temperature is not supported with this model"),
                _ => right_reply(request),
            }
        })
        .await;
        let run = Order::mmlu_pro(ITEMS).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Failed);
        let state = world.stored_run(run).await.run.state;
        assert_eq!(state.failure_reason(), None, "the items were refused for different reasons: {state:?}");
        assert_eq!(world.model.total(), ITEMS as u64);

        mood.store(1, Ordering::SeqCst);
        world.requeue(run, None).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Failed);
        let again = world.model.total() - ITEMS as u64;
        assert!((REFUSED..=CONCURRENCY as u64 + REFUSED).contains(&again), "{again} requests");
        let state = world.stored_run(run).await.run.state;
        assert_eq!(state.failure_reason(), Some(FailureReason::Refused), "{state:?}");
        assert!(state.error().unwrap().contains("`--temperature 1`"), "{state:?}");

        mood.store(2, Ordering::SeqCst);
        world.requeue(run, None).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        check(&world, run, Expected::SUCCEEDED.generation(3)).await;
        assert_eq!(
            world.model.total(),
            (ITEMS + ITEMS / 3 * 2) as u64 + again,
            "no answer is asked for twice"
        );
    });
}

/// A process caches its view of a run for a second; a run requeued sooner must be reloaded.
#[test]
fn a_requeued_run_is_reloaded_by_every_process() {
    const ITEMS: usize = 16;
    runtime().block_on(async {
        let mood = Arc::new(AtomicU8::new(0));
        let now = Arc::clone(&mood);
        let world = World::open(refused_settings(), move |request| {
            let number = data::number(&request.item);
            match now.load(Ordering::SeqCst) {
                0 if number >= 2 => refusal_reply(&format!("cannot read {}", letters_for(number))),
                1 => refusal_reply("temperature is not supported with this model"),
                _ => right_reply(request),
            }
        })
        .await;
        let driver = ManualDriver::new(&world, 0);
        let run = Order::mmlu_pro(ITEMS).place(&world).await;
        driver.drain().await;
        assert_eq!(world.stored_run(run).await.run.state.status(), RunStatus::Failed);

        mood.store(1, Ordering::SeqCst);
        world.requeue(run, None).await;
        driver.drain().await;
        assert_eq!(world.stored_run(run).await.run.state.failure_reason(), Some(FailureReason::Refused));
        assert_eq!(world.model.total(), ITEMS as u64 + REFUSED, "samples are handled one by one");
    });
}

/// Returns a word of letters only for each number.
fn letters_for(number: usize) -> String {
    number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect()
}

/// Refusals arrive immediately and answers later: the requests in flight decide.
#[test]
fn refusals_of_some_items_among_answers_stop_nothing() {
    runtime().block_on(async {
        let settings = Settings { concurrency: 48, ..Settings::default() };
        let world = World::start(settings, |request| match data::number(&request.item) % 10 {
            0 => refusal_reply("the prompt cannot be rendered by the template of this model"),
            _ => Reply::Later(Duration::from_millis(700), data::right_answer(&request.item)),
        })
        .await;
        let run = Order::mmlu_pro(80).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        let samples = check(&world, run, Expected::SUCCEEDED).await;
        assert!(
            world.model.question_counts().values().all(|times| *times == 1),
            "{:?}",
            world.model.question_counts()
        );
        for sample in &samples["mmlu_pro"] {
            let (outcome, why) = outcome_and_reason(sample).unwrap();
            match data::number(&sample.item_id) % 10 {
                0 => assert!(
                    outcome == Outcome::InfrastructureError && why.contains("cannot be rendered"),
                    "{why}"
                ),
                _ => assert_eq!(outcome, Outcome::Correct),
            }
        }
    });
}

#[test]
fn refusals_of_a_small_run_are_reported_unless_messages_differ() {
    runtime().block_on(async {
        let world = World::start(refused_settings(), |_| refusal_reply("no such feature")).await;
        let run = Order::mmlu_pro(2).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Failed);
        check(&world, run, Expected::FAILED).await;
        let state = world.stored_run(run).await.run.state;
        assert_eq!(state.failure_reason(), Some(FailureReason::Refused));
        assert!(state.error().unwrap().contains("no such feature"), "{state:?}");
        assert_eq!(world.model.total(), 2);

        const WORDS: [&str; 4] = ["apple", "pear", "plum", "cherry"];
        let world = World::start(refused_settings(), |request| {
            let number = data::number(&request.item);
            refusal_reply(&format!("cannot read {} {}", WORDS[number % 4], WORDS[number / 4 % 4]))
        })
        .await;
        let run = Order::mmlu_pro(16).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Failed);
        check(&world, run, Expected::FAILED).await;
        let state = world.stored_run(run).await.run.state;
        assert_eq!(state.failure_reason(), None, "{state:?}");
        assert_eq!(world.model.total(), 16, "each once");
    });
}

#[test]
fn a_judge_that_refuses_everything_is_not_asked_about_every_answer() {
    const ITEMS: usize = 60;
    runtime().block_on(async {
        let well = Arc::new(AtomicBool::new(false));
        let is_well = Arc::clone(&well);
        let world = World::start(refused_settings(), move |request| {
            match (request.is_judge, is_well.load(Ordering::SeqCst)) {
                (false, _) => right_reply(request),
                (true, true) => Reply::Text("A".into()),
                (true, false) => refusal_reply("seed is not supported by this deployment"),
            }
        })
        .await;
        let run = Order::aa_omniscience(ITEMS, &world).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Failed);
        let samples = check(&world, run, Expected::FAILED).await;
        let judged = |world: &World| world.model.log().iter().filter(|request| request.is_judge).count();
        let first = judged(&world);
        assert!(first <= CONCURRENCY + 5, "{first} questions to the judge");
        let state = world.stored_run(run).await.run.state;
        assert_eq!(state.failure_reason(), Some(FailureReason::Refused));
        let error = state.error().unwrap();
        assert!(error.contains("judge") && error.contains("seed is not supported"), "{error}");
        assert!(error.contains("`--judge-seed`"), "{error}");
        // Every answer received is kept.
        let answered = world.model.log().len() - first;
        let kept = samples["aa_omniscience"].iter().filter(|sample| sample.stored_body().is_some()).count();
        assert_eq!(kept, answered);

        well.store(true, Ordering::SeqCst);
        world.requeue(run, None).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        check(&world, run, Expected::SUCCEEDED.generation(2)).await;
        assert_eq!(judged(&world), first + ITEMS);
        assert_eq!(world.model.log().len(), ITEMS + first + ITEMS, "no answer was asked for twice");
    });
}

/// Refusals add up over two processes, which stand for two functions in the cloud.
#[test]
fn refusals_of_several_processes_add_up() {
    runtime().block_on(async {
        let world = World::open(Settings::default(), |_| refusal_reply("top_k is unknown here")).await;
        let run = Order::mmlu_pro(40).place(&world).await;
        let (one, two) = (ManualDriver::new(&world, 0), ManualDriver::new(&world, 0));
        assert!(one.handle(&Message::Plan { run, generation: 1 }).await);
        let found = world.stored_run(run).await;
        let samples = world.samples(&found, "mmlu_pro").await;
        let refs = samples.iter().map(|sample| World::sample_ref(&found, "mmlu_pro", sample.position));
        let refs: Vec<_> = refs.collect();
        let (last, first) = refs.split_last().unwrap();
        let (mine, others) = first.split_at(4);
        for sample in mine {
            assert!(one.handle(&Message::Sample { sample: sample.clone(), generation: 1 }).await);
        }
        assert!(two.handle(&Message::Sample { sample: others[0].clone(), generation: 1 }).await);
        assert_eq!(world.model.total(), REFUSED);
        // The other process knows that there are five refusals now. Requests of the first one may be in flight, so
        // the run stays open, but this process asks nothing more.
        assert!(two.handle(&Message::Sample { sample: others[1].clone(), generation: 1 }).await);
        assert_eq!(world.model.total(), REFUSED, "nothing is asked meanwhile");
        assert!(world.stored_run(run).await.run.state.status().is_open());
        assert!(one.handle(&Message::Sample { sample: last.clone(), generation: 1 }).await);
        let state = world.stored_run(run).await.run.state;
        assert_eq!(state.failure_reason(), Some(FailureReason::Refused), "{state:?}");
        assert!(state.error().unwrap().contains("refused the first 6 samples"), "{state:?}");
        assert_eq!(world.model.total(), REFUSED + 1);
    });
}

#[test]
fn an_answer_that_is_too_large_is_asked_for_once() {
    runtime().block_on(async {
        let world = World::start(refused_settings(), |request| match data::number(&request.item) {
            3 => {
                let mebibyte = "x".repeat(1024 * 1024);
                Reply::deltas(&[mebibyte.as_bytes(); 17], r#"{"prompt_tokens":1,"completion_tokens":2}"#)
            }
            _ => right_reply(request),
        })
        .await;
        let run = Order::mmlu_pro(20).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        let samples = check(&world, run, Expected::SUCCEEDED).await;
        let large = samples["mmlu_pro"].iter().find(|sample| sample.item_id == "3").unwrap();
        let (outcome, why) = outcome_and_reason(large).unwrap();
        assert_eq!(outcome, Outcome::InfrastructureError);
        assert!(why.starts_with("answer-too-large: the answer is larger than 16 MiB"), "{why}");
        assert!(
            world.model.question_counts().values().all(|times| *times == 1),
            "{:?}",
            world.model.question_counts()
        );
    });
}
