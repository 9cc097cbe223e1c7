//! Datasets from local files.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use bench_items::Layout;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::attachments::{Attachments, attachment_instead_of_items, containing_folder};
use crate::error::DatasetError;
use crate::hub::{hash, select};
use crate::index::{DEMO_SUPPORT_NOTE, FileInfo, Index, load_support};
use crate::item_files::ItemFiles;
use crate::keys;
use crate::library::{Library, PreparedDataset};
use crate::normalize::{DatasetParts, normalize, support_values};
use crate::official_files::find_local_files;
use crate::progress::Progress;
use crate::rows::{self, Input, RowFile, is_readable_name};

/// Source part of the keys of local datasets.
const LOCAL: &str = "local";
/// Maximum number of files in a folder that is imported.
const FILES_MAX: usize = 2_000;
/// Maximum number of folder entries that are searched for an archive.
const ENTRIES_MAX: usize = 100_000;

/// A local file and its purpose: items, or the support split of that name.
struct LocalFile {
    path: PathBuf,
    support: Option<String>,
}

/// Support values of another dataset, and their origin.
struct BorrowedSupport {
    values: BTreeMap<String, Value>,
    from: String,
    note: Option<String>,
}

impl Library {
    /// Imports a local file, or a folder of files, into the blob store. Its revision, which runs refer to, is the
    /// digest of its content.
    ///
    /// Supported formats are Parquet, JSON lines, JSON arrays and (by file name) CSV, with the dataset's own columns.
    /// In a folder, files named after a support split (`validation.jsonl`) are that split; within a file, the layout
    /// recognizes support rows. Documents come from the ZIP archive in the folder, otherwise from the archive that the
    /// layout pins. If a benchmark needs support rows and the files have none, they come from the hub's dataset or, as
    /// a last resort, from the demo rows, and `used.note` says so.
    ///
    /// Files that jobs need ([`Layout::attachments`](crate::Layout::attachments)) are read from the same folder: all
    /// files that rows name (for `.h5` in the column `h5_file`), otherwise the only file with that extension, otherwise
    /// the hub's file. The first one gets the layout's name for it. If rows name several files, each is also stored
    /// under its own name.
    ///
    /// Official files ([`Layout::official_files`](crate::Layout::official_files)) are read from the same folder too, for items
    /// that have all of them there.
    ///
    /// # Errors
    /// [`DatasetError::Content`] names file, row and column; no part of the dataset is left behind.
    pub async fn import_local(
        &self,
        layout: &dyn Layout,
        path: &Path,
        progress: &dyn Progress,
    ) -> Result<PreparedDataset, DatasetError> {
        if let Some(error) = attachment_instead_of_items(layout, path) {
            return Err(error);
        }
        let found = list_files(layout, path)?;
        let mut infos = Vec::with_capacity(found.len());
        let mut revision = Sha256::new();
        for file in &found {
            let name = file_name(&file.path);
            let (sha256, bytes) = hash(open(&file.path)?, &file.path).await?;
            // File names aren't part of the digest, but the purpose of a file is.
            revision.update(format!("{}\t{sha256}\n", file.support.as_deref().unwrap_or("")));
            infos.push(FileInfo { name, bytes, sha256 });
        }
        let mut borrowed = None;
        let mut documents = None;
        let own = if layout.documents().is_some() { find_archive(path)? } else { None };
        match (layout.documents(), own) {
            (Some(archive), Some(own)) => {
                documents = Some(self.local_documents(&own, archive.prefix, progress).await?);
            }
            (pinned, _) if self.needs_support(layout, &found).await? => match pinned {
                Some(archive) => match self.pinned_documents(layout, archive, progress).await {
                    Ok(list) => documents = Some(list),
                    Err(error @ DatasetError::Blob(_)) => return Err(error),
                    Err(error) => {
                        borrowed = Some(demo_support(layout, "documents", &error.to_string()).await?)
                    }
                },
                None => borrowed = Some(self.borrow_support(layout, progress).await?),
            },
            _ => {}
        }
        if let Some(borrowed) = &borrowed {
            revision.update(format!("borrowed\t{}\n", borrowed.from));
        }
        if let Some(documents) = &documents {
            revision.update(format!("documents\t{}\n", documents.archive.sha256));
            infos.push(documents.archive.clone());
        }
        let rows: Vec<_> = found.iter().map(|file| (file_name(&file.path), file.path.clone())).collect();
        let attachments = self.local_attachments(layout, path, &rows, progress).await?;
        Attachments::update(&attachments.files, &mut revision);
        infos.extend(attachments.infos);
        let official = find_local_files(layout, containing_folder(path))?;
        if let Some(digest) = &official.digest {
            revision.update(format!("official\t{digest}\n"));
        }
        let revision = hex::encode(revision.finalize());
        let folder = keys::revision(layout, LOCAL, &revision);
        if let Some(index) = self.index(layout, &folder).await? {
            self.store_local_files(layout, &index, &official).await?;
            return Ok(PreparedDataset::new(index, None));
        }
        let mut items = Vec::new();
        let mut support: Vec<(String, Vec<RowFile>)> = Vec::new();
        for file in found {
            let rows = RowFile { name: file_name(&file.path), input: Input::File(open(&file.path)?) };
            match file.support {
                None => items.push(rows),
                Some(split) => match support.iter_mut().find(|(name, _)| *name == split) {
                    Some((_, files)) => files.push(rows),
                    None => support.push((split, vec![rows])),
                },
            }
        }
        // Only the values of the demo rows have a note.
        let demo_support = borrowed.as_ref().is_some_and(|borrowed| borrowed.note.is_some());
        let (values, note) = borrowed.map_or_else(Default::default, |b| (b.values, b.note));
        let parts = DatasetParts {
            folder,
            id: file_name(path),
            source: "local",
            revision,
            note,
            infos,
            support,
            inline_support: Some(support_splits(layout).first().map_or("support", |split| split).to_owned()),
            documents: documents.map(|documents| documents.archive.sha256),
            borrowed: values,
            demo_support,
            attachments: attachments.files,
        };
        let mut files = ItemFiles::Local(items.into_iter());
        // Boxed, as below it: callers nest this deeply, and threads have little stack.
        let index = Box::pin(normalize(&self.blobs, layout, parts, &mut files, progress)).await?;
        self.store_local_files(layout, &index, &official).await?;
        Ok(PreparedDataset::new(index, None))
    }

