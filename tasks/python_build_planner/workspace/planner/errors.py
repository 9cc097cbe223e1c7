class UsageError(Exception):
    """An argument or a file is invalid; the message is for users."""
