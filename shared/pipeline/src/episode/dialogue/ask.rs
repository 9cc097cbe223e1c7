//! Questions to the models of a conversation.

use bench_agents::Transcript;
use bench_agents::dialogue::{
    DialogueMessage, DialogueOpening, DialogueReply, Party, Speaker, gold_reply, silent_reply,
};
use bench_domain::{Answer, ChatMessage, Code, EpisodeState, Generation, Prompt, ToolCall, Usage};
use bench_episodes::ReceivedReply;
use bench_inference::tokens::{estimate_tokens, usage_or_estimate};
use bench_inference::{FailureKind, TooLong};
use serde_json::Value;

use super::DialogueWork;
use crate::Pipeline;
use crate::context::{AnswerSource, ModelClient, Unavailable, UserSource};
use crate::episode::EpisodeTurn;
use crate::episode::reply::model_reply;
use crate::error::PipelineError;
use crate::model::Question;

/// Party that speaks next.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) party: Party,
    /// Number of the record that its reply leads to.
    pub(super) record: u32,
    pub(super) transcript: &'a Transcript,
}

/// Source of a party's messages.
enum Source<'a> {
    Model(&'a ModelClient),
    Unavailable(&'a Unavailable),
    Reply(DialogueReply),
    /// Answers that were given to something else.
    Stored,
}

impl Pipeline {
    /// Asks the model of the party that speaks next. Returns `None` without a reply: the sample was ended, put off or given back.
    pub(super) async fn ask_party(
        &self,
        turn: EpisodeTurn<'_>,
        state: &EpisodeState,
        dialogue: &DialogueWork<'_>,
        asked: Asked<'_>,
    ) -> Result<Option<ReceivedReply>, PipelineError> {
        let (claimed, Asked { party, record, transcript }) = (turn.claimed, asked);
        let Some(opening) = transcript.opening() else { return Ok(None) };
        let messages = transcript.dialogue();
        let client = match self.source_of(turn, party, opening, &messages) {
            Source::Model(client) => client,
            Source::Reply(reply) => return Ok(Some(ReceivedReply { record, party, reply, paid: None })),
            Source::Stored => {
                self.end_last_episode_sandbox(state).await;
                let why = "stored responses can't take part in conversations";
                self.end_ungraded(turn, state, Code::InvalidItem, why).await?;
                return Ok(None);
            }
            Source::Unavailable(Unavailable { code, why }) => {
                self.end_last_episode_sandbox(state).await;
                self.fail_run(claimed, *code, why).await?;
                return Ok(None);
            }
        };
        let generation = settings(turn, dialogue, party);
        let mut prompt = prompt_of(party, opening, &messages);
        if let Some(text) = &generation.system_prompt {
            prompt.prepend_system(text);
        }
        let tools: Option<Value> = serde_json::from_str(&opening.texts(party).tools).ok();
        let question = Question {
            prompt: &prompt,
            generation: &generation,
            reply_schema: None,
            tools: tools.as_ref(),
            is_continued: true,
        };
        let failure = match self.ask_in_episode(turn, state, client, &question).await? {
            None => return Ok(None),
            Some(Ok(answer)) => {
                let spec = &claimed.run.spec;
                let price = match party {
                    Party::Agent => spec.price,
                    Party::User => spec.user.as_ref().and_then(|user| user.price),
                };
                let mut paid = usage_or_estimate(&prompt, &answer);
                if paid.estimated_tokens > 0 {
                    let tools = estimate_tokens(&opening.texts(party).tools);
                    paid = paid.plus(Usage::counted(tools, 0, 0).estimated());
                }
                let reply = reply_of(*answer, &client.model.slug, paid, price);
                return Ok(Some(ReceivedReply { record, party, reply, paid: Some(paid) }));
            }
            Some(Err(failure)) => failure,
        };
        if matches!(failure.kind, FailureKind::TooLong(TooLong::Context) | FailureKind::Refused) {
            // Officially an exception, which leaves the conversation without a grade.
            self.end_episode_sandbox(state).await;
            let why = client.role.explain(&failure.cause);
            self.end_ungraded(turn, state, client.role.code(failure.code()), &why).await?;
            return Ok(None);
        }
        self.wait_for_episodes_model(turn, state, client, &failure).await?;
        Ok(None)
    }

    fn source_of<'a>(
        &self,
        turn: EpisodeTurn<'a>,
        party: Party,
        opening: &DialogueOpening,
        messages: &[DialogueMessage],
    ) -> Source<'a> {
        let stop = opening.stop_tokens.first().map_or("", String::as_str);
        match (self.answer_source(turn.claimed), party) {
            (AnswerSource::Model(client), Party::Agent) => Source::Model(client),
            (AnswerSource::Model(_), Party::User) => {
                let run = &turn.claimed.run;
                match run.user.get_or_init(|| UserSource::new(run, &self.clients)) {
                    UserSource::Model(client) => Source::Model(client),
                    UserSource::Unavailable(unavailable) => Source::Unavailable(unavailable),
                }
            }
            (AnswerSource::Unavailable(unavailable), _) => Source::Unavailable(unavailable),
            (AnswerSource::Oracle, _) => Source::Reply(gold_reply(party, &opening.gold, messages, stop)),
            (AnswerSource::Nop, _) => Source::Reply(silent_reply(party, stop)),
            (AnswerSource::ResponsesFile(_) | AnswerSource::EarlierRun(_), _) => Source::Stored,
        }
    }
}

