//! Characters that change how the text around them is shown.

/// Returns true for a character that texts of others must not bring into a line of this program, such as a name in a
/// sentence: it moves the cursor, ends the line, or changes the direction of the text around it.
///
/// These are the control characters (Unicode's `Cc`, which has line feeds, tabs and escapes), the separators of lines and
/// paragraphs, the characters with the property `Bidi_Control` (marks, embeddings, overrides and isolates), and the byte order
/// mark. Joiners, variation selectors and letters of right-to-left scripts aren't among them, since words and emoji need them.
///
/// Callers choose whether to drop, escape or replace such a character, and which of them their texts may have.
pub fn is_layout_control(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_other_text_is_found() {
        for c in
            ['\0', '\n', '\t', '\u{1b}', '\u{7f}', '\u{9b}', '\u{61c}', '\u{200f}', '\u{2028}', '\u{2029}']
                .into_iter()
                .chain('\u{202a}'..='\u{202e}')
                .chain('\u{2066}'..='\u{2069}')
                .chain(['\u{feff}'])
        {
            assert!(is_layout_control(c), "{c:?}");
        }
    }

    #[test]
    fn letters_joiners_and_emoji_are_not() {
        for c in "Nora é 模型 نموذج แบบจำลอง 👩\u{200d}🚀 ❤\u{fe0f} क्\u{200d}ष \u{a0}\u{200b}\u{2065}\u{206a}"
            .chars()
        {
            assert!(!is_layout_control(c), "{c:?}");
        }
    }
}
