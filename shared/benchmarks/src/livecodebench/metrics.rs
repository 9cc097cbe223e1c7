//! pass@k, as the official program prints it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::metrics::{FinishedSample, Metrics};

/// Reported values of k.
const KS: [u32; 2] = [1, 5];

/// Answers to one problem.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Problem {
    group: Option<String>,
    /// Number of graded answers.
    answers: u32,
    /// Number of right answers.
    correct: u32,
}

/// Metric with a few bytes of state per problem.
#[derive(Debug, Default)]
pub(super) struct PassAtK {
    problems: BTreeMap<u32, Problem>,
}

/// Returns the probability that at least one of k answers is right, if they are drawn from n answers with c right ones.
fn pass_at_k(n: u32, c: u32, k: u32) -> f64 {
    let wrong = n.saturating_sub(c);
    if wrong < k {
        return 1.0;
    }
    1.0 - (wrong + 1..=n).map(|i| 1.0 - f64::from(k) / f64::from(i)).product::<f64>()
}

/// Returns C(n, k), the number of ways to draw k of n; `None` on overflow.
fn ways(n: u32, k: u32) -> Option<u128> {
    if k > n {
        return Some(0);
    }
    // Each intermediate product is itself a binomial coefficient, so the division has no remainder.
    (1..=k).try_fold(1_u128, |ways, i| Some(ways.checked_mul(u128::from(n - k + i))? / u128::from(i)))
}

/// Returns the mean over problems that all have n answers, computed from integers, so that a half is exactly 0.5
/// instead of a sum of rounded parts. Returns `None` if the numbers of answers differ, or on overflow.
#[allow(clippy::cast_precision_loss)] // numbers beyond 2^53 are rounded once
fn exact_mean(problems: &[&Problem], k: u32) -> Option<f64> {
    let n = problems.first()?.answers;
    let all = ways(n, k)?;
    let (mut right, mut total) = (0_u128, 0_u128);
    for problem in problems {
        if problem.answers != n {
            return None;
        }
        right = right.checked_add(all.checked_sub(ways(n.saturating_sub(problem.correct), k)?)?)?;
        total = total.checked_add(all)?;
    }
    (total > 0).then(|| right as f64 / total as f64)
}

/// Returns the mean over problems; `None` without problems, or if a problem has fewer than k answers.
fn mean<'a>(problems: impl Iterator<Item = &'a Problem>, k: u32) -> Option<f64> {
    let problems: Vec<&Problem> = problems.collect();
    if problems.iter().any(|problem| problem.answers < k) {
        return None;
    }
    let count = u32::try_from(problems.len()).ok().filter(|count| *count > 0)?;
    let rounded = || {
        let chances = problems.iter().map(|problem| pass_at_k(problem.answers, problem.correct, k));
        chances.sum::<f64>() / f64::from(count)
    };
    Some(exact_mean(&problems, k).unwrap_or_else(rounded))
}

impl Metrics for PassAtK {
    fn add(&mut self, sample: &FinishedSample<'_>) {
        let Some(correct) = sample.verdict.is_correct() else { return };
        let problem = self.problems.entry(sample.item).or_default();
        if problem.group.is_none() {
            problem.group = sample.group.map(str::to_owned);
        }
        problem.answers += 1;
        problem.correct += u32::from(correct);
    }

    fn finish(&self, _planned: u64) -> Map<String, Value> {
        let mut metrics = Map::new();
        for k in KS {
            let Some(all) = mean(self.problems.values(), k) else { continue };
            metrics.insert(format!("pass@{k}"), json!(all));
            let mut groups: BTreeMap<&str, Vec<&Problem>> = BTreeMap::new();
            for problem in self.problems.values() {
                if let Some(group) = &problem.group {
                    groups.entry(group).or_default().push(problem);
                }
            }
            let by_group: Map<String, Value> = groups
                .into_iter()
                .filter_map(|(group, problems)| {
                    Some((group.to_owned(), json!(mean(problems.into_iter(), k)?)))
                })
                .collect();
            if !by_group.is_empty() {
                metrics.insert(format!("pass@{k}_by_difficulty"), Value::Object(by_group));
            }
        }
        metrics
    }
}

#[cfg(test)]
mod tests {
    use bench_domain::{Code, Verdict};
    use proptest::prelude::*;

    use super::*;

    fn vectors() -> Value {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/vectors/livecodebench_text.json");
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    }

    fn chance(n: u32, c: u32, k: u32) -> f64 {
        mean([Problem { group: None, answers: n, correct: c }].iter(), k).unwrap()
    }

    fn add_sample(metrics: &mut PassAtK, item: u32, group: &str, correct: bool) {
        let verdict = if correct { Verdict::correct("x") } else { Verdict::incorrect("x", "No.") };
        metrics.add(&FinishedSample { item, group: Some(group), verdict: &verdict });
    }

