//! The top level of a boxed content: one expression, or a list of them.

use super::normalise::strip;
use super::primitive::parse_primitive;
use super::{Crash, Value, Warning};
use crate::python;

/// Nesting from which a list is no longer taken apart.
const DEPTH_MAX: u32 = 50;

/// Entries of a list; `None` stands for one that could not be read.
pub(super) type Entries = Vec<Option<Value>>;

/// Parses a text in parentheses. `Ok(None)` when it cannot be taken apart.
pub(super) fn parse_list(text: &str, depth: u32) -> Result<Option<(Entries, Warning)>, Crash> {
    if !text.starts_with('(') {
        return Err(Crash);
    }
    let text = python::strip(text).trim_matches(',');
    let text = if encloses(text) { inside(text) } else { text };
    let mut rest = strip(text).to_owned();
    // These are the two characters `\n`, not a line feed; commands such as `\neq` are cut by it too.
    let delimiter = if !rest.contains("\\n") && rest.contains(',') { "," } else { "\\n" };

    let mut entries = Vec::new();
    let mut warning = Warning::None;
    while !rest.is_empty() {
        let pieces: Vec<&str> = rest.split(delimiter).collect();
        let may_be_list = depth <= DEPTH_MAX && strip(&rest).starts_with('(');
        let nested = if may_be_list { take(&pieces, delimiter, is_list) } else { None };
        let (used, entry) = if let Some((used, piece)) = nested {
            let Some((nested, nested_warning)) = parse_list(&piece, depth + 1)? else {
                // The original keeps "nothing" as the entry here.
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

/// The shortest run of pieces that is whole, and how many pieces it has.
fn take(pieces: &[&str], delimiter: &str, is_whole: fn(&str) -> bool) -> Option<(usize, String)> {
    (1..=pieces.len()).find_map(|used| {
        let joined = pieces.get(..used).unwrap_or_default().join(delimiter);
        let piece = strip(&joined);
        is_whole(piece).then(|| (used, piece.to_owned()))
    })
}

fn balanced(text: &str, open: u8, close: u8) -> bool {
    let count = |wanted| text.bytes().filter(|&byte| byte == wanted).count();
    count(open) == count(close)
}

fn is_list(text: &str) -> bool {
    balanced(text, b'(', b')') && python::strip(text).trim_matches(',').ends_with(')')
}

fn is_primitive(text: &str) -> bool {
    balanced(text, b'{', b'}') && balanced(text, b'(', b')')
}

/// Whether the parenthesis at the start stays open up to the last character.
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
