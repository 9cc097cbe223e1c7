//! Stage `answer`: asks the run's source, stores the answer, and grades it or hands it over.
//!
//! Killed between any two of these, the next attempt goes on behind the last one that was finished: an answer that was
//! stored is graded, not asked for again. An item that takes several questions is handed over to the next attempt, which
//! asks the next one.

mod earlier_run;
mod grade;
pub(crate) mod oracle;
mod provider;
mod question;
pub(crate) mod recorded;
pub(crate) mod source;

use bench_domain::SampleBody;

use self::source::AnswerSource;
use crate::Pipeline;
use crate::claim::ClaimedSample;
use crate::commit::StoredBody;
use crate::error::PipelineError;
use crate::provider::Unavailable;

impl Pipeline {
    /// Gets an answer and grades it. `stored` is what an earlier attempt stored and did not commit.
    pub(crate) async fn answer(
        &self,
        claimed: &ClaimedSample,
        stored: Option<(SampleBody, StoredBody)>,
    ) -> Result<(), PipelineError> {
        if let Some((body, stored)) = stored {
            return self.grade(claimed, body, stored).await;
        }
        // `None`: the sample was ended, put off or given back.
        let body = match &claimed.run.answers {
            AnswerSource::Provider(provider) => self.ask_model(claimed, provider).await?,
            AnswerSource::Oracle => self.ask_oracle(claimed).await?,
            AnswerSource::Recorded(recorded) => self.look_up_response(claimed, recorded).await?,
            AnswerSource::EarlierRun(earlier) => self.take_over_answer(claimed, earlier).await?,
            AnswerSource::Unavailable(Unavailable { code, why }) => {
                return self.fail_run(claimed, *code, why).await;
            }
        };
        let Some(body) = body else { return Ok(()) };
        let receipt = claimed.run.receive(claimed.run.answers.spent_on(&body).into());
        let stored = self.store(claimed, &body).await?;
        let graded = self.grade(claimed, body, stored).await;
        // After an error, too: it may have come behind the commit.
        if let Some(receipt) = receipt {
            receipt.committed();
        }
        graded
    }
}
