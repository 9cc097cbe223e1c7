//! Events of a run, as a stream or in pages.
//!
//! No event is lost, however many there are and whenever a client connects: they are numbered without gaps,
//! and the run's status is read before its events, so no event can follow the last one before `done`.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use bench_domain::{Code, RunId};
use bench_lambda::Deadline;
use bench_state::Event;
use bench_web::error::ErrorBody;
use bench_web::size::{CARRIED_BYTES_MAX, carried_text_bytes, fitting};
use bench_web::views::EventView;
use bench_web::{ApiError, Caller, FieldReader, Identity, Path};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, Uri, header};
use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Api;
use crate::runs::requests::{run_id, run_not_found, visible_run};
use crate::runs::stream_limit::limit_duration;

/// Number of events to read at once.
const PAGE: u32 = 200;
/// Delay before a client reconnects to a stream that ended before its run did.
const RETRY_MS: u32 = 3_000;
const TEXT_CHARS_MAX: usize = 100;
const LAST_EVENT_ID: &str = "last-event-id";
const DONE: &str = "event: done\ndata: {}\n\n";

/// Page of events.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventsView {
    /// Events, in order.
    events: Vec<EventView>,
    /// `cursor` of the next page.
    cursor: String,
    /// True if the run is over and has no further events.
    done: bool,
}

/// Streams the events of a run, or returns a page of them.
///
/// Server-sent events by default. After the last event of a run that is over, the stream sends `event: done`. If a
/// stream ends without it (on AWS after two minutes), reconnect with the id or number of the last event in
/// `Last-Event-ID`, as a header or in the query; an `EventSource` does this by itself. With `Accept:
/// application/json` or `cursor`, the response is a page of at most 4 MiB instead.
#[utoipa::path(
    get, path = "/api/runs/{run_id}/events", tag = "runs",
    params(
        ("run_id" = String, Path, description = "Id of the run"),
        ("Last-Event-ID" = Option<String>, Query, description = "Only events after the one with this id or number"),
        ("cursor" = Option<String>, Query, description = "Returns a page of the events after this number"),
        ("limit" = Option<u64>, Query, description = "Number of events on a page, 1 to 1000, default 200"),
    ),
    responses(
        (status = 200, content((String = "text/event-stream"), (EventsView = "application/json"))),
        (status = 404, body = ErrorBody),
        (status = 422, body = ErrorBody),
    ),
)]
pub(crate) async fn get_events(
    State(api): State<Arc<Api>>,
    Path(run): Path<String>,
    deadline: Option<Extension<Deadline>>,
    identity: Identity,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, ApiError> {
    let mut fields = FieldReader::from_query(&uri);
    let cursor = fields.maybe_text("cursor", TEXT_CHARS_MAX);
    let from = cursor.as_deref().map(|text| if text.is_empty() { Ok(0) } else { text.parse::<u64>() });
    if matches!(from, Some(Err(_))) {
        fields.note("value_error", "cursor", "Input should be the `cursor` of a page");
    }
    let limit = fields.integer("limit", PAGE.into(), 1, 1_000);
    let last =
        ["Last-Event-ID", LAST_EVENT_ID].into_iter().find_map(|name| fields.maybe_text(name, TEXT_CHARS_MAX));
    fields.finish()?;
    let run = run_id(&run)?;
    visible_run(&api, run, identity.reader()).await?;
    let sent = headers.get(LAST_EVENT_ID).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let after = match (from.and_then(Result::ok), last.or(sent)) {
        (Some(from), _) => from,
        (None, Some(last)) => event_number(&api, run, last.trim()).await?,
        (None, None) => 0,
    };
    if cursor.is_some() || wants_json(&headers) {
        let (events, mut after, mut done) =
            page(&api, run, identity.reader(), after, u32::try_from(limit).unwrap_or(PAGE)).await?;
        let mut events: Vec<EventView> = events.into_iter().map(EventView::from).collect();
        let fits = fitting(&events);
        if fits < events.len() {
            events.truncate(fits);
            after = events.last().map_or(after, |event| event.sequence);
            done = false;
        }
        return Ok(Json(EventsView { events, cursor: after.to_string(), done }).into_response());
    }
    let (longest, deadline) = (api.config.stream_time, deadline.map(|Extension(deadline)| deadline));
    Ok(limit_duration(event_stream(api, run, identity.reader().clone(), after), longest, deadline))
}

fn wants_json(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accept.contains("application/json") && !accept.contains("text/event-stream")
}

/// Returns the number of the last event that a client saw. Returns 0, which sends all events, for an unknown id.
async fn event_number(api: &Api, run: RunId, last: &str) -> Result<u64, ApiError> {
    if let Ok(number) = last.parse() {
        return Ok(number);
    }
    let Ok(id) = Uuid::try_parse(last) else { return Ok(0) };
    let mut after = 0;
    loop {
        let events = api.state.events(run, after, PAGE).await?;
        if let Some(event) = events.iter().find(|event| event.id == id) {
            return Ok(event.sequence);
        }
        match events.last() {
            Some(event) => after = event.sequence,
            None => return Ok(0),
        }
    }
}

/// Returns events after a number, the number of the last of them, and true if no further events follow.
///
/// # Errors
/// 404 if the run was made private since the request came.
async fn page(
    api: &Api,
    run: RunId,
    caller: &Caller,
    after: u64,
    limit: u32,
) -> Result<(Vec<Event>, u64, bool), ApiError> {
    // The status is read first: the write that ended the run also wrote its last event.
    let record = api.state.run(run).await?;
    if record.as_ref().is_some_and(|record| !caller.sees_run(&record.spec)) {
        return Err(run_not_found());
    }
    let is_over = record.is_none_or(|run| !run.state.status().is_open());
    let events = api.state.events(run, after, limit).await?;
    let last = events.last().map_or(after, |event| event.sequence);
    let done = is_over && (events.is_empty() || api.state.last_event(run).await? <= last);
    Ok((events, last, done))
}

struct Following {
    api: Arc<Api>,
    run: RunId,
    caller: Caller,
    after: u64,
    last_sent_at: Instant,
    is_new: bool,
    ends: bool,
    /// Bytes sent so far, as API Gateway carries them.
    sent_bytes: usize,
    /// Permit to keep the stream open. Without it, the stream ends after the events so far.
    open: Option<OwnedSemaphorePermit>,
}

fn event_stream(api: Arc<Api>, run: RunId, caller: Caller, after: u64) -> Response {
    let open = Arc::clone(&api.streams).try_acquire_owned().ok().filter(|_| api.config.streaming);
    let following = Following {
        api,
        run,
        caller,
        after,
        last_sent_at: Instant::now(),
        is_new: true,
        ends: false,
        sent_bytes: 0,
        open,
    };
    let chunks = stream::unfold(following, |mut following| async move {
        let chunk = following.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(chunk)), following))
    });
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream; charset=utf-8"),
        (header::CACHE_CONTROL, "no-cache"),
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(chunks)).into_response()
}

