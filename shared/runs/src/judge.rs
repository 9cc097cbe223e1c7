//! Judges of orders: found like models, each with a key that pays for it.

use bench_domain::run::{JudgeSpec, ModelRef};
use bench_domain::{BenchmarkName, Budget, ModelRole, Secret};

use crate::helper::FoundHelper;
use crate::{FoundModel, JudgeOrder, Order, Orderer, Orders, RunError, TrustedSettings};

const ORACLE: &str = "oracle";

/// Judge of an order, with the caller's own key if the judge uses it.
#[derive(Debug, Clone)]
pub(crate) struct FoundJudge {
    pub(crate) spec: JudgeSpec,
    pub(crate) key: Option<Secret>,
}

/// Context for finding the judge of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JudgedRun<'a> {
    /// Model whose answers are judged.
    pub(crate) model: &'a ModelRef,
    /// Benchmark that needs the judge.
    pub(crate) benchmark: &'a BenchmarkName,
    /// Budget of the run.
    pub(crate) budget: Budget,
    /// Base URL of the judge from the command line, if given.
    pub(crate) base_url: Option<&'a str>,
}

/// Returns true if a judge grades a benchmark's answers under this protocol.
pub(crate) fn is_judged(name: &BenchmarkName, protocol: Option<&str>) -> bool {
    let found = bench_benchmarks::find(name.as_str());
    let found = found.and_then(|benchmark| bench_benchmarks::with_protocol(benchmark, protocol).ok());
    found.is_some_and(|benchmark| benchmark.judge().is_some())
}

impl Orders {
    /// Returns true if answers of this model have a judge even if the order names none.
    pub(crate) fn has_default_judge(&self, model: &ModelRef) -> bool {
        self.runs.config.judge_model.is_some() || model.provider == ORACLE
    }

    /// Finds the judge of an order that isn't placed; `None` if it names none and there is no default.
    ///
    /// # Errors
    /// Those of [`Orders::find_model_offline`].
    pub(crate) async fn find_judge_offline(
        &self,
        requested: Option<&JudgeOrder>,
        model: &ModelRef,
    ) -> Result<Option<FoundModel>, RunError> {
        let named = requested.and_then(|judge| judge.model.clone());
        let provider = requested.and_then(|judge| judge.provider.clone()).filter(|_| named.is_some());
        let default = || self.runs.config.judge_model.as_ref().map(ToString::to_string);
        let oracle = || (model.provider == ORACLE).then(|| ORACLE.to_owned());
        let Some(model) = named.or_else(default).or_else(oracle) else { return Ok(None) };
        let order = Order { model, provider, ..Order::default() };
        self.find_model_offline(&order).await.map(Some).map_err(|error| error.about(ModelRole::Judge))
    }

    /// Finds the judge of a run, and the key that pays for it.
    ///
    /// Callers that may not spend the operator's money can use the operator's key only with the judge that the operator
    /// has chosen.
    ///
    /// # Errors
    /// If the order names no judge and there is no default, or if the budget is in dollars and the judge has no price;
    /// otherwise those of [`Orders::find_helper`].
    pub(crate) async fn find_judge(
        &self,
        requested: Option<&JudgeOrder>,
        run: JudgedRun<'_>,
        orderer: &Orderer,
    ) -> Result<FoundJudge, RunError> {
        let requested = requested.cloned().unwrap_or_default();
        let default = self.runs.config.judge_model.as_ref().map(ToString::to_string);
        let is_unnamed = requested.model.is_none();
        let model = match (requested.model, default.clone()) {
            (Some(model), _) | (None, Some(model)) => model,
            (None, None) if run.model.provider == ORACLE => ORACLE.to_owned(),
            (None, None) => return Err(no_judge(run.benchmark)),
        };
        let order = Order {
            model,
            provider: requested.provider.filter(|_| !is_unnamed),
            budget: run.budget,
            trusted: TrustedSettings {
                base_url: run.base_url.map(str::to_owned),
                ..TrustedSettings::default()
            },
            ..Order::default()
        };
        let is_default = |found: &FoundModel| default.as_ref() == Some(&found.model.qualified());
        let found = self.find_helper(ModelRole::Judge, &order, run.model, orderer, is_default).await?;
        let FoundHelper { model, auth, key, price } = found;
        let spec = JudgeSpec { model, auth, generation: requested.generation, price };
        Ok(FoundJudge { spec, key })
    }
}

/// Returns the error for a judged benchmark without a judge, with the judge that the benchmark's authors use.
fn no_judge(benchmark: &BenchmarkName) -> RunError {
    let judge = bench_benchmarks::find(benchmark.as_str()).and_then(|benchmark| benchmark.judge());
    RunError::NoJudge {
        benchmark: benchmark.clone(),
        official: judge.map(|judge| judge.metadata().official_model),
    }
}
