//! Lookup of one sample of a run, as queries name it.

use bench_domain::{BenchmarkName, Code, RunId, SampleRef};
use bench_state::{BenchmarkRecord, RunWithBenchmarks, SampleRecord};
use bench_web::{ApiError, FieldReader, Identity};

use crate::Api;
use crate::runs::details;
use crate::runs::requests::visible_run_with_benchmarks;

const BENCHMARK_CHARS_MAX: usize = 128;

/// A sample as the query parameters `benchmark`, `position` and `sample` name it.
pub(crate) struct SampleQuery {
    benchmark: String,
    /// Index of the item in the run's plan, from 0.
    pub(crate) position: u32,
    /// Index of the sample among those of its item, from 0.
    pub(crate) sample: u32,
}

/// A sample with its run.
pub(crate) struct OneSample {
    pub(crate) found: RunWithBenchmarks,
    /// Name of the benchmark.
    pub(crate) benchmark: BenchmarkName,
    /// True once the samples of the benchmark are known.
    pub(crate) is_planned: bool,
    /// `None` if the plan doesn't have it.
    pub(crate) record: Option<SampleRecord>,
    /// Address of the stored objects of the sample.
    pub(crate) address: Option<SampleRef>,
    /// True if the caller may not see texts: the dataset is gated, and the run is another's.
    pub(crate) is_hidden: bool,
}

impl OneSample {
    /// Refuses a sample that the plan doesn't have.
    ///
    /// # Errors
    /// 404 once the samples of the benchmark are known.
    pub(crate) fn must_exist(&self) -> Result<(), ApiError> {
        match self.is_planned && self.record.is_none() {
            true => Err(ApiError::new(
                Code::SampleNotFound,
                "the run has no such sample; `position` counts the items of its plan, and `sample` the samples of an item, from 0",
            )),
            false => Ok(()),
        }
    }
}

impl SampleQuery {
    /// Reads the parameters, and notes problems.
    pub(crate) fn read(fields: &mut FieldReader) -> Self {
        let benchmark = fields.text("benchmark", BENCHMARK_CHARS_MAX);
        let mut index =
            |field: &str| u32::try_from(fields.integer(field, 0, 0, u32::MAX.into())).unwrap_or(u32::MAX);
        Self { benchmark, position: index("position"), sample: index("sample") }
    }

    /// Looks the sample up.
    ///
    /// # Errors
    /// 404 if there is no such run, or if it doesn't have the benchmark.
    pub(crate) async fn find(
        &self,
        api: &Api,
        run: RunId,
        identity: &Identity,
    ) -> Result<OneSample, ApiError> {
        let found = visible_run_with_benchmarks(api, run, identity.reader()).await?;
        let named = self.benchmark.parse::<BenchmarkName>().ok();
        let named = named.and_then(|name| bench_benchmarks::find_named(&name));
        let benchmark = found.benchmark(named.map_or(self.benchmark.as_str(), |benchmark| benchmark.name()));
        let benchmark =
            benchmark.ok_or_else(|| ApiError::new(Code::BenchmarkNotInRun, "Benchmark not found in run"))?;
        let dataset = benchmark.plan.as_ref().map(|plan| &plan.dataset);
        let is_private = bench_benchmarks::is_private(&benchmark.name, dataset);
        let is_hidden = is_private && !identity.reader().owns(&found.run.spec.owner);
        let record = self.record(api, run, benchmark).await?;
        let address = record.as_ref().and_then(|record| details::address(&found.run, benchmark, record));
        let is_planned = benchmark.plan.is_some();
        Ok(OneSample { benchmark: benchmark.name.clone(), is_planned, record, address, is_hidden, found })
    }

    async fn record(
        &self,
        api: &Api,
        run: RunId,
        benchmark: &BenchmarkRecord,
    ) -> Result<Option<SampleRecord>, ApiError> {
        let per_item = benchmark.plan.as_ref().map_or(1, |plan| plan.samples_per_item.max(1));
        if self.sample >= per_item {
            return Ok(None);
        }
        let offset =
            u64::from(self.position).saturating_mul(per_item.into()).saturating_add(self.sample.into());
        Ok(api.state.samples_page(run, benchmark, offset, 1).await?.into_iter().next())
    }
}
