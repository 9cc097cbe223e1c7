//! Messages of `bash` to the model. All of them are our own.

use super::{BashSettings, FormatError};
use crate::output::limit_output;
use crate::step::CommandResult;

/// First message, before the task: `{folder}`, `{seconds}`.
const TASK: &str = include_str!("task.txt");
/// Sentence of the first message about processes that a command leaves, and the one in its place if they end with it.
const BACKGROUND: &str = "Start servers and long work in the background, with output in a file.";
const NO_BACKGROUND: &str = "What it has started is killed when it ends.";
/// Message about a reply without an action: `{error}`.
const FORMAT_ERROR: &str = "Nothing was run: {error}. Send a reply with exactly one `bash` or `done` block.";
/// Message about a reply that was cut.
const OUTPUT_CUT: &str = "Nothing was run: your reply reached the maximum length and was cut. Send a shorter one; write long \
                          files in several turns.";

/// Returns the texts around a task and about replies without an action, in a fixed order.
pub fn prompt_parts() -> [&'static str; 3] {
    [TASK, FORMAT_ERROR, OUTPUT_CUT]
}

/// Returns the same texts for an agent whose commands leave no processes.
pub fn workspace_prompt_parts() -> [String; 3] {
    [without_background(TASK), FORMAT_ERROR.to_owned(), OUTPUT_CUT.to_owned()]
}

/// Returns the first message of an agent in a workspace.
pub fn workspace_first_message(settings: &BashSettings, instruction: &str) -> String {
    task(&BashSettings { keeps_processes: false, ..settings.clone() }, instruction)
}

fn without_background(text: &str) -> String {
    text.replace(BACKGROUND, NO_BACKGROUND)
}

/// Returns the first message.
pub(super) fn task(settings: &BashSettings, instruction: &str) -> String {
    let seconds = (settings.command_time_ms / 1_000).to_string();
    let text = if settings.keeps_processes { TASK.to_owned() } else { without_background(TASK) };
    let introduction = text.replace("{seconds}", &seconds).replace("{folder}", &settings.folder);
    format!("{introduction}{instruction}\n")
}

/// Returns the message about a reply without an action.
pub(super) fn format_error(error: FormatError) -> String {
    FORMAT_ERROR.replace("{error}", &error.to_string())
}

/// Returns the message about a reply that was cut.
pub(super) fn output_cut() -> String {
    OUTPUT_CUT.to_owned()
}

/// Returns the message with the result of a command.
pub(super) fn result(settings: &BashSettings, result: &CommandResult) -> String {
    let seconds = settings.command_time_ms / 1_000;
    let outcome = match (result.is_timed_out, result.exit_code) {
        (true, _) => format!("Killed after {seconds} seconds."),
        (false, Some(code)) => format!("Exit code: {code}"),
        (false, None) => "Killed.".to_owned(),
    };
    let output = limit_output(&result.output, settings.output_bytes_max);
    let omitted = match result.omitted_bytes {
        0 => String::new(),
        bytes => format!("\n[{bytes} bytes in the middle of the output were not fetched]"),
    };
    match output.is_empty() {
        true => format!("{outcome}\nNo output."),
        false => format!("{outcome}\nOutput:\n{output}{omitted}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_message_says_what_becomes_of_processes() {
        let mut settings = BashSettings::new("/app");
        let (kept, ended) = (task(&settings, "Do it."), BACKGROUND);
        settings.keeps_processes = false;
        let killed = task(&settings, "Do it.");
        assert_eq!(kept.matches(ended).count(), 1);
        assert!(!killed.contains(ended) && killed.contains(NO_BACKGROUND));
        assert_ne!(workspace_prompt_parts()[0], prompt_parts()[0]);
    }
}
