//! One HTTP exchange with a provider.

use std::time::Duration;

use bench_domain::Answer;
use bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Method, Request, Response, StatusCode};
use tokio::time::Instant;

use crate::failure::{Failure, FailureKind, Fatal, GaveUpBy, TooLong, http_cause};
use crate::http::{Http, chain};
use crate::protocols::{AnswerReader, Asked, Dialect, Stop};
use crate::retry_after::retry_after;
use crate::sse::{Event, SseParser};
use crate::watch::{Expired, Watch};
use crate::{Endpoint, Keys, Provider};

/// Bytes of an error body that are read.
const ERROR_BODY_BYTES_MAX: usize = 64 * 1024;
/// Bytes of an answer that is one JSON object: text may be escaped.
const JSON_BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes of a stream, where each token comes in some hundred bytes of JSON.
const STREAM_BYTES_MAX: usize = 512 * 1024 * 1024;
/// Silence after `finish_reason`: only the usage is still to come.
const AFTER_FINISH_SECONDS_MAX: u64 = 10;
/// Wait for the end of the response after `[DONE]`, so that its connection can be used again.
const AFTER_DONE_MILLIS_MAX: u64 = 100;
const REQUEST_ID_CHARS_MAX: usize = 200;

/// What all tries of one call share.
pub(crate) struct Call<'a> {
    pub(crate) http: &'a Http,
    pub(crate) endpoint: &'a Endpoint,
    /// Headers of the protocol, with the key.
    pub(crate) headers: HeaderMap,
    pub(crate) end: Instant,
}

/// A failed try.
pub(crate) struct Refusal {
    pub(crate) failure: Box<Failure>,
    /// The dialect that avoids what the server refused, if it refused a field that it does not know.
    pub(crate) next: Option<Dialect>,
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self { failure: Box::new(failure), next: None }
    }
}

impl Call<'_> {
    /// Sends the request and waits for the answer.
    pub(crate) async fn send(&self, asked: Asked<'_>) -> Result<Answer, Refusal> {
        let provider = self.endpoint.provider();
        let body = provider.protocol.request_body(asked.request, asked.dialect).map_err(|error| {
            let cause = format!("The request could not be written: {error}");
            Failure::new(FailureKind::Bad, GaveUpBy::Runner, cause)
        })?;
        let url = self.endpoint.answer_url();
        let client = self.http.client(url).map_err(|problem| no_client(provider, problem))?;
        let mut watch = Watch::start(self.http.options.idle_timeout, self.end);
        if Instant::now() >= self.end {
            return Err(expired(provider, Expired::Deadline, &watch, 0).into());
        }
        let mut request = Request::new(Method::POST, url.clone());
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
        headers.extend(self.headers.clone());
        *request.body_mut() = Some(body.into());
        let response = match watch.guard(client.execute(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(network(provider, &error).into()),
            Err(why) => return Err(expired(provider, why, &watch, 0).into()),
        };
        watch.touch();
        if !response.status().is_success() {
            let keys = self.endpoint.keys();
            return Err(refused(provider, response, &mut watch, Some(asked), keys).await);
        }
        let status = response.status();
        let keys = self.endpoint.keys().clone();
        let request_id = request_id(response.headers(), &keys);
        let mut reading = Reading::new(provider, response, watch, asked.has_images(), keys);
        let mut failure = match reading.read().await {
            Ok(()) => return Ok(reading.into_answer(request_id)),
            Err(failure) => failure,
        };
        failure.usage = reading.reader.usage_so_far();
        failure.status = Some(status.as_u16());
        if let Some(id) = &request_id {
            failure.cause.push_str(&format!(" (request_id={id})"));
        }
        failure.request_id = request_id;
        Err(failure.into())
    }
}

/// A response with a good status that is being read.
struct Reading {
    provider: &'static Provider,
    response: Response,
    watch: Watch,
    reader: Box<dyn AnswerReader>,
    first_token_ms: Option<u64>,
    latency_ms: u64,
}

impl Reading {
    fn new(
        provider: &'static Provider,
        response: Response,
        watch: Watch,
        has_images: bool,
        keys: Keys,
    ) -> Self {
        let reader = provider.protocol.answer_reader(keys, has_images);
        Self { provider, response, watch, reader, first_token_ms: None, latency_ms: 0 }
    }

    fn into_answer(self, request_id: Option<String>) -> Answer {
        let mut answer = self.reader.finish(request_id);
        answer.latency_ms = self.latency_ms;
        answer.first_token_ms = self.first_token_ms;
        answer
    }

