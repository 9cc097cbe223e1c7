//! From a message to a sample in hand, and back.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use async_trait::async_trait;
use bench_blobs::{BlobError, Blobs};
use bench_datasets::DatasetError;
use bench_domain::sample::{Effort, Stage};
use bench_domain::{Code, SampleBody, SampleRef, Timestamp, Verdict};
use bench_inference::{ChatClient, InferenceConfig};
use bench_lambda::{Deadline, SqsBatchResponse, SqsEvent, handle_batch, panic_text};
use bench_queue::{DELAY_MAX, Message, QueueError, QueueName, Queues};
use bench_state::credentials::Credentials;
use bench_state::{Claim, ClaimedSample, State, StateError};
use futures_util::FutureExt;

use crate::heartbeat::{self, Vitals};
use crate::load::run::{Contexts, RunContext};
use crate::{Ledgers, PipelineConfig, StoredBody};

/// The clients of a function that asks models.
pub struct Services {
    /// Runs and samples.
    pub state: State,
    /// Messages.
    pub queues: Queues,
    /// Items, prompts, answers.
    pub blobs: Blobs,
    /// Callers' keys.
    pub credentials: Credentials,
    /// Asks providers.
    pub chat: ChatClient,
    /// The operator's providers.
    pub inference: InferenceConfig,
    /// What runs have spent: one for all functions of a process.
    pub ledgers: Ledgers,
}

/// Takes the samples of one stage, one attempt at a time each.
pub struct Desk {
    /// Runs and samples.
    pub state: State,
    /// Messages.
    pub queues: Queues,
    /// Items, prompts, answers.
    pub blobs: Blobs,
    /// What may be tried, and how long.
    pub config: PipelineConfig,
    /// What is known of runs.
    pub contexts: Contexts,
    pub(crate) chat: ChatClient,
    pub(crate) vitals: Vitals,
    pub(crate) stage: Stage,
}

/// Why a sample could not be handled now. Its message comes again.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The state failed.
    #[error(transparent)]
    State(#[from] StateError),
    /// A queue failed.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// The store failed.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// An item or a text of its dataset could not be read.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// The attempt panicked.
    #[error("the attempt panicked: {0}")]
    Panic(String),
}

/// A sample in hand: what is known while it is worked on.
pub struct InHand<'a> {
    /// Its run.
    pub run: &'a RunContext,
    /// Its address.
    pub sample: &'a SampleRef,
    /// Its record, and the number of the attempt.
    pub claimed: ClaimedSample,
    /// The end of the lease.
    pub deadline: Deadline,
}

/// What is done with a sample in hand.
#[async_trait]
pub trait Attempt: Send + Sync {
    /// One attempt. It ends by committing the sample, by putting it off, or with an error: then it is given back.
    async fn attempt(&self, hand: &InHand<'_>) -> Result<(), AskError>;

    /// Clears up after a sample whose run is over or gone. Called with a message that is not needed any more; whoever
    /// held the sample may still be working.
    async fn abandoned(&self, sample: &SampleRef) -> Result<(), AskError> {
        let _ = sample;
        Ok(())
    }
}

impl Desk {
    /// A desk for one stage with its clients.
    pub fn new(stage: Stage, services: Services, config: PipelineConfig) -> Self {
        let Services { state, queues, blobs, credentials, chat, inference, ledgers } = services;
        let keys = inference.keys().and(&config.keys);
        let contexts =
            Contexts::new(stage, state.clone(), blobs.clone(), credentials, inference, keys, ledgers);
        let vitals = Vitals::new(state.clone(), config.identity.clone());
        Self { state, queues, blobs, config, contexts, chat, vitals, stage }
    }

    /// Handles a batch of messages, all of them at once: waiting for ten answers costs one invocation.
    pub async fn handle(
        &self,
        event: SqsEvent,
        deadline: Deadline,
        attempt: &dyn Attempt,
    ) -> SqsBatchResponse {
        let queue = match self.stage {
            Stage::Answer => QueueName::Items,
            Stage::Judge | Stage::Sandbox => QueueName::Turns,
        };
        // Boxed: the future is deep, and callers nest it further.
        let mut work = Box::pin(handle_batch(event, queue, &self.queues, |message| async move {
            match (self.stage, message) {
                (Stage::Answer, Message::Sample { sample, generation })
                | (Stage::Judge | Stage::Sandbox, Message::Turn { sample, generation }) => {
                    self.work(&sample, generation, deadline, attempt).await
                }
                _ => Ok(()),
            }
        }));
        let response = loop {
            tokio::select! {
                response = &mut work => break response,
                () = tokio::time::sleep(heartbeat::LOOK_EVERY) => self.vitals.beat_beside(),
            }
        };
        Box::pin(self.vitals.beat()).await;
        response
    }

    /// Writes what operators are told and was not written yet: for the end of an invocation, after which nothing
    /// may run, and for the end of the process.
    pub async fn flush(&self) {
        Box::pin(self.vitals.flush()).await;
    }

