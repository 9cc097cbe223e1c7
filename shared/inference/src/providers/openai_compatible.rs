//! Any other server that speaks chat completions: vLLM, SGLang, llama.cpp and others.

use super::Provider;

/// A server of the user's choice.
pub static OPENAI_COMPATIBLE: Provider = Provider {
    name: "openai-compatible",
    display_name: "the OpenAI-compatible server",
    description: "any server that speaks chat completions",
    needs: "`--base-url`, and `--api-key-env VAR` if it wants a key",
    key_variable: "OPENAI_COMPATIBLE_API_KEY",
    base_url_variable: "OPENAI_COMPATIBLE_BASE_URL",
    ..Provider::DEFAULT
};
