//! Output since the last look at the terminal.

mod fingerprint;

use serde::{Deserialize, Serialize};

use self::fingerprint::Fingerprint;
use crate::output::end;
use crate::python::strip;

/// Maximum length of a captured history in bytes. Of a longer one the end counts.
const HISTORY_BYTES_MAX: usize = 32 << 20;

/// Trace of the last captured history. Its size doesn't depend on the history's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureMark {
    /// Identifies the history without blanks at both ends.
    text: Fingerprint,
    /// Place of its last line break in characters; `None` if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_line: Option<usize>,
}

impl CaptureMark {
    fn new(history: &str) -> Self {
        let text = strip(history);
        let last_line = text.rfind('\n').and_then(|at| text.get(..at)).map(|before| before.chars().count());
        Self { text: Fingerprint::new(text), last_line }
    }

    /// Returns what the history contains after the one of the mark, from its last line on; `None` if the history
    /// doesn't contain it, or nothing else than blanks follows.
    ///
    /// The place is counted in the earlier history without its leading blanks, but applied to the whole new one, as the
    /// official program does. Leading blanks shift the cut into an earlier line.
    fn new_output<'a>(&self, history: &'a str) -> Option<&'a str> {
        let found = self.text.find(history)?;
        let start = match self.last_line {
            Some(chars) => history.char_indices().nth(chars).map_or(history.len(), |(at, _)| at),
            None => found,
        };
        history.get(start..).filter(|output| !strip(output).is_empty())
    }
}

/// Returns what the model is shown of the terminal, and the mark for the next time.
///
/// This is the new output if the history has grown, otherwise the visible screen, each with a heading. `history` is the
/// pane with everything that scrolled away, `screen` its visible part.
pub fn incremental_output(
    before: Option<&CaptureMark>,
    history: &str,
    screen: &str,
) -> (String, CaptureMark) {
    let history = end(history, HISTORY_BYTES_MAX);
    let shown = match before.and_then(|mark| mark.new_output(history)) {
        Some(output) => format!("New Terminal Output:\n{output}"),
        None => format!("Current Terminal Screen:\n{screen}"),
    };
    (shown, CaptureMark::new(history))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_small() {
        let (_, mark) = incremental_output(None, &"line\n".repeat(100_000), "");
        assert!(serde_json::to_string(&mark).unwrap().len() < 200);
    }
}
