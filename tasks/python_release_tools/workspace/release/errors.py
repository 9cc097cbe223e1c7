class ReleaseError(Exception):
    """The release can't be built. The message is shown to the user."""
