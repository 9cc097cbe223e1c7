//! One model as its provider lists it, read leniently: an odd field is left out, not the model.

use bench_domain::Price;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    /// What it is, in one line.
    pub tagline: Option<String>,
    /// Who published it.
    pub user: Option<String>,
    /// Address of its picture.
    pub logo: Option<String>,
    /// Running instances; 0 where the provider does not say.
    pub instance_count: u32,
    /// Whether it answers chats. Where the provider lists other models, too, the entry shows that by a price or a limit
    /// in tokens.
    pub is_language_model: bool,
    /// What tokens cost.
    pub price: Option<Price>,
    /// Tokens of prompt and answer together.
    pub context_length: Option<u64>,
    /// Tokens of an answer.
    pub max_output: Option<u64>,
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
