//! Steps whose code the benchmark gives instead of asking for it.

use std::sync::LazyLock;

use regex::Regex;

use super::GivenSteps;
use super::problem::{Problem, SubStep};
use crate::item_problem::ItemProblem;
use crate::material::Templates;

mod unparse;

static FUNCTION: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\bdef\s+(\w+)\s*\(").ok());
static CLASS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\bclass\s+(\w+)\s*\(").ok());

/// Returns the code of a given step, as prompts show it and jobs run it.
///
/// # Errors
/// Returns an error if the step's text is missing, or doesn't define the name in the step's header.
pub(super) fn code(
    problem: &Problem<'_>,
    step: &SubStep<'_>,
    templates: &Templates,
    how: GivenSteps,
) -> Result<String, ItemProblem> {
    let text = problem.special_file(step.name).or_else(|| templates.get(step.name).map(String::as_str));
    let text = text.ok_or_else(|| {
        let problem = format!(
            "step {} is given by the benchmark, and its official text could not be loaded: without it the problem is not \
             the official one",
            step.name
        );
        ItemProblem::Content(problem)
    })?;
    match how {
        GivenSteps::Whole => Ok(text.to_owned()),
        GivenSteps::Official => {
            let name = name(step.header).ok_or_else(|| {
                ItemProblem::Content(format!("the header of step {} names no function or class", step.name))
            })?;
            unparse::definition(text, name).ok_or_else(|| {
                ItemProblem::Content(format!("the given text of step {} defines no `{name}`", step.name))
            })
        }
    }
}

/// Returns the name that the step defines: the first function in its header, including methods, or else a class with
/// bases.
fn name(header: &str) -> Option<&str> {
    let find = |pattern: &LazyLock<Option<Regex>>| {
        pattern.as_ref()?.captures(header)?.get(1).map(|name| name.as_str())
    };
    find(&FUNCTION).or_else(|| find(&CLASS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_with_a_constructor_counts_as_the_constructor() {
        for (header, expected) in [
            ("def f(x):\n    '''...'''", Some("f")),
            ("class A:\n    def __init__(self):\n", Some("__init__")),
            ("class A(B):\n    '''...'''", Some("A")),
            ("class A:\n    pass", None),
            ("def  g (", Some("g")),
            ("undef f(", None),
        ] {
            assert_eq!(name(header), expected, "{header:?}");
        }
    }
}
