//! Tokens, cost and time of model calls, and the limits on them.

use serde::{Deserialize, Serialize};

use crate::end::End;

/// Tokens and cost of a model call, as the provider counted or the caller estimated them.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the request, those read from a cache included.
    #[serde(default)]
    pub input_tokens: u64,
    /// Part of the request's tokens that was read from a cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
    /// Tokens of the reply, reasoning included.
    #[serde(default)]
    pub output_tokens: u64,
    /// Cost in dollars; 0 if it is unknown.
    #[serde(default, skip_serializing_if = "is_free")]
    pub cost_usd: f64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_free(cost: &f64) -> bool {
    *cost == 0.0
}

impl Usage {
    /// Returns the sum of both; counts saturate, and costs that aren't positive numbers count as 0.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let cost = |cost: f64| if cost.is_finite() { cost.max(0.0) } else { 0.0 };
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cost_usd: cost(self.cost_usd) + cost(other.cost_usd),
        }
    }

    /// Returns the tokens of request and reply together: the length of the conversation after the reply.
    pub const fn total_tokens(self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

/// Limits of an episode. They are checked before each model call, so the last one may exceed them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Budget {
    /// Maximum number of tokens of all requests and replies.
    pub tokens_max: Option<u64>,
    /// Maximum cost in dollars.
    pub cost_usd_max: Option<f64>,
    /// Maximum time since the agent began, in milliseconds.
    pub time_ms_max: Option<u64>,
}

impl Budget {
    /// Returns the end of an episode that has used this much; `None` if it may go on.
    pub(crate) fn end(&self, used: Usage, elapsed_ms: u64) -> Option<End> {
        if self.tokens_max.is_some_and(|max| used.total_tokens() >= max) {
            return Some(End::TokenLimit);
        }
        if self.cost_usd_max.is_some_and(|max| used.cost_usd >= max) {
            return Some(End::CostLimit);
        }
        self.time_ms_max.is_some_and(|max| elapsed_ms >= max).then_some(End::TimeLimit)
    }
}
