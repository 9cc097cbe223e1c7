//! Rows become items in the blob store.

use std::collections::BTreeMap;

use bench_blobs::Blobs;
use bench_domain::StoredFile;
use bench_items::{Layout, Row, RowError, source_id};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::attachments::Attachments;
use crate::checkpoint::Checkpoint;
use crate::error::DatasetError;
use crate::index::{FORMAT, FileFact, Index, SupportEntry};
use crate::item_files::ItemFiles;
use crate::keys;
use crate::progress::{Progress, Step};
use crate::rows::{self, Numbered, RowFile};
use crate::writer::{Writer, Written, json, pack};

/// Upper bound of the rows of all support splits, which are held in memory.
const SUPPORT_ROWS_MAX: usize = 100_000;
/// Progress is told every so many items.
const ITEMS_PER_STEP: u64 = 100;

/// A dataset to be made.
#[derive(Debug)]
pub(crate) struct Source {
    /// Folder of its objects.
    pub(crate) folder: String,
    pub(crate) id: String,
    /// `hub`, `local` or `demo`.
    pub(crate) source: &'static str,
    pub(crate) revision: String,
    pub(crate) note: Option<String>,
    pub(crate) facts: Vec<FileFact>,
    /// Support splits and their files.
    pub(crate) support: Vec<(String, Vec<RowFile>)>,
    /// The split that rows among the items may belong to, which then are told apart by the layout.
    pub(crate) inline_support: Option<String>,
    /// Digest of the archive that the documents come from.
    pub(crate) documents: Option<String>,
    /// Support values that come from another dataset.
    pub(crate) borrowed: BTreeMap<String, Value>,
    /// Whether those values are the demo rows'.
    pub(crate) demo_support: bool,
    /// Files that jobs need, in the store already.
    pub(crate) attachments: BTreeMap<String, StoredFile>,
}

/// Makes a dataset; nothing is visible of it before all of it is there. A large one goes on where an earlier process
/// was stopped.
pub(crate) async fn normalise(
    blobs: &Blobs,
    layout: &dyn Layout,
    source: Source,
    files: &mut ItemFiles<'_>,
    progress: &dyn Progress,
) -> Result<Index, DatasetError> {
    let folder = source.folder.clone();
    let made = make(blobs, layout, source, files, progress).await;
    if let Err(DatasetError::Blob(error)) = &made
        && error.is_upload_gone()
    {
        tracing::warn!(dataset = folder, %error, "An unfinished dataset is not in the store any more: it is begun anew");
        Checkpoint::forget(blobs, &folder).await?;
    }
    made
}

async fn make(
    blobs: &Blobs,
    layout: &dyn Layout,
    mut source: Source,
    files: &mut ItemFiles<'_>,
    progress: &dyn Progress,
) -> Result<Index, DatasetError> {
    let data_key = keys::data(&source.folder);
    let mut making = Making::begun(blobs, &source.folder, &data_key, files).await?;
    let made = rows_to_items(blobs, layout, &mut making, &mut source, files, progress).await;
    let Making { writer, rows_left_out, noted, .. } = making;
    let support = match made {
        Ok(support) => support,
        Err(error) => {
            // What was noted is gone on from; the rest would only take up room.
            if !noted {
                writer.abort().await;
            }
            return Err(error);
        }
    };
    let Written { mut digest, entries, bytes: data_bytes } = writer.finish().await?;
    let support = write_support(blobs, &data_key, &support, &mut digest).await?;
    if let Some(documents) = &source.documents {
        digest.update(format!("documents\t{documents}\n"));
    }
    Attachments::update(&source.attachments, &mut digest);
    let mut facts = files.facts().to_vec();
    facts.append(&mut source.facts);
    let index = Index {
        format: FORMAT,
        benchmark: layout.name().to_owned(),
        layout_version: layout.version(),
        variant: layout.variant().to_owned(),
        id: source.id,
        source: source.source.to_owned(),
        revision: source.revision,
        digest: hex::encode(digest.finalize()),
        data_key,
        data_bytes,
        items: entries,
        has_source_ids: true,
        support,
        documents: source.documents,
        attachments: source.attachments,
        rows_left_out,
        files: facts,
        licence: layout.spec().licence.to_owned(),
        note: source.note,
        demo_support: source.demo_support,
    };
    blobs.put_json(&keys::index(&source.folder), &index).await?;
    if noted {
        Checkpoint::forget(blobs, &source.folder).await?;
    }
    let items = index.items.len();
    tracing::info!(dataset.id = index.id, dataset.revision = index.revision, items, "Prepared a dataset");
    Ok(index)
}

/// A dataset that is being made.
struct Making {
    writer: Writer,
    /// Rows so far, or items where the layout numbers those.
    rows: u64,
    rows_left_out: u64,
    /// Whether a checkpoint refers to what is being written.
    noted: bool,
}

