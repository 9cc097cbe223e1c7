//! Items that take several questions, one after the other.

use bench_domain::{Prompt, Step};
use bench_items::Item;

use crate::item_problem::ItemProblem;
use crate::material::Material;

/// The next question about an item.
#[derive(Debug, Clone, PartialEq)]
pub struct NextStep {
    /// What the dataset calls the step.
    pub name: String,
    /// What the model is shown.
    pub prompt: Prompt,
}

/// How an item is asked that takes several questions. Pure functions.
pub trait Steps: Send + Sync {
    /// The question after those that were answered, in order; `None` when nothing is left to ask.
    ///
    /// # Errors
    /// When the item is not as its dataset promises.
    fn next(
        &self,
        item: &Item,
        material: &Material,
        answered: &[Step],
    ) -> Result<Option<NextStep>, ItemProblem>;

    /// The dataset's own answer to the step of that name, in the form that the benchmark asks for; `None` where it has
    /// none.
    fn reference(&self, item: &Item, step: &str) -> Option<String>;

    /// A right answer to the step of that name, as far as the dataset has one, in the form that the benchmark asks for.
    fn oracle(&self, item: &Item, step: &str) -> String;
}
