//! Paths that answers name.

use bench_terminal_tasks::TaskPath;

use super::ReadError;

/// Maximum length of a path that a message shows, in characters.
const SHOWN_CHARS_MAX: usize = 120;
/// Folder that prompts never show, but that models may put in front of a path.
const WORKSPACE: &str = "workspace/";

/// Returns a path as the workspace has it: without `./` and `workspace/` in front.
pub(super) fn read(text: &str) -> Result<String, ReadError> {
    let plain = text.trim().trim_matches('`');
    let plain = plain.strip_prefix("./").unwrap_or(plain);
    let plain = plain.strip_prefix(WORKSPACE).unwrap_or(plain);
    TaskPath::new(plain).map(|path| path.as_str().to_owned()).map_err(|problem| ReadError::Path {
        path: text.trim().chars().take(SHOWN_CHARS_MAX).collect(),
        problem,
    })
}
