//! Prompts for the steps.

use super::problem::Problem;
use super::texts;
use crate::material::Templates;
use crate::prompts::fill;

/// Separator between two earlier steps.
const STEP_SEPARATOR: &str = "------";

/// Returns the prompt for the next step. `codes` holds the code of all steps before it, in order.
pub(super) fn step(
    problem: &Problem<'_>,
    codes: &[String],
    templates: &Templates,
    with_background: bool,
) -> Option<String> {
    let described = |at: usize| {
        let step = problem.steps.get(at)?;
        Some(match with_background {
            true => format!("{}\n{}", step.description, step.background),
            false => step.description.to_owned(),
        })
    };
    let mut earlier = Vec::with_capacity(3 * codes.len());
    for (at, code) in codes.iter().enumerate() {
        if at > 0 {
            earlier.push(STEP_SEPARATOR.to_owned());
        }
        earlier.push(described(at)?);
        earlier.push(code.clone());
    }
    let next = problem.steps.get(codes.len())?;
    let next = [described(codes.len())?, next.header.to_owned(), next.return_line.to_owned()];
    let slots = [
        (texts::PROBLEM_STEPS, earlier.join("\n\n")),
        (texts::NEXT_STEP, next.join("\n\n")),
        (texts::DEPENDENCIES, problem.dependencies.to_owned()),
    ];
    let slots = slots.each_ref().map(|(name, value)| (*name, value.as_str()));
    Some(fill(texts::prompt(templates, with_background).1, &slots))
}
