//! A layout that sets every optional part of a layout, and archives.

use std::collections::BTreeMap;
use std::io::Write;

use bench_items::{
    DatasetSpec, DocumentArchive, Item, Layout, PartFile, Row, RowError, TemplateOrigin, TemplatePart,
    TemplateRole, TemplateSpec,
};
use serde_json::Value;
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;

use crate::support::{COMMIT, Quiz};

/// A quiz with optional parts; rows of the form `{path, text}` are its documents.
#[derive(Debug)]
pub(crate) struct CustomLayout {
    pub(crate) quiz: Quiz,
    pub(crate) variant: &'static str,
    pub(crate) files: &'static [PartFile],
    pub(crate) documents: Option<&'static DocumentArchive>,
    pub(crate) templates: &'static [TemplateSpec],
}

impl CustomLayout {
    pub(crate) const PLAIN: Self =
        Self { quiz: Quiz::OPEN, variant: "", files: &[], documents: None, templates: &[] };
}

impl Layout for CustomLayout {
    fn name(&self) -> &'static str {
        self.quiz.name()
    }

    fn spec(&self) -> &DatasetSpec {
        self.quiz.spec()
    }

    fn variant(&self) -> &'static str {
        self.variant
    }

    fn files(&self) -> &'static [PartFile] {
        self.files
    }

    fn documents(&self) -> Option<&'static DocumentArchive> {
        self.documents
    }

    fn templates(&self) -> &'static [TemplateSpec] {
        self.templates
    }

    fn item(&self, index: u64, row: Row) -> Result<Option<Item>, RowError> {
        // The variant without law has other rows.
        if self.variant == "no-law" && row.get("category") == Some(&Value::from("law")) {
            return Ok(None);
        }
        self.quiz.item(index, row)
    }

    fn support(&self, split: &str, rows: Vec<Row>) -> Result<BTreeMap<String, Value>, RowError> {
        if self.documents.is_none() {
            return self.quiz.support(split, rows);
        }
        let text =
            |row: &Row, column: &str| row.get(column).and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(rows.iter().map(|row| (text(row, "path"), text(row, "text").into())).collect())
    }

    fn is_support(&self, row: &Row) -> bool {
        if self.documents.is_some() { row.contains_key("path") } else { self.quiz.is_support(row) }
    }
}

pub(crate) fn sha256(content: impl AsRef<[u8]>) -> String {
    hex::encode(Sha256::digest(content))
}

/// Leaks a text, since layouts have static ones.
pub(crate) fn leak(text: impl Into<String>) -> &'static str {
    Box::leak(text.into().into_boxed_str())
}

pub(crate) fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in members {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// Returns a specification that pins an archive with this content.
pub(crate) fn pinned(content: &[u8]) -> &'static DocumentArchive {
    let archive = DocumentArchive { path: "texts/all.zip", sha256: leak(sha256(content)), prefix: "lcr/" };
    Box::leak(Box::new(archive))
}

/// Returns a template that is a constant of a Python file on GitHub.
pub(crate) fn constant(name: &'static str, path: &'static str, sha256: Option<&'static str>) -> TemplateSpec {
    TemplateSpec {
        name,
        role: TemplateRole::Wording,
        origin: TemplateOrigin::GitHub { repository: "authors/evals", commit: COMMIT, path },
        part: TemplatePart::PythonConstant(name),
        sha256,
    }
}

pub(crate) fn templates(specs: &[TemplateSpec]) -> &'static [TemplateSpec] {
    Box::leak(specs.to_vec().into_boxed_slice())
}
