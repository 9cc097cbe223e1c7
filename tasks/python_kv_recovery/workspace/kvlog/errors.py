class StoreError(Exception):
    """The store or a command is invalid; the message is for users."""
