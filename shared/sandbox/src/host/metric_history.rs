//! History of metrics: one entry per minute, for two days.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bench_domain::Timestamp;

use super::Metric;

/// Maximum age of entries, in hours.
pub(super) const HOURS_MAX: u64 = 48;
/// Maximum number of entries, at one per minute.
const ENTRIES_MAX: usize = HOURS_MAX as usize * 60;

/// Metrics, oldest first.
#[derive(Debug, Default)]
pub(super) struct MetricHistory(Mutex<VecDeque<Metric>>);

impl MetricHistory {
    /// Adds an entry, and drops the oldest one if there are too many.
    pub(super) fn add(&self, metric: Metric) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= ENTRIES_MAX {
            entries.pop_front();
        }
        entries.push_back(metric);
    }

    /// Returns the entries of the last `hours` before `now`.
    pub(super) fn since(&self, now: Timestamp, hours: u64) -> Vec<Metric> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let window = Duration::from_secs(hours * 3_600);
        entries.iter().filter(|metric| now.since(metric.timestamp) <= window).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_older_than_two_days_are_dropped() {
        let history = MetricHistory::default();
        let start = Timestamp::from_micros(1_700_000_000_000_000);
        let at = |minute: u64| start.plus(Duration::from_secs(60 * minute));
        for minute in 0..5_000 {
            history.add(Metric {
                timestamp: at(minute),
                cpu_ratio: None,
                memory_ratio: Some(0.5),
                disk_ratio: None,
            });
        }
        let all = history.since(at(4_999), HOURS_MAX);
        assert_eq!(all.len(), ENTRIES_MAX);
        assert_eq!(all[0].timestamp, at(4_999 - 2_879));
        assert_eq!(history.since(at(4_999), 1).len(), 61);
    }
}
