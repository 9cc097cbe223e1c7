//! Conversations as each party's model sees them.

use serde::{Deserialize, Serialize};

use super::message::{DialogueCall, DialogueMessage, Party, Speaker};

/// Texts of a party, as the package that defines the task has them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PartyTexts {
    /// System message.
    pub system: String,
    /// Tools as JSON text: a list of OpenAI's function schemas.
    pub tools: String,
}

/// Beginning of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DialogueOpening {
    /// Texts of the agent.
    pub agent: PartyTexts,
    /// Texts of the simulated user.
    pub user: PartyTexts,
    /// Marks that end the conversation, the usual one first.
    pub stop_tokens: Vec<String>,
    /// Version of the package.
    #[serde(default)]
    pub package_version: String,
    /// Digest of the package's files.
    #[serde(default)]
    pub package_digest: String,
    /// Actions of a right conversation, if they are to be played instead of asking models.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gold: Vec<DialogueCall>,
}

impl DialogueOpening {
    /// Returns the texts of a party.
    pub const fn texts(&self, party: Party) -> &PartyTexts {
        match party {
            Party::Agent => &self.agent,
            Party::User => &self.user,
        }
    }
}

/// Message as a party's model sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeenMessage<'a> {
    /// True if the party itself wrote it.
    pub is_own: bool,
    /// The message.
    pub message: &'a DialogueMessage,
}

impl Party {
    /// Returns the messages that this party sees, in order: its own, texts of the other party, and results of its own calls.
    /// Calls of the other party and texts beside them stay hidden.
    pub fn sees<'a>(self, messages: &'a [DialogueMessage]) -> impl Iterator<Item = SeenMessage<'a>> {
        messages.iter().filter_map(move |message| {
            let is_own = message.party() == Some(self);
            let is_seen = match message.role {
                Speaker::Tool => message.requestor == Some(self),
                Speaker::Assistant | Speaker::User => is_own || !message.is_tool_call(),
            };
            is_seen.then_some(SeenMessage { is_own, message })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_party_sees_only_its_own_calls_and_results() {
        let call = |requestor| DialogueCall {
            id: "c".into(),
            name: "look".into(),
            arguments: "{}".into(),
            requestor,
        };
        let calls = |party, content: Option<&str>| DialogueMessage {
            content: content.map(str::to_owned),
            tool_calls: vec![call(party)],
            ..DialogueMessage::text(party, "")
        };
        let messages = [
            DialogueMessage::text(Party::Agent, "Hi"),
            DialogueMessage::text(Party::User, "Help"),
            calls(Party::Agent, Some("Let me see")),
            DialogueMessage::result(&call(Party::Agent), "agent's", false),
            DialogueMessage::text(Party::Agent, "Try"),
            calls(Party::User, None),
            DialogueMessage::result(&call(Party::User), "user's", true),
            DialogueMessage::text(Party::User, "Done"),
        ];
        let seen = |party: Party| -> Vec<(bool, usize)> {
            let at = |message: &DialogueMessage| messages.iter().position(|one| std::ptr::eq(one, message));
            party.sees(&messages).map(|seen| (seen.is_own, at(seen.message).unwrap())).collect()
        };
        assert_eq!(seen(Party::Agent), [(true, 0), (false, 1), (true, 2), (false, 3), (true, 4), (false, 7)]);
        assert_eq!(seen(Party::User), [(false, 0), (true, 1), (false, 4), (true, 5), (false, 6), (true, 7)]);
    }
}
