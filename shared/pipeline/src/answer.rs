//! Stage `answer`: asks the run's answer source, stores the answer, and grades it or hands it over.
//!
//! If the process is killed between two of these steps, the next attempt continues after the last completed
//! step: it grades a stored answer instead of asking again. An item with several questions is handed over
//! after each answer, and the next attempt asks the next question.

mod earlier_run;
mod model;
mod oracle;
mod recorded;

use bench_benchmarks::{Grading, ItemProblem, NextQuestion, next_question};
use bench_domain::sampling::item_hash;
use bench_domain::{Answer, Code, Finish, Prompt, SampleBody, Stage, Step, Usage, Verdict};
use bench_items::{Item, identity};
use bench_state::{AnswerRecord, SampleResult};

use crate::Pipeline;
use crate::commit::StoredBody;
use crate::context::{AnswerSource, ClaimedSample, Unavailable};
use crate::error::PipelineError;

/// The next question to ask.
struct NextPrompt {
    prompt: Prompt,
    /// Name of the step. `None` for an item with one question.
    step: Option<String>,
    /// Steps answered so far.
    earlier: Vec<Step>,
    item_id: String,
    /// The expected answer, for the stored body.
    expected: String,
}

impl NextPrompt {
    /// Builds the body to store, with this answer.
    fn into_body(self, answer: Answer) -> SampleBody {
        let Self { prompt, step, earlier: mut steps, item_id, expected } = self;
        if let Some(name) = step {
            steps.push(Step { name, prompt: prompt.clone(), answer: answer.clone() });
        }
        SampleBody { steps, ..SampleBody::new(item_id, prompt, answer, expected) }
    }
}

impl Pipeline {
    /// Gets an answer and grades it. `stored` is an answer that an earlier attempt stored without committing
    /// it.
    pub(crate) async fn answer(
        &self,
        claimed: &ClaimedSample,
        stored: Option<(SampleBody, StoredBody)>,
    ) -> Result<(), PipelineError> {
        if let Some((body, stored)) = stored {
            return Box::pin(self.grade(claimed, body, stored)).await;
        }
        let source = self.answer_source(claimed);
        // Boxed, since this state would hold those of all sources, and threads have little stack.
        // `None`: the sample was ended, put off or given back.
        let body = match source {
            // The agent asks it in the episode.
            AnswerSource::Model(_) if claimed.benchmark.benchmark.has_agent() => {
                Box::pin(self.answer_nothing(claimed)).await?
            }
            AnswerSource::Model(client) => Box::pin(self.ask_model(claimed, client)).await?,
            AnswerSource::Oracle => Box::pin(self.ask_oracle(claimed)).await?,
            AnswerSource::Nop => Box::pin(self.answer_nothing(claimed)).await?,
            AnswerSource::ResponsesFile(recorded) => {
                Box::pin(self.look_up_response(claimed, recorded)).await?
            }
            AnswerSource::EarlierRun(earlier) => Box::pin(self.copy_answer(claimed, earlier)).await?,
            AnswerSource::Unavailable(Unavailable { code, why }) => {
                return self.fail_run(claimed, *code, why).await;
            }
        };
        let Some(body) = body else { return Ok(()) };
        let spent = spent_on(claimed, source, &body).into();
        let receipt = claimed.run.receive(spent);
        let stored = self.store(claimed, &body, spent).await?;
        let graded = Box::pin(self.grade(claimed, body, stored)).await;
        // Also after an error, which may have happened after the commit.
        if let Some(receipt) = receipt {
            receipt.committed();
        }
        graded
    }

