//! Rejudging: a new run with the same items and samples as an earlier one, whose answers it reuses instead of asking
//! the model.

use std::collections::BTreeMap;

use bench_domain::run::{AuthMode, Owner, Plan};
use bench_domain::{BenchmarkName, RunId, RunLabels, RunSpec, RunTemplate};
use bench_state::{BenchmarkRecord, Idempotency, RejudgingCreation, RunWithBenchmarks};

use crate::creator::FIRST_GENERATION;
use crate::judge::JudgedRun;
use crate::limits::check_sample_limit;
use crate::order::idempotency_name;
use crate::{CallerKeys, CreatedRun, JudgeOrder, Orderer, Orders, RejudgeOrder, RunError, Standing};

impl Orders {
    /// Judges the answers of a run again, for any caller.
    ///
    /// `counted` is the caller whose order is counted, if the order came with a request.
    ///
    /// # Errors
    /// Returns the problem with the order; then nothing was created.
    pub async fn rejudge(
        &self,
        run: RunId,
        mut order: RejudgeOrder,
        standing: Standing,
        counted: Option<&Owner>,
    ) -> Result<CreatedRun, RunError> {
        let state = &self.runs.state;
        let warnings = std::mem::take(&mut order.warnings);
        let asked = state.run(run).await?.ok_or(RunError::RunNotFound)?;
        let first = asked.spec.rejudges.map_or(run, |rejudges| rejudges.run);
        let idempotency = order.idempotency_key.as_ref().map(|key| Idempotency {
            owner: idempotency_name(&asked.spec.owner),
            key: key.clone(),
            digest: order.digest(run),
        });
        if let Some(idempotency) = &idempotency
            && let Some(earlier) = self.runs.existing_run(idempotency).await?
        {
            return Ok(CreatedRun { warnings, ..earlier });
        }
        let found = state.run_with_benchmarks(first).await?.ok_or(RunError::AnswersDeleted)?;
        for record in [&asked, &found.run] {
            if record.state.status().is_open() {
                return Err(RunError::RunOpen { run: record.spec.id, status: record.state.status() });
            }
        }
        let benchmarks = judged_benchmarks(&found)?;
        let requested = resolve_judge_order(&order.judge, &asked.spec);
        // If the judge stays the same, so does its address.
        let kept = asked.spec.judge.as_ref().filter(|_| order.judge.model.is_none());
        let base_url = order.base_url.clone().or_else(|| kept.and_then(|judge| judge.model.base_url.clone()));
        let original = &found.run.spec;
        let orderer = Orderer {
            owner: original.owner.clone(),
            // The key is for the model's provider only if the run itself used the caller's key.
            api_key: order.api_key.clone().filter(|_| original.auth == AuthMode::ApiKey),
            judge_key: order.judge_key.clone(),
            user_key: None,
            session: order.session.clone(),
            standing,
        };
        let limits = self.runs.limits(&original.owner);
        let planned = found.benchmarks.iter().filter(|record| benchmarks.contains(&record.name));
        let planned = planned.filter_map(|record| record.plan.as_ref()).map(Plan::samples).sum();
        check_sample_limit(planned, limits.samples_per_order)?;
        let judged_run = JudgedRun {
            model: &original.model,
            benchmark: benchmarks.first().ok_or(RunError::NothingJudged)?,
            budget: order.budget,
            base_url: base_url.as_deref(),
        };
        let judge = self.find_judge(Some(&requested), judged_run, &orderer).await?;
        if let Some(orderer) = counted {
            self.runs.count_order(orderer).await?;
        }
        let mut spec = RunSpec {
            id: RunId::random(),
            template: RunTemplate {
                selected_benchmarks: Some(benchmarks.iter().map(ToString::to_string).collect()),
                judge: Some(judge.spec),
                // Judged benchmarks have no conversations.
                user: None,
                // The model isn't called, so its answers aren't paid for again.
                price: None,
                budget: order.budget,
                datasets: select_benchmarks(&benchmarks, &original.datasets),
                protocols: select_benchmarks(&benchmarks, &original.protocols),
                options: select_benchmarks(&benchmarks, &original.options),
                benchmarks,
                // The notes are about the other run.
                labels: RunLabels { notes: None, ..original.labels.clone() },
                ..original.template.clone()
            },
            rejudges: None,
            owner: original.owner.clone(),
            // The model needs no key either.
            auth: AuthMode::System,
            session: None,
            schedule: None,
            software: self.runs.config.software.clone(),
            created_at: bench_clock::now(),
        };
        spec.session = orderer.session.filter(|_| spec.uses_session());
        let keys = CallerKeys { judge: judge.key, ..CallerKeys::default() };
        let sealed = keys.seal(&self.runs.credentials, spec.id, FIRST_GENERATION).await?;
        let made = state.create_rejudging(first, &mut spec, idempotency.as_ref(), sealed, Some(&limits));
        match made.await? {
            RejudgingCreation::Created(_) => {
                Ok(CreatedRun { warnings, ..self.runs.announce(&spec, Vec::new()).await? })
            }
            RejudgingCreation::Limited(reached) => Err(self.runs.too_many_open(&spec.owner, reached)),
            RejudgingCreation::Gone => Err(RunError::AnswersDeleted),
            RejudgingCreation::KeyTaken => self.runs.concurrently_created_run(idempotency.as_ref()).await,
        }
    }
}

/// Returns the requested judge. If the order names none, it's the run's own judge, with its settings unless others are
/// given.
fn resolve_judge_order(order: &JudgeOrder, asked: &RunSpec) -> JudgeOrder {
    let Some(judge) = asked.judge.as_ref().filter(|_| order.model.is_none()) else { return order.clone() };
    let (old, new) = (&judge.generation, &order.generation);
    let mut generation = old.clone();
    generation.temperature = new.temperature.or(old.temperature);
    generation.seed = new.seed.or(old.seed);
    generation.max_tokens = new.max_tokens.or(old.max_tokens);
    JudgeOrder { model: Some(judge.model.qualified()), provider: None, generation }
}

/// Returns the entries of these benchmarks.
fn select_benchmarks<T: Clone>(
    benchmarks: &[BenchmarkName],
    all: &BTreeMap<BenchmarkName, T>,
) -> BTreeMap<BenchmarkName, T> {
    let chosen = all.iter().filter(|(name, _)| benchmarks.contains(name));
    chosen.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Returns true if a run has answers that a judge can judge again.
pub fn has_judged_answers(found: &RunWithBenchmarks) -> bool {
    judged_benchmarks(found).is_ok()
}

/// Returns the benchmarks whose answers can be judged.
fn judged_benchmarks(found: &RunWithBenchmarks) -> Result<Vec<BenchmarkName>, RunError> {
    let spec = &found.run.spec;
    let is_judged = |record: &&BenchmarkRecord| {
        bench_benchmarks::find_for_run(spec, &record.name)
            .is_some_and(|benchmark| benchmark.judge().is_some())
    };
    let judged: Vec<&BenchmarkRecord> = found.benchmarks.iter().filter(is_judged).collect();
    if judged.is_empty() {
        return Err(RunError::NothingJudged);
    }
    let planned: Vec<BenchmarkName> =
        judged.into_iter().filter(|record| record.plan.is_some()).map(|record| record.name.clone()).collect();
    if planned.is_empty() {
        return Err(RunError::NoAnswers);
    }
    Ok(planned)
}
