//! Report of one benchmark of a run, computed from its samples.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::sample::SampleSummary;
use crate::statistics::{
    ClusteredMean, Interval, PassEstimate, Percentiles, clustered_mean, mean_pass_at_k, mean_pass_hat_k,
    percentiles, wilson,
};
use crate::{Cost, ErrorCause, Outcome, OutcomeCounts, Price, ReportedModels, Usage};

/// Result of a benchmark. The score always comes with coverage and the count of every outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchmarkReport {
    /// Mean score of the graded samples; `None` if too few were graded.
    pub score: Option<f64>,
    /// The same for any coverage; `None` only if no sample was graded.
    pub score_of_graded: Option<f64>,
    /// Correct samples / planned samples. Everything that isn't correct counts as wrong, errors included.
    pub accuracy_all: f64,
    /// Graded samples / planned samples, 0 to 1.
    pub coverage: f64,
    /// Minimum coverage for a score.
    pub coverage_min: f64,
    /// Samples planned.
    pub planned: u64,
    /// Samples graded.
    pub graded: u64,
    /// Items planned.
    pub items: u64,
    /// Samples planned per item.
    pub samples_per_item: u32,
    /// Number of samples by outcome.
    pub outcomes: OutcomeCounts,
    /// Causes of the infrastructure-errors, most frequent first. Empty without errors, in reports of older versions,
    /// and if the dataset is gated, because an error text may quote an item.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub error_causes: Vec<ErrorCause>,
    /// Answers that the token limit cut off, correct ones included.
    pub truncated_answers: u64,
    /// Wilson 95% interval of the share of correct samples among the graded ones. It's valid for one sample per item, and
    /// for a single item; otherwise, use `clustered`. `None` if scores can be other than right or wrong.
    pub wilson_95: Option<Interval>,
    /// Mean over items of each item's mean score: every item has the same weight, however many of its samples were
    /// graded. `None` if no sample was graded, and in reports of older versions.
    #[serde(default)]
    pub mean_of_items: Option<f64>,
    /// Mean over graded samples, with a standard error clustered by item.
    pub clustered: Option<ClusteredMean>,
    /// Unbiased pass@k, by k.
    #[serde(default, deserialize_with = "by_k")]
    pub pass_at: BTreeMap<u32, PassEstimate>,
    /// Unbiased pass^k, by k.
    #[serde(default, deserialize_with = "by_k")]
    pub pass_hat: BTreeMap<u32, PassEstimate>,
    /// Tokens of all answers.
    pub usage: Usage,
    /// Number of answers without token counts from the provider. 0 for runs that ask no model.
    pub without_usage: u64,
    /// Cost of the tokens, if the provider's price is known.
    pub cost: Option<Cost>,
    /// All tokens that count toward a budget, for runs with a budget and if the provider didn't count all tokens. In
    /// addition to `usage`, they include estimates for answers that the provider didn't count, and attempts without an
    /// answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Usage>,
    /// Tokens of all replies of the judge that its provider counted; `None` if no judge was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge_usage: Option<Usage>,
    /// Cost of the judge's tokens, if its provider's price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge_cost: Option<Cost>,
    /// All tokens of the judge that count toward a budget; see `spent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge_spent: Option<Usage>,
    /// All tokens of the user simulator; `None` if the benchmark has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_spent: Option<Usage>,
    /// Cost of the user simulator's tokens, if its provider's price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_cost: Option<Cost>,
    /// Milliseconds from the request to the end of the answer.
    pub latency_ms: Option<Percentiles<u64>>,
    /// Counts and score of each group of items.
    #[serde(default)]
    pub groups: BTreeMap<String, GroupReport>,
    /// Model ids that the provider reported; `None` in reports of older versions, or if they have more than 4 KiB. Samples
    /// have them, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported_models: Option<ReportedModels>,
    /// Additional results of the benchmark's protocol.
    #[serde(default)]
    pub extra: serde_json::Map<String, serde_json::Value>,
}

