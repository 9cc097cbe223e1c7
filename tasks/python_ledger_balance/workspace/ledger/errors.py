class BookError(Exception):
    """A document that can't be entered. The message is shown to the user."""
