//! The trait that every benchmark implements.

use std::borrow::Cow;

use bench_code_tasks::CodeTask;
use bench_domain::{Agent, Answer, Prompt};
use bench_items::{IndexEntry, Item, Layout, Row, RowError};
use serde_json::{Map, Value};

use crate::grading::Grading;
use crate::item_problem::ItemProblem;
use crate::material::{Material, Templates};
use crate::metadata::{Metadata, Template};
use crate::metrics::{self, GroupTally, Metrics};
use crate::options::{OptionError, OptionMetadata, Options};
use crate::scorers::Scorer;
use crate::scorers::dialogue::DialogueProtocol;
use crate::scorers::instance::InstanceProtocol;
use crate::scorers::judge::Judge;
use crate::scorers::sandbox::SandboxGrader;
use crate::scorers::workspace::WorkspaceProtocol;
use crate::steps::Steps;

/// Benchmark: makes prompts from the items of its dataset and selects the scorer that grades answers.
pub trait Benchmark: Layout {
    /// Returns the description of the benchmark.
    fn metadata(&self) -> &'static Metadata;

    /// Names of the support values that the item's prompt needs. [`Layout::support`] produces values under these names.
    fn support_names(&self, item: &Item) -> Vec<String> {
        let _ = item;
        Vec::new()
    }

    /// Returns true if all items of a group need the same support values.
    fn support_follows_group(&self) -> bool {
        false
    }

    /// Returns the benchmark's other protocols, each under its own [`Metadata::protocol_name`]. They share the benchmark's
    /// name and item ids.
    fn other_protocols(&self) -> &'static [&'static dyn Benchmark] {
        &[]
    }

    /// Returns the item as the sample with this index (from 0) presents it. Callers apply it to a stored item before
    /// they make its prompt, grade it or show it. Protocols that vary an item between samples, for example by
    /// reordering its options, override it.
    fn item_for_sample<'a>(&self, item: &'a Item, sample: u32) -> Cow<'a, Item> {
        let _ = sample;
        Cow::Borrowed(item)
    }

    /// Returns the texts that surround an item in its prompt.
    fn template(&self, templates: &Templates) -> Template;

    /// Returns the prompt of an item. The material must hold at least the values that [`Self::support_names`] lists.
    fn prompt(&self, item: &Item, material: &Material) -> Result<Prompt, ItemProblem>;

    /// Returns the scorer that grades answers.
    fn scorer(&self) -> &dyn Scorer;

    /// Calls [`Scorer::expected`] of the benchmark's scorer.
    fn expected(&self, item: &Item) -> String {
        self.scorer().expected(item)
    }

    /// Calls [`Scorer::oracle`] of the benchmark's scorer.
    fn oracle(&self, item: &Item) -> String {
        self.scorer().oracle(item)
    }

    /// Calls [`Scorer::missing_oracle`] of the benchmark's scorer.
    fn missing_oracle(&self, item: &Item) -> Option<String> {
        self.scorer().missing_oracle(item)
    }

    /// Calls [`Scorer::grade`] of the benchmark's scorer.
    fn grade(&self, item: &Item, answer: &Answer) -> Grading {
        self.scorer().grade(item, answer)
    }

    /// Calls [`Scorer::score_row`] of the benchmark's scorer.
    fn score_row(&self, row: &Row) -> Result<Item, RowError> {
        self.scorer().score_row(row)
    }

    /// Calls [`Scorer::judge`] of the benchmark's scorer.
    fn judge(&self) -> Option<&'static dyn Judge> {
        self.scorer().judge()
    }

    /// Calls [`Scorer::sandbox`] of the benchmark's scorer.
    fn sandbox(&self) -> Option<&'static dyn SandboxGrader> {
        self.scorer().sandbox()
    }

    /// Returns the number of tokens of the item's prompt (`cl100k_base`), if its dataset has it.
    fn input_tokens(&self, item: &Item) -> Option<u64> {
        let _ = item;
        None
    }

    /// Returns true if an agent works on the items in episodes. It asks the model as often as it needs, so that no prompt
    /// is sent before the episode.
    fn has_agent(&self) -> bool {
        false
    }

    /// Returns the agent that works on the items unless an order names another; `None` without agents.
    fn default_agent(&self) -> Option<Agent> {
        self.has_agent().then_some(Agent::DEFAULT)
    }

    /// Returns the protocol by which the agent changes files in a sandbox; `None` if it works in containers, or there is none.
    fn workspace(&self) -> Option<&'static dyn WorkspaceProtocol> {
        None
    }

    /// Returns the protocol by which the agent changes a repository in a container, and the change is verified in another one;
    /// `None` for benchmarks without such containers.
    fn instance(&self) -> Option<&'static dyn InstanceProtocol> {
        None
    }

    /// Returns the protocol of conversations with a simulated user; `None` if the items aren't conversations.
    fn dialogue(&self) -> Option<&'static dyn DialogueProtocol> {
        None
    }

    /// Returns the protocol for items of several questions; `None` if each item is one question.
    fn steps(&self) -> Option<&'static dyn Steps> {
        None
    }

    /// Returns the programming tasks that come with the program and are the benchmark's items, without tests and solutions.
    fn code_tasks(&self) -> &'static [CodeTask] {
        &[]
    }

    /// Options that a run may set in addition to the protocol.
    fn options(&self) -> &'static [OptionMetadata] {
        &[]
    }

    /// Returns the only values that an option accepts; none if they can't be listed.
    fn option_values(&self, option: &str) -> Vec<&'static str> {
        let _ = option;
        Vec::new()
    }

    /// Returns the benchmark as changed by these options; `None` if they don't change it. Checks all names and values,
    /// also those of options that only affect [`Self::selects`].
    ///
    /// # Errors
    /// Returns a sentence that names the invalid option and its allowed values.
    fn with_options(&self, options: &Options) -> Result<Option<&'static dyn Benchmark>, OptionError> {
        match options.keys().next() {
            None => Ok(None),
            Some(name) => Err(OptionError::unknown(name, self.options())),
        }
    }

    /// Returns the benchmark without what only models are sent, for a source of answers that asks none; `None` if that
    /// makes no difference.
    fn without_model(&self, source: &str) -> Option<&'static dyn Benchmark> {
        let _ = source;
        None
    }

    /// Returns true if a run with these options includes this item.
    fn selects(&self, options: &Options, item: &IndexEntry) -> bool {
        let _ = (options, item);
        true
    }

    /// Returns the names in the options that no item of the dataset has.
    fn missing_names(&self, options: &Options, items: &[IndexEntry]) -> Vec<String> {
        let _ = (options, items);
        Vec::new()
    }

    /// Returns true if every score is 1 (right) or 0 (anything else), so that the mean score is a proportion. Otherwise
    /// the uncertainty is computed as that of a mean.
    fn scores_are_shares(&self) -> bool {
        true
    }

    /// Returns the metrics that the protocol computes from all verdicts, in addition to the score.
    fn metrics(&self) -> Option<Box<dyn Metrics>> {
        None
    }

    /// Returns the metrics by group of items. The default is accuracy and coverage.
    fn extra_metrics(&self, groups: &[GroupTally]) -> Map<String, Value> {
        metrics::by_group(self.metadata().group_noun, groups)
    }
}
