//! Answers from a file of stored responses that the caller provided.

use std::sync::Arc;

use bench_domain::{Code, SampleBody, Verdict};
use bench_items::ROW_SIGN;

use crate::context::{ClaimedSample, ResponsesFile};
use crate::error::PipelineError;
use crate::{Pipeline, RecordedResponses};

impl ResponsesFile {
    /// Returns the responses, or the run's error message.
    async fn load(
        &self,
        pipeline: &Pipeline,
    ) -> Result<&Result<Arc<RecordedResponses>, String>, PipelineError> {
        let load = || async {
            let text = pipeline.blobs.get_json::<String>(&self.key).await?;
            let Some(text) = text else {
                return Ok(Err("the stored responses of this run are gone".to_owned()));
            };
            Ok(RecordedResponses::parse(&text).map(Arc::new).map_err(|error| error.to_string()))
        };
        self.responses.get_or_try_init(load).await
    }
}

impl Pipeline {
    /// Looks up the stored response. Returns `None` without one: the sample was then ended or given back.
    pub(super) async fn look_up_response(
        &self,
        claimed: &ClaimedSample,
        recorded: &ResponsesFile,
    ) -> Result<Option<SampleBody>, PipelineError> {
        let responses = match recorded.load(self).await? {
            Ok(responses) => responses,
            Err(why) => {
                self.fail_run(claimed, Code::StoredDataMissing, why).await?;
                return Ok(None);
            }
        };
        let Some(next) = self.next_prompt(claimed).await? else { return Ok(None) };
        let (record, sample) = (&claimed.record, claimed.sample.position.sample);
        let row = format!("{ROW_SIGN}{}", record.item_id);
        // An item without its own id is named by the index of its row, with or without the `#`.
        let display_id = record.source_id.as_deref().unwrap_or(&record.item_id);
        let step = next.step.as_deref().map(|name| (name, next.earlier.len()));
        let benchmark = claimed.sample.benchmark.as_str();
        let Some(mut answer) = responses.lookup(benchmark, &[display_id, &row], sample, step) else {
            let step = step.map_or_else(String::new, |(name, _)| format!(", step `{name}`"));
            let why = format!("no stored response for item `{display_id}`, sample {sample}{step}");
            self.end(claimed, Verdict::ungraded(Code::NoStoredResponse, why)).await?;
            return Ok(None);
        };
        claimed.run.keys.redact_answer(&mut answer);
        Ok(Some(next.into_body(answer)))
    }
}
