//! Conversations of an agent with a simulated user, whose tools run in a sandbox.
//!
//! Each step of the sandbox is a job with the step's number in its name. It rebuilds the environment from the messages, so a
//! conversation whose sandbox was lost goes on in another one, and no model is asked again.

mod report;

use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use bench_agents::dialogue::{
    Dialogue, DialogueCall, DialogueMessage, DialogueNeed, DialogueOpening, DialogueReply, DialogueState,
    Party, Termination,
};
use bench_agents::{Part, Transcript};
use bench_domain::{AgentProgress, AgentRecord, AgentTotals, EpisodeState, JobReport, JobSpec, Usage};
use bench_environments::EnvironmentError;
use bench_sandy::Sandy;
use bench_sandy::job::JobError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

pub use self::report::{DialogueFacts, dialogue_report};

use crate::stop::Stop;
use crate::thinker::parts_as_json;
use crate::workspace::jobs::Jobs;

/// Mark of a conversation in its checkpoint.
const MARK: &str = "dialogue";
/// Maximum number of replies in a row that are no messages: the first one, and three more.
const UNUSABLE_MAX: u32 = 4;
/// Maximum number of tries of a step whose result can't be read, in different jobs.
const STEP_TRIES: u32 = 2;

/// Steps of a conversation as jobs, and their results.
pub trait DialogueSteps: Send + Sync {
    /// Returns the job of a step.
    ///
    /// # Errors
    /// Returns a sentence if the item can't be used.
    fn job(&self, step: SandboxStep<'_>) -> Result<JobSpec, String>;

    /// Reads the beginning of a conversation, and its first messages.
    ///
    /// # Errors
    /// If the report has none.
    fn opened(&self, report: &JobReport) -> Result<(DialogueOpening, Vec<DialogueMessage>), StepFailure>;

    /// Reads the actions of a right conversation.
    ///
    /// # Errors
    /// If the report has none.
    fn gold(&self, report: &JobReport) -> Result<Vec<DialogueCall>, StepFailure>;

    /// Reads the results of calls.
    ///
    /// # Errors
    /// If the report has none.
    fn results(
        &self,
        calls: &[DialogueCall],
        report: &JobReport,
    ) -> Result<Vec<DialogueMessage>, StepFailure>;

    /// Reads the reward with its parts.
    ///
    /// # Errors
    /// If the report has none.
    fn reward_info(&self, report: &JobReport) -> Result<Value, StepFailure>;

    /// Returns the limits of a conversation with these marks that end it.
    fn rules(&self, stop_tokens: &[String]) -> Dialogue;
}

/// Step that a sandbox carries out.
#[derive(Debug, Clone, Copy)]
pub enum SandboxStep<'a> {
    /// Return texts, tools and first messages.
    Open,
    /// Return the actions of a right conversation.
    Gold,
    /// Replay these messages, and execute these calls.
    Call(&'a [DialogueMessage], &'a [DialogueCall]),
    /// Compute the reward of these messages, which ended for this reason.
    Evaluate(&'a [DialogueMessage], Termination),
}

/// Failure of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepFailure {
    /// The host lacks something, in one sentence.
    Setup(String),
    /// The conversation can't go on, in one sentence.
    Final(String),
    /// Another try may have a result.
    Unreadable(String),
}

/// A conversation in its sandbox.
#[derive(Clone, Copy)]
pub struct DialogueEpisode<'a> {
    /// Client of the sandbox host.
    pub sandy: &'a Sandy,
    /// Id of the sandbox.
    pub sandbox: &'a str,
    /// Steps in the sandbox.
    pub steps: &'a dyn DialogueSteps,
    /// Transcript of all stored records.
    pub transcript: &'a Transcript,
    /// Reply that was received and hasn't been stored yet.
    pub reply: Option<&'a ReceivedReply>,
    /// True if gold actions are played instead of asking models.
    pub plays_gold: bool,
    /// Time of day for the transcript, as ISO 8601 text.
    pub at: Option<&'a str>,
    /// Number of queues whose messages find no place. A turn doesn't linger then.
    pub places_wanted: &'a AtomicUsize,
}

/// Reply of a party's model to the request of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceivedReply {
    /// Number of the record that it leads to.
    pub record: u32,
    /// Party that replies.
    pub party: Party,
    /// The reply.
    pub reply: DialogueReply,
    /// Tokens to count; `None` if no model was asked.
    pub paid: Option<Usage>,
}

/// Result of a turn.
#[derive(Debug)]
pub enum DialogueAdvance {
    /// A job is running. The checkpoint may have changed; the next turn follows after this wait.
    Waiting(Duration),
    /// A party speaks next. The caller sets [`DialogueEpisode::reply`] and repeats the call.
    Asks {
        /// The party.
        party: Party,
        /// Number of the record that its reply leads to.
        record: u32,
    },
    /// A step is to be stored. The caller stores the record, adds it to the transcript, sets the checkpoint's agent to its
    /// progress, saves the checkpoint, and repeats the call.
    Stepped(Box<AgentRecord>),
    /// The conversation is over, and has a reward with its parts.
    Ended(Termination, Box<Value>),
    /// The conversation can't be graded, in one sentence.
    Ungradable(String),
    /// The sandbox or its host failed.
    Failed(EnvironmentError),
}

