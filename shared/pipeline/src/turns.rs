//! SQS turns: a judge says what a stored answer is worth, or a sandbox shows it.
//!
//! The sample was handed over by the worker: its answer is stored and noted in its record. It is claimed as by the
//! worker, and its stage says which turn it is.
//!
//! **A judge's turn.** The judge is asked, its reply stored beside the answer under this attempt, read and committed, in
//! this order. Killed between any two of these the next attempt goes on behind the last one that was finished: a reply
//! that was stored is read, not asked for again, and the model is never asked again at all. A judge call is a model call
//! like any other, with its own provider, key, waits, tokens and cost. What goes wrong with it is an infrastructure-error
//! of the sample or the end of the run, never a verdict.
//!
//! **A sandbox's turns** are in `job`.

use crate::{AskError, Attempt, Desk, InHand, PipelineConfig, SandboxHost, Services, Stage};
use async_trait::async_trait;
use bench_domain::SampleRef;
use bench_lambda::{Deadline, SqsBatchResponse, SqsEvent};

/// The function that asks judges and has jobs run.
pub struct Turns {
    pub(crate) desk: Desk,
    pub(crate) host: SandboxHost,
}

impl Turns {
    /// The function with its clients.
    pub fn new(services: Services, config: PipelineConfig, host: SandboxHost) -> Self {
        Self { desk: Desk::new(Stage::Judge, services, config), host }
    }

    /// Handles a batch of messages, all of them at once: waiting for ten replies costs one invocation.
    pub async fn handle(&self, event: SqsEvent, deadline: Deadline) -> SqsBatchResponse {
        self.desk.handle(event, deadline, self).await
    }

    /// Writes what operators are told and was not written yet: for the end of an invocation, after which nothing
    /// may run, and for the end of the process.
    pub async fn flush(&self) {
        self.desk.flush().await;
    }
}

#[async_trait]
impl Attempt for Turns {
    async fn attempt(&self, hand: &InHand<'_>) -> Result<(), AskError> {
        let stored = self.desk.stored_body(hand).await?;
        match (hand.claimed.record.stage(), stored) {
            (Stage::Sandbox, stored) => self.job(hand, stored).await,
            (_, Some((body, stored))) => self.read_again(hand, body, stored).await,
            (_, None) => self.ask(hand).await,
        }
    }

    async fn abandoned(&self, sample: &SampleRef) -> Result<(), AskError> {
        self.end_job(sample).await
    }
}
