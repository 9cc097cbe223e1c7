//! Results of episodes of terminal tasks. Containers have written all of it: texts are limited and only shown as text.

use bench_domain::{DialogueReport, EpisodeException, EpisodeReport, EpisodeStep};
use serde_json::{Map, Value, json};

use super::clean::{clean, clean_value, object};
use super::execution::{beginning, end_of};

/// Maximum size of the end of a log, and of all of them together, in bytes.
pub(super) const LOG_BYTES_MAX: usize = 16 * 1024;
pub(super) const LOGS_BYTES_MAX: usize = 96 * 1024;
/// Maximum number of logs and of steps.
pub(super) const LOGS_MAX: usize = 100;
const STEPS_MAX: usize = 100;
const NAME_BYTES_MAX: usize = 256;
const MESSAGE_BYTES_MAX: usize = 2_000;

/// Returns the result of an episode: agent, engine, steps with their rewards, and the ends of its logs.
pub(super) fn episode_results(report: &EpisodeReport) -> Map<String, Value> {
    let mut left = LOGS_BYTES_MAX;
    let logs = report.logs.iter().take(LOGS_MAX).map(|log| {
        let shown = end_of(&log.text, LOG_BYTES_MAX.min(left));
        left -= shown.len();
        let is_cut = shown.len() < log.text.len();
        json!({ "name": name(&log.name), "bytes": log.bytes, "end": clean(shown), "cut": is_cut })
    });
    let logs: Vec<Value> = logs.collect();
    let mut fields = object(json!({
        "agent": name(&report.agent),
        "engine": name(&report.engine),
        "round": report.round,
        "rewards": report.rewards,
        "setup_ms": report.setup_ms,
        "exception": report.exception.as_ref().map(exception),
        "episode_steps": report.steps.iter().take(STEPS_MAX).map(step).collect::<Vec<_>>(),
        "test_output": clean(&report.test_output),
        "logs": logs,
    }));
    if let Some(dialogue) = &report.dialogue {
        fields.insert("dialogue".to_owned(), conversation(dialogue));
    }
    fields
}

/// Returns a conversation: its messages in the form of the official package, and its reward with all parts.
fn conversation(report: &DialogueReport) -> Value {
    clean_value(json!({
        "termination": report.termination,
        "messages": report.messages,
        "steps": report.steps,
        "errors": report.errors,
        "trial": report.trial,
        "seed": report.seed,
        "user_model": report.user_model,
        "package": report.package,
        "reward": report.reward,
        "reward_info": report.reward_info,
        "agent": report.agent,
        "user": report.user,
    }))
}

fn step(step: &EpisodeStep) -> Value {
    json!({
        "name": step.name.as_deref().map(name),
        "rewards": step.rewards,
        "exception": step.exception.as_ref().map(exception),
        "agent_ms": step.agent_ms,
        "verifier_ms": step.verifier_ms,
        "tests": step.tests,
    })
}

pub(super) fn exception(exception: &EpisodeException) -> Value {
    json!({ "name": name(&exception.name), "message": clean(beginning(&exception.message, MESSAGE_BYTES_MAX)) })
}

pub(super) fn name(text: &str) -> String {
    clean(beginning(text, NAME_BYTES_MAX))
}

#[cfg(test)]
mod tests {
    use bench_domain::EpisodeLog;

    use super::*;

    #[test]
    fn long_logs_show_their_end() {
        let log = |name: &str, text: String| EpisodeLog {
            name: name.to_owned(),
            bytes: text.len() as u64,
            text,
            omitted: 0,
        };
        let logs = (0..20).map(|at| log(&format!("agent/{at}.txt"), format!("{}end", "x".repeat(20_000))));
        let report = EpisodeReport {
            agent: "oracle".to_owned(),
            rewards: Some([("reward".to_owned(), 0.5)].into()),
            logs: logs.collect(),
            ..EpisodeReport::default()
        };
        let shown = episode_results(&report);
        assert_eq!((&shown["agent"], &shown["rewards"]["reward"]), (&json!("oracle"), &json!(0.5)));
        let logs = shown["logs"].as_array().unwrap();
        assert!(logs[0]["end"].as_str().unwrap().ends_with("xend") && logs[0]["cut"] == true);
        assert!(logs.iter().map(|log| log["end"].as_str().unwrap().len()).sum::<usize>() <= LOGS_BYTES_MAX);
        assert_eq!(logs[19]["bytes"], 20_003);
    }
}