impl Making {
    /// From its start, or from where an earlier process was stopped.
    async fn begun(
        blobs: &Blobs,
        folder: &str,
        data_key: &str,
        files: &mut ItemFiles<'_>,
    ) -> Result<Self, DatasetError> {
        let anew = Self { writer: Writer::new(blobs, data_key), rows: 0, rows_left_out: 0, noted: false };
        // Only those of a hub are ever noted.
        if matches!(files, ItemFiles::Here(_)) {
            return Ok(anew);
        }
        let Some(found) = Checkpoint::load(blobs, folder).await? else { return Ok(anew) };
        let Checkpoint { writer, files: done, rows, rows_left_out, .. } = found;
        let Some(writer) = Writer::resumed(blobs, data_key, writer) else { return Ok(anew) };
        if !files.pass_over(&done) {
            writer.abort().await;
            return Ok(anew);
        }
        tracing::info!(dataset = folder, files = done.len(), rows, "Goes on with an unfinished dataset");
        Ok(Self { writer, rows, rows_left_out, noted: true })
    }
}

/// Stores the items, and hands out the support values.
async fn rows_to_items(
    blobs: &Blobs,
    layout: &dyn Layout,
    making: &mut Making,
    source: &mut Source,
    files: &mut ItemFiles<'_>,
    progress: &dyn Progress,
) -> Result<BTreeMap<String, Value>, DatasetError> {
    let mut support = Support { values: std::mem::take(&mut source.borrowed), rows: 0 };
    let splits = std::mem::take(&mut source.support);
    for (split, files) in splits {
        let mut found = Vec::new();
        let mut last = (split.clone(), None);
        for file in files {
            let name = file.name.clone();
            let mut rows = rows::read(file);
            while let Some(batch) = rows.recv().await {
                for Numbered { number, row } in batch? {
                    last = (name.clone(), Some(number));
                    support.count(&last)?;
                    found.push(row);
                }
            }
        }
        support.add(layout, &split, found, &last)?;
    }

    let mut inline = Vec::new();
    let mut last_inline = (String::new(), None);
    let mut names = Vec::new();
    while let Some(file) = files.next().await? {
        let name = file.name.clone();
        names.push(name.clone());
        let mut rows = rows::read(file);
        while let Some(batch) = rows.recv().await {
            for Numbered { number, row } in batch? {
                if source.inline_support.is_some() && layout.is_support(&row) {
                    last_inline = (name.clone(), Some(number));
                    support.count(&last_inline)?;
                    inline.push(row);
                    continue;
                }
                let place = (name.clone(), Some(number));
                let item = layout.item(making.rows, row).map_err(|error| at(&place, error))?;
                making.rows += u64::from(item.is_some() || !layout.numbers_items());
                match item {
                    Some(item) => {
                        let source_id = source_id(layout, &item.row);
                        making.writer.add(item, source_id, &name, number).await?;
                    }
                    None => making.rows_left_out += 1,
                }
                if making.rows.is_multiple_of(ITEMS_PER_STEP) {
                    progress.step(Step::Normalising { items: making.writer.items() });
                }
            }
        }
        if let Some(done) = files.full() {
            let state = making.writer.state();
            let checkpoint = Checkpoint::new(state, done, making.rows, making.rows_left_out);
            checkpoint.store(blobs, &source.folder).await?;
            making.noted = true;
            files.make_room();
        }
    }
    if let (Some(split), false) = (&source.inline_support, inline.is_empty()) {
        support.add(layout, split, inline, &last_inline)?;
    }
    if making.writer.items() == 0 {
        return Err(DatasetError::content(&names.join(", "), None, None, "it holds no items"));
    }
    progress.step(Step::Normalising { items: making.writer.items() });
    Ok(support.values)
}

type Place = (String, Option<u64>);

fn at((file, row): &Place, error: RowError) -> DatasetError {
    DatasetError::content(file, *row, error.column, error.problem)
}

struct Support {
    values: BTreeMap<String, Value>,
    rows: usize,
}

impl Support {
    fn count(&mut self, (file, row): &Place) -> Result<(), DatasetError> {
        self.rows += 1;
        if self.rows > SUPPORT_ROWS_MAX {
            let problem = format!("there are more than {SUPPORT_ROWS_MAX} rows beside the items");
            return Err(DatasetError::content(file, *row, None, problem));
        }
        Ok(())
    }

    /// Asks the layout; an error is about one of the rows up to `last`.
    fn add(
        &mut self,
        layout: &dyn Layout,
        split: &str,
        rows: Vec<Row>,
        last: &Place,
    ) -> Result<(), DatasetError> {
        let file = (last.0.clone(), None);
        self.values.extend(layout.support(split, rows).map_err(|error| at(&file, error))?);
        Ok(())
    }
}

/// The values of a split of demo rows, without storing them.
pub(crate) async fn support_values(
    layout: &dyn Layout,
    split: &str,
    file: RowFile,
) -> Result<BTreeMap<String, Value>, DatasetError> {
    let place = (file.name.clone(), None);
    let mut found = Vec::new();
    let mut rows = rows::read(file);
    while let Some(batch) = rows.recv().await {
        found.extend(batch?.into_iter().map(|numbered| numbered.row));
    }
    layout.support(split, found).map_err(|error| at(&place, error))
}

/// One object per value, and the value's part of the digest.
async fn write_support(
    blobs: &Blobs,
    data_key: &str,
    values: &BTreeMap<String, Value>,
    digest: &mut Sha256,
) -> Result<BTreeMap<String, SupportEntry>, DatasetError> {
    let mut entries = BTreeMap::new();
    for (name, value) in values {
        let content = json(data_key, value)?;
        let frame = pack(data_key, &content)?;
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
