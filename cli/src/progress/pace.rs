//! Recent pace of a benchmark, and the time that the rest takes at it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Time over which the pace is measured, if enough samples end in it.
const WINDOW: Duration = Duration::from_secs(60);
/// Number of changes that are kept for slow benchmarks, whatever their age.
const CHANGES_MIN: usize = 8;
/// Minimum time without a finished sample after which nothing moves.
const STALLED_AFTER: Duration = Duration::from_secs(20);
/// Number of times that the recent time per change must pass before nothing moves.
const STALLED_AFTER_CHANGES: u32 = 5;

/// Numbers of finished samples, each with the time at which it was first seen.
#[derive(Debug, Clone, Default)]
pub(super) struct Pace {
    seen: VecDeque<(Instant, u64)>,
}

impl Pace {
    /// Records the number of finished samples.
    pub(super) fn note(&mut self, now: Instant, completed: u64) {
        match self.seen.back() {
            Some((_, last)) if *last == completed => {}
            // Samples were put back to work. What was seen before says nothing about the rest.
            Some((_, last)) if *last > completed => {
                self.seen.clear();
                self.seen.push_back((now, completed));
            }
            _ => self.seen.push_back((now, completed)),
        }
        while self.seen.len() > CHANGES_MIN
            && self.seen.get(1).is_some_and(|(at, _)| now.duration_since(*at) > WINDOW)
        {
            self.seen.pop_front();
        }
    }

    /// Returns the samples per second of late; `None` if none has finished since the first look, or for so long that
    /// nothing moves.
    pub(super) fn per_second(&self, now: Instant) -> Option<f64> {
        let (first, last) = (self.seen.front()?, self.seen.back()?);
        let changes = u32::try_from(self.seen.len() - 1).ok().filter(|changes| *changes > 0)?;
        let per_change = last.0.duration_since(first.0) / changes;
        if now.duration_since(last.0) > STALLED_AFTER.max(per_change * STALLED_AFTER_CHANGES) {
            return None;
        }
        // Counts the time since the last change, too, so that the pace falls while nothing finishes.
        let seconds = now.duration_since(first.0).as_secs_f64();
        #[allow(clippy::cast_precision_loss)] // counts are far below 2^53
        let samples = last.1.saturating_sub(first.1) as f64;
        (seconds > 0.0).then(|| samples / seconds)
    }

    /// Returns the seconds until `left` samples are finished, at the recent pace.
    pub(super) fn seconds_left(&self, now: Instant, left: u64) -> Option<f64> {
        let per_second = self.per_second(now).filter(|per_second| *per_second > 0.0)?;
        #[allow(clippy::cast_precision_loss)] // counts are far below 2^53
        Some(left as f64 / per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes `completed` at each of these seconds, and returns the pace and the time of second 0.
    fn paced(seen: &[(u64, u64)]) -> (Pace, Instant) {
        let start = Instant::now();
        let mut pace = Pace::default();
        for (second, completed) in seen {
            pace.note(start + Duration::from_secs(*second), *completed);
        }
        (pace, start)
    }

    fn left(pace: &Pace, start: Instant, second: u64, left: u64) -> Option<f64> {
        pace.seconds_left(start + Duration::from_secs(second), left)
    }

    #[test]
    fn samples_from_before_do_not_count() {
        let (pace, start) = paced(&[(0, 900)]);
        assert_eq!(left(&pace, start, 1, 100), None);
        let (pace, start) = paced(&[(0, 900), (10, 910)]);
        assert_eq!(left(&pace, start, 10, 90), Some(90.0));
    }

    #[test]
    fn the_recent_pace_counts() {
        // Ten a second for ten minutes, then one a second for two minutes.
        let fast = (0..600).map(|second| (second, second * 10));
        let slow = (600..720).map(|second| (second, 6_000 + second - 600));
        let (pace, start) = paced(&fast.chain(slow).collect::<Vec<_>>());
        let seconds = left(&pace, start, 719, 600).unwrap();
        assert!((590.0..=620.0).contains(&seconds), "{seconds}");
    }

    #[test]
    fn nothing_that_moves_has_no_estimate() {
        let (pace, start) = paced(&[(0, 0), (1, 10), (2, 20)]);
        assert_eq!(left(&pace, start, 12, 20), Some(12.0), "the pace falls");
        assert!(left(&pace, start, 22, 20).is_some());
        assert_eq!(left(&pace, start, 23, 20), None, "20 seconds without a sample");
        // A minute per sample.
        let (pace, start) = paced(&[(0, 0), (60, 1), (120, 2)]);
        assert!(left(&pace, start, 400, 2).is_some());
        assert_eq!(left(&pace, start, 421, 2), None);
    }

    #[test]
    fn requeued_samples_start_over() {
        let (pace, start) = paced(&[(0, 0), (10, 100), (20, 40)]);
        assert_eq!(left(&pace, start, 25, 60), None);
        let (pace, start) = paced(&[(0, 0), (10, 100), (20, 40), (30, 50)]);
        assert_eq!(left(&pace, start, 30, 50), Some(50.0));
    }
}
