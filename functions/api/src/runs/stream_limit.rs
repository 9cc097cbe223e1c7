//! Event streams that end before their invocation does.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bench_lambda::Deadline;
use bytes::Bytes;
use futures_util::{StreamExt, stream};

/// Time before the end of an invocation at which its stream ends, so that the last bytes can still be sent.
const RESERVE: Duration = Duration::from_secs(10);
/// Delay after which the client reconnects, with the id of the last event that it saw.
const AGAIN: &str = "retry: 1000\n\n";

/// Ends a stream after `left`, between two messages, and asks the client to reconnect. The first chunk is
/// always sent, so that a client that reconnects makes progress.
fn until(response: Response, left: Duration) -> Response {
    let (parts, body) = response.into_parts();
    let end = Box::pin(tokio::time::sleep(left));
    let chunks = stream::unfold(Some((body.into_data_stream(), end, true)), |state| async move {
        let (mut chunks, mut end, is_first) = state?;
        if is_first {
            let chunk = chunks.next().await?;
            return Some((chunk, Some((chunks, end, false))));
        }
        tokio::select! {
            biased;
            () = &mut end => Some((Ok(Bytes::from_static(AGAIN.as_bytes())), None)),
            chunk = chunks.next() => Some((chunk?, Some((chunks, end, false)))),
        }
    });
    Response::from_parts(parts, Body::from_stream(chunks))
}

/// Ends a stream after `longest`, and before its invocation ends. Without either limit, the response is unchanged.
pub(crate) fn limit_duration(
    response: Response,
    longest: Option<Duration>,
    deadline: Option<Deadline>,
) -> Response {
    let left = deadline.map(|deadline| deadline.remaining(RESERVE));
    match longest.into_iter().chain(left).min() {
        Some(left) => until(response, left),
        None => response,
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// Returns a response that sends `count` messages, one every ten milliseconds.
    fn answer(count: usize) -> Response {
        let chunks = stream::iter(0..count).then(|n| async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            Ok::<_, Infallible>(Bytes::from(format!("id: {n}\ndata: {{}}\n\n")))
        });
        Response::new(Body::from_stream(chunks))
    }

    async fn text(response: Response) -> String {
        let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    const SOON: Duration = Duration::from_millis(100);
    const LATER: Duration = Duration::from_secs(600);

    #[tokio::test]
    async fn a_stream_ends_before_its_invocation_and_after_its_longest_time() {
        let before_the_invocation = (None, Some(Deadline::after(RESERVE + SOON)));
        let after_its_time = (Some(SOON), None);
        let both = [
            (Some(SOON), Some(Deadline::after(LATER))),
            (Some(LATER), Some(Deadline::after(RESERVE + SOON))),
        ];
        for (longest, deadline) in [before_the_invocation, after_its_time].into_iter().chain(both) {
            let sent = text(limit_duration(answer(usize::MAX), longest, deadline)).await;
            assert!(
                sent.starts_with("id: 0\n") && sent.ends_with(&format!("data: {{}}\n\n{AGAIN}")),
                "{sent}"
            );
        }
    }

    #[tokio::test]
    async fn what_ends_by_itself_is_left_as_it_is() {
        let sent = text(limit_duration(answer(3), Some(LATER), Some(Deadline::after(LATER)))).await;
        assert!(sent.ends_with("id: 2\ndata: {}\n\n"), "{sent}");
        assert_eq!(text(limit_duration(answer(3), None, None)).await, sent);
    }

    #[tokio::test]
    async fn an_invocation_that_is_nearly_over_still_gets_on() {
        let sent =
            text(limit_duration(answer(usize::MAX), None, Some(Deadline::after(Duration::ZERO)))).await;
        assert_eq!(sent, format!("id: 0\ndata: {{}}\n\n{AGAIN}"));
    }
}
