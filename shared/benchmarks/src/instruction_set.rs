//! Benchmarks made of a set of verifiable instructions.

use bench_domain::Prompt;
use bench_items::{DatasetSpec, Item, Layout, Row, RowError};

use crate::benchmark::Benchmark;
use crate::item_problem::ItemProblem;
use crate::material::{Material, Templates};
use crate::metadata::{Metadata, Template, TemplateSource};
use crate::metrics::Metrics;
use crate::scorers::Scorer;
use crate::scorers::instructions::{Figures, InstructionChecks, request};

/// Benchmark of verifiable instructions. The request is the only message, and programs check the response.
pub struct InstructionSet {
    pub(crate) metadata: &'static Metadata,
    pub(crate) spec: &'static DatasetSpec,
    /// Checks of its instructions.
    pub(crate) checks: &'static InstructionChecks,
}

impl Layout for InstructionSet {
    fn name(&self) -> &'static str {
        self.metadata.name
    }

    fn spec(&self) -> &DatasetSpec {
        self.spec
    }

    fn id_columns(&self) -> &'static [&'static str] {
        &["key"]
    }

    fn question_columns(&self) -> &'static [&'static str] {
        &["prompt"]
    }

    /// Accepts every row. An invalid row fails on its own, when it is asked or graded.
    fn item(&self, index: u64, row: Row) -> Result<Option<Item>, RowError> {
        Ok(Some(Item::new(index.to_string(), None, row)))
    }
}

impl Benchmark for InstructionSet {
    fn metadata(&self) -> &'static Metadata {
        self.metadata
    }

    fn scorer(&self) -> &dyn Scorer {
        self.checks
    }

    fn template(&self, _templates: &Templates) -> Template {
        Template::new(TemplateSource::Official, &[])
    }

    fn prompt(&self, item: &Item, _material: &Material) -> Result<Prompt, ItemProblem> {
        Ok(request::prompt(&item.row)?)
    }

    fn metrics(&self) -> Option<Box<dyn Metrics>> {
        Some(Box::<Figures>::default())
    }
}
