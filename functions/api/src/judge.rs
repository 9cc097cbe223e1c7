//! Who judges: read from orders, found as models are, and asked with whose key.

use bench_domain::run::{AuthMode, JudgeSpec, ModelRef};
use bench_domain::{BenchmarkName, Budget, Code, Generation, Secret};
use bench_inference::{ModelName, ProviderKind};
use bench_web::{ApiError, FieldReader};
use serde::Serialize;
use utoipa::ToSchema;

use crate::budget::{NO_JUDGE_PRICE, price_for};
use crate::lookup::find_model;
use crate::order::{MAX_TOKENS_MAX, MODEL_CHARS_MAX, TEMPERATURE_MAX, Trusted};
use crate::{Api, Order, Orderer, availability};

const ORACLE: &str = "oracle";
/// What can be said of a judge.
const JUDGE_FIELDS: [&str; 6] =
    ["model_id", JUDGE_MODEL_ALIAS, "provider", "temperature", "seed", "max_tokens"];
/// Another name of the judge's `model_id`, as views of runs have it.
pub(crate) const JUDGE_MODEL_ALIAS: &str = "model";
/// What the judge is called in front of what was wrong with it.
const ABOUT: &str = "The judge";

/// Who judges, as it was ordered.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct JudgeOrder {
    /// The judge: a catalogue id, a provider's id, a slug, or `provider/slug`; `None` takes the default one.
    pub model: Option<String>,
    /// The provider that must have it; `None` leaves it open.
    pub provider: Option<String>,
    /// Settings of its replies that replace the protocol's, where set.
    pub generation: Generation,
}

/// Who judges, in the body of an order.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = JudgeOrder)]
#[allow(dead_code)] // describes what `read_judge` reads
pub(crate) struct JudgeBody {
    /// The judge, named as models are. Without it the operator's default (`BENCH_JUDGE_MODEL`), else `oracle`, which
    /// compares with the gold answer, where the model is `oracle` too.
    model_id: Option<String>,
    /// Another name of `model_id`.
    model: Option<String>,
    /// The provider that must have it.
    provider: Option<String>,
    /// Randomness of its replies, 0 to 2; the protocol's own when not given.
    temperature: Option<f64>,
    /// Seed of the provider's sampler; the protocol's own when not given.
    seed: Option<i64>,
    /// Upper bound of a reply in tokens; the protocol's own when not given.
    max_tokens: Option<u32>,
}

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

/// Reads the object `judge`, if it was sent. What is not known in it is refused: a judge that was misspelt must not
/// become the default one.
pub(crate) fn read_judge(fields: &mut FieldReader) -> Option<JudgeOrder> {
    fields.refuse("judge_model", "There is no such field: the judge is named in judge.model_id");
    fields.within("judge", |judge| {
        judge.refuse_unknown(&JUDGE_FIELDS);
        let not_blank = |text: &String| !text.trim().is_empty();
        let model = judge.maybe_text("model_id", MODEL_CHARS_MAX).filter(not_blank);
        let other = judge.maybe_text(JUDGE_MODEL_ALIAS, MODEL_CHARS_MAX).filter(not_blank);
        if let (Some(model), Some(other)) = (&model, &other)
            && model.trim() != other.trim()
        {
            judge.note(
                "value_error",
                JUDGE_MODEL_ALIAS,
                "Value error, model and model_id name different judges",
            );
        }
        let max_tokens = judge.maybe_integer("max_tokens", 1, MAX_TOKENS_MAX);
        JudgeOrder {
            model: model.or(other),
            provider: judge.maybe_text("provider", MODEL_CHARS_MAX).filter(not_blank),
            generation: Generation {
                temperature: judge.maybe_number("temperature", 0.0, TEMPERATURE_MAX),
                seed: judge.maybe_signed("seed"),
                max_tokens: max_tokens.and_then(|tokens| u32::try_from(tokens).ok()),
                ..Generation::default()
            },
        }
    })
}

