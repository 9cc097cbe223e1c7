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
            Err(failure) if matches!(failure.status, Some(404 | 405)) => {}
            Err(failure) => return check_refusal(failure),
        }
        match self.probe(&unknown, model).await? {
            KeyCheck::Refused => self.probe(endpoint, model).await,
            _ => Ok(KeyCheck::AnyKey),
        }
    }

    /// Asks a provider whether the endpoint's key is valid, without asking a model, which would cost tokens.
    ///
    /// See [`ChatClient::confirm_key`] for `account`. Without one, asks for the list of models, with the key and with
    /// an invented one.
    ///
    /// # Errors
    /// Returns a [`Failure`] if the provider could not be asked, or if it answers 403 at its account address, which
    /// may mean that the key is restricted to some models.
    pub async fn check_key(&self, endpoint: &Endpoint, account: Option<Url>) -> Result<KeyCheck, Failure> {
        let protocol = endpoint.provider().protocol;
        if let Some(account) = account {
            return match self.check_request(endpoint, protocol.get_request(endpoint.target(), account)).await
            {
                Ok(()) => Ok(KeyCheck::Confirmed),
                Err(failure) if failure.status == Some(401) => Ok(KeyCheck::Refused),
                Err(failure) => Err(failure),
            };
        }
        let models = |endpoint: &Endpoint| protocol.models_request(endpoint.target(), None);
        if let Err(failure) = self.check_request(endpoint, models(endpoint)).await {
            return check_refusal(failure);
        }
        let unknown = with_unknown_key(endpoint)?;
        match self.check_request(&unknown, models(&unknown)).await {
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
            Err(other) => Err(Failure::new(FailureKind::Transient, GaveUpBy::Provider, other.to_string())),
        }
    }

    /// Asks for one token.
    async fn probe(&self, endpoint: &Endpoint, model: &str) -> Result<KeyCheck, Failure> {
        let prompt = Prompt::user("ping");
        let generation = Generation { temperature: Some(0.0), max_tokens: Some(1), ..Generation::default() };
        let request = ChatRequest { model, prompt: &prompt, generation: &generation, reply_schema: None };
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
        Failure::new(FailureKind::Bad, GaveUpBy::Runner, "There is no text that is no key".to_owned())
    })?;
    Ok(endpoint.with_key(key))
}

fn is_refusal(failure: &Failure) -> bool {
    matches!(failure.status, Some(401 | 403))
}

fn check_refusal(failure: Failure) -> Result<KeyCheck, Failure> {
    if is_refusal(&failure) { Ok(KeyCheck::Refused) } else { Err(failure) }
}
