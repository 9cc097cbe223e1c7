//! Conversations of an agent with a simulated user, in the small domain of ours: the same steps in a sandbox, no official reward.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bench_domain::{Code, ModelRole, Outcome, RunId, SampleBody, Verdict};
use bench_embedded::Recorder;
use bench_sandy::testing::{Call, Endpoint, Fault, Options};
use bench_state::{EventKind, SampleRecord};
use bench_tests::conversation::{AGENT_CALLS, TASK, USER_CALLS, calls, own_messages, right_reply};
use bench_tests::files::files_with;
use bench_tests::model_server::{ModelRequest, Reply};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::kill_everywhere::Tripwire;
use crate::labels::send;
use crate::support::{Expected, ManualDriver, Order, Settings, USER, World, check, runtime};

const NAME: &str = "tau_bench_telecom";

/// Writes a data set of one task of our own domain.
fn rows() -> PathBuf {
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("conversations-{number}.jsonl"));
    fs::write(&path, json!({ "id": TASK, "domain": "demo" }).to_string() + "\n").unwrap();
    path
}

fn order() -> Order {
    Order::conversations(rows())
}

fn settings_with(rule: impl Fn(&Call) -> Fault + Send + Sync + 'static) -> Settings {
    Settings {
        sandboxes: Some(Options { rule: Some(Arc::new(rule)), ..Options::default() }),
        ..Settings::default()
    }
}

fn settings() -> Settings {
    settings_with(|_| Fault::None)
}

fn is_user(request: &ModelRequest) -> bool {
    request.body["model"] == USER
}

fn text(text: &str) -> Reply {
    Reply::Text(text.to_owned())
}

fn solves(request: &ModelRequest) -> Reply {
    right_reply(request, is_user(request))
}
/// Model calls of [`solves`].
const CALLS: u64 = USER_CALLS + AGENT_CALLS;

async fn sample(world: &World, run: RunId) -> (SampleRecord, SampleBody) {
    world.first_sample(run, NAME).await
}

/// Plays a conversation to its end. Returns the verdict and the stored body.
async fn verdict_of(
    settings: Settings,
    rule: impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static,
) -> (Verdict, SampleBody, u64) {
    let world = World::open(settings, rule).await;
    let run = order().place(&world).await;
    ManualDriver::new(&world, 0).drain().await;
    assert_eq!(world.sandbox_host().open(), Vec::<String>::new());
    let (sample, body) = sample(&world, run).await;
    (sample.finished.unwrap().verdict, body, world.model.total())
}

#[test]
fn a_right_conversation_earns_the_reward() {
    runtime().block_on(async {
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        let world = World::open(settings(), move |request: &ModelRequest| {
            noted.lock().unwrap().push(request.body.clone());
            solves(request)
        })
        .await;
        let run = order().place(&world).await;
        ManualDriver::new(&world, 0).drain().await;
        check(&world, run, Expected::SUCCEEDED).await;
        let (sample, body) = sample(&world, run).await;
        let finished = sample.finished.unwrap();
        assert_eq!(finished.verdict.outcome, Outcome::Correct, "{:?}", finished.verdict);
        assert_eq!(finished.verdict.detail["termination"], "user_stop");
        assert_eq!((world.model.total(), world.sandbox_host().created_count()), (CALLS, 1));
        // The measured model's tokens alone; the user simulator's are beside them.
        assert_eq!(finished.usage.unwrap().input_tokens, 300);
        let report = body.episode.unwrap();
        let dialogue = report.dialogue.clone().unwrap();
        assert_eq!((dialogue.agent.calls, dialogue.user.calls, dialogue.seed), (3, 5, 626_729));
        assert_eq!((dialogue.user.input_tokens, dialogue.user.output_tokens), (500, 100));
        assert!((dialogue.user.cost_usd - 0.0006).abs() < 1e-9, "{}", dialogue.user.cost_usd);
        assert!(dialogue.user_model.ends_with(USER), "{}", dialogue.user_model);
        assert_eq!((dialogue.reward, dialogue.steps), (Some(1.0), 11));
        let roles: Vec<&str> =
            dialogue.messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
        assert_eq!(
            roles,
            [
                "assistant",
                "user",
                "assistant",
                "user",
                "tool",
                "user",
                "tool",
                "user",
                "assistant",
                "tool",
                "assistant",
                "user"
            ]
        );
        let trajectory = &report.log("agent/trajectory.json").unwrap().text;
        assert!(trajectory.contains("end_ride") && trajectory.contains(USER));
        let found = world.stored_run(run).await;
        let metrics = &found.benchmarks[0].state.report().unwrap().extra;
        assert_eq!((&metrics["pass_hat_1"], &metrics["user_tokens"]), (&json!(1.0), &json!(600)));
        assert_eq!(found.benchmarks[0].state.report().unwrap().user_spent.unwrap().total(), 600);

        let requests = seen.lock().unwrap().clone();
        for request in &requests {
            assert_eq!((&request["seed"], &request["tool_choice"]), (&json!(626_729), &json!("auto")));
            assert_eq!(request["messages"][0]["role"], "system");
        }
        // Neither party sees the other's tools, nor what they returned.
        let of = |user: bool| {
            requests.iter().filter(move |request| (request["model"] == USER) == user).map(Value::to_string)
        };
        assert!(of(false).all(|request| !request.contains("press_lock")));
        assert!(of(true).all(|request| !request.contains("end_ride")));
    });
}

