//! Asks a model at a provider for answers, or the judge for replies, for as long as the run needs them.

mod failure;
mod pace;
mod provider_wait;
mod refusals;
mod wait;

use std::borrow::Cow;
use std::time::Duration;

use bench_domain::{Answer, Generation, ModelRole, Prompt, Secret};
use bench_inference::{ChatRequest, Endpoint, Failure, FailureKind, Fatal};
use bench_sign_in::TokenError;
use serde_json::Value;
use tokio::time::Instant;

use self::refusals::SendBlocked;
use self::wait::Admission;
use crate::Pipeline;
use crate::context::{ClaimedSample, ModelClient};
use crate::error::PipelineError;

/// Interval at which a call in flight checks whether its run is still open.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Time limit for one answer to an agent.
const AGENTS_ANSWER_MAX: Duration = Duration::from_secs(1_200);

/// A question to a model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question<'a> {
    /// Prompt to send.
    pub(crate) prompt: &'a Prompt,
    /// Generation settings of the answer.
    pub(crate) generation: &'a Generation,
    /// JSON schema of the answer, for models that support structured output.
    pub(crate) reply_schema: Option<&'a Value>,
    /// Tools that the model may call.
    pub(crate) tools: Option<&'a Value>,
    /// True if the next question continues this one.
    pub(crate) is_continued: bool,
}

/// Result of asking a model.
#[derive(Debug)]
pub(crate) enum AskResult {
    /// An answer.
    Answer(Box<Answer>),
    /// A failure.
    Failed(Failure),
    /// The run ended meanwhile.
    RunOver,
    /// The sample was put off, since the run limits its requests per minute.
    PutOff,
}

impl Pipeline {
    /// Returns the time limit for one answer: the run's own instead of the benchmark's, and at most the operator's. Replies
    /// of the judge have the benchmark's limit.
    pub(crate) fn answer_limit(&self, claimed: &ClaimedSample, role: ModelRole) -> Duration {
        let own = claimed.run.spec.limits.timeout_seconds.filter(|_| role == ModelRole::Model);
        let limit = self.config.answer_time.for_run(claimed.benchmark.benchmark, own);
        match claimed.benchmark.benchmark.has_agent() {
            // The benchmark's limit is that of a whole episode.
            true if own.is_none() => limit.min(AGENTS_ANSWER_MAX),
            _ => limit,
        }
    }

    /// Asks a model once, unless its provider asked for a wait that hasn't ended. Returns early if the run
    /// ends. Removes the run's keys from the answer or the failure.
    pub(crate) async fn ask(
        &self,
        claimed: &ClaimedSample,
        client: &ModelClient,
        question: &Question<'_>,
    ) -> Result<AskResult, PipelineError> {
        let probed = match self.admit(claimed, client).await? {
            Admission::Send(probed) => probed,
            Admission::Wait(failure) => return Ok(AskResult::Failed(failure)),
        };
        match self.send_blocked(claimed, client).await? {
            Some(SendBlocked::Wait(failure)) => return Ok(AskResult::Failed(failure)),
            Some(SendBlocked::RunOver) => return Ok(AskResult::RunOver),
            None => {}
        }
        if let Some(unasked) = self.wait_for_slot(claimed, client).await? {
            return Ok(unasked);
        }
        if let Some(wait) = probed
            && let Some(failure) = self.take_probe(claimed, client, &wait).await?
        {
            return Ok(AskResult::Failed(failure));
        }
        let asked = self.send(claimed, client, question).await;
        let answers = match &asked {
            AskResult::Answer(_) => true,
            // Ends the probe when it sets the new end of the wait.
            AskResult::Failed(Failure { kind: FailureKind::RateLimited, status: Some(_), .. }) => {
                return Ok(asked);
            }
            AskResult::Failed(failure) => {
                !matches!(failure.kind, FailureKind::RateLimited | FailureKind::Transient)
            }
            AskResult::RunOver | AskResult::PutOff => false,
        };
        let ended = self.note_end(claimed, client, answers).await;
        ended.unwrap_or_else(|error| log_unknown_end(claimed, &error));
        Ok(asked)
    }

