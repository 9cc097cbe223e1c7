//! Compact index of a benchmark's samples, written while its report is made.

use bench_blobs::{IndexOf, IndexRow, IndexWriter};
use bench_domain::run::Plan;
use bench_state::{BenchmarkRecord, ItemIndex, RunRecord, SampleRecord};

use crate::{FinishError, Finisher};

/// Index that is being written. It is given up after the first failure, since the benchmark can be closed without it.
pub(crate) struct Index<'a> {
    writer: Option<IndexWriter<'a>>,
    record: ItemIndex,
}

impl<'a> Index<'a> {
    pub(crate) fn new(
        finisher: &'a Finisher,
        run: &RunRecord,
        benchmark: &'a BenchmarkRecord,
        plan: &Plan,
    ) -> Self {
        let (generation, items) = (run.generation, plan.samples());
        let of = IndexOf { run: run.spec.id, generation, benchmark: &benchmark.name, items };
        let record = ItemIndex { generation, parts: of.parts(), items };
        Self { writer: Some(IndexWriter::new(&finisher.blobs, of)), record }
    }

    /// Gives the index up, because samples are in progress and the report will be made again.
    pub(crate) fn abandon(&mut self) {
        self.writer = None;
    }

    pub(crate) async fn add(&mut self, sample: &SampleRecord) {
        let Some(writer) = &mut self.writer else { return };
        let finished = sample.finished.as_ref();
        let (answers, turns) = sample.attempts();
        let usage = finished.and_then(|finished| finished.usage);
        let row = IndexRow {
            position: sample.position,
            item_id: &sample.item_id,
            source_id: sample.source_id.as_deref(),
            group: sample.group.as_deref(),
            outcome: finished.map(|finished| finished.verdict.outcome),
            score: finished.and_then(|finished| finished.verdict.score),
            extracted: finished.and_then(|finished| finished.verdict.extracted.as_deref()),
            latency_ms: finished.and_then(|finished| finished.latency_ms),
            input_tokens: usage.map(|usage| usage.input_tokens),
            output_tokens: usage.map(|usage| usage.output_tokens),
            attempts: answers.saturating_add(turns),
            item_hash: match finished {
                Some(finished) => finished.item_hash.as_deref(),
                None => sample.unjudged_answer().and_then(|answer| answer.item_hash.as_deref()),
            },
        };
        if let Err(error) = writer.add(&row).await {
            tracing::warn!(%error, "A part of an index could not be written: {error}");
            self.writer = None;
        }
    }

    /// Writes the rest. Returns the record of the index; `None` if it was given up.
    pub(crate) async fn finish(self) -> Option<ItemIndex> {
        match self.writer?.finish().await {
            Ok(_) => Some(self.record),
            Err(error) => {
                tracing::warn!(%error, "An index could not be written: {error}");
                None
            }
        }
    }
}

impl Finisher {
    /// Records a new index, or removes the record of an earlier one that no longer fits.
    pub(crate) async fn note_index(
        &self,
        run: &RunRecord,
        benchmark: &BenchmarkRecord,
        index: Option<ItemIndex>,
    ) -> Result<(), FinishError> {
        if index != benchmark.item_index {
            // If the condition fails, so does the write that would close the benchmark.
            self.state.note_item_index(run.spec.id, benchmark, index).await?;
        }
        Ok(())
    }
}
