//! OpenRouter, a gateway to many providers.

use super::{Account, AccountAt, Provider};
use crate::settings::OPENROUTER_FIELDS;

/// OpenRouter.
pub static OPENROUTER: Provider = Provider {
    name: "openrouter",
    display_name: "OpenRouter",
    description: "OpenRouter",
    needs: "`OPENROUTER_API_KEY`",
    key_variable: "OPENROUTER_API_KEY",
    needs_key: true,
    base_url_variable: "OPENROUTER_BASE_URL",
    default_base_url: Some("https://openrouter.ai/api/v1"),
    setting_fields: &OPENROUTER_FIELDS,
    account: Some(Account { at: AccountAt::BaseUrl, path: "key" }),
    // Its model names begin with their authors' names, and Chutes is one of them.
    slug_prefixes: &["chutes"],
    ..Provider::DEFAULT
};
