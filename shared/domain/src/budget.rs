//! Budgets of runs: limits, spending and prices.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Price, Usage};

/// Maximum budget in US dollars.
pub const BUDGET_USD_MAX: f64 = 1_000_000.0;

/// Budget of a run. Without limits, a run may spend any amount.
///
/// A limit stops new questions. Questions that were asked before are answered, paid for and counted: with `c` samples
/// in progress and at most `t` tokens for an answer and its prompt, a run spends less than its budget + c × t.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Budget {
    /// Limit in US dollars, at the price stored with the run.
    #[serde(default)]
    pub usd: Option<f64>,
    /// Limit in tokens, prompts and answers together.
    #[serde(default)]
    pub tokens: Option<u64>,
}

/// Tokens that count toward a budget, by the model that used them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spending {
    /// Tokens of the measured model.
    pub answers: Usage,
    /// Tokens of the judge.
    pub judge: Usage,
    /// Tokens of the user simulator.
    pub user: Usage,
}

impl Spending {
    /// Creates spending of the judge alone.
    pub const fn judge_only(judge: Usage) -> Self {
        Self { answers: Usage::ZERO, judge, user: Usage::ZERO }
    }

    /// Creates spending of the user simulator alone.
    pub const fn user_only(user: Usage) -> Self {
        Self { answers: Usage::ZERO, judge: Usage::ZERO, user }
    }

    /// Returns the tokens of model, judge and user simulator together.
    pub const fn total(self) -> u64 {
        self.answers.total().saturating_add(self.judge.total()).saturating_add(self.user.total())
    }

    /// Returns the part of [`Spending::total`] that is estimated because the provider didn't count it.
    pub const fn estimated_tokens(self) -> u64 {
        self.answers
            .estimated_tokens
            .saturating_add(self.judge.estimated_tokens)
            .saturating_add(self.user.estimated_tokens)
    }

    /// Returns the sum of both; saturates.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            answers: self.answers.plus(other.answers),
            judge: self.judge.plus(other.judge),
            user: self.user.plus(other.user),
        }
    }
}

impl From<Usage> for Spending {
    fn from(answers: Usage) -> Self {
        Self { answers, ..Self::default() }
    }
}

/// Prices for converting spending to dollars. Tokens without a price cost nothing.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Prices {
    /// Price of the measured model.
    pub answers: Option<Price>,
    /// Price of the judge.
    pub judge: Option<Price>,
    /// Price of the user simulator.
    pub user: Option<Price>,
}

impl Prices {
    /// Returns the cost of `spent` in US dollars.
    pub fn total_usd(self, spent: Spending) -> f64 {
        let usd = |price: Option<Price>, usage| price.map_or(0.0, |price| price.cost(usage).total_usd());
        usd(self.answers, spent.answers) + usd(self.judge, spent.judge) + usd(self.user, spent.user)
    }
}

impl From<Option<Price>> for Prices {
    fn from(answers: Option<Price>) -> Self {
        Self { answers, ..Self::default() }
    }
}

/// Limit of a budget that was reached. Displayed as `budget of 1.00 USD reached (1.02 USD spent)`, with a tilde before
/// the amount spent if a part of it is an estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LimitReached {
    /// The limit in US dollars.
    Usd {
        /// Limit in US dollars.
        limit: f64,
        /// Amount spent in US dollars.
        spent: f64,
        /// Estimated tokens among those spent.
        estimated_tokens: u64,
    },
    /// The limit in tokens.
    Tokens {
        /// Limit in tokens.
        limit: u64,
        /// Tokens spent.
        spent: u64,
        /// Estimated tokens among those spent.
        estimated_tokens: u64,
    },
}

impl Budget {
    /// Returns true if there is any limit.
    pub const fn is_set(self) -> bool {
        self.usd.is_some() || self.tokens.is_some()
    }

    /// Returns `old`, with its limits replaced by those that `new` sets.
    #[must_use]
    pub fn or_else(new: Self, old: Self) -> Self {
        Self { usd: new.usd.or(old.usd), tokens: new.tokens.or(old.tokens) }
    }

    /// Returns the limit that `spent` reaches, if any. Answers are charged at the model's price, replies of the judge
    /// at the judge's. Without a price, tokens cost nothing.
    pub fn reached_by(self, spent: impl Into<Spending>, prices: impl Into<Prices>) -> Option<LimitReached> {
        let spent = spent.into();
        let usd = prices.into().total_usd(spent);
        let by_usd = self.usd.filter(|limit| usd >= *limit);
        let by_tokens = self.tokens.filter(|limit| spent.total() >= *limit);
        let estimated_tokens = spent.estimated_tokens();
        by_usd.map(|limit| LimitReached::Usd { limit, spent: usd, estimated_tokens }).or_else(|| {
            by_tokens.map(|limit| LimitReached::Tokens { limit, spent: spent.total(), estimated_tokens })
        })
    }
}

impl fmt::Display for LimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (limit, spent, estimated) = match self {
            Self::Usd { limit, spent, estimated_tokens } => {
                (format!("{} USD", dollars(*limit)), format!("{} USD", dollars(*spent)), *estimated_tokens)
            }
            Self::Tokens { limit, spent, estimated_tokens } => (
                format!("{} tokens", grouped(*limit)),
                format!("{} tokens", grouped(*spent)),
                *estimated_tokens,
            ),
        };
        match estimated {
            0 => write!(f, "budget of {limit} reached ({spent} spent)"),
            tokens => {
                write!(
                    f,
                    "budget of {limit} reached (~{spent} spent, {} tokens of it estimated)",
                    grouped(tokens)
                )
            }
        }
    }
}