/// Whether a benchmark's answers are judged under this protocol.
pub(crate) fn is_judged(name: &BenchmarkName, protocol: Option<&str>) -> bool {
    let found = bench_benchmarks::find(name.as_str());
    let found = found.and_then(|benchmark| bench_benchmarks::under_protocol(benchmark, protocol).ok());
    found.is_some_and(|benchmark| benchmark.judge().is_some())
}

/// Whether there is a judge for answers of this model though none is named.
pub(crate) fn has_default_judge(api: &Api, model: &ModelRef) -> bool {
    api.config.judge_model.is_some() || model.provider == ORACLE
}

/// Finds the judge of a run, and whose key it is asked with.
///
/// The key is the caller's own for the judge, else the caller's key where it is for the same provider, else the
/// operator's. A stranger may spend the operator's money on the judge that the operator has chosen, and on no other.
///
/// # Errors
/// 400 when no judge was named and there is no default, or it has no price for a budget in dollars; else as for models.
pub(crate) async fn find_judge(
    api: &Api,
    wanted: Option<&JudgeOrder>,
    run: JudgedRun<'_>,
    orderer: &Orderer,
) -> Result<FoundJudge, ApiError> {
    let wanted = wanted.cloned().unwrap_or_default();
    let default = api.config.judge_model.as_ref().map(ToString::to_string);
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
    let about = |error: ApiError| error.about(ABOUT);
    let named = ModelName::parse(&model).ok().map(|name| name.provider);
    let named = order.provider.as_deref().and_then(ProviderKind::from_name).or(named);
    let same = |kind: Option<ProviderKind>| {
        kind.is_some_and(|kind| kind.as_str() == run.model.provider)
            && run.model.base_url.as_deref() == run.base_url
    };
    let key_for = |kind: Option<ProviderKind>| {
        orderer.judge_key.clone().or_else(|| orderer.api_key.clone().filter(|_| same(kind)))
    };
    let asker = |key| Orderer { api_key: key, judge_key: None, ..orderer.clone() };
    let mut found = find_model(api, &order, Some(&asker(key_for(named)))).await.map_err(about)?;
    if !found.kind.is_remote() {
        found.model.base_url = None;
    }
    let key = key_for(Some(found.kind)).filter(|_| found.kind.is_remote());
    let is_offered = api.config.server.local
        || orderer.standing.spends_operators_money()
        || default.is_some_and(|default| default == found.model.qualified());
    if found.kind.is_remote() && key.is_none() && !is_offered {
        return Err(ApiError::new(
            Code::JudgeKeyRequired,
            format!(
                "The judge {} needs a key of your own: send it as X-Judge-Authorization: Bearer, or leave judge.model_id out.",
                found.model.qualified()
            ),
        ));
    }
    let asker = asker(key);
    availability::check(api, &found, &asker).await.map_err(about)?;
    let price = match price_for(api, &order, &found, &asker).await {
        Err(error) if error.code() == Code::PriceUnknown => {
            return Err(ApiError::new(Code::PriceUnknown, NO_JUDGE_PRICE));
        }
        price => price?,
    };
    let auth = match asker.api_key {
        Some(_) => AuthMode::ApiKey,
        None => AuthMode::System,
    };
    let spec = JudgeSpec { model: found.model, auth, generation: wanted.generation, price };
    Ok(FoundJudge { spec, key: asker.api_key })
}

/// That a judged benchmark has no judge, and what is to be done about it.
fn no_judge(benchmark: &BenchmarkName) -> ApiError {
    let judge = bench_benchmarks::find(benchmark.as_str()).and_then(|benchmark| benchmark.judge());
    let official =
        judge.map_or_else(String::new, |judge| format!(" Its authors use {}.", judge.facts().official_model));
    ApiError::new(
        Code::JudgeMissing,
        format!(
            "Answers to {benchmark} are judged by a model, and none was named: set judge.model_id (on the command line \
         --judge-model PROVIDER/MODEL) or the variable BENCH_JUDGE_MODEL.{official}"
        ),
    )
}
