//! Receives a batch of messages, claims each sample, runs its stage, and reports failed messages.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bench_blobs::Blobs;
use bench_domain::{SampleRef, Stage, Verdict};
use bench_episodes::Transcripts;
use bench_inference::ChatClient;
use bench_lambda::{Deadline, SqsBatchResponse, SqsEvent, forward, handle_batch, panic_text};
use bench_queue::{Message, QueueName, Queues};
use bench_sign_in::{Provider, SessionTokens};
use bench_state::{Commits, State, Turn};
use futures_util::FutureExt;

use crate::activity::{self, Activity};
use crate::context::{AgentCache, ClaimedSample, ModelClients, RunCache, TaskCache};
use crate::error::PipelineError;
use crate::{PipelineConfig, SandboxHost, Services};

/// Takes samples from message to score. One pipeline can serve both queues of samples, or each queue its own.
pub struct Pipeline {
    pub(crate) state: State,
    pub(crate) commits: Commits,
    pub(crate) queues: Queues,
    pub(crate) blobs: Blobs,
    pub(crate) chat: ChatClient,
    pub(crate) runs: RunCache,
    /// Access tokens of users who pay for their runs.
    pub(crate) tokens: SessionTokens,
    pub(crate) clients: ModelClients,
    pub(crate) sandboxes: SandboxHost,
    pub(crate) tasks: TaskCache,
    pub(crate) agents: AgentCache,
    pub(crate) transcripts: Transcripts,
    pub(crate) activity: Activity,
    pub(crate) config: PipelineConfig,
}

impl Pipeline {
    /// Creates a pipeline from its clients.
    pub fn new(services: Services, config: PipelineConfig) -> Self {
        let Services { state, queues, blobs, credentials, chat, inference, ledgers, sandboxes } = services;
        let operator_keys = inference.keys().merged_with(&config.keys);
        let provider = config.sign_in.clone().map(|config| Arc::new(Provider::new(config)));
        let tokens = SessionTokens::new(state.clone(), credentials.clone(), provider);
        let runs = RunCache::new(state.clone(), credentials, operator_keys, ledgers);
        let clients = ModelClients::new(inference);
        let activity = Activity::new(state.clone(), config.identity.clone());
        let (tasks, agents, transcripts) =
            (TaskCache::default(), AgentCache::default(), Transcripts::default());
        Self {
            commits: Commits::new(state.clone(), config.groups_commits),
            state,
            queues,
            blobs,
            chat,
            runs,
            tokens,
            clients,
            sandboxes,
            tasks,
            agents,
            transcripts,
            activity,
            config,
        }
    }

    /// Creates the pipeline of a Lambda function from its variables.
    ///
    /// # Errors
    /// Names the variable that is missing or invalid.
    #[cfg(feature = "deployed")]
    pub fn from_init(init: &bench_lambda::Init) -> anyhow::Result<Self> {
        Ok(Self::new(Services::from_init(init)?, PipelineConfig::from_vars(init.vars.lookup())?))
    }

    /// Handles a batch of messages from `queue` concurrently: waiting for all of its answers costs one invocation.
    pub async fn handle(&self, queue: QueueName, event: SqsEvent, deadline: Deadline) -> SqsBatchResponse {
        // Boxed, because the future is large and callers nest it further.
        let mut work = Box::pin(handle_batch(event, queue, &self.queues, |message| async move {
            match message {
                message if message.queue() != queue => Ok(forward(message, queue, &self.queues).await?),
                Message::Sample { sample, generation } => {
                    self.handle_sample(Stage::Answer, &sample, generation, deadline).await
                }
                Message::Turn { sample, generation } => {
                    self.handle_sample(Stage::Judge, &sample, generation, deadline).await
                }
                other @ (Message::Plan { .. } | Message::Finish { .. }) => {
                    Ok(forward(other, queue, &self.queues).await?)
                }
            }
        }));
        let response = loop {
            tokio::select! {
                response = &mut work => break response,
                () = tokio::time::sleep(activity::POLL_INTERVAL) => self.activity.write_heartbeat_in_background(),
            }
        };
        Box::pin(self.activity.write_heartbeat()).await;
        response
    }

    /// Writes the remaining token counts for operators. Call this at the end of an invocation, after which no
    /// code may run, and at the end of the process.
    pub async fn flush(&self) {
        Box::pin(self.activity.flush()).await;
    }

    /// Handles the message of a sample in `stage`, or in any later one if `stage` is a turn.
    async fn handle_sample(
        &self,
        stage: Stage,
        sample: &SampleRef,
        generation: u32,
        deadline: Deadline,
    ) -> Result<(), PipelineError> {
        let claimed = Box::pin(self.claim(stage, sample, generation, deadline)).await?;
        let Some(claimed) = claimed else { return Ok(()) };
        let _in_progress = self.activity.start(sample.run);
        // A panic is a failed attempt like any other: after five of them, the message is a dead letter.
        let attempted = AssertUnwindSafe(Box::pin(self.attempt(&claimed))).catch_unwind().await;
        let attempted =
            attempted.unwrap_or_else(|panic| Err(PipelineError::Panic(panic_text(panic.as_ref()))));
        self.end_provider_wait(&claimed).await;
        if attempted.is_err()
            && let Err(error) = self.release_after_error(&claimed).await
        {
            // Only the attempt's own error is returned; this one just means that the lease has to end first.
            tracing::warn!(run.id = %sample.run, %error, "Sample {sample} could not be given back: {error}");
        }
        attempted
    }

    /// Makes one attempt. It ends by committing the sample, by putting it off, or with an error.
    async fn attempt(&self, claimed: &ClaimedSample) -> Result<(), PipelineError> {
        let lost = claimed.record.history.lost;
        if lost >= self.config.lost_max() {
            // Checked first, because grading the stored answer may be what kills the process.
            let why =
                format!("{lost} attempts were cut off by the end of their process, and none came to an end");
            return self
                .end(claimed, Verdict::ungraded(claimed.record.stage().lost_attempts_code(), why))
                .await;
        }
        let stored = self.stored_body(claimed).await?;
        // Boxed, because the combined states of all stages overflow the stack of an ordinary thread.
        match &claimed.record.turn {
            None | Some(Turn { stage: Stage::Answer, .. }) => Box::pin(self.answer(claimed, stored)).await,
            Some(turn @ Turn { stage: Stage::Judge, .. }) => {
                Box::pin(self.judge(claimed, turn, stored)).await
            }
            Some(turn @ Turn { stage: Stage::Sandbox, .. }) => {
                Box::pin(self.sandbox_job(claimed, turn, stored)).await
            }
            Some(turn @ Turn { stage: Stage::Episode | Stage::Verification, .. }) => {
                Box::pin(self.episode(claimed, turn, stored)).await
            }
        }
    }
}
