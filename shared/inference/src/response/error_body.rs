//! Parses bodies of errors.

use serde_json::Value;

use super::unicode;
use crate::failure::QUOTED_CHARS_MAX;

/// Maximum depth of nested errors, since gateways quote their upstream.
const NESTING_MAX: u32 = 4;
/// Maximum number of messages to keep from one validation error.
const PARTS_MAX: usize = 8;

/// Content of an error body. Protocols with other forms of errors fill the fields themselves. [`ErrorBody::parse`]
/// reads:
///
/// - `{"error": {"message", "type", "param", "code", "metadata"?}}`, also without the outer object or in an array;
/// - `{"error": "…"}`, `{"detail": "…"}`, `{"message": "…"}`;
/// - `{"detail": [{"loc": […], "msg": "…", "type": "…"}]}`.
#[derive(Debug, Default)]
pub(crate) struct ErrorBody {
    /// Message for people.
    pub(crate) message: String,
    /// Values of `code` and `type`, lowercase, with `_` for `-` and spaces.
    pub(crate) codes: Vec<String>,
    /// Fields of the request that the error concerns.
    pub(crate) params: Vec<String>,
    /// A numeric `code` or `status` of the outermost error.
    pub(crate) status: Option<u16>,
    /// True if the body has the fields of a moderation decision.
    pub(crate) is_moderation: bool,
}

/// Returns the messages in an error body, or `None` if it isn't JSON or has none.
pub fn error_message(body: &str) -> Option<String> {
    Some(ErrorBody::parse(body.as_bytes()).message).filter(|message| !message.is_empty())
}

impl ErrorBody {
    /// Parses a body. Returns the default if it isn't JSON.
    pub(crate) fn parse(body: &[u8]) -> Self {
        let mut error = Self::default();
        // Half a character in one message must not prevent reading the rest.
        let value = serde_json::from_slice::<Value>(body)
            .ok()
            .or_else(|| serde_json::from_slice(&unicode::replace(body)?).ok());
        if let Some(value) = value {
            error.read(&value, NESTING_MAX);
        }
        error
    }

    /// Returns true if the error has one of `codes`.
    pub(crate) fn has_code(&self, codes: &[&str]) -> bool {
        self.codes.iter().any(|code| codes.contains(&code.as_str()))
    }

    /// Returns true if the error concerns the request's field `name`.
    pub(crate) fn is_about(&self, name: &str) -> bool {
        self.params.iter().any(|param| param == name)
    }

    /// Returns true if the body had no information.
    pub(crate) fn is_empty(&self) -> bool {
        self.message.is_empty() && self.codes.is_empty() && self.status.is_none()
    }

    fn read(&mut self, value: &Value, depth: u32) {
        let Some(depth) = depth.checked_sub(1) else { return };
        match value {
            Value::String(text) => self.add_message(text),
            Value::Array(parts) => parts.iter().take(PARTS_MAX).for_each(|part| self.read(part, depth)),
            Value::Object(object) => {
                for wrapper in ["error", "detail", "errors"] {
                    if let Some(inner) = object.get(wrapper).filter(|inner| !inner.is_null()) {
                        self.read(inner, depth);
                    }
                }
                for name in ["message", "msg"] {
                    if let Some(text) = object.get(name).and_then(Value::as_str) {
                        self.add_message(text);
                    }
                }
                for name in ["code", "type", "status"] {
                    self.add_code(object.get(name));
                }
                self.add_params(object.get("param"), object.get("loc"));
                if let Some(inner) = object.get("innererror") {
                    self.add_code(inner.get("code"));
                }
                if let Some(metadata) = object.get("metadata") {
                    self.is_moderation |=
                        ["reasons", "flagged_input"].iter().any(|name| metadata.get(name).is_some());
                    self.read_upstream(metadata.get("raw"), depth);
                }
            }
            _ => {}
        }
    }

