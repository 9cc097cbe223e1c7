//! Description of a benchmark for lists, pages and records.

use bench_domain::Generation;
use serde::Serialize;
use sha2::{Digest, Sha256};

/// Constant properties of a benchmark.
#[derive(Debug, Clone, Serialize)]
pub struct Metadata {
    /// Name in commands and URL paths.
    pub name: &'static str,
    /// Other names that are accepted in place of `name`.
    #[serde(skip)]
    pub aliases: &'static [&'static str],
    /// True if `name` reads like the name of another benchmark, so that the display name is shown beside it.
    #[serde(skip)]
    pub is_misleading: bool,
    /// Display name.
    pub display_name: &'static str,
    /// Description in one or two sentences.
    pub description: &'static str,
    /// Short name of the protocol, for selecting it in a run.
    pub protocol_name: &'static str,
    /// Name of the protocol, including the pinned version.
    pub protocol: &'static str,
    /// Program that extracts the answer from a response.
    pub parser: &'static str,
    /// Origin of protocol and data.
    pub sources: &'static [Link],
    /// Names of the metrics, the main one first.
    pub metrics: &'static [&'static str],
    /// Default number of samples per item.
    pub samples_per_item: u32,
    /// Default generation settings.
    #[serde(serialize_with = "serialize_generation")]
    pub generation: fn() -> Generation,
    /// Material that prompts need in addition to the item; `None` if there is none.
    pub support: Option<&'static str>,
    /// Default limit in seconds for one answer. The operator can lower it ([`AnswerTime`](crate::AnswerTime)).
    pub item_timeout_seconds: u64,
    /// Differences from the official program.
    pub deviations: &'static [&'static str],
    /// True if runs that name no benchmarks include this one.
    pub default_selected: bool,
    /// Steps that an operator has to take first; empty if there are none.
    pub setup_notes: &'static str,
    /// Composition of an item's id, and the column that holds the dataset's own id.
    pub item_id: &'static str,
    /// Word for a group of items, in the plural.
    pub group_noun: &'static str,
}

impl Metadata {
    /// Values that most benchmarks share. Each benchmark must set the fields that are empty here: names, description,
    /// protocol, parser, sources and item id.
    pub const DEFAULT: Self = Self {
        name: "",
        aliases: &[],
        is_misleading: false,
        display_name: "",
        description: "",
        protocol_name: "",
        protocol: "",
        parser: "",
        sources: &[],
        metrics: &["accuracy"],
        samples_per_item: 1,
        generation: Generation::default,
        support: None,
        item_timeout_seconds: 1_200,
        deviations: &[],
        default_selected: false,
        setup_notes: "",
        item_id: "",
        group_noun: "groups",
    };

    /// Returns the name for lists, with the display name if the name alone is misleading: `ifbench (IFEval)`.
    pub fn listed_name(&self) -> String {
        if self.is_misleading {
            format!("{} ({})", self.name, self.display_name)
        } else {
            self.name.to_owned()
        }
    }

    /// Returns the default generation settings.
    pub fn default_generation(&self) -> Generation {
        (self.generation)()
    }
}

/// Link to a web page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Title of the page.
    pub title: &'static str,
    /// URL of the page.
    pub url: &'static str,
}

/// Origin of the texts around an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TemplateSource {
    /// The official protocol's exact texts.
    Official,
    /// This program's own wording of the same request.
    Own,
}

impl TemplateSource {
    /// Returns the name used in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Official => "official",
            Self::Own => "own",
        }
    }
}

/// Digest of a template without any text, where the item's request is the only message.
pub const NO_TEXT_DIGEST: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Texts around an item, identified by their digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Template {
    /// Origin of the texts.
    pub source: TemplateSource,
    /// SHA-256 of the texts, each followed by a zero byte; lowercase hex.
    pub digest: String,
}

impl Template {
    /// Creates the template of these texts, in order of appearance.
    pub fn new(source: TemplateSource, parts: &[&str]) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update(part.as_bytes());
            hasher.update([0]);
        }
        Self { source, digest: hex::encode(hasher.finalize()) }
    }

    /// Returns the template for prompts whose few-shot examples or documents are bundled demo data. Such a prompt is
    /// not the official one, whatever its wording.
    #[must_use]
    pub fn with_demo_support(self) -> Self {
        Self::new(TemplateSource::Own, &[&self.digest, "demo support"])
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // signature required by serde
pub(crate) fn serialize_generation<S: serde::Serializer>(
    generation: &fn() -> Generation,
    s: S,
) -> Result<S::Ok, S::Error> {
    generation().serialize(s)
}