    /// Returns a dataset that was imported earlier.
    pub(crate) async fn local(
        &self,
        layout: &dyn Layout,
        revision: &str,
    ) -> Result<PreparedDataset, DatasetError> {
        let index = self.index(layout, &keys::revision(layout, LOCAL, revision)).await?;
        index.map(|index| PreparedDataset::new(index, None)).ok_or_else(|| DatasetError::NotImported {
            benchmark: layout.name().to_owned(),
            revision: revision.to_owned(),
        })
    }

    /// Returns true if support rows are needed and the files have none.
    async fn needs_support(&self, layout: &dyn Layout, files: &[LocalFile]) -> Result<bool, DatasetError> {
        if support_splits(layout).is_empty() || files.iter().any(|file| file.support.is_some()) {
            return Ok(false);
        }
        for file in files {
            let rows = RowFile { name: file_name(&file.path), input: Input::File(open(&file.path)?) };
            let mut rows = rows::read(rows);
            while let Some(batch) = rows.recv().await {
                if batch?.iter().any(|numbered| layout.is_support(&numbered.row)) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Returns the support values of the hub's dataset, otherwise those of the demo rows.
    async fn borrow_support(
        &self,
        layout: &dyn Layout,
        progress: &dyn Progress,
    ) -> Result<BorrowedSupport, DatasetError> {
        let index = match self.load_cached(layout).await? {
            Some(index) => Ok(index),
            None => match self.check(layout, &bench_domain::run::DatasetChoice::Hub) {
                Ok(()) => self.hub_or_cached(layout, progress).await.map(|prepared| prepared.index),
                Err(gated) => Err(gated),
            },
        };
        let error = match index {
            Ok(index) if !index.support.is_empty() => return self.load_support_values(&index).await,
            Ok(_) => "the hub's dataset has none".to_owned(),
            Err(error @ DatasetError::Blob(_)) => return Err(error),
            Err(error) => error.to_string(),
        };
        demo_support(layout, "worked examples", &error).await
    }

    async fn load_support_values(&self, index: &Index) -> Result<BorrowedSupport, DatasetError> {
        let used = index.dataset_use();
        let mut values = BTreeMap::new();
        for name in index.support.keys() {
            if let Some(value) = load_support(&self.blobs, &used, name).await? {
                values.insert(name.clone(), value);
            }
        }
        Ok(BorrowedSupport {
            values,
            from: format!("{} {} {}", used.id, used.revision, used.digest),
            note: None,
        })
    }
}

/// Returns the support values of the demo rows, as a substitute for values that aren't available.
async fn demo_support(layout: &dyn Layout, what: &str, error: &str) -> Result<BorrowedSupport, DatasetError> {
    let mut values = BTreeMap::new();
    let mut from = Sha256::new();
    for (split, text) in layout.spec().demo.support {
        from.update(format!("{split}\t{}\n{text}", text.len()));
        let file = RowFile { name: format!("demo {split}"), input: Input::Text((*text).into()) };
        values.extend(support_values(layout, split, file).await?);
    }
    let note = format!("{what}{DEMO_SUPPORT_NOTE} and the dataset's own is not available: {error}");
    tracing::warn!(benchmark = layout.name(), error, "Using {what} of the demo data");
    Ok(BorrowedSupport { values, from: format!("demo {}", hex::encode(from.finalize())), note: Some(note) })
}

/// Returns the names of the support splits of all sources and of the demo rows.
fn support_splits(layout: &dyn Layout) -> Vec<&'static str> {
    let spec = layout.spec();
    let parts = spec.sources.iter().flat_map(|source| source.support).map(|part| part.split);
    let mut splits = Vec::new();
    for split in parts.chain(spec.demo.support.iter().map(|(split, _)| *split)) {
        if !splits.contains(&split) {
            splits.push(split);
        }
    }
    splits
}

/// Finds the ZIP archive in a folder.
fn find_archive(path: &Path) -> Result<Option<PathBuf>, DatasetError> {
    let failed = |problem: String| DatasetError::Path { path: path.display().to_string(), problem };
    if !path.is_dir() {
        return Ok(None);
    }
    let mut found = None;
    for entry in std::fs::read_dir(path).map_err(|error| failed(error.to_string()))?.take(ENTRIES_MAX) {
        let entry = entry.map_err(|error| failed(error.to_string()))?.path();
        let is_archive = entry.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("zip"));
        if is_archive && entry.is_file() && found.replace(entry).is_some() {
            return Err(failed("it holds more than one ZIP archive of documents".to_owned()));
        }
    }
    Ok(found)
}

/// Lists the files at a path with the purpose of each.
fn list_files(layout: &dyn Layout, path: &Path) -> Result<Vec<LocalFile>, DatasetError> {
    let failed = |problem: String| DatasetError::Path { path: path.display().to_string(), problem };
    let metadata = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?;
    if metadata.is_file() {
        return Ok(vec![LocalFile { path: path.to_owned(), support: None }]);
    }
    if !metadata.is_dir() {
        return Err(failed("it is neither a file nor a folder".to_owned()));
    }
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path).map_err(|error| failed(error.to_string()))? {
        let entry = entry.map_err(|error| failed(error.to_string()))?.path();
        if entry.is_file() && is_readable_name(&entry.to_string_lossy()) {
            names.push(entry);
        }
        if names.len() > FILES_MAX {
            return Err(failed(format!("it holds more than {FILES_MAX} files")));
        }
    }
    names.sort();
    let splits = support_splits(layout);
    let support =
        |path: &Path| splits.iter().find(|split| is_named_after(path, split)).map(|s| (*s).to_owned());
    let mut files: Vec<LocalFile> =
        names.into_iter().map(|path| LocalFile { support: support(&path), path }).collect();
    // If one file is named after the item split, files of other splits next to it are ignored.
    let item_splits: Vec<_> =
        layout.spec().sources.iter().flat_map(|s| s.items).map(|part| part.split).collect();
    let is_items = |file: &LocalFile| {
        file.support.is_none() && item_splits.iter().any(|split| is_named_after(&file.path, split))
    };
    if files.iter().any(is_items) {
        files.retain(|file| file.support.is_some() || is_items(file));
    }
    if files.iter().all(|file| file.support.is_some()) {
        return Err(failed("it has no .parquet, .jsonl, .json or .csv file with items".to_owned()));
    }
    Ok(files)
}

/// Returns true if a file is named after a split, such as `validation.jsonl` or `validation-00000-of-00001.parquet`.
fn is_named_after(path: &Path, split: &str) -> bool {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().to_lowercase()).unwrap_or_default();
    let first = stem.split(['-', '_', '.']).next().unwrap_or_default();
    select::keywords(split).contains(&first)
}

fn open(path: &Path) -> Result<File, DatasetError> {
    let failed = |error: std::io::Error| DatasetError::Path {
        path: path.display().to_string(),
        problem: error.to_string(),
    };
    File::open(path).map_err(failed)
}

fn file_name(path: &Path) -> String {
    let canonical =
        || std::fs::canonicalize(path).ok()?.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    name.or_else(canonical).unwrap_or_else(|| "local".to_owned())
}
