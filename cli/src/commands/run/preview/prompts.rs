//! Items of the ordered benchmarks, and the length of their prompts.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bench_benchmarks::{Benchmark, preview_questions};
use bench_datasets::{SupportCache, load_item};
use bench_domain::run::{DatasetChoice, ItemNaming};
use bench_domain::{BenchmarkName, RunId};
use bench_estimate::{ItemSource, PromptLength};
use bench_inference::tokens::estimate_prompt;
use bench_pipeline::{MaterialLoader, SUPPORT_BYTES_MAX};
use bench_planner::{Outline, Selection, outline};
use bench_stack::Stack;

use crate::client::Client;
use crate::commands::run::order::Plan;
use crate::commands::run::preselected;
use crate::progress::DatasetProgress;

/// Number of items whose prompts are made.
const ITEMS_READ: usize = 16;

/// Prompts of a benchmark.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Questions {
    /// Number of items; `None` if it isn't known before the dataset is read.
    pub(super) items: Option<u64>,
    /// Average over the prompts that were read.
    pub(super) per_item: Option<PromptLength>,
}

/// Returns what each ordered benchmark asks. Reads the datasets if the runs are made in this process.
pub(super) async fn questions(
    plan: &Plan,
    client: &Client,
    stack: Option<&Stack>,
    progress: &DatasetProgress,
) -> Vec<(String, Questions)> {
    let names = match plan.benchmarks.is_empty() {
        // Names of the benchmarks that the server preselects.
        true => preselected(client).await.unwrap_or_default(),
        false => plan.benchmarks.clone(),
    };
    let mut all = Vec::with_capacity(names.len());
    for name in names {
        let read = match stack {
            Some(stack) => read(plan, &name, stack, progress).await,
            None => None,
        };
        let questions = read.unwrap_or_else(|| Questions { items: known_items(plan, &name), per_item: None });
        all.push((name, questions));
    }
    all
}

/// Returns the number of items without reading the dataset; `None` if it isn't known.
fn known_items(plan: &Plan, name: &str) -> Option<u64> {
    if !plan.tasks.is_empty() {
        return Some(plan.tasks.len() as u64);
    }
    if !plan.items.is_empty() {
        return Some(plan.items.len() as u64);
    }
    let (benchmark, options) = plan.configured_with_options(name).ok()?;
    let source = match plan.demo {
        true => ItemSource::Demo,
        false if plan.datasets.iter().any(|(given, _)| given.as_str() == name) => ItemSource::Own,
        false => ItemSource::Hub,
    };
    bench_estimate::known_items(benchmark, &options, source, plan.items.len(), &plan.subset)
}

/// Chooses the items as the planner does, and makes the prompts of some; `None` if the dataset can't be read, which the
/// planner reports.
async fn read(plan: &Plan, name: &str, stack: &Stack, progress: &DatasetProgress) -> Option<Questions> {
    let (benchmark, options) = plan.configured_with_options(name).ok()?;
    let choice = choice(plan, name, benchmark, stack, progress).await?;
    stack.library.check(benchmark, &choice).ok()?;
    let selection = Selection {
        benchmark,
        dataset: &choice,
        options: &options,
        items: &plan.items,
        item_naming: ItemNaming::SourceId,
        subset: &plan.subset,
        run: RunId::random(),
    };
    let outline = outline(&stack.library, progress, &selection).await.ok()?.ok()?;
    let items = Some(outline.items.len() as u64);
    Some(Questions { items, per_item: prompt_length(benchmark, &outline, stack).await })
}

async fn choice(
    plan: &Plan,
    name: &str,
    benchmark: &'static dyn Benchmark,
    stack: &Stack,
    progress: &DatasetProgress,
) -> Option<DatasetChoice> {
    let is_given = |(given, _): &&(BenchmarkName, PathBuf)| given.as_str() == name;
    match plan.datasets.iter().find(is_given) {
        Some((_, file)) => {
            let prepared = stack.library.import_local(benchmark, file, progress).await.ok()?;
            Some(DatasetChoice::Local { revision: prepared.used.revision })
        }
        None => Some(plan.dataset_choice(name, &BTreeMap::new())),
    }
}

/// Returns the average length of the prompts of some items, spread over all.
async fn prompt_length(
    benchmark: &'static dyn Benchmark,
    outline: &Outline,
    stack: &Stack,
) -> Option<PromptLength> {
    let cache = SupportCache::new(SUPPORT_BYTES_MAX);
    let wording = &outline.wording;
    let loader = MaterialLoader {
        blobs: &stack.blobs,
        cache: &cache,
        dataset: &wording.dataset,
        templates: &wording.texts,
    };
    let step = outline.items.len().div_ceil(ITEMS_READ).max(1);
    let (mut tokens, mut questions, mut read) = (0_u64, 0_u32, 0_u32);
    for planned in outline.items.iter().step_by(step) {
        let key = &wording.dataset.data_key;
        let item = load_item(&stack.blobs, key, planned.offset, planned.length).await.ok()?;
        let item = benchmark.item_for_sample(&item, 0);
        let material = loader.load(benchmark, &item).await.ok()?;
        // Items without a prompt aren't asked.
        let Ok(previews) = preview_questions(benchmark, &item, &material) else { continue };
        let mut last = 0;
        for preview in &previews {
            // A question that depends on the model's answers is at least as long as the one before.
            last = preview.prompt.as_ref().map_or(last, estimate_prompt);
            tokens = tokens.saturating_add(last);
            questions += 1;
        }
        read += 1;
    }
    #[allow(clippy::cast_precision_loss)] // far below 2^53
    (read > 0).then(|| PromptLength {
        tokens: tokens as f64 / f64::from(read),
        questions: f64::from(questions) / f64::from(read),
    })
}
