//! Conversion of rows to items in the blob store.

use std::collections::BTreeMap;

use bench_blobs::Blobs;
use bench_domain::StoredFile;
use bench_items::{Layout, Row, RowError, source_id};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::attachments::Attachments;
use crate::checkpoint::Checkpoint;
use crate::column_files::store_files;
use crate::error::DatasetError;
use crate::index::{FORMAT, FileInfo, Index, SupportEntry};
use crate::item_files::ItemFiles;
use crate::keys;
use crate::progress::{Progress, Step};
use crate::rows::{self, NumberedRow, RowFile};
use crate::writer::{Writer, WrittenItems, compress_frame, to_json};

/// Maximum number of rows of all support splits, which are held in memory.
const SUPPORT_ROWS_MAX: usize = 100_000;
/// Number of items between two progress reports.
const ITEMS_PER_STEP: u64 = 100;

/// Parts of a dataset that is to be built.
#[derive(Debug)]
pub(crate) struct DatasetParts {
    /// Folder of the dataset's objects.
    pub(crate) folder: String,
    pub(crate) id: String,
    /// `hub`, `local` or `demo`.
    pub(crate) source: &'static str,
    pub(crate) revision: String,
    pub(crate) note: Option<String>,
    pub(crate) infos: Vec<FileInfo>,
    /// Support splits with their files.
    pub(crate) support: Vec<(String, Vec<RowFile>)>,
    /// Support split to which rows among the items may belong; the layout recognizes them. `None` if there are none.
    pub(crate) inline_support: Option<String>,
    /// Digest of the archive that contains the documents.
    pub(crate) documents: Option<String>,
    /// Support values from another dataset.
    pub(crate) borrowed: BTreeMap<String, Value>,
    /// True if `borrowed` are the values of the demo rows.
    pub(crate) demo_support: bool,
    /// Files that jobs need, which are already stored.
    pub(crate) attachments: BTreeMap<String, StoredFile>,
}

/// Makes a dataset. No part of it is visible before it is complete. A large dataset continues from the checkpoint of an
/// earlier process.
pub(crate) async fn normalize(
    blobs: &Blobs,
    layout: &dyn Layout,
    parts: DatasetParts,
    files: &mut ItemFiles<'_>,
    progress: &dyn Progress,
) -> Result<Index, DatasetError> {
    let folder = parts.folder.clone();
    let built = Box::pin(build(blobs, layout, parts, files, progress)).await;
    if let Err(DatasetError::Blob(error)) = &built
        && error.is_upload_gone()
    {
        tracing::warn!(dataset = folder, %error, "The upload of an unfinished dataset no longer exists: it will be rebuilt");
        Checkpoint::clear(blobs, &folder).await?;
    }
    built
}

async fn build(
    blobs: &Blobs,
    layout: &dyn Layout,
    mut parts: DatasetParts,
    files: &mut ItemFiles<'_>,
    progress: &dyn Progress,
) -> Result<Index, DatasetError> {
    let data_key = keys::data(&parts.folder);
    let mut draft = DatasetBuilder::start_or_resume(blobs, &parts.folder, &data_key, files).await?;
    let built = rows_to_items(blobs, layout, &mut draft, &mut parts, files, progress).await;
    let DatasetBuilder { writer, rows_left_out, has_checkpoint, .. } = draft;
    let support = match built {
        Ok(support) => support,
        Err(error) => {
            // Keep an upload that a checkpoint refers to; any other would only take up space.
            if !has_checkpoint {
                writer.abort().await;
            }
            return Err(error);
        }
    };
    let WrittenItems { mut digest, entries, bytes: data_bytes } = Box::pin(writer.finish()).await?;
    let support = write_support(blobs, &data_key, &support, &mut digest).await?;
    if let Some(documents) = &parts.documents {
        digest.update(format!("documents\t{documents}\n"));
    }
    Attachments::update(&parts.attachments, &mut digest);
    let mut infos = files.infos().to_vec();
    infos.append(&mut parts.infos);
    let index = Index {
        format: FORMAT,
        benchmark: layout.name().to_owned(),
        layout_version: layout.version(),
        variant: layout.variant().to_owned(),
        id: parts.id,
        source: parts.source.to_owned(),
        revision: parts.revision,
        digest: hex::encode(digest.finalize()),
        data_key,
        data_bytes,
        items: entries,
        has_source_ids: true,
        support,
        documents: parts.documents,
        attachments: parts.attachments,
        rows_left_out,
        files: infos,
        licence: layout.spec().license.to_owned(),
        note: parts.note,
        demo_support: parts.demo_support,
    };
    blobs.put_json(&keys::index(&parts.folder), &index).await?;
    if has_checkpoint {
        Checkpoint::clear(blobs, &parts.folder).await?;
    }
    let items = index.items.len();
    tracing::info!(dataset.id = index.id, dataset.revision = index.revision, items, "Prepared a dataset");
    Ok(index)
}

