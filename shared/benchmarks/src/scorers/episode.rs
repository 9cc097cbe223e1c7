//! Scorer of benchmarks whose items an agent works on: an episode grades them, not a text.

use bench_domain::{Answer, Stage};
use bench_items::{Item, Row, RowError};

use super::Scorer;
use crate::grading::Grading;

/// Leaves the grade to the stage `episode`.
pub(crate) struct EpisodeScorer {
    /// Sentence for what a right episode does.
    pub(crate) expected: &'static str,
}

impl Scorer for EpisodeScorer {
    fn expected(&self, _item: &Item) -> String {
        self.expected.to_owned()
    }

    fn oracle(&self, _item: &Item) -> String {
        "The task's own solution is run.".to_owned()
    }

    fn grade(&self, _item: &Item, _answer: &Answer) -> Grading {
        Grading::NeedsTurn(Stage::Episode)
    }

    fn score_row(&self, _row: &Row) -> Result<Item, RowError> {
        Err(RowError { column: None, problem: "terminal tasks have no stored responses".to_owned() })
    }
}