    /// Sends the request, and repeats it with another access token if a session pays and the gateway refuses its token. Returns
    /// early if the run ends.
    async fn send(
        &self,
        claimed: &ClaimedSample,
        client: &ModelClient,
        question: &Question<'_>,
    ) -> AskResult {
        let mut refused = None;
        for _ in 0..TOKENS_MAX {
            let endpoint = match self.endpoint(client, refused.as_ref()).await {
                Ok(endpoint) => endpoint,
                Err(failure) => return AskResult::Failed(failure),
            };
            match self.send_to(&endpoint, claimed, client, question).await {
                AskResult::Failed(failure) if client.session.is_some() && is_refused(&failure) => {
                    tracing::info!(run.id = %claimed.sample.run, "The gateway refused a session's access token");
                    refused = endpoint.key().cloned();
                }
                asked => return asked,
            }
        }
        AskResult::Failed(Failure::session_over(SESSION_OVER))
    }

    async fn send_to(
        &self,
        endpoint: &Endpoint,
        claimed: &ClaimedSample,
        client: &ModelClient,
        question: &Question<'_>,
    ) -> AskResult {
        let limit = self.answer_limit(claimed, client.role);
        let time = claimed.deadline.remaining(self.config.reserve).min(limit);
        let Question { prompt, generation, reply_schema, tools, is_continued } = *question;
        let request =
            ChatRequest { model: &client.model.slug, prompt, generation, reply_schema, tools, is_continued };
        let call = self.chat.complete(endpoint, &request, Some(Instant::now() + time));
        tokio::pin!(call);
        let _asking = client.refusals.begin_request();
        let keys = &claimed.run.keys;
        let sent_at = bench_clock::now();
        loop {
            tokio::select! {
                done = &mut call => return match done {
                    Ok(mut answer) => {
                        client.refusals.note_answer();
                        claimed.run.waits.note_answer(client.role, sent_at);
                        keys.redact_answer(&mut answer);
                        AskResult::Answer(Box::new(answer))
                    }
                    Err(mut failure) => {
                        failure.redact(keys);
                        AskResult::Failed(failure)
                    }
                },
                () = tokio::time::sleep(POLL_INTERVAL) => {
                    // A failed check doesn't cancel the call, since the answer is being paid for.
                    if matches!(self.runs.wants_answers(claimed.sample.run).await, Ok(false)) {
                        return AskResult::RunOver;
                    }
                }
            }
        }
    }
}

impl Pipeline {
    /// Returns the endpoint of a model, with a valid access token if a signed-in user pays: another one than the refused one.
    async fn endpoint<'a>(
        &self,
        client: &'a ModelClient,
        refused: Option<&Secret>,
    ) -> Result<Cow<'a, Endpoint>, Failure> {
        let Some(session) = &client.session else { return Ok(Cow::Borrowed(&client.endpoint)) };
        let token = match refused {
            Some(refused) => self.tokens.replace_refused(session, refused).await,
            None => self.tokens.access_token(session).await,
        };
        match token {
            Ok(token) => Ok(Cow::Owned(client.endpoint.with_key(token))),
            Err(TokenError::Gone) => Err(Failure::session_over(SESSION_OVER)),
            Err(error @ TokenError::NotConfigured) => Err(Failure::session_over(error.to_string())),
            Err(error @ TokenError::Later(wait)) => Err(Failure::not_yet(wait, error.to_string())),
            Err(TokenError::State(error)) => {
                tracing::warn!(%error, "A session's access token can't be read: {error}");
                Err(Failure::not_yet(TOKEN_RETRY, "the session's access token can't be read at present"))
            }
        }
    }
}

/// Cause of the failure of a run whose session is over.
const SESSION_OVER: &str = "Chutes session expired or invalid; sign in again and requeue the run";
/// Time after which a token that couldn't be read is read again.
const TOKEN_RETRY: Duration = Duration::from_secs(5);

/// Number of access tokens that the gateway may refuse before the session counts as over: a cached one, the stored one, and a
/// renewed one.
const TOKENS_MAX: usize = 3;

/// Returns true if the provider refused the key of a request.
fn is_refused(failure: &Failure) -> bool {
    failure.status == Some(401) && failure.kind == FailureKind::FatalForRun(Fatal::Key)
}

/// Logs that the end of a wait wasn't written: the answer that ended it must not be lost with it.
fn log_unknown_end(claimed: &ClaimedSample, error: &PipelineError) {
    tracing::debug!(run.id = %claimed.sample.run, %error, "The end of the provider's wait was not noted");
}
