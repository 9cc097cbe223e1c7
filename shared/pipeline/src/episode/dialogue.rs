//! Turns of conversations: agent and simulated user are asked in turns, and their tools run in the sandbox.
//!
//! Each message is a record of its own, stored before the checkpoint names it, as the steps of other agents are. So a killed turn asks
//! for no stored reply again, and stored bytes grow linearly with messages. A lost sandbox costs a replay.

mod ask;

use std::time::{Duration, Instant};

use bench_agents::dialogue::{Dialogue, DialogueCall, DialogueMessage, DialogueOpening, Party, Termination};
use bench_benchmarks::{DialogueProtocol, DialogueStep, OpenedDialogue, StepProblem};
use bench_blobs::AgentRecords;
use bench_domain::{
    Code, EpisodeException, EpisodeReport, EpisodeState, JobReport, JobSpec, ModelRole, SampleBody, Spending,
    Verdict,
};
use bench_episodes::{
    DialogueAdvance, DialogueEpisode, DialogueFacts, DialogueSteps, SandboxStep, StepFailure, Thinker,
};
use bench_items::Item;
use serde_json::Value;

use super::work::Work;
use super::{EpisodeTurn, redact};
use crate::Pipeline;
use crate::commit::StoredBody;
use crate::context::AnswerSource;
use crate::error::PipelineError;

/// Maximum time of a conversation, in which waits for models count. Only sandboxes that were forgotten last so long.
pub(super) const TIME_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Exception of a conversation that can't be graded.
const CONVERSATION_FAILED: &str = "ConversationError";
/// Name of the simulated user in runs that ask no model.
const NO_USER_MODEL: &str = "none";

/// Conversation of a sample.
pub(super) struct DialogueWork<'a> {
    pub(super) protocol: &'static dyn DialogueProtocol,
    pub(super) item: &'a Item,
    /// Index of the sample among those of its item.
    pub(super) trial: u32,
}

impl DialogueWork<'_> {
    fn seed(&self) -> i64 {
        self.protocol.seed(self.trial)
    }
}

impl DialogueSteps for DialogueWork<'_> {
    fn job(&self, step: SandboxStep<'_>) -> Result<JobSpec, String> {
        let step = match step {
            SandboxStep::Open => DialogueStep::Open,
            SandboxStep::Gold => DialogueStep::Gold,
            SandboxStep::Call(messages, calls) => DialogueStep::Call { messages, calls },
            SandboxStep::Evaluate(messages, termination) => {
                DialogueStep::Evaluate { messages, termination: termination.as_str() }
            }
        };
        self.protocol.job(self.item, step).map_err(|problem| problem.to_string())
    }

    fn opened(&self, report: &JobReport) -> Result<(DialogueOpening, Vec<DialogueMessage>), StepFailure> {
        let OpenedDialogue { opening, messages } = self.protocol.opened(report).map_err(failure)?;
        Ok((opening, messages))
    }

    fn gold(&self, report: &JobReport) -> Result<Vec<DialogueCall>, StepFailure> {
        self.protocol.gold(report).map_err(failure)
    }

    fn results(
        &self,
        calls: &[DialogueCall],
        report: &JobReport,
    ) -> Result<Vec<DialogueMessage>, StepFailure> {
        self.protocol.results(calls, report).map_err(failure)
    }

    fn reward_info(&self, report: &JobReport) -> Result<Value, StepFailure> {
        self.protocol.reward_info(report).map_err(failure)
    }

    fn rules(&self, stop_tokens: &[String]) -> Dialogue {
        self.protocol.rules(stop_tokens)
    }
}

fn failure(problem: StepProblem) -> StepFailure {
    match problem {
        StepProblem::Setup(why) => StepFailure::Setup(why),
        StepProblem::Unreadable(why) => StepFailure::Unreadable(why),
        final_problem @ (StepProblem::Refused(_) | StepProblem::ReplayDiffers(_)) => {
            StepFailure::Final(final_problem.to_string())
        }
    }
}

