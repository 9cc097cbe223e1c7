//! Polling interval: short at first, longer when an operation takes long.

use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);
const LAST: Duration = Duration::from_secs(10);
/// Maximum wait that a server may ask for.
const ASKED_MAX: Duration = Duration::from_secs(300);

/// Waits that grow from 1 to 10 seconds.
#[derive(Debug)]
pub(crate) struct PollBackoff {
    next: Duration,
}

impl PollBackoff {
    /// Starts with the shortest wait.
    pub(crate) const fn new() -> Self {
        Self { next: FIRST }
    }

    /// Returns the next wait, at least as long as the server asked for.
    pub(crate) fn next(&mut self, asked: Option<Duration>) -> Duration {
        let wait = self.next;
        self.next = wait.mul_f64(1.2).min(LAST);
        wait.max(asked.unwrap_or_default().min(ASKED_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_ten_seconds_and_a_server_may_ask_for_more() {
        let mut backoff = PollBackoff::new();
        let waits: Vec<Duration> = (0..20).map(|_| backoff.next(None)).collect();
        assert_eq!((waits[0], waits[19]), (FIRST, LAST));
        assert!(waits.is_sorted());
        assert_eq!(backoff.next(Some(Duration::from_secs(30))), Duration::from_secs(30));
        assert_eq!(backoff.next(Some(Duration::ZERO)), LAST);
        assert_eq!(backoff.next(Some(Duration::MAX)), ASKED_MAX);
    }
}
