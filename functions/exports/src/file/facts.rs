//! Facts about a run and its benchmarks in an export, apart from the samples.

use std::collections::BTreeSet;

use bench_domain::report::BenchmarkReport;
use bench_domain::run::{DatasetUse, Plan};
use bench_domain::{
    CauseCounts, Code, ErrorCause, Outcome, OutcomeCounts, Position, ReportedModels, RunId, Timestamp,
};
use bench_state::{
    BenchmarkRecord, RunRecord, RunWithBenchmarks, SampleExcerpt, SampleRecord, State, StateError,
};

use crate::ExportFormat;
use crate::file::samples::PAGE_SAMPLES;

/// Maximum number of error causes per benchmark.
const CAUSES_LISTED_MAX: usize = 10;

/// A run that is over, with the sums over its samples.
#[derive(Debug, Clone)]
pub(crate) struct RunFacts {
    pub(crate) run: RunRecord,
    pub(crate) completed_at: Timestamp,
    /// Meaning of the overall score: the score of one benchmark, or a mean.
    pub(crate) overall_score_label: String,
    pub(crate) benchmarks: Vec<BenchmarkFacts>,
}

/// A benchmark of a run, with the sums over its samples.
#[derive(Debug, Clone)]
pub(crate) struct BenchmarkFacts {
    pub(crate) record: BenchmarkRecord,
    pub(crate) tally: Tally,
}

/// Source of the sums over samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TallySource {
    /// Records of the samples, without their bodies.
    Samples,
    /// Report of the benchmark, if it has all sums. It has neither the number of samples without a verdict nor, for private
    /// datasets, causes of errors; only archives have these.
    Report,
    /// Report of the benchmark, if it has all sums of an archive. The sums of an archive are those of the samples in it, so
    /// they are compared when these are written.
    ComparedReport,
}

impl TallySource {
    pub(crate) const fn of(format: ExportFormat) -> Self {
        match format {
            ExportFormat::Zip => Self::ComparedReport,
            ExportFormat::Csv | ExportFormat::Jsonl | ExportFormat::Markdown | ExportFormat::Pdf => {
                Self::Report
            }
        }
    }

    /// Returns the sums of a benchmark's report; `None` if the samples have to be read for them.
    fn reported(self, benchmark: &BenchmarkRecord) -> Option<Tally> {
        let tally = benchmark.state.report().and_then(Tally::from_report);
        match self {
            Self::Samples => None,
            Self::Report => tally,
            // A report doesn't have the causes of all errors.
            Self::ComparedReport => {
                tally.filter(|tally| tally.outcomes.get(Outcome::InfrastructureError) == 0)
            }
        }
    }
}

/// Sums over samples.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// Samples that ended.
    pub(crate) samples_done: u64,
    /// Samples that were answered but not judged, because the run ended first.
    pub(crate) samples_unjudged: u64,
    /// Items whose samples all ended.
    pub(crate) items_done: u64,
    pub(crate) outcomes: OutcomeCounts,
    /// Causes of the infrastructure-errors.
    causes: CauseCounts,
    /// Model ids as the provider reported them.
    pub(crate) models: ReportedModels,
    /// Current item, and number of its samples that ended.
    item: (u32, u32),
}

impl Tally {
    /// Returns the sums of a report; `None` if samples have to be read for them, because the report is of an older version,
    /// has no model ids since they are too long, or is of a benchmark that was stopped.
    fn from_report(report: &BenchmarkReport) -> Option<Self> {
        let models = report.reported_models.clone()?;
        report.is_complete().then(|| Self {
            samples_done: report.outcomes.total(),
            items_done: report.items,
            outcomes: report.outcomes,
            models,
            ..Self::default()
        })
    }

    /// Adds a sample. Those of an item follow each other.
    pub(crate) fn add<'a>(&mut self, sample: impl Into<Summand<'a>>, samples_per_item: u32) {
        let sample = sample.into();
        if self.item.0 != sample.position.item {
            self.item = (sample.position.item, 0);
        }
        self.samples_unjudged += u64::from(sample.is_unjudged);
        if let Some(outcome) = sample.outcome {
            self.samples_done += 1;
            self.outcomes.add(outcome);
            if outcome == Outcome::InfrastructureError {
                self.causes.add(sample.code, sample.reason, 1);
            }
            self.item.1 += 1;
            self.items_done += u64::from(self.item.1 == samples_per_item.max(1));
        }
        sample.model.iter().for_each(|model| self.models.add(model));
    }

    /// Returns true if both have the same sums. Causes of errors aren't compared: a report is compared only if there are none.
    pub(crate) fn agrees_with(&self, other: &Self) -> bool {
        let sums =
            |tally: &Self| (tally.samples_done, tally.samples_unjudged, tally.items_done, tally.outcomes);
        sums(self) == sums(other) && self.models == other.models
    }
}

/// Contribution of a sample to the sums.
pub(crate) struct Summand<'a> {
    position: Position,
    outcome: Option<Outcome>,
    code: Option<Code>,
    reason: &'a str,
    model: Option<&'a str>,
    is_unjudged: bool,
}

impl<'a> From<&'a SampleExcerpt> for Summand<'a> {
    fn from(sample: &'a SampleExcerpt) -> Self {
        let SampleExcerpt { position, outcome, code, reason, model, is_unjudged } = sample;
        let (position, outcome, code, is_unjudged) = (*position, *outcome, *code, *is_unjudged);
        Self { position, outcome, code, reason, model: model.as_deref(), is_unjudged }
    }
}

