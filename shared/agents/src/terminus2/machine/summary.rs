//! Summaries of the conversation, when the context is full.
//!
//! Three calls beside the conversation ask for a summary, for questions about it, and for answers to them. Afterwards
//! the conversation consists of its first message, the questions, and what follows.

use super::moves::Moves;
use crate::conversation::Conversation;
use crate::output::{last_chars, limit_output};
use crate::step::{Seen, Step};
use crate::terminus2::state::{Cause, Stage, Terminus2State};
use crate::transcript::{Part, Purpose};

/// Tokens to free after an overflow, by removing the newest pairs of messages.
const FREE_TOKENS_MIN: u64 = 4_000;
/// Length of the screen's end in a short summary, in characters.
const SHORT_SCREEN_CHARS: usize = 1_000;
/// Maximum length of a visible screen in bytes. One of 160 × 40 characters has at most 25,640.
const SCREEN_BYTES_MAX: usize = 65_536;

impl Moves<'_> {
    /// Shortens the conversation after an overflow, and begins its summary.
    pub(super) fn make_room(&mut self) -> Step<Terminus2State> {
        let conversation = Conversation::new(self.transcript, &[]);
        if conversation.first().is_none() {
            // Not even the first message fits: there is nothing to summarize.
            return self.wait_for_stage(Cause::Overflow, Stage::ShortScreen);
        }
        let tokens_max = self.agent.settings.context_tokens.saturating_sub(FREE_TOKENS_MIN);
        if let Some(messages) = conversation.shortened(tokens_max) {
            self.parts.push(Part::Shorten { messages });
        }
        self.begin_summary(Cause::Overflow)
    }

    pub(super) fn begin_summary(&mut self, cause: Cause) -> Step<Terminus2State> {
        self.state.summaries = self.state.summaries.saturating_add(1);
        let text = self.agent.templates.summary.fill(&[("instruction", &self.agent.task.instruction)]);
        self.say(Purpose::Summary, text);
        self.wait_for_stage(cause, Stage::Summary)
    }

    /// Goes on with a summary; `None` if the observation isn't the one that its stage waits for.
    pub(super) fn summarize(
        &mut self,
        cause: Cause,
        stage: &Stage,
        seen: Seen,
    ) -> Option<Step<Terminus2State>> {
        let is_look = matches!(stage, Stage::Screen | Stage::ShortScreen);
        match seen {
            Seen::Terminal(terminal) if is_look => {
                Some(self.ask_about_screen(cause, stage, &terminal.screen))
            }
            Seen::Reply(reply) if !is_look => {
                let reply = reply.bounded();
                let (text, is_cut) = (reply.text.clone(), reply.is_cut);
                self.add_aside(reply);
                Some(if is_cut { self.give_up(cause, stage) } else { self.use_reply(cause, stage, &text) })
            }
            Seen::ModelFailed(failure) if !is_look => {
                self.parts.push(Part::Failure(failure.bounded()));
                Some(self.give_up(cause, stage))
            }
            _ => None,
        }
    }

    fn ask_about_screen(&mut self, cause: Cause, stage: &Stage, screen: &str) -> Step<Terminus2State> {
        let (templates, instruction) = (&self.agent.templates, self.agent.task.instruction.as_str());
        if matches!(stage, Stage::ShortScreen) {
            let screen = last_chars(screen, SHORT_SCREEN_CHARS).to_owned();
            let fields = [("instruction", instruction), ("terminal_state", &screen)];
            self.say(Purpose::ShortSummary, templates.short_summary.fill(&fields));
            return self.wait_for_stage(cause, Stage::ShortSummary { screen });
        }
        let summary = self.transcript.last_reply().map_or("", |reply| reply.used_text());
        let screen = limit_output(screen, SCREEN_BYTES_MAX);
        let fields = [("instruction", instruction), ("summary", summary), ("terminal_state", &screen)];
        self.say(Purpose::Questions, templates.questions.fill(&fields));
        self.wait_for_stage(cause, Stage::Questions)
    }

    fn use_reply(&mut self, cause: Cause, stage: &Stage, text: &str) -> Step<Terminus2State> {
        let templates = &self.agent.templates;
        match stage {
            Stage::Summary => self.wait_for_stage(cause, Stage::Screen),
            Stage::Questions => {
                self.say(Purpose::Answers, templates.answers.fill(&[("questions", text)]));
                self.wait_for_stage(cause, Stage::Answers)
            }
            Stage::Answers => {
                let questions = self.transcript.last_message(Purpose::Questions);
                let first = Conversation::new(self.transcript, &[]).first();
                // The questions follow their request.
                let parts =
                    first.into_iter().chain(questions.into_iter().flat_map(|at| [at, at + 1])).collect();
                self.parts.push(Part::Replace { parts });
                self.say(Purpose::HandOver, templates.hand_over.fill(&[("answers", text)]));
                self.ask(cause == Cause::Overflow)
            }
            Stage::ShortSummary { .. } | Stage::Screen | Stage::ShortScreen => {
                let fields = [("instruction", self.agent.task.instruction.as_str()), ("summary", text)];
                self.say(Purpose::HandOver, templates.short_hand_over.fill(&fields));
                self.ask(true)
            }
        }
    }

    /// Goes on without a full summary.
    fn give_up(&mut self, cause: Cause, stage: &Stage) -> Step<Terminus2State> {
        match (cause, stage) {
            (Cause::Threshold, _) => self.ask(false),
            (Cause::Overflow, Stage::ShortSummary { screen }) => {
                let fields =
                    [("instruction", self.agent.task.instruction.as_str()), ("terminal_state", screen)];
                self.say(Purpose::HandOver, self.agent.templates.last_hand_over.fill(&fields));
                self.ask(true)
            }
            (Cause::Overflow, _) => self.wait_for_stage(cause, Stage::ShortScreen),
        }
    }
}
