//! Reasons why an item can't be asked.

use bench_items::RowError;

/// Reason why an item can't be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ItemProblem {
    /// Material that the prompt needs is missing. The item is not asked with an incomplete prompt.
    #[error("the dataset has no `{name}` to put into the prompt: {needed}")]
    SupportMissing {
        /// Name of the missing support value.
        name: String,
        /// Description of the value.
        needed: &'static str,
    },
    /// The item itself can't be asked or judged, for example because its image doesn't decode.
    #[error("{0}")]
    Content(String),
    /// A column of the item doesn't match the format of its dataset.
    #[error(transparent)]
    Row(#[from] RowError),
}

impl ItemProblem {
    /// Creates the problem of an item without a question.
    pub fn no_question() -> Self {
        Self::Content("the item has no question".to_owned())
    }
}
