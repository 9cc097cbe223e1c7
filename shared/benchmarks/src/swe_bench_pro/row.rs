//! Rows of the dataset.

use bench_items::{Item, Row, RowError};

use super::literal;
use crate::columns::text;
use crate::python;

/// Columns of the dataset that items keep.
pub(super) const COLUMNS: [&str; 16] = [
    REPO,
    INSTANCE_ID,
    BASE_COMMIT,
    PATCH,
    "test_patch",
    PROBLEM_STATEMENT,
    REQUIREMENTS,
    INTERFACE,
    "repo_language",
    FAIL_TO_PASS,
    PASS_TO_PASS,
    "issue_specificity",
    "issue_categories",
    BEFORE,
    SELECTED,
    TAG,
];
pub(super) const INSTANCE_ID: &str = "instance_id";
pub(super) const REPO: &str = "repo";
pub(super) const PROBLEM_STATEMENT: &str = "problem_statement";
const BASE_COMMIT: &str = "base_commit";
const PATCH: &str = "patch";
const REQUIREMENTS: &str = "requirements";
const INTERFACE: &str = "interface";
const FAIL_TO_PASS: &str = "fail_to_pass";
const PASS_TO_PASS: &str = "pass_to_pass";
const BEFORE: &str = "before_repo_set_cmd";
const SELECTED: &str = "selected_test_files_to_run";
const TAG: &str = "dockerhub_tag";

/// Instance of the benchmark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Instance {
    pub(super) instance_id: String,
    /// Repository on GitHub, as `OWNER/NAME`.
    pub(super) repo: String,
    /// Commit on which the agent works: hexadecimal digits.
    pub(super) base_commit: String,
    /// Reference solution.
    pub(super) patch: String,
    pub(super) problem_statement: String,
    pub(super) requirements: String,
    pub(super) interface: String,
    /// Tests that the change must make pass.
    pub(super) fail_to_pass: Vec<String>,
    /// Tests that must still pass.
    pub(super) pass_to_pass: Vec<String>,
    /// Line that checks out the tests of the fix.
    pub(super) test_checkout: String,
    /// Names of the tests to run, joined by commas.
    pub(super) selected: String,
    /// Tag of the image; empty if the dataset names none.
    pub(super) dockerhub_tag: String,
}

impl Instance {
    /// Reads the instance of a stored item.
    pub(super) fn of_item(item: &Item) -> Result<Self, RowError> {
        Self::read(&item.row)
    }

    /// Reads the instance of a row.
    pub(super) fn read(row: &Row) -> Result<Self, RowError> {
        let list = |column: &str| {
            literal::texts(text(row, column)?).map_err(|problem| RowError::column(column, problem))
        };
        // Like an empty text in the official program, which has no missing values.
        let optional = |column: &str| text(row, column).unwrap_or_default().to_owned();
        let instance_id = text(row, INSTANCE_ID)?.trim().to_owned();
        if instance_id.is_empty() {
            return Err(RowError::column(INSTANCE_ID, "is empty"));
        }
        let selected = list(SELECTED)?.join(",");
        if selected.contains('\0') {
            return Err(RowError::column(SELECTED, "has a zero byte"));
        }
        Ok(Self {
            instance_id,
            repo: text(row, REPO)?.trim().to_owned(),
            base_commit: commit(row)?,
            patch: optional(PATCH),
            problem_statement: text(row, PROBLEM_STATEMENT)?.to_owned(),
            requirements: optional(REQUIREMENTS),
            interface: optional(INTERFACE),
            fail_to_pass: list(FAIL_TO_PASS)?,
            pass_to_pass: list(PASS_TO_PASS)?,
            test_checkout: last_line(&optional(BEFORE)).to_owned(),
            selected,
            dockerhub_tag: optional(TAG),
        })
    }

    /// Returns the text for the agent, as the official scaffolds give it.
    pub(super) fn instruction(&self) -> String {
        let Self { problem_statement, requirements, interface, .. } = self;
        format!(
            "{problem_statement}\n\nRequirements:\n{requirements}\n\nNew interfaces introduced:\n{interface}"
        )
    }
}

/// Returns the last line of the commands that set up a repository. The lines before it would undo the patch.
fn last_line(commands: &str) -> &str {
    python::strip(commands).rsplit('\n').next().unwrap_or_default()
}

fn commit(row: &Row) -> Result<String, RowError> {
    let commit = text(row, BASE_COMMIT)?.trim();
    let is_commit = (7..=64).contains(&commit.len()) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    match is_commit {
        true => Ok(commit.to_owned()),
        false => Err(RowError::column(BASE_COMMIT, "is no commit of 7 to 64 hexadecimal digits")),
    }
}
