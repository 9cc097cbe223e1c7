//! Conversation of agent and model, rebuilt from a transcript.

use crate::transcript::{Part, Transcript};

/// Messages and replies that the next request repeats, and the message that it adds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Conversation {
    /// Messages and replies, in order.
    entries: Vec<Entry>,
    /// Place of the message that wasn't answered yet.
    pub(crate) pending: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    /// Place in the transcript.
    part: usize,
    /// Tokens of the conversation up to here. That of a message is the one of the reply before it.
    tokens: u64,
}

impl Conversation {
    /// Rebuilds the conversation at the end of a transcript and the parts that a step has added to it.
    pub(crate) fn new(transcript: &Transcript, added: &[Part]) -> Self {
        let mut conversation = Self::default();
        for (at, part) in transcript.parts().iter().chain(added).enumerate() {
            match part {
                Part::Message(message) if message.purpose.is_in_conversation() => {
                    conversation.pending = Some(at);
                }
                Part::Reply(reply) if !reply.is_aside => {
                    let before = conversation.tokens();
                    let question = conversation.pending.take().map(|part| Entry { part, tokens: before });
                    conversation.entries.extend(question);
                    conversation.entries.push(Entry { part: at, tokens: reply.usage.total_tokens() });
                }
                Part::Message(_)
                | Part::Reply(_)
                | Part::Failure(_)
                | Part::Opening(_)
                | Part::Dialogue(_) => {}
                Part::Shorten { messages } => conversation.entries.truncate(*messages),
                Part::Replace { parts } => conversation.replace(parts, transcript),
            }
        }
        conversation
    }

    fn replace(&mut self, parts: &[usize], transcript: &Transcript) {
        let mut tokens = 0_u64;
        let entry = |part: usize| {
            let added = match transcript.parts().get(part) {
                // What the first request had, and what a call beside the conversation had.
                Some(Part::Message(_)) if tokens == 0 => first_request_tokens(transcript),
                Some(Part::Reply(reply)) => reply.usage.total_tokens(),
                _ => 0,
            };
            tokens = tokens.saturating_add(added);
            Entry { part, tokens }
        };
        self.entries = parts.iter().copied().map(entry).collect();
    }

    /// Returns the places of all messages and replies.
    pub(crate) fn parts(&self) -> Vec<usize> {
        self.entries.iter().map(|entry| entry.part).collect()
    }

    /// Returns the place of the first message.
    pub(crate) fn first(&self) -> Option<usize> {
        self.entries.first().map(|entry| entry.part)
    }

    /// Returns the tokens of messages and replies, without the message that wasn't answered yet.
    pub(crate) fn tokens(&self) -> u64 {
        self.entries.last().map_or(0, |entry| entry.tokens)
    }

    /// Returns how many messages and replies remain if pairs are removed from the end until the tokens are at most
    /// `tokens_max`; `None` if all remain. The first message always does.
    pub(crate) fn shortened(&self, tokens_max: u64) -> Option<usize> {
        let mut kept = self.entries.len();
        while kept > 1 && self.entries.get(kept - 1).is_some_and(|entry| entry.tokens > tokens_max) {
            kept = kept.saturating_sub(2).max(1);
        }
        (kept < self.entries.len()).then_some(kept)
    }
}

/// Returns the tokens of the first request of an episode, which is its first message.
fn first_request_tokens(transcript: &Transcript) -> u64 {
    let first = transcript.parts().iter().find_map(|part| match part {
        Part::Reply(reply) => Some(reply.usage.input_tokens),
        _ => None,
    });
    first.unwrap_or(0)
}
