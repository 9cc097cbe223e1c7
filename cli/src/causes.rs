//! Formatting of error causes.

use std::borrow::Cow;

use serde_json::Value;

use crate::format;

pub(crate) use bench_domain::causes::{cause, one_line};

/// Start of an error text that quotes the body of a response: `HTTP 400 from Chutes: {…}`.
const HTTP: &str = "HTTP ";
/// Field with the message in the usual error bodies.
const MESSAGE: &str = "\"message\"";

/// Formats a cause with its number of occurrences.
pub(crate) fn times(count: u64, text: &str) -> String {
    format!("{} × {text}", format::count(count))
}

/// Replaces a JSON body that an error text quotes by the message in it.
pub(crate) fn readable(text: &str) -> Cow<'_, str> {
    let found = text.find(HTTP).and_then(|http| {
        let colon = http + text.get(http..)?.find(": ")? + 2;
        let (before, body) = text.split_at_checked(colon)?;
        let (message, after) = message(body)?;
        // Messages of this program have no final period, and more may follow.
        Some(format!("{before}{}{after}", message.trim_end_matches('.')))
    });
    found.map_or_else(|| text.into(), Cow::Owned)
}

/// Returns the message of the JSON value at the start of a text, and the text after the value.
fn message(text: &str) -> Option<(String, &str)> {
    if !text.starts_with(['{', '[']) {
        return None;
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    match values.next()? {
        Ok(_) => {
            let (body, after) = text.split_at_checked(values.byte_offset())?;
            Some((bench_inference::error_message(body)?, after))
        }
        // A long body is cut.
        Err(_) => {
            let value = text.get(text.find(MESSAGE)? + MESSAGE.len()..)?;
            let value = value.trim_start().strip_prefix(':')?.trim_start();
            let mut strings = serde_json::Deserializer::from_str(value).into_iter::<String>();
            match strings.next()? {
                Ok(message) => Some((format!("{message} …"), "")),
                Err(_) => Some((value.strip_prefix('"')?.to_owned(), "")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_of_a_json_body_is_shown() {
        for (text, shown) in [
            (
                r#"HTTP 400 from Chutes: {"error":{"message":"no \"x\"","type":"y"}} (request_id=7); try again"#,
                r#"HTTP 400 from Chutes: no "x" (request_id=7); try again"#,
            ),
            (r#"the judge: HTTP 422 from X: {"detail":"bad."}"#, "the judge: HTTP 422 from X: bad"),
            (r#"HTTP 400 from X: {"message": "long", "more": "te…"#, "HTTP 400 from X: long …"),
            (r#"HTTP 400 from X: {"error":{"message":"lo…"#, "HTTP 400 from X: lo…"),
            // Without a message, all is shown.
            (r#"HTTP 400 from X: {"a":1}"#, r#"HTTP 400 from X: {"a":1}"#),
            (r#"HTTP 400 from X: {"a"#, r#"HTTP 400 from X: {"a"#),
            ("HTTP 502 from X: <html>", "HTTP 502 from X: <html>"),
            (r#"the answer is {"message":"x"}"#, r#"the answer is {"message":"x"}"#),
            ("HTTP 500", "HTTP 500"),
        ] {
            assert_eq!(readable(text), shown);
        }
    }
}
