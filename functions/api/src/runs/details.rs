//! One benchmark of a run with its items.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use bench_blobs::{BlobError, body_key};
use bench_domain::{BenchmarkName, Code, RunId, SampleRef};
use bench_state::{BenchmarkRecord, RunRecord, SampleRecord};
use bench_web::error::ErrorBody;
use bench_web::size::{CARRIED_BYTES_MAX, carried_bytes};
use bench_web::views::{
    ItemView, RunBenchmarkView, SummaryBuilder, SummaryView, benchmark_counts, item_view,
};
use bench_web::{ApiError, Caller, FieldReader, Identity, Path};
use futures_util::{StreamExt, stream};
use http::Uri;
use serde::Serialize;
use utoipa::ToSchema;

use crate::Api;
use crate::catalog::benchmarks::known_items;
use crate::runs::page_item::{ADDRESS_BYTES_MAX, BODY_URL_VALID, PageItem};
use crate::runs::requests::run_id;
use crate::runs::sample_filter::{PageRange, SampleFilter};

/// Maximum number of concurrent reads of bodies.
const BODIES_AT_ONCE: usize = 16;
/// Number of samples to read at once for a summary.
const SUMMARY_PAGE: u64 = 1_000;
/// Maximum number of samples for which the summary of an open benchmark is computed on each request. Until it
/// is over, a larger benchmark shows the sums of its counters.
const OPEN_SAMPLES_MAX: u64 = 2_000;
/// Maximum size of a page, in bytes, where responses have no other limit: the page is held in memory.
const PAGE_BYTES_MAX: usize = 128 * 1024 * 1024;
/// Maximum number of samples for which the summary of a closed benchmark is computed where a response has 29
/// seconds. A larger one shows the sums of its counters.
const CLOSED_SAMPLES_MAX: u64 = 300_000;
/// Maximum number of samples that a function with little memory sorts.
const SORTED_SAMPLES_MAX: u64 = 50_000;
const CURSOR_CHARS_MAX: usize = 32;

/// A benchmark of a run, with a page of its samples.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct DetailsView {
    /// The benchmark.
    pub benchmark: RunBenchmarkView,
    /// Page of samples.
    pub items: ItemsPage,
    /// Sums over all samples that are over.
    pub summary: SummaryView,
}

/// Page of samples in the order of the plan: by item, then by sample.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ItemsPage {
    /// Samples, including those that aren't over.
    pub items: Vec<PageItem>,
    /// Number of planned samples, or of those that match the filter.
    pub total: u64,
    /// Requested number of samples, or the number returned if the page ended early.
    pub limit: u64,
    /// Number of skipped samples.
    pub offset: u64,
    /// `cursor` of the next page; null at the end.
    pub next_cursor: Option<String>,
}

/// Returns a benchmark of a run with a page of its samples.
///
/// Texts of gated datasets (prompts, answers, gold answers) are shown only to the run's owner and the operator. A
/// response has at most 4 MiB, so a page may end early: request pages with `next_cursor` until it is null. With
/// `outcome`, `group`, `item` or `sample`, the page has the samples that match all of them, and `limit`, `offset`,
/// `cursor` and `total` count these only; `benchmark` and `summary` are those of the whole benchmark. Samples are in the
/// order of the run's plan, which is random, unless `order` is `dataset`. If a
/// single sample is larger, its longest texts are cut; `cut` names them, and `body_url` is a temporary address of the
/// whole prompt and answer.
#[utoipa::path(
    get, path = "/api/runs/{run_id}/benchmarks/{benchmark_name}", tag = "runs",
    security((), ("key" = []), ("admin" = []), ("session" = [])),
    params(
        ("run_id" = String, Path, description = "Id of the run"),
        ("benchmark_name" = String, Path, description = "Name of the benchmark"),
        ("limit" = Option<u64>, Query, description = "Number of samples, at most 500, default 100"),
        ("offset" = Option<u64>, Query, description = "Number of samples to skip, default 0"),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the previous page, instead of `offset`"),
        ("outcome" = Option<String>, Query, description = "Only samples with these outcomes, separated by commas, such as `incorrect,unparsed`"),
        ("group" = Option<String>, Query, description = "Only samples of items in this group, such as a category"),
        ("item" = Option<String>, Query, description = "Only samples of the item with this id of the dataset, or this index of its row, as `#12`"),
        ("sample" = Option<u64>, Query, description = "Only samples with this index among those of their item, from 0"),
        ("texts" = Option<bool>, Query, description = "`false` leaves out all that is in stored bodies, such as prompts and answers; default `true`"),
        ("order" = Option<String>, Query, description = "`plan` (default), or `dataset` for the order of the dataset's rows, in which a public server sorts at most 50,000 samples"),
    ),
    responses((status = 200, body = DetailsView), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody)),
)]
pub(crate) async fn get_details(
    State(api): State<Arc<Api>>,
    Path((run, name)): Path<(String, String)>,
    identity: Identity,
    uri: Uri,
) -> Result<Json<DetailsView>, ApiError> {
    let mut fields = FieldReader::from_query(&uri);
    let limit = fields.integer("limit", 100, 0, 500);
    let offset = fields.integer("offset", 0, 0, u64::MAX);
    let cursor = fields.maybe_text("cursor", CURSOR_CHARS_MAX);
    let from = cursor.filter(|cursor| !cursor.is_empty()).map(|cursor| cursor.parse::<u64>());
    if matches!(from, Some(Err(_))) {
        fields.note("value_error", "cursor", "Input should be the `next_cursor` of a page");
    }
    let filter = SampleFilter::read(&mut fields);
    let texts = fields.maybe_flag("texts").unwrap_or(true);
    fields.finish()?;
    let offset = from.and_then(Result::ok).unwrap_or(offset);
    let page = PageRange { offset, limit, texts };
    let run = run_id(&run).map_err(|_| not_found())?;
    filtered_details(&api, run, &name, page, &filter, identity.reader()).await.map(Json)
}