async fn turns(world: &World, run: RunId, from: u64) -> Value {
    let path = format!("/api/runs/{run}/items/turns?benchmark={NAME}&from={from}");
    let (status, body) = send(world, "GET", &path, None).await;
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    serde_json::from_slice(&body).unwrap()
}

#[test]
fn a_running_conversation_shows_the_steps_that_its_trajectory_will_have() {
    runtime().block_on(async {
        let (release, released) = watch::channel(false);
        let is_asked = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&is_asked);
        // The user's message after both of its calls is held back.
        let rule = move |request: &ModelRequest| match solves(request) {
            Reply::Text(text)
                if is_user(request) && own_messages(request) == 3 && !asked.swap(true, Ordering::SeqCst) =>
            {
                Reply::once(released.clone(), text)
            }
            reply => reply,
        };
        let world = World::open(settings(), rule).await;
        let run = order().place(&world).await;
        let driver = ManualDriver::new(&world, 0);
        let watching = async {
            while !is_asked.load(Ordering::SeqCst) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let seen = (turns(&world, run, 0).await, turns(&world, run, 2).await);
            release.send_replace(true);
            seen
        };
        let ((), (seen, part)) = tokio::join!(driver.drain(), watching);
        check(&world, run, Expected::SUCCEEDED).await;
        assert_eq!(seen["phase"], "agent", "{seen}");
        let steps = seen["steps"].as_array().unwrap();
        assert_eq!(seen["total"], steps.len());
        assert_eq!(part["steps"].as_array().unwrap()[..], steps[2..]);
        let (_, body) = sample(&world, run).await;
        let log = body.episode.unwrap().log("agent/trajectory.json").unwrap().text.clone();
        let log: Value = serde_json::from_str(&log).unwrap();
        let all = log["steps"].as_array().unwrap();
        assert_eq!(all[..steps.len()], steps[..]);
        assert!((4..all.len()).contains(&steps.len()), "{} of {}", steps.len(), all.len());
        let over = turns(&world, run, 0).await;
        assert_eq!((&over["phase"], &over["steps"]), (&json!("over"), &json!([])));
    });
}

