//! Trajectories of `bash`.

use serde_json::{Map, Value};

use super::{Action, BashAgent, parse_action};
use crate::atif::{AtifAgent, AtifSource, AtifStep, ToolCall, Trajectory};
use crate::texts::TextSource;
use crate::trajectory::{Builder, TrajectoryNames, observed, total};
use crate::transcript::{Part, Purpose, Reply, Transcript};

const NAME: &str = "bash";
const VERSION: &str = "1.0.0";

impl BashAgent {
    /// Builds the trajectory of an episode: an action per turn, with the message that follows it as its observation.
    /// Returns `None` before the first message.
    pub fn trajectory(&self, transcript: &Transcript, names: TrajectoryNames<'_>) -> Option<Trajectory> {
        let mut builder = Builder::new(names);
        for part in transcript.parts() {
            match part {
                Part::Message(message) if message.purpose == Purpose::Task => builder.add_message(message),
                Part::Message(message) => {
                    let Some(step) = builder.steps.last_mut().filter(|step| step.source == AtifSource::Agent)
                    else {
                        continue;
                    };
                    observe(step, message.text.clone());
                }
                Part::Reply(reply) => {
                    let calls = tool_calls(reply);
                    builder.add_reply(reply, reply.text.clone()).tool_calls = calls;
                }
                Part::Failure(_)
                | Part::Shorten { .. }
                | Part::Replace { .. }
                | Part::Opening(_)
                | Part::Dialogue(_) => {}
            }
        }
        if builder.steps.is_empty() {
            return None;
        }
        let agent = AtifAgent {
            name: NAME.to_owned(),
            version: VERSION.to_owned(),
            model_name: Some(names.model.to_owned()),
            extra: Map::from_iter([("prompt".to_owned(), Value::from(TextSource::Own.as_str()))]),
        };
        Some(builder.finish(agent, names.session.to_owned(), total(transcript)))
    }
}

fn observe(step: &mut AtifStep, text: String) {
    let source = step.tool_calls.first().map(|call| call.tool_call_id.clone());
    step.observation = Some(observed(source, text));
}

/// Returns the action of a reply; none if it has no valid form, or was cut.
fn tool_calls(reply: &Reply) -> Vec<ToolCall> {
    let (function_name, arguments) = match parse_action(&reply.text) {
        _ if reply.is_cut => return Vec::new(),
        Ok(Action::Run(script)) => ("bash", Map::from_iter([("command".to_owned(), Value::from(script))])),
        Ok(Action::Finish) => ("finish", Map::new()),
        Err(_) => return Vec::new(),
    };
    let function_name = function_name.to_owned();
    vec![ToolCall { tool_call_id: format!("call_{}", reply.turn), function_name, arguments }]
}