/// A dataset that is being built.
struct DatasetBuilder {
    writer: Writer,
    /// Rows so far, or items if the layout numbers items.
    rows: u64,
    rows_left_out: u64,
    /// True if a checkpoint refers to the current upload.
    has_checkpoint: bool,
}

impl DatasetBuilder {
    /// Starts from the beginning, or from the checkpoint of an earlier process.
    async fn start_or_resume(
        blobs: &Blobs,
        folder: &str,
        data_key: &str,
        files: &mut ItemFiles<'_>,
    ) -> Result<Self, DatasetError> {
        let fresh =
            Self { writer: Writer::new(blobs, data_key), rows: 0, rows_left_out: 0, has_checkpoint: false };
        // Only datasets of a hub have checkpoints.
        if matches!(files, ItemFiles::Local(_)) {
            return Ok(fresh);
        }
        let Some(found) = Checkpoint::load(blobs, folder).await? else { return Ok(fresh) };
        let Checkpoint { writer, files: done, rows, rows_left_out, .. } = found;
        let Some(writer) = Writer::resume(blobs, data_key, writer) else { return Ok(fresh) };
        if !files.skip_stored(&done) {
            writer.abort().await;
            return Ok(fresh);
        }
        tracing::info!(dataset = folder, files = done.len(), rows, "Continuing an unfinished dataset");
        Ok(Self { writer, rows, rows_left_out, has_checkpoint: true })
    }
}

/// Stores the items and returns the support values.
async fn rows_to_items(
    blobs: &Blobs,
    layout: &dyn Layout,
    draft: &mut DatasetBuilder,
    parts: &mut DatasetParts,
    files: &mut ItemFiles<'_>,
    progress: &dyn Progress,
) -> Result<BTreeMap<String, Value>, DatasetError> {
    let mut support = SupportValues { values: std::mem::take(&mut parts.borrowed), rows: 0 };
    let splits = std::mem::take(&mut parts.support);
    for (split, files) in splits {
        let mut found = Vec::new();
        let mut last = (split.clone(), None);
        for file in files {
            let name = file.name.clone();
            let mut rows = rows::read(file);
            while let Some(batch) = rows.recv().await {
                for NumberedRow { number, row } in batch? {
                    last = (name.clone(), Some(number));
                    support.count(&last)?;
                    found.push(row);
                }
            }
        }
        support.add(layout, &split, found, &last)?;
    }

    let data_key = keys::data(&parts.folder);
    let mut inline = Vec::new();
    let mut last_inline = (String::new(), None);
    let mut names = Vec::new();
    while let Some(file) = files.next().await? {
        let name = file.name.clone();
        names.push(name.clone());
        let mut rows = rows::read(file);
        while let Some(batch) = rows.recv().await {
            for NumberedRow { number, row } in batch? {
                if parts.inline_support.is_some() && layout.is_support(&row) {
                    last_inline = (name.clone(), Some(number));
                    support.count(&last_inline)?;
                    inline.push(row);
                    continue;
                }
                let location = (name.clone(), Some(number));
                let item = layout.item(draft.rows, row).map_err(|error| row_error(&location, error))?;
                draft.rows += u64::from(item.is_some() || !layout.numbers_items());
                match item {
                    Some(mut item) => {
                        let source_id = source_id(layout, &item.row);
                        store_files(blobs, layout, &data_key, &mut item).await?;
                        draft.writer.add(item, source_id, &name, number).await?;
                    }
                    None => draft.rows_left_out += 1,
                }
                if draft.rows.is_multiple_of(ITEMS_PER_STEP) {
                    progress.step(Step::Normalizing { items: draft.writer.items() });
                }
            }
        }
        if let Some(done) = files.checkpoint_due() {
            let state = draft.writer.state();
            let checkpoint = Checkpoint::new(state, done, draft.rows, draft.rows_left_out);
            checkpoint.store(blobs, &parts.folder).await?;
            draft.has_checkpoint = true;
            files.remove_downloaded();
        }
    }
    if let (Some(split), false) = (&parts.inline_support, inline.is_empty()) {
        support.add(layout, split, inline, &last_inline)?;
    }
    if draft.writer.items() == 0 {
        return Err(DatasetError::content(&names.join(", "), None, None, "it has no items"));
    }
    progress.step(Step::Normalizing { items: draft.writer.items() });
    Ok(support.values)
}