#[test]
fn rules_of_the_orchestrator_hold_for_odd_replies() {
    runtime().block_on(async {
        // A wrong argument, an unknown tool, and a text beside calls: results with errors, and the conversation goes on.
        let odd = |request: &ModelRequest| match (is_user(request), own_messages(request)) {
            (false, 2) => calls(
                Some("Let me see."),
                &[
                    // The message names the first wrong one, in the model's order.
                    ("end_ride", json!(r#"{"zeta": 1, "alpha": 2}"#)),
                    ("fly", json!({})),
                    ("press_lock", json!({})),
                ],
            ),
            (false, 3) => calls(None, &[("end_ride", json!({ "ride_id": "T501" }))]),
            _ => solves(request),
        };
        let (verdict, body, _) = verdict_of(settings(), odd).await;
        assert_eq!(verdict.outcome, Outcome::Correct, "{verdict:?}");
        assert_eq!(verdict.detail["tool_errors"], 3);
        let messages = body.episode.unwrap().dialogue.unwrap().messages;
        let calling = messages.iter().find(|message| message["content"] == "Let me see.").unwrap();
        assert_eq!(calling["tool_calls"].as_array().unwrap().len(), 3);
        let failed = messages.iter().find(|message| message["error"] == true).unwrap();
        assert!(failed["content"].as_str().unwrap().contains("zeta"), "{failed}");

        // Arguments that aren't a JSON object are asked for again.
        let asked = AtomicU64::new(0);
        let broken = move |request: &ModelRequest| match (is_user(request), own_messages(request)) {
            (false, 2) if asked.fetch_add(1, Ordering::Relaxed) < 2 => {
                calls(None, &[("end_ride", json!("{\"ride_id\": "))])
            }
            _ => solves(request),
        };
        let (verdict, _, total) = verdict_of(settings(), broken).await;
        assert_eq!((verdict.outcome, total), (Outcome::Correct, CALLS + 2), "{verdict:?}");

        // An agent that is silent for good has no grade.
        let silent = |request: &ModelRequest| match is_user(request) {
            true => solves(request),
            false => text(""),
        };
        let (verdict, body, total) = verdict_of(settings(), silent).await;
        assert_eq!((verdict.outcome, verdict.score), (Outcome::InfrastructureError, None), "{verdict:?}");
        let dialogue = body.episode.unwrap().dialogue.unwrap();
        assert_eq!((dialogue.agent.calls, dialogue.user.calls, total), (4, 1, 5));
        assert!(verdict.reason.contains("4 replies in a row"), "{}", verdict.reason);
    });
}

#[test]
fn a_user_simulator_that_never_stops_reaches_the_limit_of_steps() {
    runtime().block_on(async {
        let endless = |request: &ModelRequest| match is_user(request) {
            true => text("Still not working."),
            false => text("Please try again."),
        };
        let (verdict, body, total) = verdict_of(settings(), endless).await;
        assert_eq!((verdict.outcome, verdict.score), (Outcome::Incorrect, Some(0.0)), "{verdict:?}");
        assert_eq!((&verdict.detail["termination"], total), (&json!("max_steps"), 200));
        assert_eq!(body.episode.unwrap().dialogue.unwrap().messages.len(), 201);
    });
}

#[test]
fn too_many_failed_calls_end_the_conversation_and_very_many_calls_are_bounded() {
    runtime().block_on(async {
        let flood = |request: &ModelRequest| match (is_user(request), own_messages(request)) {
            (false, 1) => {
                let many: Vec<(&str, Value)> = (0..10_000).map(|_| ("fly", json!({}))).collect();
                calls(None, &many)
            }
            _ => solves(request),
        };
        let (verdict, body, _) = verdict_of(settings(), flood).await;
        assert_eq!(
            (verdict.outcome, &verdict.detail["termination"]),
            (Outcome::Incorrect, &json!("too_many_errors"))
        );
        assert_eq!(verdict.detail["tool_errors"], 10_000);
        assert!(serde_json::to_string(&body).unwrap().len() < 20 << 20);
    });
}

#[test]
fn a_lost_sandbox_costs_a_replay_and_no_model_call() {
    runtime().block_on(async {
        let lost = AtomicU64::new(0);
        let rule = move |call: &Call| {
            let is_last =
                call.endpoint == Endpoint::Exec && call.body["command"].to_string().contains("call-9");
            match is_last && lost.fetch_add(1, Ordering::Relaxed) == 0 {
                true => Fault::Lose,
                false => Fault::None,
            }
        };
        let (verdict, body, total) = verdict_of(settings_with(rule), solves).await;
        assert_eq!((verdict.outcome, total), (Outcome::Correct, CALLS), "{verdict:?}");
        assert_eq!(body.episode.unwrap().round, 2);
    });
}

#[test]
fn gold_actions_and_silence_need_no_model() {
    runtime().block_on(async {
        for (source, outcome) in [("oracle", Outcome::Correct), ("nop", Outcome::Incorrect)] {
            let world = World::open(settings(), solves).await;
            let run = order().with_source(source).place(&world).await;
            ManualDriver::new(&world, 0).drain().await;
            check(&world, run, Expected::SUCCEEDED).await;
            let (sample, body) = sample(&world, run).await;
            let verdict = sample.finished.unwrap().verdict;
            assert_eq!((verdict.outcome, world.model.total()), (outcome, 0), "{source}: {verdict:?}");
            assert_eq!(body.episode.unwrap().dialogue.unwrap().user_model, "none");
        }
    });
}

#[test]
fn a_run_without_a_user_simulator_never_asks_the_measured_model_instead() {
    runtime().block_on(async {
        let world = World::open(settings(), solves).await;
        let run = order().without_user().place(&world).await;
        ManualDriver::new(&world, 0).drain().await;
        assert_eq!(world.model.total(), 0);
        let found = world.stored_run(run).await;
        assert!(format!("{:?}", found.run.state).contains("no user model"), "{:?}", found.run.state);
        assert!(world.sandbox_host().open().is_empty());
    });
}

#[test]
fn a_failing_provider_is_waited_for_and_never_scored() {
    runtime().block_on(async {
        let failures = AtomicU64::new(0);
        let rule = move |request: &ModelRequest| match is_user(request) {
            true if failures.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) => {
                let at_once = vec![("retry-after", "0".to_owned())];
                Reply::Status(503, r#"{"error":{"message":"boom"}}"#.to_owned(), at_once)
            }
            _ => solves(request),
        };
        let world = World::start(settings(), rule).await;
        let run = order().place(&world).await;
        world.wait_for_end(run).await;
        let (sample, body) = sample(&world, run).await;
        let verdict = sample.finished.unwrap().verdict;
        assert_eq!(verdict.outcome, Outcome::Correct, "{verdict:?}");
        assert_eq!(body.episode.unwrap().dialogue.unwrap().user.calls, 5);

        let refuses = |request: &ModelRequest| match is_user(request) {
            true => {
                let error = r#"{"error":{"message":"no","code":"content_filter"}}"#;
                Reply::Status(400, error.to_owned(), Vec::new())
            }
            false => solves(request),
        };
        let (verdict, _, _) = verdict_of(settings(), refuses).await;
        assert_eq!((verdict.score, verdict.code), (None, Some(Code::ContentFiltered)), "{verdict:?}");
        assert!(verdict.reason.starts_with("the user model could not be asked"), "{}", verdict.reason);
    });
}

/// Returns all that a call sends to a sandbox: its text, and the files in it, whose pieces are in base64.
fn sent_text(call: &Call) -> String {
    let text = call.body.to_string();
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && !"+/=".contains(c));
    let pieces = words.filter_map(|word| STANDARD.decode(word).ok());
    let files: Vec<String> = pieces.map(|piece| String::from_utf8_lossy(&piece).into_owned()).collect();
    format!("{text}{}", files.concat())
}

/// The model's key is never sent to the user model's provider, nor the other way around. Neither is stored as text, or reaches a
/// sandbox, even if models repeat their keys.
#[test]
fn each_model_is_asked_with_its_own_key() {
    const KEY: &str = "sk-agent-51c7be02d9a84f36";
    const USER_KEY: &str = "sk-user-90ad3e6f17bc4825";
    runtime().block_on(async {
        let wrong = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&wrong);
        let rule = move |request: &ModelRequest| {
            let (own, other) = if is_user(request) { (USER_KEY, KEY) } else { (KEY, USER_KEY) };
            if request.key.as_deref() != Some(own) || request.body.to_string().contains(other) {
                counted.fetch_add(1, Ordering::Relaxed);
            }
            match solves(request) {
                Reply::Text(said) => text(&format!("{said} My key is {own}.")),
                reply => reply,
            }
        };
        let (sent, leaked) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let counted = (Arc::clone(&sent), Arc::clone(&leaked));
        let settings = settings_with(move |call| {
            let text = sent_text(call);
            counted.0.fetch_add(u64::from(text.contains("I pressed it.")), Ordering::Relaxed);
            let has_key = [KEY, USER_KEY].iter().any(|key| text.contains(key));
            counted.1.fetch_add(u64::from(has_key), Ordering::Relaxed);
            Fault::None
        });
        let world = World::open(settings, rule).await;
        let run = order().with_key(KEY).with_user_key(USER_KEY).place(&world).await;
        ManualDriver::new(&world, 0).drain().await;
        check(&world, run, Expected::SUCCEEDED).await;
        assert_eq!((wrong.load(Ordering::Relaxed), world.model.total()), (0, CALLS));
        assert!(sent.load(Ordering::Relaxed) > 0, "messages are sent to the sandbox");
        assert_eq!(leaked.load(Ordering::Relaxed), 0, "a key was sent to the sandbox");
        let (_, body) = sample(&world, run).await;
        let stored = serde_json::to_string(&body).unwrap();
        assert!(stored.contains("My key is [redacted]"), "{stored}");
        for key in [KEY, USER_KEY] {
            assert!(!stored.contains(key));
            assert_eq!(files_with(&world.data_dir(), key), Vec::<String>::new());
        }
        let credentials = &world.stack.credentials;
        assert!(!credentials.has(run).await.unwrap(), "the keys are gone with the run");
    });
}

