//! Estimated costs, as far as prices are known.

use crate::format;

/// Cost of what has a price.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct TotalCost {
    pub(super) usd: f64,
    /// Part without a known price or number of tokens.
    pub(super) unknown: UnknownPart,
}

/// Part of a cost that can't be estimated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum UnknownPart {
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
    pub(super) const fn known(usd: f64) -> Self {
        Self { usd, unknown: UnknownPart::Nothing }
    }

    /// Returns a cost of which nothing is known.
    pub(super) const fn unknown(part: UnknownPart) -> Self {
        Self { usd: 0.0, unknown: part }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self { usd: self.usd + other.usd, unknown: self.unknown.max(other.unknown) }
    }

    /// Returns true if a part of the cost can't be estimated.
    pub(super) fn is_partial(self) -> bool {
        self.unknown != UnknownPart::Nothing
    }

    /// Returns the cost up to a budget, if there is one.
    pub(super) fn within(self, budget_usd: Option<f64>) -> Self {
        match budget_usd {
            Some(budget) if self.is_partial() || self.usd > budget => Self::known(budget),
            _ => self,
        }
    }

    /// Formats the cost: `~$0.42`, `cost unknown`, `free`.
    pub(super) fn describe(self) -> String {
        match (self.is_partial(), self.usd > 0.0) {
            (false, false) => "free".to_owned(),
            (false, true) => format!("~{}", rounded_dollars(self.usd)),
            (true, true) => format!("~{} without what has no known price", rounded_dollars(self.usd)),
            (true, false) => "cost unknown".to_owned(),
        }
    }
}

/// Formats dollars, in whole cents from ten cents on, since an estimate isn't more exact.
pub(super) fn rounded_dollars(usd: f64) -> String {
    if usd < 0.1 { format::dollars(usd) } else { format!("${usd:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_is_said() {
        let (free, paid) = (TotalCost::default(), TotalCost::known(0.42));
        let (own, provider) =
            (TotalCost::unknown(UnknownPart::OwnServer), TotalCost::unknown(UnknownPart::Provider));
        assert_eq!([free, paid, own].map(TotalCost::describe), ["free", "~$0.42", "cost unknown"]);
        assert_eq!(paid.plus(own).describe(), "~$0.42 without what has no known price");
        assert_eq!(own.plus(provider).plus(free).unknown, UnknownPart::Provider);
        assert_eq!(provider.within(Some(2.0)), TotalCost::known(2.0));
        assert_eq!((paid.within(Some(2.0)), paid.within(Some(0.1)).usd), (paid, 0.1));
    }
}
