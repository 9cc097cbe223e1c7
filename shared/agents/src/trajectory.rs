//! Trajectories, built from transcripts.

mod dialogue;

use serde_json::{Map, Value};

use crate::atif::{
    ATIF_VERSION, AtifAgent, AtifObservation, AtifResult, AtifSource, AtifStep, FinalMetrics, Metrics,
    Trajectory,
};
use crate::transcript::{Message, Part, Reply, Transcript};
use crate::usage::Usage;

pub use dialogue::dialogue_trajectory;

/// Names in a trajectory that the transcript doesn't have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrajectoryNames<'a> {
    /// Session, such as `TRIAL__agent`.
    pub session: &'a str,
    /// Model.
    pub model: &'a str,
}

/// Trajectory with those that it refers to, as files.
#[derive(Debug, Clone, PartialEq)]
pub struct Trajectories {
    /// Trajectory of the episode, `trajectory.json`.
    pub main: Trajectory,
    /// Trajectories of calls beside the conversation, by file name.
    pub aside: Vec<(String, Trajectory)>,
}

/// Collects the steps of a trajectory.
pub(crate) struct Builder<'a> {
    pub(crate) names: TrajectoryNames<'a>,
    pub(crate) steps: Vec<AtifStep>,
}

impl<'a> Builder<'a> {
    pub(crate) const fn new(names: TrajectoryNames<'a>) -> Self {
        Self { names, steps: Vec::new() }
    }

    /// Adds an empty step.
    pub(crate) fn add(
        &mut self,
        source: AtifSource,
        message: String,
        timestamp: Option<String>,
    ) -> &mut AtifStep {
        let step_id = self.steps.len() + 1;
        self.steps.push(AtifStep {
            step_id,
            timestamp,
            source,
            message,
            model_name: None,
            reasoning_content: None,
            tool_calls: Vec::new(),
            observation: None,
            metrics: None,
            llm_call_count: None,
            extra: Map::new(),
        });
        let last = self.steps.len() - 1;
        &mut self.steps[last]
    }

    pub(crate) fn add_message(&mut self, message: &Message) {
        self.add(AtifSource::User, message.text.clone(), message.at.clone());
    }

    /// Adds a step of the agent, with the metrics of its reply.
    pub(crate) fn add_reply(&mut self, reply: &Reply, text: String) -> &mut AtifStep {
        let model = reply.model.clone().unwrap_or_else(|| self.names.model.to_owned());
        let step = self.add(AtifSource::Agent, text, reply.at.clone());
        step.model_name = Some(model);
        step.reasoning_content.clone_from(&reply.reasoning);
        step.metrics = Some(metrics(reply));
        step
    }

    /// Completes the trajectory of an agent.
    pub(crate) fn finish(self, agent: AtifAgent, session: String, used: Usage) -> Trajectory {
        let final_metrics = FinalMetrics {
            total_prompt_tokens: used.input_tokens,
            total_completion_tokens: used.output_tokens,
            total_cached_tokens: used.cached_tokens,
            total_cost_usd: positive(used.cost_usd),
            total_steps: self.steps.len(),
        };
        Trajectory {
            schema_version: ATIF_VERSION.to_owned(),
            session_id: Some(session),
            agent,
            steps: self.steps,
            final_metrics: Some(final_metrics),
            extra: Map::new(),
        }
    }
}

/// Returns the observation of a step.
pub(crate) fn observed(source_call_id: Option<String>, content: String) -> AtifObservation {
    AtifObservation {
        results: vec![AtifResult {
            source_call_id,
            content: Some(content),
            subagent_trajectory_ref: Vec::new(),
        }],
    }
}

/// Returns the sum over all replies of a transcript.
pub(crate) fn total(transcript: &Transcript) -> Usage {
    let replies = transcript.parts().iter().filter_map(|part| match part {
        Part::Reply(reply) => Some(reply.usage),
        _ => None,
    });
    replies.fold(Usage::default(), Usage::plus)
}

fn metrics(reply: &Reply) -> Metrics {
    let usage = reply.usage;
    Metrics {
        prompt_tokens: usage.input_tokens,
        completion_tokens: usage.output_tokens,
        cached_tokens: (usage.cached_tokens > 0).then_some(usage.cached_tokens),
        cost_usd: positive(usage.cost_usd),
        extra: Map::from_iter([("latency_ms".to_owned(), Value::from(reply.latency_ms))]),
    }
}

fn positive(cost: f64) -> Option<f64> {
    (cost.is_finite() && cost > 0.0).then_some(cost)
}