#[test]
fn a_wait_for_the_user_models_provider_is_shown_as_its_own() {
    runtime().block_on(async {
        let limits = |request: &ModelRequest| match is_user(request) {
            true => Reply::Status(429, "{}".to_owned(), vec![("retry-after", "3600".to_owned())]),
            false => solves(request),
        };
        let world = World::open(settings(), limits).await;
        let run = order().place(&world).await;
        ManualDriver::new(&world, 0).drain().await;
        let wait = world.stored_run(run).await.run.provider_wait.unwrap();
        assert_eq!(wait.role, ModelRole::UserModel, "{wait:?}");
        let (_, view) = send(&world, "GET", &format!("/api/runs/{run}"), None).await;
        let view: Value = serde_json::from_slice(&view).unwrap();
        assert_eq!(
            (&view["waiting"]["waits_for"], &view["waiting"]["waiting_samples"]),
            (&json!("user_model"), &json!(1))
        );
        let events = world.stack.state.events(run, 0, 100).await.unwrap();
        let event = events.iter().find(|event| event.event_type == EventKind::ProviderWaitStarted).unwrap();
        assert!(event.message.starts_with("The user model's provider limits"), "{}", event.message);
        assert_eq!(event.data.as_ref().unwrap()["waits_for"], "user_model");
    });
}

