//! Chooses the judge of a benchmark and its settings.

use bench_benchmarks::{Benchmark, Templates};
use bench_domain::run::JudgeUse;
use bench_domain::{Code, RunSpec};

use crate::Obstacle;

/// Returns the judge settings of a benchmark in this run. `None` if the benchmark needs no judge.
pub(crate) fn of_run(
    spec: &RunSpec,
    benchmark: &dyn Benchmark,
    templates: &Templates,
) -> Result<Option<JudgeUse>, Obstacle> {
    let Some(judge) = benchmark.judge() else { return Ok(None) };
    let facts = judge.metadata();
    let Some(ordered) = &spec.judge else {
        return Err(Obstacle::Failed(
            Code::JudgeMissing,
            format!(
                "answers are judged by a model, and the run names none: set --judge-model or BENCH_JUDGE_MODEL, or \
             `judge` in the request (the protocol's own judge is {})",
                facts.official_model
            ),
        ));
    };
    let template = judge.template(templates);
    Ok(Some(JudgeUse {
        model: ordered.model.qualified(),
        endpoint_host: ordered.model.endpoint_host.clone(),
        version: spec.rejudges.map_or(1, |rejudges| rejudges.version),
        prompt_digest: template.digest,
        prompt_source: template.source.as_str().to_owned(),
        generation: ordered.generation.over(&(facts.generation)()),
    }))
}
