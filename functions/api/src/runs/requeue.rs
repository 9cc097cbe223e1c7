//! What a requeue repeats.

use axum::body::Body;
use bench_domain::sample::SampleState;
use bench_domain::{Budget, Code, Position, SampleRef};
use bench_state::{RunWithBenchmarks, SampleChoice};
use bench_web::body::{BODY_BYTES_MAX, read_bytes, read_object};
use bench_web::{ApiError, FieldReader};
use http::HeaderMap;
use utoipa::ToSchema;

use crate::Api;
use crate::runs::budget::read_budget;

/// Maximum length of a benchmark's name in a request.
const NAME_CHARS_MAX: usize = 100;

/// Options of a requeue.
#[derive(Debug, ToSchema)]
#[allow(dead_code)] // describes what `read_requeue` reads
pub(crate) struct RequeueBody {
    /// Repeats only samples that ended with an infrastructure-error, also for a run that succeeded.
    errors: Option<bool>,
    /// Repeats only the sample of the item at this position, also for a run that succeeded. Samples with a grade aren't
    /// repeated.
    #[schema(minimum = 0)]
    position: Option<u32>,
    /// Index among the item's samples, 0 if not given. Needs `position`.
    #[schema(minimum = 0)]
    sample: Option<u32>,
    /// Benchmark of the sample; needed with `position` if the run has several.
    benchmark: Option<String>,
    /// New budget in US dollars, above 0, instead of the run's. The run is stopped when it is reached.
    #[schema(exclusive_minimum = 0, maximum = 1_000_000)]
    budget_usd: Option<f64>,
    /// New budget in tokens of prompts and answers together, instead of the run's.
    #[schema(minimum = 1)]
    budget_tokens: Option<u64>,
}

/// Options of a requeue.
#[derive(Debug, Clone, Default)]
pub struct Requeue {
    /// New budget; its limits replace those of the run.
    pub budget: Budget,
    /// If true, only samples that ended with an infrastructure-error are repeated, also for a run that succeeded.
    pub errors: bool,
    /// If given, only this sample is repeated, also for a run that succeeded.
    pub only: Option<ChosenSample>,
}

/// The sample that a requeue repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenSample {
    /// Its benchmark; `None` for the only one of the run.
    pub benchmark: Option<String>,
    /// Its position.
    pub position: Position,
}

impl From<Budget> for Requeue {
    fn from(budget: Budget) -> Self {
        Self { budget, ..Self::default() }
    }
}

/// Reads the body of a request. Clients of the compatible system send none.
pub(super) async fn read_requeue(headers: &HeaderMap, body: Body) -> Result<Requeue, ApiError> {
    let bytes = read_bytes(headers, body, BODY_BYTES_MAX).await?;
    if bytes.is_empty() {
        return Ok(Requeue::default());
    }
    let mut fields = read_object(headers, Body::from(bytes)).await?;
    let errors = fields.flag("errors");
    let index = |fields: &mut FieldReader, name| {
        fields.maybe_integer(name, 0, u64::from(u32::MAX)).and_then(|index| u32::try_from(index).ok())
    };
    let (item, sample) = (index(&mut fields, "position"), index(&mut fields, "sample"));
    let benchmark = fields.maybe_text("benchmark", NAME_CHARS_MAX);
    if item.is_none() && (sample.is_some() || benchmark.is_some()) {
        fields.note("missing", "position", "`sample` and `benchmark` need the position of an item");
    }
    if item.is_some() && errors {
        fields.refuse("errors", "it can't be combined with `position`");
    }
    let only = item.map(|item| ChosenSample {
        benchmark,
        position: Position { item, sample: sample.unwrap_or_default() },
    });
    let what = Requeue { errors, only, budget: read_budget(&mut fields) };
    fields.finish()?;
    Ok(what)
}

/// Finds the sample that a requeue repeats.
///
/// # Errors
/// 400 if the run has no such sample, or the sample was graded.
pub(super) async fn chosen_sample(
    api: &Api,
    found: &RunWithBenchmarks,
    chosen: &ChosenSample,
) -> Result<SampleChoice, ApiError> {
    let nothing = |why: String| ApiError::new(Code::NothingToRequeue, why);
    let benchmark = match (&chosen.benchmark, found.benchmarks.as_slice()) {
        (Some(name), _) => {
            found.benchmark(name).ok_or_else(|| nothing(format!("the run has no benchmark `{name}`")))?
        }
        (None, [only]) => only,
        (None, _) => {
            return Err(nothing("the run has several benchmarks; name the one of the sample".to_owned()));
        }
    };
    let Position { item, sample } = chosen.position;
    let missing = || nothing(format!("`{}` has no sample {sample} at position {item}", benchmark.name));
    let plan = benchmark.plan.as_ref().ok_or_else(missing)?;
    let place = SampleRef {
        run: found.run.spec.id,
        benchmark: benchmark.name.clone(),
        plan: plan.attempt,
        shards: plan.shards,
        position: chosen.position,
    };
    let record = api.state.sample(&place).await?.ok_or_else(missing)?;
    match record.state {
        SampleState::Done { outcome, .. } if outcome.is_graded() => Err(nothing(format!(
            "sample {sample} at position {item} was graded, and only samples without a grade are repeated; order \
             another run"
        ))),
        _ => Ok(SampleChoice { benchmark: benchmark.name.clone(), position: chosen.position }),
    }
}