/// A refusal of the user model names the setting that changes it, not one of the evaluated model.
#[test]
fn a_user_model_that_refuses_the_temperature_stops_the_run_with_advice() {
    runtime().block_on(async {
        let refuses = |request: &ModelRequest| match is_user(request) {
            true => {
                let error =
                    r#"{"error":{"message":"Unsupported value: temperature 0, only 1 is supported"}}"#;
                Reply::Status(400, error.to_owned(), Vec::new())
            }
            false => solves(request),
        };
        let world = World::open(settings(), refuses).await;
        let run = order().place(&world).await;
        ManualDriver::new(&world, 0).drain().await;
        let state = format!("{:?}", world.stored_run(run).await.run.state);
        assert!(state.contains("--user-temperature 1") && !state.contains("--omit"), "{state}");
        assert_eq!(world.model.total(), 1);
    });
}

#[test]
fn tokens_of_the_user_simulator_count_without_a_grade() {
    runtime().block_on(async {
        let refuses = |request: &ModelRequest| match is_user(request) {
            true => solves(request),
            false => {
                let error = r#"{"error":{"message":"no","code":"content_filter"}}"#;
                Reply::Status(400, error.to_owned(), Vec::new())
            }
        };
        let world = World::open(settings(), refuses).await;
        let run = order().place(&world).await;
        ManualDriver::new(&world, 0).drain().await;
        let (sample, _) = sample(&world, run).await;
        assert_eq!(sample.finished.unwrap().verdict.score, None);
        let found = world.stored_run(run).await;
        let report = found.benchmarks[0].state.report().unwrap();
        assert_eq!((report.graded, report.user_spent.unwrap().total()), (0, 120));
    });
}