    async fn work(
        &self,
        sample: &SampleRef,
        generation: u32,
        deadline: Deadline,
        attempt: &dyn Attempt,
    ) -> Result<(), AskError> {
        let Some(run) = self.contexts.open(sample, generation).await? else {
            return attempt.abandoned(sample).await;
        };
        let now = Timestamp::now();
        let claimed = match self.state.claim(self.stage, sample, now, deadline.0).await? {
            Claim::Yours(claimed) => *claimed,
            Claim::NotDue(due_at) => return self.send_later(sample, run.generation, now, due_at).await,
            // Who holds it will finish it; reconciliation sends it again when the lease is over.
            Claim::Busy => return Ok(()),
            // Handed over, perhaps by an attempt that could not say so any more.
            Claim::Elsewhere(Stage::Judge | Stage::Sandbox) => {
                let message = Message::of_stage(Stage::Judge, sample.clone(), run.generation);
                return Ok(self.queues.send(&message, Duration::ZERO).await?);
            }
            Claim::Elsewhere(Stage::Answer) => return Ok(()),
            // Perhaps by an attempt that could not say any more that the run is complete.
            Claim::Over => return self.finish_if_complete(sample.run).await,
            Claim::Gone => {
                tracing::warn!(run.id = %sample.run, "There is no sample {sample}");
                return Ok(());
            }
        };
        let hand = InHand { run: &run, sample, claimed, deadline };
        let _held = self.vitals.hold(sample.run);
        // A panic is a failed attempt like any other: five of them make a dead letter.
        let attempted = AssertUnwindSafe(self.attempt(&hand, attempt)).catch_unwind().await;
        let attempted = attempted.unwrap_or_else(|panic| Err(AskError::Panic(panic_text(panic.as_ref()))));
        if let Err(error) = attempted {
            // Give it back at once: the message comes again sooner than the lease ends.
            // Not cleared: it may have failed behind storing an answer, which the next attempt then finds.
            let ClaimedSample { record, attempt } = &hand.claimed;
            self.state.release(sample, *attempt, record.cleared, Timestamp::now(), record.effort).await?;
            return Err(error);
        }
        Ok(())
    }

    async fn attempt(&self, hand: &InHand<'_>, attempt: &dyn Attempt) -> Result<(), AskError> {
        let lost = hand.claimed.record.effort.lost;
        if lost < self.config.lost_max() {
            return attempt.attempt(hand).await;
        }
        // Before anything is done with it: grading the stored answer may be what ends the process.
        let code = match hand.claimed.record.stage() {
            Stage::Judge => Code::JudgeAttemptsLost,
            Stage::Answer | Stage::Sandbox => Code::AttemptsLost,
        };
        let why =
            format!("{lost} attempts were cut off by the end of their process, and none came to an end");
        self.end(hand, Verdict::ungraded(code, why)).await
    }

    /// What an earlier attempt stored that ended between storing and committing it.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn stored_body(&self, hand: &InHand<'_>) -> Result<Option<(SampleBody, StoredBody)>, AskError> {
        for attempt in (hand.claimed.record.cleared + 1..hand.claimed.attempt).rev() {
            if let Some((body, sha256)) = self.blobs.get_body(hand.sample, attempt, None).await? {
                return Ok(Some((body, StoredBody { attempt, sha256 })));
            }
        }
        Ok(None)
    }

    /// Sends the message again for later; the old one is then not needed any more.
    async fn send_later(
        &self,
        sample: &SampleRef,
        generation: u32,
        now: Timestamp,
        due_at: Timestamp,
    ) -> Result<(), AskError> {
        // A second more, since SQS counts in whole seconds and waking early means another round.
        let delay = match due_at.since(now) {
            Duration::ZERO => Duration::ZERO,
            wait => wait + Duration::from_secs(1),
        };
        let message = Message::of_stage(self.stage, sample.clone(), generation);
        self.queues.send(&message, delay.min(DELAY_MAX)).await?;
        Ok(())
    }

    /// Gives the sample back, to be tried again after `wait`: nothing that was stored by now is looked for again.
    ///
    /// # Errors
    /// When a service fails.
    pub async fn put_off(&self, hand: &InHand<'_>, wait: Duration, effort: Effort) -> Result<(), AskError> {
        let now = Timestamp::now();
        let due_at = now.plus(wait);
        let attempt = hand.claimed.attempt;
        if self.state.release(hand.sample, attempt, attempt, due_at, effort).await? {
            self.send_later(hand.sample, hand.run.generation, now, due_at).await?;
        }
        Ok(())
    }

    /// Whether the run is still open: looks at most once a second.
    ///
    /// # Errors
    /// When the state fails.
    pub async fn is_open(&self, hand: &InHand<'_>) -> Result<bool, AskError> {
        match self.contexts.open(hand.sample, hand.run.generation).await? {
            Some(run) => Ok(run.generation == hand.run.generation),
            None => Ok(false),
        }
    }
}