    /// Reads a gateway's quote of its upstream: an error body as a string or as JSON.
    fn read_upstream(&mut self, raw: Option<&Value>, depth: u32) {
        let quoted;
        let raw = match raw {
            Some(Value::String(text)) => {
                quoted = serde_json::from_str::<Value>(text).unwrap_or_else(|_| Value::String(text.clone()));
                &quoted
            }
            Some(raw) => raw,
            None => return,
        };
        let own = self.status;
        self.read(raw, depth);
        self.status = own;
    }

    fn add_message(&mut self, text: &str) {
        let left = (2 * QUOTED_CHARS_MAX).saturating_sub(self.message.len());
        if left == 0 || text.is_empty() {
            return;
        }
        if !self.message.is_empty() {
            self.message.push_str("; ");
        }
        self.message.extend(text.chars().take(left));
    }

    fn add_code(&mut self, code: Option<&Value>) {
        match code {
            Some(Value::Number(number)) => {
                let status = number.as_u64().and_then(|number| u16::try_from(number).ok());
                self.status = self.status.or(status.filter(|status| (400..600).contains(status)));
            }
            Some(Value::String(text)) if !text.is_empty() && text.len() <= 128 => match text.parse::<u16>() {
                Ok(status) if (400..600).contains(&status) => self.status = self.status.or(Some(status)),
                _ => self.codes.push(text.to_lowercase().replace(['-', ' '], "_")),
            },
            _ => {}
        }
    }

    fn add_params(&mut self, param: Option<&Value>, path: Option<&Value>) {
        let path = path.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        // FastAPI's `loc` starts with the part of the request: `["body", "stream_options", …]`.
        for name in param.into_iter().chain(path.iter().take(3)).filter_map(Value::as_str) {
            if name.len() <= 128 {
                self.params.push(name.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_usual_form_is_read() {
        let parse = |text: &str| ErrorBody::parse(text.as_bytes());
        let openai = parse(
            r#"{"error":{"message":"No","type":"invalid_request_error","param":"max_tokens","code":"unsupported-parameter"}}"#,
        );
        assert_eq!(openai.message, "No");
        assert!(openai.has_code(&["unsupported_parameter"]) && openai.has_code(&["invalid_request_error"]));
        assert!(openai.is_about("max_tokens"));
        assert_eq!(parse(r#"{"detail":"slow down"}"#).message, "slow down");
        assert_eq!(parse(r#"{"error":"Model unloaded"}"#).message, "Model unloaded");
        let vllm =
            parse(r#"{"object":"error","message":"bad","type":"BadRequestError","param":null,"code":400}"#);
        assert_eq!((vllm.message.as_str(), vllm.status), ("bad", Some(400)));
        let fast = parse(
            r#"{"detail":[{"loc":["body","stream_options"],"msg":"extra fields","type":"extra_forbidden"}]}"#,
        );
        assert!(fast.is_about("stream_options") && fast.has_code(&["extra_forbidden"]));
        assert_eq!(
            parse(r#"[{"error":{"code":429,"message":"later","status":"RESOURCE_EXHAUSTED"}}]"#).status,
            Some(429)
        );
        assert!(parse("<html>403</html>").is_empty());
        let half = parse(r#"{"error":{"message":"no \ud83d","code":"insufficient_quota"}}"#);
        assert_eq!(half.message, "no \u{fffd}");
        assert!(half.has_code(&["insufficient_quota"]));
        assert!(parse("[[[[[[[[\"deep\"]]]]]]]]").is_empty());
    }

    #[test]
    fn a_gateways_quote_of_its_upstream_is_read_but_not_its_status() {
        let body = r#"{"error":{"message":"Provider returned error","code":502,"metadata":
            {"raw":"{\"error\":{\"message\":\"boom\",\"code\":\"context_length_exceeded\",\"status\":400}}","provider_name":"X"}}}"#;
        let error = ErrorBody::parse(body.as_bytes());
        assert_eq!(error.message, "Provider returned error; boom");
        assert_eq!(error.status, Some(502));
        assert!(error.has_code(&["context_length_exceeded"]));
        assert!(!error.is_moderation);
        let flagged = br#"{"error":{"code":403,"message":"flagged","metadata":{"reasons":["violence"],"flagged_input":"x"}}}"#;
        assert!(ErrorBody::parse(flagged).is_moderation);
    }
}
