//! Why an item cannot be asked.

use bench_items::RowError;

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
    /// The item cannot be asked or judged for a reason of its own, such as an image that does not decode.
    #[error("{0}")]
    Content(String),
    /// A column of the item is not as its dataset promises.
    #[error(transparent)]
    Row(#[from] RowError),
}

impl ItemProblem {
    /// Of an item that asks nothing.
    pub fn no_question() -> Self {
        Self::Content("the item has no question".to_owned())
    }
}
