//! The questions about an item, whether it takes one or several.

use bench_domain::{Answer, Prompt, Step};
use bench_items::Item;

use crate::benchmark::Benchmark;
use crate::item_problem::ItemProblem;
use crate::material::Material;
use crate::steps::NextStep;

/// What is to be asked next about an item.
#[derive(Debug, Clone, PartialEq)]
pub struct NextQuestion {
    /// What the dataset calls the step; `None` for an item that takes one question.
    pub step: Option<String>,
    /// What the model is shown.
    pub prompt: Prompt,
}

/// The question about an item after those that were answered, in order; `None` when nothing is left to ask.
///
/// # Errors
/// When the item cannot be asked.
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

/// A question about an item, as far as it can be told before anybody has answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Foreseen {
    /// What the dataset calls the step; `None` for an item that takes one question.
    pub step: Option<String>,
    /// What the model is shown; `None` where that depends on earlier answers, to one of which the dataset has none of
    /// its own.
    pub prompt: Option<Prompt>,
    /// Whether it comes after others: what the prompt has of earlier answers is then the dataset's.
    pub is_later: bool,
}

/// Every question about an item, in order, with the dataset's own answers to earlier ones.
///
/// # Errors
/// When the item cannot be asked.
pub fn foreseen(
    benchmark: &dyn Benchmark,
    item: &Item,
    material: &Material,
) -> Result<Vec<Foreseen>, ItemProblem> {
    let (mut questions, mut answered) = (Vec::new(), Vec::new());
    let mut is_known = true;
    loop {
        let next = match next_question(benchmark, item, material, &answered) {
            Ok(next) => next,
            // With other answers it may be asked.
            Err(_) if !is_known => None,
            Err(problem) => return Err(problem),
        };
        let Some(NextQuestion { step, prompt }) = next else { break };
        let is_later = !questions.is_empty();
        questions.push(Foreseen { step: step.clone(), prompt: is_known.then(|| prompt.clone()), is_later });
        let (Some(steps), Some(name)) = (benchmark.steps(), step) else { break };
        let reference = steps.reference(item, &name);
        is_known &= reference.is_some();
        // Any answer will do to learn what comes next.
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
