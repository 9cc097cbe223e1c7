//! Instructions about visible formatting: placeholders, lists, highlights, sections, titles.

use std::sync::LazyLock;

use super::super::text::Pattern;
use super::super::{Check, CheckError};
use super::parameters::{Parameters, amount};
use super::{fn_check, json};
use crate::python;

pub(super) fn check(
    family: &str,
    name: &str,
    parameters: &Parameters<'_>,
) -> Option<Result<Box<dyn Check>, CheckError>> {
    Some(match (family, name) {
        ("detectable_content", "number_placeholders") => {
            at_least(parameters, "num_placeholders", placeholders)
        }
        ("detectable_content", "postscript") => postscript(parameters),
        ("detectable_format", "number_bullet_lists") => parameters
            .number("num_bullets")
            .map(|number| fn_check(move |text| amount(bullets(text)) == number)),
        ("detectable_format", "number_highlighted_sections") => {
            at_least(parameters, "num_highlights", highlights)
        }
        ("detectable_format", "multiple_sections") => sections(parameters),
        ("detectable_format", "constrained_response") => Ok(fn_check(is_option)),
        ("detectable_format", "json_format") => Ok(fn_check(|text| json::is_json(strip_fence(text)))),
        ("detectable_format", "title") => Ok(fn_check(has_title)),
        _ => return None,
    })
}

fn at_least(
    parameters: &Parameters<'_>,
    name: &'static str,
    count: fn(&str) -> usize,
) -> Result<Box<dyn Check>, CheckError> {
    parameters.number(name).map(|number| fn_check(move |text| amount(count(text)) >= number))
}

/// Compiles a pattern of this module once.
macro_rules! pattern {
    ($pattern:literal) => {{
        static PATTERN: LazyLock<Option<Pattern>> = LazyLock::new(|| Pattern::new($pattern).ok());
        PATTERN.as_ref()
    }};
}

fn count(pattern: Option<&Pattern>, text: &str) -> usize {
    pattern.map_or(0, |pattern| pattern.count(text))
}

fn placeholders(text: &str) -> usize {
    count(pattern!(r"\[.*?\]"), text)
}

/// Counts lines that start with an asterisk or a hyphen. The character after the asterisk may be the line end.
fn bullets(text: &str) -> usize {
    count(pattern!(r"(?m)^\s*\*[^\*].*$"), text) + count(pattern!(r"(?m)^\s*-.*$"), text)
}

/// Counts texts between single asterisks, plus texts between double asterisks.
fn highlights(text: &str) -> usize {
    let filled = |pattern: Option<&Pattern>, inner: fn(&str) -> &str| {
        let is_filled = |found: &&str| !python::strip(inner(found)).is_empty();
        pattern.map_or(0, |pattern| pattern.find_all(text).filter(is_filled).count())
    };
    filled(pattern!(r"\*[^\n\*]*\*"), |found| found.trim_matches('*'))
        + filled(pattern!(r"\*\*[^\n\*]*\*\*"), |found| found.trim_matches('*'))
}

fn is_option(text: &str) -> bool {
    ["yes", "no", "maybe"].iter().any(|option| {
        let starts = text.match_indices("My answer is ");
        starts
            .filter_map(|(at, start)| text.get(at + start.len()..))
            .any(|rest| rest.strip_prefix(option).is_some_and(|rest| rest.starts_with('.')))
    })
}

fn has_title(text: &str) -> bool {
    let is_filled =
        |title: &str| !python::strip(title.trim_start_matches('<').trim_end_matches('>')).is_empty();
    pattern!(r"<<[^\n]+>>").is_some_and(|pattern| pattern.find_all(text).any(is_filled))
}

/// Returns the text inside a fenced block. Like the official program, removes parts of fences one by one, even if they
/// don't match.
fn strip_fence(text: &str) -> &str {
    let mut text = python::strip(text);
    for fence in ["```json", "```Json", "```JSON", "```"] {
        text = text.strip_prefix(fence).unwrap_or(text);
    }
    python::strip(text.strip_suffix("```").unwrap_or(text))
}

/// Returns true if a parameter used as a pattern contains no special characters.
fn is_literal(pattern: &str) -> bool {
    !pattern.is_empty()
        && !pattern.contains(['\\', '.', '^', '$', '*', '+', '?', '{', '}', '[', ']', '|', '(', ')'])
}

fn postscript(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, CheckError> {
    let found = |pattern: Option<&Pattern>, text: &str| pattern.is_some_and(|pattern| pattern.is_found(text));
    Ok(match parameters.trimmed("postscript_marker")? {
        "P.P.S" => fn_check(move |text| found(pattern!(r"[pP]\.\s?[pP]\.\s?[sS]"), text)),
        "P.S." => fn_check(move |text| found(pattern!(r"[pP]\.\s?[sS]\."), text)),
        marker => {
            let marker = python::lower(marker);
            if is_literal(&marker) {
                return Ok(fn_check(move |text| python::lower(text).contains(&marker)));
            }
            let pattern = Pattern::new(&format!(r"(?m)\s*{marker}.*$"));
            let pattern = parameters.pattern("postscript_marker", pattern)?;
            fn_check(move |text| pattern.is_found(&python::lower(text)))
        }
    })
}

fn sections(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, CheckError> {
    let splitter = parameters.trimmed("section_spliter")?;
    let number = parameters.number("num_sections")?;
    if is_literal(splitter) {
        let splitter = splitter.to_owned();
        return Ok(fn_check(move |text| amount(count_numbered(text, &splitter)) >= number));
    }
    let pattern = parameters.pattern("section_spliter", Pattern::new(&format!(r"\s?{splitter}\s?\d+\s?")))?;
    Ok(fn_check(move |text| amount(pattern.count(text)) >= number))
}

/// Counts how often a word is followed by a number, with at most one whitespace character between them.
fn count_numbered(text: &str, word: &str) -> usize {
    let mut count = 0;
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(word) {
        let mut blank = after.chars();
        let number = if blank.next().is_some_and(python::is_space) { blank.as_str() } else { after };
        let after_number = number.trim_start_matches(|c| python::digit_value(c).is_some());
        if after_number.len() < number.len() {
            count += 1;
            rest = after_number;
        } else {
            // Occurrences of the word may overlap.
            let at = rest.len() - after.len() - word.len();
            let step = word.chars().next().map_or(1, char::len_utf8);
            rest = rest.get(at + step..).unwrap_or_default();
        }
    }
    count
}
