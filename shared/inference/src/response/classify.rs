//! Determines the [`FailureKind`] of a status and an error body.

use super::error_body::ErrorBody;
use crate::failure::{FailureKind, Fatal, TooLong};

/// Codes for missing money, which waiting doesn't resolve.
const QUOTA_CODES: [&str; 6] = [
    "insufficient_quota",
    "insufficient_credits",
    "insufficient_balance",
    "billing_hard_limit_reached",
    "billing_not_active",
    "payment_required",
];
const POLICY_CODES: [&str; 8] = [
    "content_filter",
    "content_policy_violation",
    "content_policy",
    "responsibleaipolicyviolation",
    "moderation",
    "moderation_blocked",
    "prompt_blocked",
    "safety_violation",
];
const CONTEXT_CODES: [&str; 5] = [
    "context_length_exceeded",
    "context_window_exceeded",
    "exceed_context_size_error",
    "prompt_too_long",
    "request_too_large",
];
const MODEL_CODES: [&str; 6] = [
    "model_not_found",
    "model_not_available",
    "model_not_supported",
    "no_such_model",
    "unknown_model",
    "invalid_model",
];
const BUSY_CODES: [&str; 9] = [
    "rate_limit_exceeded",
    "rate_limit_error",
    "rate_limited",
    "too_many_requests",
    "resource_exhausted",
    "overloaded",
    "overloaded_error",
    "engine_overloaded",
    "service_unavailable",
];
/// Phrases of servers that have no code for an exceeded context. Compared with the error's own message, which no
/// model wrote.
const CONTEXT_TEXTS: [&str; 14] = [
    "maximum context length",
    "model's context length",
    "context length exceeded",
    "context window",
    "context size",
    "context limit",
    "context overflow",
    "context the overflows",
    "exceeds the context",
    "prompt is too long",
    "input is too long",
    "input token count exceeds",
    "maximum number of input tokens",
    "too many input tokens",
];

/// Returns the meaning of an HTTP error, for protocols with the usual statuses and codes.
pub(crate) fn classify(status: u16, error: &ErrorBody) -> FailureKind {
    if status == 402 || error.has_code(&QUOTA_CODES) {
        return FailureKind::FatalForRun(Fatal::Quota);
    }
    match status {
        401 => FailureKind::FatalForRun(Fatal::Key),
        404 => FailureKind::FatalForRun(Fatal::Model),
        300..=399 => FailureKind::FatalForRun(Fatal::Address),
        403 if is_refusal(error) => FailureKind::Refused,
        403 => FailureKind::FatalForRun(Fatal::Key),
        408 | 409 | 425 => FailureKind::Transient,
        429 | 503 | 529 => FailureKind::RateLimited,
        413 => FailureKind::TooLong(TooLong::Context),
        400..=499 => classify_bad_request(error),
        _ if error.has_code(&CONTEXT_CODES) => FailureKind::TooLong(TooLong::Context),
        _ => FailureKind::Transient,
    }
}

/// Returns the status of an error within a successful response, as stated or as implied by its code.
pub(crate) fn status_in_body(error: &ErrorBody) -> Option<u16> {
    error.status.or_else(|| implied_status(error))
}

fn classify_bad_request(error: &ErrorBody) -> FailureKind {
    if is_refusal(error) {
        FailureKind::Refused
    } else if is_context(error) {
        FailureKind::TooLong(TooLong::Context)
    } else if is_unknown_model(error) {
        FailureKind::FatalForRun(Fatal::Model)
    } else if error.has_code(&BUSY_CODES) {
        FailureKind::RateLimited
    } else {
        FailureKind::Bad
    }
}

fn is_refusal(error: &ErrorBody) -> bool {
    error.is_moderation || error.has_code(&POLICY_CODES)
}

fn is_context(error: &ErrorBody) -> bool {
    if error.has_code(&CONTEXT_CODES) {
        return true;
    }
    // A `max_tokens` that leaves no room for any prompt is a wrong setting, not a long prompt.
    if error.is_about("max_tokens") || error.is_about("max_completion_tokens") {
        return false;
    }
    let message = error.message.to_lowercase();
    CONTEXT_TEXTS.iter().any(|text| message.contains(text))
}

fn is_unknown_model(error: &ErrorBody) -> bool {
    if error.has_code(&MODEL_CODES) || error.is_about("model") {
        return true;
    }
    let message = error.message.to_lowercase();
    message.ends_with("is not a valid model id")
        || message.starts_with("model not found")
        || (message.starts_with("the model `") && message.contains("` does not exist"))
}

