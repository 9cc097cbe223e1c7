//! Choices in an order: model, judge, dataset, and whose keys pay.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{Generation, ModelId, Price, RunId};

/// Naming of items in an order and its stored responses.
///
/// The default is the meaning of orders stored before the program knew the dataset's own ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ItemNaming {
    /// By the index of the item's row only.
    #[default]
    RowIndex,
    /// By the dataset's own id, or by the index of the row after a `#`.
    SourceId,
}

/// Model at a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelRef {
    /// Id in the catalog.
    pub id: ModelId,
    /// Name of the provider, `oracle`, `nop` or `replay`.
    pub provider: String,
    /// The model's name at the provider.
    pub slug: String,
    /// Base URL of the provider, if it isn't the usual one. Set by the operator or on the command line, never by a
    /// request.
    #[serde(default)]
    pub base_url: Option<String>,
    /// For `replay`: key of the object that contains the stored responses.
    #[serde(default)]
    pub replay_key: Option<String>,
    /// Host of the base URL when the run was ordered, with the port unless it is the scheme's default, such as
    /// `127.0.0.1:8000`. `None` for models that aren't called over the network, and in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint_host: Option<String>,
}

impl ModelRef {
    /// Returns the name with its provider, as given to `--model`.
    pub fn qualified(&self) -> String {
        match self.provider.as_str() {
            name @ ("oracle" | "nop") => name.to_owned(),
            "replay" => format!("replay:{}", self.slug),
            provider => format!("{provider}/{}", self.slug),
        }
    }

    /// Returns true if a model gives the answers; false for `oracle`, `nop` and custom agents.
    pub fn is_asked(&self) -> bool {
        !matches!(self.provider.as_str(), "oracle" | "nop" | "custom")
    }

    /// Returns the name with its provider, followed by the host if known: `openai-compatible/m at 127.0.0.1:8000`.
    pub fn name_with_host(&self) -> String {
        name_with_host(&self.qualified(), self.endpoint_host.as_deref())
    }
}

/// Returns a model's qualified name, followed by the host if known.
pub fn name_with_host(qualified: &str, endpoint_host: Option<&str>) -> String {
    match endpoint_host {
        Some(host) => format!("{qualified} at {host}"),
        None => qualified.to_owned(),
    }
}

/// Judge of an order and its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgeSpec {
    /// Model of the judge. The provider `oracle` is a judge without a model that compares answers with the gold answer.
    pub model: ModelRef,
    /// Owner of the key that pays for the judge.
    pub auth: AuthMode,
    /// Settings that override those of the benchmark's protocol.
    #[serde(default)]
    pub generation: Generation,
    /// Provider's price for the judge at the time of creation.
    #[serde(default)]
    pub price: Option<Price>,
}

/// User simulator of an order: a model of its own, with its key, settings and price. The provider `oracle` is one without a model,
/// for runs that ask none.
pub type UserSpec = JudgeSpec;

/// Run whose answers are judged again, and number of the judging.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejudgedRun {
    /// Run that has the model's answers.
    pub run: RunId,
    /// Number of the judging, from 2: the original run has number 1.
    pub version: u32,
}

/// Source of a benchmark's items.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "from")]
pub enum DatasetChoice {
    /// The hub, or its cache.
    Hub,
    /// The demo data bundled with the program.
    Demo,
    /// A local file that was imported into the blob store under this revision.
    Local {
        /// Digest of the file's content.
        revision: String,
    },
}

/// Caller who may cancel, delete, requeue and export a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "id")]
pub enum Owner {
    /// The user of this machine.
    Local,
    /// The holder of the key with this keyed hash.
    Key(String),
    /// The signed-in user with this subject: the sign-in provider's name for the user, which never changes.
    User(String),
}

impl Owner {
    /// Returns a name that no other owner has, for keys of records.
    pub fn key_name(&self) -> String {
        match self {
            Self::Local => "local".to_owned(),
            Self::Key(hash) => format!("key-{hash}"),
            Self::User(subject) => format!("user-{subject}"),
        }
    }

    /// Returns a name that no other owner has, for paths of stored files: only letters, digits and hyphens.
    pub fn path_name(&self) -> String {
        match self {
            Self::Local | Self::Key(_) => self.key_name(),
            Self::User(subject) => format!("user-{}", hex::encode(Sha256::digest(subject))),
        }
    }
}

/// Owner of the key that is used for model calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthMode {
    /// The operator's key, from the environment.
    System,
    /// The caller's key, stored encrypted until the run is over.
    ApiKey,
    /// The access token that a signed-in user granted to the run's session. It's renewed while the run goes on.
    Idp,
}