    /// Continues with a stored answer: asks the next question, commits a verdict, or hands the sample to the
    /// next stage.
    async fn grade(
        &self,
        claimed: &ClaimedSample,
        body: SampleBody,
        stored: StoredBody,
    ) -> Result<(), PipelineError> {
        let (source, item) = (self.answer_source(claimed), claimed.unkept_item(&self.blobs).await?);
        // An answer that was already counted, and is graded again after a requeue, adds no cost.
        let counted = claimed.record.counted == Some(stored.attempt);
        let spent = if counted { Usage::default() } else { spent_on(claimed, source, &body) };
        // Tokens shown to operators. Those of the item's earlier questions were counted with their own
        // answers.
        let was_asked = !matches!(source, AnswerSource::EarlierRun(_));
        let tokens = body.answer.usage.filter(|_| was_asked && !counted);
        let answered = answer_record(claimed, source, &item, &body, stored);
        let benchmark = claimed.benchmark.benchmark;
        let is_last = match benchmark.steps() {
            Some(steps) => {
                let material = claimed.benchmark.material(&self.blobs, &item).await?;
                matches!(steps.next(&item, &material, &body.steps), Ok(None))
            }
            None => true,
        };
        let grading = match (benchmark.instance(), source) {
            // If the next question can't be asked, the attempt that would ask it ends the sample. By then
            // this answer has been counted.
            _ if !is_last => Grading::NeedsTurn(Stage::Answer),
            // The agent of such a benchmark works first; any other source has its change already, which may be empty.
            (Some(_), AnswerSource::Model(_)) => Grading::NeedsTurn(Stage::Episode),
            (Some(_), _) => Grading::NeedsTurn(Stage::Verification),
            (None, _) => benchmark.grade(&item, &body.answer),
        };
        // The commit may take long, too, if the table is busy.
        drop(item);
        let verdict = match grading {
            Grading::Done(verdict) => verdict,
            Grading::NeedsTurn(stage) => {
                return self.hand_over(claimed, stage, &answered, spent, tokens).await;
            }
        };
        let AnswerRecord { body: stored, item_hash, truncated, latency_ms, usage, model } = answered;
        let finished = SampleResult {
            verdict,
            body: Some(stored),
            item_hash,
            truncated,
            latency_ms,
            usage,
            model,
            judge_usage: None,
            judge_latency_ms: None,
            judge_model: None,
            at: bench_clock::now(),
        };
        self.commit(claimed, &finished, spent.into(), tokens).await
    }

    /// Returns the source of the run's answers. The run's first sample creates it.
    pub(crate) fn answer_source<'a>(&self, claimed: &'a ClaimedSample) -> &'a AnswerSource {
        let run = &claimed.run;
        run.answers.get_or_init(|| AnswerSource::new(run, &self.clients))
    }

    /// Builds the next prompt about the sample's item. If that isn't possible, ends the sample and returns
    /// `None`.
    async fn next_prompt(&self, claimed: &ClaimedSample) -> Result<Option<NextPrompt>, PipelineError> {
        let problem = match self.try_next_prompt(claimed).await? {
            Ok(next) => return Ok(Some(next)),
            Err(problem) => problem,
        };
        self.end(claimed, Verdict::ungraded(Code::InvalidItem, problem.to_string())).await?;
        Ok(None)
    }

    async fn try_next_prompt(
        &self,
        claimed: &ClaimedSample,
    ) -> Result<Result<NextPrompt, ItemProblem>, PipelineError> {
        let benchmark = claimed.benchmark.benchmark;
        let item = claimed.unkept_item(&self.blobs).await?;
        let material = claimed.benchmark.material(&self.blobs, &item).await?;
        let mut earlier = Vec::new();
        if benchmark.steps().is_some()
            && let Some(turn) = &claimed.record.turn
        {
            let stored = &turn.answer.body;
            let found = self.blobs.get_body(&claimed.sample, stored.attempt, Some(&stored.sha256)).await?;
            let Some((body, _)) = found else {
                let gone = "the stored answers to the item's earlier questions are gone".to_owned();
                return Ok(Err(ItemProblem::Content(gone)));
            };
            earlier = body.steps;
        }
        Ok(match next_question(benchmark, &item, &material, &earlier) {
            Ok(Some(NextQuestion { step, prompt })) => {
                let item_id = claimed.record.item_id.clone();
                Ok(NextPrompt { prompt, step, earlier, item_id, expected: benchmark.expected(&item) })
            }
            Ok(None) => Err(ItemProblem::no_question()),
            Err(problem) => Err(problem),
        })
    }
}

/// Returns the tokens that an answer cost. Those of an agent are counted in its episode.
fn spent_on(claimed: &ClaimedSample, source: &AnswerSource, body: &SampleBody) -> Usage {
    match claimed.benchmark.benchmark.has_agent() {
        true => Usage::default(),
        false => source.spent_on(body),
    }
}

/// Returns the part of an answer that the sample's record keeps, combined over all questions of the item.
fn answer_record(
    claimed: &ClaimedSample,
    source: &AnswerSource,
    item: &Item,
    body: &SampleBody,
    stored: StoredBody,
) -> AnswerRecord {
    let last = std::slice::from_ref(&body.answer);
    let answers =
        || body.steps.iter().map(|step| &step.answer).chain(if body.steps.is_empty() { last } else { &[] });
    let usage = match source {
        // The earlier run has paid for these tokens.
        AnswerSource::EarlierRun(_) => Some(Usage::default()),
        _ => answers().filter_map(|answer| answer.usage).reduce(Usage::plus),
    };
    AnswerRecord {
        body: stored.into(),
        item_hash: Some(item_hash(&identity(claimed.benchmark.benchmark, item))),
        truncated: answers().any(|answer| answer.finish == Finish::Length),
        latency_ms: Some(answers().map(|answer| answer.latency_ms).sum()),
        usage,
        model: body.answer.model.clone(),
    }
}
