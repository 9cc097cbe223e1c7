//! Choices of an order: model, judge, dataset, and the keys that pay.

use serde::{Deserialize, Serialize};

use crate::{Generation, ModelId, Price, RunId};

/// How an order and its stored responses name items.
///
/// The default is what orders mean that were stored before the dataset's own ids were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ItemNaming {
    /// By the index of the item's row alone.
    #[default]
    RowIndex,
    /// By the dataset's own id, or by the row's index after a `#`.
    SourceId,
}

/// A model at a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelRef {
    /// Id in the catalogue.
    pub id: ModelId,
    /// Who answers: the name of a provider, `oracle` or `replay`.
    pub provider: String,
    /// The model's name at the provider.
    pub slug: String,
    /// Where the provider answers, when that is not its usual address. Set by the operator or on the
    /// command line, never by a request.
    #[serde(default)]
    pub base_url: Option<String>,
    /// For `replay`: the object that holds the stored responses.
    #[serde(default)]
    pub replay_key: Option<String>,
    /// Host of the base URL when the run was ordered, with the port unless it is the scheme's default, such as
    /// `127.0.0.1:8000`. `None` for models that are not asked over the network, and in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint_host: Option<String>,
}

impl ModelRef {
    /// The name with its provider, as given to `--model`.
    pub fn qualified(&self) -> String {
        match self.provider.as_str() {
            "oracle" => "oracle".to_owned(),
            "replay" => format!("replay:{}", self.slug),
            provider => format!("{provider}/{}", self.slug),
        }
    }

    /// Returns the name with its provider and, where it is known, the host that answers:
    /// `openai-compatible/m at 127.0.0.1:8000`.
    pub fn located(&self) -> String {
        located(&self.qualified(), self.endpoint_host.as_deref())
    }
}

/// Returns a model's qualified name, followed by the host that answers where it is known.
pub fn located(qualified: &str, endpoint_host: Option<&str>) -> String {
    match endpoint_host {
        Some(host) => format!("{qualified} at {host}"),
        None => qualified.to_owned(),
    }
}

/// Who judges answers, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgeSpec {
    /// The judge. Provider `oracle` is a judge without a model that compares with the gold answer.
    pub model: ModelRef,
    /// Whose key pays for it.
    pub auth: AuthMode,
    /// Settings that replace those of the benchmark's protocol, where set.
    #[serde(default)]
    pub generation: Generation,
    /// The provider's price of the judge at the time of creation.
    #[serde(default)]
    pub price: Option<Price>,
}

/// The run whose answers are judged again, and which time this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejudges {
    /// The run that asked the model.
    pub run: RunId,
    /// Version of its judging, from 2: the run itself has version 1.
    pub version: u32,
}

/// Where the items of a benchmark come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "from")]
pub enum DatasetChoice {
    /// The hub, or what was cached of it.
    Hub,
    /// The items that this program brings along.
    Demo,
    /// A local file that was taken into the blob store under this revision.
    Local {
        /// Digest of the file's content.
        revision: String,
    },
}

/// Who may cancel, delete, requeue and export a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "id")]
pub enum Owner {
    /// Whoever sits at this machine.
    Local,
    /// The holder of the key with this keyed hash.
    Key(String),
}

/// Whose key is used for model calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthMode {
    /// The operator's, from the environment.
    System,
    /// The caller's, stored encrypted until the run is over.
    ApiKey,
}
