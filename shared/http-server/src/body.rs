//! Request bodies that must make progress, and response bodies that mark their connection as busy.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::Limits;
use crate::connections::Busy;

/// Error of a request body that did not arrive in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the request body did not arrive in time")]
pub struct BodyTimedOut;

/// A request's body with a time limit. Only time during which the handler waits for bytes counts.
pub(crate) struct TimedBody {
    incoming: Incoming,
    is_late: Arc<AtomicBool>,
    stall: Duration,
    total: Duration,
    bytes_per_second_min: u64,
    bytes: u64,
    /// Total time waited, without the current wait.
    waited: Duration,
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl TimedBody {
    pub(crate) fn new(incoming: Incoming, limits: &Limits, is_late: Arc<AtomicBool>) -> Self {
        Self {
            incoming,
            is_late,
            stall: limits.body_stall_timeout,
            total: limits.body_timeout,
            bytes_per_second_min: limits.body_bytes_per_second_min.max(1),
            bytes: 0,
            waited: Duration::ZERO,
            waiting: None,
        }
    }

    /// Returns the time for which the next byte may be awaited.
    fn patience(&self) -> Duration {
        let at_this_rate = Duration::from_secs(self.bytes / self.bytes_per_second_min);
        let until_late = (self.stall + at_this_rate).min(self.total);
        until_late.saturating_sub(self.waited).min(self.stall)
    }
}

impl HttpBody for TimedBody {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        let this = &mut *self;
        match Pin::new(&mut this.incoming).poll_frame(context) {
            Poll::Ready(frame) => {
                if let Some((since, _)) = this.waiting.take() {
                    this.waited += since.elapsed();
                }
                if let Some(Ok(frame)) = &frame {
                    this.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
                }
                Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
            }
            Poll::Pending => {
                let patience = this.patience();
                let (_, late) = this.waiting.get_or_insert_with(|| {
                    let now = Instant::now();
                    (now, Box::pin(sleep_until(now + patience)))
                });
                std::task::ready!(late.as_mut().poll(context));
                this.is_late.store(true, Ordering::Relaxed);
                Poll::Ready(Some(Err(BodyTimedOut.into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

/// A response's body. Its connection is busy until the body is dropped.
pub(crate) struct BusyBody {
    pub(crate) body: Body,
    pub(crate) _busy: Busy,
}

impl HttpBody for BusyBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
