//! The question whether to go on, and the limit above which it is asked.

use bench_estimate::{TotalCost, UnknownPart};
use clap::Args;

use super::cost::rounded_dollars;
use crate::exit::Problem;
use crate::{output, question};

/// Limit on a terminal if the user sets none, in US dollars.
const CONFIRM_ABOVE_USD_DEFAULT: f64 = 10.0;

/// When to ask before a run that costs money.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct ConfirmArgs {
    /// Ask before a run whose estimated cost is above this many US dollars or unknown; without a terminal, refuse it
    /// [default: 10 on a terminal, otherwise no limit]
    #[arg(long, env = "BENCH_CONFIRM_ABOVE", value_name = "USD", value_parser = parse_limit, help_heading = "Budget")]
    pub(crate) confirm_above: Option<f64>,
    /// Don't ask: order whatever it is estimated to cost
    #[arg(long, short, help_heading = "Budget")]
    pub(crate) yes: bool,
}

fn parse_limit(text: &str) -> Result<f64, String> {
    let usd = text.trim().parse::<f64>().ok().filter(|usd| *usd >= 0.0 && usd.is_finite());
    usd.ok_or_else(|| "it must be a number from 0, in US dollars".to_owned())
}

/// Whether the command has an option for the model's price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PriceOption {
    Available,
    Unavailable,
}

impl PriceOption {
    /// Returns what to do about an unknown cost.
    const fn advice(self) -> &'static str {
        match self {
            Self::Available => {
                "`--price IN,OUT` gives the model's price, and `--yes` orders the run nevertheless"
            }
            Self::Unavailable => "`--yes` orders the run nevertheless",
        }
    }
}

/// Next step for an estimated cost.
#[derive(Debug, PartialEq)]
enum Decision {
    Continue,
    Ask,
    Refuse(f64),
}

impl ConfirmArgs {
    fn decide(&self, cost: TotalCost, can_ask: bool) -> Decision {
        let (limit, is_over) = match self.confirm_above {
            // A limit that was set also holds for costs that can't be estimated.
            Some(limit) => (limit, cost.usd > limit || cost.is_partial()),
            None => {
                let is_over = cost.usd > CONFIRM_ABOVE_USD_DEFAULT || cost.unknown == UnknownPart::Provider;
                (CONFIRM_ABOVE_USD_DEFAULT, can_ask && is_over)
            }
        };
        match is_over {
            _ if self.yes => Decision::Continue,
            false => Decision::Continue,
            true if can_ask => Decision::Ask,
            true => Decision::Refuse(limit),
        }
    }
}

/// Asks whether to go on if the cost is above the limit, or may be.
///
/// # Errors
/// Fails if the user refuses, presses Ctrl-C, or can't be asked.
pub(super) async fn confirm(args: &ConfirmArgs, cost: TotalCost, price: PriceOption) -> anyhow::Result<()> {
    const UNKNOWN: &str = "the cost can't be estimated, since a price or a number of samples is unknown";
    match args.decide(cost, question::can_ask()) {
        Decision::Continue => Ok(()),
        Decision::Refuse(limit) => {
            let (why, hint) = match cost.is_partial() {
                true => (UNKNOWN.to_owned(), price.advice()),
                false => (
                    format!(
                        "the estimated cost of {} is above {}",
                        rounded_dollars(cost.usd),
                        rounded_dollars(limit)
                    ),
                    "`--yes` orders the run nevertheless; `--confirm-above USD` sets another limit",
                ),
            };
            Err(Problem::usage(format!("nothing was ordered: {why}")).hint(hint).into())
        }
        Decision::Ask => {
            if cost.is_partial() {
                output::warn(UNKNOWN);
                output::hint(price.advice());
            }
            ask().await
        }
    }
}

async fn ask() -> anyhow::Result<()> {
    match question::confirm("Continue?", "nothing was ordered").await? {
        true => Ok(()),
        false => Err(Problem::failure("nothing was ordered: you didn't confirm it").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_decide_when_to_ask() {
        let none = ConfirmArgs::default();
        let five = ConfirmArgs { confirm_above: Some(5.0), yes: false };
        let yes = ConfirmArgs { confirm_above: Some(5.0), yes: true };
        let cost = TotalCost::known;
        let unknown = TotalCost::unknown(UnknownPart::Provider);
        let own = TotalCost::unknown(UnknownPart::OwnServer);
        for (args, cost, can_ask, decision) in [
            (none, cost(10.0), true, Decision::Continue),
            (none, cost(10.01), true, Decision::Ask),
            (none, cost(1_000.0), false, Decision::Continue),
            (none, unknown, true, Decision::Ask),
            (none, unknown, false, Decision::Continue),
            (none, own, true, Decision::Continue),
            (none, cost(10.01).plus(own), true, Decision::Ask),
            (five, cost(5.0), true, Decision::Continue),
            (five, cost(5.01), true, Decision::Ask),
            (five, cost(5.01), false, Decision::Refuse(5.0)),
            (five, unknown, true, Decision::Ask),
            (five, own, true, Decision::Ask),
            (five, own, false, Decision::Refuse(5.0)),
            (yes, cost(1_000.0), true, Decision::Continue),
            (yes, unknown, true, Decision::Continue),
            (yes, unknown, false, Decision::Continue),
        ] {
            assert_eq!(args.decide(cost, can_ask), decision, "{args:?} {cost:?} {can_ask}");
        }
    }

    #[test]
    fn limits_are_amounts() {
        assert_eq!(parse_limit(" 2.5 "), Ok(2.5));
        assert_eq!(parse_limit("0"), Ok(0.0));
        for bad in ["", "-1", "NaN", "inf", "much"] {
            assert!(parse_limit(bad).is_err(), "{bad}");
        }
    }
}
