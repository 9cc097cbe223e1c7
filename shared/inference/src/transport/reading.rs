//! Reads successful responses.

use std::time::Duration;

use bench_domain::{Answer, Usage};
use bytes::Bytes;
use reqwest::Response;

use super::failures::timeout_failure;
use super::http::error_chain;
use super::watch::Watch;
use crate::failure::{Failure, FailureKind, GaveUpBy, quote, quote_bytes};
use crate::protocols::AnswerReader;
use crate::response::{AnswerDraft, Stop, status_in_body, with_images};
use crate::{Keys, Provider};

/// Maximum size in bytes of an answer sent as one JSON object, whose text may be escaped.
const JSON_BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Maximum size in bytes of a stream, which has some hundred bytes of JSON for each token.
const STREAM_BYTES_MAX: usize = 512 * 1024 * 1024;
/// Maximum silence after the model has stopped, when only the usage is missing.
const AFTER_FINISH_SECONDS_MAX: u64 = 10;
/// Maximum wait for the end of the response after the end of the stream, so that its connection can be reused.
const AFTER_DONE_MILLIS_MAX: u64 = 100;
/// Status of an error in a response that states none.
const INTERNAL_ERROR: u16 = 500;

/// A successful response that is being read.
pub(super) struct Reading {
    provider: &'static Provider,
    response: Response,
    watch: Watch,
    /// Removed from quotes of the response, which may be cut within a key.
    keys: Keys,
    /// True if the prompt has images, which the model may not support.
    has_images: bool,
    reader: Box<dyn AnswerReader>,
    draft: AnswerDraft,
    first_token_ms: Option<u64>,
    latency_ms: u64,
}

impl Reading {
    pub(super) fn new(
        provider: &'static Provider,
        response: Response,
        watch: Watch,
        has_images: bool,
        keys: Keys,
    ) -> Self {
        let reader = provider.protocol.answer_reader();
        let draft = AnswerDraft::new(keys.clone());
        let (first_token_ms, latency_ms) = (None, 0);
        Self { provider, response, watch, keys, has_images, reader, draft, first_token_ms, latency_ms }
    }

    pub(super) fn into_answer(self, request_id: Option<String>) -> Answer {
        let mut answer = self.draft.into_answer(request_id);
        answer.latency_ms = self.latency_ms;
        answer.first_token_ms = self.first_token_ms;
        answer
    }

    /// Returns the tokens of an interrupted answer.
    pub(super) fn usage_so_far(&self) -> Option<Usage> {
        self.draft.usage_so_far()
    }

    /// Reads to the end of the answer.
    pub(super) async fn read(&mut self) -> Result<(), Failure> {
        let mut first = Bytes::new();
        while first.trim_ascii_start().is_empty() {
            match self.next().await? {
                Some(chunk) => first = chunk,
                None => break,
            }
        }
        if self.provider.protocol.is_stream(self.response.headers(), &first) {
            self.read_stream(first).await
        } else {
            self.read_whole(first).await
        }
    }

    async fn read_stream(&mut self, first: Bytes) -> Result<(), Failure> {
        let mut chunk = Some(first);
        let mut bytes = 0_usize;
        while let Some(data) = chunk {
            bytes += data.len();
            if bytes > STREAM_BYTES_MAX {
                return self.complete_or(|this| {
                    this.stop_failure(Stop::TooLarge("the stream is larger than 512 MiB"))
                });
            }
            if let Err(stop) = self.reader.push(&data, &mut self.draft) {
                return self.complete_or(|this| this.stop_failure(stop));
            }
            self.note_progress();
            if self.draft.is_done() {
                self.drain().await;
                break;
            }
            if self.draft.is_complete() {
                self.watch.shorten(Duration::from_secs(AFTER_FINISH_SECONDS_MAX));
            }
            chunk = match self.next().await {
                Ok(next) => next,
                Err(failure) => return self.complete_or(|_| failure),
            };
        }
        if !self.draft.is_done() {
            // An event cut off by the end of the stream isn't garbage; the answer is incomplete.
            let _ = self.reader.end(&mut self.draft);
            self.note_progress();
        }
        if !self.draft.is_complete() {
            return Err(self.incomplete_failure());
        }
        if !self.draft.has_begun() {
            return Err(self.stop_failure(Stop::Garbage("No choices in response".to_owned(), Vec::new())));
        }
        Ok(())
    }

    async fn read_whole(&mut self, first: Bytes) -> Result<(), Failure> {
        let mut body = Vec::from(first);
        while let Some(chunk) = self.next().await? {
            if body.len() + chunk.len() > JSON_BODY_BYTES_MAX {
                return Err(self.stop_failure(Stop::TooLarge("the answer is larger than 64 MiB of JSON")));
            }
            body.extend_from_slice(&chunk);
        }
        if body.trim_ascii().is_empty() {
            return Err(self.incomplete_failure());
        }
        if let Err(stop) = self.reader.read_whole(&body, &mut self.draft) {
            return Err(self.stop_failure(stop));
        }
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
                    self.draft.bytes(),
                    error_chain(&error.without_url()),
                );
                Err(Failure::new(FailureKind::Transient, GaveUpBy::Provider, cause))
            }
            Err(why) => Err(timeout_failure(self.provider, why, &self.watch, self.draft.bytes())),
        }
    }

    fn note_progress(&mut self) {
        self.latency_ms = self.watch.elapsed_ms();
        if self.first_token_ms.is_none() && self.draft.bytes() > 0 {
            self.first_token_ms = Some(self.latency_ms);
        }
    }

    /// Returns the failure only if the answer is incomplete: errors after its end don't invalidate it.
    fn complete_or(&self, failure: impl FnOnce(&Self) -> Failure) -> Result<(), Failure> {
        if self.draft.is_complete() && self.draft.has_begun() { Ok(()) } else { Err(failure(self)) }
    }

    async fn drain(&mut self) {
        self.watch.shorten(Duration::from_millis(AFTER_DONE_MILLIS_MAX));
        while let Ok(Ok(Some(_))) = self.watch.guard(self.response.chunk()).await {}
    }

    fn incomplete_failure(&self) -> Failure {
        let cause = match self.draft.bytes() {
            0 => format!("{} ended the response without an answer", self.provider.display_name),
            bytes => format!(
                "{} ended the response after {bytes} bytes of text, before the answer was complete",
                self.provider.display_name,
            ),
        };
        Failure::new(FailureKind::Transient, GaveUpBy::Provider, cause)
    }

    fn stop_failure(&self, stop: Stop) -> Failure {
        let name = self.provider.display_name;
        match stop {
            Stop::Error(body) => {
                let (kind, text) = self.reported_error(&body);
                Failure::new(kind, GaveUpBy::Provider, format!("{name} error: {text}"))
            }
            Stop::Garbage(problem, quoted) => {
                let text = match quoted.as_slice() {
                    [] => problem,
                    quoted => format!("{problem}: {}", quote_bytes(&self.keys.redact_beginning(quoted))),
                };
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

    /// Returns the meaning of an error within the response, and its message, if it has one.
    fn reported_error(&self, body: &[u8]) -> (FailureKind, String) {
        let body = self.keys.redact_beginning(body);
        let error = self.provider.protocol.read_error(&body);
        let text = if error.message.is_empty() { quote_bytes(&body) } else { quote(&error.message) };
        let status = status_in_body(&error).unwrap_or(INTERNAL_ERROR);
        let mut kind = self.provider.protocol.classify(status, &error);
        if self.has_images {
            kind = with_images(kind, status, &error.message);
        }
        (kind, text)
    }
}
