//! User simulators of orders: models of their own, found like judges. The evaluated model never takes their place.

use bench_domain::run::{AuthMode, ModelRef, UserSpec};
use bench_domain::{BenchmarkName, Budget};
use bench_inference::{ModelName, ModelSource};

use crate::{FoundModel, Order, Orderer, Orders, RunError, TrustedSettings, UserOrder};

/// Returns true if the items of a benchmark are conversations with a simulated user.
pub(crate) fn is_conversation(name: &BenchmarkName) -> bool {
    bench_benchmarks::find(name.as_str()).is_some_and(|benchmark| benchmark.dialogue().is_some())
}

/// Returns true if conversations of an order have a user: a named one, or none is needed since no model is asked.
pub(crate) fn has_user(order: &Order, model: &ModelRef) -> bool {
    !model.is_asked() || order.user.as_ref().is_some_and(|user| user.model.is_some())
}

/// Context for finding the user simulator of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SimulatedRun<'a> {
    /// Model that is measured.
    pub(crate) model: &'a ModelRef,
    /// Benchmark that needs the user simulator.
    pub(crate) benchmark: &'a BenchmarkName,
    /// Budget of the run.
    pub(crate) budget: Budget,
    /// Base URL of the user simulator from the command line, if given.
    pub(crate) base_url: Option<&'a str>,
}

impl Orders {
    /// Finds the user simulator of an order that isn't placed; `None` if the measured source asks no model.
    ///
    /// # Errors
    /// If the order names none; otherwise those of [`Orders::find_model_offline`].
    pub(crate) async fn find_user_offline(
        &self,
        requested: Option<&UserOrder>,
        model: &ModelRef,
        benchmark: &BenchmarkName,
    ) -> Result<Option<FoundModel>, RunError> {
        if !model.is_asked() {
            return Ok(None);
        }
        let order = named_order(requested, benchmark)?;
        let found = self.find_model_offline(&order).await.map_err(RunError::about_user)?;
        checked(found).map(Some)
    }

    /// Finds the user simulator of a run; `None` if the measured source asks no model.
    ///
    /// The caller's key pays for it if it is for the same provider, otherwise the operator's. Callers that may not spend the
    /// operator's money need a user simulator of the provider that their key is for.
    ///
    /// # Errors
    /// If the order names none, or one that can't be asked; otherwise the same errors as for models.
    pub(crate) async fn find_user(
        &self,
        requested: Option<&UserOrder>,
        run: SimulatedRun<'_>,
        orderer: &Orderer,
    ) -> Result<Option<UserSpec>, RunError> {
        if !run.model.is_asked() {
            return Ok(None);
        }
        let named = named_order(requested, run.benchmark)?;
        let order = Order {
            budget: run.budget,
            trusted: TrustedSettings {
                base_url: run.base_url.map(str::to_owned),
                ..TrustedSettings::default()
            },
            ..named
        };
        let source = ModelName::parse(&order.model).ok().map(|name| name.source);
        let source = order.provider.as_deref().and_then(ModelSource::from_name).or(source);
        let key_for = |source: Option<ModelSource>| {
            let same = source.is_some_and(|source| source.as_str() == run.model.provider)
                && run.model.base_url.as_deref() == run.base_url;
            orderer.api_key.clone().filter(|_| same)
        };
        let asker = |key| Orderer { api_key: key, judge_key: None, ..orderer.clone() };
        let found = self.find_model(&order, Some(&asker(key_for(source)))).await;
        let found = checked(found.map_err(RunError::about_user)?)?;
        let key = key_for(Some(found.source));
        if key.is_none() && !self.runs.config.local && !orderer.standing.spends_operators_money() {
            return Err(RunError::UserNeedsKey(found.model.qualified()));
        }
        let asker = asker(key);
        self.check_available(&found, &asker).await.map_err(RunError::about_user)?;
        let price = self.price_for(&order, &found, &asker).await.map_err(RunError::about_user)?;
        let auth = match asker.api_key {
            Some(_) => AuthMode::ApiKey,
            None => AuthMode::System,
        };
        let generation = requested.map(|user| user.generation.clone()).unwrap_or_default();
        Ok(Some(UserSpec { model: found.model, auth, generation, price }))
    }
}

/// Returns an order of the named user simulator.
fn named_order(requested: Option<&UserOrder>, benchmark: &BenchmarkName) -> Result<Order, RunError> {
    let named = requested.and_then(|user| user.model.clone());
    let Some(model) = named else {
        let protocol = bench_benchmarks::find(benchmark.as_str()).and_then(|benchmark| benchmark.dialogue());
        let official = protocol.map(|protocol| protocol.user().official_model);
        return Err(RunError::NoUserModel { benchmark: benchmark.clone(), official });
    };
    let provider = requested.and_then(|user| user.provider.clone());
    Ok(Order { model, provider, ..Order::default() })
}

/// Refuses sources of answers that aren't models.
fn checked(found: FoundModel) -> Result<FoundModel, RunError> {
    match found.source.is_remote() {
        true => Ok(found),
        false => Err(RunError::NotAUserModel(found.model.qualified())),
    }
}