/// State of a conversation in its progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Progress {
    /// Rules.
    pub(crate) dialogue: DialogueState,
    /// What the user simulator used. What the agent used is in the progress itself.
    pub(crate) user: AgentTotals,
    /// Reason why the last reply was no message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// Marks the checkpoint as that of a conversation.
pub fn note_dialogue(state: &mut EpisodeState) {
    crate::note_workspace(state);
    state.done.insert(MARK.to_owned(), true.into());
}

/// Returns true for the checkpoint of a conversation.
pub fn is_dialogue(state: &EpisodeState) -> bool {
    state.done.contains_key(MARK)
}

/// Returns the checkpoint of the same conversation for another sandbox. Messages stay.
pub fn in_another_sandbox(state: &EpisodeState, round: u32) -> EpisodeState {
    let mut next = EpisodeState {
        started_at: state.started_at,
        agent: state.agent.clone(),
        paid: state.paid,
        user_paid: state.user_paid,
        exceptions: state.exceptions,
        ..EpisodeState::new(round, state.nonce.clone())
    };
    note_dialogue(&mut next);
    next
}

/// Returns true if the conversation of a checkpoint has ended. Its reward may still be missing.
pub(crate) fn has_ended(progress: &AgentProgress) -> bool {
    serde_json::from_value::<Progress>(progress.state.clone())
        .is_ok_and(|state| state.dialogue.termination.is_some())
}

