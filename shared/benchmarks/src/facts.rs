//! What a benchmark is, for lists, pages and records.

use bench_domain::Generation;
use serde::Serialize;
use sha2::{Digest, Sha256};

/// What does not change about a benchmark.
#[derive(Debug, Clone, Serialize)]
pub struct Facts {
    /// Name in commands and paths.
    pub name: &'static str,
    /// Name for people.
    pub display_name: &'static str,
    /// One or two sentences.
    pub description: &'static str,
    /// Short name of the protocol, by which a run chooses it.
    pub protocol_name: &'static str,
    /// Name of the protocol, with what it is pinned to.
    pub protocol: &'static str,
    /// The program that finds the answer in a reply, by name.
    pub parser: &'static str,
    /// Where protocol and data come from.
    pub sources: &'static [Link],
    /// Names of its metrics, the main one first.
    pub metrics: &'static [&'static str],
    /// How often an item is asked unless a run says otherwise.
    pub samples_per_item: u32,
    /// Generation settings unless a run says otherwise.
    #[serde(serialize_with = "serialize_generation")]
    pub generation: fn() -> Generation,
    /// What prompts need besides the item; `None` when nothing.
    pub support: Option<&'static str>,
    /// How long one answer may take, in seconds, unless the operator allows less ([`AnswerTime`](crate::AnswerTime)).
    pub item_timeout_seconds: u64,
    /// Where this program does something else than the official one.
    pub deviations: &'static [&'static str],
    /// Whether it is part of a run that names no benchmark.
    pub default_selected: bool,
    /// What an operator has to do first; empty when nothing.
    pub setup_notes: &'static str,
    /// What an item's id is made of, and which column is the dataset's own id.
    pub item_id: &'static str,
    /// What a group of items is called, in the plural.
    pub group_noun: &'static str,
}

impl Facts {
    /// Values for what most benchmarks have in common. What is empty here has to be given: names, description, protocol,
    /// parser, sources and what an item's id is.
    pub const DEFAULT: Self = Self {
        name: "",
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

    /// Generation settings unless a run says otherwise.
    pub fn default_generation(&self) -> Generation {
        (self.generation)()
    }
}

/// A page on the web.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Link {
    /// What it is.
    pub title: &'static str,
    /// Its address.
    pub url: &'static str,
}

/// Where the text around an item comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TemplateSource {
    /// The official protocol, to the letter.
    Official,
    /// This program: the same request in other words.
    Own,
}

impl TemplateSource {
    /// The name in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Official => "official",
            Self::Own => "own",
        }
    }
}

/// The digest of a template without any text: the item's request is the only message.
pub const NO_TEXT_DIGEST: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// The text around an item, by its digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Template {
    /// Where it comes from.
    pub source: TemplateSource,
    /// SHA-256 of its parts, each followed by a zero byte; lowercase hex.
    pub digest: String,
}

impl Template {
    /// The template of these texts, in order of appearance.
    pub fn of(source: TemplateSource, parts: &[&str]) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update(part.as_bytes());
            hasher.update([0]);
        }
        Self { source, digest: hex::encode(hasher.finalize()) }
    }

    /// Returns the template of prompts whose few-shot examples or documents are not the dataset's but came with this
    /// program: whatever the wording is, such a prompt is not the official one.
    #[must_use]
    pub fn with_demo_support(self) -> Self {
        Self::of(TemplateSource::Own, &[&self.digest, "demo support"])
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the signature that serde asks for
pub(crate) fn serialize_generation<S: serde::Serializer>(
    generation: &fn() -> Generation,
    s: S,
) -> Result<S::Ok, S::Error> {
    generation().serialize(s)
}
