//! Replies without a model: a task's gold actions, or none.

use super::DialogueCall;
use super::message::{DialogueMessage, Party};
use super::reply::DialogueReply;

/// Text of a party that waits for the other one.
const GO_ON: &str = "Please go on.";
const FIRST: &str = "Hello, I need help.";

/// Returns what a party says so that the gold actions are carried out in their order, each by its own party. The user ends the
/// conversation after the last one.
pub fn gold_reply(
    party: Party,
    gold: &[DialogueCall],
    messages: &[DialogueMessage],
    stop_token: &str,
) -> DialogueReply {
    let done = messages.iter().map(|message| message.tool_calls.len()).sum::<usize>();
    let has_spoken = messages.iter().any(|message| message.party() == Some(Party::User));
    match gold.get(done) {
        Some(next) if next.requestor == party => DialogueReply {
            calls: vec![(format!("gold_{done}"), next.name.clone(), next.arguments.clone())],
            ..DialogueReply::default()
        },
        None if party == Party::User => text(stop_token),
        _ if party == Party::User && !has_spoken => text(FIRST),
        _ => text(GO_ON),
    }
}

/// Returns what a party says if nothing is to be done: the user ends the conversation at once.
pub fn silent_reply(party: Party, stop_token: &str) -> DialogueReply {
    match party {
        Party::User => text(stop_token),
        Party::Agent => text(GO_ON),
    }
}

fn text(text: &str) -> DialogueReply {
    DialogueReply { text: text.to_owned(), ..DialogueReply::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialogue::{Dialogue, DialogueNeed, Termination};

    #[test]
    fn gold_actions_are_played_in_their_order() {
        let action = |name: &str, requestor| DialogueCall {
            id: String::new(),
            name: name.to_owned(),
            arguments: "{}".to_owned(),
            requestor,
        };
        let gold = [
            action("a", Party::Agent),
            action("b", Party::User),
            action("c", Party::User),
            action("d", Party::Agent),
        ];
        let rules = Dialogue { max_steps: 200, max_errors: 10, stop_tokens: vec!["###STOP###".to_owned()] };
        let mut messages = vec![DialogueMessage::text(Party::Agent, "Hi!")];
        let mut state = rules.start(&messages).unwrap();
        let end = loop {
            match rules.need(&state) {
                DialogueNeed::Speak(party) => {
                    let reply = gold_reply(party, &gold, &messages, "###STOP###");
                    let message = reply.into_message(party, messages.len(), None).unwrap();
                    state = rules.say(&state, &message).unwrap();
                    messages.push(message);
                }
                DialogueNeed::Execute => {
                    let result =
                        DialogueMessage::result(&messages.last().unwrap().tool_calls[0], "ok", false);
                    state = rules.observe(&state, std::slice::from_ref(&result)).unwrap();
                    messages.push(result);
                }
                DialogueNeed::Ended(end) => break end,
            }
        };
        let called: Vec<&str> =
            messages.iter().flat_map(|message| &message.tool_calls).map(|call| call.name.as_str()).collect();
        assert_eq!((end, called), (Termination::UserStop, vec!["a", "b", "c", "d"]));
        assert_eq!(messages[1].content.as_deref(), Some("Hello, I need help."));
    }
}
