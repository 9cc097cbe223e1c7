class UsageError(Exception):
    """The arguments or the input are invalid; the message is for users."""
