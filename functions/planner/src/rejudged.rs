//! Plans a run that grades the answers of another run again.

use bench_benchmarks::Benchmark;
use bench_blobs::BlobError;
use bench_datasets::{DatasetError, TemplateLookup};
use bench_domain::run::{Plan, RejudgedRun};
use bench_domain::{BenchmarkName, Code, RunSpec};
use bench_state::{BenchmarkRecord, PlannedSample};

use crate::{Obstacle, PlanError, Planner, judge};

/// Number of samples read per page.
const PAGE: u64 = 1_000;

impl Planner {
    /// Makes the plan of a run that judges again: the items and samples of the run that asked the model, in its order
    /// and from its data. Only the judge differs.
    pub(crate) async fn prepare_again(
        &self,
        spec: &RunSpec,
        rejudges: RejudgedRun,
        name: &BenchmarkName,
        benchmark: &'static dyn Benchmark,
        attempt: u32,
    ) -> Result<Result<(Plan, Vec<PlannedSample>), Obstacle>, PlanError> {
        let failed = |code, why: String| Ok(Err(Obstacle::Failed(code, why)));
        let run = rejudges.run;
        let Some(original) = self.state.run_with_benchmarks(run).await? else {
            return failed(
                Code::RunDeleted,
                format!("run {run}, whose answers were to be judged, was deleted"),
            );
        };
        let record = original.benchmark(name.as_str());
        let Some((record, first)) = record.and_then(|record| Some((record, record.plan.as_ref()?))) else {
            return failed(
                Code::NothingToJudge,
                format!("run {run} has no answers of {name} that could be judged"),
            );
        };
        let held = match self.library.is_available(&first.dataset).await {
            Err(error @ DatasetError::Blob(BlobError::Store { .. })) => {
                return Err(PlanError::Dataset(error));
            }
            Err(error) => return failed(Code::DatasetUnavailable, error.to_string()),
            Ok(held) => held,
        };
        if !held {
            return failed(
                Code::DatasetUnavailable,
                format!(
                    "the items that run {run} has used are not stored any more: {} at revision {}",
                    first.dataset.id, first.dataset.revision
                ),
            );
        }
        let items = self.items_of(spec, rejudges, record, first).await?;
        if items.len() as u64 != first.items {
            return failed(
                Code::StoredDataMissing,
                format!("run {run} has lost the records of some of its samples"),
            );
        }
        // The judge's prompt may need texts that were unavailable when the model was asked.
        let reach =
            if first.dataset.is_demo() { TemplateLookup::StoreOnly } else { TemplateLookup::StoreThenOrigin };
        let texts = match self.library.templates(benchmark, reach, self.progress.as_ref()).await {
            Ok(texts) => texts,
            Err(error @ DatasetError::Blob(BlobError::Store { .. })) => {
                return Err(PlanError::Dataset(error));
            }
            Err(error) => return failed(Code::DatasetUnavailable, error.to_string()),
        };
        let templates = texts.digests();
        let judge = match judge::of_run(spec, benchmark, &texts.into_texts()) {
            Ok(judge) => judge,
            Err(obstacle) => return Ok(Err(obstacle)),
        };
        let shards = self.shards_for(first.items);
        Ok(Ok((Plan { attempt, shards, templates, judge, ..first.clone() }, items)))
    }

    /// Returns the items of a plan, read from the records of their first samples.
    async fn items_of(
        &self,
        spec: &RunSpec,
        rejudges: RejudgedRun,
        record: &BenchmarkRecord,
        plan: &Plan,
    ) -> Result<Vec<PlannedSample>, PlanError> {
        let mut items = Vec::new();
        let mut offset = 0;
        while offset < plan.samples() {
            let page = self.state.samples_page(rejudges.run, record, offset, PAGE).await?;
            items.extend(page.into_iter().filter(|sample| sample.position.sample == 0).map(|sample| {
                PlannedSample {
                    item_id: sample.item_id,
                    source_id: sample.source_id,
                    group: sample.group,
                    offset: sample.offset,
                    length: sample.length,
                }
            }));
            offset += PAGE;
        }
        tracing::info!(run.id = %spec.id, benchmark = %record.name, "Judges again what run {} has answered", rejudges.run);
        Ok(items)
    }
}
