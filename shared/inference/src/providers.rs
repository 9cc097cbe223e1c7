//! Providers of chat completions, with one file each, and their table.
//!
//! To add a provider, write a file with a `static` [`Provider`] based on [`Provider::DEFAULT`] and add it to
//! [`PROVIDERS`]. A provider with another wire protocol also needs that in the folder `protocols`. Names of models,
//! settings, help texts, the API's document, key confirmation and synchronization follow from the table; the tests
//! report missing lines in the documentation.

mod chutes;
mod lmstudio;
mod openai_compatible;
mod openrouter;
#[cfg(test)]
mod tests;

use std::fmt;
use std::hash::{Hash, Hasher};

use reqwest::Url;

use crate::listed_model::{CatalogModel, ListPage};
use crate::protocols::Protocol;
use crate::protocols::openai_chat::OpenAiChat;
use crate::settings::{COMMON, SettingFields, fields_of_host};

pub use chutes::CHUTES;
pub use lmstudio::LMSTUDIO;
pub use openai_compatible::OPENAI_COMPATIBLE;
pub use openrouter::OPENROUTER;

/// All providers, in the order of listings.
pub static PROVIDERS: &[&Provider] = &[&CHUTES, &OPENROUTER, &LMSTUDIO, &OPENAI_COMPATIBLE];

/// A provider of chat completions.
pub struct Provider {
    /// Name in model names (`NAME/MODEL`), JSON and storage: a lowercase letter, then lowercase letters, digits and hyphens.
    pub name: &'static str,
    /// Name for use in sentences.
    pub display_name: &'static str,
    /// Description of the source of answers, for help and documentation: a noun phrase.
    pub description: &'static str,
    /// Settings that a user needs, for the documentation. Empty for none.
    pub needs: &'static str,
    /// Variable that holds the operator's key.
    pub key_variable: &'static str,
    /// True if the provider requires a key.
    pub needs_key: bool,
    /// Variable that holds the base URL.
    pub base_url_variable: &'static str,
    /// Base URL if that variable is not set: the part before the protocol's own paths.
    pub default_base_url: Option<&'static str>,
    /// Wire protocol.
    pub(crate) protocol: &'static dyn Protocol,
    /// Fields of its API for generation settings.
    pub(crate) setting_fields: &'static SettingFields,
    /// Address that validates keys. Without one, keys are validated with the list of models or the model itself.
    pub(crate) account: Option<Account>,
    /// Public list of models, used to synchronize the catalog.
    pub public_list: Option<PublicList>,
    /// True if the list for a key also contains models that don't answer chats. Their entries have neither a price
    /// nor a token limit.
    pub(crate) lists_other_models: bool,
    /// Names of providers that may be prefixes of this provider's own model names.
    pub slug_prefixes: &'static [&'static str],
    /// The API's message about a key that the provider refuses, if an existing API prescribes it.
    pub refused_key: Option<&'static str>,
}

/// An address that answers `GET` with 200 for a valid key and with 401 for any other text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) at: AccountAt,
    pub(crate) path: &'static str,
}

/// Base of an account's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccountAt {
    /// The provider's base URL.
    BaseUrl,
    /// The address of its public list.
    PublicList,
}

/// A list of models that needs no key.
#[derive(Debug)]
pub struct PublicList {
    /// Variable that holds its base URL.
    pub base_url_variable: &'static str,
    /// Base URL if that variable is not set.
    pub default_base_url: &'static str,
    /// Number of models on each page except the last.
    pub(crate) page_models: usize,
    /// Returns the address of a page, counted from 0.
    pub(crate) page: fn(base: &Url, number: usize) -> Option<Url>,
    /// Splits a page into its entries. The error describes the problem.
    pub(crate) split: for<'a> fn(body: &'a [u8]) -> Result<ListPage<'a>, String>,
    /// Parses one entry. `None` if it has no usable name.
    pub(crate) entry: fn(json: &str) -> Option<CatalogModel>,
}

impl Provider {
    /// An entry without names and variables, which every provider sets. Speaks chat completions, needs no key and has
    /// no special addresses.
    pub(crate) const DEFAULT: Self = Self {
        name: "",
        display_name: "",
        description: "",
        needs: "",
        key_variable: "",
        needs_key: false,
        base_url_variable: "",
        default_base_url: None,
        protocol: &OpenAiChat,
        setting_fields: &COMMON,
        account: None,
        public_list: None,
        lists_other_models: false,
        slug_prefixes: &[],
        refused_key: None,
    };

    /// Returns the provider with this name.
    pub fn from_name(name: &str) -> Option<&'static Self> {
        PROVIDERS.iter().copied().find(|provider| provider.name == name)
    }

    /// Returns the fields for generation settings of the API at a host: those of a known API, else the provider's own.
    pub fn setting_fields(&self, host: Option<&str>) -> &'static SettingFields {
        host.and_then(fields_of_host).unwrap_or(self.setting_fields)
    }

    /// Parses one entry of its list of models for a key. `None` if it has no usable name.
    pub(crate) fn listed_model(&self, json: &str) -> Option<CatalogModel> {
        let model = self.protocol.listed_model(json)?;
        let is_language_model = model.is_language_model || !self.lists_other_models;
        Some(CatalogModel { is_language_model, ..model })
    }

    /// Returns true if its default address is on this machine.
    pub fn is_local(&self) -> bool {
        self.default_base_url.is_some_and(|url| url.starts_with("http://127.0.0.1:"))
    }
}

impl PartialEq for Provider {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Provider {}

impl Hash for Provider {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// Prints only the name, since entries are part of errors and settings that are logged.
impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Provider").field(&self.name).finish()
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}
