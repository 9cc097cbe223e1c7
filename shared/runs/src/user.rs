//! User simulators of orders: models of their own, found like judges. The evaluated model never takes their place.

use bench_domain::run::{ModelRef, UserSpec};
use bench_domain::{BenchmarkName, Budget, ModelRole, Secret};

use crate::helper::{FoundHelper, simulating};
use crate::{FoundModel, Order, Orderer, Orders, RunError, TrustedSettings, UserOrder};

/// Returns true if the items of a benchmark are conversations with a simulated user.
pub(crate) fn is_conversation(name: &BenchmarkName) -> bool {
    bench_benchmarks::find(name.as_str()).is_some_and(|benchmark| benchmark.dialogue().is_some())
}

/// Returns true if conversations of an order have a user: a named one, or none is needed since no model is asked.
pub(crate) fn has_user(order: &Order, model: &ModelRef) -> bool {
    !model.is_asked() || order.user.as_ref().is_some_and(|user| user.model.is_some())
}

/// User simulator of an order, with the caller's own key if the user simulator uses it.
#[derive(Debug, Clone)]
pub(crate) struct FoundUser {
    pub(crate) spec: UserSpec,
    pub(crate) key: Option<Secret>,
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
        let found = self.find_model_offline(&order).await;
        simulating(found.map_err(|error| error.about(ModelRole::UserModel))?).map(Some)
    }

    /// Finds the user simulator of a run, and the key that pays for it; `None` if the measured source asks no model.
    ///
    /// # Errors
    /// If the order names none, or one that can't be asked; otherwise those of [`Orders::find_helper`].
    pub(crate) async fn find_user(
        &self,
        requested: Option<&UserOrder>,
        run: SimulatedRun<'_>,
        orderer: &Orderer,
    ) -> Result<Option<FoundUser>, RunError> {
        if !run.model.is_asked() {
            return Ok(None);
        }
        let trusted =
            TrustedSettings { base_url: run.base_url.map(str::to_owned), ..TrustedSettings::default() };
        let order = Order { budget: run.budget, trusted, ..named_order(requested, run.benchmark)? };
        let found = self.find_helper(ModelRole::UserModel, &order, run.model, orderer, |_| false).await?;
        let FoundHelper { model, auth, key, price } = found;
        let generation = requested.map(|user| user.generation.clone()).unwrap_or_default();
        Ok(Some(FoundUser { spec: UserSpec { model, auth, generation, price }, key }))
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
