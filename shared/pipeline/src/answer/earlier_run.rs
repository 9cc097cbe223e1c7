//! The answers of another run, for one that judges them again.

use std::collections::BTreeMap;

use bench_blobs::{BlobError, Blobs};
use bench_domain::{BenchmarkName, RunId, SampleBody, SampleRef, Verdict};
use bench_state::{RunWithBenchmarks, State};

use crate::AskError;

/// The run that asked the model.
#[derive(Debug)]
pub struct Original {
    run: RunId,
    /// Attempt and partitions of its plans.
    plans: BTreeMap<BenchmarkName, (u32, u32)>,
}

/// What the original run has of a sample.
#[derive(Debug)]
pub enum Replayed {
    /// An answer, without what a judge said of it.
    Answer(Box<SampleBody>),
    /// None: the sample ended like this.
    Ended(Verdict),
    /// Nothing that can be used, and why.
    Missing(String),
}

impl Original {
    pub(crate) fn of(found: &RunWithBenchmarks) -> Self {
        let plans = found.benchmarks.iter().filter_map(|benchmark| {
            let plan = benchmark.plan.as_ref()?;
            Some((benchmark.name.clone(), (plan.attempt, plan.shards)))
        });
        Self { run: found.run.spec.id, plans: plans.collect() }
    }

    /// What the original run has at the place of `sample`.
    ///
    /// # Errors
    /// When state or store fail.
    pub async fn replay(
        &self,
        state: &State,
        blobs: &Blobs,
        sample: &SampleRef,
        item_id: &str,
    ) -> Result<Replayed, AskError> {
        let missing = |why: &str| Ok(Replayed::Missing(format!("run {} {why}", self.run)));
        let Some((plan, shards)) = self.plans.get(&sample.benchmark) else {
            return missing("has no plan of this benchmark");
        };
        let original = SampleRef { run: self.run, plan: *plan, shards: *shards, ..sample.clone() };
        let Some(record) = state.sample(&original).await? else {
            return missing("has no such sample");
        };
        if record.item_id != item_id {
            return missing("has another item at this place");
        }
        let finished = record.finished.as_ref();
        // Handed over and not judged, as in a run that was stopped: the answer is there.
        let handed_over = record.unjudged().map(|answer| &answer.body);
        let stored = match (finished.and_then(|finished| finished.body.as_ref()).or(handed_over), finished) {
            (Some(stored), _) => stored,
            (None, Some(finished)) => return Ok(Replayed::Ended(finished.verdict.clone())),
            (None, None) => return missing("has no answer of this sample"),
        };
        match blobs.get_body(&original, stored.attempt, Some(&stored.sha256)).await {
            Ok(Some((body, _))) => {
                let body = SampleBody { judgement: None, execution: None, ..body };
                Ok(Replayed::Answer(Box::new(body)))
            }
            Ok(None) => missing("has lost its stored answer"),
            Err(BlobError::Damaged { problem, .. }) => {
                missing(&format!("has a stored answer that is damaged: {problem}"))
            }
            Err(error) => Err(error.into()),
        }
    }
}
