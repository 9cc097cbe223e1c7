//! Agents that ask a model in episodes, with a scripted sandbox host: turns that survive the same failures as a worker's
//! attempts.

mod changed_archives;
mod custom_agents;
mod ends;
mod kills;
mod limits;
mod outages;
mod repositories;
mod running;
mod terminal_bench;

use std::time::Duration;

use bench_domain::{Outcome, RunId, SampleBody};
use bench_queue::Depth;
use bench_state::{SampleRecord, SampleResult};
use bench_tests::model_server::{ModelRequest, Reply};
use bench_tests::scripted_host::ScriptedHost;
use serde_json::Value;

use crate::support::{Expected, ManualDriver, Order, Settings, World, check, runtime};

const NAME: &str = "terminal_tasks";
/// Model calls of an episode of [`works`].
const CALLS: u64 = 3;

fn settings() -> Settings {
    Settings { scripted: Some(0), ..Settings::default() }
}

fn host(world: &World) -> &ScriptedHost {
    world.scripted.as_ref().unwrap()
}

/// Returns the number of assistant messages in a request: the turns before it.
fn turns_before(request: &ModelRequest) -> usize {
    let messages = request.body["messages"].as_array().unwrap();
    messages.iter().filter(|message| message["role"] == "assistant").count()
}

/// Replies as a model that runs two commands, and is done. It knows both agents by their instructions.
fn works(request: &ModelRequest) -> Reply {
    let first = request.body["messages"][0]["content"].as_str().unwrap();
    let is_terminal = first.contains("task_complete");
    Reply::Text(match (is_terminal, turns_before(request)) {
        (true, 0) => json_reply(&["ls\n", "touch done\n"], false),
        (true, _) => json_reply(&[], true),
        (false, turn @ (0 | 1)) => format!("I look.\n```bash\necho {turn}\n```\n"),
        (false, _) => "```done\n```\n".to_owned(),
    })
}

fn json_reply(keystrokes: &[&str], is_complete: bool) -> String {
    let commands: Vec<Value> =
        keystrokes.iter().map(|keys| serde_json::json!({ "keystrokes": keys, "duration": 0.01 })).collect();
    serde_json::json!({ "analysis": "a", "plan": "p", "commands": commands, "task_complete": is_complete })
        .to_string()
}

/// Returns what was done in each sandbox, in order.
fn acts_by_sandbox(world: &World) -> Vec<Vec<String>> {
    let mut all: Vec<(String, Vec<String>)> = Vec::new();
    for act in host(world).acts() {
        match all.iter_mut().find(|(sandbox, _)| *sandbox == act.sandbox) {
            Some((_, acts)) => acts.push(act.text),
            None => all.push((act.sandbox, vec![act.text])),
        }
    }
    all.into_iter().map(|(_, acts)| acts).collect()
}

/// Returns what an agent that isn't disturbed does.
fn expected_acts(agent: &str) -> Vec<String> {
    let keys = |keys: &str| format!("tmux send-keys -t terminus-2 -- '{keys}\n'\n");
    match agent {
        "terminus-2" => {
            vec![String::new(), keys("ls") + &keys("touch done"), String::new(), String::new()]
        }
        _ => (0..2).map(|turn| format!("exec 2>&1\necho {turn}\n\n")).collect(),
    }
}

async fn result(world: &World, run: RunId) -> SampleResult {
    let found = world.stored_run(run).await;
    world.samples(&found, NAME).await.remove(0).finished.unwrap()
}

async fn only_sample(world: &World, run: RunId) -> (SampleRecord, SampleBody) {
    world.first_sample(run, NAME).await
}

/// Returns true if no message is left, not even one that waits for its time.
async fn is_idle(world: &World) -> bool {
    world.depths().await.iter().all(|(_, live, _)| *live == Depth::default())
}

#[test]
fn agents_work_turn_by_turn() {
    runtime().block_on(async {
        for agent in ["terminus-2", "bash"] {
            let world = World::open(settings(), works).await;
            let run = Order::tasks(1, agent, &[]).place(&world).await;
            ManualDriver::new(&world, 0).drain().await;
            check(&world, run, Expected::SUCCEEDED).await;
            assert_eq!(acts_by_sandbox(&world), [expected_acts(agent)]);
            assert_eq!(world.model.total(), CALLS);
            assert_eq!((host(&world).problem(), host(&world).open_sandboxes()), (None, 0));
            let (sample, body) = only_sample(&world, run).await;
            let finished = sample.finished.unwrap();
            assert_eq!(finished.verdict.outcome, Outcome::Correct, "{:?}", finished.verdict);
            let report = body.episode.unwrap();
            let outcome = report.steps[0].agent.clone().unwrap();
            assert_eq!((outcome.end.as_str(), outcome.exception), ("completed", None));
            assert_eq!((outcome.totals.calls, outcome.totals.turns), (3, 3));
            let usage = finished.usage.unwrap();
            assert_eq!(
                (usage.input_tokens, usage.output_tokens),
                (outcome.totals.input_tokens, outcome.totals.output_tokens)
            );
            assert!(usage.input_tokens > 0 && outcome.totals.model_ms > 0);
            let trajectory = report.log("agent/trajectory.json").unwrap();
            let trajectory: Value = serde_json::from_str(&trajectory.text).unwrap();
            assert_eq!(
                (&trajectory["schema_version"], &trajectory["final_metrics"]["total_prompt_tokens"]),
                (&Value::from("ATIF-v1.8"), &Value::from(usage.input_tokens))
            );
            assert_eq!(finished.verdict.detail["prompt"], "own");
            // Without a network, the official texts aren't there.
            assert_eq!(outcome.prompt, "own");
        }
    });
}

#[test]
fn a_turn_that_waits_leaves_its_place_to_others() {
    runtime().block_on(async {
        let world = World::open(Settings { scripted: Some(1), ..settings() }, works).await;
        let run = Order::tasks(1, "oracle", &[]).place(&world).await;
        // Turns that waited would end the episode within this call, after minutes.
        ManualDriver::lingering(&world, 1).drain().await;
        assert!(world.stored_run(run).await.run.state.status().is_open());
        assert_eq!(host(&world).open_sandboxes(), 1);
        let driver = ManualDriver::new(&world, 0);
        while world.stored_run(run).await.run.state.status().is_open() {
            tokio::time::sleep(Duration::from_millis(20)).await;
            driver.drain().await;
        }
        check(&world, run, Expected::SUCCEEDED).await;
    });
}

#[test]
fn each_message_is_delivered_twice() {
    runtime().block_on(async {
        for (agent, polls) in [("terminus-2", 0), ("bash", 0), ("bash", 1)] {
            let world = World::open(Settings { scripted: Some(polls), ..settings() }, works).await;
            let run = Order::tasks(1, agent, &[]).place(&world).await;
            let driver = ManualDriver::new(&world, 0);
            let mut messages = driver.drain_twice().await;
            while world.stored_run(run).await.run.state.status().is_open() {
                tokio::time::sleep(Duration::from_millis(20)).await;
                messages += driver.drain_twice().await;
            }
            // A message for each turn, and for each operation that is still running.
            assert!(messages > 5, "{messages} messages");
            check(&world, run, Expected::SUCCEEDED).await;
            assert_eq!(acts_by_sandbox(&world), [expected_acts(agent)]);
            assert_eq!((world.model.total(), host(&world).problem()), (CALLS, None));
        }
    });
}