/// Deserializes a map with numeric keys. Inside a tagged enum, serde passes keys as JSON strings.
fn by_k<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<u32, PassEstimate>, D::Error> {
    let by_text = BTreeMap::<String, PassEstimate>::deserialize(deserializer)?;
    by_text.into_iter().map(|(k, value)| Ok((k.parse().map_err(serde::de::Error::custom)?, value))).collect()
}

/// The result of one group of items, such as a category.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct GroupReport {
    /// Number of samples that ended.
    pub ended: u64,
    /// Number of those that were graded.
    pub graded: u64,
    /// Number of those that were correct.
    pub correct: u64,
    /// Mean score of the graded samples; `None` if there are none.
    pub score: Option<f64>,
}

impl BenchmarkReport {
    /// Adds the cost of the judge's tokens at its price.
    #[must_use]
    pub fn with_judge_price(self, price: Option<Price>) -> Self {
        let judge_cost = price.zip(self.judge_usage).map(|(price, usage)| price.cost(usage));
        Self { judge_cost, ..self }
    }

    /// Removes the interval of the share of right answers, for a benchmark whose scores aren't only 1 and 0: that share
    /// isn't its score.
    #[must_use]
    pub fn without_share_interval(self) -> Self {
        Self { wilson_95: None, ..self }
    }

    /// Limits the interval around the mean to 0 to 1, for a benchmark whose scores are in that range. By Student's t
    /// alone, the interval exceeds the range if there are few items.
    #[must_use]
    pub fn with_clamped_interval(mut self) -> Self {
        if let Some(interval) = self.clustered.as_mut().and_then(|mean| mean.interval.as_mut()) {
            interval.low = interval.low.clamp(0.0, 1.0);
            interval.high = interval.high.clamp(0.0, 1.0);
        }
        self
    }

    /// Adds the causes of the infrastructure-errors.
    #[must_use]
    pub fn with_error_causes(self, error_causes: Vec<ErrorCause>) -> Self {
        Self { error_causes, ..self }
    }

    /// Adds the model ids that the provider reported, unless they have more than 4 KiB.
    #[must_use]
    pub fn with_reported_models(self, models: ReportedModels) -> Self {
        Self { reported_models: models.fits_report().then_some(models), ..self }
    }

    /// Returns true if every planned sample has ended.
    pub fn is_complete(&self) -> bool {
        self.outcomes.total() >= self.planned
    }

    /// Returns the number of samples that ended with an infrastructure-error.
    pub fn infrastructure_errors(&self) -> u64 {
        self.outcomes.get(Outcome::InfrastructureError)
    }

    /// Returns the reason why the benchmark failed, if too few of its samples were graded.
    pub fn failure(&self) -> Option<String> {
        if self.score.is_some() {
            return None;
        }
        let percent = |share: f64| format!("{:.1}%", share * 100.0);
        let missing: Vec<String> = self
            .outcomes
            .iter()
            .filter(|(outcome, count)| !outcome.is_graded() && *count > 0)
            .map(|(outcome, count)| format!("{count} {outcome}"))
            .collect();
        Some(format!(
            "only {} of {} samples were graded (coverage {}, needed {}): {}",
            self.graded,
            self.planned,
            percent(self.coverage),
            percent(self.coverage_min),
            if missing.is_empty() { "the rest did not end".to_owned() } else { missing.join(", ") },
        ))
    }
}

/// Builds the report from samples that are added one by one, in any order.
///
/// Keeps a few numbers per sample, not the samples.
#[derive(Debug, Default)]
pub struct ReportBuilder {
    /// True for a run that asks no model: no provider could have counted its tokens.
    asks_no_model: bool,
    outcomes: OutcomeCounts,
    score_sum: f64,
    truncated_answers: u64,
    usage: Usage,
    without_usage: u64,
    judge_usage: Option<Usage>,
    latencies_ms: Vec<u64>,
    /// Scores of each item's graded samples, by the item's position.
    by_item: BTreeMap<u32, ItemScores>,
    groups: BTreeMap<String, (GroupReport, f64)>,
}

#[derive(Debug, Default)]
struct ItemScores {
    scores: Vec<f64>,
    correct: u64,
}

