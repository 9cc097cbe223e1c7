//! Answers from a file of stored responses that the caller provided.

use std::sync::Arc;

use bench_domain::run::ItemNaming;
use bench_domain::{Code, RunSpec, SampleBody, Verdict};
use bench_items::ROW_SIGN;
use tokio::sync::OnceCell;

use crate::claim::ClaimedSample;
use crate::error::PipelineError;
use crate::{Pipeline, RecordedResponses};

/// Name of this source in orders and records.
pub(crate) const NAME: &str = "replay";

/// Stored responses of a run, loaded once.
pub(crate) struct Recorded {
    /// Key of the object that holds the responses.
    key: String,
    responses: OnceCell<Result<Arc<RecordedResponses>, String>>,
}

impl Recorded {
    pub(super) fn new(key: Option<&str>) -> Self {
        Self { key: key.unwrap_or_default().to_owned(), responses: OnceCell::new() }
    }

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
        recorded: &Recorded,
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
        Ok(Some(next.answered(answer)))
    }
}

/// Returns the reason why stored responses that an older program accepted can't be used, if it applies. That
/// program took their ids for row indices, so part of the run may be graded against other items than the rest
/// would be.
pub(super) fn outdated_responses(spec: &RunSpec) -> Option<&'static str> {
    let is_outdated = spec.model.replay_key.is_some() && spec.item_naming == ItemNaming::RowIndex;
    is_outdated.then_some(
        "this run was ordered by an older version, which took the ids of stored responses for indices of rows: order it \
         again",
    )
}

#[cfg(test)]
mod tests {
    use bench_domain::run::{AuthMode, Owner};
    use bench_domain::{RunId, Timestamp};
    use serde_json::json;

    use super::*;

    #[test]
    fn stored_responses_of_an_older_program_are_not_used() {
        let spec = |replay_key: Option<&str>, item_naming: Option<&str>| -> RunSpec {
            let mut spec = json!({
                "id": RunId::random(), "benchmarks": ["mmlu_pro"], "selected_benchmarks": null,
                "model": {
                    "id": bench_domain::ModelId::from_name("replay", "a.jsonl"), "provider": "replay", "slug": "a.jsonl",
                    "replay_key": replay_key,
                },
                "subset": bench_domain::Subset::default(), "owner": Owner::Local, "auth": AuthMode::System,
                "coverage_min": 0.9, "software": "0.1.0", "created_at": Timestamp::default(),
            });
            if let Some(naming) = item_naming {
                spec["item_naming"] = naming.into();
            }
            serde_json::from_value(spec).unwrap()
        };
        let why = outdated_responses(&spec(Some("uploads/a"), None)).unwrap();
        assert!(why.ends_with("order it again"), "{why}");
        assert_eq!(outdated_responses(&spec(Some("uploads/a"), Some("source-id"))), None);
        assert_eq!(outdated_responses(&spec(None, None)), None, "a model that is asked");
    }
}
