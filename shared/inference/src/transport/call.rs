//! One HTTP exchange with a provider.

use bench_domain::Answer;
use tokio::time::Instant;

use super::failures::{
    Refusal, invalid_request_failure, missing_client_failure, network_failure, read_refusal, request_id,
    timeout_failure,
};
use super::http::Http;
use super::reading::Reading;
use super::watch::{ExpiredLimit, Watch};
use crate::Endpoint;
use crate::protocols::PreparedRequest;

/// Data shared by all tries of one call.
pub(crate) struct Call<'a> {
    pub(crate) http: &'a Http,
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) end: Instant,
}

impl Call<'_> {
    /// Sends the request and waits for the answer.
    pub(crate) async fn send(&self, prepared: PreparedRequest<'_>) -> Result<Answer, Refusal> {
        let provider = self.endpoint.provider();
        let request = provider.protocol.answer_request(self.endpoint.target(), prepared);
        let request = request.map_err(|error| invalid_request_failure(provider, &error))?;
        let client =
            self.http.client(request.url()).map_err(|problem| missing_client_failure(provider, problem))?;
        let mut watch = Watch::start(self.http.options.idle_timeout, self.end);
        if Instant::now() >= self.end {
            return Err(timeout_failure(provider, ExpiredLimit::Deadline, &watch, 0).into());
        }
        let response = match watch.guard(client.execute(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(network_failure(provider, &error).into()),
            Err(why) => return Err(timeout_failure(provider, why, &watch, 0).into()),
        };
        watch.touch();
        let keys = self.endpoint.keys();
        if !response.status().is_success() {
            return Err(read_refusal(provider, response, &mut watch, Some(prepared), keys).await);
        }
        let status = response.status();
        let request_id = request_id(provider, response.headers(), keys);
        let mut reading = Reading::new(provider, response, watch, prepared.has_images(), keys.clone());
        let mut failure = match reading.read().await {
            Ok(()) => return Ok(reading.into_answer(request_id)),
            Err(failure) => failure,
        };
        failure.usage = reading.usage_so_far();
        failure.status = Some(status.as_u16());
        if let Some(id) = &request_id {
            failure.cause.push_str(&format!(" (request_id={id})"));
        }
        failure.request_id = request_id;
        Err(failure.into())
    }
}