#[test]
fn estimated_tokens_include_the_tools() {
    runtime().block_on(async {
        let seen = Arc::new(AtomicU64::new(0));
        let noted = Arc::clone(&seen);
        let stops = move |request: &ModelRequest| {
            noted.store(request.body["tools"].to_string().len() as u64 / 4, Ordering::Relaxed);
            Reply::Uncounted("###STOP###".to_owned())
        };
        let world = World::open(settings(), stops).await;
        let run = order().place(&world).await;
        ManualDriver::new(&world, 0).drain().await;
        let found = world.stored_run(run).await;
        let spent = found.benchmarks[0].state.report().unwrap().user_spent.unwrap();
        let tools = seen.load(Ordering::Relaxed);
        assert!(tools > 100 && spent.input_tokens > tools + 100, "{tools} {spent:?}");
        assert_eq!(spent.estimated_tokens, spent.total());
    });
}

/// Number of calls between two ends of the process: each run takes seconds. A turn usually makes more calls.
const STRIDE: i64 = 5;

/// Whatever turn is the last one of a process: no stored message is asked for again, and the conversation is graded once.
#[test]
fn a_conversation_survives_the_end_of_the_process_at_every_turn() {
    runtime().block_on(async {
        let wire = Arc::new(Tripwire::default());
        let watching = Arc::clone(&wire);
        let recorder = Recorder::new(move |call| watching.note_call(call.action));
        let world = World::open(Settings { recorder: Some(recorder), ..settings() }, solves).await;
        let order = order();
        let mut starts = 0;
        // Numbers of requests to models before the ends of the process.
        let mut turns = BTreeSet::new();
        let all = (0..=CALLS).collect();
        let (mut offset, mut kills) = (0, 0);
        while turns != all {
            kills += STRIDE;
            let run = order.place(&world).await;
            let asked = world.model.total();
            let driver = ManualDriver::new(&world, starts);
            wire.arm(kills);
            let ended = wire.drive(Box::pin(driver.drain())).await;
            drop(driver);
            if !ended {
                starts += 1;
                turns.insert(world.model.total() - asked);
                let driver = ManualDriver::new(&world, starts);
                driver.scheduler.resume().await.unwrap();
                driver.drain().await;
            }
            let state = format!("call {kills}, {}", wire.last());
            let (sample, body) = sample(&world, run).await;
            let verdict = sample.finished.unwrap().verdict;
            assert_eq!(verdict.outcome, Outcome::Correct, "{state}: {verdict:?}");
            // At most the reply that was on its way is asked for again.
            let again = world.model.total() - asked - CALLS;
            assert!(again <= 1, "{state}: {again}");
            let dialogue = body.episode.unwrap().dialogue.unwrap();
            assert_eq!((dialogue.agent.calls, dialogue.user.calls), (3, 5), "{state}");
            if ended {
                // The runs make slightly different calls, so a short turn may have been left out.
                offset += 1;
                kills = offset;
                assert!(offset < STRIDE, "of {all:?}, only {turns:?} were the last ones of a process");
            }
        }
        println!("ended {starts} times, after {turns:?} requests to models");
    });
}
