//! Limits of agents and runs, which end an episode between turns.

use bench_domain::{Outcome, RunStatus};
use bench_tests::model_server::{ModelRequest, Reply};

use super::{host, json_reply, only_sample, settings, turns_before, works};
use crate::support::{Expected, ManualDriver, Order, World, check, runtime};

#[test]
fn an_agent_that_never_finishes_ends_by_its_options_and_is_graded() {
    runtime().block_on(async {
        let goes_on = |_: &_| Reply::Text(json_reply(&["ls\n"], false));
        for (options, calls, end, exception) in [
            (("max_turns", "4"), 4, "turn_limit", None),
            // Each command takes a second of the scripted host's time.
            (("max_time_sec", "3"), 2, "time_limit", Some("AgentTimeoutError")),
            (("max_tokens", "1"), 1, "token_limit", Some("BudgetExceededError")),
        ] {
            let world = World::open(settings(), goes_on).await;
            let run = Order::tasks(1, "terminus-2", &[options]).place(&world).await;
            ManualDriver::new(&world, 0).drain().await;
            check(&world, run, Expected::SUCCEEDED).await;
            let (sample, body) = only_sample(&world, run).await;
            let outcome = body.episode.unwrap().steps[0].agent.clone().unwrap();
            let raised = outcome.exception.map(|exception| exception.name);
            assert_eq!(
                (outcome.end.as_str(), raised.as_deref(), world.model.total()),
                (end, exception, calls)
            );
            assert_eq!(sample.finished.unwrap().verdict.outcome, Outcome::Correct, "its work is graded");
        }
    });
}

/// Stored bytes grow with the turns, not with their square: each text is stored once.
#[test]
fn a_transcript_is_linear() {
    runtime().block_on(async {
        let mut sizes = Vec::new();
        for turns in ["20", "80"] {
            // Texts that don't compress well: each turn has a number of its own.
            let goes_on = |request: &ModelRequest| {
                let text: String =
                    (0..200).map(|at| format!("{:x}", turns_before(request) * 7919 + at)).collect();
                Reply::Text(format!("```bash\necho {text}\n```\n"))
            };
            let world = World::open(settings(), goes_on).await;
            let run = Order::tasks(1, "bash", &[("max_turns", turns)]).place(&world).await;
            ManualDriver::new(&world, 0).drain().await;
            check(&world, run, Expected::SUCCEEDED).await;
            let (objects, _) = world.stack.blobs.list(&bench_blobs::bodies_prefix(run), None).await.unwrap();
            let records = objects.iter().filter(|object| object.key.contains(".episode/"));
            sizes.push(records.map(|object| object.length).sum::<u64>());
        }
        println!("{} bytes stored in a turn", sizes[1] / 80);
        assert!(sizes[1] < sizes[0] * 5, "{sizes:?}");
    });
}

#[test]
fn a_terminal_that_ends_ends_the_agent() {
    runtime().block_on(async {
        let world = World::open(settings(), |_| Reply::Text(json_reply(&["exit\n"], false))).await;
        let run = Order::tasks(1, "terminus-2", &[]).place(&world).await;
        ManualDriver::new(&world, 0).drain().await;
        check(&world, run, Expected::SUCCEEDED).await;
        let outcome = only_sample(&world, run).await.1.episode.unwrap().steps[0].agent.clone().unwrap();
        assert_eq!((outcome.end.as_str(), world.model.total()), ("terminal_ended", 1));
    });
}

#[test]
fn a_budget_stops_a_run_between_turns() {
    runtime().block_on(async {
        let world = World::open(settings(), works).await;
        let run = Order::tasks(1, "bash", &[]).with_budget_tokens(1).place(&world).await;
        ManualDriver::new(&world, 0).drain().await;
        let found = world.stored_run(run).await;
        assert_eq!(found.run.state.status(), RunStatus::Failed);
        assert_eq!((world.model.total(), host(&world).acts().len()), (1, 1));
        assert_eq!(host(&world).open_sandboxes(), 0);
    });
}

/// A reply without a valid form, and one that is valid, of 10 MB each. Both are part of the conversation afterwards.
#[test]
fn replies_of_ten_megabytes_are_kept_and_do_no_harm() {
    const MEGABYTES: usize = 10;
    // As JSON, control characters take six bytes.
    let part = "\\u0001 é 0123456789abcdef\\n".repeat(40_000);
    // Within the JSON of a reply, they are no valid text.
    let plain = " é 0123456789abcdef".repeat(52_000);
    runtime().block_on(async {
        for agent in ["terminus-2", "bash"] {
            let rule = {
                let (part, plain) = (part.clone(), plain.clone());
                move |request: &ModelRequest| {
                    let is_plain = agent == "terminus-2" && turns_before(request) == 1;
                    let parts: Vec<&[u8]> = vec![if is_plain { &plain } else { &part }.as_bytes(); MEGABYTES];
                    let usage = r#"{"prompt_tokens":10,"completion_tokens":5}"#;
                    let whole = |begin: &str, end: &str| {
                        let all: Vec<&[u8]> =
                            [begin.as_bytes()].into_iter().chain(parts.clone()).chain([end.as_bytes()]).collect();
                        Reply::deltas(&all, usage)
                    };
                    match (agent, turns_before(request)) {
                        (_, 0) => whole("", ""),
                        ("bash", 1) => whole("", "\\n```bash\\nls\\n```\\n"),
                        ("bash", _) => Reply::Text("```done\n```\n".to_owned()),
                        (_, 1) => whole(
                            r#"{\"plan\": \"p\", \"commands\": [{\"keystrokes\": \"ls\\n\"}], \"analysis\": \""#,
                            r#"\"}"#,
                        ),
                        _ => Reply::Text(json_reply(&[], true)),
                    }
                }
            };
            let world = World::open(settings(), rule).await;
            let run = Order::tasks(1, agent, &[]).place(&world).await;
            ManualDriver::new(&world, 0).drain().await;
            check(&world, run, Expected::SUCCEEDED).await;
            let (sample, body) = only_sample(&world, run).await;
            assert_eq!(sample.finished.unwrap().verdict.outcome, Outcome::Correct, "{agent}");
            assert_eq!(host(&world).acts().iter().filter(|act| act.text.contains("ls")).count(), 1, "{agent}");
            let report = body.episode.unwrap();
            assert_eq!(report.steps[0].agent.as_ref().unwrap().end, "completed", "{agent}");
            let log = report.log("agent/trajectory.json").unwrap();
            let trajectory: serde_json::Value = serde_json::from_str(&log.text).unwrap();
            assert!(trajectory["steps"].as_array().unwrap().len() >= 4, "{agent}");
            let checkpoint = sample.turn.unwrap().checkpoint::<serde_json::Value>().unwrap().unwrap();
            assert!(checkpoint.to_string().len() < 64_000, "{agent}");
        }
    });
}
