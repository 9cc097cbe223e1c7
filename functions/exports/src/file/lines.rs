//! Lines of JSON: one object per sample, by benchmark, in the order of the plan. Texts are whole.

use bench_domain::run::Plan;
use serde::Serialize;

use crate::file::facts::{BenchmarkFacts, RunFacts};
use crate::file::item::ItemRow;

/// Fields of the run and its benchmark, the same in all lines of a benchmark.
#[derive(Debug, Clone, Serialize)]
struct Origin {
    run_id: String,
    /// Model with its provider, as `--model` takes it.
    model: String,
    benchmark: String,
    protocol: Option<String>,
    dataset_id: Option<String>,
    dataset_revision: Option<String>,
    /// True if the items are bundled demo data.
    demo: bool,
    /// Settings that differ from the benchmark's own, as phrases.
    changed_settings: Vec<String>,
    software_version: String,
}

/// A line.
#[derive(Debug, Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    origin: &'a Origin,
    #[serde(flatten)]
    row: &'a ItemRow,
}

/// Writes one line per sample.
#[derive(Debug)]
pub(crate) struct LinesWriter {
    origin: Origin,
    written: Vec<u8>,
}

impl LinesWriter {
    pub(crate) fn new(facts: &RunFacts, software_version: &str) -> Self {
        let spec = &facts.run.spec;
        let origin = Origin {
            run_id: spec.id.to_string(),
            model: spec.model.qualified(),
            benchmark: String::new(),
            protocol: None,
            dataset_id: None,
            dataset_revision: None,
            demo: false,
            changed_settings: Vec::new(),
            software_version: software_version.to_owned(),
        };
        Self { origin, written: Vec::new() }
    }

    pub(crate) fn begin_benchmark(&mut self, benchmark: &BenchmarkFacts) {
        let protocol = benchmark.plan().map(|plan| plan.protocol_name.clone());
        self.origin.benchmark = benchmark.record.name.to_string();
        self.origin.protocol = protocol.filter(|name| !name.is_empty());
        self.origin.dataset_id = benchmark.dataset().map(|dataset| dataset.id.clone());
        self.origin.dataset_revision = benchmark.dataset().map(|dataset| dataset.revision.clone());
        self.origin.demo = benchmark.is_demo();
        self.origin.changed_settings = benchmark.plan().map(Plan::changed_settings).unwrap_or_default();
    }

    pub(crate) fn item(&mut self, row: &ItemRow) -> Result<(), serde_json::Error> {
        serde_json::to_writer(&mut self.written, &Line { origin: &self.origin, row })?;
        self.written.push(b'\n');
        Ok(())
    }

    /// Returns the bytes that were written since the last call.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.written)
    }
}
