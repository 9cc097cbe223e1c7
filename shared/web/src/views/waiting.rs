//! Waits of a run for its provider.

use std::time::Duration;

use bench_domain::{ModelRole, Timestamp};
use bench_state::ProviderWait;
use serde::Serialize;
use utoipa::ToSchema;

use super::RunBenchmarkView;

/// Time after the end of a wait during which the run still counts as waiting: its next requests are on their way.
const REQUEST_TIME: Duration = Duration::from_secs(60);
/// Minimum time without a finished sample after which a run has no estimate any more.
const STALLED_AFTER: Duration = Duration::from_secs(60);
/// Number of times that the average time per sample must pass without a finished sample before a run has no estimate
/// any more.
const STALLED_AFTER_SAMPLES: u32 = 5;

/// Wait of a run for its provider, which limits the rate of requests or isn't available.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct WaitingView {
    /// Reason: `rate_limited` or `unavailable`.
    pub kind: &'static str,
    /// Role of the provider: `model`, `judge` or `user_model`.
    pub waits_for: &'static str,
    /// Time at which the run began to wait.
    #[schema(value_type = String, format = DateTime)]
    pub since: Timestamp,
    /// Earliest time of the next request.
    #[schema(value_type = String, format = DateTime)]
    pub until: Timestamp,
    /// Open samples, which need an answer; requests that were sent before the wait may still be answered. Null while the
    /// run waits for its judge, since the model is still asked.
    pub waiting_samples: Option<u64>,
    /// Message of the provider; null if another run met the wait first.
    pub message: Option<String>,
}

impl WaitingView {
    /// Creates the view of a wait; `None` if it is over.
    pub(super) fn new(wait: &ProviderWait, benchmarks: &[RunBenchmarkView], now: Timestamp) -> Option<Self> {
        if wait.until.plus(REQUEST_TIME) < now {
            return None;
        }
        let open = benchmarks
            .iter()
            .map(|benchmark| benchmark.planned_samples.saturating_sub(benchmark.completed_samples))
            .fold(0, u64::saturating_add);
        Some(Self {
            kind: wait.kind.as_str(),
            waits_for: wait.role.as_str(),
            since: wait.since,
            until: wait.until,
            waiting_samples: (wait.role != ModelRole::Judge).then_some(open),
            message: wait.message.clone(),
        })
    }
}

/// Returns true if no sample has finished for so long that the pace until then says nothing about the rest.
///
/// `started_at` is the start of the first sample, `progress_at` about the end of the last of `completed` samples.
pub(super) fn is_stalled(
    started_at: Timestamp,
    progress_at: Timestamp,
    completed: u64,
    now: Timestamp,
) -> bool {
    let per_sample = progress_at.since(started_at).div_f64(completed.max(1) as f64);
    now.since(progress_at) > STALLED_AFTER.max(per_sample * STALLED_AFTER_SAMPLES)
}

#[cfg(test)]
mod tests {
    use bench_state::WaitKind;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn a_wait_is_shown_until_its_next_requests_are_answered() {
        let wait = ProviderWait {
            kind: WaitKind::RateLimited,
            role: ModelRole::Model,
            since: at(0),
            until: at(100),
            announced_until: at(100),
            message: Some("slow down".to_owned()),
        };
        let view = WaitingView::new(&wait, &[], at(50)).unwrap();
        assert_eq!((view.kind, view.waits_for, view.waiting_samples), ("rate_limited", "model", Some(0)));
        assert!(WaitingView::new(&wait, &[], at(160)).is_some());
        assert_eq!(WaitingView::new(&wait, &[], at(161)), None);
        for (role, name, samples) in
            [(ModelRole::Judge, "judge", None), (ModelRole::UserModel, "user_model", Some(0))]
        {
            let view = WaitingView::new(&ProviderWait { role, ..wait.clone() }, &[], at(50)).unwrap();
            assert_eq!((view.waits_for, view.waiting_samples), (name, samples));
        }
    }

    #[test]
    fn a_run_is_stalled_relative_to_its_pace() {
        assert!(!is_stalled(at(0), at(10), 100, at(70)));
        assert!(is_stalled(at(0), at(10), 100, at(71)));
        // Three minutes per sample.
        assert!(!is_stalled(at(0), at(360), 2, at(360 + 900)));
        assert!(is_stalled(at(0), at(360), 2, at(360 + 901)));
    }
}
