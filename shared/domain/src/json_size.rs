//! Size of texts in JSON.

/// Returns the bytes that a text takes within a JSON string, without its quotes.
pub fn json_text_bytes(text: &str) -> usize {
    text.bytes().map(json_width).sum()
}

/// Returns the bytes that a byte of a text takes within a JSON string.
pub const fn json_width(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        // `\u001f`
        0..0x20 => 6,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_that_of_the_json() {
        let all: String = (0..=0x2ff).filter_map(char::from_u32).collect();
        assert_eq!(json_text_bytes(&all) + 2, serde_json::to_string(&all).unwrap().len());
    }
}
