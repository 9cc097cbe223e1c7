//! Who judges: found as models are, and asked with whose key.

use bench_domain::run::{AuthMode, JudgeSpec, ModelRef};
use bench_domain::{BenchmarkName, Budget, Secret};
use bench_inference::{ModelName, ModelSource};

use crate::{JudgeOrder, Order, Orderer, Orders, RunError, Trusted};

const ORACLE: &str = "oracle";

/// A judge that was found, and the caller's own key for it, if that is to be used.
#[derive(Debug, Clone)]
pub(crate) struct FoundJudge {
    pub(crate) spec: JudgeSpec,
    pub(crate) key: Option<Secret>,
}

/// What a judge is looked up for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JudgedRun<'a> {
    /// The model whose answers are judged.
    pub(crate) model: &'a ModelRef,
    /// A benchmark that needs the judge.
    pub(crate) benchmark: &'a BenchmarkName,
    /// What the run may cost.
    pub(crate) budget: Budget,
    /// Where the judge answers, when the command line says so.
    pub(crate) base_url: Option<&'a str>,
}

/// Whether a benchmark's answers are judged under this protocol.
pub(crate) fn is_judged(name: &BenchmarkName, protocol: Option<&str>) -> bool {
    let found = bench_benchmarks::find(name.as_str());
    let found = found.and_then(|benchmark| bench_benchmarks::under_protocol(benchmark, protocol).ok());
    found.is_some_and(|benchmark| benchmark.judge().is_some())
}

impl Orders {
    /// Whether there is a judge for answers of this model though none is named.
    pub(crate) fn has_default_judge(&self, model: &ModelRef) -> bool {
        self.config.judge_model.is_some() || model.provider == ORACLE
    }

    /// Finds the judge of a run, and whose key it is asked with.
    ///
    /// The key is the caller's own for the judge, else the caller's key where it is for the same provider, else the
    /// operator's. A stranger may spend the operator's money on the judge that the operator has chosen, and on no other.
    ///
    /// # Errors
    /// When no judge was named and there is no default, or it has no price for a budget in dollars; else as for models.
    pub(crate) async fn find_judge(
        &self,
        wanted: Option<&JudgeOrder>,
        run: JudgedRun<'_>,
        orderer: &Orderer,
    ) -> Result<FoundJudge, RunError> {
        let wanted = wanted.cloned().unwrap_or_default();
        let default = self.config.judge_model.as_ref().map(ToString::to_string);
        let is_default = wanted.model.is_none();
        let model = match (wanted.model, default.clone()) {
            (Some(model), _) | (None, Some(model)) => model,
            (None, None) if run.model.provider == ORACLE => ORACLE.to_owned(),
            (None, None) => return Err(no_judge(run.benchmark)),
        };
        let order = Order {
            model: model.clone(),
            provider: wanted.provider.filter(|_| !is_default),
            budget: run.budget,
            trusted: Trusted { base_url: run.base_url.map(str::to_owned), ..Trusted::default() },
            ..Order::default()
        };
        let named = ModelName::parse(&model).ok().map(|name| name.source);
        let named = order.provider.as_deref().and_then(ModelSource::from_name).or(named);
        let same = |source: Option<ModelSource>| {
            source.is_some_and(|source| source.as_str() == run.model.provider)
                && run.model.base_url.as_deref() == run.base_url
        };
        let key_for = |source: Option<ModelSource>| {
            orderer.judge_key.clone().or_else(|| orderer.api_key.clone().filter(|_| same(source)))
        };
        let asker = |key| Orderer { api_key: key, judge_key: None, ..orderer.clone() };
        let mut found =
            self.find_model(&order, Some(&asker(key_for(named)))).await.map_err(RunError::about_judge)?;
        if !found.source.is_remote() {
            found.model.base_url = None;
        }
        let key = key_for(Some(found.source)).filter(|_| found.source.is_remote());
        let is_offered = self.runs.config.local
            || orderer.standing.spends_operators_money()
            || default.is_some_and(|default| default == found.model.qualified());
        if found.source.is_remote() && key.is_none() && !is_offered {
            return Err(RunError::JudgeNeedsKey(found.model.qualified()));
        }
        let asker = asker(key);
        self.check_available(&found, &asker).await.map_err(RunError::about_judge)?;
        let price = match self.price_for(&order, &found, &asker).await {
            Err(RunError::PriceUnknown) => return Err(RunError::JudgePriceUnknown),
            price => price?,
        };
        let auth = match asker.api_key {
            Some(_) => AuthMode::ApiKey,
            None => AuthMode::System,
        };
        let spec = JudgeSpec { model: found.model, auth, generation: wanted.generation, price };
        Ok(FoundJudge { spec, key: asker.api_key })
    }
}

/// That a judged benchmark has no judge, and whom its authors use.
fn no_judge(benchmark: &BenchmarkName) -> RunError {
    let judge = bench_benchmarks::find(benchmark.as_str()).and_then(|benchmark| benchmark.judge());
    RunError::NoJudge {
        benchmark: benchmark.clone(),
        official: judge.map(|judge| judge.facts().official_model),
    }
}
