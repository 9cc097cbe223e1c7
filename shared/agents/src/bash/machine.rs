//! Steps of `bash`.

use super::state::{BashState, Phase};
use super::{Action, BashSettings, parse_action, texts};
use crate::conversation::Conversation;
use crate::end::End;
use crate::model::{ModelCall, ModelFailureKind, ModelReply};
use crate::step::{Act, BashCommand, Observation, Seen, Step, StepError, check_transcript};
use crate::transcript::{Message, Part, Purpose, Reply, Transcript};
use crate::usage::Usage;

/// Agent `bash`. All methods are pure, as those of [`Terminus2`](crate::terminus2::Terminus2).
#[derive(Debug, Clone)]
pub struct BashAgent {
    settings: BashSettings,
    instruction: String,
}

impl BashAgent {
    /// Creates the agent for a task.
    pub fn new(settings: BashSettings, instruction: impl Into<String>) -> Self {
        Self { settings, instruction: instruction.into() }
    }

    /// Tells the agent that processes end with the command that started them.
    #[must_use]
    pub fn without_processes(mut self) -> Self {
        self.settings.keeps_processes = false;
        self
    }

    /// Returns the settings.
    pub const fn settings(&self) -> &BashSettings {
        &self.settings
    }

    /// Returns the first state, and the beginning of the transcript.
    pub fn start(&self) -> Step<BashState> {
        let state = BashState {
            step: 0,
            parts: 0,
            turn: 0,
            phase: Phase::Asking,
            used: Usage::default(),
            format_errors: 0,
        };
        let mut moves = Moves { agent: self, state, parts: Vec::new(), elapsed_ms: 0, at: None };
        moves.say(Purpose::Task, texts::task(&self.settings, &self.instruction));
        moves.begin_turn()
    }

    /// Returns what the agent needs next.
    ///
    /// # Errors
    /// If state and transcript don't belong together.
    pub fn act(&self, state: &BashState, transcript: &Transcript) -> Result<Act, StepError> {
        check_transcript(state.parts, transcript)?;
        Ok(match &state.phase {
            Phase::Ended { end } => Act::End(end.clone()),
            Phase::Asking => {
                let conversation = Conversation::new(transcript, &[]);
                let pending = conversation.pending;
                Act::AskModel(ModelCall { parts: conversation.parts().into_iter().chain(pending).collect() })
            }
            Phase::Running => {
                let reply = transcript.last_reply().map_or("", |reply| reply.used_text());
                let script = match parse_action(reply) {
                    Ok(Action::Run(script)) => script,
                    // The state says that there is a script.
                    Ok(Action::Finish) | Err(_) => String::new(),
                };
                Act::Run(BashCommand {
                    script,
                    folder: self.settings.folder.clone(),
                    time_limit_ms: self.settings.command_time_ms,
                    output_bytes_max: self.settings.output_bytes_max,
                })
            }
        })
    }

    /// Takes an observation, and returns the next state and what is added to the transcript.
    ///
    /// # Errors
    /// If state and transcript don't belong together, or the observation answers another step or another act.
    pub fn step(
        &self,
        state: &BashState,
        transcript: &Transcript,
        observation: Observation,
    ) -> Result<Step<BashState>, StepError> {
        check_transcript(state.parts, transcript)?;
        if observation.step != state.step || state.end().is_some() {
            return Err(StepError::OtherStep { given: observation.step, expected: state.step });
        }
        let Observation { elapsed_ms, at, seen, .. } = observation;
        let mut moves = Moves { agent: self, state: state.clone(), parts: Vec::new(), elapsed_ms, at };
        let given = seen.kind();
        let expected = match (&state.phase, seen) {
            (Phase::Running, Seen::Command(result)) => {
                moves.say(Purpose::Observation, texts::result(&self.settings, &result));
                return Ok(moves.begin_turn());
            }
            (Phase::Asking, Seen::Reply(reply)) => return Ok(moves.read(reply.bounded())),
            (Phase::Asking, Seen::ModelFailed(failure)) => {
                let failure = failure.bounded();
                let end = match failure.kind {
                    ModelFailureKind::ContextExceeded => End::ContextExceeded,
                    ModelFailureKind::Other => End::ModelFailed { message: failure.message.clone() },
                };
                moves.parts.push(Part::Failure(failure));
                return Ok(moves.wait_for(Phase::Ended { end }));
            }
            (Phase::Running, _) => "the result of a command",
            (Phase::Asking | Phase::Ended { .. }, _) => "a reply of the model",
        };
        Err(StepError::OtherKind { step: state.step, expected, given })
    }
}

/// One step: the next state, and what it adds to the transcript.
struct Moves<'a> {
    agent: &'a BashAgent,
    state: BashState,
    parts: Vec<Part>,
    elapsed_ms: u64,
    at: Option<String>,
}

impl Moves<'_> {
    fn read(&mut self, reply: ModelReply) -> Step<BashState> {
        self.state.used = self.state.used.plus(reply.usage);
        let is_cut = reply.is_cut;
        let action = parse_action(&reply.text);
        self.parts.push(Part::Reply(Reply::new(self.state.turn, reply, self.at.clone())));
        let (purpose, problem) = match action {
            _ if is_cut => (Purpose::OutputCut, texts::output_cut()),
            Err(error) => (Purpose::FormatError, texts::format_error(error)),
            Ok(Action::Finish) => return self.wait_for(Phase::Ended { end: End::Completed }),
            Ok(Action::Run(_)) => {
                self.state.format_errors = 0;
                return self.wait_for(Phase::Running);
            }
        };
        self.say(purpose, problem);
        self.state.format_errors = self.state.format_errors.saturating_add(1);
        match self.state.format_errors >= self.agent.settings.format_errors_max {
            true => self.wait_for(Phase::Ended { end: End::FormatErrors }),
            false => self.begin_turn(),
        }
    }

    fn begin_turn(&mut self) -> Step<BashState> {
        let settings = &self.agent.settings;
        if self.state.turn >= settings.turns_max {
            return self.wait_for(Phase::Ended { end: End::TurnLimit });
        }
        if let Some(end) = settings.budget.end(self.state.used, self.elapsed_ms) {
            return self.wait_for(Phase::Ended { end });
        }
        self.state.turn += 1;
        self.wait_for(Phase::Asking)
    }

    fn say(&mut self, purpose: Purpose, text: String) {
        self.parts.push(Part::Message(Message { purpose, text, at: self.at.clone() }));
    }

    /// Completes the step.
    fn wait_for(&mut self, phase: Phase) -> Step<BashState> {
        let parts = std::mem::take(&mut self.parts);
        let state = BashState {
            step: self.state.step.saturating_add(1),
            parts: self.state.parts + parts.len(),
            phase,
            ..self.state.clone()
        };
        Step { state, parts }
    }
}
