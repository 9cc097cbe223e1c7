//! LM Studio, which serves models on the user's own machine.

use super::Provider;
use crate::protocols::openai_chat::OpenAiChat;

/// LM Studio.
pub static LMSTUDIO: Provider = Provider {
    name: "lmstudio",
    display_name: "LM Studio",
    description: "LM Studio on this machine",
    needs: "",
    key_variable: "LMSTUDIO_API_KEY",
    needs_key: false,
    base_url_variable: "LMSTUDIO_BASE_URL",
    default_base_url: Some("http://127.0.0.1:1234/v1"),
    protocol: &OpenAiChat,
    account: None,
    public_list: None,
    lists_other_models: false,
    slug_prefixes: &[],
    refused_key: None,
};
