//! Replies that are a JSON object.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::{ParsedCommand, ParsedReply, Warnings, newline_warning, order_warning, repair};
use crate::python::{Value, parse_json, repr, strip};

/// Duration of a command without a usable one, in seconds.
const DURATION_DEFAULT_S: f64 = 1.0;
/// Length from which a message shows only the beginning of the reply, and length of this beginning, in characters.
const SHOWN_WHOLE_CHARS: usize = 200;
const SHOWN_BEGINNING_CHARS: usize = 100;
/// Required fields, in the order that is asked for.
const FIELDS: [&str; 3] = ["analysis", "plan", "commands"];

/// Parses a reply, and repairs it if that removes its error.
pub(super) fn parse(reply: &str) -> ParsedReply {
    let parsed = parse_once(reply);
    if parsed.error.is_empty() {
        return parsed;
    }
    for repair in repair::REPAIRS {
        let Some(repaired) = (repair.apply)(reply, &parsed.error) else { continue };
        let mut again = parse_once(&repaired);
        if again.error.is_empty() {
            let note = format!("- AUTO-CORRECTED: {} - please fix this in future responses", repair.name);
            again.warning = match again.warning.is_empty() {
                true => note,
                false => format!("{note}\n{}", again.warning),
            };
            return again;
        }
    }
    parsed
}

fn parse_once(reply: &str) -> ParsedReply {
    let mut warnings = Warnings::default();
    let Some((before, object, after)) = find_object(reply) else {
        warnings.add("No valid JSON object found");
        return warnings.into_error("No valid JSON found in response");
    };
    if !strip(before).is_empty() {
        warnings.add("Extra text detected before JSON object");
    }
    if !strip(after).is_empty() {
        warnings.add("Extra text detected after JSON object");
    }
    let value = match parse_json(object) {
        Ok(value) => value,
        Err(error) => {
            let shown = match object.char_indices().nth(SHOWN_WHOLE_CHARS - 1) {
                None => format!("Content: {}", repr(object)),
                Some(_) => {
                    let beginning: String = object.chars().take(SHOWN_BEGINNING_CHARS).collect();
                    format!("Content preview: {}...", repr(&beginning))
                }
            };
            return warnings.into_error(format!("Invalid JSON: {} | {shown}", error.describe(object)));
        }
    };
    read(&value, object, warnings)
}

/// Splits a reply at its first object with balanced braces. Quotes and backslashes count from the first character of
/// the reply, also in prose; a closing brace without an opening one counts, too.
fn find_object(reply: &str) -> Option<(&str, &str, &str)> {
    let (mut depth, mut is_text, mut is_escaped) = (0_i64, false, false);
    let mut start = None;
    for (at, byte) in reply.bytes().enumerate() {
        if is_escaped {
            // Bytes inside a character are none of those below.
            is_escaped = false;
            continue;
        }
        match byte {
            b'\\' => is_escaped = true,
            b'"' => is_text = !is_text,
            b'{' if !is_text => {
                start = if depth == 0 { Some(at) } else { start };
                depth += 1;
            }
            b'}' if !is_text => {
                depth -= 1;
                if let Some(start) = start.filter(|_| depth == 0) {
                    return Some((reply.get(..start)?, reply.get(start..=at)?, reply.get(at + 1..)?));
                }
            }
            _ => {}
        }
    }
    None
}

/// Reads the fields of an object.
fn read(value: &Value, object: &str, mut warnings: Warnings) -> ParsedReply {
    let missing: Vec<_> = FIELDS.into_iter().filter(|field| value.get(field).is_none()).collect();
    let (Some(analysis), Some(plan), Some(commands)) =
        (value.get("analysis"), value.get("plan"), value.get("commands"))
    else {
        return warnings.into_error(format!("Missing required fields: {}", missing.join(", ")));
    };
    for (field, value) in [("analysis", analysis), ("plan", plan)] {
        if !matches!(value, Value::Text(_)) {
            warnings.add(format!("Field '{field}' should be a string"));
        }
    }
    let Value::List(commands) = commands else {
        return warnings.into_error("Field 'commands' must be an array");
    };
    if let Some(warning) = check_order(object) {
        warnings.add(warning);
    }
    let is_complete = match value.get("task_complete") {
        None => false,
        Some(Value::Text(text)) => matches!(text.to_lowercase().as_str(), "true" | "1" | "yes"),
        Some(value) => {
            if !matches!(value, Value::Null | Value::Bool(_)) {
                warnings.add("Field 'task_complete' should be a boolean or string");
            }
            value.is_truthy()
        }
    };
    let (commands, error) = match read_commands(commands, &mut warnings) {
        Ok(commands) => (commands, String::new()),
        // Commands don't matter any more if the task is complete.
        Err(problem) if is_complete => {
            warnings.add(problem);
            (Vec::new(), String::new())
        }
        Err(problem) => (Vec::new(), problem),
    };
    let (analysis, plan) = (analysis.shown(), plan.shown());
    ParsedReply { commands, is_complete, error, warning: warnings.into_lines(), analysis, plan }
}

/// Compares the first places of the fields' names in the text.
fn check_order(object: &str) -> Option<String> {
    static NAMES: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r#""(analysis|plan|commands)"[\s\x1c-\x1f]*:"#).ok());
    let mut first = [None; FIELDS.len()];
    for found in NAMES.as_ref()?.captures_iter(object) {
        let Some(name) = found.get(1) else { continue };
        for (field, place) in FIELDS.iter().zip(&mut first) {
            if *field == name.as_str() && place.is_none() {
                *place = Some(name.start());
            }
        }
        if first.iter().all(Option::is_some) {
            break;
        }
    }
    let found = FIELDS.into_iter().zip(first).filter_map(|(field, place)| Some((field, place?)));
    order_warning("Fields", found.collect())
}

fn read_commands(commands: &[Value], warnings: &mut Warnings) -> Result<Vec<ParsedCommand>, String> {
    let mut read = Vec::with_capacity(commands.len());
    for (index, command) in commands.iter().enumerate() {
        let number = index + 1;
        let Value::Object(members) = command else {
            return Err(format!("Command {number} must be an object"));
        };
        let keystrokes = match command.get("keystrokes") {
            Some(Value::Text(keystrokes)) => keystrokes.clone(),
            Some(_) => return Err(format!("Command {number} 'keystrokes' must be a string")),
            None => return Err(format!("Command {number} missing required 'keystrokes' field")),
        };
        let duration_s = match command.get("duration").map(Value::as_number) {
            Some(Some(duration)) => duration,
            Some(None) => {
                warnings.add(format!("Command {number}: Invalid duration value, using default 1.0"));
                DURATION_DEFAULT_S
            }
            None => {
                warnings.add(format!("Command {number}: Missing duration field, using default 1.0"));
                DURATION_DEFAULT_S
            }
        };
        let mut seen = BTreeSet::from(["keystrokes", "duration"]);
        let keys = members.iter().map(|(key, _)| key.as_str());
        let unknown: Vec<_> = keys.filter(|key| seen.insert(key)).collect();
        if !unknown.is_empty() {
            warnings.add(format!("Command {number}: Unknown fields: {}", unknown.join(", ")));
        }
        if number < commands.len() && !keystrokes.is_empty() && !keystrokes.ends_with('\n') {
            warnings.add(newline_warning(number));
        }
        read.push(ParsedCommand { keystrokes, duration_s });
    }
    Ok(read)
}