impl ReportBuilder {
    /// Creates a builder for a run that asks a model for its answers, or for one that doesn't.
    pub fn new(asks_model: bool) -> Self {
        Self { asks_no_model: !asks_model, ..Self::default() }
    }

    /// Counts a finished sample.
    pub fn add(&mut self, sample: &SampleSummary) {
        self.outcomes.add(sample.outcome);
        self.truncated_answers += u64::from(sample.truncated);
        self.latencies_ms.extend(sample.latency_ms);
        match sample.usage {
            Some(usage) => self.usage = self.usage.plus(usage),
            None => self.without_usage += u64::from(sample.latency_ms.is_some() && !self.asks_no_model),
        }
        if let Some(usage) = sample.judge_usage {
            self.judge_usage = Some(self.judge_usage.unwrap_or_default().plus(usage));
        }
        let correct = u64::from(sample.outcome == Outcome::Correct);
        if let Some(score) = sample.score {
            self.score_sum += score;
            let item = self.by_item.entry(sample.position.item).or_default();
            item.scores.push(score);
            item.correct += correct;
        }
        if let Some(name) = &sample.group {
            let (group, sum) = self.groups.entry(name.clone()).or_default();
            group.ended += 1;
            if let Some(score) = sample.score {
                group.graded += 1;
                group.correct += correct;
                *sum += score;
            }
        }
    }

    /// Builds the report over `items` planned items with `samples_per_item` samples each. `price` is the model's.
    #[allow(clippy::cast_precision_loss)] // counts are far below 2^53
    pub fn finish(
        mut self,
        items: u64,
        samples_per_item: u32,
        coverage_min: f64,
        price: Option<Price>,
    ) -> BenchmarkReport {
        let planned = items * u64::from(samples_per_item);
        let graded = self.outcomes.graded();
        let correct = self.outcomes.get(Outcome::Correct);
        let share = |part: f64, whole: u64| if whole == 0 { 0.0 } else { part / whole as f64 };
        let coverage = share(graded as f64, planned);
        let score_of_graded = (graded > 0).then(|| share(self.score_sum, graded));
        let clusters: Vec<&[f64]> = self.by_item.values().map(|item| item.scores.as_slice()).collect();
        let counts: Vec<(u64, u64)> =
            self.by_item.values().map(|item| (item.scores.len() as u64, item.correct)).collect();
        let ks = pass_ks(samples_per_item);
        BenchmarkReport {
            score: score_of_graded.filter(|_| coverage >= coverage_min),
            score_of_graded,
            accuracy_all: share(correct as f64, planned),
            coverage,
            coverage_min,
            planned,
            graded,
            items,
            samples_per_item,
            outcomes: self.outcomes,
            error_causes: Vec::new(),
            truncated_answers: self.truncated_answers,
            wilson_95: wilson(correct, graded),
            mean_of_items: mean_of_means(&clusters),
            clustered: clustered_mean(&clusters),
            pass_at: ks.iter().filter_map(|k| Some((*k, mean_pass_at_k(&counts, u64::from(*k))?))).collect(),
            pass_hat: ks
                .iter()
                .filter_map(|k| Some((*k, mean_pass_hat_k(&counts, u64::from(*k))?)))
                .collect(),
            usage: self.usage,
            without_usage: self.without_usage,
            cost: price.map(|price| price.cost(self.usage)),
            spent: None,
            judge_usage: self.judge_usage,
            judge_cost: None,
            judge_spent: None,
            user_spent: None,
            user_cost: None,
            latency_ms: percentiles(&mut self.latencies_ms),
            groups: self
                .groups
                .into_iter()
                .map(|(name, (group, sum))| {
                    let score = (group.graded > 0).then(|| share(sum, group.graded));
                    (name, GroupReport { score, ..group })
                })
                .collect(),
            reported_models: None,
            extra: serde_json::Map::new(),
        }
    }
}

