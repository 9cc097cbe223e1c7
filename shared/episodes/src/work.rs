//! Work of an agent that asks a model, as the checkpoint of a running episode shows it.

use bench_domain::{AgentOutcome, AgentTotals, EpisodeState};

use crate::dialogue;
use crate::phases::{has_ended, step_of};

/// Work of an agent on a step of the task.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AgentWork {
    /// Index of the task's step, from 0.
    pub task_step: usize,
    /// Number of stored records of the agent's transcript.
    pub records: u32,
    /// Tokens, cost and time that the agent has used.
    pub totals: AgentTotals,
    /// False once the agent has ended, while its work is verified or the next step is prepared.
    pub is_open: bool,
}

/// Returns the work of the agent on the last step that it began; `None` before its first one, and for agents that ask no model.
pub fn agent_work(state: &EpisodeState) -> Option<AgentWork> {
    if let Some(agent) = &state.agent {
        let (task_step, records, totals) = (agent.task_step, agent.records, agent.totals);
        return Some(AgentWork {
            task_step,
            records,
            totals,
            is_open: !has_ended(agent) && !dialogue::has_ended(agent),
        });
    }
    let ended = state.done.iter().filter_map(|(key, value)| {
        let task_step = step_of(key)?;
        let AgentOutcome { records, totals, .. } = serde_json::from_value(value.clone()).ok()?;
        Some(AgentWork { task_step, records, totals, is_open: false })
    });
    ended.max_by_key(|work| work.task_step)
}

#[cfg(test)]
mod tests {
    use bench_agents::End;
    use bench_agents::bash::{BashAgent, BashSettings};
    use bench_domain::AgentProgress;

    use super::*;

    #[test]
    fn the_last_step_that_the_agent_began_counts() {
        let mut state = EpisodeState::new(1, "n");
        assert_eq!(agent_work(&state), None);
        let outcome = |records, turns| AgentOutcome {
            end: "completed".into(),
            exception: None,
            prompt: "own".into(),
            elapsed_ms: 1,
            totals: AgentTotals { turns, ..AgentTotals::default() },
            records,
        };
        for (step, records) in [(2, 30), (10, 40)] {
            state.done.insert(format!("s{step}-agent"), serde_json::to_value(outcome(records, 7)).unwrap());
        }
        // Results of other operations, which may have similar names.
        state.done.insert("s11-agent".into(), serde_json::json!({ "exit_code": 0 }));
        state.done.insert("setup-ms".into(), serde_json::json!(12));
        let work = agent_work(&state).unwrap();
        assert_eq!((work.task_step, work.records, work.totals.turns, work.is_open), (10, 40, 7, false));
        state.agent = Some(AgentProgress { records: 3, ..AgentProgress::new(11) });
        let work = agent_work(&state).unwrap();
        assert_eq!((work.task_step, work.records, work.is_open), (11, 3, true));
        let started = BashAgent::new(BashSettings::new("/app"), "go").start().state;
        let mut saved = serde_json::to_value(started).unwrap();
        saved["agent"] = "bash".into();
        state.agent = Some(AgentProgress { state: saved.clone(), ..AgentProgress::new(11) });
        assert!(agent_work(&state).unwrap().is_open);
        saved["phase"] = serde_json::json!({ "phase": "ended", "end": End::Completed });
        state.agent = Some(AgentProgress { state: saved, ..AgentProgress::new(11) });
        assert!(!agent_work(&state).unwrap().is_open);
    }
}
