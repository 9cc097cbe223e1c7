//! Takes over the answers of an earlier run, for a run that grades them again.

use bench_blobs::BlobError;
use bench_domain::{Code, SampleBody, SampleRef, Verdict};
use bench_state::RunWithBenchmarks;

use crate::Pipeline;
use crate::context::{ClaimedSample, EarlierRun, Plans};
use crate::error::PipelineError;

/// Result of looking up a sample in the earlier run.
#[derive(Debug)]
enum EarlierAnswer {
    /// An answer, without a judge's verdict on it.
    Answer(Box<SampleBody>),
    /// No answer, but the verdict that ended the sample.
    Ended(Verdict),
    /// Nothing usable, and the reason.
    Missing(String),
}

impl EarlierRun {
    async fn plans(&self, pipeline: &Pipeline) -> Result<Option<&Plans>, PipelineError> {
        let load = || async {
            let found = pipeline.state.run_with_benchmarks(self.run).await?;
            Ok::<_, PipelineError>(found.as_ref().map(plans_from_run))
        };
        Ok(self.plans.get_or_try_init(load).await?.as_ref())
    }

    /// Looks up the sample of the earlier run at the position of `sample`.
    async fn find(
        &self,
        pipeline: &Pipeline,
        plans: &Plans,
        sample: &SampleRef,
        item_id: &str,
    ) -> Result<EarlierAnswer, PipelineError> {
        let missing = |why: &str| Ok(EarlierAnswer::Missing(format!("run {} {why}", self.run)));
        let Some((plan, shards)) = plans.get(&sample.benchmark) else {
            return missing("has no plan of this benchmark");
        };
        let earlier = SampleRef { run: self.run, plan: *plan, shards: *shards, ..sample.clone() };
        let Some(record) = pipeline.state.sample(&earlier).await? else {
            return missing("has no such sample");
        };
        if record.item_id != item_id {
            return missing("has another item at this place");
        }
        let finished = record.finished.as_ref();
        // A sample that was handed over but not judged, as in a stopped run, has its answer in the turn.
        let handed_over = record.unjudged_answer().map(|answer| &answer.body);
        let stored = match (finished.and_then(|finished| finished.body.as_ref()).or(handed_over), finished) {
            (Some(stored), _) => stored,
            (None, Some(finished)) => return Ok(EarlierAnswer::Ended(finished.verdict.clone())),
            (None, None) => return missing("has no answer of this sample"),
        };
        match pipeline.blobs.get_body(&earlier, stored.attempt, Some(&stored.sha256)).await {
            Ok(Some((body, _))) => {
                let body = SampleBody { judge_reply: None, execution: None, verification: None, ..body };
                Ok(EarlierAnswer::Answer(Box::new(body)))
            }
            Ok(None) => missing("has lost its stored answer"),
            Err(BlobError::Damaged { problem, .. }) => {
                missing(&format!("has a stored answer that is damaged: {problem}"))
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn plans_from_run(found: &RunWithBenchmarks) -> Plans {
    let plans = found.benchmarks.iter().filter_map(|benchmark| {
        let plan = benchmark.plan.as_ref()?;
        Some((benchmark.name.clone(), (plan.attempt, plan.shards)))
    });
    plans.collect()
}

impl Pipeline {
    /// Takes over the answer of the earlier run. Returns `None` if there is none: the sample then ended with
    /// the earlier sample's verdict, or the run failed because the earlier run was deleted.
    pub(super) async fn copy_answer(
        &self,
        claimed: &ClaimedSample,
        earlier: &EarlierRun,
    ) -> Result<Option<SampleBody>, PipelineError> {
        let Some(plans) = earlier.plans(self).await? else {
            let why = format!("run {}, whose answers were to be judged, is gone", earlier.run);
            self.fail_run(claimed, Code::RunDeleted, &why).await?;
            return Ok(None);
        };
        let verdict = match earlier.find(self, plans, &claimed.sample, &claimed.record.item_id).await? {
            EarlierAnswer::Answer(body) => return Ok(Some(*body)),
            EarlierAnswer::Ended(verdict) => verdict,
            EarlierAnswer::Missing(why) => Verdict::ungraded(Code::StoredDataMissing, why),
        };
        self.end(claimed, verdict).await?;
        Ok(None)
    }
}
