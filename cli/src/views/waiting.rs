//! Wait of a run for its provider.

use bench_domain::Timestamp;
use serde::{Deserialize, Serialize};

use crate::causes::readable;
use crate::format;

/// Wait of a run for a provider that limits the rate of requests or isn't available.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Waiting {
    /// Reason: `rate_limited` or `unavailable`.
    pub(crate) kind: String,
    /// Role of the provider: `model` or `judge`.
    #[serde(default)]
    pub(crate) waits_for: String,
    #[serde(default)]
    pub(crate) since: Option<Timestamp>,
    /// Earliest time of the next request.
    pub(crate) until: Timestamp,
    /// Samples that wait; `None` if the number isn't known.
    #[serde(default)]
    pub(crate) waiting_samples: Option<u64>,
    /// Message of the provider.
    #[serde(default)]
    pub(crate) message: Option<String>,
}

impl Waiting {
    /// Names the reason in a word or two, as in a table.
    pub(crate) fn reason(&self) -> String {
        let reason = match self.kind.as_str() {
            "rate_limited" => "rate limited",
            "unavailable" => "provider unavailable",
            other => other,
        };
        match self.waits_for.as_str() {
            "judge" => format!("judge: {reason}"),
            "user_model" => format!("user model: {reason}"),
            _ => reason.to_owned(),
        }
    }

    /// Describes the wait: `rate limited, next request in 59 m 0 s, 28 waiting`.
    pub(crate) fn describe(&self, now: Timestamp) -> String {
        let left = self.until.since(now);
        let next = match left.is_zero() {
            true => "asking again".to_owned(),
            false => format!("next request in {}", format::seconds(left.as_secs_f64().ceil())),
        };
        let waiting = self.waiting_samples.map(|samples| format!(", {} waiting", format::count(samples)));
        format!("{}, {next}{}", self.reason(), waiting.unwrap_or_default())
    }

    /// Describes the wait with what the provider said.
    pub(crate) fn describe_with_message(&self, now: Timestamp) -> String {
        match &self.message {
            Some(message) => format!("{} ({})", self.describe(now), readable(message)),
            None => self.describe(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_described_in_one_line() {
        let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
        let wait: Waiting = serde_json::from_value(serde_json::json!({
            "kind": "rate_limited", "waits_for": "model", "until": at(3_600), "waiting_samples": 28,
            "message": "HTTP 429: slow down",
        }))
        .unwrap();
        assert_eq!(wait.describe(at(60)), "rate limited, next request in 59 m 0 s, 28 waiting");
        assert_eq!(
            wait.describe_with_message(at(3_590)),
            "rate limited, next request in 10 s, 28 waiting (HTTP 429: slow down)"
        );
        let user = Waiting { waits_for: "user_model".into(), ..wait.clone() };
        assert_eq!(user.describe(at(60)), "user model: rate limited, next request in 59 m 0 s, 28 waiting");
        let judge = Waiting {
            kind: "unavailable".into(),
            waits_for: "judge".into(),
            waiting_samples: None,
            message: None,
            ..wait
        };
        assert_eq!(judge.describe(at(3_601)), "judge: provider unavailable, asking again");
    }
}