impl<'a> From<&'a SampleRecord> for Summand<'a> {
    fn from(record: &'a SampleRecord) -> Self {
        let verdict = record.finished.as_ref().map(|finished| &finished.verdict);
        Self {
            position: record.position,
            outcome: verdict.map(|verdict| verdict.outcome),
            code: verdict.and_then(|verdict| verdict.code),
            reason: verdict.map(|verdict| verdict.reason.as_str()).unwrap_or_default(),
            model: record.reported_model(),
            is_unjudged: record.unjudged_answer().is_some(),
        }
    }
}

/// Tokens that are estimates, since no provider counted them; `None` if unknown, or without a judge.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EstimatedTokens {
    pub(crate) answers: Option<u64>,
    pub(crate) judge: Option<u64>,
}

impl RunFacts {
    /// Gathers the sums over all samples, which precede the samples in results, manifests and tables.
    pub(crate) async fn gather(
        state: &State,
        found: RunWithBenchmarks,
        completed_at: Timestamp,
        source: TallySource,
    ) -> Result<Self, StateError> {
        let run = found.run.spec.id;
        let overall_score_label = found.overall_score_label();
        let mut benchmarks = Vec::with_capacity(found.benchmarks.len());
        for record in found.benchmarks {
            let tally = match source.reported(&record) {
                Some(tally) => tally,
                None => tally(state, run, &record).await?,
            };
            benchmarks.push(BenchmarkFacts { record, tally });
        }
        Ok(Self { run: found.run, completed_at, overall_score_label, benchmarks })
    }

    /// Returns the facts as a file of this format has them: the sums of a table don't depend on the archive that it is built
    /// together with.
    pub(crate) fn for_format(&self, format: ExportFormat) -> Self {
        let mut facts = self.clone();
        if TallySource::of(format) == TallySource::Report {
            for benchmark in &mut facts.benchmarks {
                if let Some(reported) = TallySource::Report.reported(&benchmark.record) {
                    benchmark.tally = reported;
                }
            }
        }
        facts
    }

    /// Returns true if any item is demo data instead of the real dataset.
    pub(crate) fn is_demo(&self) -> bool {
        self.benchmarks.iter().any(BenchmarkFacts::is_demo)
    }

    /// Returns true if items of any benchmark have several samples.
    pub(crate) fn has_several_samples(&self) -> bool {
        self.benchmarks.iter().any(|found| found.plan().is_some_and(|plan| plan.samples_per_item > 1))
    }

    /// Returns graded / planned samples over all benchmarks; `None` if none were planned.
    pub(crate) fn coverage(&self) -> Option<f64> {
        let planned = self.benchmarks.iter().map(BenchmarkFacts::samples_planned).sum();
        let graded = self.benchmarks.iter().map(|benchmark| benchmark.tally.outcomes.graded()).sum();
        share(graded, planned)
    }

    /// Returns the model ids of all benchmarks, as the provider reported them.
    pub(crate) fn models(&self) -> BTreeSet<&str> {
        self.benchmarks.iter().flat_map(|benchmark| benchmark.tally.models.iter()).collect()
    }
}

impl BenchmarkFacts {
    pub(crate) fn plan(&self) -> Option<&Plan> {
        self.record.plan.as_ref()
    }

    pub(crate) fn dataset(&self) -> Option<&DatasetUse> {
        self.plan().map(|plan| &plan.dataset)
    }

    pub(crate) fn is_demo(&self) -> bool {
        self.dataset().is_some_and(DatasetUse::is_demo)
    }

    pub(crate) fn score(&self) -> Option<f64> {
        self.record.state.report().and_then(|report| report.score)
    }

    /// Returns the number of planned items.
    pub(crate) fn items_planned(&self) -> u64 {
        self.plan().map_or(0, |plan| plan.items)
    }

    /// Returns the number of planned samples.
    pub(crate) fn samples_planned(&self) -> u64 {
        self.plan().map_or(0, Plan::samples)
    }

    /// Returns graded / planned samples; `None` if none were planned.
    pub(crate) fn coverage(&self) -> Option<f64> {
        share(self.tally.outcomes.graded(), self.samples_planned())
    }

    /// Returns the numbers of estimated tokens.
    pub(crate) fn estimated_tokens(&self) -> EstimatedTokens {
        let Some(report) = self.record.state.report() else { return EstimatedTokens::default() };
        // A report has the spending if any of it is an estimate. Reports of older versions have it only for
        // runs with a budget: without one, the number of estimated tokens is unknown.
        let answers = report.spent.map(|spent| spent.estimated_tokens);
        let judge = report.judge_spent.map(|spent| spent.estimated_tokens);
        EstimatedTokens {
            answers: answers.or((report.without_usage == 0).then_some(0)),
            judge: judge.or(report.judge_usage.map(|_| 0)),
        }
    }

    /// Returns the causes of the infrastructure-errors, most frequent first.
    pub(crate) fn error_causes(&self) -> Vec<ErrorCause> {
        self.tally.causes.clone().finish(CAUSES_LISTED_MAX)
    }

    /// Returns correct / planned samples; `None` if none were planned.
    pub(crate) fn accuracy_all(&self) -> Option<f64> {
        share(self.tally.outcomes.get(Outcome::Correct), self.samples_planned())
    }
}

/// Sums the samples of a benchmark, page by page.
async fn tally(state: &State, run: RunId, benchmark: &BenchmarkRecord) -> Result<Tally, StateError> {
    let mut tally = Tally::default();
    let (samples_per_item, planned) =
        benchmark.plan.as_ref().map_or((1, 0), |plan| (plan.samples_per_item, plan.samples()));
    let mut offset = 0;
    while offset < planned {
        let page = state.sample_excerpts_page(run, benchmark, offset, PAGE_SAMPLES).await?;
        page.iter().for_each(|sample| tally.add(sample, samples_per_item));
        offset += PAGE_SAMPLES;
    }
    Ok(tally)
}

#[allow(clippy::cast_precision_loss)] // counts are far below 2^53
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
