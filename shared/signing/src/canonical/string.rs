//! Strings in canonical JSON, which are ASCII only.

const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Appends `text` in quotes.
pub(super) fn write(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let mut rest = text;
    loop {
        let plain = rest.bytes().position(|byte| !is_plain(byte)).unwrap_or(rest.len());
        let (run, special) = rest.split_at(plain);
        out.extend_from_slice(run.as_bytes());
        let mut characters = special.chars();
        let Some(character) = characters.next() else { break };
        rest = characters.as_str();
        match character {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\u{08}' => out.extend_from_slice(b"\\b"),
            '\u{0c}' => out.extend_from_slice(b"\\f"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            _ => {
                let mut units = [0u16; 2];
                for unit in character.encode_utf16(&mut units) {
                    write_unit(out, *unit);
                }
            }
        }
    }
    out.push(b'"');
}

/// Returns true for a byte that is a character by itself and is written unchanged.
const fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}

fn write_unit(out: &mut Vec<u8>, unit: u16) {
    out.extend_from_slice(b"\\u");
    for shift in [12, 8, 4, 0] {
        out.push(HEX_DIGITS[usize::from((unit >> shift) & 0xf)]);
    }
}

#[cfg(test)]
mod tests {
    fn text(value: &str) -> String {
        let mut out = Vec::new();
        super::write(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn escapes_are_lowercase_and_pairs_above_the_base_plane() {
        assert_eq!(text("\u{10FFFF}\u{AB}"), r#""\udbff\udfff\u00ab""#);
        assert_eq!(text("/<>&'~ "), "\"/<>&'~ \"");
        assert_eq!(text("ab\"\\c\u{7f}d\u{1}\né"), r#""ab\"\\c\u007fd\u0001\n\u00e9""#);
        assert_eq!(text(""), "\"\"");
    }
}
