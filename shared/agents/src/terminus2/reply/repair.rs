//! Repairs of replies that aren't one valid JSON object.

use crate::python::parse_json;

/// Repair, tried if a reply has an error.
pub(super) struct Repair {
    /// Text in the warning.
    pub(super) name: &'static str,
    /// Returns the repaired reply; `None` if there is nothing to repair.
    pub(super) apply: fn(reply: &str, error: &str) -> Option<String>,
}

/// Repairs, in the order in which they are tried.
pub(super) const REPAIRS: [Repair; 2] = [
    Repair {
        name: "Fixed incomplete JSON by adding missing closing brace",
        apply: |reply, error| close_braces(reply, error),
    },
    Repair {
        name: "Extracted JSON from mixed content",
        apply: |reply, _| find_group(reply).map(str::to_owned),
    },
];

/// Appends closing braces until there are as many as opening ones, those in texts included.
fn close_braces(reply: &str, error: &str) -> Option<String> {
    let is_repairable = ["Invalid JSON", "Expecting", "Unterminated", "No valid JSON found"];
    if !is_repairable.iter().any(|part| error.contains(part)) {
        return None;
    }
    let count = |brace: u8| reply.bytes().filter(|byte| *byte == brace).count();
    let missing = count(b'{').checked_sub(count(b'}')).filter(|missing| *missing > 0)?;
    Some(format!("{reply}{}", "}".repeat(missing)))
}

/// Returns the first group of braces that is valid JSON. A group contains groups without further braces; braces in
/// texts count.
fn find_group(reply: &str) -> Option<&str> {
    let bytes = reply.as_bytes();
    let mut at = 0;
    while let Some(found) = bytes.get(at..)?.iter().position(|byte| *byte == b'{') {
        let start = at + found;
        match group_end(bytes, start) {
            Some(end) => {
                let group = reply.get(start..end)?;
                if parse_json(group).is_ok() {
                    return Some(group);
                }
                at = end;
            }
            None => at = start + 1,
        }
    }
    None
}

/// Returns the end of the group that begins at a brace; `None` if there are braces of a third level, or none at the
/// end.
fn group_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut depth = 0;
    for (at, byte) in bytes.iter().enumerate().skip(start) {
        match byte {
            b'{' if depth == 2 => return None,
            b'{' => depth += 1,
            b'}' if depth == 1 => return Some(at + 1),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}
