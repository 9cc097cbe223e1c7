//! Texts about estimated costs.

use bench_estimate::TotalCost;

use crate::format;

/// Formats a cost: `~$0.42`, `cost unknown`, `free`.
pub(super) fn describe(cost: TotalCost) -> String {
    match (cost.is_partial(), cost.usd > 0.0) {
        (false, false) => "free".to_owned(),
        (false, true) => format!("~{}", rounded_dollars(cost.usd)),
        (true, true) => format!("~{} without what has no known price", rounded_dollars(cost.usd)),
        (true, false) => "cost unknown".to_owned(),
    }
}

/// Formats dollars, in whole cents from ten cents on, since an estimate isn't more exact.
pub(super) fn rounded_dollars(usd: f64) -> String {
    if usd < 0.1 { format::dollars(usd) } else { format!("${usd:.2}") }
}

#[cfg(test)]
mod tests {
    use bench_estimate::UnknownPart;

    use super::*;

    #[test]
    fn what_is_unknown_is_said() {
        let (free, paid) = (TotalCost::default(), TotalCost::known(0.42));
        let own = TotalCost::unknown(UnknownPart::OwnServer);
        assert_eq!([free, paid, own].map(describe), ["free", "~$0.42", "cost unknown"]);
        assert_eq!(describe(paid.plus(own)), "~$0.42 without what has no known price");
    }
}
