//! Units that a run or a month uses, and their cost.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::prices::{PRICES, Price, Usage};

/// Units used, by what AWS bills. Missing entries are 0.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Counters(BTreeMap<Usage, f64>);

/// One line of a bill.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Price of the unit.
    pub price: Price,
    /// Units used.
    pub units: f64,
    /// Cost in USD.
    pub usd: f64,
}

impl Counters {
    /// Adds units.
    pub fn add(&mut self, usage: Usage, units: f64) {
        if units != 0.0 {
            *self.0.entry(usage).or_default() += units;
        }
    }

    /// Adds all units of `other`, multiplied by `times`.
    pub fn add_all(&mut self, other: &Self, times: f64) {
        for (usage, units) in &other.0 {
            self.add(*usage, units * times);
        }
    }

    /// Units used.
    pub fn units(&self, usage: Usage) -> f64 {
        self.0.get(&usage).copied().unwrap_or_default()
    }

    /// The bill, in the order of the prices.
    pub fn bill(&self) -> Vec<Line> {
        let lines = PRICES.iter().filter_map(|price| {
            let units = *self.0.get(&price.usage)?;
            Some(Line { price: *price, units, usd: price.cost(units) })
        });
        lines.collect()
    }

    /// The sum of the bill, in USD.
    pub fn usd(&self) -> f64 {
        self.bill().iter().map(|line| line.usd).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bill_has_every_unit_once() {
        let mut one = Counters::default();
        one.add(Usage::SqsRequests, 1_000_000.0);
        one.add(Usage::S3Writes, 0.0);
        let mut all = Counters::default();
        all.add_all(&one, 2.5);
        all.add(Usage::KmsKeyMonths, 1.0);
        assert_eq!(all.bill().len(), 2);
        assert!((all.usd() - (2.5 * 0.40 + 1.0)).abs() < 1e-9);
        let text = serde_json::to_string(&all).unwrap();
        assert_eq!(serde_json::from_str::<Counters>(&text).unwrap(), all);
        assert!(serde_json::from_str::<Counters>(r#"{"sqs_request": 1}"#).is_err(), "a misspelled name");
    }
}
