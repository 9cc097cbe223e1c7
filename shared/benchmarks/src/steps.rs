//! Items of several questions, asked one after the other.

use bench_domain::{Prompt, Step};
use bench_items::Item;

use crate::item_problem::ItemProblem;
use crate::material::Material;

/// Next question about an item.
#[derive(Debug, Clone, PartialEq)]
pub struct NextStep {
    /// Name of the step in the dataset.
    pub name: String,
    /// Prompt for the model.
    pub prompt: Prompt,
}

/// Protocol for items of several questions. All functions are pure.
pub trait Steps: Send + Sync {
    /// Returns the question that follows the answered ones, given in order; `None` if no question is left.
    ///
    /// # Errors
    /// Returns an error if the item doesn't match the format of its dataset.
    fn next(
        &self,
        item: &Item,
        material: &Material,
        answered: &[Step],
    ) -> Result<Option<NextStep>, ItemProblem>;

    /// Returns the dataset's own answer to the named step, in the form that the benchmark asks for; `None` if it has
    /// none.
    fn reference(&self, item: &Item, step: &str) -> Option<String>;

    /// Returns a right answer to the named step, as far as the dataset has one, in the form that the benchmark asks
    /// for.
    fn oracle(&self, item: &Item, step: &str) -> String;
}
