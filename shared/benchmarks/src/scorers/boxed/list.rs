//! Parses the top level of a box's content: one expression, or a list of them.

use super::normalize::strip;
use super::primitive::parse_primitive;
use super::{Crash, Value, Warning};
use crate::python;

/// Maximum nesting depth of lists.
const DEPTH_MAX: u32 = 50;

/// Entries of a list; `None` for entries that can't be parsed.
pub(super) type Entries = Vec<Option<Value>>;

/// Parses a text in parentheses. Returns `Ok(None)` if it can't be split into entries.
pub(super) fn parse_list(text: &str, depth: u32) -> Result<Option<(Entries, Warning)>, Crash> {
    if !text.starts_with('(') {
        return Err(Crash);
    }
    let text = python::strip(text).trim_matches(',');
    let text = if encloses(text) { inside(text) } else { text };
    let mut rest = strip(text).to_owned();
    // These are the two characters `
    // `, not a line feed. They also split commands such as `
    // eq`.
    let delimiter = if !rest.contains("\\n") && rest.contains(',') { "," } else { "\\n" };

    let mut entries = Vec::new();
    let mut warning = Warning::None;
    while !rest.is_empty() {
        let pieces: Vec<&str> = rest.split(delimiter).collect();
        let may_be_list = depth <= DEPTH_MAX && strip(&rest).starts_with('(');
        let nested = if may_be_list { take(&pieces, delimiter, is_list) } else { None };
        let (used, entry) = if let Some((used, piece)) = nested {
            let Some((nested, nested_warning)) = parse_list(&piece, depth + 1)? else {
                // The official parser keeps Python's `None` as the entry.
                warning = warning.max(Warning::Major);
                entries.push(None);
                rest = remainder(&pieces, delimiter, used);
                continue;
            };
            warning = warning.max(nested_warning);
            (used, Some(Value::List(nested)))
        } else if let Some((used, piece)) = take(&pieces, delimiter, is_primitive) {
            let (entry, entry_warning) = parse_primitive(&piece)?;
            warning = warning.max(entry_warning);
            (used, entry)
        } else {
            return if depth > DEPTH_MAX { Err(Crash) } else { Ok(None) };
        };
        entries.push(entry);
        let shorter = remainder(&pieces, delimiter, used);
        if shorter == rest {
            return if depth > DEPTH_MAX { Err(Crash) } else { Ok(None) };
        }
        rest = shorter;
    }
    Ok(Some((entries, warning)))
}

fn remainder(pieces: &[&str], delimiter: &str, used: usize) -> String {
    strip(&pieces.get(used..).unwrap_or_default().join(delimiter)).to_owned()
}

/// Returns the shortest complete run of pieces and its number of pieces.
fn take(pieces: &[&str], delimiter: &str, is_complete: fn(&str) -> bool) -> Option<(usize, String)> {
    (1..=pieces.len()).find_map(|used| {
        let joined = pieces.get(..used).unwrap_or_default().join(delimiter);
        let piece = strip(&joined);
        is_complete(piece).then(|| (used, piece.to_owned()))
    })
}

fn is_balanced(text: &str, open: u8, close: u8) -> bool {
    let count = |wanted| text.bytes().filter(|&byte| byte == wanted).count();
    count(open) == count(close)
}

fn is_list(text: &str) -> bool {
    is_balanced(text, b'(', b')') && python::strip(text).trim_matches(',').ends_with(')')
}

fn is_primitive(text: &str) -> bool {
    is_balanced(text, b'{', b'}') && is_balanced(text, b'(', b')')
}

/// Returns true if the parenthesis at the start stays open until the last character.
fn encloses(text: &str) -> bool {
    let mut before_last = text.chars();
    before_last.next_back();
    let mut depth = 0_i64;
    before_last.all(|c| {
        depth += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        depth != 0
    })
}

fn inside(text: &str) -> &str {
    let mut characters = text.chars();
    characters.next();
    characters.next_back();
    characters.as_str()
}
