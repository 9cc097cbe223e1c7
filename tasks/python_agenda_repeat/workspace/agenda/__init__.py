"""Lists events in several time zones."""
