//! LM Studio, which serves models on the user's own machine.

use super::Provider;
use crate::settings::LMSTUDIO_FIELDS;

/// LM Studio.
pub static LMSTUDIO: Provider = Provider {
    name: "lmstudio",
    display_name: "LM Studio",
    description: "LM Studio on this machine",
    key_variable: "LMSTUDIO_API_KEY",
    base_url_variable: "LMSTUDIO_BASE_URL",
    default_base_url: Some("http://127.0.0.1:1234/v1"),
    setting_fields: &LMSTUDIO_FIELDS,
    ..Provider::DEFAULT
};
