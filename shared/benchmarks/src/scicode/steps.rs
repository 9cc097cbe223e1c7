//! Asks one question per step. Each prompt contains the code of earlier steps, but no conversation history.

use bench_domain::{Prompt, Step};
use bench_items::Item;

use super::problem::{Problem, SubStep};
use super::{SciCode, extract, given, prompt};
use crate::item_problem::ItemProblem;
use crate::material::{Material, Templates};
use crate::steps::{NextStep, Steps};

impl Steps for SciCode {
    fn next(
        &self,
        item: &Item,
        material: &Material,
        answered: &[Step],
    ) -> Result<Option<NextStep>, ItemProblem> {
        let problem = Problem::from_row(&item.row)?;
        // Build the code of all steps now: if a given step can't be shown later, the problem differs from the official
        // one, and no request should be paid for.
        let codes = self.codes(&problem, &material.templates, answered)?;
        let Some(step) = problem.asked_steps().nth(answered.len()) else { return Ok(None) };
        let before = problem.steps.iter().take_while(|earlier| earlier.name != step.name).count();
        let earlier: Vec<String> = codes.into_iter().take(before).collect();
        let text = prompt::step(&problem, &earlier, &material.templates, self.with_background);
        Ok(text.map(|text| NextStep { name: step.name.to_owned(), prompt: Prompt::user(text) }))
    }

    fn reference(&self, item: &Item, step: &str) -> Option<String> {
        let problem = Problem::from_row(&item.row).ok()?;
        let step = problem.steps.iter().find(|one| one.name == step)?;
        step.truth.map(in_block)
    }

    fn oracle(&self, item: &Item, step: &str) -> String {
        let Ok(problem) = Problem::from_row(&item.row) else { return String::new() };
        let step = problem.steps.iter().find(|one| one.name == step);
        step.map(|step| in_block(&right_code(step))).unwrap_or_default()
    }
}

/// Formats code as in a reply.
fn in_block(code: &str) -> String {
    format!("```python\n{code}\n```\n")
}

/// Returns the dataset's program, or else the step's header and return line, because the test split has no programs.
fn right_code(step: &SubStep<'_>) -> String {
    step.truth.map_or_else(|| format!("{}\n{}", step.header, step.return_line), str::to_owned)
}

impl SciCode {
    /// Returns the code of all steps in order, including given steps. The code of steps that aren't answered yet is
    /// empty.
    pub(super) fn codes(
        self,
        problem: &Problem<'_>,
        templates: &Templates,
        answered: &[Step],
    ) -> Result<Vec<String>, ItemProblem> {
        let mut answers = answered.iter();
        let codes = problem.steps.iter().map(|step| {
            if step.is_given {
                return given::code(problem, step, templates, self.given);
            }
            match answers.next() {
                None => Ok(String::new()),
                Some(answer) if answer.name == step.name => {
                    Ok(extract::code(&answer.answer.text).into_owned())
                }
                Some(answer) => {
                    let problem = format!(
                        "the answer to step {} was stored as an answer to step {}",
                        step.name, answer.name
                    );
                    Err(ItemProblem::Content(problem))
                }
            }
        });
        let codes = codes.collect::<Result<_, _>>()?;
        match answers.next() {
            None => Ok(codes),
            Some(extra) => Err(ItemProblem::Content(format!("there is no step {} to ask", extra.name))),
        }
    }
}
