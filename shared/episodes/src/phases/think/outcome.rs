//! Ends of agents, as Harbor names them, and what they used.

use std::time::Duration;

use bench_agents::{End, Seen, TextSource};
use bench_domain::{AgentOutcome, AgentProgress, AgentTotals, EpisodeException, EpisodeReport, EpisodeStep};
use bench_terminal_tasks::Exception;
use serde_json::Value;

use crate::stop::Stop;
use crate::thinker::REFUSED;

/// Name of the end of an agent that can't ask its model.
const MODEL_FAILED: &str = "model_failed";

/// Returns the outcome of an agent that has ended.
pub(crate) fn outcome(
    end: &End,
    limit: Duration,
    progress: &AgentProgress,
    source: TextSource,
) -> AgentOutcome {
    let message = match end {
        End::TimeLimit => format!("the agent did not end within its {} s", limit.as_secs()),
        End::ModelFailed { message } => message.clone(),
        End::TokenLimit => "the agent's budget of tokens is spent".to_owned(),
        End::CostLimit => "the agent's budget of dollars is spent".to_owned(),
        End::ContextExceeded => "the conversation doesn't fit into the model's context".to_owned(),
        End::OutputExceeded => "too many replies in a row were cut by the length limit".to_owned(),
        End::Completed | End::TurnLimit | End::FormatErrors | End::TerminalEnded => String::new(),
    };
    let is_refused = matches!(end, End::ModelFailed { message } if message.starts_with(REFUSED));
    let exception = if is_refused { Some("ContentPolicyViolationError") } else { end.exception() };
    let exception = exception.map(|name| EpisodeException { name: name.to_owned(), message });
    AgentOutcome {
        end: name(end),
        exception,
        prompt: source.as_str().to_owned(),
        elapsed_ms: progress.elapsed_ms,
        totals: progress.totals,
        records: progress.records,
    }
}

/// Adds the work of an agent that has ended to the report, as the episode's only step.
///
/// # Errors
/// Returns the stop of an episode whose agent's work isn't verified.
pub(crate) fn report(report: &mut EpisodeReport, outcome: AgentOutcome) -> Result<(), Stop> {
    let failure = failure(&outcome);
    report.steps.push(EpisodeStep {
        agent_ms: Some(outcome.elapsed_ms),
        exception: outcome.exception.clone(),
        agent: Some(outcome),
        ..EpisodeStep::default()
    });
    failure.map_or(Ok(()), Err)
}

/// Returns the stop of an episode whose agent's work isn't verified.
pub(crate) fn failure(outcome: &AgentOutcome) -> Option<Stop> {
    let exception = outcome.exception.clone().filter(|_| outcome.end == MODEL_FAILED)?;
    (!Exception::of(&exception.name).is_verified).then_some(Stop::Exception(exception, None))
}

/// Adds a model call to the sums.
pub(crate) fn count(totals: &mut AgentTotals, seen: &Seen) {
    match seen {
        Seen::Reply(reply) => {
            let usage = reply.usage;
            totals.calls = totals.calls.saturating_add(1);
            totals.input_tokens = totals.input_tokens.saturating_add(usage.input_tokens);
            totals.cached_tokens = totals.cached_tokens.saturating_add(usage.cached_tokens);
            totals.output_tokens = totals.output_tokens.saturating_add(usage.output_tokens);
            if usage.cost_usd.is_finite() {
                totals.cost_usd += usage.cost_usd.max(0.0);
            }
            totals.model_ms = totals.model_ms.saturating_add(reply.latency_ms);
        }
        Seen::ModelFailed(failure) => {
            totals.model_ms = totals.model_ms.saturating_add(failure.latency_ms);
        }
        Seen::Terminal(_) | Seen::Command(_) => {}
    }
}

/// Returns the name of an end in results.
fn name(end: &End) -> String {
    let value = serde_json::to_value(end).unwrap_or_default();
    value.get("end").and_then(Value::as_str).unwrap_or_default().to_owned()
}