    /// Reads to the end of the answer. Servers that do not stream send one object instead of events; what came
    /// decides, since not all of them name its type.
    async fn read(&mut self) -> Result<(), Failure> {
        let mut first = Bytes::new();
        while first.trim_ascii_start().is_empty() {
            match self.next().await? {
                Some(chunk) => first = chunk,
                None => break,
            }
        }
        if is_event_stream(self.response.headers(), &first) {
            self.read_events(first).await
        } else {
            self.read_whole(first).await
        }
    }

    async fn read_events(&mut self, first: Bytes) -> Result<(), Failure> {
        let mut parser = SseParser::default();
        let mut chunk = Some(first);
        let mut bytes = 0_usize;
        while let Some(data) = chunk {
            bytes += data.len();
            if bytes > STREAM_BYTES_MAX {
                return self
                    .complete_or(|this| this.stopped(Stop::TooLarge("the stream is larger than 512 MiB")));
            }
            let reader = &mut self.reader;
            if let Err(stop) = parser.push(&data, |event: Event<'_>| reader.event(&event)) {
                return self.complete_or(|this| this.stopped(stop));
            }
            self.note_progress();
            if self.reader.is_done() {
                self.drain().await;
                break;
            }
            if self.reader.is_complete() {
                self.watch.shorten(Duration::from_secs(AFTER_FINISH_SECONDS_MAX));
            }
            chunk = match self.next().await {
                Ok(next) => next,
                Err(failure) => return self.complete_or(|_| failure),
            };
        }
        if !self.reader.is_done() {
            // An event cut off by the end of the stream is no garbage, it is the missing half.
            let reader = &mut self.reader;
            let _ = parser.finish(|event: Event<'_>| reader.event(&event));
            self.note_progress();
        }
        if !self.reader.is_complete() {
            return Err(self.half());
        }
        if !self.reader.has_begun() {
            return Err(self.stopped(Stop::Garbage("No choices in response".to_owned())));
        }
        Ok(())
    }

    async fn read_whole(&mut self, first: Bytes) -> Result<(), Failure> {
        let mut body = Vec::from(first);
        while let Some(chunk) = self.next().await? {
            if body.len() + chunk.len() > JSON_BODY_BYTES_MAX {
                return Err(self.stopped(Stop::TooLarge("the answer is larger than 64 MiB of JSON")));
            }
            body.extend_from_slice(&chunk);
        }
        if body.trim_ascii().is_empty() {
            return Err(self.half());
        }
        self.reader.whole(&body).map_err(|stop| self.stopped(stop))?;
        self.note_progress();
        Ok(())
    }

    async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        match self.watch.guard(self.response.chunk()).await {
            Ok(Ok(chunk)) => {
                self.watch.touch();
                Ok(chunk)
            }
            Ok(Err(error)) => {
                let cause = format!(
                    "The answer from {} broke off after {} bytes of text: {}",
                    self.provider.display_name,
                    self.reader.bytes(),
                    chain(&error.without_url()),
                );
                Err(Failure::new(FailureKind::Transient, GaveUpBy::Provider, cause))
            }
            Err(why) => Err(expired(self.provider, why, &self.watch, self.reader.bytes())),
        }
    }

    fn note_progress(&mut self) {
        self.latency_ms = self.watch.elapsed_ms();
        if self.first_token_ms.is_none() && self.reader.bytes() > 0 {
            self.first_token_ms = Some(self.latency_ms);
        }
    }

    /// Nothing that happens after the end of an answer takes the answer away.
    fn complete_or(&self, failure: impl FnOnce(&Self) -> Failure) -> Result<(), Failure> {
        if self.reader.is_complete() && self.reader.has_begun() { Ok(()) } else { Err(failure(self)) }
    }

    async fn drain(&mut self) {
        self.watch.shorten(Duration::from_millis(AFTER_DONE_MILLIS_MAX));
        while let Ok(Ok(Some(_))) = self.watch.guard(self.response.chunk()).await {}
    }

    fn half(&self) -> Failure {
        let cause = match self.reader.bytes() {
            0 => format!("{} ended the response without an answer", self.provider.display_name),
            bytes => format!(
                "{} ended the response after {bytes} bytes of text, before the answer was complete",
                self.provider.display_name,
            ),
        };
        Failure::new(FailureKind::Transient, GaveUpBy::Provider, cause)
    }

    fn stopped(&self, stop: Stop) -> Failure {
        let name = self.provider.display_name;
        match stop {
            Stop::Error(error, text) => {
                Failure::new(error.kind, GaveUpBy::Provider, format!("{name} error: {text}"))
            }
            Stop::Garbage(text) => {
                let status = self.response.status().as_u16();
                let cause = format!("HTTP {status} from {name}: {text}");
                Failure::new(FailureKind::Transient, GaveUpBy::Provider, cause)
            }
            Stop::TooLarge(what) => {
                let cause = format!("answer-too-large: {what}, more than the runner keeps (from {name})");
                Failure::new(FailureKind::AnswerTooLarge, GaveUpBy::Runner, cause)
            }
        }
    }
}