fn implied_status(error: &ErrorBody) -> Option<u16> {
    const IMPLIED: [(u16, &[&str]); 7] = [
        (
            429,
            &[
                "rate_limit_exceeded",
                "rate_limit_error",
                "rate_limited",
                "too_many_requests",
                "resource_exhausted",
            ],
        ),
        (503, &["overloaded", "overloaded_error", "engine_overloaded", "service_unavailable"]),
        (401, &["authentication_error", "invalid_api_key", "unauthorized", "unauthenticated"]),
        (403, &["permission_error", "permission_denied", "forbidden"]),
        (404, &["not_found_error", "notfounderror", "not_found", "model_not_found"]),
        (408, &["timeout", "request_timeout", "timeout_error"]),
        (
            400,
            &[
                "invalid_request_error",
                "badrequesterror",
                "bad_request",
                "context_length_exceeded",
                "content_filter",
            ],
        ),
    ];
    IMPLIED.iter().find(|(_, codes)| error.has_code(codes)).map(|(status, _)| *status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use FailureKind::{Bad, FatalForRun, RateLimited, Refused, Transient};

    const CONTEXT: FailureKind = FailureKind::TooLong(TooLong::Context);

    fn kind(status: u16, body: &str) -> FailureKind {
        classify(status, &ErrorBody::parse(body.as_bytes()))
    }

    #[test]
    fn a_status_alone_is_enough() {
        for (statuses, expected) in [
            (&[401, 403][..], FatalForRun(Fatal::Key)),
            (&[402], FatalForRun(Fatal::Quota)),
            (&[404], FatalForRun(Fatal::Model)),
            (&[301, 307], FatalForRun(Fatal::Address)),
            (&[429, 503, 529], RateLimited),
            (&[408, 409, 425, 500, 502, 504, 520, 599], Transient),
            (&[413], CONTEXT),
            (&[400, 405, 410, 415, 422, 451], Bad),
        ] {
            for status in statuses {
                assert_eq!(kind(*status, ""), expected, "{status}");
                assert_eq!(kind(*status, "<html>gateway</html>"), expected, "{status}");
            }
        }
    }

    #[test]
    fn whatever_the_compatible_system_retries_is_retryable_here() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/vectors/inference-errors.json");
        let all: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let statuses = all["http_status_retryable"].as_object().unwrap();
        assert!(statuses.len() >= 14);
        for (status, retryable) in statuses {
            let status: u16 = status.parse().unwrap();
            // Conflicts and requests that are too early are retryable here, but not in the compatible system.
            let expected = retryable.as_bool().unwrap() || matches!(status, 409 | 425);
            assert_eq!(kind(status, "").is_retryable(), expected, "{status}");
        }
    }

    #[test]
    fn a_code_says_more_than_the_status() {
        for (status, body, expected) in [
            (
                429,
                r#"{"error":{"message":"x","type":"insufficient_quota","code":"insufficient_quota"}}"#,
                FatalForRun(Fatal::Quota),
            ),
            (400, r#"{"error":{"message":"x","code":"context_length_exceeded"}}"#, CONTEXT),
            (500, r#"{"error":{"message":"x","code":"context_length_exceeded"}}"#, CONTEXT),
            (400, r#"{"error":{"message":"x","type":"exceed_context_size_error","code":400}}"#, CONTEXT),
            (400, r#"{"error":{"message":"x","code":"content_filter"}}"#, Refused),
            (403, r#"{"error":{"message":"x","code":"content_policy_violation"}}"#, Refused),
            (403, r#"{"error":{"message":"x","code":403,"metadata":{"reasons":["a"]}}}"#, Refused),
            (
                400,
                r#"{"error":{"message":"x","innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#,
                Refused,
            ),
            (400, r#"{"error":{"message":"x","code":"model_not_found"}}"#, FatalForRun(Fatal::Model)),
            (
                400,
                r#"{"error":{"message":"a/b is not a valid model ID","code":400}}"#,
                FatalForRun(Fatal::Model),
            ),
            (
                422,
                r#"{"detail":[{"loc":["body","model"],"msg":"no such model","type":"value_error"}]}"#,
                FatalForRun(Fatal::Model),
            ),
            (400, r#"{"error":{"message":"slow down","type":"rate_limit_error"}}"#, RateLimited),
            (400, r#"{"error":{"message":"x","param":"messages","code":"invalid_value"}}"#, Bad),
        ] {
            assert_eq!(kind(status, body), expected, "{status} {body}");
        }
    }

    #[test]
    fn context_messages_without_a_code() {
        for message in [
            "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens",
            "The input (9000 tokens) is longer than the model's context length (8192 tokens)",
            "prompt is too long: 210000 tokens > 200000 maximum",
            "the request exceeds the available context size, try increasing it",
            "Trying to keep the first 5000 tokens when context the overflows.",
        ] {
            let body = serde_json::json!({"error": {"message": message, "code": 400}}).to_string();
            assert_eq!(kind(400, &body), CONTEXT, "{message}");
            assert_eq!(kind(500, &body), Transient, "{message}");
        }
        let setting =
            r#"{"error":{"message":"max_tokens is beyond the context window","param":"max_tokens"}}"#;
        assert_eq!(kind(400, setting), Bad);
    }

    #[test]
    fn an_error_in_a_good_response_counts_by_what_it_names() {
        let of = |body: &str| {
            let error = ErrorBody::parse(body.as_bytes());
            let status = status_in_body(&error);
            (status, classify(status.unwrap_or(500), &error))
        };
        assert_eq!(of(r#"{"error":{"code":429,"message":"x"}}"#), (Some(429), RateLimited));
        assert_eq!(of(r#"{"error":{"code":"502","message":"x"}}"#), (Some(502), Transient));
        assert_eq!(of(r#"{"error":{"type":"overloaded_error","message":"x"}}"#), (Some(503), RateLimited));
        assert_eq!(of(r#"{"error":{"type":"invalid_request_error","message":"x"}}"#), (Some(400), Bad));
        assert_eq!(of(r#"{"error":"CUDA out of memory"}"#), (None, Transient));
    }
}
