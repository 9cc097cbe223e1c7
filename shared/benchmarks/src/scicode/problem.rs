//! Problems: the contents of a row, step by step.

use bench_items::{Row, RowError};
use serde_json::Value;

use crate::columns::{text, text_or_number};

const STEPS: &str = "sub_steps";

/// Steps that the benchmark gives instead of asking for them, by problem and position from 0.
const GIVEN: [(&str, usize); 3] = [("13", 5), ("62", 0), ("76", 2)];

/// Columns that prompt and grader need. General solutions and their tests are dropped.
const COLUMNS: [&str; 6] =
    ["problem_id", "problem_name", "required_dependencies", STEPS, "special_files", "h5_file"];

/// Maximum number of characters in a step's name, which is used as a file name.
const NAME_CHARS_MAX: usize = 32;

/// Problem of the dataset.
#[derive(Debug)]
pub(super) struct Problem<'a> {
    /// Number of the problem in the dataset.
    pub(super) id: String,
    /// Import lines at the start of every program.
    pub(super) dependencies: &'a str,
    /// Steps in order, at least one.
    pub(super) steps: Vec<SubStep<'a>>,
    /// Texts that replace the official texts of given steps, by file name.
    special_files: Option<&'a Row>,
    /// Name of the file with the expected values, if the row has its own.
    pub(super) targets: Option<&'a str>,
}

/// Step of a problem.
#[derive(Debug)]
pub(super) struct SubStep<'a> {
    /// Number of problem and step, as in `13.6`.
    pub(super) name: &'a str,
    /// Task of the step.
    pub(super) description: &'a str,
    /// Scientific background of the step.
    pub(super) background: &'a str,
    /// Right program, if the dataset has one.
    pub(super) truth: Option<&'a str>,
    /// Signature and docstring of the function or class to write.
    pub(super) header: &'a str,
    /// Last line of the function.
    pub(super) return_line: &'a str,
    /// Test programs, which fail if the step is wrong.
    pub(super) tests: Vec<&'a str>,
    /// True if the benchmark gives the code of this step instead of asking for it.
    pub(super) is_given: bool,
}

impl<'a> Problem<'a> {
    pub(super) fn from_row(row: &'a Row) -> Result<Self, RowError> {
        let id = text_or_number(row, "problem_id")?;
        let steps = match row.get(STEPS) {
            Some(Value::Array(steps)) if !steps.is_empty() => steps,
            Some(Value::Null) | None => return Err(RowError::column(STEPS, "is missing")),
            Some(_) => return Err(RowError::column(STEPS, "is not a list of steps")),
        };
        let steps = steps.iter().enumerate().map(|(at, step)| {
            let wrong = |problem: String| RowError::column(STEPS, format!("step {}: {problem}", at + 1));
            let step = step.as_object().ok_or_else(|| wrong("is not an object".into()))?;
            SubStep::from_row(step, GIVEN.contains(&(id.as_str(), at)))
                .map_err(|error| wrong(error.to_string()))
        });
        let steps = steps.collect::<Result<Vec<_>, _>>()?;
        for (at, step) in steps.iter().enumerate() {
            if steps.iter().take(at).any(|earlier| earlier.name == step.name) {
                return Err(RowError::column(STEPS, format!("has the step `{}` twice", step.name)));
            }
        }
        if steps.iter().all(|step| step.is_given) {
            return Err(RowError::column(STEPS, "has no step that is asked"));
        }
        let special_files = match row.get("special_files") {
            Some(Value::Null) | None => None,
            Some(Value::Object(files)) => Some(files),
            Some(_) => {
                return Err(RowError::column("special_files", "is not an object of texts by file name"));
            }
        };
        let targets = match row.get("h5_file") {
            Some(Value::Null) | None => None,
            Some(_) => Some(text(row, "h5_file")?),
        };
        Ok(Self { id, dependencies: text(row, "required_dependencies")?, steps, special_files, targets })
    }

    /// Returns the steps that a model is asked.
    pub(super) fn asked_steps(&self) -> impl Iterator<Item = &SubStep<'a>> {
        self.steps.iter().filter(|step| !step.is_given)
    }

    /// Returns the row's own text of a given step.
    pub(super) fn special_file(&self, step: &str) -> Option<&'a str> {
        let files = self.special_files?;
        files.get(step).or_else(|| files.get(&format!("{step}.txt")))?.as_str()
    }
}

impl<'a> SubStep<'a> {
    fn from_row(row: &'a Row, is_given: bool) -> Result<Self, RowError> {
        let name = text(row, "step_number")?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let fits = (1..=NAME_CHARS_MAX).contains(&name.len()) && name.chars().all(is_name);
        if !fits || name.starts_with('.') || name.contains("..") {
            let problem = format!("is not a number like 13.6 ({NAME_CHARS_MAX} characters at most)");
            return Err(RowError::column("step_number", problem));
        }
        let text_or_empty = |column| match row.get(column) {
            Some(Value::Null) | None => Ok(""),
            Some(_) => text(row, column),
        };
        let tests = match row.get("test_cases") {
            Some(Value::Array(tests)) => tests.iter().map(Value::as_str).collect::<Option<Vec<_>>>(),
            _ => None,
        };
        let tests = tests.ok_or_else(|| RowError::column("test_cases", "is not a list of texts"))?;
        Ok(Self {
            name,
            description: text(row, "step_description_prompt")?,
            background: text_or_empty("step_background")?,
            truth: Some(text_or_empty("ground_truth_code")?).filter(|code| !code.trim().is_empty()),
            header: text(row, "function_header")?,
            return_line: text_or_empty("return_line")?,
            tests,
            is_given,
        })
    }
}

/// Returns the row in the stored form. Recorded runs have the problem in a column `problem`, whose contents are moved
/// up.
pub(super) fn flatten(mut row: Row) -> Row {
    if let Some(Value::Object(problem)) = row.remove("problem") {
        row.extend(problem);
    }
    row.retain(|column, _| COLUMNS.contains(&column.as_str()));
    row
}
