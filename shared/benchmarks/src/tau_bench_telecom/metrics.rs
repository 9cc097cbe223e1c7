//! pass^k, ends of conversations, and what the user simulator used.

use std::collections::BTreeMap;

use bench_domain::statistics::mean_pass_hat_k;
use serde_json::{Map, Value, json};

use super::TRIALS;
use crate::metrics::{FinishedSample, Metrics};

/// Figures over all conversations of a run.
#[derive(Debug, Default)]
pub(super) struct Conversations {
    /// Number of planned tasks.
    planned: u64,
    /// Number of planned samples of each.
    trials: u64,
    tasks: BTreeMap<u32, Task>,
    terminations: BTreeMap<String, u64>,
    user_tokens: u64,
    user_cost_usd: f64,
}

/// Samples of a task.
#[derive(Debug, Default)]
struct Task {
    graded: u64,
    correct: u64,
}

impl Metrics for Conversations {
    fn begin(&mut self, items: u64, samples_per_item: u32) {
        (self.planned, self.trials) = (items, u64::from(samples_per_item));
    }

    fn add(&mut self, sample: &FinishedSample<'_>) {
        let verdict = sample.verdict;
        let task = self.tasks.entry(sample.item).or_default();
        task.graded += u64::from(verdict.outcome.is_graded());
        task.correct += u64::from(verdict.is_correct() == Some(true));
        if let Some(end) = verdict.detail.get("termination").and_then(Value::as_str) {
            *self.terminations.entry(end.to_owned()).or_default() += 1;
        }
        let tokens = |name: &str| verdict.detail.get(name).and_then(Value::as_u64).unwrap_or(0);
        self.user_tokens = self
            .user_tokens
            .saturating_add(tokens("user_input_tokens"))
            .saturating_add(tokens("user_output_tokens"));
        let cost = verdict.detail.get("user_cost_usd").and_then(Value::as_f64).unwrap_or(0.0);
        self.user_cost_usd += if cost.is_finite() { cost.max(0.0) } else { 0.0 };
    }

    /// pass^k is the mean over the tasks whose planned samples are all graded. Tasks with a missing sample aren't counted, and
    /// their number is reported.
    fn finish(&self, _planned: u64) -> Map<String, Value> {
        let whole: Vec<(u64, u64)> = self
            .tasks
            .values()
            .filter(|task| task.graded >= self.trials.max(1))
            .map(|task| (task.graded, task.correct))
            .collect();
        let mut figures = Map::new();
        for k in 1..=u64::from(TRIALS).min(self.trials) {
            let value = mean_pass_hat_k(&whole, k).map(|estimate| estimate.value);
            figures.insert(format!("pass_hat_{k}"), json!(value));
        }
        figures.insert("tasks_counted".to_owned(), json!(whole.len()));
        figures.insert("tasks_left_out".to_owned(), json!(self.planned.saturating_sub(whole.len() as u64)));
        figures.insert("terminations".to_owned(), json!(self.terminations));
        figures.insert("user_tokens".to_owned(), json!(self.user_tokens));
        figures.insert("user_cost_usd".to_owned(), json!(self.user_cost_usd));
        figures
    }
}

#[cfg(test)]
mod tests {
    use bench_domain::{Code, Verdict};

    use super::*;

    #[test]
    fn a_task_with_a_missing_sample_is_not_counted() {
        let mut metrics = Conversations::default();
        metrics.begin(3, 4);
        let mut add = |item, outcome: Option<bool>| {
            let mut verdict = match outcome {
                Some(true) => Verdict::correct(""),
                Some(false) => Verdict::incorrect("", "no"),
                None => Verdict::ungraded(Code::SandboxFailed, "lost"),
            };
            verdict.detail.insert("user_input_tokens".to_owned(), 5.into());
            if outcome.is_some() {
                verdict.detail.insert("termination".to_owned(), "user_stop".into());
            }
            metrics.add(&FinishedSample { item, group: None, verdict: &verdict });
        };
        for (item, right) in [(0, 4), (1, 2)] {
            for trial in 0..4 {
                add(item, Some(trial < right));
            }
        }
        for outcome in [Some(true), Some(true), Some(true), None] {
            add(2, outcome);
        }
        let figures = metrics.finish(12);
        // Two tasks count: 4 of 4 and 2 of 4.
        assert_eq!(figures["pass_hat_1"], json!(0.75));
        assert!((figures["pass_hat_2"].as_f64().unwrap() - (1.0 + 1.0 / 6.0) / 2.0).abs() < 1e-12);
        assert_eq!((&figures["pass_hat_3"], &figures["pass_hat_4"]), (&json!(0.5), &json!(0.5)));
        assert_eq!((&figures["tasks_counted"], &figures["tasks_left_out"]), (&json!(2), &json!(1)));
        assert_eq!(figures["terminations"], json!({ "user_stop": 11 }));
        assert_eq!(figures["user_tokens"], 60);
    }

    #[test]
    fn tasks_of_a_stopped_run_that_never_began_are_left_out() {
        let mut metrics = Conversations::default();
        metrics.begin(5, 2);
        for _ in 0..2 {
            metrics.add(&FinishedSample { item: 3, group: None, verdict: &Verdict::correct("") });
        }
        let figures = metrics.finish(10);
        assert_eq!((&figures["pass_hat_1"], &figures["pass_hat_2"]), (&json!(1.0), &json!(1.0)));
        assert!(!figures.contains_key("pass_hat_3"));
        assert_eq!((&figures["tasks_counted"], &figures["tasks_left_out"]), (&json!(1), &json!(4)));
    }

    #[test]
    fn without_samples_there_are_no_figures() {
        let mut metrics = Conversations::default();
        metrics.begin(2, 1);
        let figures = metrics.finish(2);
        assert_eq!((&figures["pass_hat_1"], &figures["tasks_left_out"]), (&Value::Null, &json!(2)));
        assert_eq!(figures["tasks_counted"], 0);
    }
}
