//! Batch reads of runs, and facts about them that never change, for searches.

use std::cmp::Reverse;

use bench_domain::run::Owner;
use bench_domain::{BenchmarkName, RunId};

use crate::samples::READ_BATCH_MAX;
use crate::{RunRecord, State, StateError, keys};

/// Facts about a run that never change, for searches.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFacts {
    /// Id of the run.
    pub run: RunId,
    /// Name of the model with its provider.
    pub model: String,
    /// Benchmarks of the run.
    pub benchmarks: Vec<BenchmarkName>,
    /// Owner of the run.
    pub owner: Owner,
}

impl State {
    /// Returns those of the runs that exist and weren't deleted, newest first.
    ///
    /// # Errors
    /// If the table can't be read.
    pub async fn runs(&self, runs: &[RunId]) -> Result<Vec<RunRecord>, StateError> {
        let mut found = Vec::with_capacity(runs.len());
        for batch in runs.chunks(READ_BATCH_MAX) {
            let records = self.read_batch(batch.iter().map(|run| keys::run(*run)).collect()).await?;
            for record in &records {
                found.push(RunRecord::read(record)?);
            }
        }
        found.retain(|run| !run.deleted);
        found.sort_by_key(|run| Reverse((run.spec.created_at, run.spec.id)));
        Ok(found)
    }

    /// Returns facts about these runs, in any order. Leaves out runs that don't exist.
    pub async fn run_facts(&self, runs: &[RunId]) -> Result<Vec<RunFacts>, StateError> {
        let mut found = Vec::with_capacity(runs.len());
        for batch in runs.chunks(READ_BATCH_MAX) {
            let records = self.read_batch(batch.iter().map(|run| keys::run(*run)).collect()).await?;
            for record in &records {
                let RunRecord { spec, .. } = RunRecord::read(record)?;
                found.push(RunFacts {
                    run: spec.id,
                    model: spec.model.qualified(),
                    benchmarks: spec.template.benchmarks,
                    owner: spec.owner,
                });
            }
        }
        Ok(found)
    }
}
