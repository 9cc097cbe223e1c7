//! Lists of models, parsed leniently: an invalid field is left out instead of the whole model.

use bench_domain::Price;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// Maximum length of a slug in bytes. An entry with a longer one is left out.
const SLUG_BYTES_MAX: usize = 400;
/// Maximum length of other texts in characters.
const TEXT_CHARS_MAX: usize = 1000;

/// One model as its provider lists it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CatalogModel {
    /// Id of the model in requests.
    pub slug: String,
    /// Display name, often the same as the slug.
    pub name: String,
    /// Chutes' id of the deployment.
    pub chute_id: Option<String>,
    /// Description in one line.
    pub tagline: Option<String>,
    /// Publisher.
    pub user: Option<String>,
    /// Address of its picture.
    pub logo: Option<String>,
    /// Number of running instances. 0 if the provider doesn't report it.
    pub instance_count: u32,
    /// True for a model that answers chats. If the provider lists other models, too, such a model is recognized by a
    /// price or a token limit.
    pub is_language_model: bool,
    /// Price of its tokens.
    pub price: Option<Price>,
    /// Maximum number of tokens of prompt and answer together.
    pub context_length: Option<u64>,
    /// Maximum number of tokens of an answer.
    pub max_output: Option<u64>,
}

/// One page of a list of models.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ListPage<'a> {
    /// JSON texts of its entries.
    pub(crate) entries: Vec<&'a str>,
    /// Number of entries on all pages, if the page reports it.
    pub(crate) total: Option<u64>,
    /// Name of the next page, if the list reports it.
    pub(crate) next: Option<String>,
}

/// Splits a list given as an object with an array `items` or `data`.
///
/// # Errors
/// Returns the problem with the JSON.
pub(crate) fn split_list(body: &[u8]) -> Result<ListPage<'_>, String> {
    #[derive(Deserialize)]
    struct Page<'a> {
        #[serde(borrow, alias = "data")]
        items: Vec<&'a RawValue>,
        #[serde(default)]
        total: Option<u64>,
    }
    let page: Page<'_> = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let entries = page.items.into_iter().map(RawValue::get).collect();
    Ok(ListPage { entries, total: page.total, next: None })
}

/// Returns a price in dollars per million tokens.
pub(crate) fn per_million(input: Option<&Value>, output: Option<&Value>) -> Option<Price> {
    Price::new(input?.as_f64()?, output?.as_f64()?)
}

/// Reads the id of a model in requests.
pub(crate) fn slug(value: Option<&Value>) -> Option<String> {
    let slug = value?.as_str()?.trim();
    let legal = !slug.is_empty() && slug.len() <= SLUG_BYTES_MAX && !slug.chars().any(char::is_control);
    legal.then(|| slug.to_owned())
}

/// Reads a text for display.
pub(crate) fn text(value: Option<&Value>) -> Option<String> {
    let text = value?.as_str()?.trim();
    (!text.is_empty()).then(|| text.chars().take(TEXT_CHARS_MAX).collect())
}
