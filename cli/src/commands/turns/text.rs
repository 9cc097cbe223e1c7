//! Steps of a trajectory (ATIF) as text for readers.

use serde_json::Value;

use crate::format;
use crate::page::Page;

/// Maximum number of lines of a text where all turns are printed.
const LINES_MAX: usize = 20;

/// Writes the turns of a trajectory.
#[derive(Debug)]
pub(super) struct Writer {
    /// Turns so far: steps of the agent.
    turns: u32,
    /// Turn that is wanted whole; `None` for all of them, with long texts cut.
    only: Option<u32>,
}

impl Writer {
    /// Creates a writer of one turn, or of all of them.
    pub(super) const fn new(only: Option<u32>) -> Self {
        Self { turns: 0, only }
    }

    /// Returns a step as a page; `None` if it isn't wanted.
    pub(super) fn page(&mut self, step: &Value) -> Option<Page> {
        let is_turn = step["source"] == "agent";
        // Messages to the agent belong to the turn that follows them.
        let turn = self.turns + 1;
        if is_turn {
            self.turns = turn;
        }
        if self.only.is_some_and(|only| only != turn) {
            return None;
        }
        let mut page = Page::new(0, 0);
        let message = step["message"].as_str().unwrap_or_default();
        if !is_turn {
            page.heading(if turn == 1 { "Task".to_owned() } else { format!("Before turn {turn}") });
            self.verbatim(&mut page, message, turn);
            page.blank();
            return Some(page);
        }
        page.heading(format!("Turn {turn}{}", figures(step)));
        if let Some(reasoning) = step["reasoning_content"].as_str().filter(|text| !text.trim().is_empty()) {
            page.paragraph("Reasoning:");
            self.verbatim(&mut page, reasoning, turn);
        }
        self.verbatim(&mut page, message, turn);
        let commands: Vec<String> =
            step["tool_calls"].as_array().into_iter().flatten().map(command).collect();
        for command in commands {
            self.verbatim(&mut page, &command, turn);
        }
        for result in step["observation"]["results"].as_array().into_iter().flatten() {
            let Some(seen) = result["content"].as_str().filter(|text| !text.trim().is_empty()) else {
                continue;
            };
            let quoted: Vec<String> = seen.trim_end().lines().map(|line| format!("| {line}")).collect();
            self.verbatim(&mut page, &quoted.join("\n"), turn);
        }
        page.blank();
        Some(page)
    }

    /// Returns the number of turns that were read.
    pub(super) const fn turns(&self) -> u32 {
        self.turns
    }

    fn verbatim(&self, page: &mut Page, text: &str, turn: u32) {
        let text = text.trim_end();
        if text.is_empty() {
            return;
        }
        let lines: Vec<&str> = text.lines().collect();
        if self.only.is_some() || lines.len() <= LINES_MAX {
            page.verbatim(text);
            return;
        }
        let omitted = lines.len() - LINES_MAX;
        page.verbatim(lines[..LINES_MAX / 2].join("\n"));
        page.paragraph(format!("[{}; --turn {turn} shows all]", format::plural(omitted as u64, "more line")));
        page.verbatim(lines[lines.len() - LINES_MAX / 2..].join("\n"));
    }
}

/// Returns time of day, tokens, cost and time of a turn, as the rest of its heading.
fn figures(step: &Value) -> String {
    let metrics = &step["metrics"];
    let number = |name: &str| metrics[name].as_u64().map(format::count);
    // A time of day is the same wherever it is read: UTC.
    let clock = step["timestamp"].as_str().and_then(|at| at.get(11..19)).map(|time| format!("{time} UTC"));
    let tokens = number("prompt_tokens").zip(number("completion_tokens"));
    let parts = [
        clock,
        tokens.map(|(input, output)| format!("{input} tokens in, {output} out")),
        number("cached_tokens").map(|cached| format!("{cached} cached")),
        metrics["cost_usd"].as_f64().map(format::dollars),
        metrics["extra"]["latency_ms"].as_f64().map(format::milliseconds),
        (step["llm_call_count"] == 0).then(|| "the model couldn't be asked".to_owned()),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) }
}

/// Returns an action of the agent as a line that begins with `$`.
fn command(call: &Value) -> String {
    let arguments = &call["arguments"];
    let text = match call["function_name"].as_str().unwrap_or_default() {
        "bash_command" => keys(arguments["keystrokes"].as_str().unwrap_or_default()),
        "bash" => arguments["command"].as_str().unwrap_or_default().to_owned(),
        "mark_task_complete" | "finish" => return "The agent says that the task is complete.".to_owned(),
        other => format!("{other} {arguments}"),
    };
    format!("$ {text}")
}

/// Makes the Enter key visible, other than at the end.
fn keys(text: &str) -> String {
    if text.is_empty() {
        return "(no keys)".to_owned();
    }
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.strip_suffix('\n').map_or_else(|| format!("{text} (without Enter)"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::layout::Layout;

    fn text(page: &Page) -> String {
        console::strip_ansi_codes(&page.render(Layout::FILE)).into_owned()
    }

    fn turn(message: &str, seen: &str) -> Value {
        json!({
            "source": "agent", "timestamp": "2026-01-02T03:04:05Z", "message": message,
            "tool_calls": [
                { "function_name": "bash_command", "arguments": { "keystrokes": "ls\n" } },
                { "function_name": "bash_command", "arguments": { "keystrokes": "C-c" } },
                { "function_name": "mark_task_complete", "arguments": {} },
            ],
            "observation": { "results": [{ "content": seen }] },
            "metrics": { "prompt_tokens": 1200, "completion_tokens": 30, "cached_tokens": 1000, "cost_usd": 0.0053,
                "extra": { "latency_ms": 2300 } },
        })
    }

    #[test]
    fn a_turn_is_what_was_said_done_and_seen() {
        let mut writer = Writer::new(None);
        let task = writer.page(&json!({ "source": "user", "message": "Count the lines." })).unwrap();
        assert_eq!(text(&task), "Task\nCount the lines.\n");
        let page = writer.page(&turn("I look.", "a\nb\n")).unwrap();
        let expected = "Turn 1: 03:04:05 UTC, 1,200 tokens in, 30 out, 1,000 cached, $0.0053, 2.3 s\nI look.\n$ ls\n\
                        $ C-c (without Enter)\nThe agent says that the task is complete.\n| a\n| b\n";
        assert_eq!(text(&page), expected);
    }

    #[test]
    fn long_texts_are_whole_in_the_wanted_turn_only() {
        let long = "line\n".repeat(50);
        let cut = text(&Writer::new(None).page(&turn(&long, "")).unwrap());
        assert!(cut.contains("[30 more lines; --turn 1 shows all]"), "{cut}");
        let mut writer = Writer::new(Some(2));
        assert!(writer.page(&json!({ "source": "user", "message": "Count." })).is_none());
        assert!(writer.page(&turn("first", "")).is_none());
        let whole = text(&writer.page(&turn(&long, "")).unwrap());
        assert!(whole.matches("line\n").count() >= 50 && writer.turns() == 2, "{whole}");
    }

    #[test]
    fn steps_of_unknown_form_do_no_harm() {
        for step in [
            json!(null),
            json!({ "source": "agent", "tool_calls": [null, 3], "observation": [], "timestamp": "é" }),
        ] {
            assert!(Writer::new(None).page(&step).is_some(), "{step}");
        }
    }
}