fn not_found() -> ApiError {
    ApiError::new(Code::BenchmarkNotInRun, "Benchmark not found in run")
}

/// Returns one benchmark of a run with its samples from `offset` on, at most `limit`, as far as `caller` may see them.
///
/// # Errors
/// 404 when the run doesn't have the benchmark.
pub async fn benchmark_details(
    api: &Api,
    run: RunId,
    name: &str,
    offset: u64,
    limit: u64,
    caller: &Caller,
) -> Result<DetailsView, ApiError> {
    let page = PageRange { offset, limit, texts: true };
    filtered_details(api, run, name, page, &SampleFilter::default(), caller).await
}

/// Returns one benchmark of a run with a page of the samples that match.
async fn filtered_details(
    api: &Api,
    run: RunId,
    name: &str,
    page: PageRange,
    filter: &SampleFilter,
    caller: &Caller,
) -> Result<DetailsView, ApiError> {
    let PageRange { offset, limit, texts } = page;
    let found = api.state.run_with_benchmarks(run).await?.filter(|found| caller.sees_run(&found.run.spec));
    let found = found.ok_or_else(not_found)?;
    let named = name.parse::<BenchmarkName>().ok().and_then(|name| bench_benchmarks::find_named(&name));
    let name = named.map_or(name, |benchmark| benchmark.name());
    let record = found.benchmark(name).ok_or_else(not_found)?;
    let counts = benchmark_counts(&api.state, run, record).await?;
    let benchmark = RunBenchmarkView::new(&found.run, record, &counts, known_items);
    let dataset = record.plan.as_ref().map(|plan| &plan.dataset);
    let hidden = bench_benchmarks::is_private(&record.name, dataset) && !caller.owns(&found.run.spec.owner);
    let planned = benchmark.planned_samples;
    let (samples, total) = match filter.is_everything() {
        true => (api.state.samples_page(run, record, offset, limit).await?, planned),
        false => matching_samples(api, run, record, planned, page, filter).await?,
    };
    let read = samples.len() as u64;
    let items = items(api, &found.run, record, samples, hidden, texts).await?;
    let shown = items.len() as u64;
    let next = offset.saturating_add(shown);
    let summary = match summary(api, &found.run, record, planned).await? {
        Some(summary) => summary,
        None => SummaryView::from_counts(&counts, found.run.spec.price),
    };
    let summary = if hidden { summary.hide() } else { summary };
    let items = ItemsPage {
        items,
        total,
        limit: if shown < read { shown } else { limit },
        offset,
        next_cursor: (shown > 0 && next < total).then(|| next.to_string()),
    };
    Ok(DetailsView { benchmark, items, summary })
}

/// Returns the samples of the page among those that match, and the number of all that match.
async fn matching_samples(
    api: &Api,
    run: RunId,
    benchmark: &BenchmarkRecord,
    planned: u64,
    page: PageRange,
    filter: &SampleFilter,
) -> Result<(Vec<SampleRecord>, u64), ApiError> {
    if !api.config.streaming && planned > CLOSED_SAMPLES_MAX {
        return Err(ApiError::new(
            Code::InvalidRequest,
            format!(
                "the benchmark has {planned} samples, and this server filters at most {CLOSED_SAMPLES_MAX}; export the \
                 run instead"
            ),
        ));
    }
    let is_sorted = filter.is_sorted() && (api.config.streaming || planned <= SORTED_SAMPLES_MAX);
    let (mut samples, mut total, mut read) = (Vec::new(), 0, 0);
    while read < planned {
        let records = api.state.samples_page(run, benchmark, read, SUMMARY_PAGE).await?;
        for record in records.into_iter().filter(|record| filter.matches(record)) {
            if is_sorted || (total >= page.offset && (samples.len() as u64) < page.limit) {
                samples.push(record);
            }
            total += 1;
        }
        read += SUMMARY_PAGE;
    }
    if is_sorted {
        // Ids of items are indices of rows.
        samples.sort_by_cached_key(|sample| {
            let row = sample.item_id.parse::<u64>().ok();
            (row.is_none(), row, sample.item_id.clone(), sample.position)
        });
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        samples = samples.into_iter().skip(count(page.offset)).take(count(page.limit)).collect();
    }
    Ok((samples, total))
}

