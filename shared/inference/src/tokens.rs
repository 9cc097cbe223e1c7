//! Estimates token counts until the provider reports them.

use bench_domain::{Answer, ChatMessage, Prompt, ToolCall, Usage};

/// Number of characters that count as one token.
const CHARS_PER_TOKEN: u64 = 4;
/// Number of tokens that an image counts as: the cost of a medium-sized one at most providers.
pub const IMAGE_TOKENS: u64 = 1024;

/// Returns the estimated tokens of a text: a quarter of its characters, at least 1, or 0 for an empty text.
pub fn estimate_tokens(text: &str) -> u64 {
    estimate_for_chars(text.chars().count() as u64)
}

/// Returns the estimated tokens of a prompt, the sum over its messages. An image counts as [`IMAGE_TOKENS`], whatever
/// its size.
pub fn estimate_prompt(prompt: &Prompt) -> u64 {
    let of = |message: &ChatMessage| {
        estimate_tokens(&message.content)
            + message.images.len() as u64 * IMAGE_TOKENS
            + estimate_calls(&message.tool_calls)
    };
    prompt.messages.iter().map(of).sum()
}

/// Returns the tokens of a call: as the provider counted them, else estimated from prompt, answer and reasoning, and
/// marked as an estimate. A reported total of zero counts as not reported.
pub fn usage_or_estimate(prompt: &Prompt, answer: &Answer) -> Usage {
    answer.usage.filter(|usage| usage.total() > 0).unwrap_or_else(|| {
        let reasoning = answer.reasoning.as_deref().map_or(0, estimate_tokens);
        let output = estimate_tokens(&answer.text) + reasoning + estimate_calls(&answer.tool_calls);
        Usage::counted(estimate_prompt(prompt), output, reasoning).estimated()
    })
}

fn estimate_calls(calls: &[ToolCall]) -> u64 {
    calls.iter().map(|call| estimate_tokens(&call.name) + estimate_tokens(&call.arguments)).sum()
}

const fn estimate_for_chars(chars: u64) -> u64 {
    match chars {
        0 => 0,
        1..CHARS_PER_TOKEN => 1,
        more => more / CHARS_PER_TOKEN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VECTORS: &str =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/vectors/inference-errors.json");

    fn vectors(name: &str) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(VECTORS).unwrap();
        let all: serde_json::Value = serde_json::from_str(&text).unwrap();
        all[name].as_array().unwrap().clone()
    }

    #[test]
    fn estimates_follow_the_vectors() {
        let cases = vectors("token_estimate");
        assert!(cases.len() >= 7);
        for case in cases {
            let chars = usize::try_from(case["chars"].as_u64().unwrap()).unwrap();
            // Characters count, not bytes.
            for letter in ["x", "ü", "漢"] {
                assert_eq!(estimate_tokens(&letter.repeat(chars)), case["tokens"], "{case}");
            }
        }
    }

    #[test]
    fn a_provider_that_counts_nothing_is_estimated() {
        let prompt = Prompt::user("x".repeat(400));
        let mut answer = Answer::local("y".repeat(80));
        answer.reasoning = Some("z".repeat(40));
        let estimate = usage_or_estimate(&prompt, &answer);
        assert_eq!((estimate.input_tokens, estimate.output_tokens, estimate.reasoning_tokens), (100, 30, 10));
        assert_eq!(estimate.estimated_tokens, 130);
        answer.tool_calls = vec![ToolCall { id: "1".into(), name: "look".into(), arguments: "a".repeat(12) }];
        assert_eq!(usage_or_estimate(&prompt, &answer).output_tokens, 34);
        answer.tool_calls.clear();
        answer.usage = Some(Usage::default());
        assert_eq!(usage_or_estimate(&prompt, &answer), estimate);
        let counted = Usage::counted(7, 5, 0);
        answer.usage = Some(counted);
        assert_eq!(usage_or_estimate(&prompt, &answer), counted);
    }

    #[test]
    fn an_image_counts_apart_from_its_bytes() {
        let mut prompt = Prompt::user("x".repeat(40));
        let image = bench_domain::Image { data_url: "A".repeat(100_000) };
        prompt.messages[0].images = vec![image.clone(), image];
        assert_eq!(estimate_prompt(&prompt), 10 + 2 * IMAGE_TOKENS);
    }
}
