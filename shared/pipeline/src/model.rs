//! Asks a model at a provider for answers, or the judge for replies, for as long as the run needs them.

mod clients;
mod failure;
pub(crate) mod refusals;
mod wait;

use std::sync::Arc;
use std::time::Duration;

use bench_domain::run::ModelRef;
use bench_domain::{Answer, Code, Generation, Prompt, Spending, Stage, Usage};
use bench_inference::{ChatRequest, Endpoint, Failure};
use serde_json::Value;
use tokio::time::Instant;

pub(crate) use self::clients::{Key, ModelClients, Unavailable};
use self::refusals::{HeldUp, Refusals};
use self::wait::Wait;
use crate::Pipeline;
use crate::claim::ClaimedSample;
use crate::error::PipelineError;

/// Interval at which a call in flight checks whether its run is still open.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Purpose for which a run asks a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    /// Answers of the model that is measured.
    Model,
    /// Replies of the judge.
    Judge,
}

impl Role {
    /// Returns the word that users know for the model in this role.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Judge => "judge",
        }
    }

    /// Returns the stage that asks the model in this role.
    pub(crate) const fn stage(self) -> Stage {
        match self {
            Self::Model => Stage::Answer,
            Self::Judge => Stage::Judge,
        }
    }

    /// Assigns tokens to this role's part of the spending.
    pub(crate) const fn spending(self, usage: Usage) -> Spending {
        match self {
            Self::Model => Spending { answers: usage, judge: Usage::ZERO },
            Self::Judge => Spending::judge_only(usage),
        }
    }

    /// Returns the code of a failure in this role.
    pub(crate) const fn code(self, failure: &Failure) -> Code {
        match self {
            Self::Model => failure.code(),
            Self::Judge => failure.code().for_judge(),
        }
    }

    /// Adds to a cause that the judge could not be asked. Returns causes of the measured model unchanged.
    pub(crate) fn explain(self, cause: &str) -> String {
        match self {
            Self::Model => cause.to_owned(),
            Self::Judge => format!("the judge could not be asked: {cause}"),
        }
    }
}

/// A model at a provider, as one run asks it.
pub(crate) struct ModelClient {
    /// Purpose for which the run asks it.
    pub(crate) role: Role,
    /// The model.
    pub(crate) model: ModelRef,
    endpoint: Endpoint,
    /// Refusals that it gave this run.
    refusals: Arc<Refusals>,
    wait: Wait,
}

/// A question to a model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question<'a> {
    /// Prompt to send.
    pub(crate) prompt: &'a Prompt,
    /// Generation settings of the answer.
    pub(crate) generation: &'a Generation,
    /// JSON schema of the answer, for models that support structured output.
    pub(crate) reply_schema: Option<&'a Value>,
}

/// Result of asking a model.
#[derive(Debug)]
pub(crate) enum Asked {
    /// An answer.
    Answer(Box<Answer>),
    /// A failure.
    Failed(Failure),
    /// The run ended meanwhile.
    RunOver,
}

impl Pipeline {
    /// Asks a model once, unless its provider asked for a wait that hasn't ended. Returns early if the run
    /// ends. Removes the run's keys from the answer or the failure.
    pub(crate) async fn ask(
        &self,
        claimed: &ClaimedSample,
        client: &ModelClient,
        question: &Question<'_>,
    ) -> Result<Asked, PipelineError> {
        if let Some(failure) = self.active_wait(client, bench_clock::now()).await? {
            return Ok(Asked::Failed(failure));
        }
        match self.held_up(claimed, client).await? {
            Some(HeldUp::Wait(failure)) => return Ok(Asked::Failed(failure)),
            Some(HeldUp::RunOver) => return Ok(Asked::RunOver),
            None => {}
        }
        let limit = self.config.answer_time.for_benchmark(claimed.benchmark.benchmark);
        let time = claimed.deadline.remaining(self.config.reserve).min(limit);
        let Question { prompt, generation, reply_schema } = *question;
        let request = ChatRequest { model: &client.model.slug, prompt, generation, reply_schema };
        let call = self.chat.complete(&client.endpoint, &request, Some(Instant::now() + time));
        tokio::pin!(call);
        let _asking = client.refusals.ask();
        let keys = &claimed.run.keys;
        loop {
            tokio::select! {
                done = &mut call => return Ok(match done {
                    Ok(mut answer) => {
                        client.refusals.answered();
                        keys.redact_answer(&mut answer);
                        Asked::Answer(Box::new(answer))
                    }
                    Err(mut failure) => {
                        failure.redact(keys);
                        Asked::Failed(failure)
                    }
                }),
                () = tokio::time::sleep(LOOK_EVERY) => {
                    // A failed check doesn't cancel the call, since the answer is being paid for.
                    if matches!(self.runs.wants_answers(claimed.sample.run).await, Ok(false)) {
                        return Ok(Asked::RunOver);
                    }
                }
            }
        }
    }
}
