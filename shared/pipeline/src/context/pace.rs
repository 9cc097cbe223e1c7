//! Times until which samples of a run with limited requests per minute are put off.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bench_domain::Timestamp;

/// Maximum time for which a sample is put off. Its slot may be free earlier, if another run ends.
const PUT_OFF_MAX: Duration = Duration::from_secs(15 * 60);

/// Times until which this process has put samples of a run off.
#[derive(Debug, Default)]
pub(crate) struct Paced(Mutex<Vec<Timestamp>>);

impl Paced {
    /// Returns the time for the next try of one more sample, and remembers it. The samples that wait already come first, so
    /// that each sample is put off about once.
    pub(crate) fn next_try(&self, free_at: Timestamp, now: Timestamp, interval: Duration) -> Timestamp {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|due| *due > now);
        let before = u32::try_from(waiting.len()).unwrap_or(u32::MAX);
        let due = free_at.plus(interval.saturating_mul(before)).min(now.plus(PUT_OFF_MAX));
        waiting.push(due);
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_wait_one_after_the_other() {
        let (paced, interval) = (Paced::default(), Duration::from_secs(10));
        let start = Timestamp::from_micros(1_000_000_000);
        let at = |seconds| start.plus(Duration::from_secs(seconds));
        assert_eq!(paced.next_try(at(8), start, interval), at(8));
        assert_eq!(paced.next_try(at(8), start, interval), at(18));
        assert_eq!(paced.next_try(at(8), start, interval), at(28));
        // The first two have tried again; one is left in front.
        assert_eq!(paced.next_try(at(30), at(20), interval), at(40));
        let (slow, minute) = (Paced::default(), Duration::from_secs(60));
        let last = (0..1_000).map(|_| slow.next_try(at(60), start, minute)).last();
        assert_eq!(last, Some(start.plus(PUT_OFF_MAX)));
    }
}