    #[test]
    fn single_problems_match_the_official_figures() {
        let all = vectors();
        let cases = all["pass_at_k"].as_array().unwrap();
        assert_eq!(cases.len(), 14);
        for case in cases {
            let number = |name: &str| u32::try_from(case[name].as_u64().unwrap()).unwrap();
            let found = chance(number("n"), number("c"), number("k"));
            let value = case["value"].as_f64().unwrap();
            assert!((found - value).abs() < 1e-12, "{case}: {found}");
        }
    }

    #[test]
    fn means_match_the_official_ones() {
        let all = vectors();
        let mut metrics = PassAtK::default();
        for (problem, answers) in all["aggregate"]["results"].as_object().unwrap() {
            for results in answers.as_array().unwrap() {
                let passes =
                    |result: &Value| *result == json!(true) || result.as_f64().is_some_and(|n| n > 0.0);
                let correct = results.as_array().unwrap().iter().all(passes);
                add_sample(&mut metrics, problem.parse().unwrap(), "easy", correct);
            }
        }
        let official = &all["aggregate"]["metrics"];
        assert_eq!(metrics.finish(10)["pass@1"], official["pass@1"]);
        assert_eq!(json!(mean(metrics.problems.values(), 2)), official["pass@2"]);
        for (problem, value) in official["detail"]["pass@2"].as_object().unwrap() {
            let problem = &metrics.problems[&problem.parse().unwrap()];
            assert_eq!(json!(chance(problem.answers, problem.correct, 2)), *value);
        }
    }

    proptest! {
        #[test]
        fn pass_at_k_is_a_growing_probability(n in 1_u32..40, c in 0_u32..40, k in 1_u32..40) {
            let (c, k) = (c.min(n), k.min(n));
            let found = chance(n, c, k);
            prop_assert!((0.0..=1.0).contains(&found));
            prop_assert!(c == n || chance(n, c + 1, k) >= found);
            prop_assert!(k == n || chance(n, c, k + 1) >= found);
            prop_assert_eq!(chance(n, c, 1), f64::from(c) / f64::from(n));
            prop_assert!((found - pass_at_k(n, c, k)).abs() < 1e-12);
        }

        #[test]
        fn the_exact_mean_agrees_with_the_rounded_one(problems in prop::collection::vec((1_u32..12, 0_u32..12), 1..20)) {
            let problems: Vec<Problem> = problems
                .into_iter()
                .map(|(answers, correct)| Problem { group: None, answers, correct: correct.min(answers) })
                .collect();
            let sum: f64 = problems.iter().map(|it| pass_at_k(it.answers, it.correct, 1)).sum();
            let count = f64::from(u32::try_from(problems.len()).unwrap());
            prop_assert!((mean(problems.iter(), 1).unwrap() * count - sum).abs() < 1e-12);
        }
    }

    #[test]
    fn means_are_exact() {
        for (answers, correct, value) in [(10, [3, 7], 0.5), (10, [1, 2], 0.15), (6, [1, 4], 5.0 / 12.0)] {
            let problems = correct.map(|correct| Problem { group: None, answers, correct });
            assert_eq!(mean(problems.iter(), 1), Some(value));
        }
        assert_eq!(mean([Problem { group: None, answers: 4, correct: 4 }].iter(), 5), None);
        assert_eq!(mean([].iter(), 1), None);
        assert_eq!(chance(1_000, 500, 1), 0.5);
    }

    #[test]
    fn ungraded_samples_do_not_count() {
        let mut metrics = PassAtK::default();
        for at in 0..5 {
            add_sample(&mut metrics, 0, "easy", at == 0);
            add_sample(&mut metrics, 1, "hard", false);
        }
        assert_eq!(metrics.finish(12)["pass@5"], json!(0.5));
        let lost = Verdict::ungraded(Code::SandboxFailed, "Lost.");
        metrics.add(&FinishedSample { item: 1, group: Some("hard"), verdict: &lost });
        metrics.add(&FinishedSample { item: 2, group: Some("hard"), verdict: &lost });
        let figures = metrics.finish(12);
        let close = |value: &Value, expected: f64| (value.as_f64().unwrap() - expected).abs() < 1e-12;
        assert!(close(&figures["pass@1"], 0.1));
        assert!(close(&figures["pass@1_by_difficulty"]["easy"], 0.2));
        assert!(close(&figures["pass@1_by_difficulty"]["hard"], 0.0));
        assert_eq!(figures["pass@5_by_difficulty"], json!({"easy": 1.0, "hard": 0.0}));
        add_sample(&mut metrics, 2, "hard", true);
        let figures = metrics.finish(13);
        assert_eq!((figures.contains_key("pass@1"), figures.contains_key("pass@5")), (true, false));
        assert!(PassAtK::default().finish(3).is_empty());
    }
}
