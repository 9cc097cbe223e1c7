//! Lists of models, read leniently: an odd field is left out, not the model.

use bench_domain::Price;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// Longest slug in bytes; an entry with a longer one is left out.
const SLUG_BYTES_MAX: usize = 400;
/// Longest other text in characters.
const TEXT_CHARS_MAX: usize = 1000;

/// One model as its provider lists it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CatalogueModel {
    /// The id that requests name.
    pub slug: String,
    /// The name for people; often the slug.
    pub name: String,
    /// Chutes' id of the deployment.
    pub chute_id: Option<String>,
    /// Description in one line.
    pub tagline: Option<String>,
    /// Publisher.
    pub user: Option<String>,
    /// Address of its picture.
    pub logo: Option<String>,
    /// Running instances; 0 where the provider does not say.
    pub instance_count: u32,
    /// Set for a model that answers chats. Where the provider lists other models, too, the entry shows that by a price or a limit
    /// in tokens.
    pub is_language_model: bool,
    /// Price of its tokens.
    pub price: Option<Price>,
    /// Tokens of prompt and answer together.
    pub context_length: Option<u64>,
    /// Tokens of an answer.
    pub max_output: Option<u64>,
}

/// One page of a list of models.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ListPage<'a> {
    /// Texts of its entries.
    pub(crate) entries: Vec<&'a str>,
    /// Number of entries on all pages, where the page says so.
    pub(crate) total: Option<u64>,
    /// Name of the page that follows, where the list names it.
    pub(crate) next: Option<String>,
}

/// Splits a list that is an object with an array `items` or `data`.
///
/// # Errors
/// The problem with the JSON.
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

/// A price in dollars per million tokens.
pub(crate) fn per_million(input: Option<&Value>, output: Option<&Value>) -> Option<Price> {
    Price::new(input?.as_f64()?, output?.as_f64()?)
}

/// The id that requests name.
pub(crate) fn slug(value: Option<&Value>) -> Option<String> {
    let slug = value?.as_str()?.trim();
    let legal = !slug.is_empty() && slug.len() <= SLUG_BYTES_MAX && !slug.chars().any(char::is_control);
    legal.then(|| slug.to_owned())
}

/// A text for people.
pub(crate) fn text(value: Option<&Value>) -> Option<String> {
    let text = value?.as_str()?.trim();
    (!text.is_empty()).then(|| text.chars().take(TEXT_CHARS_MAX).collect())
}
