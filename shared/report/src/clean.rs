//! Removes what must not reach a page from texts of strangers.

use std::borrow::Cow;

use bench_domain::is_layout_control;

/// Replacement for characters that are invisible or reorder other text.
const REPLACEMENT: char = '\u{fffd}';
/// Mark of a text that was cut.
const ELLIPSIS: char = '…';

/// Returns a text in one line: white space becomes a single space; control characters, directional overrides, private
/// and unassigned markers become a visible replacement. A longer text than `chars_max` is cut, with an ellipsis.
pub(crate) fn clean(text: &str, chars_max: usize) -> Cow<'_, str> {
    let is_plain = |c: char| matches!(c, ' '..='~');
    if text.len() <= chars_max && text.chars().all(is_plain) && !text.contains("  ") && text.trim() == text {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::new();
    let mut count = 0;
    let mut is_space_due = false;
    for c in text.chars() {
        if c.is_whitespace() {
            is_space_due = !cleaned.is_empty();
            continue;
        }
        if count + usize::from(is_space_due) >= chars_max {
            cleaned.push(ELLIPSIS);
            break;
        }
        if std::mem::take(&mut is_space_due) {
            cleaned.push(' ');
            count += 1;
        }
        cleaned.push(if is_refused(c) { REPLACEMENT } else { c });
        count += 1;
    }
    Cow::Owned(cleaned)
}

/// Returns true for characters that have no place in a report: they are invisible, move other text, or have no meaning
/// that all readers share. Joiners and variation selectors stay, since scripts and emoji need them.
fn is_refused(c: char) -> bool {
    is_layout_control(c)
        || matches!(u32::from(c),
            0x00ad | 0x034f | 0x115f..=0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f | 0x3164
            | 0x200b | 0x2060..=0x206f | 0xffa0
            | 0xfff0..=0xfffb | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a
            | 0xe000..=0xf8ff | 0xe0000..=0xe0fff | 0xf0000..=0x10ffff)
        || u32::from(c) & 0xfffe == 0xfffe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_stays() {
        assert!(matches!(clean("gpt-oss-20b, 50%", 100), Cow::Borrowed("gpt-oss-20b, 50%")));
        for text in ["Überprüfung", "模型", "نموذج", "แบบจำลอง", "👩\u{200d}🚀", "❤\u{fe0f}", "क्\u{200d}ष"]
        {
            assert_eq!(clean(text, 100), text);
        }
    }

    #[test]
    fn white_space_becomes_one_space() {
        assert_eq!(clean(" a\r\n\t b\u{2028}c\u{3000} ", 100), "a b c");
        assert_eq!(clean("\n \t", 100), "");
    }

    #[test]
    fn hidden_and_reordering_characters_become_visible() {
        assert_eq!(clean("a\0b\u{1b}[31m", 100), "a\u{fffd}b\u{fffd}[31m");
        for c in
            ['\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}', '\u{e0041}', '\u{ffff}', '\u{85}', '\u{f8ff}']
        {
            let cleaned = clean(&format!("a{c}b"), 100).into_owned();
            assert!(cleaned == "a\u{fffd}b" || cleaned == "a b", "{c:?}: {cleaned:?}");
        }
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(clean("abcdef", 6), "abcdef");
        assert_eq!(clean("abcdefg", 6), "abcdef…");
        assert_eq!(clean("模型模型", 3), "模型模…");
        assert_eq!(clean(&"x".repeat(10_000), 200).chars().count(), 201);
        assert_eq!(clean("abc def", 3), "abc…");
    }
}
