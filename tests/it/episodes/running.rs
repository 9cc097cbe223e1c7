//! Turns of an episode while it is running, as the API shows them.

use bench_domain::RunId;
use serde_json::Value;

use super::ends::Held;
use super::{host, only_sample};
use crate::labels::send;
use crate::support::{World, runtime};

async fn turns(world: &World, run: RunId, from: u64) -> Value {
    let path = format!("/api/runs/{run}/items/turns?benchmark=terminal_tasks&from={from}");
    let (status, body) = send(world, "GET", &path, None).await;
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    serde_json::from_slice(&body).unwrap()
}

#[test]
fn a_running_episode_shows_the_turns_that_its_trajectory_will_have() {
    runtime().block_on(async {
        for agent in ["terminus-2", "bash"] {
            let held = Held::new(agent).await;
            let before = turns(&held.world, held.run, 0).await;
            assert_eq!((&before["phase"], &before["total"]), (&"waiting".into(), &0.into()), "{before}");
            let mut seen = Value::Null;
            held.meanwhile(async |held| {
                // The first reply and its commands are stored, the second one is on its way.
                seen = turns(&held.world, held.run, 0).await;
                let part = turns(&held.world, held.run, 1).await;
                assert_eq!(part["steps"].as_array().unwrap()[..], seen["steps"].as_array().unwrap()[1..]);
                assert_eq!(turns(&held.world, held.run, u64::MAX).await["steps"], Value::Array(Vec::new()));
                held.release.send_replace(true);
            })
            .await;
            assert_eq!(
                (&seen["phase"], &seen["agent"], &seen["round"], &seen["task_step"]),
                (&"agent".into(), &agent.into(), &1.into(), &0.into())
            );
            let steps = seen["steps"].as_array().unwrap();
            assert_eq!((steps.len(), &seen["total"]), (2, &2.into()), "the task and a turn");
            assert!(
                seen["totals"]["turns"].as_u64() >= Some(1)
                    && seen["totals"]["input_tokens"].as_u64() > Some(0),
                "{seen}"
            );
            // Afterwards, the log has them.
            let over = turns(&held.world, held.run, 0).await;
            assert_eq!((&over["phase"], &over["steps"]), (&"over".into(), &Value::Array(Vec::new())));
            let (_, body) = only_sample(&held.world, held.run).await;
            let report = body.episode.unwrap();
            let log: Value =
                serde_json::from_str(&report.log("agent/trajectory.json").unwrap().text).unwrap();
            assert_eq!(log["steps"].as_array().unwrap()[..2], steps[..]);
            assert_eq!(host(&held.world).problem(), None);
        }
    });
}
