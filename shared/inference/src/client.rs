//! The client that the rest of the program uses.

use std::sync::Arc;
use std::time::Duration;

use bench_domain::{Answer, Generation, Prompt};
use reqwest::header::HeaderValue;
use serde_json::Value;
use tokio::time::Instant;

use crate::Endpoint;
use crate::call::{Call, Refusal};
use crate::dialect::{Dialect, Dialects};
use crate::failure::{Failure, FailureKind, Fatal, GaveUpBy};
use crate::http::{Http, HttpOptions};
use crate::request_body::request_body;

/// Asks providers. Cheap to clone; all clones share one pool of connections.
#[derive(Debug, Clone)]
pub struct ChatClient {
    pub(crate) http: Arc<Http>,
    dialects: Arc<Dialects>,
}

/// What a model is asked, and how it should answer.
#[derive(Debug, Clone, Copy)]
pub struct ChatRequest<'a> {
    /// The provider's own id of the model.
    pub model: &'a str,
    /// What it is shown.
    pub prompt: &'a Prompt,
    /// How it should answer.
    pub generation: &'a Generation,
    /// JSON schema that the answer must follow; left out for servers that know no such thing, so whoever reads
    /// the answer checks it all the same.
    pub reply_schema: Option<&'a Value>,
}

impl ChatClient {
    /// A client. Connects to nothing yet.
    pub fn new(options: HttpOptions) -> Self {
        Self { http: Http::new(options), dialects: Arc::default() }
    }

    /// Asks once and waits for the whole answer.
    ///
    /// A request is sent again only when the server refused a field of it that it does not know (see
    /// [`Dialect`]); nothing was generated then. Every other repetition is the caller's decision. Dropping the
    /// future closes the connection, which ends the generation at most providers. The key that was sent is in neither
    /// answer nor failure, also when the provider repeats it.
    ///
    /// # Errors
    /// [`Failure`], whose kind says what to do. When `deadline` passes first, that is
    /// [`TooLong::Time`](crate::TooLong::Time); an answer that is complete but for its usage is kept.
    pub async fn complete(
        &self,
        endpoint: &Endpoint,
        request: &ChatRequest<'_>,
        deadline: Option<Instant>,
    ) -> Result<Answer, Failure> {
        let longest = Instant::now() + self.http.options.call_timeout;
        let end = deadline.map_or(longest, |deadline| deadline.min(longest));
        match self.ask(endpoint, request, end).await {
            Ok(mut answer) => {
                endpoint.keys().redact_answer(&mut answer);
                Ok(answer)
            }
            Err(failure) => Err(failure.without(endpoint)),
        }
    }

    /// How requests to this model differ from the usual form, as far as its server has refused that.
    pub fn dialect(&self, endpoint: &Endpoint, model: &str) -> Dialect {
        self.dialects.of(endpoint, model)
    }

    /// Longest silence that is waited out.
    pub fn idle_timeout(&self) -> Duration {
        self.http.options.idle_timeout
    }

    async fn ask(
        &self,
        endpoint: &Endpoint,
        request: &ChatRequest<'_>,
        end: Instant,
    ) -> Result<Answer, Failure> {
        let has_images = request.prompt.messages.iter().any(|message| !message.images.is_empty());
        let call =
            Call { http: &self.http, endpoint, authorization: authorization(endpoint)?, end, has_images };
        let mut dialect = self.dialects.of(endpoint, request.model);
        let mut steps_left = Dialect::STEPS_MAX;
        loop {
            let body = request_body(request, dialect).map_err(|error| {
                let cause = format!("The request could not be written: {error}");
                Failure::new(FailureKind::Bad, GaveUpBy::Runner, cause)
            })?;
            let Refusal { failure, said } = match call.send(body).await {
                Ok(answer) => return Ok(answer),
                Err(refusal) => refusal,
            };
            let status = failure.status.unwrap_or(0);
            let next = said.and_then(|said| dialect.after_refusal(status, &said, request));
            match next {
                Some(next) if steps_left > 0 => {
                    if self.dialects.remember(endpoint, request.model, next) {
                        tracing::warn!(
                            provider = %endpoint.provider(), model = request.model, dialect = ?next,
                            "The model does not know a field of the request; it is left out or renamed from now on",
                        );
                    }
                    dialect = next;
                    steps_left -= 1;
                }
                _ => return Err(*failure),
            }
        }
    }
}

/// The `Authorization` header of an endpoint.
pub(crate) fn authorization(endpoint: &Endpoint) -> Result<Option<HeaderValue>, Failure> {
    let Some(key) = endpoint.key() else { return Ok(None) };
    match HeaderValue::from_str(&format!("Bearer {}", key.expose())) {
        Ok(mut value) => {
            value.set_sensitive(true);
            Ok(Some(value))
        }
        Err(_) => {
            let name = endpoint.provider().display_name();
            let cause = format!("The key for {name} contains characters that HTTP does not allow");
            Err(Failure::new(FailureKind::FatalForRun(Fatal::Key), GaveUpBy::Runner, cause))
        }
    }
}
