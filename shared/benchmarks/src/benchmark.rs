//! What every benchmark can do.

use std::collections::BTreeMap;

use bench_datasets::{Item, Layout, Row, RowError};
use bench_domain::{Answer, Prompt, Verdict};
use serde_json::{Map, Value};

use crate::facts::{Facts, Template};
use crate::metrics::{self, GroupTally};

/// Why an item cannot be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ItemProblem {
    /// What the prompt needs besides the item is not there. A prompt with less is not a substitute.
    #[error("the dataset has no `{name}` to put into the prompt: {needed}")]
    SupportMissing {
        /// Name of the support value.
        name: String,
        /// What it should hold.
        needed: &'static str,
    },
    /// A column of the item is not as its dataset promises.
    #[error(transparent)]
    Row(#[from] RowError),
}

/// A benchmark: what is asked, and what an answer is worth.
pub trait Benchmark: Layout {
    /// What it is.
    fn facts(&self) -> &'static Facts;

    /// Names of the support values that the item's prompt needs, as [`Layout::support`] names them.
    fn support_of(&self, item: &Item) -> Vec<String> {
        let _ = item;
        Vec::new()
    }

    /// The text around the item in its prompt.
    fn template(&self) -> Template;

    /// What a model is shown. `support` holds at least the values that [`Self::support_of`] names.
    fn prompt(&self, item: &Item, support: &BTreeMap<String, Value>) -> Result<Prompt, ItemProblem>;

    /// The right answer, for people; empty when the item has none.
    fn expected(&self, item: &Item) -> String;

    /// What an answer is worth. An item without a gold answer is an infrastructure error.
    fn grade(&self, item: &Item, answer: &Answer) -> Verdict;

    /// A right answer in the form that the benchmark asks for.
    fn oracle(&self, item: &Item) -> String;

    /// An item made of grading fields only, for stored responses: it can be graded but not asked.
    fn score_row(&self, row: &Row) -> Result<Item, RowError>;

    /// The chance to be right by guessing, where guessing is possible.
    fn chance(&self, item: &Item) -> Option<f64> {
        let _ = item;
        None
    }

    /// Metrics of this benchmark beside those that all have: accuracy and coverage by group, and the
    /// accuracy that guessing the missing answers would give, where guessing is possible.
    fn extra_metrics(&self, groups: &[GroupTally]) -> Map<String, Value> {
        metrics::by_group(self.facts().group_noun, groups)
    }
}
