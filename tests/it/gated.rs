//! A gated dataset from the first question to the last verdict: each sample has its own order of options, and text
//! that a provider quotes from an item is neither logged nor shown.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use bench_domain::{Outcome, RunId, RunStatus};
use bench_tests::model_server::{ModelRequest, Reply};

use crate::support::{Expected, Order, Settings, World, check, log, runtime};

/// Words that appear only in questions and options.
const SECRETS: [&str; 2] = ["xylograph", "marmoset"];

fn prompt(request: &ModelRequest) -> String {
    let messages = request.body["messages"].as_array().unwrap();
    messages.last().unwrap()["content"].as_str().unwrap().to_owned()
}

/// Answers with the option whose text says that it is right.
fn reply_with_right_option(prompt: &str) -> Reply {
    let line = prompt.lines().find(|line| line.contains(") right: ")).unwrap();
    Reply::Text(format!("It is shown here.\nAnswer: {}", line.chars().next().unwrap()))
}

/// Replies as a provider that repeats the rejected request in its error.
fn error_that_quotes(status: u16, request: &ModelRequest) -> Reply {
    let body = format!("{{\"error\":{{\"message\":\"cannot be answered\",\"input\":{}}}}}", request.body);
    Reply::Status(status, body, vec![])
}

#[test]
fn every_sample_is_asked_and_graded_in_its_own_order() {
    runtime().block_on(async {
        let prompts = Arc::new(Mutex::new(BTreeSet::new()));
        let seen = Arc::clone(&prompts);
        let world = World::start(Settings::default(), move |request| {
            let prompt = prompt(request);
            seen.lock().unwrap().insert(prompt.clone());
            reply_with_right_option(&prompt)
        })
        .await;
        let run = Order::gpqa_diamond(6).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Succeeded);
        let samples = check(&world, run, Expected::SUCCEEDED).await;
        let samples = &samples["gpqa_diamond"];
        assert_eq!(samples.len(), 6 * 4);
        let mut hashes = BTreeSet::new();
        for sample in samples {
            let finished = sample.finished.as_ref().unwrap();
            assert_eq!(finished.verdict.outcome, Outcome::Correct, "{:?}", finished.verdict);
            hashes.insert(finished.item_hash.clone());
        }
        assert_eq!(hashes.len(), 6, "an item is the same in all of its samples");
        assert!(prompts.lock().unwrap().len() > 2 * 6, "samples differ in the order of their options");
    });
}

/// Returns all texts about a run that others can read, other than its items: its error, its events, and the log.
async fn public_texts(world: &World, run: RunId) -> String {
    let found = world.stored_run(run).await;
    let events = world.stack.state.events(run, 0, 1_000).await.unwrap();
    let error = found.run.state.error().unwrap_or_default();
    let of_benchmarks = found.benchmarks.iter().filter_map(|benchmark| benchmark.state.error());
    format!("{error}\n{}\n{events:?}", of_benchmarks.collect::<Vec<_>>().join("\n"))
}

#[test]
fn item_text_quoted_by_a_provider_is_neither_logged_nor_shown() {
    runtime().block_on(async {
        log::capture();
        let world = World::start(Settings::default(), |request| match request.item.as_str() {
            "g1" => error_that_quotes(400, request),
            "g2" if request.before == 0 => error_that_quotes(500, request),
            _ => reply_with_right_option(&prompt(request)),
        })
        .await;
        let run = Order::gpqa_diamond(3).place(&world).await;
        assert_eq!(world.wait_for_end(run).await, RunStatus::Failed);
        let samples = check(&world, run, Expected::FAILED).await;
        for sample in &samples["gpqa_diamond"] {
            let verdict = &sample.finished.as_ref().unwrap().verdict;
            if sample.item_id == "1" {
                assert_eq!(verdict.outcome, Outcome::InfrastructureError);
                assert!(verdict.reason.starts_with("HTTP 400: "), "{}", verdict.reason);
                assert!(verdict.reason.contains("quotes the item"), "{}", verdict.reason);
            } else {
                assert_eq!(verdict.outcome, Outcome::Correct);
            }
        }
        let fatal = World::start(Settings::default(), |request| error_that_quotes(401, request)).await;
        let failed = Order::gpqa_diamond(1).place(&fatal).await;
        assert_eq!(fatal.wait_for_end(failed).await, RunStatus::Failed);
        let texts = [public_texts(&world, run).await, public_texts(&fatal, failed).await].concat();
        assert!(texts.contains("HTTP 401: "), "{texts}");
        assert!(!log::lines_with(&failed.to_string()).is_empty(), "something is logged of a run that fails");
        for secret in SECRETS {
            assert!(!texts.contains(secret), "{texts}");
            assert_eq!(log::lines_with(secret), [""; 0]);
        }
    });
}
