//! Trajectories of `terminus-2`.

use serde_json::{Map, Value, json};

use super::machine::NO_REPLY;
use super::{ParsedReply, Terminus2, parse_reply};
use crate::atif::{AtifAgent, AtifObservation, AtifResult, AtifSource, AtifStep, SubagentRef, ToolCall};
use crate::trajectory::{Builder, Trajectories, TrajectoryNames, observed, total};
use crate::transcript::{Message, Part, Purpose, Reply, Transcript};

/// Name and version of the agent that this one equals.
const NAME: &str = "terminus-2";
const VERSION: &str = "2.0.0";
/// Calls of a summary: their names in files and sessions, and the purposes of their messages.
const SUMMARY_CALLS: [(&str, Purpose); 3] =
    [("summary", Purpose::Summary), ("questions", Purpose::Questions), ("answers", Purpose::Answers)];

impl Terminus2 {
    /// Builds the trajectories of an episode, in the form in which Harbor 0.25.0 writes them.
    ///
    /// Returns `None` before the first message. They differ from Harbor's in these points:
    ///
    /// - A reply that the length limit cut is a step of its own, so that its tokens are in the metrics.
    /// - Trajectories of summaries contain their own messages only, not copies of the conversation.
    /// - The totals include the calls for summaries.
    pub fn trajectories(&self, transcript: &Transcript, names: TrajectoryNames<'_>) -> Option<Trajectories> {
        let mut course = Course {
            agent: self,
            main: Builder::new(names),
            aside: Vec::new(),
            summaries: 0,
            calls: Vec::new(),
        };
        for part in transcript.parts() {
            match part {
                Part::Message(message) => course.add_message(message),
                Part::Reply(reply) if reply.is_aside => course.add_aside(reply),
                Part::Reply(reply) => course.add_reply(reply),
                Part::Failure(_)
                | Part::Shorten { .. }
                | Part::Replace { .. }
                | Part::Opening(_)
                | Part::Dialogue(_) => {}
            }
        }
        if course.main.steps.is_empty() {
            return None;
        }
        let main =
            course.main.finish(self.atif_agent(NAME, names), names.session.to_owned(), total(transcript));
        Some(Trajectories { main, aside: course.aside })
    }

    fn atif_agent(&self, name: &str, names: TrajectoryNames<'_>) -> AtifAgent {
        let extra =
            json!({ "parser": self.settings().format.as_str(), "prompt": self.text_source().as_str() });
        AtifAgent {
            name: name.to_owned(),
            version: VERSION.to_owned(),
            model_name: Some(names.model.to_owned()),
            extra: object(extra),
        }
    }
}

/// Trajectories that are being built.
struct Course<'a> {
    agent: &'a Terminus2,
    main: Builder<'a>,
    aside: Vec<(String, crate::atif::Trajectory)>,
    /// Summaries that were begun.
    summaries: u32,
    /// Messages of the summary that weren't answered yet, and those that were, with their replies.
    calls: Vec<(Message, Option<Reply>)>,
}

