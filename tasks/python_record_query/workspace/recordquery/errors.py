class UsageError(Exception):
    """An argument or a record is invalid; the message is for users."""