impl Pipeline {
    /// Carries a conversation on, message by message.
    pub(super) async fn advance_dialogue(
        &self,
        turn: EpisodeTurn<'_>,
        mut state: EpisodeState,
        sandbox: &str,
        work: &Work<'_>,
    ) -> Result<(), PipelineError> {
        let Work::Dialogue(dialogue) = work else { return Ok(()) };
        let claimed = turn.claimed;
        let Some(mut thinker) = Box::pin(self.thinker(turn, &state)).await? else { return Ok(()) };
        let plays_gold = matches!(self.answer_source(claimed), AnswerSource::Oracle);
        let began = Instant::now();
        let (mut reply, mut has_stepped) = (None, false);
        loop {
            let left = claimed.deadline.0.since(bench_clock::now()).saturating_sub(self.config.reserve);
            let linger = self.sandboxes.linger.min(left);
            let at = bench_clock::now().to_string();
            let advanced = {
                let episode = DialogueEpisode {
                    sandy: &self.sandboxes.sandy,
                    sandbox,
                    steps: &**dialogue,
                    transcript: &thinker.transcript,
                    reply: reply.as_ref(),
                    plays_gold,
                    at: Some(&at),
                    places_wanted: &self.sandboxes.places_wanted,
                };
                let advance = Box::pin(episode.advance(&mut state, linger));
                self.while_open(claimed, advance).await
            };
            let Some(advanced) = advanced else {
                Box::pin(self.end_last_episode_sandbox(&state)).await;
                return Box::pin(self.give_back(claimed)).await;
            };
            match advanced {
                DialogueAdvance::Waiting(wait) => {
                    if !Box::pin(self.save_episode(turn, &state)).await? {
                        return Ok(());
                    }
                    return Box::pin(self.put_episode_off(turn, wait)).await;
                }
                DialogueAdvance::Failed(error) => {
                    return Box::pin(self.handle_episode_failure(turn, &state, &error)).await;
                }
                DialogueAdvance::Asks { party, record } => {
                    let place = AgentRecords::new(&claimed.sample, &state.nonce, 0);
                    // Only an attempt before this one can have stored it.
                    if claimed.looks_for_record()
                        && let Some(stored) = self.blobs.agent_record(&place, record).await?
                    {
                        if !Box::pin(self.take_over_step(turn, &mut state, &mut thinker, stored)).await? {
                            return Ok(());
                        }
                        continue;
                    }
                    let role = match party {
                        Party::Agent => ModelRole::Model,
                        Party::User => ModelRole::UserModel,
                    };
                    let is_late =
                        claimed.deadline.remaining(self.config.reserve) < self.answer_limit(claimed, role);
                    if is_late && has_stepped {
                        return Box::pin(self.put_episode_off(turn, Duration::ZERO)).await;
                    }
                    let asked = ask::Asked { party, record, transcript: &thinker.transcript };
                    reply = Box::pin(self.ask_party(turn, &state, dialogue, asked)).await?;
                    if reply.is_none() {
                        self.keep_sandbox(claimed, sandbox, work).await;
                        return Ok(());
                    }
                }
                DialogueAdvance::Stepped(record) => {
                    let is_reply = record.paid.is_some() || record.user_paid.is_some();
                    (reply, has_stepped) = (None, true);
                    if !Box::pin(self.keep_step(turn, &mut state, &mut thinker, *record)).await? {
                        return Ok(());
                    }
                    // The tools of a reply follow in the same message.
                    if !is_reply && began.elapsed() > self.sandboxes.linger {
                        return Box::pin(self.put_episode_off(turn, Duration::ZERO)).await;
                    }
                }
                DialogueAdvance::Ended(termination, info) => {
                    let report = self.report_of(turn, &state, dialogue, &thinker, Some((termination, *info)));
                    return Box::pin(self.keep_dialogue(turn, &state, report)).await;
                }
                DialogueAdvance::Ungradable(why) => {
                    let mut report = self.report_of(turn, &state, dialogue, &thinker, None);
                    let name = CONVERSATION_FAILED.to_owned();
                    report.exception = Some(EpisodeException { name, message: why });
                    return Box::pin(self.keep_dialogue(turn, &state, report)).await;
                }
            }
        }
    }

    fn report_of(
        &self,
        turn: EpisodeTurn<'_>,
        state: &EpisodeState,
        dialogue: &DialogueWork<'_>,
        thinker: &Thinker,
        end: Option<(Termination, Value)>,
    ) -> EpisodeReport {
        let spec = &turn.claimed.run.spec;
        let user_model = match self.answer_source(turn.claimed) {
            AnswerSource::Model(_) => spec.user.as_ref().map(|user| user.model.qualified()),
            _ => None,
        };
        let facts = DialogueFacts {
            agent: dialogue.protocol.agent(),
            trial: dialogue.trial,
            seed: dialogue.seed(),
            model: &spec.model.qualified(),
            user_model: user_model.as_deref().unwrap_or(NO_USER_MODEL),
            session: &format!("{}__agent", turn.claimed.sample),
        };
        bench_episodes::dialogue_report(state, &thinker.transcript, end, facts)
    }

    /// Stores the report of a conversation, and ends the sample.
    async fn keep_dialogue(
        &self,
        turn: EpisodeTurn<'_>,
        state: &EpisodeState,
        mut report: EpisodeReport,
    ) -> Result<(), PipelineError> {
        redact(&turn.claimed.run.keys, &mut report);
        let Some(body) = self.handed_over_body(turn, state).await? else { return Ok(()) };
        let body = SampleBody { episode: Some(report), ..body };
        let stored = self.store(turn.claimed, &body, Spending::default()).await?;
        self.end_dialogue(turn, state, &body, stored).await
    }

    /// Commits the verdict on a stored conversation.
    pub(super) async fn end_dialogue(
        &self,
        turn: EpisodeTurn<'_>,
        state: &EpisodeState,
        body: &SampleBody,
        stored: StoredBody,
    ) -> Result<(), PipelineError> {
        self.end_reported_sandbox(state).await;
        let claimed = turn.claimed;
        let report = body.episode.clone().unwrap_or_default();
        let mut verdict = match (&report.exception, &report.dialogue, claimed.benchmark.benchmark.dialogue())
        {
            (None, Some(dialogue), Some(protocol)) if dialogue.reward.is_some() => protocol.verdict(dialogue),
            (Some(exception), _, _) => Verdict::ungraded(Code::SandboxNoVerdict, exception.message.clone()),
            _ => Verdict::ungraded(Code::SandboxNoVerdict, "the conversation has no reward"),
        };
        verdict.detail.insert("agent".to_owned(), report.agent.as_str().into());
        self.commit_report(turn, state, stored, verdict, Some(&report)).await
    }
}