/// Computes the mean of the clusters' means. Every cluster has at least one score.
#[allow(clippy::cast_precision_loss)] // counts are far below 2^53
fn mean_of_means(clusters: &[&[f64]]) -> Option<f64> {
    let means = clusters.iter().map(|scores| scores.iter().sum::<f64>() / scores.len() as f64);
    (!clusters.is_empty()).then(|| means.sum::<f64>() / clusters.len() as f64)
}

/// Returns the values of k for which pass@k is reported: powers of two below the number of samples, and that number.
fn pass_ks(samples: u32) -> Vec<u32> {
    if samples < 2 {
        return Vec::new();
    }
    let mut ks: Vec<u32> = (0..32).map(|power| 1_u32 << power).take_while(|k| *k < samples).collect();
    ks.push(samples);
    ks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Position;

    fn sample(item: u32, sample: u32, outcome: Outcome) -> SampleSummary {
        let score = outcome.is_graded().then_some(if outcome == Outcome::Correct { 1.0 } else { 0.0 });
        SampleSummary {
            position: Position { item, sample },
            item_id: item.to_string(),
            outcome,
            score,
            truncated: false,
            latency_ms: Some(100 + u64::from(item)),
            usage: Some(Usage::counted(10, 5, 0)),
            group: Some(if item.is_multiple_of(2) { "even" } else { "odd" }.to_owned()),
            judge_usage: None,
        }
    }

    fn report(outcomes: &[Outcome], coverage_min: f64) -> BenchmarkReport {
        let mut builder = ReportBuilder::default();
        for (item, outcome) in outcomes.iter().enumerate() {
            builder.add(&sample(u32::try_from(item).unwrap(), 0, *outcome));
        }
        builder.finish(outcomes.len() as u64, 1, coverage_min, None)
    }

    #[test]
    fn an_error_lowers_the_coverage_and_not_the_score() {
        use Outcome::{Correct, Incorrect, InfrastructureError, TooLong};
        let report = report(&[Correct, Correct, Incorrect, Incorrect, InfrastructureError, TooLong], 0.5);
        assert_eq!(report.score, Some(0.5));
        assert_eq!(report.coverage, 4.0 / 6.0);
        assert_eq!(report.accuracy_all, 2.0 / 6.0);
        assert_eq!(report.failure(), None);
    }

    #[test]
    fn the_interval_of_shares_stays_within_them() {
        use Outcome::{Correct, Incorrect};
        let report = report(&[Correct, Incorrect], 0.9);
        let interval = |report: &BenchmarkReport| report.clustered.unwrap().interval.unwrap();
        assert!(interval(&report).low < 0.0 && interval(&report).high > 1.0);
        let cut = report.clone().with_clamped_interval();
        assert_eq!((interval(&cut).low, interval(&cut).high), (0.0, 1.0));
        let (before, after) = (report.clustered.unwrap(), cut.clustered.unwrap());
        assert_eq!((before.mean, before.standard_error), (after.mean, after.standard_error));
    }

    #[test]
    fn what_counts_as_wrong_lowers_the_score() {
        use Outcome::{Correct, NoAnswer, Refused, Truncated, Unparsed};
        let report = report(&[Correct, NoAnswer, Unparsed, Truncated, Refused], 0.9);
        assert_eq!((report.score, report.coverage), (Some(0.2), 1.0));
    }

    #[test]
    fn low_coverage_gives_no_score() {
        use Outcome::{Correct, InfrastructureError};
        let mut outcomes = vec![Correct; 89];
        outcomes.extend([InfrastructureError; 11]);
        let report = report(&outcomes, 0.9);
        assert_eq!(report.score, None);
        assert_eq!(report.score_of_graded, Some(1.0));
        let failure = report.failure().unwrap();
        assert!(failure.contains("89 of 100") && failure.contains("11 infrastructure-error"), "{failure}");
    }

    #[test]
    fn several_samples_of_an_item_are_one_cluster() {
        let mut builder = ReportBuilder::default();
        for (item, right) in [(0, 4), (1, 2), (2, 0)] {
            for n in 0..4 {
                let outcome = if n < right { Outcome::Correct } else { Outcome::Incorrect };
                builder.add(&sample(item, n, outcome));
            }
        }
        let report = builder.finish(3, 4, 0.9, None);
        assert_eq!(report.score, Some(0.5));
        assert_eq!(report.clustered.as_ref().map(|mean| (mean.items, mean.samples)), Some((3, 12)));
        assert_eq!(report.pass_at.keys().copied().collect::<Vec<_>>(), [1, 2, 4]);
        assert!((report.pass_at[&4].value - 2.0 / 3.0).abs() < 1e-12);
        assert!((report.pass_hat[&4].value - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(report.groups["even"].ended, 8);
        assert_eq!(report.mean_of_items, Some(0.5));
    }

    #[test]
    fn every_item_counts_alike_in_the_mean_of_means() {
        use Outcome::{Correct, Incorrect, InfrastructureError};
        let mut builder = ReportBuilder::default();
        for (item, outcomes) in [[Correct, Correct], [Incorrect, InfrastructureError]].into_iter().enumerate()
        {
            for (n, outcome) in outcomes.into_iter().enumerate() {
                builder.add(&sample(u32::try_from(item).unwrap(), u32::try_from(n).unwrap(), outcome));
            }
        }
        let report = builder.finish(2, 2, 0.5, None);
        assert_eq!((report.score, report.mean_of_items), (Some(2.0 / 3.0), Some(0.5)));
    }

    #[test]
    fn the_judges_tokens_are_reported_separately() {
        let plain = report(&[Outcome::Correct], 0.5);
        assert_eq!((plain.judge_usage, plain.clone().with_judge_price(None).judge_cost), (None, None));
        let text = serde_json::to_string(&plain).unwrap();
        assert!(!text.contains("judge"), "a run without a judge says nothing of one");
        let mut builder = ReportBuilder::default();
        for item in 0..3 {
            let judge_usage = Some(Usage::counted(1_000, 10, 0));
            builder.add(&SampleSummary { judge_usage, ..sample(item, 0, Outcome::Correct) });
        }
        let price = Price { input_per_million_usd: 1_000.0, output_per_million_usd: 0.0 };
        let report = builder.finish(3, 1, 0.9, None).with_judge_price(Some(price));
        assert_eq!((report.usage.input_tokens, report.cost), (30, None));
        assert_eq!(report.judge_usage.unwrap().total(), 3_030);
        assert_eq!(report.judge_cost.unwrap().total_usd(), 3.0);
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<BenchmarkReport>(&text).unwrap(), report);
    }

    #[test]
    fn only_a_model_can_omit_token_counts() {
        for (provider, expected) in [("openrouter", 1), ("replay", 1), ("oracle", 0), ("nop", 0)] {
            let model = crate::testing::model(&format!("{provider}/m"));
            let mut builder = ReportBuilder::new(model.is_asked());
            builder.add(&SampleSummary { usage: None, ..sample(0, 0, Outcome::Correct) });
            builder.add(&SampleSummary {
                usage: None,
                latency_ms: None,
                ..sample(1, 0, Outcome::InfrastructureError)
            });
            assert_eq!(builder.finish(2, 1, 0.5, None).without_usage, expected, "{provider}");
        }
    }

    #[test]
    fn a_report_survives_json() {
        let report = report(&[Outcome::Correct, Outcome::TooLong], 0.5);
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<BenchmarkReport>(&text).unwrap(), report);
    }

    #[test]
    fn a_report_survives_json_within_the_state_of_its_benchmark() {
        let mut builder = ReportBuilder::default();
        (0..4).for_each(|n| builder.add(&sample(0, n, Outcome::Correct)));
        let now = crate::Timestamp::from_micros(1);
        let running = crate::BenchmarkState::Pending.start(now).unwrap();
        let state = running.close(now, builder.finish(1, 4, 0.9, None)).unwrap();
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<crate::BenchmarkState>(&text).unwrap(), state);
    }

    #[test]
    fn a_run_without_planned_items_has_no_score() {
        let report = ReportBuilder::default().finish(0, 1, 0.9, None);
        assert_eq!((report.score, report.coverage), (None, 0.0));
    }
}
