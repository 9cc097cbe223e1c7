//! A set of verifiable instructions as a benchmark.

use bench_domain::{Answer, Prompt};
use bench_items::{DatasetSpec, Item, Layout, Row, RowError};

use super::{Figures, Headline, Lookup, grade, request, score_row};
use crate::benchmark::{Benchmark, Grading, ItemProblem};
use crate::facts::{Facts, Template, TemplateSource};
use crate::material::{Material, Templates};
use crate::metrics::Metrics;

/// A benchmark of verifiable instructions: the request is the only message, programs check the response.
pub struct InstructionSet {
    pub(crate) facts: &'static Facts,
    pub(crate) spec: &'static DatasetSpec,
    /// Its instructions.
    pub(crate) lookup: Lookup,
    /// What its score is made of.
    pub(crate) headline: Headline,
}

impl Layout for InstructionSet {
    fn name(&self) -> &'static str {
        self.facts.name
    }

    fn spec(&self) -> &DatasetSpec {
        self.spec
    }

    fn id_columns(&self) -> &'static [&'static str] {
        &["key"]
    }

    /// Takes every row: what is wrong with one is said of it alone, when it is asked or graded.
    fn item(&self, index: u64, row: Row) -> Result<Option<Item>, RowError> {
        Ok(Some(Item::new(index.to_string(), None, row)))
    }
}

impl Benchmark for InstructionSet {
    fn facts(&self) -> &'static Facts {
        self.facts
    }

    fn template(&self, _templates: &Templates) -> Template {
        Template::of(TemplateSource::Official, &[])
    }

    fn prompt(&self, item: &Item, _material: &Material) -> Result<Prompt, ItemProblem> {
        Ok(request::prompt(&item.row)?)
    }

    fn expected(&self, item: &Item) -> String {
        request::reference(&item.row).to_owned()
    }

    fn grade(&self, item: &Item, answer: &Answer) -> Grading {
        grade(&item.row, answer, self.lookup, self.headline).into()
    }

    fn oracle(&self, item: &Item) -> String {
        request::oracle(&item.row)
    }

    fn score_row(&self, row: &Row) -> Result<Item, RowError> {
        score_row(row)
    }

    fn metrics(&self) -> Option<Box<dyn Metrics>> {
        Some(Box::<Figures>::default())
    }
}
