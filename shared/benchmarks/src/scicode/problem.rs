//! A problem: what its row holds, step by step.

use bench_items::{Row, RowError};
use serde_json::Value;

use crate::columns::{text, text_or_number};

const STEPS: &str = "sub_steps";

/// Steps that the benchmark gives instead of asking them, by problem and position from 0.
const GIVEN: [(&str, usize); 3] = [("13", 5), ("62", 0), ("76", 2)];

/// The columns that prompt and grader need; general solutions and their tests stay in the dataset.
const COLUMNS: [&str; 6] =
    ["problem_id", "problem_name", "required_dependencies", STEPS, "special_files", "h5_file"];

/// Characters of a step's name at most. It names files.
const NAME_CHARS_MAX: usize = 32;

/// A problem.
#[derive(Debug)]
pub(super) struct Problem<'a> {
    /// The dataset's own number of it.
    pub(super) id: String,
    /// Import lines that every program begins with.
    pub(super) dependencies: &'a str,
    /// In order, at least one.
    pub(super) steps: Vec<SubStep<'a>>,
    /// Contents to be used in place of the official texts of given steps, by file name.
    special_files: Option<&'a Row>,
    /// Name of the file with the right values, where the row has its own.
    pub(super) targets: Option<&'a str>,
}

/// A step of a problem.
#[derive(Debug)]
pub(super) struct SubStep<'a> {
    /// Number of problem and step, as in `13.6`.
    pub(super) name: &'a str,
    /// What is to be done.
    pub(super) description: &'a str,
    /// The science behind it.
    pub(super) background: &'a str,
    /// A right program, where the dataset has one.
    pub(super) truth: Option<&'a str>,
    /// Signature and documentation of what is to be written.
    pub(super) header: &'a str,
    /// What the function ends with.
    pub(super) return_line: &'a str,
    /// Programs that fail when the step is wrong.
    pub(super) tests: Vec<&'a str>,
    /// Whether the benchmark gives its code instead of asking for it.
    pub(super) given: bool,
}

impl<'a> Problem<'a> {
    pub(super) fn of(row: &'a Row) -> Result<Self, RowError> {
        let id = text_or_number(row, "problem_id")?;
        let steps = match row.get(STEPS) {
            Some(Value::Array(steps)) if !steps.is_empty() => steps,
            Some(Value::Null) | None => return Err(RowError::column(STEPS, "is missing")),
            Some(_) => return Err(RowError::column(STEPS, "is not a list of steps")),
        };
        let steps = steps.iter().enumerate().map(|(at, step)| {
            let wrong = |problem: String| RowError::column(STEPS, format!("step {}: {problem}", at + 1));
            let step = step.as_object().ok_or_else(|| wrong("is not an object".into()))?;
            SubStep::of(step, GIVEN.contains(&(id.as_str(), at))).map_err(|error| wrong(error.to_string()))
        });
        let steps = steps.collect::<Result<Vec<_>, _>>()?;
        for (at, step) in steps.iter().enumerate() {
            if steps.iter().take(at).any(|earlier| earlier.name == step.name) {
                return Err(RowError::column(STEPS, format!("has the step `{}` twice", step.name)));
            }
        }
        if steps.iter().all(|step| step.given) {
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

    /// The steps that a model is asked.
    pub(super) fn asked(&self) -> impl Iterator<Item = &SubStep<'a>> {
        self.steps.iter().filter(|step| !step.given)
    }

    /// The row's own text of a given step.
    pub(super) fn special_file(&self, step: &str) -> Option<&'a str> {
        let files = self.special_files?;
        files.get(step).or_else(|| files.get(&format!("{step}.txt")))?.as_str()
    }
}

impl<'a> SubStep<'a> {
    fn of(row: &'a Row, given: bool) -> Result<Self, RowError> {
        let name = text(row, "step_number")?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let fits = (1..=NAME_CHARS_MAX).contains(&name.len()) && name.chars().all(is_name);
        if !fits || name.starts_with('.') || name.contains("..") {
            let problem = format!("is not a number like 13.6 ({NAME_CHARS_MAX} characters at most)");
            return Err(RowError::column("step_number", problem));
        }
        let or_nothing = |column| match row.get(column) {
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
            background: or_nothing("step_background")?,
            truth: Some(or_nothing("ground_truth_code")?).filter(|code| !code.trim().is_empty()),
            header: text(row, "function_header")?,
            return_line: or_nothing("return_line")?,
            tests,
            given,
        })
    }
}

/// The row as it is stored. One that has the problem in a column of that name, as recorded runs have, is laid flat.
pub(super) fn stored(mut row: Row) -> Row {
    if let Some(Value::Object(problem)) = row.remove("problem") {
        row.extend(problem);
    }
    row.retain(|column, _| COLUMNS.contains(&column.as_str()));
    row
}
