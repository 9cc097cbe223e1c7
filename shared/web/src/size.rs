//! Sizes of responses as they are carried.
//!
//! API Gateway carries a response as a string within a JSON text of at most 6 MB, where each quote and each
//! backslash of a JSON body takes two bytes. This module counts those bytes.

use std::io::{self, Write};

use bench_domain::{json_text_bytes, json_width};
use serde::Serialize;

/// Maximum size of a response's body as it is carried. The rest of the 6 MB is ample for headers and everything else.
pub const CARRIED_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Returns the bytes that a value takes as JSON within a response.
pub fn carried_bytes(value: &impl Serialize) -> usize {
    let mut count = Count(0);
    // Counting can't fail, and a value that can't be serialized takes no space.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

/// Returns how many of the values fit into one response, but at least one.
pub fn fitting<T: Serialize>(values: &[T]) -> usize {
    let mut bytes = 0_usize;
    let fits = values.iter().take_while(|value| {
        bytes = bytes.saturating_add(carried_bytes(value));
        bytes <= CARRIED_BYTES_MAX
    });
    fits.count().max(1)
}

/// Returns the bytes that a text takes as a response or a part of one.
pub fn carried_text_bytes(text: &str) -> usize {
    json_text_bytes(text)
}

struct Count(usize);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.iter().copied().map(json_width).sum());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn as_many_as_fit_and_one_in_any_case() {
        let half = "x".repeat(CARRIED_BYTES_MAX / 2);
        // Each text has two quotes around it, which take two bytes each when carried.
        assert_eq!(fitting(&[&half[4..], &half[4..], "x"]), 2);
        assert_eq!(fitting(&[&half[4..], &half[3..], "x"]), 1);
        assert_eq!(fitting(&["x".repeat(CARRIED_BYTES_MAX), "x".to_owned()]), 1);
        assert_eq!(fitting(&["x", "y"]), 2);
    }

    #[test]
    fn what_is_counted_is_what_a_json_text_of_it_takes() {
        for value in [json!("plain"), json!({ "a\"b": ["\\\n\u{1}", 1.5, null] }), json!("ä\u{7f}\u{2028}")]
        {
            let body = value.to_string();
            let carried = serde_json::to_string(&body).unwrap().len() - 2;
            assert_eq!(carried_bytes(&value), carried, "{body}");
            assert_eq!(carried_text_bytes(&body), carried);
        }
        assert_eq!(carried_text_bytes("\u{1}\n"), serde_json::to_string("\u{1}\n").unwrap().len() - 2);
    }
}
