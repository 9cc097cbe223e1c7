//! Stage `judge`: asks a model to grade a stored answer.
//!
//! The judge is asked; then its reply is stored beside the answer under this attempt, read, and committed, in
//! this order. If the process is killed between two of these steps, the next attempt continues after the last
//! completed step: it reads a stored reply instead of asking again, and never asks the measured model again.
//! A judge call is a model call like any other, with its own provider, key, waits, tokens and cost. Its
//! failures are an infrastructure-error of the sample or the end of the run, never a verdict.

mod verdict;

use bench_benchmarks::Judge;
use bench_domain::body::JudgeReply;
use bench_domain::{Answer, Code, ModelRole, Prompt, SampleBody, Usage, Verdict};
use bench_inference::tokens::usage_or_estimate;
use bench_inference::{Failure, FailureKind, TooLong};
use bench_items::Item;
use bench_state::Turn;

use crate::Pipeline;
use crate::commit::StoredBody;
use crate::context::{ClaimedSample, JudgeSource, ModelClient, ORACLE, Unavailable};
use crate::error::PipelineError;
use crate::model::{AskResult, Question};

/// A claimed sample with its judge and its item.
#[derive(Clone, Copy)]
struct JudgeCase<'a> {
    claimed: &'a ClaimedSample,
    turn: &'a Turn,
    judge: &'static dyn Judge,
    item: &'a Item,
}

impl Pipeline {
    /// Gets a verdict from the judge. `stored` is a body that an earlier attempt stored without committing
    /// it.
    pub(crate) async fn judge(
        &self,
        claimed: &ClaimedSample,
        turn: &Turn,
        stored: Option<(SampleBody, StoredBody)>,
    ) -> Result<(), PipelineError> {
        let Some(judge) = claimed.benchmark.benchmark.judge() else {
            return self
                .end_without_verdict(claimed, Code::InternalError, "this benchmark has no judge")
                .await;
        };
        if let Some((body, stored)) = stored {
            let Some(judge_reply) = &body.judge_reply else {
                let why = "the stored reply of the judge is gone";
                return self.end_without_verdict(claimed, Code::StoredDataMissing, why).await;
            };
            let case = JudgeCase { claimed, turn, judge, item: claimed.item(&self.blobs).await? };
            return self.read_reply(case, &body.answer, judge_reply, stored).await;
        }
        let answered = &turn.answer.body;
        let found = self.blobs.get_body(&claimed.sample, answered.attempt, Some(&answered.sha256)).await?;
        let Some((body, _)) = found else {
            return self
                .end_without_verdict(claimed, Code::StoredDataMissing, "the stored answer is gone")
                .await;
        };
        let case = JudgeCase { claimed, turn, judge, item: claimed.item(&self.blobs).await? };
        let templates = claimed.benchmark.templates(&self.blobs).await?;
        let prompt = match judge.prompt(case.item, &body.answer, templates) {
            Ok(prompt) => prompt,
            Err(problem) => {
                return self.end_without_verdict(claimed, Code::InvalidItem, &problem.to_string()).await;
            }
        };
        let (model, reply, usage) = match self.judge_source(claimed) {
            JudgeSource::Oracle => {
                let reply = Answer::local(judge.oracle(case.item, &body.answer));
                (ORACLE.to_owned(), reply, Usage::ZERO)
            }
            JudgeSource::Unavailable(Unavailable { code, why }) => {
                return self.fail_run(claimed, *code, why).await;
            }
            JudgeSource::Model(client) => {
                let Some(reply) = self.ask_judge(case, client, &prompt).await? else { return Ok(()) };
                let usage = usage_or_estimate(&prompt, &reply);
                (client.model.qualified(), reply, usage)
            }
        };
        let spent = ModelRole::Judge.spending(usage);
        let receipt = claimed.run.receive(spent);
        let judge_reply = JudgeReply { model, prompt, reply };
        let body = SampleBody { judge_reply: Some(judge_reply.clone()), ..body };
        let stored = self.store(claimed, &body, spent).await?;
        let read = self.read_reply(case, &body.answer, &judge_reply, stored).await;
        // Also after an error, which may have happened after the commit.
        if let Some(receipt) = receipt {
            receipt.committed();
        }
        read
    }

    /// Returns the source of the judge's replies. The run's first sample that needs it creates it.
    fn judge_source<'a>(&self, claimed: &'a ClaimedSample) -> &'a JudgeSource {
        let run = &claimed.run;
        run.judge.get_or_init(|| JudgeSource::new(run, &self.clients))
    }

    /// Asks a model for a verdict. Returns `None` without a reply: the sample was then ended, put off or
    /// given back.
    async fn ask_judge(
        &self,
        case: JudgeCase<'_>,
        client: &ModelClient,
        prompt: &Prompt,
    ) -> Result<Option<Answer>, PipelineError> {
        let claimed = case.claimed;
        if !self.budget_allows(claimed).await? {
            return Ok(None);
        }
        let protocol;
        let generation = match &claimed.benchmark.plan.judge {
            Some(planned) => &planned.generation,
            None => {
                protocol = (case.judge.metadata().generation)();
                &protocol
            }
        };
        let schema = case.judge.reply_schema();
        let question =
            Question { prompt, generation, reply_schema: schema.as_ref(), tools: None, is_continued: false };
        match self.ask(claimed, client, &question).await? {
            AskResult::Answer(reply) => return Ok(Some(*reply)),
            AskResult::RunOver => self.give_back(claimed).await?,
            AskResult::PutOff => {}
            AskResult::Failed(failure) => {
                self.count_failed(claimed, client.role, prompt, &failure).await;
                let failure = claimed.benchmark.without_quotes(prompt, failure);
                self.handle_judge_failure(claimed, client, &failure).await?;
            }
        }
        Ok(None)
    }

    /// Handles a failure of the judge's provider. A reply that took too long is retried, since the next one
    /// may be faster.
    async fn handle_judge_failure(
        &self,
        claimed: &ClaimedSample,
        client: &ModelClient,
        failure: &Failure,
    ) -> Result<(), PipelineError> {
        match failure.kind {
            FailureKind::TooLong(TooLong::Time) => self.retry(claimed, client, failure).await,
            _ => self.handle_provider_failure(claimed, client, failure).await,
        }
    }

    /// Ends the sample as infrastructure-error and keeps its answer.
    pub(crate) async fn end_without_verdict(
        &self,
        claimed: &ClaimedSample,
        code: Code,
        why: &str,
    ) -> Result<(), PipelineError> {
        self.end(claimed, Verdict::ungraded(code, why)).await
    }
}