/// Returns the settings of a party's model. Each has the trial's seed, unless the order names one for that model.
fn settings(turn: EpisodeTurn<'_>, dialogue: &DialogueWork<'_>, party: Party) -> Generation {
    let mut generation = match party {
        Party::Agent => turn.claimed.benchmark.plan.generation.clone(),
        Party::User => {
            let usual = (dialogue.protocol.user().generation)();
            match &turn.claimed.run.spec.user {
                Some(user) => user.generation.over(&usual),
                None => usual,
            }
        }
    };
    generation.seed.get_or_insert(dialogue.protocol.seed(dialogue.trial));
    generation
}

/// Returns the request of a party: its system message, and what it sees of the conversation.
fn prompt_of(party: Party, opening: &DialogueOpening, messages: &[DialogueMessage]) -> Prompt {
    let system = ChatMessage::new(bench_domain::Role::System, opening.texts(party).system.clone());
    let seen = party.sees(messages).map(|seen| {
        let message = seen.message;
        let role = match (seen.is_own, message.role) {
            (_, Speaker::Tool) => bench_domain::Role::Tool,
            (true, _) => bench_domain::Role::Assistant,
            (false, _) => bench_domain::Role::User,
        };
        let calls = message.tool_calls.iter().map(|call| ToolCall {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        });
        ChatMessage {
            tool_calls: if seen.is_own { calls.collect() } else { Vec::new() },
            tool_call_id: message.id.clone(),
            ..ChatMessage::new(role, message.content.clone().unwrap_or_default())
        }
    });
    Prompt { messages: std::iter::once(system).chain(seen).collect() }
}

fn reply_of(
    mut answer: Answer,
    asked: &str,
    paid: Usage,
    price: Option<bench_domain::Price>,
) -> DialogueReply {
    let calls = std::mem::take(&mut answer.tool_calls);
    let reply = model_reply(answer, asked, paid, price);
    DialogueReply {
        text: reply.text,
        calls: calls.into_iter().map(|call| (call.id, call.name, call.arguments)).collect(),
        reasoning: reply.reasoning,
        model: reply.model,
        usage: Some(reply.usage),
        latency_ms: reply.latency_ms,
    }
}

#[cfg(test)]
mod tests {
    use bench_agents::dialogue::{DialogueCall, PartyTexts};

    use super::*;

    #[test]
    fn each_party_sees_the_other_as_the_user() {
        let texts = |system: &str| PartyTexts { system: system.to_owned(), tools: "[]".to_owned() };
        let opening =
            DialogueOpening { agent: texts("policy"), user: texts("scenario"), ..DialogueOpening::default() };
        let call = DialogueCall {
            id: "c".to_owned(),
            name: "look".to_owned(),
            arguments: "{}".to_owned(),
            requestor: Party::User,
        };
        let mut calling = DialogueMessage::text(Party::User, "");
        (calling.content, calling.tool_calls) = (None, vec![call.clone()]);
        let messages = [
            DialogueMessage::text(Party::Agent, "Hi"),
            calling,
            DialogueMessage::result(&call, "a tree", false),
            DialogueMessage::text(Party::User, "A tree."),
        ];
        let shown = |party| prompt_of(party, &opening, &messages).as_text();
        assert_eq!(shown(Party::Agent), "[system]\npolicy\n\n[assistant]\nHi\n\n[user]\nA tree.");
        assert_eq!(
            shown(Party::User),
            "[system]\nscenario\n\n[user]\nHi\n\n[assistant]\n[call: look({})]\n\n[tool]\na tree\n\n[assistant]\nA tree."
        );
        let prompt = prompt_of(Party::User, &opening, &messages);
        assert_eq!(prompt.messages[3].tool_call_id.as_deref(), Some("c"));
    }
}
