//! Answers of providers as replies to an agent.

use bench_agents::ModelReply;
use bench_domain::{Answer, Finish, Price, Usage};
use serde_json::Value;

/// Converts an answer. Cached tokens and cost are those that the provider reports; otherwise the cost follows from the
/// run's price.
pub(super) fn model_reply(answer: Answer, asked: &str, paid: Usage, price: Option<Price>) -> ModelReply {
    let reported = answer.usage_raw.as_deref().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let reported = reported.unwrap_or_default();
    let cached = reported.pointer("/prompt_tokens_details/cached_tokens").and_then(Value::as_u64);
    let cost = reported.get("cost").and_then(Value::as_f64).filter(|cost| cost.is_finite() && *cost >= 0.0);
    let usage = bench_agents::Usage {
        input_tokens: paid.input_tokens,
        cached_tokens: cached.unwrap_or(0).min(paid.input_tokens),
        output_tokens: paid.output_tokens,
        cost_usd: cost.or_else(|| Some(price?.cost(paid).total_usd())).unwrap_or(0.0),
    };
    ModelReply {
        text: answer.text,
        reasoning: answer.reasoning,
        is_cut: answer.finish == Finish::Length,
        model: answer.model.filter(|model| model != asked),
        usage,
        latency_ms: answer.latency_ms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reported_costs_win_over_prices() {
        let price = Price::new(1.0, 2.0);
        let paid = Usage::counted(1_000_000, 500_000, 0);
        let answer = Answer { model: Some("m".to_owned()), finish: Finish::Length, ..Answer::local("x") };
        let reply = model_reply(answer.clone(), "m", paid, price);
        assert!((reply.usage.cost_usd - 2.0).abs() < 1e-9 && reply.is_cut && reply.model.is_none());
        let raw = r#"{"cost":0.5,"prompt_tokens_details":{"cached_tokens":7}}"#;
        let reply =
            model_reply(Answer { usage_raw: Some(raw.to_owned()), ..answer.clone() }, "other", paid, price);
        assert_eq!((reply.usage.cost_usd, reply.usage.cached_tokens), (0.5, 7));
        assert_eq!(reply.model.as_deref(), Some("m"));
        let odd = Answer { usage_raw: Some(r#"{"cost":-1}"#.to_owned()), ..answer };
        assert_eq!(model_reply(odd, "m", paid, None).usage.cost_usd, 0.0);
    }
}
