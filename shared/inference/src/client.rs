//! The client for model providers, used by the rest of the program.

use std::sync::Arc;
use std::time::Duration;

use bench_domain::Answer;
use tokio::time::Instant;

use crate::dialects::Dialects;
use crate::failure::Failure;
use crate::protocols::{Dialect, PreparedRequest};
use crate::transport::{Call, Http, HttpOptions, Refusal};
use crate::{ChatRequest, Endpoint};

/// Asks providers. Cheap to clone; all clones share one pool of connections.
#[derive(Debug, Clone)]
pub struct ChatClient {
    pub(crate) http: Arc<Http>,
    dialects: Arc<Dialects>,
}

impl ChatClient {
    /// Creates a client without connecting to anything.
    pub fn new(options: HttpOptions) -> Self {
        Self { http: Http::new(options), dialects: Arc::default() }
    }

    /// Asks once and waits for the whole answer.
    ///
    /// A request is sent again only if the server refused a field that it doesn't know (see [`Dialect`]): it then
    /// generated nothing. All other retries are up to the caller. Dropping the future closes the connection, which
    /// ends the generation at most providers. Neither the answer nor the failure contains the key that was sent, even
    /// if the provider repeats it.
    ///
    /// # Errors
    /// Returns a [`Failure`], whose kind tells the caller what to do. If `deadline` passes first, that is
    /// [`TooLong::Time`](crate::TooLong::Time); an answer that lacks only its usage is kept.
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
            Err(failure) => Err(endpoint.redact(failure)),
        }
    }

    /// Returns the differences from the usual form of a request that this model's server has asked for so far.
    pub fn dialect(&self, endpoint: &Endpoint, model: &str) -> Dialect {
        self.dialects.get(endpoint, model)
    }

    /// Returns the maximum silence before a call is given up.
    pub fn idle_timeout(&self) -> Duration {
        self.http.options.idle_timeout
    }

    async fn ask(
        &self,
        endpoint: &Endpoint,
        request: &ChatRequest<'_>,
        end: Instant,
    ) -> Result<Answer, Failure> {
        let call = Call { http: &self.http, endpoint, end };
        let fields = endpoint.setting_fields();
        let mut dialect = self.dialects.get(endpoint, request.model);
        let mut steps_left = Dialect::STEPS_MAX;
        loop {
            let Refusal { failure, next } =
                match call.send(PreparedRequest { request, fields, dialect }).await {
                    Ok(answer) => return Ok(answer),
                    Err(refusal) => refusal,
                };
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
