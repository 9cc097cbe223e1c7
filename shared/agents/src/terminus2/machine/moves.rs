//! Transitions of `terminus-2`, apart from summaries.

use super::{TaskText, Terminus2};
use crate::conversation::Conversation;
use crate::end::End;
use crate::model::{ModelFailure, ModelFailureKind, ModelReply};
use crate::output::limit_output;
use crate::step::{Step, TerminalState};
use crate::terminus2::state::{Cause, Phase, Stage, Terminus2State};
use crate::terminus2::{ParsedReply, ReplyFormat, incremental_output, parse_reply, salvage_truncated_xml};
use crate::transcript::{Message, Part, Purpose, Reply, Transcript};

/// Maximum length of the terminal's output and of feedback in a message, in bytes.
pub(super) const OUTPUT_BYTES_MAX: usize = 10_000;
/// Maximum number of replies in a row that are cut by the length limit. The official number is that of Python's nested
/// calls.
const CUTS_MAX: u32 = 100;
/// Text in place of a reply if the model can't be asked even after the conversation was shortened. The model never sees
/// it; it only has to be one that neither format accepts.
pub(in crate::terminus2) const NO_REPLY: &str = "The model could not be asked in this turn.";

/// One step: the next state, and what it adds to the transcript.
pub(super) struct Moves<'a> {
    pub(super) agent: &'a Terminus2,
    pub(super) state: Terminus2State,
    pub(super) transcript: &'a Transcript,
    pub(super) parts: Vec<Part>,
    elapsed_ms: u64,
    at: Option<String>,
}

impl<'a> Moves<'a> {
    pub(super) fn new(
        agent: &'a Terminus2,
        state: &Terminus2State,
        transcript: &'a Transcript,
        elapsed_ms: u64,
        at: Option<String>,
    ) -> Self {
        Self { agent, state: state.clone(), transcript, parts: Vec::new(), elapsed_ms, at }
    }

    /// Shows the terminal and the task to the model.
    pub(super) fn open(&mut self, terminal: &TerminalState) -> Step<Terminus2State> {
        if !terminal.is_alive {
            return self.end(End::TerminalEnded);
        }
        let output = limit_output(&self.look(terminal), OUTPUT_BYTES_MAX);
        let TaskText { instruction, additions } = &self.agent.task;
        let instruction = format!("{instruction}{additions}");
        let fields = [("instruction", instruction.as_str()), ("terminal_state", &output)];
        self.say(Purpose::Task, self.agent.templates.task.fill(&fields));
        self.begin_turn()
    }

    /// Reads a reply of the conversation.
    pub(super) fn read(&mut self, reply: ModelReply, is_last_attempt: bool) -> Step<Terminus2State> {
        if reply.is_cut && is_last_attempt {
            self.add_aside(reply);
            return self.go_on_without_reply();
        }
        self.state.used = self.state.used.plus(reply.usage);
        let mut reply = Reply::new(self.state.turn, reply, self.at.clone());
        if reply.is_cut {
            let salvaged = match self.agent.settings.format {
                ReplyFormat::Xml => salvage_truncated_xml(&reply.text),
                ReplyFormat::Json => None,
            };
            match salvaged.map(str::len) {
                Some(length) => reply.used_bytes = Some(length),
                None => return self.ask_for_less(reply),
            }
        }
        self.state.cuts = 0;
        let parsed = parse_reply(self.agent.settings.format, reply.used_text());
        self.parts.push(Part::Reply(reply));
        self.follow(&parsed)
    }

    /// Continues after a call that failed although the conversation was shortened before.
    fn go_on_without_reply(&mut self) -> Step<Terminus2State> {
        self.follow(&parse_reply(self.agent.settings.format, NO_REPLY))
    }

    fn follow(&mut self, parsed: &ParsedReply) -> Step<Terminus2State> {
        if parsed.error.is_empty() {
            return self.wait_for(Phase::Acting);
        }
        let feedback = limit_output(&parsed.feedback(), OUTPUT_BYTES_MAX);
        self.say(Purpose::FormatError, self.agent.templates.format_error.fill(&[("feedback", &feedback)]));
        self.begin_turn()
    }

    /// Asks the model to send a reply again that was cut.
    fn ask_for_less(&mut self, reply: Reply) -> Step<Terminus2State> {
        let settings = &self.agent.settings;
        let warning = parse_reply(settings.format, reply.used_text()).warning;
        self.parts.push(Part::Reply(reply));
        self.state.cuts = self.state.cuts.saturating_add(1);
        if self.state.cuts > CUTS_MAX {
            return self.end(End::OutputExceeded);
        }
        let limit = match settings.output_tokens {
            Some(tokens) => format!("{tokens} tokens"),
            None => self.agent.templates.unknown_limit.clone(),
        };
        let mut text = self.agent.templates.output_cut.fill(&[("limit", &limit)]);
        if !warning.is_empty() {
            let warning = limit_output(&warning, OUTPUT_BYTES_MAX);
            text.push_str(&self.agent.templates.cut_warnings.fill(&[("warnings", &warning)]));
        }
        self.say(Purpose::OutputCut, text);
        match settings.budget.end(self.state.used, self.elapsed_ms) {
            Some(end) => self.end(end),
            None => self.ask(false),
        }
    }