async fn items(
    api: &Api,
    run: &RunRecord,
    benchmark: &BenchmarkRecord,
    samples: Vec<SampleRecord>,
    hidden: bool,
    texts: bool,
) -> Result<Vec<PageItem>, ApiError> {
    let read = |sample: SampleRecord| async move {
        let view = if hidden {
            item_view(run, benchmark, &sample, None).hide()
        } else if !texts {
            item_view(run, benchmark, &sample, None)
        } else {
            item(api, run, benchmark, &sample).await?
        };
        Ok::<_, ApiError>((sample, view))
    };
    let bytes_max = if api.config.streaming { PAGE_BYTES_MAX } else { CARRIED_BYTES_MAX };
    let mut page = Vec::with_capacity(samples.len());
    let mut bytes = 0_usize;
    let mut all = stream::iter(samples.into_iter().map(read)).buffered(BODIES_AT_ONCE);
    while let Some(read) = all.next().await {
        let (sample, view) = read?;
        let mut item = PageItem::whole(view);
        bytes = bytes.saturating_add(carried_bytes(&item));
        if bytes > bytes_max {
            if page.is_empty() {
                item.shorten_to(bytes_max.saturating_sub(ADDRESS_BYTES_MAX));
                if !hidden {
                    item.body_url = body_url(api, run, benchmark, &sample).await?;
                }
                page.push(item);
            }
            break;
        }
        page.push(item);
    }
    Ok(page)
}

pub(crate) fn address(
    run: &RunRecord,
    benchmark: &BenchmarkRecord,
    sample: &SampleRecord,
) -> Option<SampleRef> {
    let plan = benchmark.plan.as_ref()?;
    Some(SampleRef {
        run: run.spec.id,
        benchmark: benchmark.name.clone(),
        plan: plan.attempt,
        shards: plan.shards,
        position: sample.position,
    })
}

/// Returns the download address of a stored prompt and answer.
async fn body_url(
    api: &Api,
    run: &RunRecord,
    benchmark: &BenchmarkRecord,
    sample: &SampleRecord,
) -> Result<Option<String>, ApiError> {
    let stored = sample.stored_body();
    let (Some(stored), Some(address)) = (stored, address(run, benchmark, sample)) else { return Ok(None) };
    let filename = format!("{}_{}.json.zst", run.spec.id, sample.position);
    let key = body_key(&address, stored.attempt);
    let url = api.blobs.presign_get(&key, &filename, BODY_URL_VALID).await;
    url.map(Some).map_err(ApiError::internal)
}

/// Returns a sample with its stored answer. For a lost or damaged answer, the item says so, so that the other
/// items are still shown.
async fn item(
    api: &Api,
    run: &RunRecord,
    benchmark: &BenchmarkRecord,
    sample: &SampleRecord,
) -> Result<ItemView, ApiError> {
    let stored = sample.stored_body();
    let (Some(stored), Some(address)) = (stored, address(run, benchmark, sample)) else {
        return Ok(item_view(run, benchmark, sample, None));
    };
    let problem = match api.blobs.get_body(&address, stored.attempt, Some(&stored.sha256)).await {
        Ok(Some((body, _))) => {
            let mut view = item_view(run, benchmark, sample, Some(&body));
            view.set_executed_code(bench_benchmarks::executed_code(&run.spec, &benchmark.name, &body));
            return Ok(view);
        }
        Ok(None) => "the stored answer is missing",
        Err(error @ (BlobError::Damaged { .. } | BlobError::TooLarge { .. })) => {
            tracing::error!(run.id = %run.spec.id, %error, "The answer to sample {address} cannot be read: {error}");
            "the stored answer is damaged"
        }
        Err(error) => return Err(ApiError::internal(error)),
    };
    let mut view = item_view(run, benchmark, sample, None);
    view.add_error(problem);
    Ok(view)
}

/// Returns the sums over all samples, or `None` for a benchmark with too many samples to read in time.
async fn summary(
    api: &Api,
    run: &RunRecord,
    benchmark: &BenchmarkRecord,
    samples: u64,
) -> Result<Option<SummaryView>, ApiError> {
    let is_closed = benchmark.state.report().is_some();
    let key = (run.spec.id, run.generation, benchmark.name.to_string());
    if let Some(kept) = api.cached_summary(&key).filter(|_| is_closed) {
        return Ok(Some(kept));
    }
    let is_too_long = !api.config.streaming && samples > CLOSED_SAMPLES_MAX;
    if is_too_long || (!is_closed && samples > OPEN_SAMPLES_MAX) {
        return Ok(None);
    }
    let mut builder = SummaryBuilder::new(&run.spec.model);
    let mut offset = 0;
    while offset < samples {
        let page = api.state.samples_page(run.spec.id, benchmark, offset, SUMMARY_PAGE).await?;
        page.iter().for_each(|sample| builder.add_sample(sample));
        offset += SUMMARY_PAGE;
    }
    let summary = builder.finish(run.spec.price);
    if is_closed {
        api.cache_summary(key, summary.clone());
    }
    Ok(Some(summary))
}