impl Course<'_> {
    fn add_message(&mut self, message: &Message) {
        match message.purpose {
            Purpose::Task => self.main.add_message(message),
            Purpose::Observation | Purpose::Confirmation | Purpose::FormatError | Purpose::OutputCut => {
                self.add_observation(message);
            }
            Purpose::HandOver => self.add_hand_over(message),
            Purpose::Summary => {
                self.summaries += 1;
                self.calls = vec![(message.clone(), None)];
            }
            Purpose::Questions | Purpose::Answers => self.calls.push((message.clone(), None)),
            Purpose::ShortSummary => self.calls = vec![(message.clone(), None)],
        }
    }

    fn add_aside(&mut self, reply: &Reply) {
        if let Some((_, answer)) = self.calls.last_mut() {
            *answer = Some(reply.clone());
        }
    }

    /// Adds a step of the agent. Its actions are known from the reply.
    fn add_reply(&mut self, reply: &Reply) {
        let parsed = parse_reply(self.agent.settings().format, reply.used_text());
        let is_executed = parsed.error.is_empty() && (!reply.is_cut || reply.used_bytes.is_some());
        let text = if is_executed { thoughts(&parsed) } else { reply.text.clone() };
        let step = self.main.add_reply(reply, text);
        if is_executed {
            step.tool_calls = tool_calls(&parsed, reply.turn.saturating_sub(1));
        }
    }

    /// Adds what the model is shown to the step that it follows.
    fn add_observation(&mut self, message: &Message) {
        let is_answered = |step: &AtifStep| step.source == AtifSource::Agent && step.observation.is_none();
        if !self.main.steps.last().is_some_and(is_answered) {
            // The model couldn't be asked.
            let step = self.main.add(AtifSource::Agent, NO_REPLY.to_owned(), message.at.clone());
            step.llm_call_count = Some(0);
        }
        let Some(step) = self.main.steps.last_mut() else { return };
        let commands = step.tool_calls.iter().filter(|call| call.function_name == "bash_command");
        let ids: Vec<_> = commands.map(|call| call.tool_call_id.clone()).collect();
        // Several commands have one observation.
        let source = <[String; 1]>::try_from(ids).ok().map(|[id]| id);
        step.observation = Some(observed(source, message.text.clone()));
    }

    /// Adds the message after a summary, and, if that is a full one, its trajectories.
    fn add_hand_over(&mut self, message: &Message) {
        let calls = std::mem::take(&mut self.calls);
        let is_full =
            calls.iter().map(|(request, _)| request.purpose).eq(SUMMARY_CALLS.map(|(_, purpose)| purpose));
        if is_full {
            let number = self.summaries;
            let references = SUMMARY_CALLS.iter().zip(&calls).map(|((name, _), (request, reply))| {
                let session = format!("{}-summarization-{number}-{name}", self.main.names.session);
                let path = format!("trajectory.summarization-{number}-{name}.json");
                let agent = format!("{NAME}-summarization-{name}");
                let mut builder = Builder::new(self.main.names);
                builder.add_message(request);
                let used = reply.as_ref().map(|reply| reply.usage).unwrap_or_default();
                if let Some(reply) = reply {
                    builder.add_reply(reply, reply.text.clone());
                }
                let agent = self.agent.atif_agent(&agent, self.main.names);
                self.aside.push((path.clone(), builder.finish(agent, session.clone(), used)));
                SubagentRef { trajectory_path: path, session_id: Some(session) }
            });
            let subagent_trajectory_ref = references.collect();
            let text = "The conversation was summarized and continues from the summary.".to_owned();
            let step = self.main.add(AtifSource::System, text, message.at.clone());
            let result = AtifResult { subagent_trajectory_ref, ..AtifResult::default() };
            step.observation = Some(AtifObservation { results: vec![result] });
            step.extra =
                object(json!({ "context_management": { "type": "compaction", "boundary": "replace" } }));
        }
        self.main.add_message(message);
    }
}

/// Returns analysis and plan, each if it isn't empty.
fn thoughts(parsed: &ParsedReply) -> String {
    let parts = [("Analysis", &parsed.analysis), ("Plan", &parsed.plan)];
    let lines =
        parts.iter().filter(|(_, text)| !text.is_empty()).map(|(name, text)| format!("{name}: {text}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the actions of an episode, which Harbor counts from 0.
fn tool_calls(parsed: &ParsedReply, episode: u32) -> Vec<ToolCall> {
    let commands = parsed.commands.iter().enumerate().map(|(index, command)| {
        let keystrokes = command.keystrokes();
        ToolCall {
            tool_call_id: format!("call_{episode}_{}", index + 1),
            function_name: "bash_command".to_owned(),
            arguments: object(json!({ "keystrokes": keystrokes.keys, "duration": keystrokes.duration_s })),
        }
    });
    let complete = parsed.is_complete.then(|| ToolCall {
        tool_call_id: format!("call_{episode}_task_complete"),
        function_name: "mark_task_complete".to_owned(),
        arguments: Map::new(),
    });
    commands.chain(complete).collect()
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}
