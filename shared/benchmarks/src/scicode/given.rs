//! Steps that the benchmark gives instead of asking them.

use std::sync::LazyLock;

use regex::Regex;

use super::GivenSteps;
use super::problem::{Problem, SubStep};
use crate::item_problem::ItemProblem;
use crate::material::Templates;

mod unparse;

static FUNCTION: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\bdef\s+(\w+)\s*\(").ok());
static CLASS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\bclass\s+(\w+)\s*\(").ok());

/// What is shown and run for a given step.
///
/// # Errors
/// When its text is not there, or holds nothing under the name that the step's header has.
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

/// What the step is taken to define: the first function in its header, a method included, else a class with bases.
fn name(header: &str) -> Option<&str> {
    let named = |pattern: &LazyLock<Option<Regex>>| {
        pattern.as_ref()?.captures(header)?.get(1).map(|name| name.as_str())
    };
    named(&FUNCTION).or_else(|| named(&CLASS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_with_a_constructor_is_taken_for_the_constructor() {
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
