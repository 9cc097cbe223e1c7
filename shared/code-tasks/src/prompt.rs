//! The request to a model: instructions, forms of answers, and files.

use std::fmt::Write as _;

use crate::answer::Form;
use crate::task::CodeTask;
use crate::workspace::WorkspaceFile;

/// Forms of answers that a request offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OfferedForms {
    /// The model chooses one.
    #[default]
    Any,
    /// This one only. Answers in another form are accepted all the same.
    Only(Form),
}

/// First part of a request, before the instructions.
pub const OPENING: &str = "You get a programming task and all files of a project. Change the project so that it does what the task asks for. \
Hidden tests check the result, so keep to names, formats and interfaces exactly as they are given. Nothing can be asked back, and nothing is run before your answer counts.";
/// Beginning of the part about the answer.
const FORM_OPENING: &str = "Answer with the change only, in one form";
/// Rules for all forms.
const FORM_RULES: &str = "Paths are relative to the project, as shown below. Change only what the task needs; files that you don't mention stay as they are.";
const DIFF: &str = "a unified diff in a block fenced by ```diff and ```. Each file has its lines `--- a/PATH` and `+++ b/PATH` (`/dev/null` instead of a file that is new or removed), \
each hunk begins with `@@ -LINE,COUNT +LINE,COUNT @@`, and context and removed lines are exactly those of the file.";
const BLOCKS: &str = "search-and-replace blocks. Each begins with a line that has the path only, then the line `<<<<<<< SEARCH`, lines that occur exactly once in the file, the line `=======`, \
the lines that replace them, and the line `>>>>>>> REPLACE`. A block without lines to search makes a new file.";
const FILES: &str = "whole files. Each begins with a line `File: PATH`, then a fenced block with the file's whole new content.";

/// Returns the texts that describe the forms of answers.
pub fn form_texts(forms: OfferedForms) -> String {
    let text = |form| match form {
        Form::Diff => DIFF,
        Form::Blocks => BLOCKS,
        Form::Files => FILES,
    };
    match forms {
        OfferedForms::Only(form) => format!("{FORM_OPENING}: {} {FORM_RULES}", text(form)),
        OfferedForms::Any => {
            let mut all = format!("{FORM_OPENING} of these:\n\n");
            for form in [Form::Diff, Form::Blocks, Form::Files] {
                let _ = writeln!(all, "- {}", text(form));
            }
            format!("{all}\n{FORM_RULES}")
        }
    }
}

/// Returns the request of a task. With `includes_tests`, the model sees the hidden tests, too.
pub fn prompt(task: &CodeTask, forms: OfferedForms, includes_tests: bool) -> String {
    let mut text = format!(
        "{OPENING}\n\n# Task\n\n{}\n\n# Answer\n\n{}\n\n# Files\n",
        task.instructions,
        form_texts(forms)
    );
    for (path, file) in task.workspace.files() {
        add_file(&mut text, path, file);
    }
    if includes_tests {
        text.push_str("\n# Tests\n\nThese files are restored before the tests run, so that changes of them have no effect.\n");
        for (path, file) in &task.tests {
            add_file(&mut text, &format!("tests/{path}"), file);
        }
        for (path, file) in &task.overlay {
            add_file(&mut text, path, file);
        }
    }
    text
}

fn add_file(text: &mut String, path: &str, file: &WorkspaceFile) {
    let Ok(content) = std::str::from_utf8(&file.bytes) else {
        let _ = write!(text, "\nFile: {path} (binary, {} bytes)\n", file.bytes.len());
        return;
    };
    let fence = "`".repeat(longest_run(content).max(2) + 1);
    let end = if content.is_empty() || content.ends_with('\n') { "" } else { "\n" };
    let _ = write!(text, "\nFile: {path}\n{fence}\n{content}{end}{fence}\n");
}

/// Returns the length of the longest run of backticks at the start of a line.
fn longest_run(content: &str) -> usize {
    let run = |line: &str| line.trim_start().chars().take_while(|c| *c == '`').count();
    content.lines().map(run).max().unwrap_or_default()
}
