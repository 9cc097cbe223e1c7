//! Rules of the conversation: who speaks next, and when it ends.

use serde::{Deserialize, Serialize};

use super::message::{DialogueMessage, Party, Speaker};

/// Limits and marks of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialogue {
    /// Maximum number of messages passed on.
    pub max_steps: u32,
    /// Maximum number of failed tool calls.
    pub max_errors: u32,
    /// Marks in a text of the user that end the conversation.
    pub stop_tokens: Vec<String>,
}

/// Reason for the end, as the official program names it. The other official reasons don't occur here: agents of this kind have no mark
/// to stop, and what the official program reports as an error of the infrastructure has no grade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Termination {
    /// The user ended it.
    UserStop,
    /// Too many messages.
    MaxSteps,
    /// Too many failed tool calls.
    TooManyErrors,
}

impl Termination {
    /// Returns the official name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UserStop => "user_stop",
            Self::MaxSteps => "max_steps",
            Self::TooManyErrors => "too_many_errors",
        }
    }
}

/// Place that a message comes from or goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Place {
    Agent,
    User,
    Environment,
}

impl From<Party> for Place {
    fn from(party: Party) -> Self {
        match party {
            Party::Agent => Self::Agent,
            Party::User => Self::User,
        }
    }
}

/// State of a conversation. Its messages are in the transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DialogueState {
    from: Place,
    to: Place,
    /// Number of messages passed on.
    pub steps: u32,
    /// Number of failed tool calls.
    pub errors: u32,
    /// Number of messages.
    pub messages: usize,
    /// Replies in a row that were no messages.
    pub unusable: u32,
    /// Reason for the end; `None` before it.
    pub termination: Option<Termination>,
}

/// What a conversation needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DialogueNeed {
    /// A message of this party.
    Speak(Party),
    /// The results of the calls in the last message.
    Execute,
    /// Nothing: it has ended.
    Ended(Termination),
}

/// Messages that don't fit to a state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DialogueError(pub &'static str);

impl Dialogue {
    /// Begins a conversation with these messages: those of the task, or the greeting.
    ///
    /// # Errors
    /// If there are none.
    pub fn start(&self, messages: &[DialogueMessage]) -> Result<DialogueState, DialogueError> {
        let last = messages.last().ok_or(DialogueError("a conversation begins with a message"))?;
        let (from, to) = match (last.role, last.requestor) {
            (Speaker::Assistant, _) => (Place::Agent, next_of(last, Place::User)),
            (Speaker::User, _) => (Place::User, next_of(last, Place::Agent)),
            (Speaker::Tool, requestor) => (Place::Environment, requestor.unwrap_or(Party::Agent).into()),
        };
        let termination = self.is_stop(last).then_some(Termination::UserStop);
        let messages = messages.len();
        Ok(DialogueState { from, to, steps: 0, errors: 0, messages, unusable: 0, termination })
    }

    /// Returns what the conversation needs next.
    pub const fn need(&self, state: &DialogueState) -> DialogueNeed {
        match (state.termination, state.to) {
            (Some(termination), _) => DialogueNeed::Ended(termination),
            (None, Place::Agent) => DialogueNeed::Speak(Party::Agent),
            (None, Place::User) => DialogueNeed::Speak(Party::User),
            (None, Place::Environment) => DialogueNeed::Execute,
        }
    }

    /// Passes on the message of the party that speaks next.
    ///
    /// # Errors
    /// If it isn't that party's turn.
    pub fn say(
        &self,
        state: &DialogueState,
        message: &DialogueMessage,
    ) -> Result<DialogueState, DialogueError> {
        let party = message.party().ok_or(DialogueError("a tool doesn't speak"))?;
        if self.need(state) != DialogueNeed::Speak(party) {
            return Err(DialogueError("another party speaks next"));
        }
        let other = match party {
            Party::Agent => Place::User,
            Party::User => Place::Agent,
        };
        let mut next = state.clone();
        next.from = party.into();
        next.to = next_of(message, other);
        next.messages += 1;
        next.unusable = 0;
        next.termination = self.is_stop(message).then_some(Termination::UserStop);
        Ok(self.passed(next))
    }

    /// Passes on the results of all calls of the last message.
    ///
    /// # Errors
    /// If no call waits for its result.
    pub fn observe(
        &self,
        state: &DialogueState,
        results: &[DialogueMessage],
    ) -> Result<DialogueState, DialogueError> {
        if self.need(state) != DialogueNeed::Execute {
            return Err(DialogueError("no call waits for its result"));
        }
        let mut next = state.clone();
        (next.from, next.to) = (Place::Environment, state.from);
        next.messages += results.len();
        let errors = results.iter().filter(|result| result.error).count();
        next.errors = next.errors.saturating_add(u32::try_from(errors).unwrap_or(u32::MAX));
        Ok(self.passed(next))
    }

    /// Counts the step, and checks the limits unless calls wait for their results.
    fn passed(&self, mut state: DialogueState) -> DialogueState {
        state.steps = state.steps.saturating_add(1);
        if state.to != Place::Environment {
            if state.steps >= self.max_steps {
                state.termination = Some(Termination::MaxSteps);
            }
            if state.errors >= self.max_errors {
                state.termination = Some(Termination::TooManyErrors);
            }
        }
        state
    }

    /// Returns true for a text of the user with a mark that ends the conversation. One that calls tools ends nothing.
    fn is_stop(&self, message: &DialogueMessage) -> bool {
        message.role == Speaker::User
            && !message.is_tool_call()
            && message.content.as_deref().is_some_and(|text| {
                self.stop_tokens.iter().any(|token| !token.is_empty() && text.contains(token.as_str()))
            })
    }
}

