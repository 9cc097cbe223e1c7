//! Attempts at programming tasks, in the folders that the reference harness of their format writes.

use std::path::{Path, PathBuf};

use anyhow::Context;
use bench_domain::RunId;
use serde_json::{Value, json};

use super::summary::summary;
use crate::client::Client;
use crate::episodes::{Episode, safe_path};

/// Name of the list of all attempts.
const ATTEMPTS: &str = "attempts.json";
/// Thinking level of a run that sets none.
pub(super) const NO_LEVEL: &str = "base";

/// A run's attempts: what their folders are named by, and the lists of all of them.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    /// The run, as the API shows it.
    view: Value,
    level: String,
}

impl Attempts {
    /// Reads the run, if any of these samples is an attempt at a programming task.
    pub(super) async fn of(client: &Client, run: RunId, samples: &[Episode]) -> anyhow::Result<Self> {
        if !samples.iter().any(Episode::is_of_code_lab) {
            return Ok(Self::default());
        }
        let view: Value = client.get(&format!("/api/runs/{run}")).await?;
        let budget = view.pointer("/generation/thinking_budget").and_then(Value::as_u64);
        let effort = view.pointer("/generation/reasoning_effort").and_then(Value::as_str).map(plain);
        let level = budget.map(|tokens| tokens.to_string()).or(effort).filter(|level| !level.is_empty());
        let level = level.unwrap_or_else(|| NO_LEVEL.to_owned());
        Ok(Self { view, level })
    }

    /// Returns the folder of an attempt.
    pub(super) fn folder(&self, attempt: &Episode) -> PathBuf {
        let (model, level) = (self.model().replace('/', "_"), &self.level);
        safe_path(&format!("{}__{model}__sample{:02}__lvl_{level}", attempt.task(), attempt.sample))
    }

    /// Returns the name of a list of all attempts, which shows that a folder has those of some run.
    pub(super) fn list(&self) -> Option<&'static str> {
        (!self.view.is_null()).then_some(ATTEMPTS)
    }

    /// Writes the lists of all attempts. Returns the number of files.
    pub(super) fn write(&self, out: &Path, samples: &[Episode]) -> anyhow::Result<u64> {
        let attempts: Vec<&Episode> = samples.iter().filter(|sample| sample.is_of_code_lab()).collect();
        if attempts.is_empty() {
            return Ok(0);
        }
        let lists = [
            (ATTEMPTS, attempts.iter().map(|attempt| self.facts(attempt)).collect()),
            ("manifest.json", attempts.iter().map(|attempt| self.manifest(attempt)).collect()),
            ("summary.json", summary(self, &attempts, out)),
        ];
        for (name, list) in &lists {
            let path = out.join(name);
            let text: String = serde_json::to_string_pretty::<Value>(list)
                .context("could not write the list of attempts")?;
            std::fs::write(&path, format!("{text}\n"))
                .with_context(|| format!("could not write `{}`", path.display()))?;
        }
        Ok(lists.len() as u64)
    }

    /// Returns what is known of an attempt.
    pub(super) fn facts(&self, attempt: &Episode) -> Value {
        json!({
            "task_id": attempt.task(), "model": self.model(), "provider": self.view["provider"],
            "sample_index": attempt.sample, "status": status(attempt), "outcome": attempt.outcome,
            "reason": attempt.reason, "error": attempt.error,
            "verdict": attempt.detail, "thinking_level": self.level, "attempt_dir": self.folder(attempt),
            "api_latency_seconds": attempt.latency_ms.map(|ms| ms as f64 / 1e3),
            "usage": { "prompt_tokens": attempt.input_tokens, "completion_tokens": attempt.output_tokens },
            "cost_usd": self.prices().map(|prices| {
                round_usd(prices.cost(attempt.input_tokens.unwrap_or_default(), attempt.output_tokens.unwrap_or_default()))
            }),
        })
    }

    /// Returns the prices that the run's cost was computed with; `None` if they aren't known, or no tokens were paid.
    pub(super) fn prices(&self) -> Option<Prices> {
        let number = |pointer: &str| self.view.pointer(pointer).and_then(Value::as_f64);
        let each = |cost: &str, tokens: &str| {
            let tokens = number(tokens).filter(|tokens| *tokens > 0.0);
            Some(tokens.map_or(0.0, |tokens| number(cost).unwrap_or_default() / tokens))
                .filter(|price| price.is_finite())
        };
        number("/cost/total_usd").filter(|usd| *usd > 0.0)?;
        Some(Prices {
            prompt: each("/cost/input_usd", "/input_tokens")?,
            completion: each("/cost/output_usd", "/output_tokens")?,
        })
    }

    /// Returns an attempt's place, and how it ended.
    pub(super) fn manifest(&self, attempt: &Episode) -> Value {
        json!({
            "task_id": attempt.task(), "model": self.model(), "provider": self.view["provider"],
            "status": status(attempt), "attempt_dir": self.folder(attempt), "sample_index": attempt.sample,
        })
    }

    /// Returns the run, as the API shows it.
    pub(super) const fn view(&self) -> &Value {
        &self.view
    }

    /// Returns the name of the model.
    pub(super) fn model(&self) -> &str {
        self.view["model"].as_str().unwrap_or_default()
    }

    /// Returns the thinking level.
    pub(super) fn level(&self) -> &str {
        &self.level
    }
}

/// Prices of a token, in US dollars.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Prices {
    pub(super) prompt: f64,
    pub(super) completion: f64,
}

impl Prices {
    #[expect(clippy::cast_precision_loss, reason = "tokens of an attempt")]
    fn cost(self, input_tokens: u64, output_tokens: u64) -> f64 {
        self.prompt * input_tokens as f64 + self.completion * output_tokens as f64
    }
}

/// Rounds an amount as the reference harness does.
pub(super) fn round_usd(usd: f64) -> f64 {
    (usd * 1e6).round() / 1e6
}

/// Returns the reference harness's word for how an attempt ended.
pub(super) fn status(attempt: &Episode) -> &'static str {
    match attempt.outcome.as_deref() {
        Some("correct") => "passed",
        Some("infrastructure-error") => "api_error",
        Some("incorrect") if attempt.detail["verdict"] != "not-applied" => "failed",
        Some(_) => "error",
        None => "pending",
    }
}

/// Replaces each run of characters other than letters, digits, `.`, `_` and `-`.
fn plain(level: &str) -> String {
    let parts = level.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')));
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_those_of_the_run() {
        let prices = |view: Value| Attempts { view, level: NO_LEVEL.to_owned() }.prices();
        let cost = json!({ "input_usd": 0.5, "output_usd": 0.25, "total_usd": 0.75 });
        let known =
            prices(json!({ "cost": cost, "input_tokens": 1_000_000, "output_tokens": 250_000 })).unwrap();
        assert_eq!(known, Prices { prompt: 5e-7, completion: 1e-6 });
        assert!((round_usd(known.cost(2_000, 1_000)) - 0.002).abs() < 1e-9);
        assert_eq!(prices(json!({ "cost": null, "input_tokens": 5, "output_tokens": 5 })), None);
        let free = json!({ "input_usd": 0.0, "output_usd": 0.0, "total_usd": 0.0 });
        assert_eq!(prices(json!({ "cost": free, "input_tokens": 0, "output_tokens": 0 })), None);
    }
}
