//! Questions about an item, which may take one or several.

use bench_domain::{Answer, Prompt, Step};
use bench_items::Item;

use crate::benchmark::Benchmark;
use crate::item_problem::ItemProblem;
use crate::material::Material;
use crate::steps::NextStep;

/// Next question to ask about an item.
#[derive(Debug, Clone, PartialEq)]
pub struct NextQuestion {
    /// Name of the step in the dataset; `None` if the item has only one question.
    pub step: Option<String>,
    /// Prompt for the model.
    pub prompt: Prompt,
}

/// Returns the question that follows the answered ones, given in order; `None` if no question is left.
///
/// # Errors
/// Returns an error if the item can't be asked.
pub fn next_question(
    benchmark: &dyn Benchmark,
    item: &Item,
    material: &Material,
    answered: &[Step],
) -> Result<Option<NextQuestion>, ItemProblem> {
    match benchmark.steps() {
        Some(steps) => {
            let next = steps.next(item, material, answered)?;
            Ok(next.map(|NextStep { name, prompt }| NextQuestion { step: Some(name), prompt }))
        }
        None if answered.is_empty() => {
            Ok(Some(NextQuestion { step: None, prompt: benchmark.prompt(item, material)? }))
        }
        None => Ok(None),
    }
}

/// Question about an item, predicted before the model has answered anything.
#[derive(Debug, Clone, PartialEq)]
pub struct QuestionPreview {
    /// Name of the step in the dataset; `None` if the item has only one question.
    pub step: Option<String>,
    /// Prompt for the model; `None` if it depends on an earlier answer and the dataset has no answer to that step.
    pub prompt: Option<Prompt>,
    /// True for every question but the first. Its prompt then contains the dataset's answers to earlier questions.
    pub is_later: bool,
}

/// Returns all questions about an item, in order, with the dataset's own answers to earlier ones.
///
/// # Errors
/// Returns an error if the item can't be asked.
pub fn preview_questions(
    benchmark: &dyn Benchmark,
    item: &Item,
    material: &Material,
) -> Result<Vec<QuestionPreview>, ItemProblem> {
    let (mut questions, mut answered) = (Vec::new(), Vec::new());
    let mut is_known = true;
    loop {
        let next = match next_question(benchmark, item, material, &answered) {
            Ok(next) => next,
            // The model's own answers may make this question possible.
            Err(_) if !is_known => None,
            Err(problem) => return Err(problem),
        };
        let Some(NextQuestion { step, prompt }) = next else { break };
        let is_later = !questions.is_empty();
        questions.push(QuestionPreview {
            step: step.clone(),
            prompt: is_known.then(|| prompt.clone()),
            is_later,
        });
        let (Some(steps), Some(name)) = (benchmark.steps(), step) else { break };
        let reference = steps.reference(item, &name);
        is_known &= reference.is_some();
        // Any answer advances to the next question.
        let text = reference.unwrap_or_else(|| steps.oracle(item, &name));
        answered.push(Step { name, prompt, answer: Answer::local(text) });
    }
    if questions.is_empty() {
        return Err(ItemProblem::no_question());
    }
    Ok(questions)
}

#[cfg(test)]
mod tests;
