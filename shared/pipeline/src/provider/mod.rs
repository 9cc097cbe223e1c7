//! One question to a provider, for as long as its run wants the answer.

mod failure;
pub(crate) mod refusals;

use std::time::Duration;

use bench_domain::{Answer, Generation, Prompt, Timestamp};
use bench_inference::{ChatRequest, Endpoint, Failure, FailureKind, GaveUpBy};
use serde_json::Value;
use tokio::time::Instant;

use crate::provider::refusals::HeldUp;
use crate::{AskError, Desk, InHand};

/// How often a call in flight looks whether its run is still open.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The provider's own id of the model.
    pub model: &'a str,
    /// What it is shown.
    pub prompt: &'a Prompt,
    /// How it should answer.
    pub generation: &'a Generation,
    /// JSON schema of the answer, for models that can be bound to one.
    pub reply_schema: Option<&'a Value>,
}

/// What came of asking.
#[derive(Debug)]
pub enum Reached {
    /// An answer.
    Answer(Box<Answer>),
    /// None.
    Failure(Failure),
    /// The run ended meanwhile.
    RunOver,
}

impl Desk {
    /// Asks a provider once, unless it is to be left alone. Ends early when the run does. What comes back has none of
    /// the keys in play in it.
    ///
    /// # Errors
    /// When it is not known whether the provider may be asked.
    pub async fn ask_provider(
        &self,
        hand: &InHand<'_>,
        endpoint: &Endpoint,
        question: &Question<'_>,
    ) -> Result<Reached, AskError> {
        let now = Timestamp::now();
        let not_before = self.contexts.not_before(hand.run).await?;
        if not_before > now {
            return Ok(Reached::Failure(Failure {
                kind: FailureKind::RateLimited,
                status: None,
                cause: "the provider asked to wait".to_owned(),
                request_id: None,
                retry_after: Some(not_before.since(now)),
                gave_up_by: GaveUpBy::Runner,
                usage: None,
            }));
        }
        match self.held_up(hand).await? {
            Some(HeldUp::Wait(failure)) => return Ok(Reached::Failure(failure)),
            Some(HeldUp::RunOver) => return Ok(Reached::RunOver),
            None => {}
        }
        let time = hand.deadline.left(self.config.reserve);
        let time = match hand.run.benchmark(&hand.sample.benchmark) {
            Some(context) => time.min(self.config.answer_time.of(context.benchmark)),
            None => time,
        };
        let Question { model, prompt, generation, reply_schema } = *question;
        let request = ChatRequest { model, prompt, generation, reply_schema };
        let call = self.chat.complete(endpoint, &request, Some(Instant::now() + time));
        tokio::pin!(call);
        let _asking = hand.run.refusals.ask();
        loop {
            tokio::select! {
                done = &mut call => return Ok(match done {
                    Ok(mut answer) => {
                        hand.run.refusals.answered();
                        hand.run.keys.redact_answer(&mut answer);
                        Reached::Answer(Box::new(answer))
                    }
                    Err(mut failure) => {
                        failure.redact(&hand.run.keys);
                        Reached::Failure(failure)
                    }
                }),
                () = tokio::time::sleep(LOOK_EVERY) => {
                    // A look that fails ends nothing: the answer is being paid for.
                    if matches!(self.contexts.wants_answers(hand.sample.run).await, Ok(false)) {
                        return Ok(Reached::RunOver);
                    }
                }
            }
        }
    }
}