fn next_of(message: &DialogueMessage, other: Place) -> Place {
    if message.is_tool_call() { Place::Environment } else { other }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialogue::DialogueCall;

    fn rules() -> Dialogue {
        let stop_tokens = ["###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###"].map(str::to_owned).into();
        Dialogue { max_steps: 200, max_errors: 10, stop_tokens }
    }

    fn text(party: Party, text: &str) -> DialogueMessage {
        DialogueMessage::text(party, text)
    }

    fn call(party: Party) -> DialogueMessage {
        let call =
            DialogueCall { id: "c".into(), name: "look".into(), arguments: "{}".into(), requestor: party };
        DialogueMessage { content: None, tool_calls: vec![call], ..text(party, "") }
    }

    fn result(of: &DialogueMessage, error: bool) -> DialogueMessage {
        DialogueMessage::result(&of.tool_calls[0], "", error)
    }

    fn begun() -> DialogueState {
        rules().start(&[text(Party::Agent, "Hi! How can I help you today?")]).unwrap()
    }

    #[test]
    fn texts_go_to_the_other_party_and_results_back_to_the_caller() {
        let rules = rules();
        let mut state = begun();
        assert_eq!(rules.need(&state), DialogueNeed::Speak(Party::User));
        for party in [Party::User, Party::Agent] {
            let calls = call(party);
            state = rules.say(&state, &calls).unwrap();
            assert_eq!(rules.need(&state), DialogueNeed::Execute);
            assert!(rules.say(&state, &text(party, "x")).is_err());
            state = rules.observe(&state, &[result(&calls, false)]).unwrap();
            assert_eq!(rules.need(&state), DialogueNeed::Speak(party));
            assert!(rules.observe(&state, &[]).is_err());
            state = rules.say(&state, &text(party, "x")).unwrap();
        }
        assert_eq!((state.steps, state.messages), (6, 7));
        assert_eq!(rules.need(&state), DialogueNeed::Speak(Party::User));
    }

    #[test]
    fn a_message_with_text_and_calls_is_executed_and_ends_nothing() {
        let rules = rules();
        let both = DialogueMessage { content: Some("###STOP###".into()), ..call(Party::User) };
        let state = rules.say(&begun(), &both).unwrap();
        assert_eq!(rules.need(&state), DialogueNeed::Execute);
    }

    #[test]
    fn only_the_user_ends_the_conversation_by_a_mark() {
        let rules = rules();
        for mark in ["###STOP###", "Bye. ###TRANSFER### now", "###OUT-OF-SCOPE###"] {
            let state = rules.say(&begun(), &text(Party::User, mark)).unwrap();
            assert_eq!(rules.need(&state), DialogueNeed::Ended(Termination::UserStop), "{mark}");
        }
        let state = rules.say(&begun(), &text(Party::User, "STOP")).unwrap();
        let state = rules.say(&state, &text(Party::Agent, "###STOP###")).unwrap();
        assert_eq!(rules.need(&state), DialogueNeed::Speak(Party::User));
    }

    #[test]
    fn endless_talk_ends_after_201_messages() {
        let rules = rules();
        let mut state = begun();
        while let DialogueNeed::Speak(party) = rules.need(&state) {
            state = rules.say(&state, &text(party, "Still not working.")).unwrap();
        }
        assert_eq!((state.termination, state.messages), (Some(Termination::MaxSteps), 201));
    }

    #[test]
    fn a_limit_that_is_reached_with_the_last_message_counts() {
        let rules = Dialogue { max_steps: 1, ..rules() };
        let state = rules.say(&begun(), &text(Party::User, "###STOP###")).unwrap();
        assert_eq!(state.termination, Some(Termination::MaxSteps));
    }

    #[test]
    fn limits_wait_for_results() {
        let rules = Dialogue { max_steps: 1, max_errors: 2, ..rules() };
        let mut calls = call(Party::User);
        calls.tool_calls.push(calls.tool_calls[0].clone());
        let state = rules.say(&begun(), &calls).unwrap();
        assert_eq!((state.steps, rules.need(&state)), (1, DialogueNeed::Execute));
        let failed = result(&calls, true);
        let state = rules.observe(&state, &[failed.clone(), failed]).unwrap();
        // Both limits are reached; the last check counts.
        assert_eq!((state.errors, state.termination), (2, Some(Termination::TooManyErrors)));
    }

    #[test]
    fn a_task_may_begin_in_the_middle() {
        let rules = rules();
        let calls = call(Party::Agent);
        for (messages, need) in [
            (vec![text(Party::User, "Hi")], DialogueNeed::Speak(Party::Agent)),
            (vec![text(Party::User, "###STOP###")], DialogueNeed::Ended(Termination::UserStop)),
            (vec![calls.clone()], DialogueNeed::Execute),
            (vec![calls.clone(), result(&calls, true)], DialogueNeed::Speak(Party::Agent)),
        ] {
            let state = rules.start(&messages).unwrap();
            assert_eq!((rules.need(&state), state.errors), (need, 0));
        }
        assert!(rules.start(&[]).is_err());
    }

    #[test]
    fn names_of_ends_are_the_official_ones() {
        for end in [Termination::UserStop, Termination::MaxSteps, Termination::TooManyErrors] {
            assert_eq!(serde_json::to_value(end).unwrap(), end.as_str());
        }
    }
}
