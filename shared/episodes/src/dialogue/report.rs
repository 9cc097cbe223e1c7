//! Reports of conversations.

use bench_agents::dialogue::{DialogueMessage, Termination};
use bench_agents::{TrajectoryNames, Transcript, dialogue_trajectory};
use bench_domain::{
    AgentProgress, AgentTotals, DialogueReport, EpisodeLog, EpisodeReport, EpisodeState, EpisodeStep,
    json_text_bytes,
};
use serde_json::Value;

use super::Progress;

/// Maximum size of the messages of a report as JSON, and of its trajectory, in bytes.
const MESSAGES_BYTES_MAX: usize = 6 << 20;
/// Maximum and minimum length to which texts of messages are cut, in bytes.
const TEXT_BYTES_MAX: usize = 64 << 10;
const TEXT_BYTES_MIN: usize = 256;
/// Name of the log with the trajectory.
const TRAJECTORY_LOG: &str = "agent/trajectory.json";

/// Facts about a conversation that its checkpoint doesn't have.
#[derive(Debug, Clone, Copy)]
pub struct DialogueFacts<'a> {
    /// Name of the agent.
    pub agent: &'a str,
    /// Index of the sample among those of its item.
    pub trial: u32,
    /// Seed of both models.
    pub seed: i64,
    /// Name of the measured model, with its provider.
    pub model: &'a str,
    /// Name of the user simulator's model, with its provider.
    pub user_model: &'a str,
    /// Name of the trajectory's session.
    pub session: &'a str,
}

/// Returns the report of a conversation with this end and reward; without them, it can't be graded.
pub fn dialogue_report(
    state: &EpisodeState,
    transcript: &Transcript,
    end: Option<(Termination, Value)>,
    facts: DialogueFacts<'_>,
) -> EpisodeReport {
    let fallback = AgentProgress::new(0);
    let progress = state.agent.as_ref().unwrap_or(&fallback);
    let known: Option<Progress> = serde_json::from_value(progress.state.clone()).ok();
    let messages = transcript.dialogue();
    let opening = transcript.opening();
    let (termination, reward_info) = match end {
        Some((termination, info)) => (termination.as_str().to_owned(), info),
        None => (String::new(), Value::Null),
    };
    let package = opening.map(|opening| match opening.package_version.as_str() {
        "" => String::new(),
        version => format!("tau2 {version} ({})", opening.package_digest),
    });
    let dialogue = DialogueReport {
        termination,
        steps: known.as_ref().map_or(0, |known| known.dialogue.steps),
        errors: known.as_ref().map_or(0, |known| known.dialogue.errors),
        trial: facts.trial,
        seed: facts.seed,
        user_model: facts.user_model.to_owned(),
        package: package.unwrap_or_default(),
        reward: reward_info.get("reward").and_then(Value::as_f64),
        reward_info,
        agent: progress.totals,
        user: known.map_or_else(AgentTotals::default, |known| known.user),
        messages: shown(&messages),
    };
    let log = trajectory_log(&messages, facts);
    EpisodeReport {
        agent: facts.agent.to_owned(),
        round: state.round,
        steps: vec![EpisodeStep { agent_ms: Some(progress.elapsed_ms), ..EpisodeStep::default() }],
        logs: log.into_iter().collect(),
        dialogue: Some(Box::new(dialogue)),
        ..EpisodeReport::default()
    }
}

/// Returns the messages as JSON, with texts cut if they are too long together.
fn shown(messages: &[DialogueMessage]) -> Vec<Value> {
    let mut text_max = TEXT_BYTES_MAX;
    loop {
        let values: Vec<Value> = messages.iter().map(|message| message_json(message, text_max)).collect();
        let bytes = values.iter().map(|value| value.to_string().len()).sum::<usize>();
        if bytes <= MESSAGES_BYTES_MAX {
            return values;
        }
        if text_max <= TEXT_BYTES_MIN {
            return fitting(values);
        }
        text_max /= 2;
    }
}

/// Returns the first messages that fit, and one that says how many follow.
fn fitting(values: Vec<Value>) -> Vec<Value> {
    let (total, mut room, mut kept) = (values.len(), MESSAGES_BYTES_MAX, Vec::new());
    for value in values {
        let bytes = value.to_string().len();
        if bytes > room {
            break;
        }
        room -= bytes;
        kept.push(value);
    }
    kept.push(serde_json::json!({ "omitted_messages": total - kept.len() }));
    kept
}

