//! Trajectories of `terminus-2`, checked against the rules of the format.

use std::collections::BTreeSet;

use bench_agents::terminus2::Terminus2Settings;
use bench_agents::{AtifSource, Trajectory, TrajectoryNames};
use serde_json::Value;

use crate::driver::{Episode, cut, json_reply, reply, reply_with, screen};

const NAMES: TrajectoryNames<'_> = TrajectoryNames { session: "task__abc1234__agent", model: "test/model" };

/// Checks the rules of ATIF v1.8 for all trajectories of an episode.
pub(crate) fn check(episode: &Episode) {
    let trajectories = episode.agent.trajectories(&episode.transcript, NAMES).unwrap();
    let files: BTreeSet<_> = trajectories.aside.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(files.len(), trajectories.aside.len());
    for (_, trajectory) in &trajectories.aside {
        check_trajectory(trajectory);
    }
    check_trajectory(&trajectories.main);
    let used = episode.state.used();
    let totals = trajectories.main.final_metrics.as_ref().unwrap();
    assert_eq!(totals.total_prompt_tokens, used.input_tokens);
    assert_eq!(totals.total_completion_tokens, used.output_tokens);
    let referred =
        trajectories.main.steps.iter().flat_map(|step| &step.observation).flat_map(|seen| &seen.results);
    let referred: Vec<_> = referred.flat_map(|result| &result.subagent_trajectory_ref).collect();
    assert_eq!(referred.len(), files.len());
    assert!(referred.iter().all(|reference| files.contains(reference.trajectory_path.as_str())));
}

fn check_trajectory(trajectory: &Trajectory) {
    let value = serde_json::to_value(trajectory).unwrap();
    assert_eq!(value["schema_version"], "ATIF-v1.8");
    assert!(!has_null(&value), "{value}");
    assert!(!trajectory.steps.is_empty());
    let mut ids = BTreeSet::new();
    for (index, step) in trajectory.steps.iter().enumerate() {
        assert_eq!(step.step_id, index + 1);
        if step.source != AtifSource::Agent {
            assert!(step.model_name.is_none() && step.reasoning_content.is_none() && step.metrics.is_none());
            assert!(step.tool_calls.is_empty());
        }
        if step.llm_call_count == Some(0) {
            assert!(step.metrics.is_none() && step.reasoning_content.is_none());
        }
        let own: BTreeSet<_> = step.tool_calls.iter().map(|call| call.tool_call_id.clone()).collect();
        for result in step.observation.iter().flat_map(|seen| &seen.results) {
            assert!(result.source_call_id.as_ref().is_none_or(|id| own.contains(id)));
        }
        assert!(own.iter().all(|id| ids.insert(id.clone())), "{own:?} twice");
    }
    let read: Trajectory = serde_json::from_value(value).unwrap();
    assert_eq!(read, *trajectory);
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(values) => values.iter().any(has_null),
        Value::Object(members) => members.values().any(has_null),
        _ => false,
    }
}

#[test]
fn a_trajectory_has_the_official_steps() {
    let mut episode = Episode::json();
    episode.turn(&json_reply(&["ls\n"], false));
    episode.turn("invalid");
    episode.turn(&json_reply(&["a\n", "b\n"], false));
    episode.give(cut("{\"analysis\""));
    episode.turn(&json_reply(&[], true));
    episode.turn(&json_reply(&["ls\n"], true));
    check(&episode);
    let main = episode.agent.trajectories(&episode.transcript, NAMES).unwrap().main;
    let main = serde_json::to_value(main).unwrap();
    assert_eq!(main["session_id"], "task__abc1234__agent");
    assert_eq!(main["agent"]["name"], "terminus-2");
    assert_eq!(main["agent"]["version"], "2.0.0");
    assert_eq!(main["agent"]["extra"], serde_json::json!({ "parser": "json", "prompt": "own" }));
    let steps = main["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 7);
    assert_eq!(steps[0]["source"], "user");
    assert_eq!(steps[1]["message"], "Analysis: a\nPlan: p");
    assert_eq!(steps[1]["model_name"], "test/model");
    assert_eq!(steps[1]["timestamp"], "2026-11-25T12:00:01Z");
    let call = serde_json::json!({
        "tool_call_id": "call_0_1",
        "function_name": "bash_command",
        "arguments": { "keystrokes": "ls\n", "duration": 0.1 },
    });
    assert_eq!(steps[1]["tool_calls"], serde_json::json!([call]));
    let result = serde_json::json!({ "source_call_id": "call_0_1", "content": "New Terminal Output:\n$ " });
    assert_eq!(steps[1]["observation"]["results"], serde_json::json!([result]));
    let metrics = serde_json::json!({
        "prompt_tokens": 100, "completion_tokens": 10, "cached_tokens": 50, "cost_usd": 0.25, "extra": { "latency_ms": 1500 },
    });
    assert_eq!(steps[1]["metrics"], metrics);
    assert_eq!(steps[2]["message"], "invalid");
    assert!(steps[2]["tool_calls"].is_null());
    assert_eq!(steps[3]["tool_calls"].as_array().unwrap().len(), 2);
    assert!(steps[3]["observation"]["results"][0]["source_call_id"].is_null());
    assert_eq!(steps[4]["message"], "{\"analysis\"");
    assert_eq!(steps[5]["tool_calls"][0]["tool_call_id"], "call_3_task_complete");
    assert_eq!(steps[6]["tool_calls"][0]["tool_call_id"], "call_4_1");
    assert_eq!(steps[6]["tool_calls"][1]["function_name"], "mark_task_complete");
    assert_eq!(main["final_metrics"]["total_prompt_tokens"], 600);
    assert_eq!(main["final_metrics"]["total_cost_usd"], 1.5);
    assert_eq!(main["final_metrics"]["total_steps"], 7);
}

#[test]
fn summaries_have_trajectories_of_their_own() {
    let mut episode =
        Episode::open(Terminus2Settings { context_tokens: 10_000, ..Terminus2Settings::default() });
    episode.give(reply_with(&json_reply(&["ls\n"], false), 5_000));
    episode.give(screen("$ "));
    episode.give(reply("SUMMARY"));
    episode.give(screen("$ "));
    episode.give(reply("QUESTIONS"));
    episode.give(reply("ANSWERS"));
    episode.turn(&json_reply(&["pwd\n"], false));
    check(&episode);
    let trajectories = episode.agent.trajectories(&episode.transcript, NAMES).unwrap();
    let names: Vec<_> = trajectories.aside.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "trajectory.summarization-1-summary.json",
            "trajectory.summarization-1-questions.json",
            "trajectory.summarization-1-answers.json",
        ]
    );
    let (_, questions) = &trajectories.aside[1];
    assert_eq!(questions.session_id.as_deref(), Some("task__abc1234__agent-summarization-1-questions"));
    assert_eq!(questions.agent.name, "terminus-2-summarization-questions");
    assert_eq!(questions.steps[1].message, "QUESTIONS");
    let sources: Vec<_> = trajectories.main.steps.iter().map(|step| step.source).collect();
    use AtifSource::{Agent, System, User};
    assert_eq!(sources, [User, Agent, System, User, Agent]);
    assert!(trajectories.main.steps[3].message.contains("ANSWERS"));
}

#[test]
fn an_episode_that_has_not_begun_has_no_trajectory() {
    let episode = Episode::new(Terminus2Settings::default());
    assert_eq!(episode.agent.trajectories(&episode.transcript, NAMES), None);
}
