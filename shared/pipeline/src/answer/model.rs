//! Asks a model at a provider for answers.

use bench_domain::{ModelRole, Outcome, SampleBody, Verdict};
use bench_inference::{Failure, FailureKind, TooLong};

use crate::Pipeline;
use crate::context::{ClaimedSample, ModelClient};
use crate::error::PipelineError;
use crate::model::{AskResult, Question};

impl Pipeline {
    /// Asks the model. Returns `None` without an answer: the sample was then ended, put off or given back.
    pub(super) async fn ask_model(
        &self,
        claimed: &ClaimedSample,
        client: &ModelClient,
    ) -> Result<Option<SampleBody>, PipelineError> {
        let Some(mut next) = self.next_prompt(claimed).await? else { return Ok(None) };
        if !self.budget_allows(claimed).await? {
            return Ok(None);
        }
        let generation = &claimed.benchmark.plan.generation;
        if let Some(text) = &generation.system_prompt {
            next.prompt.prepend_system(text);
        }
        let question = Question {
            prompt: &next.prompt,
            generation,
            reply_schema: None,
            tools: None,
            is_continued: false,
        };
        match self.ask(claimed, client, &question).await? {
            AskResult::Answer(answer) => return Ok(Some(next.into_body(*answer))),
            AskResult::RunOver => self.give_back(claimed).await?,
            AskResult::PutOff => {}
            AskResult::Failed(failure) => {
                self.count_failed(claimed, client.role, &next.prompt, &failure).await;
                let failure = claimed.benchmark.without_quotes(&next.prompt, failure);
                self.handle_model_failure(claimed, client, &failure).await?;
            }
        }
        Ok(None)
    }

    /// Ends the sample if the failure concerns this sample only. Otherwise handles it as a failure of the
    /// provider.
    async fn handle_model_failure(
        &self,
        claimed: &ClaimedSample,
        client: &ModelClient,
        failure: &Failure,
    ) -> Result<(), PipelineError> {
        let cause = &failure.cause;
        let why = match failure.kind {
            FailureKind::TooLong(TooLong::Time) => self.describe_timeout(claimed, cause),
            FailureKind::TooLong(TooLong::Context) => {
                // Length of the prompt as the dataset counts it.
                match claimed.benchmark.benchmark.input_tokens(claimed.item(&self.blobs).await?) {
                    Some(tokens) => {
                        format!("the prompt of {tokens} tokens (cl100k_base) is too long: {cause}")
                    }
                    None => cause.clone(),
                }
            }
            FailureKind::Unsupported => format!("the model cannot take the prompt's image: {cause}"),
            FailureKind::Refused => {
                let verdict = Verdict::wrong(Outcome::Refused, cause.clone());
                return self.end(claimed, Verdict { code: Some(failure.code()), ..verdict }).await;
            }
            _ => return self.handle_provider_failure(claimed, client, failure).await,
        };
        self.end(claimed, Verdict::ungraded(failure.code(), why)).await
    }

    /// Describes an answer that took too long, with the limit that it exceeded.
    fn describe_timeout(&self, claimed: &ClaimedSample, cause: &str) -> String {
        let limit = self.answer_limit(claimed, ModelRole::Model).as_secs();
        let own = claimed.run.spec.limits.timeout_seconds;
        let benchmarks = claimed.benchmark.benchmark.metadata().item_timeout_seconds;
        let origin = match own {
            Some(own) if u64::from(own) == limit => "the run's own, `--timeout` (`timeout_seconds`)",
            None if benchmarks == limit => "the benchmark's; `--timeout` (`timeout_seconds`) sets another",
            _ => "the operator's, `WORKER_ITEM_TIMEOUT_SECONDS`",
        };
        format!("the answer took longer than {limit} s ({origin}): {cause}")
    }
}
