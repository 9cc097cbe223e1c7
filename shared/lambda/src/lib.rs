//! What the binaries of all functions share: tracing, SDK configuration, the Lambda runtime.
