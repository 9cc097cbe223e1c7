//! Confirms a caller's key with one authenticated call to its own provider.

use bench_domain::{Generation, Prompt, Secret};
use reqwest::{Request, Url};

use crate::catalog::CatalogError;
use crate::failure::{Failure, FailureKind, GaveUpBy};
use crate::protocols::RequestError;
use crate::transport::invalid_request_failure;
use crate::{ChatClient, ChatRequest, Endpoint};

/// A provider's verdict on a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyCheck {
    /// The provider accepts the key.
    Confirmed,
    /// The provider refuses the key.
    Refused,
    /// The provider accepts any key, so its answer says nothing about this one.
    AnyKey,
}

/// Result of [`ChatClient::check_endpoint`].
#[derive(Debug)]
pub struct EndpointCheck {
    /// Number of models that the endpoint lists for the key, or `None` if it has no list (404 or 405), as many servers
    /// don't. Requests may work nevertheless.
    pub models: Result<Option<usize>, CatalogError>,
    /// The provider's verdict on the key, or `None` if only a request to a model could tell.
    pub key: Result<Option<KeyCheck>, Failure>,
}

impl ChatClient {
    /// Asks a provider whether the endpoint's key is valid.
    ///
    /// `account` is the provider's address for that ([`crate::InferenceConfig::account_url`]). Without one, asks for
    /// the list of models, or, if that list is public, for one token of `model`. Repeats both with an invented key: a
    /// server that accepts that one confirms nothing.
    ///
    /// # Errors
    /// Returns a [`Failure`] if the provider could not be asked.
    pub async fn confirm_key(
        &self,
        endpoint: &Endpoint,
        account: Option<Url>,
        model: &str,
    ) -> Result<KeyCheck, Failure> {
        let protocol = endpoint.provider().protocol;
        if let Some(account) = account {
            return match self.check_request(endpoint, protocol.get_request(endpoint.target(), account)).await
            {
                Ok(()) => Ok(KeyCheck::Confirmed),
                // A key may be restricted to some models, so a request to the model itself decides.
                Err(failure) if failure.status == Some(403) => self.probe(endpoint, model).await,
                Err(failure) => check_refusal(failure),
            };
        }
        let unknown = with_unknown_key(endpoint)?;
        let models = |endpoint: &Endpoint| protocol.models_request(endpoint.target(), None);
        match self.check_request(endpoint, models(endpoint)).await {
            Ok(()) => match self.check_request(&unknown, models(&unknown)).await {
                Err(failure) if is_refusal(&failure) => return Ok(KeyCheck::Confirmed),
                Err(failure) => return Err(failure),
                Ok(()) => {}
            },
            // Without a list, a request to the model itself decides.
            Err(failure) if has_no_list(&failure) => {}
            Err(failure) => return check_refusal(failure),
        }
        match self.probe(&unknown, model).await? {
            KeyCheck::Refused => self.probe(endpoint, model).await,
            _ => Ok(KeyCheck::AnyKey),
        }
    }

    /// Checks the list of models and the key of an endpoint, without asking a model, which would cost tokens.
    ///
    /// See [`ChatClient::confirm_key`] for `account`. Without one, the list of models decides about the key: it is
    /// requested once with the key, and once with an invented one.
    pub async fn check_endpoint(&self, endpoint: &Endpoint, account: Option<Url>) -> EndpointCheck {
        if let Some(account) = account {
            let (models, key) =
                tokio::join!(self.count_models(endpoint), self.check_at_account(endpoint, account));
            return EndpointCheck { models, key: key.map(Some) };
        }
        let models = self.count_models(endpoint).await;
        let key = match &models {
            Ok(Some(_)) => self.check_by_list(endpoint).await.map(Some),
            Ok(None) => Ok(None),
            Err(CatalogError::Request(failure)) => check_refusal(failure.clone()).map(Some),
            Err(error) => Err(bad_list(error)),
        };
        EndpointCheck { models, key }
    }

