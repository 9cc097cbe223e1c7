use std::collections::BTreeMap;

use bench_agents::dialogue::{DialogueMessage, DialogueNeed, Party, Speaker, Termination};
use bench_domain::{DialogueReport, FileContent, HarvestedFile, JobEnd, JobReport, JobSpec, Outcome};
use serde_json::{Value, json};

use bench_agents::dialogue::DialogueCall;

use super::*;
use crate::scorers::dialogue::{DialogueStep, StepProblem};

/// Results of the official program, with the texts of its tasks left out.
const SAMPLE: &str = include_str!("../../../../tests/data/vectors/tau2_result_sample.json");

fn sample() -> Value {
    serde_json::from_str(SAMPLE).unwrap()
}

fn item(row: Value) -> Item {
    let Value::Object(row) = row else { panic!("{row}") };
    TauBenchTelecom.item(0, row).unwrap().unwrap()
}

fn report(response: &Value) -> JobReport {
    JobReport {
        end: JobEnd::Exited(0),
        files: BTreeMap::from([("response.json".to_owned(), HarvestedFile::Text(response.to_string()))]),
        stdout_tail: String::new(),
        stderr_tail: String::new(),
        elapsed_ms: None,
        isolation: None,
    }
}

fn request(job: &JobSpec) -> Value {
    let file = job.files.iter().find(|file| file.path == "request.json").unwrap();
    let FileContent::Bytes(bytes) = &file.content else { panic!("{file:?}") };
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn trials_have_the_official_seeds() {
    let simulations = sample()["result"]["simulations"].as_array().unwrap().clone();
    assert_eq!(simulations.len(), 4);
    for simulation in simulations {
        let trial = u32::try_from(simulation["trial"].as_u64().unwrap()).unwrap();
        assert_eq!(TauBenchTelecom.seed(trial), simulation["seed"].as_i64().unwrap());
    }
}

/// Plays the recorded messages by our rules: each message must come from the party that speaks next, and the end must be the
/// official one.
#[test]
fn recorded_conversations_follow_our_rules() {
    let sample = sample();
    let recorded = sample["result"]["simulations"].as_array().unwrap().iter();
    let mut played = 0;
    for simulation in recorded.chain([&sample["variants"]["user_gives_up"]]) {
        let messages: Vec<DialogueMessage> = simulation["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| DialogueMessage::from_package(message).unwrap())
            .collect();
        let stop = ["###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###"].map(str::to_owned);
        let rules = TauBenchTelecom.rules(&stop);
        let mut state = rules.start(&messages[..1]).unwrap();
        let mut at = 1;
        while at < messages.len() {
            match rules.need(&state) {
                DialogueNeed::Speak(_) => {
                    state = rules.say(&state, &messages[at]).unwrap();
                    at += 1;
                }
                DialogueNeed::Execute => {
                    let calls = messages[at - 1].tool_calls.len();
                    let results = &messages[at..at + calls];
                    assert!(results.iter().all(|result| result.role == Speaker::Tool));
                    state = rules.observe(&state, results).unwrap();
                    at += calls;
                }
                DialogueNeed::Ended(end) => panic!("ended as {end:?} before message {at}"),
            }
        }
        assert_eq!(simulation["termination_reason"], Termination::UserStop.as_str());
        assert_eq!(rules.need(&state), DialogueNeed::Ended(Termination::UserStop));
        assert_eq!(state.messages, messages.len());
        played += 1;
    }
    assert_eq!(played, 5);
    let endless = &sample["variants"]["max_steps"];
    let shown = endless["messages"].as_array().unwrap();
    let stripped = shown.last().unwrap()["_stripped"].as_u64().unwrap();
    assert_eq!(
        (shown.len() as u64 - 1 + stripped, &endless["termination_reason"]),
        (201, &json!("max_steps"))
    );
}

#[test]
fn rewards_of_the_official_evaluator_decide() {
    let sample = sample();
    let verdict = |simulation: &Value| {
        let info = simulation["reward_info"].clone();
        let info = TauBenchTelecom.reward_info(&report(&json!({ "reward_info": info }))).unwrap();
        TauBenchTelecom.verdict(&DialogueReport {
            termination: simulation["termination_reason"].as_str().unwrap().to_owned(),
            reward: info["reward"].as_f64(),
            reward_info: info,
            ..DialogueReport::default()
        })
    };
    for simulation in sample["result"]["simulations"].as_array().unwrap() {
        // The state of the database differs from the gold one in half of them, which doesn't count.
        assert_eq!(verdict(simulation).outcome, Outcome::Correct);
    }
    let given_up = verdict(&sample["variants"]["user_gives_up"]);
    assert_eq!(
        (given_up.outcome, given_up.reason.as_str()),
        (Outcome::Incorrect, "The reward misses ACTION.")
    );
    let endless = verdict(&sample["variants"]["max_steps"]);
    assert_eq!((endless.outcome, endless.score), (Outcome::Incorrect, Some(0.0)));
    assert_eq!(endless.detail["termination"], "max_steps");
    // Officially it has no reward, and no grade.
    let failed = &sample["variants"]["provider_500"]["reward_info"];
    let failed = TauBenchTelecom.reward_info(&report(&json!({ "reward_info": failed })));
    assert!(matches!(failed, Err(StepProblem::Unreadable(_))));
}

#[test]
fn items_are_tasks_of_the_split() {
    let id = "[mms_issue]bad_network_preference|user_abroad_roaming_disabled_on[PERSONA:None]";
    let row = json!({ "id": id, "splits": ["base", "test"], "user_scenario": { "instructions": "secret" } });
    let official = item(row);
    assert_eq!(official.group.as_deref(), Some("mms_issue"));
    assert_eq!(official.row, json!({ "id": id }).as_object().unwrap().clone());
    let other = json!({ "id": id, "splits": ["train"] });
    assert_eq!(TauBenchTelecom.item(0, other.as_object().unwrap().clone()).unwrap(), None);
    assert_eq!(item(json!({ "id": "x" })).group.as_deref(), Some("other"));
    for wrong in [json!({}), json!({ "id": 7 }), json!({ "id": "x", "splits": "base" })] {
        assert!(TauBenchTelecom.item(0, wrong.as_object().unwrap().clone()).is_err(), "{wrong}");
    }
    let job = TauBenchTelecom.job(&official, DialogueStep::Open).unwrap();
    let sent = request(&job);
    assert_eq!(
        (&sent["op"], &sent["domain"], &sent["package"]),
        (&json!("open"), &json!("telecom"), &json!("1.0.1"))
    );
    let unknown = item(json!({ "id": "x", "domain": "airline" }));
    assert!(TauBenchTelecom.job(&unknown, DialogueStep::Open).is_err());
}

#[test]
fn steps_are_sent_in_the_packages_form() {
    let demo = item(json!({ "id": "t", "domain": "demo" }));
    let mut calling = DialogueMessage::text(Party::User, "");
    calling.content = None;
    calling.tool_calls = vec![DialogueCall {
        id: "c".to_owned(),
        name: "look".to_owned(),
        arguments: r#"{"at": 1}"#.to_owned(),
        requestor: Party::User,
    }];
    let messages = [DialogueMessage::text(Party::Agent, "Hi")];
    let call = DialogueStep::Call { messages: &messages, calls: &calling.tool_calls };
    let sent = request(&TauBenchTelecom.job(&demo, call).unwrap());
    assert_eq!(
        (&sent["calls"], &sent["package"]),
        (
            &json!([{ "id": "c", "name": "look", "arguments": { "at": 1 }, "requestor": "user" }]),
            &Value::Null
        )
    );
    assert_eq!(sent["messages"], json!([{ "role": "assistant", "content": "Hi", "tool_calls": null }]));
    let answer = json!({ "results": [{ "id": "c", "requestor": "user", "content": "no", "error": true }] });
    let results = TauBenchTelecom.results(&calling.tool_calls, &report(&answer)).unwrap();
    assert_eq!((results[0].error, results[0].requestor), (true, Some(Party::User)));
    assert!(TauBenchTelecom.results(&calling.tool_calls, &report(&json!({ "results": [] }))).is_err());
    let evaluate = DialogueStep::Evaluate { messages: &messages, termination: "user_stop" };
    assert_eq!(request(&TauBenchTelecom.job(&demo, evaluate).unwrap())["termination_reason"], "user_stop");
}

#[test]
fn an_opening_has_texts_marks_and_a_greeting() {
    let texts = json!({ "system": "Help.", "tools": [{ "type": "function" }] });
    let mut response = json!({
        "agent": texts, "user": texts, "greeting": "Hi!", "initial_messages": [],
        "stop_tokens": { "user": ["###STOP###"], "agent": [] },
        "package": { "name": "tau2", "version": "1.0.1", "digest": "abc" },
    });
    let opened = TauBenchTelecom.opened(&report(&response)).unwrap();
    assert_eq!(opened.opening.stop_tokens, ["###STOP###"]);
    assert_eq!(opened.opening.agent.tools, r#"[{"type":"function"}]"#);
    assert_eq!((opened.opening.package_version.as_str(), opened.messages.len()), ("1.0.1", 1));
    response["initial_messages"] = json!([{ "role": "user", "content": "Hello" }]);
    let opened = TauBenchTelecom.opened(&report(&response)).unwrap();
    assert_eq!(opened.messages[0].role, Speaker::User);
    for field in ["agent", "user", "stop_tokens"] {
        let mut without = response.clone();
        without[field] = Value::Null;
        assert!(TauBenchTelecom.opened(&report(&without)).is_err(), "{field}");
    }
}

#[test]
fn errors_of_a_step_say_what_they_mean() {
    let of = |kind: &str| {
        let error = json!({ "error": { "kind": kind, "message": "It is so." } });
        TauBenchTelecom.opened(&report(&error)).unwrap_err()
    };
    let text = || "It is so.".to_owned();
    assert_eq!(of("wrong-version"), StepProblem::Setup(text()));
    assert_eq!(of("missing-package"), StepProblem::Setup(text()));
    assert_eq!(of("replay-differs"), StepProblem::ReplayDiffers(text()));
    assert_eq!(of("unknown-task"), StepProblem::Refused(text()));
    assert!(matches!(of("internal"), StepProblem::Unreadable(why) if why.ends_with(": It is so.")));
    let silent = JobReport { files: BTreeMap::new(), ..report(&json!({})) };
    assert!(matches!(TauBenchTelecom.opened(&silent), Err(StepProblem::Unreadable(_))));
}