fn is_event_stream(headers: &HeaderMap, start: &[u8]) -> bool {
    match start.trim_ascii_start().first() {
        Some(b'{' | b'[' | b'<') => false,
        // `data`, `event`, `id`, `retry`, a comment, a byte order mark.
        Some(b'd' | b'e' | b'i' | b'r' | b':' | 0xef) => true,
        _ => headers
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| value.starts_with("text/event-stream")),
    }
}

/// The failure that a response with a bad status means.
pub(crate) async fn refused(
    provider: &Provider,
    mut response: Response,
    watch: &mut Watch,
    asked: Option<Asked<'_>>,
    keys: &Keys,
) -> Refusal {
    let mut body = Vec::new();
    // Whatever is missing of the body, the status stands.
    while let Ok(Ok(Some(chunk))) = watch.guard(response.chunk()).await {
        watch.touch();
        let room = ERROR_BODY_BYTES_MAX - body.len();
        body.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
        if body.len() >= ERROR_BODY_BYTES_MAX {
            break;
        }
    }
    let status = response.status();
    // Before anything is quoted: a quotation may be cut within a key.
    let body = keys.redact_beginning(&body);
    let request_id = request_id(response.headers(), keys);
    let text = match redirect(status, response.headers(), keys) {
        Some(text) => text,
        None => String::from_utf8_lossy(&body).into_owned(),
    };
    let refusal = provider.protocol.read_error(status.as_u16(), &body, &text, asked);
    let failure = Failure {
        kind: refusal.kind,
        status: Some(status.as_u16()),
        cause: http_cause(provider.display_name, status.as_u16(), &text, request_id.as_deref()),
        retry_after: retry_after(response.headers(), jiff::Timestamp::now()),
        request_id,
        gave_up_by: GaveUpBy::Provider,
        usage: None,
    };
    Refusal { failure: Box::new(failure), next: refusal.next }
}

fn redirect(status: StatusCode, headers: &HeaderMap, keys: &Keys) -> Option<String> {
    let to = headers.get(LOCATION).filter(|_| status.is_redirection())?.to_str().ok()?;
    let to = keys.redact(to);
    let to: String = to.split(['?', '#']).next().unwrap_or("").chars().take(200).collect();
    Some(format!(
        "a redirect to {to}, which is not followed because the key belongs to the configured address"
    ))
}

/// The failure that a limit of our own means.
pub(crate) fn expired(provider: &Provider, why: Expired, watch: &Watch, bytes: usize) -> Failure {
    let name = provider.display_name;
    let waited = watch.elapsed_ms().div_ceil(1000);
    match why {
        Expired::Deadline => {
            let cause = format!(
                "No whole answer from {name} in the time given: {bytes} bytes of text after {waited} s"
            );
            Failure::new(FailureKind::TooLong(TooLong::Time), GaveUpBy::Runner, cause)
        }
        Expired::Idle => {
            let idle = watch.idle().as_secs();
            let cause = format!("Nothing came from {name} for {idle} s, after {bytes} bytes of text");
            Failure::new(FailureKind::Transient, GaveUpBy::Runner, cause)
        }
    }
}

/// The failure that a connection means which did not stand or did not last until the response.
pub(crate) fn network(provider: &Provider, error: &reqwest::Error) -> Failure {
    let (class, gave_up_by) = match () {
        () if error.is_connect() && error.is_timeout() => ("ConnectTimeout", GaveUpBy::Runner),
        () if error.is_timeout() => ("ReadTimeout", GaveUpBy::Runner),
        () if error.is_dns() => ("DnsError", GaveUpBy::Provider),
        () if error.is_connect() => ("ConnectError", GaveUpBy::Provider),
        () => ("ReadError", GaveUpBy::Provider),
    };
    // The address is left out: it is known, and it makes equal failures differ.
    let detail = std::error::Error::source(error).map_or_else(|| error.to_string(), chain);
    let cause = format!("Network error contacting {} ({class}): {detail}", provider.display_name);
    Failure::new(FailureKind::Transient, gave_up_by, cause)
}

pub(crate) fn no_client(provider: &Provider, problem: &str) -> Failure {
    let cause = format!("No HTTP client for {}: {problem}", provider.display_name);
    Failure::new(FailureKind::FatalForRun(Fatal::Address), GaveUpBy::Runner, cause)
}

/// The provider's id of a request. Keys are removed before it is cut.
pub(crate) fn request_id(headers: &HeaderMap, keys: &Keys) -> Option<String> {
    let value = headers.get("x-request-id").or_else(|| headers.get("x-requestid"))?.to_str().ok()?.trim();
    (!value.is_empty()).then(|| keys.redact(value).chars().take(REQUEST_ID_CHARS_MAX).collect())
}
