//! Texts of others as Markdown that shows them as they are.

/// Length of the shortest fence.
const FENCE_MIN: usize = 3;

/// Characters that Markdown or HTML gives a meaning within a line.
const SPECIAL: &str = "\\`*_{}[]<>&|~#$!";

/// Writes a text in a fence that is longer than any in it.
pub(crate) fn fenced(output: &mut String, text: &str) {
    let fence = "`".repeat(FENCE_MIN.max(longest_backticks(text) + 1));
    output.push_str(&fence);
    output.push('\n');
    output.push_str(text);
    // Without its line end, the fence would be part of the text; with an additional one, the text would have one more line.
    if !text.ends_with('\n') {
        output.push('\n');
    }
    output.push_str(&fence);
    output.push('\n');
}

/// Returns a short text as a code span, on one line.
pub(crate) fn code(text: &str) -> String {
    let text = one_line(text);
    let fence = "`".repeat(longest_backticks(&text) + 1);
    // A blank at each end is removed by readers, and keeps backticks of the text apart from the fence.
    let is_bare = !text.starts_with('`') && !text.ends_with('`') && !text.trim().is_empty();
    if is_bare { format!("{fence}{text}{fence}") } else { format!("{fence} {text} {fence}") }
}

/// Returns a sentence on one line, in which no character has a meaning of its own.
pub(crate) fn sentence(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in one_line(text).chars() {
        if SPECIAL.contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// Replaces line breaks and other control characters by blanks, and removes blanks at both ends.
fn one_line(text: &str) -> String {
    let blank = |c: char| if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') { ' ' } else { c };
    text.chars().map(blank).collect::<String>().trim().to_owned()
}

fn longest_backticks(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fence(text: &str) -> String {
        let mut output = String::new();
        fenced(&mut output, text);
        output
    }

    #[test]
    fn a_fence_is_longer_than_any_in_the_text() {
        assert_eq!(fence("x"), "```\nx\n```\n");
        assert_eq!(fence("a\n```\n# b\n```\n"), "````\na\n```\n# b\n```\n````\n");
        assert_eq!(fence("`````"), "``````\n`````\n``````\n");
        assert_eq!(fence("~~~"), "```\n~~~\n```\n");
    }

    #[test]
    fn code_stays_on_its_line_and_in_its_span() {
        assert_eq!(code("openai/gpt_4"), "`openai/gpt_4`");
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(code("a\n\n# b"), "`a  # b`");
        assert_eq!(code(""), "`  `");
    }

    #[test]
    fn a_sentence_has_no_markup() {
        assert_eq!(sentence("see [x](y) <b>*now*</b>"), "see \\[x\\](y) \\<b\\>\\*now\\*\\</b\\>");
        assert_eq!(sentence("a\r\n\n- b\u{2028}c"), "a   - b c");
        assert_eq!(sentence("100 % of 3.5"), "100 % of 3.5");
    }
}
