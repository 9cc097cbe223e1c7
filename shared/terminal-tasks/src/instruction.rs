//! Instruction texts.

/// Removes canary lines at the beginning, and blank lines after them.
///
/// A canary line is a comment in HTML or after `#` that contains "canary" in any case. It marks data that must not be
/// trained on, and agents don't see it.
pub(crate) fn strip_canary(text: &str) -> &str {
    let mut rest = text;
    let mut is_canary_block = true;
    loop {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let line = line.trim();
        is_canary_block = is_canary_block && is_canary(line);
        if rest.is_empty() || !(is_canary_block || line.is_empty()) {
            return rest;
        }
        rest = after;
    }
}

fn is_canary(line: &str) -> bool {
    let is_comment = line.starts_with('#') || (line.starts_with("<!--") && line.ends_with("-->"));
    is_comment && line.to_lowercase().contains("canary")
}

#[cfg(test)]
mod tests {
    use super::strip_canary;

    #[test]
    fn canary_lines_at_the_beginning_are_removed() {
        for (text, expected) in [
            ("<!-- harbor-canary GUID 1 -->\n\nDo it.\n", "Do it.\n"),
            ("# CANARY 1\n  <!-- canary -->\n\n \nDo it.", "Do it."),
            ("\n\nDo it.", "Do it."),
            ("Do it.\n# canary", "Do it.\n# canary"),
            ("# Title\n# canary", "# Title\n# canary"),
            ("# canary\n\n# canary\nx", "# canary\nx"),
            ("# canary", ""),
            ("", ""),
        ] {
            assert_eq!(strip_canary(text), expected, "{text:?}");
        }
    }
}
