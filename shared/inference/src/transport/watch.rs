//! Time limits of one call: silence, the caller's deadline and the maximum duration.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// Limit that ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpiredLimit {
    /// No data arrived for too long.
    Idle,
    /// The time for the whole call has passed.
    Deadline,
}

/// One timer for all three limits. It is moved only when it fires, so that received data costs no timer operations.
pub(crate) struct Watch {
    timer: Pin<Box<Sleep>>,
    started: Instant,
    last: Instant,
    idle: Duration,
    end: Instant,
}

impl Watch {
    pub(crate) fn start(idle: Duration, end: Instant) -> Self {
        let started = Instant::now();
        let timer = Box::pin(sleep_until(end.min(started + idle)));
        Self { timer, started, last: started, idle, end }
    }

    /// Waits for `work` within the limits. Work that is ready takes precedence.
    pub(crate) async fn guard<T>(&mut self, work: impl Future<Output = T>) -> Result<T, ExpiredLimit> {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                output = &mut work => return Ok(output),
                () = &mut self.timer => {
                    let now = Instant::now();
                    let idle_until = self.last + self.idle;
                    if now >= self.end {
                        return Err(ExpiredLimit::Deadline);
                    }
                    if now >= idle_until {
                        return Err(ExpiredLimit::Idle);
                    }
                    self.timer.as_mut().reset(idle_until.min(self.end));
                }
            }
        }
    }

    /// Records that data arrived.
    pub(crate) fn touch(&mut self) {
        self.last = Instant::now();
    }

    /// Reduces the maximum silence to `idle` from now on.
    pub(crate) fn shorten(&mut self, idle: Duration) {
        if idle < self.idle {
            self.idle = idle;
            self.timer.as_mut().reset((Instant::now() + idle).min(self.end));
        }
    }

    /// Returns the milliseconds since the start.
    pub(crate) fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns the maximum silence.
    pub(crate) const fn idle(&self) -> Duration {
        self.idle
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::sleep;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn silence_counts_from_the_last_piece() {
        let mut watch = Watch::start(seconds(10), Instant::now() + seconds(1000));
        for _ in 0..5 {
            assert_eq!(watch.guard(sleep(seconds(9))).await, Ok(()));
            watch.touch();
        }
        assert_eq!(watch.guard(sleep(seconds(11))).await, Err(ExpiredLimit::Idle));
        assert_eq!(watch.elapsed_ms(), 55_000);
    }

    #[tokio::test(start_paused = true)]
    async fn the_deadline_ends_even_a_talkative_call() {
        let mut watch = Watch::start(seconds(10), Instant::now() + seconds(25));
        assert_eq!(watch.guard(sleep(seconds(9))).await, Ok(()));
        watch.touch();
        assert_eq!(watch.guard(sleep(seconds(9))).await, Ok(()));
        watch.touch();
        assert_eq!(watch.guard(sleep(seconds(9))).await, Err(ExpiredLimit::Deadline));
        assert_eq!(watch.elapsed_ms(), 25_000);
    }

    #[tokio::test(start_paused = true)]
    async fn patience_can_be_shortened() {
        let mut watch = Watch::start(seconds(100), Instant::now() + seconds(1000));
        watch.shorten(seconds(2));
        watch.shorten(seconds(50));
        assert_eq!(watch.guard(sleep(seconds(3))).await, Err(ExpiredLimit::Idle));
        assert_eq!(watch.elapsed_ms(), 2000);
    }
}
