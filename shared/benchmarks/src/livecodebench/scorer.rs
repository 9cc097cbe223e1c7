//! Scorer for programs, which are run on the tests of their problem.

use bench_domain::{Answer, Stage};
use bench_items::{Item, Row, RowError};

use super::{LiveCodeBench, grader, row};
use crate::grading::Grading;
use crate::scorers::Scorer;
use crate::scorers::sandbox::SandboxGrader;

impl Scorer for LiveCodeBench {
    fn expected(&self, item: &Item) -> String {
        let count = |column| row::test_count(&item.row, column);
        match (count(row::PUBLIC), count(row::PRIVATE)) {
            (Some(public), Some(private)) => match public + private {
                1 => "passes its one test".to_owned(),
                all => format!("passes all {all} tests"),
            },
            (Some(public), None) => format!("passes all tests, {public} public and the private ones"),
            _ => "passes all tests".to_owned(),
        }
    }

    fn oracle(&self, item: &Item) -> String {
        match row::optional_text(&item.row, row::REFERENCE).ok().flatten() {
            Some(program) => format!("```python\n{}\n```", program.trim_end_matches('\n')),
            None => "The dataset has no program for this problem.".to_owned(),
        }
    }

    fn grade(&self, _item: &Item, answer: &Answer) -> Grading {
        match grader::code(answer) {
            None => grader::no_code_verdict(answer).into(),
            Some(_) => Grading::NeedsTurn(Stage::Sandbox),
        }
    }

    fn score_row(&self, row: &Row) -> Result<Item, RowError> {
        let mut row = row.clone();
        let mut item = row::grading_item(&mut row)?;
        row.remove(row::REFERENCE);
        item.row = row;
        Ok(item)
    }

    fn sandbox(&self) -> Option<&'static dyn SandboxGrader> {
        Some(grader::grader(self.grading))
    }
}
