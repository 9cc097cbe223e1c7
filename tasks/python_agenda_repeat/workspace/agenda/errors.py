class AgendaError(Exception):
    """A mistake in the input. The message is shown to the user."""
