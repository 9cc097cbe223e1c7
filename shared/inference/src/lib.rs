//! Chat completion providers, and what their failures mean.
