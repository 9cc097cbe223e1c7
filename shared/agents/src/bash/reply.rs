//! Replies of the model: prose with one fenced block.

/// Action of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Run a script.
    Run(String),
    /// End the episode.
    Finish,
}

/// Reason for which a reply has no action. The model reads the sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// No block.
    #[error("the reply has neither a `bash` nor a `done` block")]
    Missing,
    /// Several blocks.
    #[error("the reply has {0} blocks, but a turn has one action")]
    Several(usize),
    /// A block without end.
    #[error("the last block isn't closed by a line of backticks")]
    Unclosed,
    /// A block without a command.
    #[error("the `bash` block is empty")]
    Empty,
}

/// Reads the action of a reply. Blocks of other languages are prose.
///
/// A block begins with a line of three or more backticks and the word `bash` or `done`, and ends with a line of at
/// least as many backticks and nothing else.
///
/// # Errors
/// If the reply has no such block, several, or one without end or command.
pub fn parse_action(reply: &str) -> Result<Action, FormatError> {
    let (mut found, mut count) = (None, 0);
    let mut lines = reply.split_inclusive('\n');
    while let Some(line) = lines.next() {
        let Some((ticks, word)) = opening(line) else { continue };
        let mut text = String::new();
        let is_closed = lines.by_ref().any(|line| {
            let is_end = is_closing(line, ticks);
            text.push_str(if is_end { "" } else { line });
            is_end
        });
        let action = match word {
            "bash" => Action::Run(text),
            "done" => Action::Finish,
            _ => continue,
        };
        if !is_closed {
            return Err(FormatError::Unclosed);
        }
        count += 1;
        found = Some(action);
    }
    match (count, found) {
        (1, Some(Action::Run(script))) if script.trim().is_empty() => Err(FormatError::Empty),
        (1, Some(action)) => Ok(action),
        (0, _) | (_, None) => Err(FormatError::Missing),
        (count, _) => Err(FormatError::Several(count)),
    }
}

/// Returns the number of backticks and the word of a line that begins a block.
fn opening(line: &str) -> Option<(usize, &str)> {
    let line = line.trim();
    let word = line.trim_start_matches('`');
    let ticks = line.len() - word.len();
    // A backtick after the word makes it a piece of code within a line.
    (ticks >= 3 && !word.contains('`')).then(|| (ticks, word.trim()))
}

fn is_closing(line: &str, ticks: usize) -> bool {
    let line = line.trim();
    line.len() >= ticks && line.bytes().all(|byte| byte == b'`')
}
