//! Tokens, prices and costs.

use serde::{Deserialize, Serialize};

/// Maximum number of tokens of one kind in a single call.
///
/// The largest context windows have about ten million tokens; ten times as many leave room for growth. A larger count
/// is a provider's mistake, and the counts of a hundred billion such calls still fit into a sum.
pub const TOKENS_PER_CALL_MAX: u64 = 100_000_000;

/// Tokens of one or more model calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the prompts.
    pub input_tokens: u64,
    /// Tokens of the answers, reasoning included.
    pub output_tokens: u64,
    /// Part of `output_tokens` that was reasoning, if the provider reports it.
    #[serde(default)]
    pub reasoning_tokens: u64,
    /// Part of `input_tokens` and `output_tokens` together that is an estimate because the provider didn't count it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub estimated_tokens: u64,
}

/// Returns true if a count is zero, for counts that are serialized only if they aren't.
#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
pub(crate) const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    /// No tokens.
    pub const ZERO: Self = Self::counted(0, 0, 0);

    /// Creates the usage of tokens that a provider counted.
    pub const fn counted(input_tokens: u64, output_tokens: u64, reasoning_tokens: u64) -> Self {
        Self { input_tokens, output_tokens, reasoning_tokens, estimated_tokens: 0 }
    }

    /// Returns the same tokens, all marked as estimates.
    #[must_use]
    pub const fn estimated(self) -> Self {
        Self { estimated_tokens: self.total(), ..self }
    }

    /// Returns input and output tokens together.
    pub const fn total(self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Returns the sum of both; saturates.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
            estimated_tokens: self.estimated_tokens.saturating_add(other.estimated_tokens),
        }
    }
}

/// Provider's price of a model, in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// Price of a million prompt tokens.
    pub input_per_million_usd: f64,
    /// Price of a million answer tokens.
    pub output_per_million_usd: f64,
}

/// Cost of tokens in US dollars.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Cost of the prompts.
    pub input_usd: f64,
    /// Cost of the answers.
    pub output_usd: f64,
}

/// Maximum believable price: a dollar for a single token.
const PER_MILLION_USD_MAX: f64 = 1_000_000.0;

impl Price {
    /// Creates a price in US dollars per million tokens; `None` if it can't be a price: negative (which some providers
    /// use for "depends"), not finite, or more than a dollar for a token.
    pub fn new(input_per_million_usd: f64, output_per_million_usd: f64) -> Option<Self> {
        let price = Self { input_per_million_usd, output_per_million_usd };
        price.is_believable().then_some(price)
    }

    /// Returns true if this can be a price; see [`Price::new`].
    pub fn is_believable(self) -> bool {
        [self.input_per_million_usd, self.output_per_million_usd]
            .into_iter()
            .all(|price| (0.0..=PER_MILLION_USD_MAX).contains(&price))
    }

    /// Returns tokens / 1,000,000 × price, separately for input and output.
    pub fn cost(self, usage: Usage) -> Cost {
        #[allow(clippy::cast_precision_loss)] // exact up to 2^53 tokens
        let dollars = |tokens: u64, price: f64| tokens as f64 / 1_000_000.0 * price;
        Cost {
            input_usd: dollars(usage.input_tokens, self.input_per_million_usd),
            output_usd: dollars(usage.output_tokens, self.output_per_million_usd),
        }
    }
}

impl Cost {
    /// Returns the cost of input and output together.
    pub fn total_usd(self) -> f64 {
        self.input_usd + self.output_usd
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_a_price_is_none() {
        assert!(Price::new(0.0, 0.0).is_some() && Price::new(0.25, 1_000_000.0).is_some());
        for odd in [-1.0, -1e-9, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1_000_000.1] {
            assert_eq!(Price::new(odd, 1.0), None, "{odd}");
            assert_eq!(Price::new(1.0, odd), None, "{odd}");
        }
    }

    #[test]
    fn estimates_stay_apart_in_sums_and_records() {
        let counted = Usage::counted(10, 5, 0);
        let sum = counted.plus(Usage::counted(3, 4, 0).estimated());
        assert_eq!((sum.total(), sum.estimated_tokens), (22, 7));
        assert!(!serde_json::to_string(&counted).unwrap().contains("estimated"), "older digests stay");
        let full = Usage::counted(u64::MAX, u64::MAX, 0).estimated();
        assert_eq!(full.plus(full).estimated_tokens, u64::MAX);
    }

    #[test]
    fn cost_is_tokens_per_million_times_price() {
        let price = Price { input_per_million_usd: 0.5, output_per_million_usd: 2.0 };
        let cost = price.cost(Usage::counted(2_000_000, 500_000, 0));
        assert_eq!((cost.input_usd, cost.output_usd, cost.total_usd()), (1.0, 1.0, 2.0));
    }
}
