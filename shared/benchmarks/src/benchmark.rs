//! What every benchmark can do.

use std::borrow::Cow;

use bench_domain::{Answer, Prompt};
use bench_items::{IndexEntry, Item, Layout, Row, RowError};
use serde_json::{Map, Value};

use crate::facts::{Facts, Template};
use crate::grading::Grading;
use crate::item_problem::ItemProblem;
use crate::material::{Material, Templates};
use crate::metrics::{self, GroupTally, Metrics};
use crate::options::{OptionError, OptionFacts, Options};
use crate::scorers::Scorer;
use crate::scorers::judge::Judge;
use crate::scorers::sandbox::SandboxGrader;
use crate::steps::Steps;

/// A benchmark: what is asked, and what an answer is worth.
pub trait Benchmark: Layout {
    /// What it is.
    fn facts(&self) -> &'static Facts;

    /// Names of the support values that the item's prompt needs, as [`Layout::support`] names them.
    fn support_of(&self, item: &Item) -> Vec<String> {
        let _ = item;
        Vec::new()
    }

    /// Returns whether all items of a group need the same support values.
    fn support_follows_group(&self) -> bool {
        false
    }

    /// The other protocols of this benchmark, each under its own [`Facts::protocol_name`]. They share its name and
    /// its items' ids.
    fn other_protocols(&self) -> &'static [&'static dyn Benchmark] {
        &[]
    }

    /// The item as its sample of that index asks it, from 0: what a stored item becomes before it is asked, graded
    /// or shown. For protocols that ask an item in another way each time, such as with its options in a new order.
    fn of_sample<'a>(&self, item: &'a Item, sample: u32) -> Cow<'a, Item> {
        let _ = sample;
        Cow::Borrowed(item)
    }

    /// The text around the item in its prompt.
    fn template(&self, templates: &Templates) -> Template;

    /// What a model is shown. The material holds at least the values that [`Self::support_of`] names.
    fn prompt(&self, item: &Item, material: &Material) -> Result<Prompt, ItemProblem>;

    /// Who says what answers are worth.
    fn scorer(&self) -> &dyn Scorer;

    /// [`Scorer::expected`] of its scorer.
    fn expected(&self, item: &Item) -> String {
        self.scorer().expected(item)
    }

    /// [`Scorer::oracle`] of its scorer.
    fn oracle(&self, item: &Item) -> String {
        self.scorer().oracle(item)
    }

    /// [`Scorer::grade`] of its scorer.
    fn grade(&self, item: &Item, answer: &Answer) -> Grading {
        self.scorer().grade(item, answer)
    }

    /// [`Scorer::score_row`] of its scorer.
    fn score_row(&self, row: &Row) -> Result<Item, RowError> {
        self.scorer().score_row(row)
    }

    /// [`Scorer::judge`] of its scorer.
    fn judge(&self) -> Option<&'static dyn Judge> {
        self.scorer().judge()
    }

    /// [`Scorer::sandbox`] of its scorer.
    fn sandbox(&self) -> Option<&'static dyn SandboxGrader> {
        self.scorer().sandbox()
    }

    /// Tokens of the item's prompt, where its dataset tells them: counted with `cl100k_base`.
    fn input_tokens(&self, item: &Item) -> Option<u64> {
        let _ = item;
        None
    }

    /// How an item is asked that takes several questions; `None` where it is one.
    fn steps(&self) -> Option<&'static dyn Steps> {
        None
    }

    /// Settings that a run may give, beside the protocol.
    fn options(&self) -> &'static [OptionFacts] {
        &[]
    }

    /// What this benchmark becomes under these options: `None` where it stays as it is. Names and values are checked
    /// here, those of [`Self::selects`] included.
    ///
    /// # Errors
    /// One sentence that names the option and what it may be.
    fn under_options(&self, options: &Options) -> Result<Option<&'static dyn Benchmark>, OptionError> {
        match options.keys().next() {
            None => Ok(None),
            Some(name) => Err(OptionError::unknown(name, self.options())),
        }
    }

    /// Whether a run with these options asks this item.
    fn selects(&self, options: &Options, item: &IndexEntry) -> bool {
        let _ = (options, item);
        true
    }

    /// Whether a score is 1 for a right answer and 0 for every other one, so that the mean of scores is a share of
    /// right answers. Where it is not, the uncertainty is that of a mean.
    fn scores_are_shares(&self) -> bool {
        true
    }

    /// Metrics that the protocol reports from every verdict, beside the score.
    fn metrics(&self) -> Option<Box<dyn Metrics>> {
        None
    }

    /// Metrics by group of this benchmark: accuracy and coverage unless it has others.
    fn extra_metrics(&self, groups: &[GroupTally]) -> Map<String, Value> {
        metrics::by_group(self.facts().group_noun, groups)
    }
}
