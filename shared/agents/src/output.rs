//! Bounds on texts.

/// Shortens a text to its beginning and its end, with a line between them that names the bytes left out.
///
/// The text stays as it is if it has at most `bytes_max` bytes. Otherwise half of the limit is kept at each side;
/// characters that are cut there are left out, and the result is longer than the limit by the line.
pub fn limit_output(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let half = bytes_max / 2;
    let first = beginning(text, half);
    // A limit of one byte has no halves: the official function then keeps the whole text at the end.
    let last = if half == 0 { text } else { end(text, half) };
    let omitted = text.len().saturating_sub(first.len() + last.len());
    format!(
        "{first}\n[... output limited to {bytes_max} bytes; {omitted} interior bytes omitted ...]\n{last}"
    )
}

/// Returns the beginning of a text, of at most so many bytes.
pub(crate) fn beginning(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or(text)
}

/// Returns the end of a text, of at most so many bytes.
pub(crate) fn end(text: &str, bytes_max: usize) -> &str {
    text.get(text.ceil_char_boundary(text.len().saturating_sub(bytes_max))..).unwrap_or_default()
}

/// Returns the last characters of a text.
pub(crate) fn last_chars(text: &str, count: usize) -> &str {
    let start = text.char_indices().rev().take(count).last().map_or(text.len(), |(at, _)| at);
    text.get(start..).unwrap_or_default()
}
