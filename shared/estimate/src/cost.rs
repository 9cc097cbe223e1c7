//! Estimated costs, as far as prices are known.

/// Cost of the parts of a run that have a price.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TotalCost {
    /// US dollars.
    pub usd: f64,
    /// Part without a known price or number of tokens.
    pub unknown: UnknownPart,
}

/// Part of a cost that can't be estimated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnknownPart {
    /// Everything has a known cost.
    #[default]
    Nothing,
    /// Answers of a server in the user's own network, which has no price list.
    OwnServer,
    /// Answers of a provider that may charge for them.
    Provider,
}

impl TotalCost {
    /// Returns a cost in US dollars.
    pub const fn known(usd: f64) -> Self {
        Self { usd, unknown: UnknownPart::Nothing }
    }

    /// Returns a cost of which nothing is known.
    pub const fn unknown(part: UnknownPart) -> Self {
        Self { usd: 0.0, unknown: part }
    }

    /// Returns the sum of two costs.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { usd: self.usd + other.usd, unknown: self.unknown.max(other.unknown) }
    }

    /// Returns true if a part of the cost can't be estimated.
    pub fn is_partial(self) -> bool {
        self.unknown != UnknownPart::Nothing
    }

    /// Returns the cost up to a budget, if there is one.
    #[must_use]
    pub fn within(self, budget_usd: Option<f64>) -> Self {
        match budget_usd {
            Some(budget) if self.is_partial() || self.usd > budget => Self::known(budget),
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_with_an_unknown_part_is_partial() {
        let (free, paid) = (TotalCost::default(), TotalCost::known(0.42));
        let (own, provider) =
            (TotalCost::unknown(UnknownPart::OwnServer), TotalCost::unknown(UnknownPart::Provider));
        assert_eq!(own.plus(provider).plus(free).unknown, UnknownPart::Provider);
        assert!(paid.plus(own).is_partial() && !paid.plus(free).is_partial());
        assert_eq!(provider.within(Some(2.0)), TotalCost::known(2.0));
        assert_eq!((paid.within(Some(2.0)), paid.within(Some(0.1)).usd), (paid, 0.1));
    }
}