fn message_json(message: &DialogueMessage, text_max: usize) -> Value {
    let mut cut = message.clone();
    let texts = cut.content.iter_mut().chain(cut.reasoning.iter_mut());
    let mut omitted = 0;
    for text in texts {
        omitted += cut_text(text, text_max);
    }
    let mut json = cut.to_package();
    if let Value::Object(fields) = &mut json {
        let mut set = |name: &str, value: Value| {
            if !value.is_null() {
                fields.insert(name.to_owned(), value);
            }
        };
        set("reasoning", cut.reasoning.into());
        set("model", cut.model.into());
        set("usage", serde_json::to_value(cut.usage).unwrap_or_default());
        set("latency_ms", cut.latency_ms.into());
        set("timestamp", cut.at.into());
        if omitted > 0 {
            set("omitted_bytes", omitted.into());
        }
    }
    if json.to_string().len() > 4 * text_max.max(TEXT_BYTES_MIN) && !message.tool_calls.is_empty() {
        // Very many calls, or very long arguments.
        let calls = message.tool_calls.len();
        let few: Vec<Value> = json["tool_calls"].as_array().into_iter().flatten().take(20).cloned().collect();
        let few: Vec<Value> = few.into_iter().filter(|call| call.to_string().len() <= text_max).collect();
        json["omitted_tool_calls"] = (calls - few.len()).into();
        json["tool_calls"] = few.into();
    }
    json
}

/// Cuts a text, and returns the number of bytes that are left out.
fn cut_text(text: &mut String, bytes_max: usize) -> usize {
    let end = text.floor_char_boundary(bytes_max);
    let omitted = text.len() - end;
    text.truncate(end);
    omitted
}

/// Returns the trajectory, with texts cut if it is too long; `None` if it is too long even so.
fn trajectory_log(messages: &[DialogueMessage], facts: DialogueFacts<'_>) -> Option<EpisodeLog> {
    let mut text_max = usize::MAX;
    loop {
        let cut: Vec<DialogueMessage> = messages
            .iter()
            .map(|message| {
                let mut message = message.clone();
                message.content.iter_mut().for_each(|text| {
                    cut_text(text, text_max);
                });
                message
            })
            .collect();
        let names = TrajectoryNames { session: facts.session, model: facts.model };
        let trajectory = dialogue_trajectory(facts.agent, facts.user_model, &cut, names);
        let text = serde_json::to_string_pretty(&trajectory).ok()?;
        if json_text_bytes(&text) <= MESSAGES_BYTES_MAX {
            let bytes = text.len() as u64;
            return Some(EpisodeLog { name: TRAJECTORY_LOG.to_owned(), text, bytes, omitted: 0 });
        }
        if text_max <= TEXT_BYTES_MIN {
            return None;
        }
        text_max = text_max.min(2 * TEXT_BYTES_MAX) / 2;
    }
}

#[cfg(test)]
mod tests {
    use bench_agents::Part;
    use bench_agents::dialogue::{DialogueCall, DialogueOpening, Party};

    use super::*;

    fn facts() -> DialogueFacts<'static> {
        let (model, user_model) = ("openrouter/a", "openrouter/u");
        DialogueFacts { agent: "llm_agent", trial: 1, seed: 7, model, user_model, session: "s" }
    }

    fn report_of(messages: Vec<DialogueMessage>) -> EpisodeReport {
        let mut transcript = Transcript::default();
        let opening = DialogueOpening { package_version: "1.0.1".into(), ..DialogueOpening::default() };
        transcript.extend([Part::Opening(Box::new(opening))]);
        transcript.extend(messages.into_iter().map(|message| Part::Dialogue(Box::new(message))));
        let end = Some((Termination::UserStop, serde_json::json!({ "reward": 1.0 })));
        dialogue_report(&EpisodeState::new(2, "n"), &transcript, end, facts())
    }

    #[test]
    fn a_report_has_messages_reward_and_a_trajectory() {
        let report = report_of(vec![DialogueMessage::text(Party::Agent, "Hi")]);
        let dialogue = report.dialogue.as_ref().unwrap();
        assert_eq!(
            (dialogue.reward, dialogue.termination.as_str(), report.round),
            (Some(1.0), "user_stop", 2)
        );
        assert_eq!(dialogue.messages[0]["content"], "Hi");
        assert_eq!(dialogue.package, "tau2 1.0.1 ()");
        assert!(report.log(TRAJECTORY_LOG).unwrap().text.contains("ATIF-v1.8"));
    }

    #[test]
    fn very_many_calls_and_long_results_stay_within_the_limit() {
        let call = DialogueCall {
            id: "c".into(),
            name: "look".into(),
            arguments: format!("{{\"x\": \"{}\"}}", "y".repeat(90)),
            requestor: Party::User,
        };
        let mut calling = DialogueMessage::text(Party::User, "");
        calling.tool_calls = vec![call.clone(); 10_000];
        let results = (0..10_000).map(|_| DialogueMessage::result(&call, "z".repeat(2_000), false));
        let report = report_of(std::iter::once(calling).chain(results).collect());
        let dialogue = report.dialogue.as_ref().unwrap();
        assert!(serde_json::to_string(&report).unwrap().len() < 3 * MESSAGES_BYTES_MAX);
        assert_eq!(dialogue.messages[0]["omitted_tool_calls"], 9_980);
        assert!(dialogue.messages.len() > 5_000, "{}", dialogue.messages.len());
    }
}