    /// Shows the model what its commands did.
    pub(super) fn observe(&mut self, terminal: &TerminalState) -> Step<Terminus2State> {
        let reply = self.transcript.last_reply().map_or("", |reply| reply.used_text());
        let parsed = parse_reply(self.agent.settings.format, reply);
        let was_confirming = std::mem::replace(&mut self.state.is_confirming, parsed.is_complete);
        let output = limit_output(&self.look(terminal), OUTPUT_BYTES_MAX);
        if parsed.is_complete && was_confirming {
            self.say(Purpose::Observation, output);
            return self.end(End::Completed);
        }
        let templates = &self.agent.templates;
        // An ordinary output is limited twice, as officially: the second notice counts the first one.
        let feedback = limit_output(&parsed.feedback(), OUTPUT_BYTES_MAX);
        let (purpose, text) = match (parsed.is_complete, feedback.is_empty()) {
            (true, _) => (Purpose::Confirmation, templates.confirmation.fill(&[("terminal_state", &output)])),
            (false, true) => (Purpose::Observation, limit_output(&output, OUTPUT_BYTES_MAX)),
            (false, false) => {
                let output = limit_output(&output, OUTPUT_BYTES_MAX);
                let fields = [("feedback", feedback.as_str()), ("terminal_state", &output)];
                (Purpose::Observation, templates.warnings.fill(&fields))
            }
        };
        self.say(purpose, text);
        if terminal.is_alive { self.begin_turn() } else { self.end(End::TerminalEnded) }
    }

    /// Handles the failure of a call with the conversation.
    pub(super) fn fail(&mut self, failure: ModelFailure, is_last_attempt: bool) -> Step<Terminus2State> {
        let (kind, message) = (failure.kind, failure.message.clone());
        self.parts.push(Part::Failure(failure));
        if is_last_attempt {
            return self.go_on_without_reply();
        }
        match kind {
            ModelFailureKind::Other => self.end(End::ModelFailed { message }),
            ModelFailureKind::ContextExceeded if self.agent.settings.is_summarizing => self.make_room(),
            ModelFailureKind::ContextExceeded => self.end(End::ContextExceeded),
        }
    }

    /// Begins a turn, unless the episode is over or its conversation has to be summarized.
    fn begin_turn(&mut self) -> Step<Terminus2State> {
        let settings = &self.agent.settings;
        if self.state.turn >= settings.turns_max {
            return self.end(End::TurnLimit);
        }
        if let Some(end) = settings.budget.end(self.state.used, self.elapsed_ms) {
            return self.end(end);
        }
        self.state.turn += 1;
        let conversation = Conversation::new(self.transcript, &self.parts);
        let needed = conversation.tokens().saturating_add(settings.summary_threshold_tokens);
        let is_full = conversation.first().is_some() && needed > settings.context_tokens;
        match settings.is_summarizing && is_full {
            true => self.begin_summary(Cause::Threshold),
            false => self.ask(false),
        }
    }

    /// Returns what is new in the terminal.
    fn look(&mut self, terminal: &TerminalState) -> String {
        let (shown, mark) = incremental_output(self.state.mark.as_ref(), &terminal.history, &terminal.screen);
        self.state.mark = Some(mark);
        shown
    }

    pub(super) fn say(&mut self, purpose: Purpose, text: String) {
        self.parts.push(Part::Message(Message { purpose, text, at: self.at.clone() }));
    }

    /// Adds the reply to a call beside the conversation.
    pub(super) fn add_aside(&mut self, reply: ModelReply) {
        self.state.used = self.state.used.plus(reply.usage);
        let reply = Reply { is_aside: true, ..Reply::new(self.state.turn, reply, self.at.clone()) };
        self.parts.push(Part::Reply(reply));
    }

    pub(super) fn ask(&mut self, is_last_attempt: bool) -> Step<Terminus2State> {
        self.wait_for(Phase::Asking { is_last_attempt })
    }

    pub(super) fn wait_for_stage(&mut self, cause: Cause, stage: Stage) -> Step<Terminus2State> {
        self.wait_for(Phase::Summarizing { cause, stage })
    }

    fn end(&mut self, end: End) -> Step<Terminus2State> {
        self.wait_for(Phase::Ended { end })
    }

    /// Completes the step.
    fn wait_for(&mut self, phase: Phase) -> Step<Terminus2State> {
        let parts = std::mem::take(&mut self.parts);
        let state = Terminus2State {
            step: self.state.step.saturating_add(1),
            parts: self.state.parts + parts.len(),
            phase,
            ..self.state.clone()
        };
        Step { state, parts }
    }
}
