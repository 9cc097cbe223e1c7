//! Detects fields of a request that a server doesn't know.

use crate::protocols::{Dialect, PreparedRequest};
use crate::response::ErrorBody;

/// Returns a dialect that avoids the refused field, if the refusal names a field that was sent and can be avoided.
pub(super) fn after_refusal(
    prepared: PreparedRequest<'_>,
    status: u16,
    error: &ErrorBody,
) -> Option<Dialect> {
    let PreparedRequest { request, fields: _, dialect } = prepared;
    let generation = request.generation;
    if !matches!(status, 400 | 422) {
        return None;
    }
    // Error messages contain no text of models or prompts here, so the field's name in the message is sufficient.
    if !dialect.omits_stream_options
        && (error.is_about("stream_options") || error.message.contains("stream_options"))
    {
        return Some(Dialect { omits_stream_options: true, ..dialect });
    }
    if request.reply_schema.is_some() && !dialect.omits_reply_schema && names_reply_schema(error) {
        return Some(Dialect { omits_reply_schema: true, ..dialect });
    }
    let may_rename = generation.max_tokens.is_some() && generation.max_tokens_field.is_none();
    (may_rename && !dialect.has_max_completion_tokens && wants_max_completion_tokens(error))
        .then_some(Dialect { has_max_completion_tokens: true, ..dialect })
}

/// Returns true if a server refused `max_tokens` because it knows the field by its other name. A value out of range has
/// other codes: it is the caller's mistake and must not be hidden.
fn wants_max_completion_tokens(error: &ErrorBody) -> bool {
    let unsupported = [
        "unsupported_parameter",
        "unsupported_value",
        "unknown_parameter",
        "unrecognized_parameter",
        "extra_forbidden",
        "value_error.extra",
    ];
    // Gateways that pass on only the message of OpenAI's error: "Use 'max_completion_tokens' instead."
    let says_so = error.message.contains("use 'max_completion_tokens'")
        || error.message.contains("Use 'max_completion_tokens'");
    says_so || (error.is_about("max_tokens") && error.has_code(&unsupported))
}

/// Returns true if a server refused the request's schema. Each server without structured output has its own message;
/// none of these phrases occur in errors about anything else.
fn names_reply_schema(error: &ErrorBody) -> bool {
    const NAMES: [&str; 5] =
        ["response_format", "json_schema", "structured output", "guided decoding", "grammar"];
    let message = error.message.to_lowercase();
    NAMES.iter().any(|name| message.contains(name))
        || error.params.iter().any(|param| param.starts_with("response_format"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ChatRequest;
    use crate::settings::COMMON;
    use bench_domain::{Generation, MaxTokensField, Prompt};

    fn after_status(
        status: u16,
        dialect: Dialect,
        generation: &Generation,
        schema: bool,
        body: &str,
    ) -> Option<Dialect> {
        let (prompt, shape) = (Prompt::user("Hi"), serde_json::json!({}));
        let reply_schema = schema.then_some(&shape);
        let request = ChatRequest {
            model: "a/b",
            prompt: &prompt,
            generation,
            reply_schema,
            tools: None,
            is_continued: false,
        };
        after_refusal(
            PreparedRequest { request: &request, fields: &COMMON, dialect },
            status,
            &ErrorBody::parse(body.as_bytes()),
        )
    }

    fn dialect_after(dialect: Dialect, body: &str) -> Option<Dialect> {
        let generation = Generation { temperature: Some(0.0), max_tokens: Some(10), ..Generation::default() };
        after_status(400, dialect, &generation, false, body)
    }

    #[test]
    fn a_schema_that_is_not_known_is_left_out_once() {
        for body in [
            r#"{"error":{"message":"Invalid parameter","param":"response_format","code":"invalid_value"}}"#,
            r#"{"error":"'response_format.type' must be 'text'"}"#,
            r#"{"error":{"message":"This model does not support structured outputs."}}"#,
        ] {
            let schema = |dialect, sent| after_status(400, dialect, &Generation::default(), sent, body);
            let next = schema(Dialect::default(), true).unwrap();
            assert_eq!(next, Dialect { omits_reply_schema: true, ..Dialect::default() });
            assert_eq!(schema(next, true), None);
            assert_eq!(schema(Dialect::default(), false), None);
        }
    }

    #[test]
    fn each_refusal_is_avoided_once() {
        let usual = Dialect::default();
        let max = r#"{"error":{"message":"x","param":"max_tokens","code":"unsupported_parameter"}}"#;
        let quoted =
            r#"{"error":"Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."}"#;
        for body in [max, quoted] {
            let next = dialect_after(usual, body).unwrap();
            assert_eq!(next, Dialect { has_max_completion_tokens: true, ..usual });
            assert_eq!(dialect_after(next, body), None);
        }
        let chosen = Generation {
            max_tokens: Some(10),
            max_tokens_field: Some(MaxTokensField::MaxTokens),
            ..Generation::default()
        };
        assert_eq!(after_status(400, usual, &chosen, false, max), None, "the order has chosen the field");
        for body in [
            r#"{"error":{"message":"unknown field stream_options"}}"#,
            r#"{"detail":[{"loc":["body","stream_options"],"msg":"no","type":"extra_forbidden"}]}"#,
        ] {
            let next = dialect_after(usual, body).unwrap();
            assert!(next.omits_stream_options);
            assert_eq!(dialect_after(next, body), None);
        }
    }

    #[test]
    fn a_wrong_value_or_an_unsent_field_is_not_avoided() {
        // A score must not be measured at another temperature than it states.
        let temperature = r#"{"error":{"message":"x","param":"temperature","code":"unsupported_value"}}"#;
        assert_eq!(dialect_after(Dialect::default(), temperature), None);
        let range = r#"{"error":{"message":"x","param":"temperature","code":"decimal_above_max_value"}}"#;
        assert_eq!(dialect_after(Dialect::default(), range), None);
        let unsent = r#"{"error":{"message":"x","param":"top_p","code":"unsupported_parameter"}}"#;
        assert_eq!(dialect_after(Dialect::default(), unsent), None);
        let renamed = Dialect { has_max_completion_tokens: true, ..Dialect::default() };
        let max = r#"{"error":{"message":"x","param":"max_tokens","code":"unsupported_parameter"}}"#;
        let none = Generation::default();
        assert_eq!(after_status(400, renamed, &none, false, max), None);
        let body = r#"{"error":"stream_options"}"#;
        assert_eq!(after_status(500, Dialect::default(), &none, false, body), None);
    }
}
