//! Steps of `terminus-2`.

mod moves;
mod summary;

pub(super) use self::moves::NO_REPLY;

use self::moves::Moves;
use super::state::{Phase, Stage, Terminus2State};
use super::texts::Templates;
use super::{Terminus2Settings, Terminus2Texts, parse_reply};
use crate::conversation::Conversation;
use crate::keys::Keystrokes;
use crate::model::ModelCall;
use crate::step::{Act, Observation, Seen, Step, StepError, check_transcript};
use crate::template::TemplateError;
use crate::texts::TextSource;
use crate::transcript::{Purpose, Transcript};

/// Agent `terminus-2`: it types keystrokes into a terminal, and shows the model what appears.
///
/// All methods are pure: the same arguments give the same results, so a step can be repeated after a crash.
#[derive(Debug, Clone)]
pub struct Terminus2 {
    settings: Terminus2Settings,
    templates: Templates,
    source: TextSource,
    task: TaskText,
}

/// What a task says to the agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskText {
    /// Instruction.
    pub instruction: String,
    /// Lists of MCP servers and skills, which follow the instruction in the first message, but not in summaries.
    pub additions: String,
}

impl From<&str> for TaskText {
    fn from(instruction: &str) -> Self {
        Self { instruction: instruction.to_owned(), additions: String::new() }
    }
}

impl Terminus2 {
    /// Creates the agent for a task.
    ///
    /// # Errors
    /// If a template lacks a field, or has another one.
    pub fn new(
        settings: Terminus2Settings,
        texts: &Terminus2Texts,
        task: impl Into<TaskText>,
    ) -> Result<Self, TemplateError> {
        let templates = Templates::new(texts)?;
        Ok(Self { settings, templates, source: texts.source, task: task.into() })
    }

    /// Returns the settings.
    pub const fn settings(&self) -> &Terminus2Settings {
        &self.settings
    }

    /// Returns the origin of the messages.
    pub const fn text_source(&self) -> TextSource {
        self.source
    }

    /// Returns the first state, and the beginning of the transcript, which is empty.
    pub const fn start(&self) -> Step<Terminus2State> {
        Step { state: Terminus2State::new(), parts: Vec::new() }
    }

    /// Returns what the agent needs next.
    ///
    /// # Errors
    /// If state and transcript don't belong together.
    pub fn act(&self, state: &Terminus2State, transcript: &Transcript) -> Result<Act, StepError> {
        check_transcript(state.parts, transcript)?;
        let aside = |purpose, before: Vec<usize>| {
            let parts = before.into_iter().chain(transcript.last_message(purpose)).collect();
            Act::AskModel(ModelCall { parts })
        };
        Ok(match &state.phase {
            Phase::Ended { end } => Act::End(end.clone()),
            Phase::Opening => Act::Type(Vec::new()),
            Phase::Acting => Act::Type(self.keystrokes(transcript)),
            Phase::Asking { .. } => {
                let conversation = Conversation::new(transcript, &[]);
                let pending = conversation.pending;
                Act::AskModel(ModelCall { parts: conversation.parts().into_iter().chain(pending).collect() })
            }
            Phase::Summarizing { stage, .. } => match stage {
                Stage::Screen | Stage::ShortScreen => Act::Look,
                Stage::Summary => aside(Purpose::Summary, Conversation::new(transcript, &[]).parts()),
                Stage::Questions => aside(Purpose::Questions, Vec::new()),
                Stage::ShortSummary { .. } => aside(Purpose::ShortSummary, Vec::new()),
                Stage::Answers => {
                    let mut before = Conversation::new(transcript, &[]).parts();
                    // The request for the summary, and the reply that follows it.
                    before.extend(
                        transcript.last_message(Purpose::Summary).into_iter().flat_map(|at| [at, at + 1]),
                    );
                    aside(Purpose::Answers, before)
                }
            },
        })
    }

    /// Takes an observation, and returns the next state and what is added to the transcript.
    ///
    /// # Errors
    /// If state and transcript don't belong together, or the observation answers another step or another act.
    pub fn step(
        &self,
        state: &Terminus2State,
        transcript: &Transcript,
        observation: Observation,
    ) -> Result<Step<Terminus2State>, StepError> {
        check_transcript(state.parts, transcript)?;
        if observation.step != state.step || state.end().is_some() {
            return Err(StepError::OtherStep { given: observation.step, expected: state.step });
        }
        let mut moves = Moves::new(self, state, transcript, observation.elapsed_ms, observation.at);
        let given = observation.seen.kind();
        let expected = match (&state.phase, observation.seen) {
            (Phase::Opening, Seen::Terminal(terminal)) => return Ok(moves.open(&terminal)),
            (Phase::Acting, Seen::Terminal(terminal)) => return Ok(moves.observe(&terminal)),
            (Phase::Asking { is_last_attempt }, Seen::Reply(reply)) => {
                return Ok(moves.read(reply.bounded(), *is_last_attempt));
            }
            (Phase::Asking { is_last_attempt }, Seen::ModelFailed(failure)) => {
                return Ok(moves.fail(failure.bounded(), *is_last_attempt));
            }
            (Phase::Summarizing { cause, stage }, seen) => {
                if let Some(step) = moves.summarize(*cause, stage, seen) {
                    return Ok(step);
                }
                match stage {
                    Stage::Screen | Stage::ShortScreen => "the terminal",
                    _ => "a reply of the model",
                }
            }
            (Phase::Opening | Phase::Acting, _) => "the terminal",
            (Phase::Asking { .. } | Phase::Ended { .. }, _) => "a reply of the model",
        };
        Err(StepError::OtherKind { step: state.step, expected, given })
    }

    fn keystrokes(&self, transcript: &Transcript) -> Vec<Keystrokes> {
        let reply = transcript.last_reply().map_or("", |reply| reply.used_text());
        parse_reply(self.settings.format, reply).commands.iter().map(|command| command.keystrokes()).collect()
    }
}
