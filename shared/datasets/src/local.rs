//! Datasets from local files.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use bench_items::Layout;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::attachments::{Attachments, is_no_items};
use crate::error::DatasetError;
use crate::hub::{hash, select};
use crate::index::{DEMO_SUPPORT_NOTE, FileFact, Index, load_support};
use crate::item_files::ItemFiles;
use crate::keys;
use crate::library::{Library, Prepared};
use crate::normalise::{Source, normalise, support_values};
use crate::progress::Progress;
use crate::rows::{self, Input, RowFile, is_readable_name};

/// Part of the keys of local datasets.
const LOCAL: &str = "local";
/// Files of a folder that is taken in.
const FILES_MAX: usize = 2_000;
/// Entries of a folder among which an archive is looked for.
const ENTRIES_MAX: usize = 100_000;

/// A file and what it is for: items, or the support split of that name.
struct LocalFile {
    path: PathBuf,
    support: Option<String>,
}

/// Support values from another dataset, and where they come from.
struct Borrowed {
    values: BTreeMap<String, Value>,
    from: String,
    note: Option<String>,
}

impl Library {
    /// Takes a local file, or a folder of them, into the blob store; its revision, by which a run refers
    /// to it, is the digest of its content.
    ///
    /// Read are parquet, JSON lines, JSON arrays and, where a name ends so, CSV, in the dataset's own columns. In a
    /// folder, files named after a support split (`validation.jsonl`) are that split; in a file, the layout tells
    /// such rows apart. Documents come from the ZIP archive in the folder, without one from the archive that the
    /// layout pins. A benchmark that needs support rows and finds none takes them from the hub's dataset, or
    /// from the demo rows, and then `used.note` says so.
    ///
    /// Files that jobs need ([`Layout::attachments`](crate::Layout::attachments)) lie in the same folder: each one that
    /// a row names (for `.h5` in its column `h5_file`), else the only one with that ending, else that of the hub is
    /// taken. The first is known by the layout's name for it; where rows name several, each also by its own.
    ///
    /// # Errors
    /// [`DatasetError::Content`] names file, row and column; nothing of the dataset is left behind.
    pub async fn take_in(
        &self,
        layout: &dyn Layout,
        path: &Path,
        progress: &dyn Progress,
    ) -> Result<Prepared, DatasetError> {
        if let Some(error) = is_no_items(layout, path) {
            return Err(error);
        }
        let found = files_of(layout, path)?;
        let mut facts = Vec::with_capacity(found.len());
        let mut revision = Sha256::new();
        for file in &found {
            let name = file_name(&file.path);
            let (sha256, bytes) = hash(open(&file.path)?, &file.path).await?;
            // The name is no content; what the file is for is.
            revision.update(format!("{}\t{sha256}\n", file.support.as_deref().unwrap_or("")));
            facts.push(FileFact { name, bytes, sha256 });
        }
        let mut borrowed = None;
        let mut documents = None;
        let own = if layout.documents().is_some() { archive_in(path)? } else { None };
        match (layout.documents(), own) {
            (Some(archive), Some(own)) => {
                documents = Some(self.documents_of_file(&own, archive.prefix, progress).await?);
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
            facts.push(documents.archive.clone());
        }
        let rows: Vec<_> = found.iter().map(|file| (file_name(&file.path), file.path.clone())).collect();
        let attachments = self.attachments_beside(layout, path, &rows, progress).await?;
        Attachments::update(&attachments.files, &mut revision);
        facts.extend(attachments.facts);
        let revision = hex::encode(revision.finalize());
        let folder = keys::revision(layout, LOCAL, &revision);
        if let Some(index) = self.index(layout, &folder).await? {
            return Ok(Prepared::new(index, None));
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
        // Only the demo rows' values come with a note.
        let demo_support = borrowed.as_ref().is_some_and(|borrowed| borrowed.note.is_some());
        let (values, note) = borrowed.map_or_else(Default::default, |b| (b.values, b.note));
        let source = Source {
            folder,
            id: file_name(path),
            source: "local",
            revision,
            note,
            facts,
            support,
            inline_support: Some(support_splits(layout).first().map_or("support", |split| split).to_owned()),
            documents: documents.map(|documents| documents.archive.sha256),
            borrowed: values,
            demo_support,
            attachments: attachments.files,
        };
        let mut files = ItemFiles::Here(items.into_iter());
        Ok(Prepared::new(normalise(&self.blobs, layout, source, &mut files, progress).await?, None))
    }

    /// A dataset that was taken in.
    pub(crate) async fn local(&self, layout: &dyn Layout, revision: &str) -> Result<Prepared, DatasetError> {
        let index = self.index(layout, &keys::revision(layout, LOCAL, revision)).await?;
        index.map(|index| Prepared::new(index, None)).ok_or_else(|| DatasetError::NotTakenIn {
            benchmark: layout.name().to_owned(),
            revision: revision.to_owned(),
        })
    }

    /// Whether support rows are needed and the files have none.
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

    /// Support values of the hub's dataset, else of the demo rows.
    async fn borrow_support(
        &self,
        layout: &dyn Layout,
        progress: &dyn Progress,
    ) -> Result<Borrowed, DatasetError> {
        let index = match self.cached(layout).await? {
            Some(index) => Ok(index),
            None => match self.check(layout, &bench_domain::run::DatasetChoice::Hub) {
                Ok(()) => self.hub_or_cached(layout, progress).await.map(|prepared| prepared.index),
                Err(gated) => Err(gated),
            },
        };
        let error = match index {
            Ok(index) if !index.support.is_empty() => return self.support_of(&index).await,
            Ok(_) => "the hub's dataset has none".to_owned(),
            Err(error @ DatasetError::Blob(_)) => return Err(error),
            Err(error) => error.to_string(),
        };
        demo_support(layout, "worked examples", &error).await
    }

    async fn support_of(&self, index: &Index) -> Result<Borrowed, DatasetError> {
        let used = index.dataset_use();
        let mut values = BTreeMap::new();
        for name in index.support.keys() {
            if let Some(value) = load_support(&self.blobs, &used, name).await? {
                values.insert(name.clone(), value);
            }
        }
        Ok(Borrowed { values, from: format!("{} {} {}", used.id, used.revision, used.digest), note: None })
    }
}

/// The support values of the demo rows, in place of what could not be had.
async fn demo_support(layout: &dyn Layout, what: &str, error: &str) -> Result<Borrowed, DatasetError> {
    let mut values = BTreeMap::new();
    let mut from = Sha256::new();
    for (split, text) in layout.spec().demo.support {
        from.update(format!("{split}\t{}\n{text}", text.len()));
        let file = RowFile { name: format!("demo {split}"), input: Input::Text(text) };
        values.extend(support_values(layout, split, file).await?);
    }
    let note = format!("{what}{DEMO_SUPPORT_NOTE} and the dataset's own could not be had: {error}");
    tracing::warn!(benchmark = layout.name(), error, "{what} of the demo data are used");
    Ok(Borrowed { values, from: format!("demo {}", hex::encode(from.finalize())), note: Some(note) })
}

/// Names of the support splits of all sources and of the demo rows.
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

/// The archive in a folder.
fn archive_in(path: &Path) -> Result<Option<PathBuf>, DatasetError> {
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

/// The files at a path and what each is for.
fn files_of(layout: &dyn Layout, path: &Path) -> Result<Vec<LocalFile>, DatasetError> {
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
    // Other splits may lie beside the one that holds the items.
    let item_splits: Vec<_> =
        layout.spec().sources.iter().flat_map(|s| s.items).map(|part| part.split).collect();
    let is_items = |file: &LocalFile| {
        file.support.is_none() && item_splits.iter().any(|split| is_named_after(&file.path, split))
    };
    if files.iter().any(is_items) {
        files.retain(|file| file.support.is_some() || is_items(file));
    }
    if files.iter().all(|file| file.support.is_some()) {
        return Err(failed("it holds no .parquet, .jsonl, .json or .csv file with items".to_owned()));
    }
    Ok(files)
}

/// Whether a file is called `validation.jsonl`, `validation-00000-of-00001.parquet` or the like.
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
