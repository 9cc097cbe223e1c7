//! Finds boxes: `boxed{…}` and `fbox{…}` with balanced braces.

use std::ops::Range;

/// Maximum number of inner boxes for which their removal follows the official order of replacements exactly.
const INNER_EXACT_MAX: usize = 64;

/// Returns the position of the matching closing brace for each opening brace, in one pass for any nesting depth.
fn closing_braces(text: &str) -> Vec<Option<usize>> {
    let mut closing = vec![None; text.len()];
    let mut open = Vec::new();
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => open.push(at),
            b'}' => {
                if let Some(slot) = open.pop().and_then(|opened: usize| closing.get_mut(opened)) {
                    *slot = Some(at);
                }
            }
            _ => {}
        }
    }
    closing
}

/// Returns the outermost boxes from left to right: the range of each box and of its content.
fn outermost(text: &str, names: [&str; 2]) -> Vec<(Range<usize>, Range<usize>)> {
    let closing = closing_braces(text);
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let name = names.iter().find(|name| rest.starts_with(name.as_bytes()));
        let open = name.map(|name| at + name.len() - 1);
        match open.and_then(|open| Some((open, (*closing.get(open)?)?))) {
            Some((open, close)) => {
                found.push((at..close + 1, open + 1..close));
                at = close + 1;
            }
            None => at += 1,
        }
    }
    found
}

/// Returns the content of the last box, with the outermost boxes inside it unwrapped once. The backslash is optional.
/// Boxes that are never closed are ignored.
pub(super) fn last_box(text: &str) -> Option<String> {
    let (_, content) = outermost(text, ["boxed{", "fbox{"]).pop()?;
    Some(unwrap_inner(text.get(content)?))
}

fn unwrap_inner(content: &str) -> String {
    let inner = outermost(content, ["\\boxed{", "\\fbox{"]);
    if inner.len() <= INNER_EXACT_MAX {
        // Like the official parser, replaces the text of each box wherever it occurs. A box that contains an earlier
        // one is then no longer found and stays.
        return inner.iter().fold(content.to_owned(), |result, (whole, inside)| {
            match (content.get(whole.clone()), content.get(inside.clone())) {
                (Some(whole), Some(inside)) => result.replace(whole, inside),
                _ => result,
            }
        });
    }
    let mut result = String::with_capacity(content.len());
    let mut copied = 0;
    for (whole, inside) in inner {
        result.push_str(content.get(copied..whole.start).unwrap_or_default());
        result.push_str(content.get(inside).unwrap_or_default());
        copied = whole.end;
    }
    result.push_str(content.get(copied..).unwrap_or_default());
    result
}

#[cfg(test)]
mod tests {
    use super::last_box;

    #[test]
    fn the_last_balanced_box_is_found() {
        for (text, expected) in [
            ("\\boxed{16} then \\boxed{70}", Some("70")),
            ("\\boxed{\\frac{1}{2}}", Some("\\frac{1}{2}")),
            ("\\boxed{70} \\boxed{16", Some("70")),
            ("\\boxed{16 \\fbox{70}", Some("70")),
            ("boxed{7}", Some("7")),
            ("fboxed{7}", Some("7")),
            ("\\boxed{\\boxed{70}}", Some("70")),
            ("\\boxed{\\boxed{\\boxed{70}}}", Some("\\boxed{70}")),
            ("\\boxed{}", Some("")),
            ("} \\boxed{7}", Some("7")),
            ("\\boxed {7}", None),
            ("", None),
        ] {
            assert_eq!(last_box(text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn deeply_nested_boxes_are_processed_in_linear_time() {
        let text = format!("{}70{}", "\\boxed{".repeat(100_000), "}".repeat(100_000));
        assert!(last_box(&text).is_some());
        assert_eq!(last_box(&"\\boxed{".repeat(150_000)), None);
        let many = format!("\\boxed{{{}}}", "\\boxed{1}".repeat(100_000));
        assert_eq!(last_box(&many).map(|content| content.len()), Some(100_000));
    }
}