impl DialogueEpisode<'_> {
    /// Carries the conversation on until something is needed, or `linger` is over and a job is still running.
    pub async fn advance(&self, state: &mut EpisodeState, linger: Duration) -> DialogueAdvance {
        let mut jobs = Jobs {
            sandy: self.sandy,
            sandbox: self.sandbox,
            state,
            leave_at: Instant::now() + linger,
            places_wanted: self.places_wanted,
        };
        match Box::pin(self.next(&mut jobs)).await {
            Ok(advance) => advance,
            Err(Stop::Wait(wait)) => DialogueAdvance::Waiting(wait),
            Err(Stop::Failure(error)) => DialogueAdvance::Failed(error),
            Err(Stop::Exception(exception, _)) => DialogueAdvance::Ungradable(exception.message),
            Err(_) => DialogueAdvance::Ungradable("the conversation had nothing to do".to_owned()),
        }
    }

    async fn next(&self, jobs: &mut Jobs<'_>) -> Result<DialogueAdvance, Stop> {
        let Some(progress) = jobs.state.agent.clone() else { return self.open(jobs).await };
        let Some(opening) = self.transcript.opening() else {
            return Err(Stop::refused("the beginning of the conversation is gone"));
        };
        let rules = self.steps.rules(&opening.stop_tokens);
        let known: Progress = serde_json::from_value(progress.state.clone())
            .map_err(|error| Stop::refused(format!("the conversation's state can't be read: {error}")))?;
        let messages = self.transcript.dialogue();
        let mismatch = |error: bench_agents::dialogue::DialogueError| Stop::refused(error.to_string());
        match rules.need(&known.dialogue) {
            // The last of these replies is stored like the others, since it was paid for.
            DialogueNeed::Speak(party) if known.dialogue.unusable >= UNUSABLE_MAX => {
                let who = match party {
                    Party::Agent => "the model",
                    Party::User => "the user simulator",
                };
                let (many, problem) = (known.dialogue.unusable, known.problem.unwrap_or_default());
                Err(Stop::refused(format!(
                    "{who} gave {many} replies in a row that are no messages: {problem}"
                )))
            }
            DialogueNeed::Speak(party) => {
                let record = progress.records;
                let reply = self.reply.filter(|reply| reply.record == record && reply.party == party);
                let Some(received) = reply else { return Ok(DialogueAdvance::Asks { party, record }) };
                self.said(&rules, progress, known, received, messages.len())
            }
            DialogueNeed::Execute => {
                let Some((last, before)) = messages.split_last() else {
                    return Err(Stop::refused("the messages of the conversation are gone"));
                };
                let calls = &last.tool_calls;
                let name = format!("call-{}", progress.records);
                let step = SandboxStep::Call(before, calls);
                let results = self.run(jobs, &name, step, |report| self.steps.results(calls, report)).await?;
                let results: Vec<DialogueMessage> = results
                    .into_iter()
                    .map(|result| DialogueMessage { at: self.at.map(str::to_owned), ..result })
                    .collect();
                let dialogue = rules.observe(&known.dialogue, &results).map_err(mismatch)?;
                let parts = results.into_iter().map(|result| Part::Dialogue(Box::new(result))).collect();
                stepped(progress, &Progress { dialogue, ..known }, parts)
            }
            DialogueNeed::Ended(termination) => {
                let step = SandboxStep::Evaluate(&messages, termination);
                let info = self.run(jobs, "evaluate", step, |report| self.steps.reward_info(report)).await?;
                Ok(DialogueAdvance::Ended(termination, Box::new(info)))
            }
        }
    }

    /// Begins the conversation.
    async fn open(&self, jobs: &mut Jobs<'_>) -> Result<DialogueAdvance, Stop> {
        let open = |report: &JobReport| self.steps.opened(report);
        let (mut opening, messages) = self.run(jobs, "open", SandboxStep::Open, open).await?;
        if self.plays_gold {
            let gold = |report: &JobReport| self.steps.gold(report);
            opening.gold = self.run(jobs, "gold", SandboxStep::Gold, gold).await?;
        }
        let rules = self.steps.rules(&opening.stop_tokens);
        let dialogue = rules.start(&messages).map_err(|error| Stop::refused(error.to_string()))?;
        let messages = messages.into_iter().map(|message| {
            Part::Dialogue(Box::new(DialogueMessage { at: self.at.map(str::to_owned), ..message }))
        });
        let parts = std::iter::once(Part::Opening(Box::new(opening))).chain(messages).collect();
        stepped(
            AgentProgress::new(0),
            &Progress { dialogue, user: AgentTotals::default(), problem: None },
            parts,
        )
    }

    /// Makes a record of a reply: a message, or one more reply that is none.
    fn said(
        &self,
        rules: &Dialogue,
        mut progress: AgentProgress,
        known: Progress,
        received: &ReceivedReply,
        number: usize,
    ) -> Result<DialogueAdvance, Stop> {
        let mut known = known;
        let party = received.party;
        if let Some(usage) = received.reply.usage {
            let totals = match party {
                Party::Agent => &mut progress.totals,
                Party::User => &mut known.user,
            };
            count(totals, usage, received.reply.latency_ms);
        }
        progress.elapsed_ms = progress.elapsed_ms.saturating_add(received.reply.latency_ms);
        let at = self.at.map(str::to_owned);
        let parts = match received.reply.clone().into_message(party, number, at) {
            Ok(message) => {
                known.dialogue =
                    rules.say(&known.dialogue, &message).map_err(|error| Stop::refused(error.to_string()))?;
                known.problem = None;
                vec![Part::Dialogue(Box::new(message))]
            }
            Err(problem) => {
                known.dialogue.unusable += 1;
                known.problem = Some(problem.to_string());
                Vec::new()
            }
        };
        let advance = stepped(progress, &known, parts)?;
        Ok(match advance {
            DialogueAdvance::Stepped(mut record) => {
                match party {
                    Party::Agent => record.paid = received.paid,
                    Party::User => record.user_paid = received.paid,
                }
                DialogueAdvance::Stepped(record)
            }
            other => other,
        })
    }

    /// Runs a step's job once, and again under another name if its result can't be read.
    async fn run<T>(
        &self,
        jobs: &mut Jobs<'_>,
        name: &str,
        step: SandboxStep<'_>,
        read: impl Fn(&JobReport) -> Result<T, StepFailure>,
    ) -> Result<T, Stop> {
        let spec = self.steps.job(step).map_err(Stop::refused)?;
        let mut problem = String::new();
        for number in 1..=STEP_TRIES {
            let job = if number == 1 { name.to_owned() } else { format!("{name}-again") };
            let report = jobs.run(&job, &spec, false).await?;
            match read(&report) {
                Ok(result) => return Ok(result),
                Err(StepFailure::Setup(why)) => {
                    return Err(Stop::Failure(EnvironmentError::Host(JobError::MissingPackages(why))));
                }
                Err(StepFailure::Final(why)) => return Err(Stop::refused(why)),
                Err(StepFailure::Unreadable(why)) => problem = why,
            }
        }
        Err(Stop::refused(problem))
    }
}

/// Returns the record of a step.
fn stepped(mut progress: AgentProgress, known: &Progress, parts: Vec<Part>) -> Result<DialogueAdvance, Stop> {
    progress.records = progress.records.saturating_add(1);
    progress.totals.turns = known.dialogue.steps;
    progress.state =
        serde_json::to_value(known).map_err(|_| Stop::refused("the conversation's state can't be stored"))?;
    let parts = parts_as_json(&parts);
    Ok(DialogueAdvance::Stepped(Box::new(AgentRecord { progress, parts, paid: None, user_paid: None })))
}

/// Adds a model call to the sums.
fn count(totals: &mut AgentTotals, usage: bench_agents::Usage, latency_ms: u64) {
    totals.calls = totals.calls.saturating_add(1);
    totals.input_tokens = totals.input_tokens.saturating_add(usage.input_tokens);
    totals.cached_tokens = totals.cached_tokens.saturating_add(usage.cached_tokens);
    totals.output_tokens = totals.output_tokens.saturating_add(usage.output_tokens);
    if usage.cost_usd.is_finite() {
        totals.cost_usd += usage.cost_usd.max(0.0);
    }
    totals.model_ms = totals.model_ms.saturating_add(latency_ms);
}
