//! Detects refusals of prompts with images by text-only models.

use crate::failure::FailureKind;

/// Statuses of servers whose model doesn't support images. 404 comes from gateways that searched for a model that
/// does, 500 from local servers.
const STATUSES: [u16; 7] = [400, 404, 406, 415, 422, 500, 501];

/// Phrases of such refusals, in lowercase and without quotes.
const TEXTS: [&str; 26] = [
    // OpenRouter, LM Studio, Ollama and others.
    "support image",
    "support multimodal",
    "support multi-modal",
    "support vision",
    "image input is not supported",
    "image inputs are not supported",
    "image content is not supported",
    "images are not supported",
    "images not supported",
    "image is not supported",
    "image_url is not supported",
    "vision is not supported",
    "vision input is not supported",
    "multimodal input is not supported",
    // vLLM.
    "is not a multimodal model",
    "at most 0 image",
    // OpenAI.
    "image_url is only supported by certain models",
    // Servers whose messages mention only text.
    "unknown variant image_url",
    "unsupported content part type: image_url",
    "allowed values: [text]",
    "content must be a string",
    "invalid type: sequence, expected a string",
    "only supports text",
    "text-only model",
    "text only model",
    // llama.cpp, if the model's vision component is not loaded.
    "mmproj",
];

/// Negations. A sentence without one is about a model that supports images: the image is the problem, not the model.
const DENIALS: [&str; 6] =
    ["not support", "n't support", "unable to support", "no endpoints", "cannot support", "unsupported"];

/// Returns the meaning of an error about a prompt with images.
pub(crate) fn with_images(kind: FailureKind, status: u16, message: &str) -> FailureKind {
    let is_open = matches!(kind, FailureKind::Bad | FailureKind::FatalForRun(_) | FailureKind::Transient);
    if !is_open || !STATUSES.contains(&status) {
        return kind;
    }
    let message: String = message.to_lowercase().chars().map(|c| if c == '’' { '\'' } else { c }).collect();
    let denied = DENIALS.iter().any(|text| message.contains(text));
    let bare: String = message.chars().filter(|c| !matches!(c, '`' | '"' | '\'')).collect();
    let is_said = TEXTS.iter().any(|text| bare.contains(text) && (denied || !text.starts_with("support ")));
    if is_said { FailureKind::Unsupported } else { kind }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Fatal, TooLong};

    #[test]
    fn text_only_models_are_detected_from_error_messages() {
        for (status, message) in [
            (404, "No endpoints found that support image input"),
            (400, "/models/glm is not a multimodal model"),
            (400, "At most 0 image(s) may be provided in one request."),
            (400, "Invalid content type. image_url is only supported by certain models."),
            (400, "Model does not support images. Please use a model that does."),
            (400, "this model does not support image input (ref: 1)"),
            (400, "BadRequest: Model do not support image input."),
            (400, "This model doesn’t support image input."),
            (400, "messages[0]: unknown variant `image_url`, expected `text` at line 1"),
            (400, "messages.content.type is invalid, allowed values: ['text']"),
            (422, "messages[0].content: invalid type: sequence, expected a string at line 1"),
            (
                500,
                "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
            ),
            (500, "Failed to parse messages: Unsupported content part type: \"image_url\""),
            (400, "Multimodal input is not supported by this deployment"),
        ] {
            let kind = with_images(FailureKind::Bad, status, message);
            assert_eq!(kind, FailureKind::Unsupported, "{status} {message}");
        }
    }

    #[test]
    fn other_refusals_keep_their_meaning() {
        for (kind, status, message) in [
            (FailureKind::Bad, 400, "Invalid image data."),
            (FailureKind::Bad, 400, "The image is larger than 5 MB; we support images up to that size."),
            (FailureKind::Transient, 502, "does not support images"),
            (FailureKind::FatalForRun(Fatal::Key), 401, "this key does not support image input"),
            (FailureKind::FatalForRun(Fatal::Model), 404, "model not found: a/b"),
            (FailureKind::Refused, 400, "does not support images of this kind"),
            (FailureKind::RateLimited, 429, "does not support images"),
            (FailureKind::TooLong(TooLong::Context), 400, "maximum context length; does not support images"),
            (FailureKind::Bad, 400, ""),
        ] {
            assert_eq!(with_images(kind, status, message), kind, "{status} {message}");
        }
    }
}
