"""A log-structured key-value store."""
