//! Scorer for programs, whose steps are tested in a sandbox.

use bench_domain::{Answer, Stage};
use bench_items::{Item, Row, RowError};

use super::SciCode;
use super::problem::{self, Problem};
use crate::grading::Grading;
use crate::scorers::Scorer;
use crate::scorers::sandbox::SandboxGrader;
use crate::steps::Steps;

impl Scorer for SciCode {
    fn expected(&self, item: &Item) -> String {
        let Ok(problem) = Problem::from_row(&item.row) else { return String::new() };
        let truths: Option<Vec<&str>> = problem.asked_steps().map(|step| step.truth).collect();
        truths.unwrap_or_default().join("\n\n")
    }

    fn oracle(&self, item: &Item) -> String {
        let first = Problem::from_row(&item.row)
            .ok()
            .and_then(|problem| Some(problem.asked_steps().next()?.name.to_owned()));
        first.map(|step| Steps::oracle(self, item, &step)).unwrap_or_default()
    }

    fn grade(&self, _item: &Item, _answer: &Answer) -> Grading {
        Grading::NeedsTurn(Stage::Sandbox)
    }

    fn score_row(&self, row: &Row) -> Result<Item, RowError> {
        let row = problem::flatten(row.clone());
        Problem::from_row(&row)?;
        Ok(Item::new("", None, row))
    }

    fn sandbox(&self) -> Option<&'static dyn SandboxGrader> {
        Some(self.as_static())
    }
}