    /// Counts the models that an endpoint lists. Returns `None` if it has no list (404 or 405).
    ///
    /// # Errors
    /// Returns a [`CatalogError`] for a list that could not be read.
    pub async fn count_models(&self, endpoint: &Endpoint) -> Result<Option<usize>, CatalogError> {
        match self.list_gateway_models(endpoint).await {
            Ok(models) => Ok(Some(models.len())),
            Err(CatalogError::Request(failure)) if has_no_list(&failure) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Checks the key at the provider's account address. A 403 is a failure, since the key may be restricted to some
    /// models.
    async fn check_at_account(&self, endpoint: &Endpoint, account: Url) -> Result<KeyCheck, Failure> {
        let request = endpoint.provider().protocol.get_request(endpoint.target(), account);
        match self.check_request(endpoint, request).await {
            Ok(()) => Ok(KeyCheck::Confirmed),
            Err(failure) if failure.status == Some(401) => Ok(KeyCheck::Refused),
            Err(failure) => Err(failure),
        }
    }

    /// Checks a key that can read the list of models: it is confirmed if an invented key can't.
    async fn check_by_list(&self, endpoint: &Endpoint) -> Result<KeyCheck, Failure> {
        let unknown = with_unknown_key(endpoint)?;
        let request = unknown.provider().protocol.models_request(unknown.target(), None);
        match self.check_request(&unknown, request).await {
            Ok(()) => Ok(KeyCheck::AnyKey),
            Err(failure) if is_refusal(&failure) => Ok(KeyCheck::Confirmed),
            Err(failure) => Err(failure),
        }
    }

    async fn check_request(
        &self,
        endpoint: &Endpoint,
        request: Result<Request, RequestError>,
    ) -> Result<(), Failure> {
        let request = request.map_err(|error| invalid_request_failure(endpoint.provider(), &error))?;
        match self.fetch(endpoint.provider(), request, endpoint.keys()).await {
            Ok(_) => Ok(()),
            Err(CatalogError::Request(failure)) => Err(endpoint.redact(failure)),
            Err(other) => Err(bad_list(&other)),
        }
    }

    /// Asks for one token.
    async fn probe(&self, endpoint: &Endpoint, model: &str) -> Result<KeyCheck, Failure> {
        let prompt = Prompt::user("ping");
        let generation = Generation { max_tokens: Some(1), ..Generation::default() };
        let request = ChatRequest {
            model,
            prompt: &prompt,
            generation: &generation,
            reply_schema: None,
            tools: None,
            is_continued: false,
        };
        match self.complete(endpoint, &request, None).await {
            Ok(_) => Ok(KeyCheck::Confirmed),
            // The account was found, and has no money left.
            Err(failure) if failure.status == Some(402) => Ok(KeyCheck::Confirmed),
            // Even a bad answer shows that the key was accepted.
            Err(failure) if failure.status.is_some_and(|status| status < 400) => Ok(KeyCheck::Confirmed),
            Err(failure) => check_refusal(failure),
        }
    }
}

/// The same endpoint with a key that belongs to no account.
fn with_unknown_key(endpoint: &Endpoint) -> Result<Endpoint, Failure> {
    let key = Secret::new(endpoint.provider().protocol.unknown_key()).ok_or_else(|| {
        Failure::new(
            FailureKind::Bad,
            GaveUpBy::Runner,
            "The protocol has no invalid key to compare with".to_owned(),
        )
    })?;
    Ok(endpoint.with_key(key))
}

/// Returns true if an endpoint answered that it has no list of models.
fn has_no_list(failure: &Failure) -> bool {
    matches!(failure.status, Some(404 | 405))
}

fn bad_list(error: &CatalogError) -> Failure {
    Failure::new(FailureKind::Transient, GaveUpBy::Provider, error.to_string())
}

fn is_refusal(failure: &Failure) -> bool {
    matches!(failure.status, Some(401 | 403))
}

fn check_refusal(failure: Failure) -> Result<KeyCheck, Failure> {
    if is_refusal(&failure) { Ok(KeyCheck::Refused) } else { Err(failure) }
}