impl Following {
    /// Returns the next part of the stream, or `None` at the end.
    async fn next(&mut self) -> Option<String> {
        if self.ends {
            return None;
        }
        loop {
            let page = page(&self.api, self.run, &self.caller, self.after, PAGE).await;
            let (events, after, done) = match page {
                Ok(page) => page,
                Err(error) if error.code() == Code::RunNotFound => {
                    self.ends = true;
                    return Some(format!("retry: {RETRY_MS}\n\n"));
                }
                Err(error) => {
                    // A stream that breaks off is harmless: the client reconnects with the last event that it saw.
                    tracing::warn!(run.id = %self.run, %error, "An event stream of run {} broke off: {error}", self.run);
                    self.ends = true;
                    return Some(format!("retry: {RETRY_MS}\n\n"));
                }
            };
            let drained = events.is_empty();
            let (mut text, last) = self.fill(events);
            if let Some(last) = last {
                // The response is full: the client reconnects with the last event that it saw.
                self.after = last;
                self.ends = true;
                text.push_str(&format!("retry: {RETRY_MS}\n\n"));
                return Some(text);
            }
            self.after = after;
            if done {
                text.push_str(DONE);
                self.ends = true;
            } else if self.open.is_none() && drained {
                text = format!("retry: {RETRY_MS}\n\n");
                self.ends = true;
            } else if drained
                && (self.is_new || self.last_sent_at.elapsed() >= self.api.config.keep_alive_every)
            {
                // Sent at the beginning too, so that the client knows at once that it is connected.
                text = ": waiting\n\n".to_owned();
            }
            if !text.is_empty() {
                self.is_new = false;
                self.last_sent_at = Instant::now();
                return Some(text);
            }
            tokio::time::sleep(self.api.config.poll_every).await;
        }
    }
}

impl Following {
    /// Renders events as messages. If the response has a size limit and reaches it, returns the events that
    /// fit and the number of the last one.
    fn fill(&mut self, events: Vec<Event>) -> (String, Option<u64>) {
        let mut text = String::new();
        let mut last = self.after;
        for event in events {
            let sequence = event.sequence;
            let message = message(event);
            let bytes = self.sent_bytes.saturating_add(carried_text_bytes(&message));
            if !self.api.config.streaming && bytes > CARRIED_BYTES_MAX && self.sent_bytes > 0 {
                return (text, Some(last));
            }
            self.sent_bytes = bytes;
            last = sequence;
            text.push_str(&message);
        }
        (text, None)
    }
}

/// Renders an event as a message without a name. Serialized JSON contains no line breaks.
fn message(event: Event) -> String {
    let view = EventView::from(event);
    match serde_json::to_string(&view) {
        Ok(json) => format!("id: {}\ndata: {json}\n\n", view.id),
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_sent_only_on_request() {
        let asks = |accept: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            wants_json(&headers)
        };
        assert!(asks("application/json"));
        assert!(!asks("text/event-stream"));
        assert!(!asks("*/*"));
        assert!(!asks("text/event-stream, application/json"));
        assert!(!wants_json(&HeaderMap::new()));
    }
}