type RowLocation = (String, Option<u64>);

fn row_error((file, row): &RowLocation, error: RowError) -> DatasetError {
    DatasetError::content(file, *row, error.column, error.problem)
}

struct SupportValues {
    values: BTreeMap<String, Value>,
    rows: usize,
}

impl SupportValues {
    fn count(&mut self, (file, row): &RowLocation) -> Result<(), DatasetError> {
        self.rows += 1;
        if self.rows > SUPPORT_ROWS_MAX {
            let problem = format!("there are more than {SUPPORT_ROWS_MAX} rows in addition to the items");
            return Err(DatasetError::content(file, *row, None, problem));
        }
        Ok(())
    }

    /// Adds the values that the layout makes of these rows. An error may concern any row up to `last`.
    fn add(
        &mut self,
        layout: &dyn Layout,
        split: &str,
        rows: Vec<Row>,
        last: &RowLocation,
    ) -> Result<(), DatasetError> {
        let file = (last.0.clone(), None);
        self.values.extend(layout.support(split, rows).map_err(|error| row_error(&file, error))?);
        Ok(())
    }
}

/// Returns the support values of a split of demo rows, without storing them.
pub(crate) async fn support_values(
    layout: &dyn Layout,
    split: &str,
    file: RowFile,
) -> Result<BTreeMap<String, Value>, DatasetError> {
    let location = (file.name.clone(), None);
    let mut found = Vec::new();
    let mut rows = rows::read(file);
    while let Some(batch) = rows.recv().await {
        found.extend(batch?.into_iter().map(|numbered| numbered.row));
    }
    layout.support(split, found).map_err(|error| row_error(&location, error))
}

/// Stores each support value as an object and adds it to the digest.
async fn write_support(
    blobs: &Blobs,
    data_key: &str,
    values: &BTreeMap<String, Value>,
    digest: &mut Sha256,
) -> Result<BTreeMap<String, SupportEntry>, DatasetError> {
    let mut entries = BTreeMap::new();
    for (name, value) in values {
        let content = to_json(data_key, value)?;
        let frame = compress_frame(data_key, &content)?;
        blobs.put(&keys::support(data_key, name), frame.into(), "application/zstd").await?;
        digest.update(name);
        digest.update(b"\t");
        digest.update(&content);
        digest.update(b"\n");
        let sha256 = hex::encode(Sha256::digest(&content));
        entries.insert(name.clone(), SupportEntry { sha256, bytes: content.len() as u64 });
    }
    Ok(entries)
}