/// Formats dollars with two decimals, or with more if a small amount needs them to show two significant digits.
pub fn dollars(usd: f64) -> String {
    let digits = match usd.abs() {
        small if small > 0.0 && small < 1.0 => (1..=12)
            .find(|digits| small * 10_f64.powi(*digits) >= 1.0)
            .map_or(12, |first| usize::try_from(first).unwrap_or(1) + 1),
        _ => 2,
    };
    format!("{usd:.digits$}")
}

/// Formats a whole number in groups of three digits: `12,032`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICE: Price = Price { input_per_million_usd: 1.0, output_per_million_usd: 4.0 };

    fn usage(input_tokens: u64, output_tokens: u64) -> Usage {
        Usage::counted(input_tokens, output_tokens, 0)
    }

    #[test]
    fn a_limit_is_reached_when_it_is_spent_to_the_last_token() {
        let budget = Budget { usd: None, tokens: Some(1_000) };
        assert_eq!(budget.reached_by(usage(600, 399), None), None);
        let reached = budget.reached_by(usage(600, 400), None).unwrap();
        assert_eq!(reached.to_string(), "budget of 1,000 tokens reached (1,000 tokens spent)");
        let budget = Budget { usd: Some(1.0), tokens: None };
        assert_eq!(budget.reached_by(usage(200_000, 199_999), Some(PRICE)), None);
        let reached = budget.reached_by(usage(220_000, 200_000), Some(PRICE)).unwrap();
        assert_eq!(reached.to_string(), "budget of 1.00 USD reached (1.02 USD spent)");
    }

    #[test]
    fn estimates_are_marked() {
        let spent = Spending::from(usage(600, 300)).plus(usage(100, 20).estimated().into());
        let tokens = Budget { usd: None, tokens: Some(1_000) };
        assert_eq!(
            tokens.reached_by(spent, None).unwrap().to_string(),
            "budget of 1,000 tokens reached (~1,020 tokens spent, 120 tokens of it estimated)"
        );
        let usd = Budget { usd: Some(0.001), tokens: None };
        assert_eq!(
            usd.reached_by(spent, Some(PRICE)).unwrap().to_string(),
            "budget of 0.0010 USD reached (~0.0020 USD spent, 120 tokens of it estimated)"
        );
    }

    #[test]
    fn the_judge_counts_at_its_own_price() {
        let judge = Price { input_per_million_usd: 10.0, output_per_million_usd: 10.0 };
        let spent =
            Spending { answers: usage(500_000, 0), judge: usage(40_000, 9_999), ..Spending::default() };
        let prices = Prices { answers: Some(PRICE), judge: Some(judge), user: None };
        let budget = Budget { usd: Some(1.0), tokens: None };
        assert_eq!(budget.reached_by(spent, prices), None);
        assert_eq!(budget.reached_by(spent.plus(Spending::judge_only(usage(1, 0))), Some(PRICE)), None);
        let more = spent.plus(Spending::judge_only(usage(1, 0)));
        assert!(budget.reached_by(more, prices).is_some());
        let tokens = Budget { usd: None, tokens: Some(550_000) };
        assert_eq!(tokens.reached_by(spent, Prices::default()), None);
        assert!(tokens.reached_by(more, Prices::default()).is_some());
    }

    #[test]
    fn no_limit_and_no_price_stop_nothing() {
        let everything = usage(u64::MAX, u64::MAX);
        assert_eq!(Budget::default().reached_by(everything, Some(PRICE)), None);
        assert_eq!(Budget { usd: Some(0.01), tokens: None }.reached_by(everything, None), None);
        let free = Price { input_per_million_usd: 0.0, output_per_million_usd: 0.0 };
        assert_eq!(Budget { usd: Some(0.01), tokens: None }.reached_by(everything, Some(free)), None);
        assert!(Budget { usd: Some(1.0), tokens: Some(1) }.reached_by(everything, None).is_some());
    }

    #[test]
    fn a_new_budget_replaces_the_limits_that_it_names() {
        let old = Budget { usd: Some(1.0), tokens: Some(10) };
        assert_eq!(Budget::or_else(Budget::default(), old), old);
        let new = Budget { usd: Some(2.0), tokens: None };
        assert_eq!(Budget::or_else(new, old), Budget { usd: Some(2.0), tokens: Some(10) });
    }

    #[test]
    fn small_amounts_keep_digits_that_count() {
        for (usd, text) in [
            (0.0, "0.00"),
            (1.0, "1.00"),
            (1.019, "1.02"),
            (12.5, "12.50"),
            (0.5, "0.50"),
            (0.1, "0.10"),
            (0.0123, "0.012"),
            (0.000_04, "0.000040"),
            (1e-20, "0.000000000000"),
        ] {
            assert_eq!(dollars(usd), text);
        }
        assert_eq!((grouped(999).as_str(), grouped(1_000_000).as_str()), ("999", "1,000,000"));
    }
}
