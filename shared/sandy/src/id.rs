//! Checks sandbox ids before they become part of a path.

use crate::SandyError;

/// Maximum length of an id, in characters.
const ID_CHARS_MAX: usize = 200;

/// Checks an id: letters, digits and a few characters without special meaning in a path.
pub(crate) fn check_id(id: &str) -> Result<(), SandyError> {
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '~' | '@' | '+' | '=');
    let is_id = !id.is_empty()
        && id.len() <= ID_CHARS_MAX
        && id.chars().all(is_plain)
        && id.chars().any(|c| c.is_ascii_alphanumeric());
    if is_id { Ok(()) } else { Err(SandyError::BadId) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_cannot_leave_their_place_in_a_path() {
        for id in ["a", "sb-1.2_3", "urn:x", "550e8400-e29b-41d4-a716-446655440000"] {
            assert_eq!(check_id(id), Ok(()), "{id}");
        }
        let long = "a".repeat(ID_CHARS_MAX + 1);
        for id in ["", ".", "..", "a/b", "../a", "a?b", "a#b", "a%2fb", "a b", "a\n", "a\\b", "ä", &long] {
            assert_eq!(check_id(id), Err(SandyError::BadId), "{id}");
        }
    }
}
