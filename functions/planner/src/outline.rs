//! Determines what a benchmark of a run asks: its items in the order of the plan, and the inputs of their prompts.
//! Writes no records, so that callers can preview it without a run.

use std::collections::BTreeMap;

use bench_benchmarks::{Benchmark, Template, Templates};
use bench_blobs::BlobError;
use bench_datasets::{DatasetError, Library, Progress, TemplateLookup};
use bench_domain::Code;
use bench_domain::run::{DatasetChoice, DatasetUse};
use bench_state::PlannedSample;

use crate::choose::{self, Chosen};
use crate::selection::{Obstacle, Selection};
use crate::support;

/// Inputs of prompts besides their items.
#[derive(Debug, Clone, PartialEq)]
pub struct Wording {
    /// The dataset. Its note also says which official texts were unavailable.
    pub dataset: DatasetUse,
    /// Digests of the official texts, by name.
    pub templates: BTreeMap<String, String>,
    /// Text around the item.
    pub template: Template,
    /// The official texts.
    pub texts: Templates,
}

/// Items and prompt inputs of a benchmark in a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Outline {
    /// Items, in the order they are asked.
    pub items: Vec<PlannedSample>,
    /// Number of items to choose from.
    pub of: u64,
    /// Inputs of their prompts.
    pub wording: Wording,
}

/// Copies the dataset into the store and chooses the items to ask.
///
/// # Errors
/// Fails if the store fails, which may be temporary. Everything else is an [`Obstacle`].
pub async fn outline(
    library: &Library,
    progress: &dyn Progress,
    selection: &Selection<'_>,
) -> Result<Result<Outline, Obstacle>, DatasetError> {
    let (benchmark, choice) = (selection.benchmark, selection.dataset);
    let prepared = match Box::pin(library.prepare(benchmark, choice, progress)).await {
        Ok(prepared) => prepared,
        Err(error @ (DatasetError::Blob(BlobError::Store { .. }) | DatasetError::Interrupted(_))) => {
            return Err(error);
        }
        Err(error @ (DatasetError::Gated { .. } | DatasetError::TokenRefused { .. })) => {
            return Ok(Err(Obstacle::NeedsSetup(Code::DatasetGated, error.to_string())));
        }
        Err(error) => return Ok(Err(Obstacle::Failed(Code::DatasetUnavailable, error.to_string()))),
    };
    let Chosen { items, of } = match choose::items(selection, &prepared.index) {
        Ok(chosen) => chosen,
        Err(obstacle) => return Ok(Err(obstacle)),
    };
    match support::check(library, benchmark, &prepared.index, &items).await {
        Ok(Ok(())) => {}
        Ok(Err(obstacle)) => return Ok(Err(obstacle)),
        Err(error @ DatasetError::Blob(BlobError::Store { .. })) => return Err(error),
        Err(error) => return Ok(Err(Obstacle::Failed(Code::DatasetUnavailable, error.to_string()))),
    }
    match wording(library, progress, benchmark, choice, prepared.used).await {
        Ok(wording) => Ok(Ok(Outline { items, of, wording })),
        Err(error @ DatasetError::Blob(BlobError::Store { .. })) => Err(error),
        Err(error) => Ok(Err(Obstacle::Failed(Code::DatasetUnavailable, error.to_string()))),
    }
}

/// Returns the inputs of prompts besides items: official texts, or our own wording for those that are unavailable,
/// which the dataset's note then says. A run of demo data uses only stored texts, so it works without a network and
/// without delay.
pub(crate) async fn wording(
    library: &Library,
    progress: &dyn Progress,
    benchmark: &dyn Benchmark,
    choice: &DatasetChoice,
    dataset: DatasetUse,
) -> Result<Wording, DatasetError> {
    let is_demo = *choice == DatasetChoice::Demo || dataset.is_demo();
    let reach = if is_demo { TemplateLookup::StoreOnly } else { TemplateLookup::StoreThenOrigin };
    let texts = library.templates(benchmark, reach, progress).await?;
    let notes: Vec<&str> = dataset.note.iter().chain(&texts.notes).map(String::as_str).collect();
    let note = (!notes.is_empty()).then(|| notes.join("; "));
    let templates = texts.digests();
    let texts = texts.into_texts();
    let mut template = benchmark.template(&texts);
    if dataset.demo_support {
        template = template.with_demo_support();
    }
    Ok(Wording { dataset: DatasetUse { note, ..dataset }, templates, template, texts })
}
