//! Rows become items in the blob store.

use std::collections::{BTreeMap, HashMap};

use bench_blobs::{BlobError, Blobs, OBJECT_BYTES_MAX, Upload, compress};
use bench_domain::StoredFile;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::attachments::Attachments;
use crate::error::DatasetError;
use crate::index::{FORMAT, FileFact, Index, IndexEntry, SupportEntry};
use crate::keys;
use crate::layout::{Item, Layout, Row, RowError};
use crate::progress::{Progress, Step};
use crate::rows::{self, Numbered, RowFile};

/// Upper bound of items in a dataset: their index is held in memory.
const ITEMS_MAX: usize = 1_000_000;
/// Upper bound of the index, about, so that it can be read again.
const INDEX_BYTES_MAX: usize = OBJECT_BYTES_MAX / 2;
/// Bytes of an entry of the index besides its names, about.
const INDEX_ENTRY_BYTES: usize = 64;
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
    /// The files with items, in order.
    pub(crate) items: Vec<RowFile>,
    /// Support splits and their files.
    pub(crate) support: Vec<(String, Vec<RowFile>)>,
    /// The split that rows among the items may belong to, which then are told apart by the layout.
    pub(crate) inline_support: Option<String>,
    /// Digest of the archive that the documents come from.
    pub(crate) documents: Option<String>,
    /// Support values that come from another dataset.
    pub(crate) borrowed: BTreeMap<String, Value>,
    /// Files that jobs need, in the store already.
    pub(crate) attachments: BTreeMap<String, StoredFile>,
}

/// Makes a dataset; nothing is visible of it before all of it is there.
pub(crate) async fn normalise(
    blobs: &Blobs,
    layout: &dyn Layout,
    source: Source,
    progress: &dyn Progress,
) -> Result<Index, DatasetError> {
    let data_key = keys::data(&source.folder);
    let mut writer = Writer {
        upload: blobs.upload(&data_key, "application/zstd"),
        offset: 0,
        digest: Sha256::new(),
        entries: Vec::new(),
        seen: HashMap::new(),
        index_bytes: 0,
    };
    let made = rows_to_items(layout, &mut writer, source, progress).await;
    let Writer { upload, mut digest, entries, .. } = writer;
    let made = match made {
        Ok(made) => made,
        Err(error) => {
            // The first error is the one to tell; what was uploaded is not visible anyway.
            if let Err(abort) = upload.abort().await {
                tracing::warn!(error = %abort, "An unfinished upload could not be removed");
            }
            return Err(error);
        }
    };
    let data_bytes = upload.finish().await?;
    let support = write_support(blobs, &data_key, &made.support, &mut digest).await?;
    if let Some(documents) = &made.source.documents {
        digest.update(format!("documents\t{documents}\n"));
    }
    Attachments::update(&made.source.attachments, &mut digest);
    let index = Index {
        format: FORMAT,
        benchmark: layout.name().to_owned(),
        layout_version: layout.version(),
        variant: layout.variant().to_owned(),
        id: made.source.id,
        source: made.source.source.to_owned(),
        revision: made.source.revision,
        digest: hex::encode(digest.finalize()),
        data_key,
        data_bytes,
        items: entries,
        support,
        documents: made.source.documents,
        attachments: made.source.attachments,
        rows_left_out: made.rows_left_out,
        files: made.source.facts,
        licence: layout.spec().licence.to_owned(),
        note: made.source.note,
    };
    blobs.put_json(&keys::index(&made.source.folder), &index).await?;
    let items = index.items.len();
    tracing::info!(dataset.id = index.id, dataset.revision = index.revision, items, "Prepared a dataset");
    Ok(index)
}

struct Made {
    source: Source,
    support: BTreeMap<String, Value>,
    rows_left_out: u64,
}

async fn rows_to_items(
    layout: &dyn Layout,
    writer: &mut Writer,
    mut source: Source,
    progress: &dyn Progress,
) -> Result<Made, DatasetError> {
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

    let (mut index, mut left_out) = (0, 0);
    let mut inline = Vec::new();
    let mut last_inline = (String::new(), None);
    let files = std::mem::take(&mut source.items);
    let names: Vec<String> = files.iter().map(|file| file.name.clone()).collect();
    for file in files {
        let name = file.name.clone();
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
                let item = layout.item(index, row).map_err(|error| at(&place, error))?;
                index += u64::from(item.is_some() || !layout.numbers_items());
                match item {
                    Some(item) => writer.add(item, &name, number).await?,
                    None => left_out += 1,
                }
                if index.is_multiple_of(ITEMS_PER_STEP) {
                    progress.step(Step::Normalising { items: writer.entries.len() as u64 });
                }
            }
        }
    }
    if let (Some(split), false) = (&source.inline_support, inline.is_empty()) {
        support.add(layout, split, inline, &last_inline)?;
    }
    if writer.entries.is_empty() {
        return Err(DatasetError::content(&names.join(", "), None, None, "it holds no items"));
    }
    progress.step(Step::Normalising { items: writer.entries.len() as u64 });
    Ok(Made { source, support: support.values, rows_left_out: left_out })
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

struct Writer {
    upload: Upload,
    offset: u64,
    digest: Sha256,
    entries: Vec<IndexEntry>,
    /// Ids and the row that had them first.
    seen: HashMap<String, u64>,
    /// Length of the index, about.
    index_bytes: usize,
}

impl Writer {
    async fn add(&mut self, item: Item, file: &str, row: u64) -> Result<(), DatasetError> {
        self.index_bytes += INDEX_ENTRY_BYTES + item.id.len() + item.group.as_ref().map_or(0, String::len);
        if self.entries.len() >= ITEMS_MAX || self.index_bytes > INDEX_BYTES_MAX {
            let problem = format!("there are more than {ITEMS_MAX} items, or their ids are too long");
            return Err(DatasetError::content(file, row, None, problem));
        }
        if let Some(first) = self.seen.insert(item.id.clone(), row) {
            let problem = format!("its item id `{}` is that of row {first} already", item.id);
            return Err(DatasetError::content(file, row, None, problem));
        }
        let content = json(file, &item)?;
        if content.len() > OBJECT_BYTES_MAX {
            let problem = format!("its item has more than {OBJECT_BYTES_MAX} bytes");
            return Err(DatasetError::content(file, row, None, problem));
        }
        self.digest.update(&content);
        self.digest.update(b"\n");
        let frame = pack(file, &content)?;
        self.upload.write(&frame).await?;
        let length = frame.len() as u64;
        self.entries.push(IndexEntry {
            id: item.id,
            group: item.group,
            tags: item.tags,
            offset: self.offset,
            length,
        });
        self.offset += length;
        Ok(())
    }
}

fn json<T: Serialize>(key: &str, value: &T) -> Result<Vec<u8>, DatasetError> {
    let failed =
        |error: serde_json::Error| BlobError::Request { key: key.to_owned(), problem: error.to_string() };
    Ok(serde_json::to_vec(value).map_err(failed)?)
}

fn pack(key: &str, content: &[u8]) -> Result<Vec<u8>, DatasetError> {
    let failed =
        |error: std::io::Error| BlobError::Request { key: key.to_owned(), problem: error.to_string() };
    Ok(compress(content).map_err(failed)?)
}
