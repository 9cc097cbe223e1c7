//! Texts: blank characters, `repr` and shell quoting.

/// Returns true for the characters that Python's `str.isspace` and `\s` accept. They include four separators that
/// Unicode's property `White_Space` leaves out.
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// Removes blank characters from both ends, as `str.strip` does.
pub(crate) fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// Returns a text as `repr` writes it.
pub(crate) fn repr(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut shown = String::with_capacity(text.len() + 2);
    shown.push(quote);
    for c in text.chars() {
        match c {
            '\\' => shown.push_str("\\\\"),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            c if c == quote => shown.extend(['\\', c]),
            c if is_printable(c) => shown.push(c),
            c if u32::from(c) <= 0xff => shown.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if u32::from(c) <= 0xffff => shown.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => shown.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    shown.push(quote);
    shown
}

/// Returns true for characters that `repr` shows as they are.
fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    // The standard library escapes the same categories in strings, except that it also escapes combining characters at
    // the beginning of one.
    let mut text = String::from("x");
    text.push(c);
    !text.escape_debug().any(|escaped| escaped == '\\')
}

/// Returns a text as one word of a shell command, as `shlex.quote` does.
pub(crate) fn quote(text: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !text.is_empty() && text.chars().all(is_safe) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r#"'"'"'"#))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repr_chooses_quotes_and_escapes_as_python_does() {
        for (text, shown) in [
            ("a", "'a'"),
            ("it's", "\"it's\""),
            ("it's \"x\"", "'it\\'s \"x\"'"),
            ("a\n\t\\\u{0}\u{7f}", "'a\\n\\t\\\\\\x00\\x7f'"),
            ("é語\u{301}\u{a0}\u{200b}\u{2028}\u{e0001}", "'é語\u{301}\\xa0\\u200b\\u2028\\U000e0001'"),
        ] {
            assert_eq!(repr(text), shown);
        }
    }

    #[test]
    fn separators_are_blank() {
        assert_eq!(strip("\u{1c}\u{3000} a\u{85}\n"), "a");
    }
}
